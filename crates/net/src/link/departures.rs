//! What leaves when: the datagrams of one direction in the order of their departures.
//!
//! Called by the relay. Departures come almost always in order and then cost a ring's push and pop; one that
//! is due before the last of the ring goes to a heap.
//!
//! Invariant: departures are handed out by their due time, ties in the order they came in.

use super::clients::ClientId;
use super::store::Slot;
use segstream_base::Instant;
use segstream_base::endpoint::Ecn;
use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

/// A datagram that waits for its time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Departure {
    pub(super) due: Instant,
    pub(super) client: ClientId,
    pub(super) slot: Slot,
    pub(super) ecn: Option<Ecn>,
}

#[derive(Clone, Copy, Debug)]
struct Queued {
    departure: Departure,
    sequence: u64,
}

/// The departures of one direction.
#[derive(Debug, Default)]
pub(super) struct Departures {
    ring: VecDeque<Queued>,
    out_of_order: BinaryHeap<Reverse<Queued>>,
    pushed: u64,
}

impl Departures {
    pub(super) fn push(&mut self, departure: Departure) {
        let queued = Queued { departure, sequence: self.pushed };
        self.pushed += 1;
        if self.ring.back().is_none_or(|last| last.departure.due <= departure.due) {
            self.ring.push_back(queued);
        } else {
            self.out_of_order.push(Reverse(queued));
        }
    }

    /// The next to leave.
    pub(super) fn first(&self) -> Option<&Departure> {
        match (self.ring.front(), self.out_of_order.peek()) {
            (Some(ring), Some(Reverse(heap))) => Some(&ring.min(heap).departure),
            (ring, heap) => ring.or(heap.map(|Reverse(queued)| queued)).map(|queued| &queued.departure),
        }
    }

    /// Takes the next to leave.
    pub(super) fn pop(&mut self) -> Option<Departure> {
        let from_heap = match (self.ring.front(), self.out_of_order.peek()) {
            (Some(ring), Some(Reverse(heap))) => heap < ring,
            (ring, _) => ring.is_none(),
        };
        let queued = if from_heap { self.out_of_order.pop().map(|Reverse(queued)| queued) } else { self.ring.pop_front() };
        queued.map(|queued| queued.departure)
    }

    pub(super) fn len(&self) -> usize {
        self.ring.len() + self.out_of_order.len()
    }
}

impl Queued {
    fn key(&self) -> (Instant, u64) {
        (self.departure.due, self.sequence)
    }
}

impl PartialEq for Queued {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Queued {}

impl PartialOrd for Queued {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Queued {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

#[cfg(test)]
mod tests {
    use super::super::store::Store;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn departures_come_out_by_time_and_ties_by_arrival(
            steps in proptest::collection::vec((0u64..50, any::<bool>()), 1..200),
        ) {
            let slot = Store::default().keep(&[1]).unwrap();
            let mut departures = Departures::default();
            let mut model: Vec<(u64, u64)> = Vec::new();
            for (client, (due, pops)) in (0u64..).zip(steps) {
                departures.push(Departure { due: Instant::from_nanos(due), client: ClientId(client), slot, ecn: None });
                model.push((due, client));
                model.sort_unstable();
                prop_assert_eq!(departures.first().map(|d| (d.due.as_nanos(), d.client.0)), model.first().copied());
                if pops {
                    let popped = departures.pop().map(|d| (d.due.as_nanos(), d.client.0));
                    prop_assert_eq!(popped, Some(model.remove(0)));
                }
                prop_assert_eq!(departures.len(), model.len());
            }
        }
    }
}
