//! Where the ranges of a set are kept: few in a row, many in a tree.
//!
//! Called by [`super::RangeSet`].
//!
//! Invariant: starts ascend. Neither way moves more than [`ROW_MAX`] ranges for one that comes or goes.
//!
//! Why two: a peer chooses which numbers come in which order, and inserting between many ranges must not move them; with few, as mostly,
//! a row is found faster, and allocates nothing for each range.

use core::ops::{Bound, Range};
use std::collections::BTreeMap;

/// The most ranges of a row.
pub(super) const ROW_MAX: usize = 64;
/// At how many a tree becomes a row again. Why not [`ROW_MAX`]: a set at the border would be built anew each time.
const ROW_AGAIN: usize = ROW_MAX / 2;
/// An empty row keeps memory for so many.
const KEPT_EMPTY: usize = 8;

/// The start and the end of a range.
pub(super) type Ends = (u64, u64);

/// Ranges by their start.
#[derive(Clone, Debug)]
pub(super) enum Kept {
    /// In ascending order.
    Row(Vec<Ends>),
    /// The end of each by its start.
    Tree(BTreeMap<u64, u64>),
}

impl Default for Kept {
    fn default() -> Self {
        Self::Row(Vec::new())
    }
}

/// How many ranges of a row start at `at` or before.
#[inline]
fn up_to(row: &[Ends], at: u64) -> usize {
    // Most are asked for behind the last one.
    if row.last().is_some_and(|last| last.0 <= at) { row.len() } else { row.partition_point(|range| range.0 <= at) }
}

impl Kept {
    /// The last range that starts at `at` or before.
    #[inline]
    pub(super) fn last_up_to(&self, at: u64) -> Option<Ends> {
        match self {
            Self::Row(row) => row[..up_to(row, at)].last().copied(),
            Self::Tree(tree) => tree.range(..=at).next_back().map(|(start, end)| (*start, *end)),
        }
    }

    /// The ranges that start behind `at`, ascending.
    #[inline]
    pub(super) fn behind(&self, at: u64) -> impl Iterator<Item = Ends> + '_ {
        let (row, tree) = match self {
            Self::Row(row) => (&row[up_to(row, at)..], None),
            Self::Tree(tree) => (&[][..], Some(tree.range((Bound::Excluded(at), Bound::Unbounded)))),
        };
        row.iter().copied().chain(tree.into_iter().flatten().map(|(start, end)| (*start, *end)))
    }

    /// The first range that starts behind `at`.
    #[inline]
    pub(super) fn first_behind(&self, at: u64) -> Option<Ends> {
        match self {
            Self::Row(row) => row.get(up_to(row, at)).copied(),
            Self::Tree(tree) => tree.range((Bound::Excluded(at), Bound::Unbounded)).next().map(|(start, end)| (*start, *end)),
        }
    }

    /// The first range that starts in `range`.
    #[inline]
    pub(super) fn first_in(&self, range: Range<u64>) -> Option<Ends> {
        match self {
            Self::Row(row) => {
                let at = range.start.checked_sub(1).map_or(0, |before| up_to(row, before));
                row.get(at).copied().filter(|found| found.0 < range.end)
            }
            Self::Tree(tree) => tree.range(range).next().map(|(start, end)| (*start, *end)),
        }
    }

    /// Adds a range behind all others.
    #[inline]
    pub(super) fn push(&mut self, start: u64, end: u64) {
        debug_assert!(self.last().is_none_or(|last| last.1 < start), "a range is added that is not behind the others");
        match self {
            Self::Row(row) if row.len() < ROW_MAX => row.push((start, end)),
            _ => self.put(start, end),
        }
    }

    /// The range that starts at `start` ends at `end`; it is a new one where none did.
    #[inline]
    pub(super) fn put(&mut self, start: u64, end: u64) {
        match self {
            Self::Row(row) => {
                let at = up_to(row, start);
                match at.checked_sub(1).map(|before| &mut row[before]).filter(|before| before.0 == start) {
                    Some(here) => here.1 = end,
                    None => row.insert(at, (start, end)),
                }
                if row.len() > ROW_MAX {
                    *self = Self::Tree(core::mem::take(row).into_iter().collect());
                }
            }
            Self::Tree(tree) => {
                tree.insert(start, end);
            }
        }
    }

    /// Takes the range out that starts at `start`.
    #[inline]
    pub(super) fn take(&mut self, start: u64) {
        match self {
            Self::Row(row) => {
                if let Some(at) = up_to(row, start).checked_sub(1).filter(|at| row[*at].0 == start) {
                    row.remove(at);
                    if row.is_empty() {
                        row.shrink_to(KEPT_EMPTY);
                    }
                }
            }
            Self::Tree(tree) => {
                tree.remove(&start);
                if tree.len() <= ROW_AGAIN {
                    *self = Self::Row(core::mem::take(tree).into_iter().collect());
                }
            }
        }
    }

    /// Takes all out; a row keeps its memory, for those that come next.
    pub(super) fn clear(&mut self) {
        match self {
            Self::Row(row) => row.clear(),
            Self::Tree(_) => *self = Self::default(),
        }
    }

    /// All of them, ascending.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = Ends> + '_ {
        let (row, tree) = match self {
            Self::Row(row) => (&row[..], None),
            Self::Tree(tree) => (&[][..], Some(tree)),
        };
        row.iter().copied().chain(tree.into_iter().flatten().map(|(start, end)| (*start, *end)))
    }

    /// The lowest.
    #[inline]
    pub(super) fn first(&self) -> Option<Ends> {
        match self {
            Self::Row(row) => row.first().copied(),
            Self::Tree(tree) => tree.first_key_value().map(|(start, end)| (*start, *end)),
        }
    }

    /// The highest.
    #[inline]
    pub(super) fn last(&self) -> Option<Ends> {
        match self {
            Self::Row(row) => row.last().copied(),
            Self::Tree(tree) => tree.last_key_value().map(|(start, end)| (*start, *end)),
        }
    }

    /// How many.
    #[inline]
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Row(row) => row.len(),
            Self::Tree(tree) => tree.len(),
        }
    }
}
