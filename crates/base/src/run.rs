//! Runs of consecutive numbers: the holes of a segment, the units of a part, what a report asks for.
//!
//! A run is half-open, as [`core::ops::Range`] is, and unlike a range it is never empty and can be copied. Runs are of one kind
//! of number: [`Position`]s are where units leave, [`UnitIndex`]es are where their bytes lie, and interleaving makes the two
//! differ.
//!
//! Used by everyone. Invariant: a run has one number at least.

use crate::numbers::{Position, UnitIndex};
use core::fmt;
use core::iter::FusedIterator;
use core::ops::Range;

/// A number of 32 bits that counts from 0, of which there can be runs and bitmaps.
pub trait Ordinal: Copy + Ord + Default + fmt::Debug + fmt::Display {
    /// The number of this integer.
    fn of(integer: u32) -> Self;

    /// The integer of this number.
    fn index(self) -> u32;
}

/// A plain integer, where only one kind of number occurs.
impl Ordinal for u32 {
    #[inline]
    fn of(integer: u32) -> Self {
        integer
    }

    #[inline]
    fn index(self) -> u32 {
        self
    }
}

impl Ordinal for UnitIndex {
    #[inline]
    fn of(integer: u32) -> Self {
        Self(integer)
    }

    #[inline]
    fn index(self) -> u32 {
        self.0
    }
}

impl Ordinal for Position {
    #[inline]
    fn of(integer: u32) -> Self {
        Self(integer)
    }

    #[inline]
    fn index(self) -> u32 {
        self.0
    }
}

/// The numbers from [`Run::start`] up to [`Run::end`], which is not among them. Never empty.
///
/// It is iterated over as a range is: `for unit in hole`. Runs are ordered by their starts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Run<N> {
    start: N,
    end: N,
}

impl<N: Ordinal> Run<N> {
    /// The numbers from `start` up to `end`, which is not among them; `None` when there are none.
    #[inline]
    pub fn new(start: N, end: N) -> Option<Self> {
        (start < end).then_some(Self { start, end })
    }

    /// Only this number; `None` for the last there is, which has none behind it.
    #[inline]
    pub fn single(number: N) -> Option<Self> {
        Self::new(number, N::of(number.index().saturating_add(1)))
    }

    /// The first number.
    #[inline]
    pub const fn start(self) -> N {
        self.start
    }

    /// The number after the last.
    #[inline]
    pub const fn end(self) -> N {
        self.end
    }

    /// How many numbers there are: one at least.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "a run is never empty")]
    pub fn len(self) -> u32 {
        self.end.index() - self.start.index()
    }

    /// Whether `number` is one of them.
    #[inline]
    pub fn contains(self, number: N) -> bool {
        self.start <= number && number < self.end
    }

    /// The numbers in ascending order.
    #[inline]
    pub fn iter(self) -> Numbers<N> {
        self.into_iter()
    }

    /// No more than the first `most` of them; `None` when `most` is zero.
    #[inline]
    #[must_use]
    pub fn at_most(self, most: u32) -> Option<Self> {
        Self::new(self.start, self.end.min(N::of(self.start.index().saturating_add(most))))
    }

    /// The shortest run that has the numbers of both.
    #[inline]
    #[must_use]
    pub fn span(self, other: Self) -> Self {
        Self { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// The same integers as numbers of another kind, for whoever knows that these agree.
    #[inline]
    #[must_use]
    pub fn cast<M: Ordinal>(self) -> Run<M> {
        Run { start: M::of(self.start.index()), end: M::of(self.end.index()) }
    }
}

impl Run<UnitIndex> {
    /// Where the bytes of these units are in a segment of `length` bytes, whose units are `unit_bytes` long; its last one may be
    /// shorter.
    #[inline]
    pub fn byte_range(self, unit_bytes: u32, length: u64) -> Range<u64> {
        let offset = |unit: UnitIndex| (u64::from(unit) * u64::from(unit_bytes)).min(length);
        offset(self.start)..offset(self.end)
    }
}

/// Prints `(start, end)`.
impl<N: fmt::Debug> fmt::Debug for Run<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (&self.start, &self.end).fmt(f)
    }
}

/// Prints `start..end`.
impl<N: fmt::Display> fmt::Display for Run<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.start, self.end)
    }
}

/// The range of the same numbers.
impl<N> From<Run<N>> for Range<N> {
    #[inline]
    fn from(run: Run<N>) -> Self {
        run.start..run.end
    }
}

impl<N: Ordinal> IntoIterator for Run<N> {
    type Item = N;
    type IntoIter = Numbers<N>;

    #[inline]
    fn into_iter(self) -> Numbers<N> {
        Numbers { left: self.start.index()..self.end.index(), kind: core::marker::PhantomData }
    }
}

impl<N: Ordinal> IntoIterator for &Run<N> {
    type Item = N;
    type IntoIter = Numbers<N>;

    #[inline]
    fn into_iter(self) -> Numbers<N> {
        (*self).into_iter()
    }
}

/// The numbers of a [`Run`], one after the other.
#[derive(Clone, Debug)]
pub struct Numbers<N> {
    left: Range<u32>,
    kind: core::marker::PhantomData<N>,
}

impl<N: Ordinal> Iterator for Numbers<N> {
    type Item = N;

    #[inline]
    fn next(&mut self) -> Option<N> {
        self.left.next().map(N::of)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.left.size_hint()
    }
}

impl<N: Ordinal> DoubleEndedIterator for Numbers<N> {
    #[inline]
    fn next_back(&mut self) -> Option<N> {
        self.left.next_back().map(N::of)
    }
}

impl<N: Ordinal> ExactSizeIterator for Numbers<N> {}
impl<N: Ordinal> FusedIterator for Numbers<N> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_never_empty() {
        assert_eq!(Run::new(UnitIndex(3), UnitIndex(3)), None);
        assert_eq!(Run::new(UnitIndex(4), UnitIndex(3)), None);
        assert_eq!((Run::single(u32::MAX), Run::single(7)), (None, Run::new(7, 8)));
        assert_eq!(Run::new(3, 9).and_then(|run: Run<u32>| run.at_most(0)), None);
    }

    #[test]
    fn a_run_is_what_its_range_is() {
        let run = Run::new(Position(3), Position(6)).unwrap();
        assert_eq!((run.start(), run.end(), run.len(), Range::from(run)), (Position(3), Position(6), 3, Position(3)..Position(6)));
        assert_eq!(run.iter().collect::<Vec<_>>(), [Position(3), Position(4), Position(5)]);
        assert_eq!(run.into_iter().rev().map(|position| position.0).collect::<Vec<_>>(), [5, 4, 3]);
        assert_eq!([2, 3, 5, 6].map(|at| run.contains(Position(at))), [false, true, true, false]);
        assert_eq!(
            (Run::new(Position(1), Position(2)).map(|other| run.span(other)), run.cast().start()),
            (Run::new(Position(1), Position(6)), 3)
        );
        assert_eq!((run.at_most(2), run.at_most(u32::MAX)), (Run::new(Position(3), Position(5)), Some(run)));
    }

    #[test]
    fn the_bytes_of_units_end_with_their_segment() {
        let bytes = |start, end| Run::new(UnitIndex(start), UnitIndex(end)).unwrap().byte_range(10, 95);
        assert_eq!([bytes(0, 2), bytes(8, 10), bytes(10, u32::MAX)], [0..20, 80..95, 95..95]);
    }

    #[test]
    fn a_run_prints_as_a_pair_or_as_a_range() {
        let run = Run::new(UnitIndex(3), UnitIndex(6)).unwrap();
        assert_eq!(format!("{run:?} {run}"), "(3, 6) 3..6");
    }
}
