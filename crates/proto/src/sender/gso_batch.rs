//! GSO batches: one decision for successive data shipments that differ only in the positions of their units.
//!
//! Called by the connection, which has just written a data shipment and has room for more of its size in the same batch. At high rates most
//! shipments carry new units in the middle of a long segment, which need no separate decisions.
//!
//! Invariant: the shipments of a GSO batch are those that [`SendHalf::poll_transmit`] would have returned one by one at the same time, with
//! the same numbers. Anything else that is due ends the GSO batch.

use super::SendHalf;
use super::segment::SendSegment;
use crate::number::ShipmentCounter;
use segstream_base::codec::varint_len;
use segstream_base::endpoint::Deadline;
use segstream_base::{Instant, Position, ShipmentNumber};
use segstream_wire::Part;

impl SendHalf {
    /// How many shipments may follow at once, at most `most`, that carry as many units as the one with `parts`, which has
    /// just left: each those behind the one before. They have left when this returns, numbered on from `counter`.
    pub(crate) fn extend_batch(&mut self, now: Instant, counter: &mut ShipmentCounter, parts: &[Part], most: u32) -> u32 {
        let &[part] = parts else { return 0 };
        // Why one stream: with several each shipment may be another one's turn.
        if part.retransmission || part.first == Position::FIRST || self.stream_counts.retransmit > 0 || self.streams.len() != 1 {
            return 0;
        }
        let current = self.streams[0].segments.get(part.segment).filter(|_| self.streams[0].current == part.segment);
        let most = current.map_or(0, |segment| most.min(alike(segment, &part)));
        let (first, mut count) = (counter.peek(), 0);
        while count < most && !self.has_more_urgent(now) && self.path.pacer.ready(now) {
            let number = counter.take();
            self.note_data(now, number, part.encoded_len());
            count += 1;
        }
        if count > 0 {
            debug_assert_eq!(
                Part { first: part.first + part.count * count, ..part }.encoded_len(),
                part.encoded_len(),
                "not all are alike"
            );
            self.note_batch(now, &part, first, count);
        }
        count
    }

    /// Whether state is due, or what is on its way holds the rest back.
    fn has_more_urgent(&self, now: Instant) -> bool {
        let due = |deadline: Option<Deadline>| deadline.is_some_and(|deadline| deadline.at <= now);
        due(self.state_due()) || due(self.exchange_due()) || self.in_flight_cap_reached()
    }

    /// Notes that `count` shipments like that of `part` have left behind it, numbered from `first` on.
    fn note_batch(&mut self, now: Instant, part: &Part, first: ShipmentNumber, count: u32) {
        let units = part.count * count;
        if let Some(segment) = self.streams[0].segments.get_mut(part.segment) {
            for number in first.onward().take(count as usize) {
                segment.on_sent(now, segment.sent.next, part.count, number);
            }
        }
        let stream = &mut self.streams[0];
        stream.credit = stream.credit.saturating_sub(part.encoded_len() as u64 * u64::from(count));
        stream.counters.units_sent += u64::from(units);
        self.last_data = Some(first + u64::from(count - 1));
        self.counters.units_sent += u64::from(units);
        self.counters.payload_bytes += u64::from(part.payload_bytes) * u64::from(count);
    }
}

/// How many shipments behind that of `part` look like it: full units with a full one behind them, and headers of the
/// same length.
fn alike(segment: &SendSegment, part: &Part) -> u32 {
    let Some(units) = segment.layout.units else { return 0 };
    if segment.skipped || segment.sent.next != part.end() || part.payload_bytes != part.count * segment.layout.unit_bytes {
        return 0;
    }
    // Why: interleaved, the short last unit may be anywhere in sending order.
    if !segment.layout.order.is_in_order() {
        return 0;
    }
    let end = match varint_len(u64::from(part.first)) {
        1 => 1 << 6,
        2 => 1 << 14,
        4 => 1 << 30,
        _ => return 0,
    };
    // Why all but two: the last may be so short that it fits in beside those before it.
    let left = units.saturating_sub(2).saturating_sub(segment.sent.next.0) / part.count;
    let same_length = u32::div_ceil(end - part.first.0, part.count) - 1;
    left.min(same_length)
}
