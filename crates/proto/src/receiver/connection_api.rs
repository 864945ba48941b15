//! The connection's interface of the receiving half: settings and queries.
//!
//! Called by the connection. Invariant: nothing here decides what is accepted.

use super::stream::RecvStream;
use super::{RecvHalf, SegmentTimes};
use crate::layout::Layout;
use crate::trace::SegmentJudged;
use segstream_base::{Instant, Position, Run, ShipmentNumber, StreamId};
use segstream_blocks::Histogram;
use segstream_wire::Part;
use smallvec::SmallVec;

impl RecvHalf {
    /// Reports carry at most so many bytes of frames from now on.
    pub fn set_body_bytes(&mut self, bytes: usize) {
        self.config.body_bytes = bytes;
    }

    /// The first shipment that counts is `number`, at most 64: those before it were not for this half.
    pub fn begin_at(&mut self, number: ShipmentNumber) {
        if self.arrivals.detector.highest().is_none() {
            for earlier in 0..number.0.min(64) {
                self.arrivals.detector.on_arrival(earlier);
            }
        }
    }

    /// The peer has migrated to another host: how its shipments are reordered and what reports measured was another path's.
    pub(crate) fn on_path_change(&mut self, now: Instant) {
        self.arrivals.detector.reset_reorder();
        self.reports.schedule.on_path_change(now);
    }

    /// The highest shipment number received.
    pub fn highest_shipment(&self) -> Option<ShipmentNumber> {
        self.arrivals.detector.highest().map(ShipmentNumber)
    }

    /// The reordering threshold in force.
    pub fn reorder(&self) -> u32 {
        self.arrivals.detector.reorder()
    }

    /// Shipments declared lost so far, including those that came late.
    pub fn shipments_lost(&self) -> u64 {
        self.arrivals.detector.newly_lost()
    }

    /// In how many runs of consecutive numbers they were.
    pub fn shipment_runs_lost(&self) -> u64 {
        self.arrivals.detector.lost_runs()
    }

    /// How long those of the runs were that have ended.
    pub fn lost_run_lengths(&self) -> &Histogram {
        self.arrivals.detector.run_lengths()
    }

    /// The connection has ended: a run of lost shipments does not go on.
    pub(crate) fn end_lost_run(&mut self) {
        self.arrivals.detector.end_run();
    }

    /// How long segments took.
    pub const fn segment_times(&self) -> &SegmentTimes {
        &self.judging.times
    }

    /// Shipments that came behind a higher number.
    pub fn shipments_late(&self) -> u64 {
        self.arrivals.detector.late_total()
    }

    /// Logs verdicts from now on, for the trace of the connection.
    pub(crate) fn log_verdicts(&mut self) {
        self.judging.log.switch_on();
    }

    /// Takes the verdicts that were logged.
    pub(crate) fn take_logged_verdicts(&mut self) -> Vec<SegmentJudged> {
        self.judging.log.take()
    }

    /// The memory that streams and their segments take, in bytes, without payload. Looks at every segment: for tests.
    pub fn kept_bytes(&self) -> u64 {
        let streams: u64 = self.streams.iter().map(|stream| size_of::<RecvStream>() as u64 + stream.kept_bytes()).sum();
        streams + self.arrivals.frontier.kept_bytes() + self.reports.verdicts.kept_bytes() + self.unfinished.kept_bytes()
    }

    /// Whether a segment of `stream` can be taken.
    pub fn has_delivery(&self, stream: StreamId) -> bool {
        self.streams.get(stream).is_some_and(RecvStream::has_delivery)
    }

    /// Whether parts that continue `part` may be put together with it: nothing is missing between it and what came before, and each of
    /// them changes no more than they do together.
    #[inline]
    pub(crate) fn may_begin_run(&self, part: &Part) -> bool {
        let Some(stream) = self.streams.get(part.stream) else { return false };
        let Some(segment) = stream.segments.get(part.segment) else { return false };
        // Why: behind a gap the first part declares what is lost in it, as soon as R more have arrived, which may be at once. And of what
        // comes late or is due, each unit may be the one that makes the segment good enough.
        let next = stream.progress.goes_on_at((part.segment, part.first));
        // Why: with each unit the repair units that are held may restore others, before the last one has the segment judged.
        next && segment.code.is_none()
    }

    /// Whether the parts of so many `shipments`, put together in `part`, can be taken at once as they would be one by one:
    /// their segment has room for them, and each payload is as long as it must be. More than one have begun as
    /// [`Self::may_begin_run`] says.
    #[inline]
    pub(crate) fn is_ready_for(&self, part: &Part, shipments: usize) -> bool {
        let Some(stream) = self.streams.get(part.stream) else { return false };
        let Some(segment) = stream.segments.get(part.segment) else { return false };
        // Why whole ones in a run: of a sum that holds a short last unit, others could lack what it lacks.
        let whole_bytes = u64::from(part.count) * u64::from(segment.layout.unit_bytes);
        let whole = shipments == 1 || whole_bytes == u64::from(part.payload_bytes);
        // Why: what is longer cannot be the payload of one part, and might overflow.
        let within = whole_bytes <= u64::from(u32::MAX);
        let fits = segment.has_room_for(part.length, part.end());
        whole && within && fits && segment.layout.payload_bytes(part.first, part.count) == part.payload_bytes
    }

    /// The positions of a part that are missing.
    pub(crate) fn missing_of(&self, part: &Part) -> SmallVec<[Run<Position>; 4]> {
        let Some(segment) = self.streams.get(part.stream).and_then(|stream| stream.segments.get(part.segment)) else {
            return part.positions().into_iter().collect();
        };
        let known = Position(segment.presence.positions.len()).min(part.end());
        let here = segment.presence.positions.zero_runs(part.first.min(known), known);
        here.chain(Run::new(part.first.max(known), part.end())).collect()
    }

    /// The payload a part must have by the contract and its segment's length; `None` when the stream is
    /// not known or the part contradicts itself.
    #[inline]
    pub fn payload_bytes(&self, part: &Part) -> Option<u32> {
        let stream = self.streams.get(part.stream)?;
        let known = stream.segments.get(part.segment).filter(|segment| segment.known && segment.layout.length == part.length);
        let first_seen;
        let layout = match known {
            Some(segment) => &segment.layout,
            None => {
                let promise = part.tolerance.unwrap_or(stream.contract.tolerance);
                first_seen = Layout::new(&stream.contract, promise, part.opened, part.length);
                &first_seen
            }
        };
        let inside = layout.units.is_none_or(|units| part.first.0.checked_add(part.count).is_some_and(|end| end <= units));
        // Limit: a part's payload has at most 65,535 bytes, so the product cannot overflow.
        (inside && u64::from(part.count) * u64::from(layout.unit_bytes) <= 1 << 17).then(|| layout.payload_bytes(part.first, part.count))
    }
}
