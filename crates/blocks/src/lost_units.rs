//! The units of one segment that are declared lost, and whether its tolerance allows them, kept up to date unit by unit.
//!
//! Called by a receiver whose segment has lost more than its tolerance allows wherever the holes lie. A check from the beginning
//! ([`Tolerance::allows`]) takes as many steps as there are holes; after each of many small parts that is work without bound.
//!
//! Invariant: [`LostUnits::is_allowed`] says of the units that are lost what [`Tolerance::allows`] says of them. An insertion or a removal
//! looks at one window's count and at the two ends of the run around the unit, in a few steps whatever the length of the run.
//!
//! Limit: it takes a bit for each unit and a 63rd of that above, and four bytes for each window of the tolerance that is long.

use crate::work::{self, Loop};
use segstream_base::UnitIndex;
use segstream_base::tolerance::Tolerance;

/// Bits of a word.
const WORD: u32 = u64::BITS;
/// In windows of so many units, lost units are counted when the number is needed.
const SHORT_WINDOW: u32 = 512;

/// Lost units, and how they break the tolerance.
#[derive(Clone, Debug)]
pub struct LostUnits {
    tolerance: Tolerance,
    /// The longest run that is allowed: B, or any where everything may be missing.
    burst: u32,
    important: u32,
    lost: Hierarchy,
    /// Lost units of each window, if windows are long.
    windows: Vec<u32>,
    /// Windows with more than E.
    windows_broken: u32,
    /// Runs longer than B.
    runs_broken: u32,
    /// Lost units that are important.
    important_lost: u32,
}

impl LostUnits {
    /// Nothing is lost of a segment of `units` under `tolerance`, whose first `important` units must arrive.
    pub fn new(tolerance: Tolerance, important: u32, units: u32) -> Self {
        let burst = if tolerance.is_any() { u32::MAX } else { tolerance.burst() };
        let (lost, windows) = (Hierarchy::default(), Vec::new());
        let mut all = Self { tolerance, burst, important, lost, windows, windows_broken: 0, runs_broken: 0, important_lost: 0 };
        all.grow(units);
        all
    }

    /// There are `units` at least.
    pub fn grow(&mut self, units: u32) {
        self.lost.grow(units);
        let windows = self.lost.len.div_ceil(self.tolerance.window()) as usize;
        if self.tolerance.window() > SHORT_WINDOW && windows > self.windows.len() {
            work::note(Loop::Words, windows - self.windows.len());
            self.windows.resize(windows, 0);
        }
    }

    /// Whether the tolerance allows what is lost.
    pub const fn is_allowed(&self) -> bool {
        self.windows_broken == 0 && self.runs_broken == 0 && self.important_lost == 0
    }

    /// The memory that it takes beyond itself, in bytes.
    pub fn heap_bytes(&self) -> u64 {
        let levels: usize = self.lost.levels.iter().map(|level| level.capacity() * 8).sum();
        (levels + self.windows.capacity() * 4) as u64
    }

    /// `unit` is lost. Nothing changes if it was, or does not exist.
    pub fn insert(&mut self, unit: UnitIndex) {
        if unit.0 >= self.lost.len || self.lost.get(unit.0) {
            return;
        }
        work::note(Loop::LostUnits, 1);
        let (before, after) = self.lost.runs_around(unit.0);
        self.runs_broken += u32::from(before + 1 + after > self.burst);
        self.runs_broken -= u32::from(before > self.burst) + u32::from(after > self.burst);
        self.lost.set(unit.0);
        if let Some(count) = self.windows.get_mut((unit.0 / self.tolerance.window()) as usize) {
            *count += 1;
        }
        self.windows_broken += u32::from(self.lost_in_window_of(unit) == self.tolerance.errors().saturating_add(1));
        self.important_lost += u32::from(unit.0 < self.important);
        self.debug_assert_counts();
    }

    /// `unit` is here after all. Nothing changes if it was not lost.
    pub fn remove(&mut self, unit: UnitIndex) {
        if unit.0 >= self.lost.len || !self.lost.get(unit.0) {
            return;
        }
        work::note(Loop::LostUnits, 1);
        self.lost.clear(unit.0);
        let (before, after) = self.lost.runs_around(unit.0);
        self.runs_broken -= u32::from(before + 1 + after > self.burst);
        self.runs_broken += u32::from(before > self.burst) + u32::from(after > self.burst);
        if let Some(count) = self.windows.get_mut((unit.0 / self.tolerance.window()) as usize) {
            *count -= 1;
        }
        self.windows_broken -= u32::from(self.lost_in_window_of(unit) == self.tolerance.errors());
        self.important_lost -= u32::from(unit.0 < self.important);
        self.debug_assert_counts();
    }

    /// How many units are lost of the window that `unit` is in.
    fn lost_in_window_of(&self, unit: UnitIndex) -> u32 {
        let window = self.tolerance.window();
        if window > SHORT_WINDOW {
            return self.windows.get((unit.0 / window) as usize).copied().unwrap_or(0);
        }
        let start = unit.0 / window * window;
        self.lost.count(start, start.saturating_add(window).min(self.lost.len))
    }

    /// What is counted is what a check from the beginning finds.
    fn debug_assert_counts(&self) {
        if crate::recount::is_due((self.lost.len / WORD) as usize) {
            let holes = (0..self.lost.len).filter(|&unit| self.lost.get(unit)).map(UnitIndex);
            debug_assert_eq!(self.is_allowed(), self.tolerance.allows(holes, self.important), "what is lost is judged wrongly");
        }
    }
}

/// Bits in levels: each bit of a level says whether the word below it has all its bits set. So the end of a run is found in a step or two
/// a level.
///
/// Invariant: bits at `len` and beyond are zero, on every level.
#[derive(Clone, Debug, Default)]
struct Hierarchy {
    levels: Vec<Vec<u64>>,
    len: u32,
}

impl Hierarchy {
    /// There are `len` bits at least; the new ones are zero.
    fn grow(&mut self, len: u32) {
        if len <= self.len && !self.levels.is_empty() {
            return;
        }
        self.len = self.len.max(len);
        let (mut words, mut level) = (self.len.div_ceil(WORD) as usize, 0);
        loop {
            if level == self.levels.len() {
                // Why its bits: a level that is new stands above one that had been the highest, which may be full.
                let below = level.checked_sub(1).map(|below| &self.levels[below]);
                let is_full = |index: usize| below.and_then(|below| below.get(index)).is_some_and(|word| *word == u64::MAX);
                let word = |at: usize| (0..WORD as usize).map(|bit| u64::from(is_full(at * WORD as usize + bit)) << bit).sum();
                let fresh = if below.is_none() { vec![0; words] } else { (0..words).map(word).collect() };
                self.levels.push(fresh);
            } else if words > self.levels[level].len() {
                self.levels[level].resize(words, 0);
            }
            work::note(Loop::Words, words);
            if words <= 1 {
                return;
            }
            words = words.div_ceil(WORD as usize);
            level += 1;
        }
    }

    fn word(&self, level: usize, index: u32) -> u64 {
        self.levels.get(level).and_then(|words| words.get(index as usize)).copied().unwrap_or(0)
    }

    fn get(&self, at: u32) -> bool {
        self.word(0, at / WORD) >> (at % WORD) & 1 == 1
    }

    /// How many bits are set in `from..to`.
    fn count(&self, from: u32, to: u32) -> u32 {
        let words = from / WORD..to.div_ceil(WORD);
        let mask = |index: u32| {
            let low = if index == from / WORD { u64::MAX << (from % WORD) } else { u64::MAX };
            let high = if index + 1 == to.div_ceil(WORD) { u64::MAX >> (to.wrapping_neg() % WORD) } else { u64::MAX };
            low & high
        };
        words.map(|index| (self.word(0, index) & mask(index)).count_ones()).sum()
    }

    fn set(&mut self, at: u32) {
        let mut at = at;
        for level in &mut self.levels {
            let Some(word) = level.get_mut((at / WORD) as usize) else { return };
            *word |= 1 << (at % WORD);
            if *word != u64::MAX {
                return;
            }
            at /= WORD;
        }
    }

    fn clear(&mut self, at: u32) {
        let mut at = at;
        for level in &mut self.levels {
            let Some(word) = level.get_mut((at / WORD) as usize) else { return };
            let was_full = *word == u64::MAX;
            *word &= !(1 << (at % WORD));
            if !was_full {
                return;
            }
            at /= WORD;
        }
    }

    /// The lengths of the runs of set bits right before and right after `at`.
    fn runs_around(&self, at: u32) -> (u32, u32) {
        let start = at.checked_sub(1).map_or(0, |before| self.zero_down(0, before).map_or(0, |zero| zero + 1));
        let end = self.zero_up(0, at + 1).map_or(self.len, |zero| zero.min(self.len));
        (at - start, end - (at + 1).min(end))
    }

    /// The first zero of a level at `from` or above it; `None` where only bits that do not exist follow.
    fn zero_up(&self, level: usize, from: u32) -> Option<u32> {
        let index = from / WORD;
        if index as usize >= self.levels.get(level)?.len() {
            return None;
        }
        let zeros = !self.word(level, index) & (u64::MAX << (from % WORD));
        if zeros != 0 {
            return Some(index * WORD + zeros.trailing_zeros());
        }
        let word = self.zero_up(level + 1, index + 1)?;
        Some(word * WORD + (!self.word(level, word)).trailing_zeros()).filter(|_| (word as usize) < self.levels[level].len())
    }

    /// The last zero of a level at `from` or below it.
    fn zero_down(&self, level: usize, from: u32) -> Option<u32> {
        let index = from / WORD;
        let zeros = !self.word(level, index) & (u64::MAX >> (WORD - 1 - from % WORD));
        if zeros != 0 {
            return Some(index * WORD + zeros.ilog2());
        }
        let word = self.zero_down(level + 1, index.checked_sub(1)?)?;
        Some(word * WORD + (!self.word(level, word)).ilog2())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_says_what_a_check_from_the_beginning_says(
            units in 1u32..800,
            window in prop_oneof![1u32..420, 500u32..600],
            (errors, burst) in (0u32..600, 0u32..420),
            important in 0u32..6,
            steps in prop::collection::vec((any::<bool>(), 0u32..820, 1u32..150), 1..40),
        ) {
            let tolerance = Tolerance::new(window, errors.min(window), burst.min(window)).unwrap().clipped_to(units);
            let mut lost = LostUnits::new(tolerance, important, units / 2);
            lost.grow(units);
            let mut model = vec![false; units as usize];
            for (is_lost, from, count) in steps {
                for unit in from..(from + count).min(900) {
                    if is_lost { lost.insert(UnitIndex(unit)) } else { lost.remove(UnitIndex(unit)) }
                    if let Some(known) = model.get_mut(unit as usize) {
                        *known = is_lost;
                    }
                    let holes = || (0..units).filter(|&unit| model[unit as usize]).map(UnitIndex);
                    prop_assert_eq!(lost.is_allowed(), tolerance.allows(holes(), important));
                }
            }
        }
    }

    #[test]
    fn runs_are_followed_through_several_levels() {
        let mut lost = LostUnits::new(Tolerance::new(1 << 20, 1 << 20, 500_000).unwrap(), 0, 1 << 20);
        (100..250_000).chain(250_001..500_101).for_each(|unit| lost.insert(UnitIndex(unit)));
        assert!(lost.is_allowed());
        lost.insert(UnitIndex(250_000));
        assert!(!lost.is_allowed(), "the run is one longer than it may be");
        lost.remove(UnitIndex(100));
        assert!(lost.is_allowed());
        (0..1 << 20).for_each(|unit| lost.insert(UnitIndex(unit)));
        assert!(!lost.is_allowed());
        [400_000, 800_000].iter().for_each(|&unit| lost.remove(UnitIndex(unit)));
        assert!(lost.is_allowed());
        lost.insert(UnitIndex(800_000));
        assert!(!lost.is_allowed());
    }

    #[test]
    fn long_runs_are_followed_through_words_that_are_full() {
        // B is 200 of 1000: runs cross several words on both sides of the unit that joins them.
        let mut lost = LostUnits::new(Tolerance::new(1000, 1000, 200).unwrap(), 0, 1000);
        (300..400).chain(401..501).for_each(|unit| lost.insert(UnitIndex(unit)));
        assert!(lost.is_allowed());
        lost.insert(UnitIndex(400));
        assert!(!lost.is_allowed(), "the run is one longer than it may be");
        lost.remove(UnitIndex(500));
        assert!(lost.is_allowed());
        (0..1000).for_each(|unit| lost.insert(UnitIndex(unit)));
        (0..1000).step_by(150).for_each(|unit| lost.remove(UnitIndex(unit)));
        assert!(lost.is_allowed());
        lost.insert(UnitIndex(450));
        assert!(!lost.is_allowed());
    }
}
