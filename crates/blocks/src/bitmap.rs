//! Presence of the units of one segment, a bit each, in 64-bit words.
//!
//! Called by the receiver for every data part, by the tolerance check ([`crate::accounting`]) and by
//! the sender for what is to be retransmitted. The idea is PKTMAP of EC 4.2; the bits count from 0.
//!
//! A bitmap is over one kind of number, such as the positions or the units of a segment, and of plain integers by default.
//!
//! Invariant: bits at `len` and beyond are zero, and `ones` is the number of bits that are set, so
//! [`Bitmap::count_ones`] and [`Bitmap::is_full`] cost nothing.
//!
//! Limit: a bitmap takes `len / 8` bytes. A caller that takes `len` from a peer bounds it first.

use crate::recount;
use crate::work::{self, Loop};
use core::fmt;
use core::marker::PhantomData;
use segstream_base::{Ordinal, Run};
use smallvec::SmallVec;

/// Bits of one word.
const WORD: u32 = u64::BITS;

/// Bits over the numbers `0..len`, reusable without allocation; up to 256 bits need no heap at all.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Bitmap<N = u32> {
    words: SmallVec<[u64; 4]>,
    len: u32,
    ones: u32,
    kind: PhantomData<N>,
}

impl<N> fmt::Debug for Bitmap<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bitmap").field("words", &self.words).field("len", &self.len).field("ones", &self.ones).finish()
    }
}

impl<N: Ordinal> Bitmap<N> {
    /// An empty bitmap of length 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes the length `len` and every bit zero. Capacity is kept.
    pub fn reset(&mut self, len: u32) {
        work::note(Loop::Words, words_for(len));
        self.words.clear();
        self.words.resize(words_for(len), 0);
        self.len = len;
        self.ones = 0;
    }

    /// Makes the length at least `len`; the new bits are zero. Never shortens.
    pub fn grow(&mut self, len: u32) {
        if len > self.len {
            work::note(Loop::Words, words_for(len) - self.words.len());
            self.words.resize(words_for(len), 0);
            self.len = len;
            self.debug_assert_ones();
        }
    }

    /// As many bits are set as are counted, and none beyond the end.
    fn debug_assert_ones(&self) {
        if recount::is_due(self.words.len()) {
            debug_assert_eq!(self.ones, self.words.iter().map(|word| word.count_ones()).sum(), "set bits are miscounted");
            debug_assert_eq!(self.words.len(), words_for(self.len), "there are not as many words as bits");
            let beyond = self.words.last().map_or(0, |last| last & !(u64::MAX >> (self.len.wrapping_neg() % WORD)));
            debug_assert_eq!(beyond, 0, "a bit is set beyond the end");
        }
    }

    /// The memory that it takes beyond itself, in bytes.
    pub fn heap_bytes(&self) -> u64 {
        if self.words.spilled() { self.words.capacity() as u64 * 8 } else { 0 }
    }

    /// How many bits there are.
    #[inline]
    pub const fn len(&self) -> u32 {
        self.len
    }

    /// The number behind that of the last bit.
    #[inline]
    pub fn end(&self) -> N {
        N::of(self.len)
    }

    /// Whether there are no bits at all, set or not.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bit `i`, `false` at `len` and beyond.
    #[inline]
    pub fn get(&self, i: N) -> bool {
        let i = i.index();
        self.word(i / WORD) >> (i % WORD) & 1 == 1
    }

    /// Sets bit `i`. `true` when it was zero before; `false` also when `i` is out of range.
    #[inline]
    pub fn set(&mut self, i: N) -> bool {
        let i = i.index();
        if i >= self.len {
            return false;
        }
        let Some(word) = self.words.get_mut((i / WORD) as usize) else { return false };
        let bit = 1 << (i % WORD);
        let new = *word & bit == 0;
        *word |= bit;
        self.ones += u32::from(new);
        new
    }

    /// Clears bit `i`. `true` when it was set before.
    #[inline]
    pub fn clear(&mut self, i: N) -> bool {
        let i = i.index();
        let Some(word) = self.words.get_mut((i / WORD) as usize) else { return false };
        let bit = 1 << (i % WORD);
        let old = *word & bit != 0;
        *word &= !bit;
        self.ones -= u32::from(old);
        old
    }

    /// Sets `count` bits from `from` on, as far as they exist, and says how many were zero before.
    #[inline]
    pub fn set_range(&mut self, from: N, count: u32) -> u32 {
        if count == 1 {
            // Why: mostly there is one unit in a shipment.
            return u32::from(self.set(from));
        }
        let from = from.index();
        let to = from.saturating_add(count).min(self.len);
        let mut new = 0;
        for (index, mask) in masks(from, to) {
            let Some(word) = self.words.get_mut(index) else { break };
            new += (mask & !*word).count_ones();
            *word |= mask;
        }
        self.ones += new;
        self.debug_assert_ones();
        new
    }

    /// Clears `count` bits from `from` on, as far as they exist, and says how many were set before.
    #[inline]
    pub fn clear_range(&mut self, from: N, count: u32) -> u32 {
        let from = from.index();
        let to = from.saturating_add(count).min(self.len);
        let mut old = 0;
        for (index, mask) in masks(from, to) {
            let Some(word) = self.words.get_mut(index) else { break };
            old += (mask & *word).count_ones();
            *word &= !mask;
        }
        self.ones -= old;
        self.debug_assert_ones();
        old
    }

    /// How many bits are set, without looking at them.
    #[inline]
    pub const fn count_ones(&self) -> u32 {
        self.ones
    }

    /// How many bits are set in `from..to`.
    pub fn count_ones_in(&self, from: N, to: N) -> u32 {
        masks(from.index(), to.index().min(self.len))
            .map(|(index, mask)| (self.words.get(index).copied().unwrap_or(0) & mask).count_ones())
            .sum()
    }

    /// The first set bit in `from..to`.
    #[inline]
    pub fn next_one(&self, from: N, to: N) -> Option<N> {
        self.next(from.index(), to.index().min(self.len), 0).map(N::of)
    }

    /// The first zero bit in `from..to`, as far as bits exist: never `len` or beyond.
    #[inline]
    pub fn next_zero(&self, from: N, to: N) -> Option<N> {
        self.next(from.index(), to.index().min(self.len), u64::MAX).map(N::of)
    }

    /// The runs of zero bits in `from..to`, as far as bits exist, in ascending order.
    pub fn zero_runs(&self, from: N, to: N) -> impl Iterator<Item = Run<N>> + '_ {
        self.runs(from, to, u64::MAX)
    }

    /// The runs of set bits in `from..to` in ascending order.
    pub fn one_runs(&self, from: N, to: N) -> impl Iterator<Item = Run<N>> + '_ {
        self.runs(from, to, 0)
    }

    /// Whether every bit is set; true of a bitmap without bits.
    #[inline]
    pub const fn is_full(&self) -> bool {
        self.ones == self.len
    }

    #[inline]
    fn word(&self, index: u32) -> u64 {
        self.words.get(index as usize).copied().unwrap_or(0)
    }

    /// The first bit in `from..to` that is set once the words are xored with `flip`; `to <= len`.
    #[inline]
    fn next(&self, from: u32, to: u32, flip: u64) -> Option<u32> {
        if from >= to {
            return None;
        }
        let mut index = from / WORD;
        let mut word = (self.word(index) ^ flip) & (u64::MAX << (from % WORD));
        let last = (to - 1) / WORD;
        while word == 0 {
            if index == last {
                work::note(Loop::Words, (index - from / WORD) as usize + 1);
                return None;
            }
            index += 1;
            word = self.word(index) ^ flip;
        }
        work::note(Loop::Words, (index - from / WORD) as usize + 1);
        // No overflow: `index` is at most that of the last bit, which is below `u32::MAX`.
        let found = index * WORD + word.trailing_zeros();
        (found < to).then_some(found)
    }

    /// Runs of bits that are set once the words are xored with `flip`.
    fn runs(&self, from: N, to: N, flip: u64) -> impl Iterator<Item = Run<N>> + '_ {
        let to = to.index().min(self.len);
        let mut at = from.index();
        core::iter::from_fn(move || {
            let start = self.next(at, to, flip)?;
            at = self.next(start, to, !flip).unwrap_or(to);
            Run::new(N::of(start), N::of(at))
        })
    }
}

/// Words that hold `len` bits.
const fn words_for(len: u32) -> usize {
    len.div_ceil(WORD) as usize
}

/// The words that `from..to` touches and the bits of each that belong to it; none when it is empty.
#[inline]
fn masks(from: u32, to: u32) -> impl Iterator<Item = (usize, u64)> {
    let (first, end) = if from < to { (from / WORD, to.div_ceil(WORD)) } else { (0, 0) };
    work::note(Loop::Words, (end - first) as usize);
    (first..end).map(move |index| {
        let low = if index == first { u64::MAX << (from % WORD) } else { u64::MAX };
        // The last word keeps the bits below `to`: none are cut off when `to` is its end.
        let high = if index + 1 == end { u64::MAX >> (to.wrapping_neg() % WORD) } else { u64::MAX };
        (index as usize, low & high)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn run(start: u32, end: u32) -> Run<u32> {
        Run::new(start, end).unwrap()
    }

    /// What `work` returns, and how many words it has counted.
    fn words_counted<T>(work: impl FnOnce() -> T) -> (T, u64) {
        let words = || work::steps()[Loop::Words as usize].1;
        let before = words();
        let result = work();
        (result, words() - before)
    }

    /// What is counted of so many words.
    const fn in_debug(words: u64) -> u64 {
        if cfg!(debug_assertions) { words } else { 0 }
    }

    #[test]
    fn its_end_its_memory_and_the_words_of_its_growth_are_told() {
        let mut bits = <Bitmap>::new();
        bits.reset(256);
        assert_eq!((bits.end(), bits.heap_bytes()), (256, 0), "four words are in place");
        assert_eq!(words_counted(|| bits.grow(64 * 20)).1, in_debug(16), "the words that are new");
        assert_eq!(bits.end(), 1280);
        assert!(bits.heap_bytes() >= 20 * 8 && bits.heap_bytes().is_multiple_of(8) && bits.heap_bytes() < 64 * 8, "{}", bits.heap_bytes());
        bits.set(0);
        assert!(format!("{bits:?}").contains("len: 1280, ones: 1"));
    }

    #[test]
    fn a_search_counts_every_word_that_it_looks_at() {
        let mut bits = <Bitmap>::new();
        bits.reset(640);
        bits.set(600);
        let counted = |from, to| words_counted(|| bits.one_runs(from, to).count());
        // To the bit, then to the end of its run, then to the end of the map.
        assert_eq!(counted(0, 640), (1, in_debug(10 + 1 + 1)));
        assert_eq!(counted(130, 640), (1, in_debug(8 + 1 + 1)));
        assert_eq!(counted(130, 330), (0, in_debug(4)));
        assert_eq!(counted(130, 140), (0, in_debug(1)));
        assert_eq!(counted(130, 130), (0, 0));
    }

    #[test]
    fn a_range_counts_the_words_that_it_touches() {
        for (from, to, touched) in [(130, 140, 1), (130, 330, 4), (0, 64, 1), (0, 65, 2), (130, 130, 0), (140, 130, 0)] {
            assert_eq!(words_counted(|| masks(from, to).count()), (touched, in_debug(touched as u64)), "{from}..{to}");
        }
    }

    #[test]
    fn out_of_range_bits_are_false_and_cannot_be_set() {
        let mut bits = <Bitmap>::new();
        assert!(bits.is_full() && bits.is_empty());
        bits.reset(70);
        assert!(!bits.is_empty() && !bits.is_full());
        assert!(!bits.set(70) && !bits.set(127) && !bits.set(u32::MAX));
        assert!(!bits.clear(u32::MAX) && !bits.get(u32::MAX));
        assert_eq!(bits.set_range(68, u32::MAX), 2);
        assert_eq!(bits.set_range(u32::MAX, u32::MAX), 0);
        assert_eq!((bits.count_ones(), bits.count_ones_in(69, u32::MAX)), (2, 1));
        assert_eq!(bits.next_zero(68, u32::MAX), None, "bits beyond the length are not holes");
    }

    #[test]
    fn reset_forgets_and_grow_keeps() {
        let mut bits = <Bitmap>::new();
        bits.reset(64);
        assert_eq!(bits.set_range(0, 64), 64);
        assert!(bits.is_full());
        bits.grow(130);
        bits.grow(3);
        assert_eq!((bits.len(), bits.count_ones(), bits.is_full()), (130, 64, false));
        assert_eq!(bits.zero_runs(0, 130).collect::<Vec<_>>(), [run(64, 130)]);
        bits.reset(65);
        assert_eq!((bits.len(), bits.count_ones(), bits.next_one(0, 65)), (65, 0, None));
    }

    #[test]
    fn runs_cross_word_borders_and_stop_at_the_asked_end() {
        let mut bits = <Bitmap>::new();
        bits.reset(256);
        bits.set_range(60, 140);
        assert_eq!(bits.one_runs(0, 256).collect::<Vec<_>>(), [run(60, 200)]);
        assert_eq!(bits.one_runs(62, 65).collect::<Vec<_>>(), [run(62, 65)]);
        assert_eq!(bits.zero_runs(50, 210).collect::<Vec<_>>(), [run(50, 60), run(200, 210)]);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Set(u32),
        Clear(u32),
        SetRange(u32, u32),
        ClearRange(u32, u32),
        Grow(u32),
        Reset(u32),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0u32..420).prop_map(Step::Set),
            4 => (0u32..420).prop_map(Step::Clear),
            4 => (0u32..420, 0u32..300).prop_map(|(a, b)| Step::SetRange(a, b)),
            3 => (0u32..420, 0u32..200).prop_map(|(a, b)| Step::ClearRange(a, b)),
            1 => (0u32..400).prop_map(Step::Grow),
            1 => (0u32..400).prop_map(Step::Reset),
        ]
    }

    fn model_runs(model: &[bool], from: u32, to: u32, wanted: bool) -> Vec<Run<u32>> {
        let mut runs: Vec<Run<u32>> = Vec::new();
        for i in from..to.min(model.len() as u32) {
            if model[i as usize] == wanted {
                match runs.last_mut() {
                    Some(last) if last.end() == i => *last = run(last.start(), i + 1),
                    _ => runs.push(run(i, i + 1)),
                }
            }
        }
        runs
    }

    fn write_range(model: &mut [bool], from: u32, count: u32, value: bool) -> u32 {
        let mut changed = 0;
        for bit in model.iter_mut().skip(from as usize).take(count as usize) {
            changed += u32::from(*bit != value);
            *bit = value;
        }
        changed
    }

    proptest! {
        #[test]
        fn a_bitmap_is_a_vector_of_booleans(steps in prop::collection::vec(step(), 1..60), from in 0u32..420, to in 0u32..420) {
            let mut bits = <Bitmap>::new();
            let mut model: Vec<bool> = Vec::new();
            for step in steps {
                match step {
                    Step::Set(i) => prop_assert_eq!(bits.set(i), write_range(&mut model, i, 1, true) == 1),
                    Step::Clear(i) => prop_assert_eq!(bits.clear(i), write_range(&mut model, i, 1, false) == 1),
                    Step::SetRange(i, n) => prop_assert_eq!(bits.set_range(i, n), write_range(&mut model, i, n, true)),
                    Step::ClearRange(i, n) => prop_assert_eq!(bits.clear_range(i, n), write_range(&mut model, i, n, false)),
                    Step::Grow(n) => {
                        bits.grow(n);
                        model.resize(model.len().max(n as usize), false);
                    }
                    Step::Reset(n) => {
                        bits.reset(n);
                        model = vec![false; n as usize];
                    }
                }
                let ones = model.iter().filter(|bit| **bit).count() as u32;
                prop_assert_eq!((bits.len(), bits.count_ones()), (model.len() as u32, ones));
                prop_assert_eq!(bits.is_full(), model.iter().all(|bit| *bit));
            }
            for i in 0..430 {
                prop_assert_eq!(bits.get(i), model.get(i as usize).copied().unwrap_or(false));
            }
            let ones = model_runs(&model, from, to, true);
            let zeros = model_runs(&model, from, to, false);
            prop_assert_eq!(bits.count_ones_in(from, to), ones.iter().map(|run| run.len()).sum::<u32>());
            prop_assert_eq!(bits.next_one(from, to), ones.first().map(|run| run.start()));
            prop_assert_eq!(bits.next_zero(from, to), zeros.first().map(|run| run.start()));
            prop_assert_eq!(bits.one_runs(from, to).collect::<Vec<_>>(), ones);
            prop_assert_eq!(bits.zero_runs(from, to).collect::<Vec<_>>(), zeros);
        }
    }
}
