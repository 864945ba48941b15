//! What the application hands over: streams, segments, and bytes of open segments.
//!
//! Called by the connection. The bytes themselves are in the store ([`crate::store`]); a half knows lengths.
//!
//! Invariant: what is refused leaves streams and segments as they were; of what there was no room for, an event tells when it can succeed.

use super::SendHalf;
use super::stream::SendStream;
use segstream_base::halves::{SubmitError, Verdict};
use segstream_base::{Instant, SegmentNumber, StreamId, Tolerance};
use segstream_wire::contract::{Contract, ContractError};

impl SendHalf {
    /// Opens a stream; data flows as soon as the receiver has granted a window.
    pub fn open_stream(&mut self, now: Instant, contract: Contract) -> Result<StreamId, ContractError> {
        contract.validate()?;
        self.invalidate_due();
        self.lifetimes |= !contract.lifetime.is_zero();
        self.remove_ended();
        let id = self.credit.on_opened();
        let mut stream = SendStream::new(contract);
        stream.coding_target = self.coding.default_target;
        self.streams.insert(id, stream);
        self.refresh(id);
        self.state_timer.schedule_immediate(now);
        Ok(id)
    }

    /// Takes a segment of `bytes` bytes, or opens one whose length comes later.
    pub fn submit(
        &mut self,
        now: Instant,
        id: StreamId,
        bytes: Option<u64>,
        source_time: Instant,
        tolerance: Option<Tolerance>,
    ) -> Result<SegmentNumber, SubmitError> {
        let stream = self.streams.get_mut(id).ok_or(SubmitError::Finished)?;
        let number = stream.submit(now, bytes, source_time, tolerance)?;
        self.invalidate_due();
        if !self.has_unjudged() {
            self.state_timer.on_busy(now);
        }
        self.refresh(id);
        Ok(number)
    }

    /// Whether the oldest unsent segment of the stream is given up for a new one when the send buffer is full.
    pub fn set_drop_oldest(&mut self, id: StreamId, drops_oldest: bool) {
        if let Some(stream) = self.streams.get_mut(id) {
            stream.buffer.drops_oldest = drops_oldest;
        }
    }

    /// Makes room by the stream's policy; the segment that was given up, if one was.
    pub fn drop_oldest(&mut self, now: Instant, id: StreamId) -> Option<SegmentNumber> {
        let number = self.streams.get_mut(id)?.drop_oldest()?;
        self.counters.segments_skipped += 1;
        self.invalidate_due();
        self.state_timer.schedule_immediate(now);
        self.refresh(id);
        Some(number)
    }

    /// Appends to the open segment of `stream`. `Some(verdict)` when the segment is already judged or
    /// given up; the bytes are not taken then.
    pub fn append(&mut self, now: Instant, id: StreamId, bytes: u64, last: bool) -> Result<Option<Verdict>, SubmitError> {
        let stream = self.streams.get_mut(id).ok_or(SubmitError::Finished)?;
        let verdict = stream.append(bytes, last)?;
        self.invalidate_due();
        self.refresh(id);
        if last && !self.has_eligible() {
            // Every unit may have left already, so that only a statement can tell the length.
            self.state_timer.schedule_immediate(now);
        }
        Ok(verdict)
    }

    /// No more segments will come on `stream`.
    pub fn finish(&mut self, now: Instant, id: StreamId) {
        if let Some(stream) = self.streams.get_mut(id)
            && !stream.end.finished
        {
            stream.end.finished = true;
            self.invalidate_due();
            self.refresh(id);
            self.state_timer.schedule_immediate(now);
        }
    }
}
