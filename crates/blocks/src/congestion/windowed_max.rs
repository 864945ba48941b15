//! The largest value of recent rounds: a windowed max filter, in constant time for each value.
//!
//! Called by [`super::bbr1`] for the bandwidth, and by [`super::bbr`] for what is acknowledged in bursts.
//!
//! Invariant: of each round at most one value is kept, and older ones are larger; so no more are kept than rounds count.

use std::collections::VecDeque;

#[derive(Clone, Debug)]
pub(super) struct WindowedMax<T> {
    /// The maxima of recent rounds, falling, each with its round.
    maxima: VecDeque<(u64, T)>,
}

impl<T: Copy + PartialOrd> WindowedMax<T> {
    pub(super) const fn new() -> Self {
        Self { maxima: VecDeque::new() }
    }

    /// The largest; `None` before the first.
    pub(super) fn get(&self) -> Option<T> {
        self.maxima.front().map(|(_, value)| *value)
    }

    /// A `value` of `round`, after which the last `rounds` count.
    pub(super) fn update(&mut self, round: u64, rounds: u64, mut value: T) {
        while let Some((at, known)) = self.maxima.back().copied().filter(|(at, known)| *at == round || *known <= value) {
            if at == round && known > value {
                value = known;
            }
            self.maxima.pop_back();
        }
        self.maxima.push_back((round, value));
        while self.maxima.front().is_some_and(|(at, _)| at + rounds <= round) {
            self.maxima.pop_front();
        }
        debug_assert!(self.maxima.len() as u64 <= rounds);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_counts_for_its_rounds_and_then_the_next_does() {
        let mut max = WindowedMax::new();
        let mut largest = |round, value| {
            max.update(round, 3, value);
            max.get()
        };
        assert_eq!([largest(1, 5), largest(1, 9), largest(1, 7)], [Some(5), Some(9), Some(9)]);
        assert_eq!([largest(2, 6), largest(3, 4), largest(4, 1)], [Some(9), Some(9), Some(6)]);
        assert_eq!([largest(5, 1), largest(5, 8), largest(9, 2)], [Some(4), Some(8), Some(2)]);
    }
}
