//! What a connection tells the receiving half of its surroundings, and what it may look at.
//!
//! Called by the connection. Invariant: nothing here decides what is accepted.

use super::RecvHalf;
use super::stream::{About, RecvStream};
use crate::layout::Layout;
use segstream_base::{Instant, ShipmentNumber, StreamId};
use segstream_wire::Part;

impl RecvHalf {
    /// Reports carry at most so many bytes of frames from now on.
    pub fn set_body_bytes(&mut self, bytes: usize) {
        self.config.body_bytes = bytes;
    }

    /// The first shipment that counts is `number`, at most 64: those before it were not for this half.
    pub fn begin_at(&mut self, number: ShipmentNumber) {
        if self.detector.highest().is_none() {
            for earlier in 0..number.0.min(64) {
                self.detector.on_arrival(earlier);
            }
        }
    }

    /// The peer has migrated to another host: how its shipments are reordered and what reports measured was another path's.
    pub(crate) fn on_path_change(&mut self, now: Instant) {
        self.detector.reset_reorder();
        self.reports.schedule.on_path_change(now);
    }

    /// The highest shipment number received.
    pub fn highest_shipment(&self) -> Option<ShipmentNumber> {
        self.detector.highest().map(ShipmentNumber)
    }

    /// The re-sequencing distance in force.
    pub fn reorder(&self) -> u32 {
        self.detector.reorder()
    }

    /// Shipments held lost so far, including those that came late.
    pub fn shipments_lost(&self) -> u64 {
        self.detector.newly_lost()
    }

    /// Shipments that came behind a higher number.
    pub fn shipments_late(&self) -> u64 {
        self.detector.late_total()
    }

    /// Whether a segment of `stream` can be taken.
    pub fn has_delivery(&self, stream: StreamId) -> bool {
        self.streams.get(stream).is_some_and(RecvStream::has_delivery)
    }

    /// Whether the parts of so many `shipments`, put together in `part`, can be taken at once as they would be one by one:
    /// their segment has room for them and is not good enough before the last of them, and each payload is as long as it must be.
    #[inline]
    pub(crate) fn is_ready_for(&self, part: &Part, shipments: usize) -> bool {
        let Some(stream) = self.streams.get(part.stream) else { return false };
        let Some(segment) = stream.get(part.segment).filter(|segment| !segment.judged()) else { return false };
        // Why: behind what has arrived or is due, each unit may be the one that makes the segment good enough.
        let in_front = (part.segment, part.first) >= stream.high.max(stream.frontier);
        // Why whole ones in a run: of a sum that holds a short last unit, others could lack what it lacks.
        let whole_bytes = u64::from(part.count) * u64::from(segment.layout.unit_bytes);
        let whole = shipments == 1 || whole_bytes == u64::from(part.payload_bytes);
        // Why: what is longer cannot be the payload of one part, and might overflow.
        let within = whole_bytes <= u64::from(u32::MAX);
        let end = part.first.saturating_add(part.count);
        let fits = segment.has_room_for(part.length, end);
        in_front && whole && within && fits && segment.layout.payload_bytes(part.first, part.count) == part.payload_bytes
    }

    /// The payload a part must have by the contract and its segment's length; `None` when the stream is
    /// not known or the part contradicts itself.
    #[inline]
    pub fn payload_bytes(&self, part: &Part) -> Option<u32> {
        let stream = self.streams.get(part.stream)?;
        let known = stream.get(part.segment).filter(|segment| segment.known && segment.layout.length == part.length);
        let first_seen;
        let layout = match known {
            Some(segment) => &segment.layout,
            None => {
                let about = About { opened: part.opened, length: part.length, own: part.tolerance, source_time: part.source_time };
                let promise = about.own.unwrap_or(stream.contract.tolerance);
                first_seen = Layout::new(&stream.contract, promise, about.opened, about.length);
                &first_seen
            }
        };
        let inside = layout.units.is_none_or(|units| part.first.checked_add(part.count).is_some_and(|end| end <= units));
        // Limit: a part's payload has at most 65,535 bytes, so the product cannot overflow.
        (inside && u64::from(part.count) * u64::from(layout.unit_bytes) <= 1 << 17).then(|| layout.payload_bytes(part.first, part.count))
    }
}
