//! Duplication: a second copy of a packet behind the first.
//!
//! Called by [`crate::Path`] once for each packet sent.
//!
//! The copy is made behind the bottleneck, so it takes no bandwidth, and travels with a jitter of its own.
//! A packet that is lost or dropped leaves no copy.
//!
//! Invariant: which packets are picked depends on the seed, the direction and the packet's number alone.

use crate::probability::Probability;
use segstream_base::random::{Random, Seed};

/// Decides which packets are duplicated.
#[derive(Clone, Debug)]
pub struct Duplicate {
    share: Probability,
    random: Random,
}

impl Duplicate {
    /// Duplicates `share` of the packets, drawn from the stream `duplicate.<direction>`.
    pub fn new(share: Probability, seed: Seed, direction: &str) -> Self {
        Self { share, random: seed.stream(&format!("duplicate.{direction}")) }
    }

    /// Whether the next packet is duplicated.
    #[inline]
    pub fn picks(&mut self) -> bool {
        self.share.happens(&mut self.random)
    }
}
