//! The longest queue of late: what an overflow, and the absence of a queue, are told by.
//!
//! Called by competitive mode, and to learn the depth of the queue.
//!
//! Invariant: it is never shorter than the queue that was seen last.

/// What is forgotten of it in a second.
const FORGET: f64 = 0.02;

/// The longest queue in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LongestQueue(f64);

impl LongestQueue {
    /// Of one queue.
    pub(super) const fn new(queue: f64) -> Self {
        Self(queue)
    }

    /// A queue was seen, `alpha` seconds after the last.
    pub(super) fn record(&mut self, queue: f64, alpha: f64) {
        self.0 = (self.0 * (1.0 - FORGET * alpha.min(1.0))).max(queue);
    }

    pub(super) const fn get(self) -> f64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_is_forgotten_by_two_per_cent_a_second_until_a_longer_comes() {
        let mut longest = LongestQueue::new(0.1);
        longest.record(0.01, 0.5);
        assert!((longest.get() - 0.099).abs() < 1e-9, "{longest:?}");
        // An exchange of many seconds is a pause, and says nothing of them.
        longest.record(0.01, 30.0);
        assert!((longest.get() - 0.099 * 0.98).abs() < 1e-9, "{longest:?}");
        longest.record(0.2, 0.5);
        assert_eq!(longest.get(), 0.2);
    }
}
