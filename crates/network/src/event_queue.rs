//! The event queue of the network, earliest first.
//!
//! Called by [`crate::Network`] and, through [`crate::Parts`], by applications that do something at a time of their own.
//!
//! Invariant: events of the same instant happen in the order in which they were scheduled, so the same seed gives the
//! same run.

use crate::fault::Fault;
use core::cmp::Reverse;
use core::net::SocketAddr;
use segstream_base::Instant;
use segstream_base::endpoint::Ecn;
use std::collections::BinaryHeap;

/// A datagram between its departure and its arrival.
#[derive(Debug)]
pub(crate) struct Flight {
    /// Its source address, as routers see it.
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
    pub(crate) ecn: Option<Ecn>,
    pub(crate) bytes: Vec<u8>,
}

/// An event. Timers of endpoints are not events: their deadlines are asked for.
#[derive(Debug)]
pub(crate) enum Due<T> {
    Arrive(Flight),
    Fault(Fault),
    Task(T),
}

/// The events to come: arrivals of datagrams in flight, faults, and the application's own tasks.
#[derive(Debug)]
pub struct EventQueue<T> {
    /// When, in which order, and where it is kept.
    heap: BinaryHeap<Reverse<(Instant, u64, usize)>>,
    kept: Vec<Option<Due<T>>>,
    free: Vec<usize>,
    planned: u64,
}

impl<T> EventQueue<T> {
    pub(crate) const fn new() -> Self {
        Self { heap: BinaryHeap::new(), kept: Vec::new(), free: Vec::new(), planned: 0 }
    }

    /// Schedules a task of the application for `at`, on the network's clock; at once when `at` is in the past.
    /// [`crate::Network::step`] gives it back as [`crate::Step::Task`].
    pub fn schedule(&mut self, at: Instant, task: T) {
        self.schedule_due(at, Due::Task(task));
    }

    pub(crate) fn schedule_due(&mut self, at: Instant, due: Due<T>) {
        let slot = if let Some(slot) = self.free.pop() {
            self.kept[slot] = Some(due);
            slot
        } else {
            self.kept.push(Some(due));
            self.kept.len() - 1
        };
        self.planned += 1;
        self.heap.push(Reverse((at, self.planned, slot)));
    }

    /// When the next entry is due.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|entry| entry.0.0)
    }

    /// The next entry that is due at `now`.
    pub(crate) fn due(&mut self, now: Instant) -> Option<Due<T>> {
        if self.next()? > now {
            return None;
        }
        let Reverse((_, _, slot)) = self.heap.pop()?;
        self.free.push(slot);
        self.kept[slot].take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_times_keep_the_order_in_which_they_were_planned() {
        let mut event_queue = EventQueue::new();
        for number in 0..5 {
            event_queue.schedule(Instant::from_nanos(7), number);
        }
        event_queue.schedule(Instant::from_nanos(3), 9);
        assert!(event_queue.due(Instant::from_nanos(2)).is_none());
        let mut order = Vec::new();
        while let Some(Due::Task(number)) = event_queue.due(Instant::from_nanos(7)) {
            order.push(number);
        }
        assert_eq!(order, [9, 0, 1, 2, 3, 4]);
        event_queue.schedule(Instant::from_nanos(8), 5);
        assert_eq!(event_queue.kept.len(), 6, "a place is used again");
    }
}
