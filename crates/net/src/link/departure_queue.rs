//! The timer queue of one direction: its datagrams in the order of their departures.
//!
//! Called by the relay. Departures are almost always added in order; then each costs a push to a ring and a pop. One that is due
//! before the last of the ring goes to a heap.
//!
//! Invariant: departures are returned by due time, ties in the order of insertion.

use super::packet_buffers::Slot;
use segstream_base::Instant;
use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

/// A datagram that waits for its due time, with the metadata `N` that the relay needs to send it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Departure<N> {
    pub(super) due: Instant,
    pub(super) slot: Slot,
    pub(super) meta: N,
}

#[derive(Clone, Copy, Debug)]
struct Queued<N> {
    departure: Departure<N>,
    sequence: u64,
}

/// The departures of one direction.
#[derive(Debug)]
pub(super) struct DepartureQueue<N> {
    ring: VecDeque<Queued<N>>,
    out_of_order: BinaryHeap<Reverse<Queued<N>>>,
    pushed: u64,
}

impl<N> DepartureQueue<N> {
    /// None yet.
    pub(super) fn new() -> Self {
        Self { ring: VecDeque::new(), out_of_order: BinaryHeap::new(), pushed: 0 }
    }

    pub(super) fn push(&mut self, departure: Departure<N>) {
        let queued = Queued { departure, sequence: self.pushed };
        self.pushed += 1;
        if self.ring.back().is_none_or(|last| last.departure.due <= queued.departure.due) {
            self.ring.push_back(queued);
        } else {
            self.out_of_order.push(Reverse(queued));
        }
    }

    /// The next to leave.
    pub(super) fn first(&self) -> Option<&Departure<N>> {
        match (self.ring.front(), self.out_of_order.peek()) {
            (Some(ring), Some(Reverse(heap))) => Some(&ring.min(heap).departure),
            (ring, heap) => ring.or(heap.map(|Reverse(queued)| queued)).map(|queued| &queued.departure),
        }
    }

    /// Takes the next to leave.
    pub(super) fn pop(&mut self) -> Option<Departure<N>> {
        let from_heap = match (self.ring.front(), self.out_of_order.peek()) {
            (Some(ring), Some(Reverse(heap))) => heap < ring,
            (ring, _) => ring.is_none(),
        };
        let queued = if from_heap { self.out_of_order.pop().map(|Reverse(queued)| queued) } else { self.ring.pop_front() };
        debug_assert!(queued.as_ref().is_none_or(|queued| self.first().is_none_or(|next| queued.departure.due <= next.due)));
        queued.map(|queued| queued.departure)
    }

    pub(super) fn len(&self) -> usize {
        self.ring.len() + self.out_of_order.len()
    }
}

impl<N> Queued<N> {
    fn key(&self) -> (Instant, u64) {
        (self.departure.due, self.sequence)
    }
}

impl<N> PartialEq for Queued<N> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<N> Eq for Queued<N> {}

impl<N> PartialOrd for Queued<N> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<N> Ord for Queued<N> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

#[cfg(test)]
mod tests {
    use super::super::packet_buffers::PacketBuffers;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn departures_come_out_by_time_and_ties_by_arrival(
            steps in proptest::collection::vec((0u64..50, any::<bool>()), 1..200),
        ) {
            let slot = PacketBuffers::default().keep(&[1]).unwrap();
            let mut departures = DepartureQueue::new();
            let mut model: Vec<(u64, u64)> = Vec::new();
            for (number, (due, pops)) in (0u64..).zip(steps) {
                departures.push(Departure { due: Instant::from_nanos(due), slot, meta: number });
                model.push((due, number));
                model.sort_unstable();
                prop_assert_eq!(departures.first().map(|d| (d.due.as_nanos(), d.meta)), model.first().copied());
                if pops {
                    let popped = departures.pop().map(|d| (d.due.as_nanos(), d.meta));
                    prop_assert_eq!(popped, Some(model.remove(0)));
                }
                prop_assert_eq!(departures.len(), model.len());
            }
        }
    }
}
