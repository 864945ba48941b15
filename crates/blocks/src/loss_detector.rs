//! Loss detection by packet numbers: gaps in shipment numbers, with a reordering threshold R.
//!
//! Called by the receiver for every shipment that arrives. Source: EC 3.2 (gap detection) and EC 4.2. The
//! paper states its distance m in two ways that differ by one; here R is how many positions late a number
//! may come, 0 in an ordered network: number s is lost once some number of at least s + R + 1 has
//! arrived. That R grows when a number declared lost turns out to have been late is our own, as with the
//! reordering threshold of RFC 9002 6.1.1 and RFC 8985.
//!
//! Invariant: every number below `judged` has been counted exactly once, as received by then or as lost;
//! `judged` never goes back and never lies below the remembered span. No arrival costs more than a pass
//! over the sixteen words of the ring, however far it jumps.

use crate::histogram::{Bounds, Histogram};

/// The bounds of the histogram of run lengths. Small lengths are told apart, since they decide what a tolerance must allow.
pub const RUN_BOUNDS: Bounds = [1, 2, 3, 4, 6, 8, 12, 16, 32, 64, 128, 256, 1024];
/// How many numbers are remembered, the highest included.
const SPAN: u64 = 1024;
/// The words of the ring.
const WORDS: usize = (SPAN / 64) as usize;
/// The largest R that adapting reaches.
const REORDER_MAX_ADAPTED: u64 = 256;

/// What an arrival was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// The number after the highest, or number 0 first.
    InOrder,
    /// Above the highest, and numbers between were skipped.
    Gap,
    /// New, but behind the highest.
    Late {
        /// How far behind: the highest less the number, at least 1.
        distance: u64,
    },
    /// Seen before.
    Duplicate,
    /// Behind the remembered span: cannot be told from a duplicate.
    TooOld,
}

/// Finds lost numbers. Remembers the last 1024.
#[derive(Clone, Debug)]
pub struct LossDetector {
    /// Bit `s % SPAN` is whether number s has arrived, for the last [`SPAN`] numbers.
    ring: [u64; WORDS],
    highest: Option<u64>,
    reorder: u64,
    /// What R was at first.
    reorder_first: u16,
    adapting: bool,
    /// Numbers below are judged.
    judged: u64,
    lost: u64,
    /// Runs of numbers that follow one another and are lost.
    runs: u64,
    /// The length so far of the run to which the last number that was judged belongs; 0 if that is not lost.
    run: u64,
    /// The lengths of the runs that have ended.
    run_lengths: Histogram,
    late: u64,
    late_after_lost: u64,
}

impl LossDetector {
    /// A detector with the distance `reorder` (at most 1023 is used), which grows up to 256 when `adapting`.
    pub fn new(reorder: u32, adapting: bool) -> Self {
        let reorder = u64::from(reorder).min(SPAN - 1);
        let reorder_first = reorder as u16;
        Self {
            ring: [0; WORDS],
            highest: None,
            reorder,
            reorder_first,
            adapting,
            judged: 0,
            lost: 0,
            runs: 0,
            run: 0,
            run_lengths: Histogram::default(),
            late: 0,
            late_after_lost: 0,
        }
    }

    /// Numbers come by another path from now on: R is what it was at first.
    pub const fn reset_reorder(&mut self) {
        self.reorder = self.reorder_first as u64;
    }

    /// Takes the number of a shipment that has arrived. The first may be any; all below it count as missing.
    #[inline]
    pub fn on_arrival(&mut self, number: u64) -> Arrival {
        let Some(highest) = self.highest else { return self.advance(0, number, number == 0) };
        if number > highest {
            return self.advance(highest + 1, number, number == highest + 1);
        }
        let distance = highest - number;
        if distance >= SPAN {
            return Arrival::TooOld;
        }
        if self.remembered(number) {
            return Arrival::Duplicate;
        }
        self.on_late(number, distance);
        Arrival::Late { distance }
    }

    /// The highest number that has arrived.
    #[inline]
    pub const fn highest(&self) -> Option<u64> {
        self.highest
    }

    /// R: how many positions late a number may come without being declared lost.
    #[inline]
    pub const fn reorder(&self) -> u32 {
        self.reorder as u32
    }

    /// Whether `number` is declared lost: a number of at least `number` + R + 1 has arrived, and `number` has not
    /// as far as remembered. A number behind the remembered span counts as not arrived.
    #[inline]
    pub fn is_lost(&self, number: u64) -> bool {
        let Some(highest) = self.highest else { return false };
        let Some(decisive) = number.checked_add(self.reorder + 1) else { return false };
        highest >= decisive && (highest - number >= SPAN || !self.remembered(number))
    }

    /// Whether `number` has arrived, as far as remembered.
    pub fn has_arrived(&self, number: u64) -> bool {
        self.highest.is_some_and(|highest| number <= highest && highest - number < SPAN && self.remembered(number))
    }

    /// Whether a number of at least `number` + R has arrived: whatever was sent before `number` and is not
    /// here is declared lost. Saturates, so the largest number passes itself.
    #[inline]
    pub fn passed(&self, number: u64) -> bool {
        self.highest.is_some_and(|highest| highest >= number.saturating_add(self.reorder))
    }

    /// How many numbers have been declared lost, ever. Only grows: one that comes late after all stays counted
    /// here and is counted again by [`LossDetector::late_after_lost`].
    #[inline]
    pub const fn newly_lost(&self) -> u64 {
        self.lost
    }

    /// In how many runs the numbers were that have been declared lost, ever: numbers that follow one another are one run.
    #[inline]
    pub const fn lost_runs(&self) -> u64 {
        self.runs
    }

    /// The lengths of the runs that have ended, by [`RUN_BOUNDS`].
    pub const fn run_lengths(&self) -> &Histogram {
        &self.run_lengths
    }

    /// Ends the run that may go on, since nothing more will come.
    #[inline]
    pub fn end_run(&mut self) {
        if self.run > 0 {
            self.run_lengths.record(&RUN_BOUNDS, core::mem::take(&mut self.run));
        }
    }

    /// How many numbers have come late, ever: behind the highest, not twice.
    #[inline]
    pub const fn late_total(&self) -> u64 {
        self.late
    }

    /// How many of the late ones had been counted as lost before.
    #[inline]
    pub const fn late_after_lost(&self) -> u64 {
        self.late_after_lost
    }

    /// Makes `number` the highest; `expected` would have followed the one before.
    #[inline]
    fn advance(&mut self, expected: u64, number: u64, in_order: bool) -> Arrival {
        // Judge first: the slots of the oldest numbers are about to be used again.
        let judged = number.saturating_sub(self.reorder).max(self.judged);
        if in_order && judged == self.judged + 1 {
            if self.remembered(self.judged) {
                self.end_run();
            } else {
                self.add_lost(1);
            }
        } else {
            self.judge(expected, judged);
        }
        self.judged = judged;
        if !in_order {
            self.forget(expected, number);
        }
        self.ring[slot(number)] |= bit(number);
        self.highest = Some(number);
        self.debug_assert_counts();
        if in_order { Arrival::InOrder } else { Arrival::Gap }
    }

    /// Counts what is missing of the numbers from `self.judged` to `judged`: those below `expected` by the
    /// ring, the others entirely, as nothing of them has come.
    fn judge(&mut self, expected: u64, judged: u64) {
        let known = judged.min(expected);
        self.judge_remembered(known);
        let never_came = judged.saturating_sub(expected);
        if never_came > 0 {
            self.add_lost(never_came);
        }
    }

    /// The next `count` numbers are lost.
    #[inline]
    fn add_lost(&mut self, count: u64) {
        self.lost = self.lost.saturating_add(count);
        self.runs += u64::from(self.run == 0);
        self.run = self.run.saturating_add(count);
    }

    /// Counts what is missing of the numbers from `self.judged` to `to`: at most [`SPAN`] numbers, all remembered.
    fn judge_remembered(&mut self, to: u64) {
        let mut at = self.judged;
        while at < to {
            let (mask, end) = word_of(at, to);
            // The missing numbers of the word, the one of `at` in the lowest bit.
            self.judge_word((!self.ring[slot(at)] & mask) >> (at % 64), (end - at) as u32);
            at = end;
        }
    }

    /// Counts the next `width` numbers, of which those are missing whose bit is set, run by run.
    fn judge_word(&mut self, missing: u64, width: u32) {
        let (mut missing, mut left) = (missing, width);
        while left > 0 {
            let lost = missing.trailing_ones().min(left);
            if lost > 0 {
                self.add_lost(lost.into());
            }
            missing = missing.checked_shr(lost).unwrap_or(0);
            left -= lost;
            let arrived = missing.trailing_zeros().min(left);
            if arrived > 0 {
                self.end_run();
            }
            missing = missing.checked_shr(arrived).unwrap_or(0);
            left -= arrived;
        }
    }

    /// Makes the slots of `expected..number` zero: they now stand for numbers that have not arrived.
    fn forget(&mut self, expected: u64, number: u64) {
        if number - expected >= SPAN {
            self.ring = [0; WORDS];
            return;
        }
        let mut at = expected;
        while at < number {
            let (mask, end) = word_of(at, number);
            self.ring[slot(at)] &= !mask;
            at = end;
        }
    }

    #[cold]
    fn on_late(&mut self, number: u64, distance: u64) {
        self.ring[slot(number)] |= bit(number);
        self.late += 1;
        self.late_after_lost += u64::from(number < self.judged);
        if self.adapting && distance > self.reorder {
            self.reorder = self.reorder.max(distance.min(REORDER_MAX_ADAPTED));
        }
        self.debug_assert_counts();
    }

    /// What is judged is remembered up to the highest number, and no number counts as late that was not declared lost.
    fn debug_assert_counts(&self) {
        debug_assert!(self.reorder < SPAN && self.reorder >= u64::from(self.reorder_first), "R is {}", self.reorder);
        debug_assert!(self.late_after_lost <= self.late && self.late_after_lost <= self.lost, "late numbers are miscounted");
        debug_assert!(
            self.highest.is_some_and(|highest| self.judged <= highest && highest - self.judged < SPAN && self.remembered(highest))
        );
    }

    #[inline]
    const fn remembered(&self, number: u64) -> bool {
        self.ring[slot(number)] & bit(number) != 0
    }
}

/// The word of the ring that holds `number`.
#[inline]
const fn slot(number: u64) -> usize {
    (number % SPAN / 64) as usize
}

/// The bit of that word.
#[inline]
const fn bit(number: u64) -> u64 {
    1 << (number % 64)
}

/// The bits of the word of `at` that stand for `at..to`, and the number after them.
#[inline]
const fn word_of(at: u64, to: u64) -> (u64, u64) {
    let room = 64 - at % 64;
    let count = if to - at < room { to - at } else { room };
    ((u64::MAX >> (64 - count)) << (at % 64), at + count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn detector(reorder: u32, numbers: &[u64]) -> LossDetector {
        let mut detector = LossDetector::new(reorder, false);
        for number in numbers {
            detector.on_arrival(*number);
        }
        detector
    }

    #[test]
    fn arrivals_are_told_apart() {
        let mut detector = LossDetector::new(3, false);
        let cases = [
            (0, Arrival::InOrder),
            (1, Arrival::InOrder),
            (1, Arrival::Duplicate),
            (5, Arrival::Gap),
            (3, Arrival::Late { distance: 2 }),
            (3, Arrival::Duplicate),
            (6, Arrival::InOrder),
            (1029, Arrival::Gap),
            (5, Arrival::TooOld),
            (6, Arrival::Duplicate),
            (7, Arrival::Late { distance: 1022 }),
        ];
        for (number, arrival) in cases {
            assert_eq!(detector.on_arrival(number), arrival, "number {number}");
        }
        assert_eq!((detector.highest(), detector.late_total()), (Some(1029), 2));
    }

    #[test]
    fn a_number_is_lost_when_one_more_than_the_distance_has_passed_it() {
        for reorder in [0u32, 3, 100] {
            let decisive = 10 + u64::from(reorder) + 1;
            let before: Vec<u64> = (0..decisive).filter(|n| *n != 10).collect();
            let mut detector = detector(reorder, &before);
            assert!(!detector.is_lost(10), "R = {reorder}");
            assert_eq!(detector.newly_lost(), 0);
            detector.on_arrival(decisive);
            assert!(detector.is_lost(10) && !detector.is_lost(9) && !detector.is_lost(11));
            assert_eq!(detector.newly_lost(), 1);
        }
    }

    #[test]
    fn a_late_number_within_the_distance_is_no_loss() {
        let mut detector = detector(2, &[0, 2, 3]);
        assert_eq!(detector.on_arrival(1), Arrival::Late { distance: 2 });
        detector.on_arrival(9);
        assert_eq!((detector.newly_lost(), detector.late_after_lost()), (3, 0), "4, 5 and 6 are lost, 7 and 8 may come");
    }

    #[test]
    fn whatever_was_sent_before_a_passed_number_is_decided() {
        let detector = detector(3, &[10]);
        assert!(detector.passed(7) && !detector.passed(8));
        assert!(!LossDetector::new(0, false).passed(0));
        let at_the_end = self::detector(3, &[u64::MAX]);
        assert!(at_the_end.passed(u64::MAX) && !at_the_end.is_lost(u64::MAX) && !at_the_end.is_lost(u64::MAX - 3));
        assert!(at_the_end.is_lost(u64::MAX - 4));
    }

    #[test]
    fn the_distance_grows_to_the_latest_arrival_and_never_shrinks() {
        let mut detector = LossDetector::new(3, true);
        for number in [0, 20, 40] {
            detector.on_arrival(number);
        }
        let lost = detector.newly_lost();
        detector.on_arrival(15);
        assert_eq!((detector.reorder(), detector.late_after_lost(), detector.newly_lost()), (25, 1, lost));
        detector.on_arrival(39);
        assert_eq!(detector.reorder(), 25);
        detector.on_arrival(1000);
        detector.on_arrival(30);
        assert_eq!(detector.reorder(), 256, "no further than 256");
        detector.on_arrival(1001);
        assert_eq!((LossDetector::new(9999, true).reorder(), detector.reorder()), (1023, 256));
    }

    #[test]
    fn a_distance_that_is_not_to_adapt_stays() {
        let detector = detector(3, &[0, 20, 10, 40, 21]);
        assert_eq!((detector.reorder(), detector.late_after_lost()), (3, 2));
    }

    #[test]
    fn a_jump_of_any_length_is_counted_at_once() {
        let mut detector = detector(3, &[0, 1]);
        assert_eq!(detector.on_arrival(1 << 60), Arrival::Gap);
        assert_eq!(detector.newly_lost(), (1 << 60) - 3 - 2);
        assert_eq!(detector.on_arrival(u64::MAX), Arrival::Gap);
        assert_eq!(detector.newly_lost(), u64::MAX - 3 - 3);
        assert_eq!(detector.on_arrival(u64::MAX - 1), Arrival::Late { distance: 1 });
        assert!(detector.is_lost(7), "what is behind the span counts as not arrived");
    }

    /// A detector that keeps every number.
    #[derive(Default)]
    struct Model {
        arrived: BTreeSet<u64>,
        judged: u64,
        lost: BTreeSet<u64>,
        late: u64,
        late_after_lost: u64,
    }

    impl Model {
        fn on_arrival(&mut self, number: u64, reorder: u64) -> Arrival {
            let highest = self.arrived.last().copied();
            let arrival = match highest {
                Some(highest) if number + SPAN <= highest => return Arrival::TooOld,
                Some(_) if self.arrived.contains(&number) => return Arrival::Duplicate,
                Some(highest) if number < highest => Arrival::Late { distance: highest - number },
                _ if number == highest.map_or(0, |highest| highest + 1) => Arrival::InOrder,
                _ => Arrival::Gap,
            };
            if matches!(arrival, Arrival::Late { .. }) {
                self.late += 1;
                self.late_after_lost += u64::from(self.lost.contains(&number));
            }
            for judged in self.judged..number.saturating_sub(reorder) {
                if !self.arrived.contains(&judged) {
                    self.lost.insert(judged);
                }
                self.judged = judged + 1;
            }
            self.arrived.insert(number);
            arrival
        }
    }

    #[test]
    fn what_was_learned_of_reordering_is_forgotten_on_another_path() {
        let mut detector = LossDetector::new(3, true);
        for number in (0..20).chain(21..40).chain([20]) {
            detector.on_arrival(number);
        }
        assert_eq!((detector.reorder(), detector.newly_lost(), detector.late_after_lost()), (19, 1, 1));
        detector.on_arrival(41);
        detector.reset_reorder();
        assert_eq!((detector.reorder(), detector.is_lost(40)), (3, false));
        for number in 42..45 {
            detector.on_arrival(number);
        }
        assert_eq!((detector.is_lost(40), detector.newly_lost()), (true, 2), "each is counted once");
    }

    proptest! {
        #[test]
        fn a_ring_of_1024_knows_what_a_full_memory_knows(
            reorder in prop_oneof![0u32..5, 0u32..1100],
            adapting: bool,
            start in 0u64..2000,
            steps in prop::collection::vec(prop_oneof![6 => Just(1i64), 3 => -8i64..8, 1 => -1100i64..1100, 1 => 900i64..3000], 1..300),
        ) {
            let mut detector = LossDetector::new(reorder, adapting);
            let mut model = Model::default();
            let mut number = start;
            for step in steps {
                let before = u64::from(detector.reorder());
                prop_assert_eq!(detector.on_arrival(number), model.on_arrival(number, before), "number {}", number);
                prop_assert!(u64::from(detector.reorder()) >= before);
                prop_assert_eq!(detector.newly_lost(), model.lost.len() as u64);
                prop_assert_eq!((detector.late_total(), detector.late_after_lost()), (model.late, model.late_after_lost));
                let highest = *model.arrived.last().unwrap();
                prop_assert_eq!(detector.highest(), Some(highest));
                let reorder = u64::from(detector.reorder());
                for probe in highest.saturating_sub(SPAN - 1)..highest + 3 {
                    let lost = highest > probe + reorder && !model.arrived.contains(&probe);
                    prop_assert_eq!(detector.is_lost(probe), lost, "number {}", probe);
                    prop_assert_eq!(detector.passed(probe), highest >= probe + reorder);
                }
                number = highest.saturating_add_signed(step);
            }
            // Once, because the memory grows with every step.
            let begins = |number: &&u64| number.checked_sub(1).is_none_or(|before| !model.lost.contains(&before));
            prop_assert_eq!(detector.lost_runs(), model.lost.iter().filter(begins).count() as u64);
            detector.end_run();
            let mut lengths = Histogram::default();
            let mut before: Option<(u64, u64)> = None;
            for lost in model.lost.iter().copied().chain([u64::MAX]) {
                before = match before {
                    Some((first, last)) if last + 1 == lost => Some((first, lost)),
                    ended => {
                        if let Some((first, last)) = ended {
                            lengths.record(&RUN_BOUNDS, last - first + 1);
                        }
                        Some((lost, lost))
                    }
                };
            }
            prop_assert_eq!(detector.run_lengths(), &lengths);
        }
    }
}
