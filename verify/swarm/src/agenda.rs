//! What is still to happen in the swarm, earliest first.
//!
//! Called by the swarm and by whatever plans something for later. Invariant: what is planned for the same instant
//! happens in the order in which it was planned, so the same seed gives the same run.

use crate::network::Arriving;
use segstream_base::Instant;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Something that happens at a time of its own. What an endpoint wants to do is not here: its deadline says it.
#[derive(Debug)]
pub(crate) enum Task {
    /// A datagram arrives.
    Arrive(Arriving),
    /// An application asks for a connection: number in the plan.
    Connect(usize),
    /// An application goes on with a stream.
    Stream {
        /// Which side.
        side: u32,
        /// Which of its streams, in the order of the plan.
        stream: usize,
    },
    /// An application closes, breaks off or changes something.
    Act {
        /// Which side.
        side: u32,
        /// What it does.
        act: Act,
    },
    /// A fault begins: number in the plan.
    Fault(usize),
    /// The fault is over.
    Mend(usize),
    /// A hostile datagram arrives.
    Attack,
}

/// What an application does besides sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// Asks for a graceful end.
    Close,
    /// Breaks off.
    Abort,
    /// Asks for the next class and rate of its plan.
    Reconfigure,
}

#[derive(Debug)]
struct Entry {
    at: Instant,
    order: u64,
    task: Task,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    /// Reversed: the heap gives the greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

/// What is still to happen.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    heap: BinaryHeap<Entry>,
    planned: u64,
}

impl Agenda {
    /// Plans `task` for `at`.
    pub(crate) fn plan(&mut self, at: Instant, task: Task) {
        self.planned += 1;
        self.heap.push(Entry { at, order: self.planned, task });
    }

    /// When the next task is due.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|entry| entry.at)
    }

    /// The next task that is due at `now`.
    pub(crate) fn due(&mut self, now: Instant) -> Option<Task> {
        if self.next()? > now {
            return None;
        }
        self.heap.pop().map(|entry| entry.task)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_times_keep_the_order_in_which_they_were_planned() {
        let mut agenda = Agenda::default();
        for number in 0..5 {
            agenda.plan(Instant::from_nanos(7), Task::Connect(number));
        }
        agenda.plan(Instant::from_nanos(3), Task::Connect(9));
        assert!(agenda.due(Instant::from_nanos(2)).is_none());
        let mut order = Vec::new();
        while let Some(Task::Connect(number)) = agenda.due(Instant::from_nanos(7)) {
            order.push(number);
        }
        assert_eq!(order, [9, 0, 1, 2, 3, 4]);
    }
}
