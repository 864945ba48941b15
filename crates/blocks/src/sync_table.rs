//! The table of sent packets and the state exchange each is bound to, with two ways to search it (HT 4, HT Fig 6).
//!
//! Called by HTPNET's state process: with the numbers sent since the last exchange, and with each echoed exchange.
//!
//! - [`Search::Fifo`]: entries lie in the order of sending, so exchange numbers never fall along the table. A search takes
//!   entries from the tail while they are bound to the echoed exchange or an earlier one: it costs one group.
//! - [`Search::Exhaustive`]: entries lie in the slots of a window, and a search looks at every slot, empty ones too: what
//!   HT Fig 11 compares with.
//!
//! Invariant: both searches give the same entries in the same order, that of sending.

use core::fmt;
use core::str::FromStr;
use std::collections::VecDeque;

/// How the table is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Search {
    /// From the tail, while entries are bound to what was echoed.
    #[default]
    Fifo,
    /// Every slot of the window.
    Exhaustive,
}

impl Search {
    /// Both ways, the default first.
    pub const ALL: [Self; 2] = [Self::Fifo, Self::Exhaustive];

    /// The name: `fifo` or `exhaustive`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fifo => "fifo",
            Self::Exhaustive => "exhaustive",
        }
    }
}

impl fmt::Display for Search {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A text that names no search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownSearch(String);

impl fmt::Display for UnknownSearch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\" is no way to search; write fifo or exhaustive", self.0)
    }
}

impl core::error::Error for UnknownSearch {}

impl FromStr for Search {
    type Err = UnknownSearch;

    fn from_str(text: &str) -> Result<Self, UnknownSearch> {
        Self::ALL.into_iter().find(|search| search.name() == text).ok_or_else(|| UnknownSearch(text.to_owned()))
    }
}

/// What a search does with an entry it looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// The packet has arrived: the entry goes.
    Arrived,
    /// The packet is lost: the entry goes, and its number is told.
    Lost,
    /// Not known yet: the entry stays for the next exchange.
    Unknown,
}

/// A sent packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    sync: u64,
    seq: u64,
    /// Its place in the order of sending.
    order: u64,
}

/// The table.
#[derive(Clone, Debug)]
pub struct SyncTable {
    search: Search,
    /// FIFO: the entries, oldest first.
    queue: VecDeque<Entry>,
    /// Exhaustive: the slots of the window.
    slots: Vec<Option<Entry>>,
    /// Slots that are empty.
    free: Vec<usize>,
    appended: u64,
    searched: u64,
    /// Entries of the running search: those that stay, or those that are lost. Kept for its room.
    scratch: Vec<Entry>,
}

impl SyncTable {
    /// An empty table for `window` packets in flight; it grows should there be more.
    pub fn new(search: Search, window: usize) -> Self {
        let slots = if search == Search::Exhaustive { window } else { 0 };
        Self {
            search,
            queue: VecDeque::new(),
            slots: vec![None; slots],
            free: (0..slots).rev().collect(),
            appended: 0,
            searched: 0,
            scratch: Vec::new(),
        }
    }

    /// Packet `seq` was sent and is bound to exchange `sync`, not before that of any earlier entry.
    #[inline]
    pub fn append(&mut self, sync: u64, seq: u64) {
        let entry = Entry { sync, seq, order: self.appended };
        self.appended += 1;
        match self.search {
            Search::Fifo => {
                debug_assert!(self.queue.back().is_none_or(|last| last.sync <= sync), "an exchange before that of an earlier entry");
                self.queue.push_back(entry);
            }
            Search::Exhaustive => match self.free.pop() {
                Some(slot) => self.slots[slot] = Some(entry),
                None => self.slots.push(Some(entry)),
            },
        }
    }

    /// Exchange `echoed` has come back: every entry bound to it or to an earlier one is judged, and the numbers of those
    /// that are lost are appended to `lost` in the order of sending.
    ///
    /// The exhaustive search also asks about later entries and drops those that have arrived, which cannot be seen outside.
    pub fn search(&mut self, echoed: u64, judge: impl FnMut(u64) -> Judgement, lost: &mut Vec<u64>) {
        self.scratch.clear();
        match self.search {
            Search::Fifo => self.search_tail(echoed, judge, lost),
            Search::Exhaustive => self.search_all(echoed, judge, lost),
        }
    }

    fn search_tail(&mut self, echoed: u64, mut judge: impl FnMut(u64) -> Judgement, lost: &mut Vec<u64>) {
        while let Some(entry) = self.queue.front().copied().filter(|entry| entry.sync <= echoed) {
            self.queue.pop_front();
            self.searched += 1;
            match judge(entry.seq) {
                Judgement::Arrived => {}
                Judgement::Lost => lost.push(entry.seq),
                Judgement::Unknown => self.scratch.push(entry),
            }
        }
        while let Some(entry) = self.scratch.pop() {
            self.queue.push_front(entry);
        }
    }

    fn search_all(&mut self, echoed: u64, mut judge: impl FnMut(u64) -> Judgement, lost: &mut Vec<u64>) {
        for (index, slot) in self.slots.iter_mut().enumerate() {
            self.searched += 1;
            let Some(entry) = *slot else { continue };
            match judge(entry.seq) {
                Judgement::Arrived => {}
                Judgement::Lost if entry.sync <= echoed => self.scratch.push(entry),
                _ => continue,
            }
            *slot = None;
            self.free.push(index);
        }
        self.scratch.sort_unstable_by_key(|entry| entry.order);
        lost.extend(self.scratch.iter().map(|entry| entry.seq));
    }

    /// Entries, or with an exhaustive search slots, that all searches together have looked at.
    pub const fn searched(&self) -> u64 {
        self.searched
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        match self.search {
            Search::Fifo => self.queue.len(),
            Search::Exhaustive => self.slots.len() - self.free.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A table with three packets bound to each of the exchanges 0 to 2.
    fn table(search: Search) -> SyncTable {
        let mut table = SyncTable::new(search, 16);
        for seq in 0..9 {
            table.append(seq / 3, seq);
        }
        table
    }

    #[test]
    fn a_fifo_search_costs_one_group_and_an_exhaustive_one_the_window() {
        for (search, cost) in [(Search::Fifo, 3), (Search::Exhaustive, 16)] {
            let mut table = table(search);
            let mut lost = Vec::new();
            table.search(0, |seq| if seq == 1 { Judgement::Lost } else { Judgement::Arrived }, &mut lost);
            assert_eq!((table.searched(), lost), (cost, vec![1]));
        }
    }

    #[test]
    fn what_is_not_known_is_asked_for_again_in_its_old_place() {
        let mut table = table(Search::Fifo);
        let mut lost = Vec::new();
        table.search(0, |seq| if seq == 0 { Judgement::Lost } else { Judgement::Unknown }, &mut lost);
        assert_eq!((table.len(), table.searched()), (8, 3));
        table.search(1, |_| Judgement::Lost, &mut lost);
        assert_eq!((lost, table.searched(), table.len()), (vec![0, 1, 2, 3, 4, 5], 8, 3));
        assert!(!table.is_empty());
    }

    proptest! {
        #[test]
        fn both_searches_give_the_same_in_the_same_order(
            groups in prop::collection::vec((0usize..12, any::<u16>(), any::<u16>()), 1..30),
        ) {
            let mut tables = [SyncTable::new(Search::Fifo, 4), SyncTable::new(Search::Exhaustive, 4)];
            let mut next = 0u64;
            let mut here = Vec::new();
            let mut resend = Vec::new();
            for (sync, (fresh, arrived, unknown)) in (0u64..).zip(groups) {
                let sent: Vec<u64> = resend.drain(..).chain(next..next + fresh as u64).collect();
                next += fresh as u64;
                // What has arrived stays.
                here.resize(next as usize, false);
                for (seq, here) in here.iter_mut().enumerate() {
                    *here |= arrived >> (seq % 16) & 1 == 1;
                }
                let mut told = [Vec::new(), Vec::new()];
                for (table, lost) in tables.iter_mut().zip(&mut told) {
                    sent.iter().for_each(|seq| table.append(sync, *seq));
                    let judge = |seq: u64| match seq % 16 {
                        _ if here[seq as usize] => Judgement::Arrived,
                        bit if unknown >> bit & 1 == 1 => Judgement::Unknown,
                        _ => Judgement::Lost,
                    };
                    table.search(sync.saturating_sub(1), judge, lost);
                }
                prop_assert_eq!(&told[0], &told[1]);
                resend.append(&mut told[0]);
            }
        }
    }
}
