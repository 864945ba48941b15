//! The event queue of the model of processors.
//!
//! Called by [`super::StageModel`].
//!
//! Invariant: events come in the order of their instants; at one instant in the order in which they were put.

use segstream_base::Instant;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// An event.
#[derive(Debug)]
pub(super) enum Event<M> {
    /// A message from outside is with a stage.
    Arrival { to: usize, message: M },
    /// A message has passed a link.
    Passed { stage: usize, message: M },
    /// A processor has ended a service.
    Served { processor: usize },
    /// A timer may be due.
    Timer { stage: usize },
}

#[derive(Debug)]
struct Entry<M> {
    at: Instant,
    number: u64,
    event: Event<M>,
}

/// The events to come.
#[derive(Debug)]
pub(super) struct EventQueue<M> {
    entries: BinaryHeap<Reverse<Entry<M>>>,
    number: u64,
}

impl<M> EventQueue<M> {
    pub(super) const fn new() -> Self {
        Self { entries: BinaryHeap::new(), number: 0 }
    }

    /// Puts `event` at `at`.
    pub(super) fn put(&mut self, at: Instant, event: Event<M>) {
        self.entries.push(Reverse(Entry { at, number: self.number, event }));
        self.number += 1;
    }

    /// The next event, if it happens until `until`.
    pub(super) fn take(&mut self, until: Instant) -> Option<(Instant, Event<M>)> {
        if self.entries.peek()?.0.at > until {
            return None;
        }
        self.entries.pop().map(|Reverse(entry)| (entry.at, entry.event))
    }
}

impl<M> Entry<M> {
    const fn key(&self) -> (Instant, u64) {
        (self.at, self.number)
    }
}

impl<M> Ord for Entry<M> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl<M> PartialOrd for Entry<M> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<M> PartialEq for Entry<M> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<M> Eq for Entry<M> {}
