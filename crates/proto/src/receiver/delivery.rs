//! What the application takes: judged segments in the contract's order, and the room that they leave.
//!
//! Called by the connection.
//!
//! Invariant: a segment keeps its room in the window until it is released.

use super::{Delivery, RecvHalf};
use segstream_base::{Instant, SegmentNumber, StreamId};

impl RecvHalf {
    /// The next segment of `stream` that is judged, in the contract's order. Its room in the window stays
    /// taken until [`RecvHalf::release`].
    pub fn poll_delivery(&mut self, id: StreamId) -> Option<Delivery> {
        let stream = self.streams.get_mut(id)?;
        let number = stream.next_delivery()?;
        let segment = stream.segments.get(number)?;
        Some(Delivery {
            stream: id,
            segment: number,
            verdict: segment.judgement.verdict?,
            units: segment.extent(),
            length: segment.layout.length.unwrap_or(u64::from(segment.extent()) * u64::from(segment.layout.unit_bytes)),
            holes: segment.judgement.holes.clone(),
            source_time: segment.source_time,
            first_arrival: segment.first_arrival,
            judged_at: segment.judgement.judged_at,
        })
    }

    /// The application has taken `segment`: its units are free for new ones.
    pub fn release(&mut self, now: Instant, id: StreamId, segment: SegmentNumber) {
        let Some(stream) = self.streams.get_mut(id) else { return };
        stream.release(segment);
        if stream.segments.is_retiring() {
            self.unfinished.retire(id);
        }
        let window = &stream.room.window;
        if window.wants_report() && self.reports.schedule.window_update_lead().is_none_or(|lead| stream.is_near_edge(now, lead)) {
            self.reports.schedule.report_now(now);
        } else if stream.sender_waits {
            self.reports.schedule.report_delayed(now);
        } else if self.reports.schedule.exhausts_window_within(window.size().1, 2) {
            // The sender comes to the edge of the window before it hears of it: every segment counts.
            self.reports.schedule.report_now_within_budget(now);
        }
    }

    /// Tells once that everything of a finished stream has been handed over, and how many segments it had.
    pub fn poll_ended(&mut self, now: Instant, id: StreamId) -> Option<u64> {
        let stream = self.streams.get_mut(id)?;
        if stream.end.told || !stream.is_drained() {
            return None;
        }
        stream.end.told = true;
        let end = stream.end.at;
        self.retire_ended(now);
        end.map(|end| end.0)
    }
}
