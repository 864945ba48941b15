//! The route from one host to another: a path, which may be blocked or lose a burst.
//!
//! Called by [`crate::Network`] for every datagram. Invariant: a datagram enters its path regardless of what happens to it, so that a fault
//! does not shift what the path does to later ones.

use crate::event::Fate;
use crate::host::HostId;
use segstream_base::random::{Random, Seed};
use segstream_base::{Bytes, Instant};
use segstream_path::{Fate as PathFate, Path, PathConfig, PathCounters, Probability, SpecError};

/// Bytes of IPv4 and UDP around a datagram, which a path carries besides.
///
/// Limit: a datagram over IPv6 is charged as many, not 20 more.
pub const HEADER_BYTES: usize = 28;

/// What a path did to a datagram.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Carried {
    pub(crate) fate: Fate,
    pub(crate) marked: bool,
    /// The bit of the payload that is flipped, counted from the most significant one of the first byte.
    pub(crate) flipped: Option<usize>,
}

impl Carried {
    pub(crate) const fn ended(fate: Fate) -> Self {
        Self { fate, marked: false, flipped: None }
    }
}

#[derive(Debug)]
pub(crate) struct Route {
    path: Path,
    /// How many routes there were between the two hosts before this one.
    pub(crate) generation: u32,
    /// The number of faults that block it.
    pub(crate) blocks: u32,
    /// What is lost besides, and until when.
    burst: Option<(Probability, Instant)>,
    random: Random,
}

impl Route {
    /// `generation`: how many routes there were between the two hosts before this one; each has random streams of its own.
    pub(crate) fn new(config: &PathConfig, seed: Seed, from: HostId, to: HostId, generation: u32) -> Result<Self, SpecError> {
        let again = if generation == 0 { String::new() } else { format!(".{generation}") };
        let name = format!("{}>{}{again}", from.0, to.0);
        let random = seed.stream(&format!("burst.{name}"));
        Ok(Self { path: Path::new(config, seed, &name)?, generation, blocks: 0, burst: None, random })
    }

    pub(crate) const fn counters(&self) -> PathCounters {
        self.path.counters()
    }

    pub(crate) const fn begin_burst(&mut self, share: Probability, until: Instant) {
        self.burst = Some((share, until));
    }

    fn burst_takes(&mut self, now: Instant) -> bool {
        match self.burst {
            Some((share, until)) if now < until => self.random.chance(share.get()),
            Some(_) => {
                self.burst = None;
                false
            }
            None => false,
        }
    }

    /// Sends a datagram of this many bytes.
    pub(crate) fn carry(&mut self, now: Instant, payload_bytes: usize, markable: bool) -> Carried {
        let bytes = Bytes::new((payload_bytes + HEADER_BYTES) as u64);
        let passage = if markable { self.path.send_markable(now, bytes) } else { self.path.send(now, bytes) };
        let burst = self.burst_takes(now);
        if self.blocks > 0 {
            return Carried::ended(Fate::Blocked);
        }
        let PathFate::Delivered { at } = passage.fate else { return Carried::ended(Fate::Lost) };
        if burst {
            return Carried::ended(Fate::Lost);
        }
        let header_bits = HEADER_BYTES as u64 * 8;
        let flipped = match passage.corrupt_bit {
            None => None,
            // A datagram with a damaged header never comes to a socket. A damaged payload is let through, to see whether the
            // endpoint finds it.
            Some(bit) if bit < header_bits => return Carried::ended(Fate::Lost),
            Some(bit) => usize::try_from(bit - header_bits).ok(),
        };
        let fate = Fate::Arrives { at, copy: passage.duplicate, damaged: flipped.is_some() };
        Carried { fate, marked: passage.marked, flipped }
    }
}
