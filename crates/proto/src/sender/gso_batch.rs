//! GSO batches: one decision for successive data shipments that differ only in the positions of their units.
//!
//! Called by the connection, which has just written a data shipment and has room for more of its size in the same batch.
//!
//! Invariant: the shipments of a GSO batch are those that [`SendHalf::poll_transmit`] would have returned one by one at the same time, with
//! the same numbers. Anything else that is due ends the GSO batch.

use super::SendHalf;
use crate::number::ShipmentCounter;
use segstream_base::Instant;
use segstream_base::endpoint::Deadline;
use segstream_wire::Part;

impl SendHalf {
    /// How many shipments may follow at once, at most `most`, that carry as many units as the one with `parts`, which has
    /// just left: each those behind the one before. They have left when this returns, numbered on from `counter`.
    pub(crate) fn extend_batch(&mut self, now: Instant, counter: &mut ShipmentCounter, parts: &[Part], most: u32) -> u32 {
        let Some((left, body_bytes)) = self.continuations().filter(|_| parts.len() == 1) else { return 0 };
        let (first, mut count) = (counter.peek(), 0);
        while count < most.min(left) && !self.has_more_urgent(now) && self.path.pacer.ready(now) {
            let number = counter.take();
            self.note_data(now, number, body_bytes);
            count += 1;
        }
        if count > 0 {
            self.continue_with(now, first, count);
            self.last_data = Some(first + u64::from(count - 1));
        }
        count
    }

    /// Whether state is due, or what is on its way holds the rest back.
    fn has_more_urgent(&self, now: Instant) -> bool {
        let due = |deadline: Option<Deadline>| deadline.is_some_and(|deadline| deadline.at <= now);
        due(self.state_due()) || due(self.exchange_due()) || self.in_flight_cap_reached()
    }
}
