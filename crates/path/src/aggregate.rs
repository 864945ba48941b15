//! Aggregation: packets that have left the bottleneck are released in bursts.
//!
//! Called by [`crate::delay`] with the departure of each packet from the bottleneck. Links that grant a sender the medium in
//! turns do this (the upstream of cable, LTE, 802.11 under load).
//!
//! Limit: packets that wait for a release count neither as queueing nor against the limit of the queue.
//!
//! Invariant: releases are `every` apart, and a packet leaves with the first that is not before it.

use segstream_base::random::Seed;
use segstream_base::{Duration, Instant};

/// When packets are released.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Aggregate {
    every: Duration,
    phase: Duration,
}

impl Aggregate {
    /// Releases `every` so long, above zero; when the first comes is drawn from the stream `aggregate.<direction>`, so that
    /// the two directions are not in step.
    pub(crate) fn new(every: Duration, seed: Seed, direction: &str) -> Self {
        let phase = seed.stream(&format!("aggregate.{direction}")).below(every.as_nanos());
        Self { every, phase: Duration::from_nanos(phase) }
    }

    /// When a packet is released that came at `at`.
    pub(crate) fn leaves(&self, at: Instant) -> Instant {
        let since = at.as_nanos().saturating_sub(self.phase.as_nanos());
        Instant::ZERO + self.phase + self.every * since.div_ceil(self.every.as_nanos().max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_leave_in_bursts_that_are_so_far_apart_and_wait_at_most_so_long() {
        let every = Duration::from_millis(8);
        let aggregate = Aggregate::new(every, Seed(1), "forward");
        let mut leaves: Vec<Instant> = Vec::new();
        for at in (0..1000).map(|number| Instant::from_nanos(number * 333_333)) {
            let leaves_at = aggregate.leaves(at);
            assert!(leaves_at >= at && leaves_at < at + every);
            assert_eq!(aggregate.leaves(leaves_at), leaves_at);
            if leaves.last() != Some(&leaves_at) {
                leaves.push(leaves_at);
            }
        }
        assert!(leaves.len() > 40 && leaves.windows(2).all(|pair| pair[1].since(pair[0]) == every));
    }

    #[test]
    fn the_two_directions_are_not_in_step() {
        let phase = |direction| Aggregate::new(Duration::from_millis(8), Seed(1), direction).phase;
        assert_ne!(phase("forward"), phase("back"));
        assert_eq!(phase("forward"), phase("forward"));
    }
}
