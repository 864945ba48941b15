//! The end of a peer's stream: when it is retired, and what a late packet for it does.
//!
//! ```text
//!  END taken, every segment judged and taken by the application, every verdict confirmed, the end told
//!      │ retired: its buffers are free, the peer may open one more (`stream_credit`)
//!  the peer opens another stream
//!      │ removed: nothing is kept of it but that its number was used
//!  a late OPEN or END of it ── answered by a GRANT that says that the end is known
//!  a late part of it ──────── ignored
//! ```
//!
//! Why it stays until another one is opened: its GRANT confirms its end in every report. A sender that ends its last stream
//! still needs that, and without another stream nothing needs the room.
//!
//! Called by the half. Invariant: a stream is counted as retired once; a number that was used is never opened again.

use super::RecvHalf;
use segstream_base::{Instant, StreamId};

impl RecvHalf {
    /// Whether stream `number` of the peer has ended, and nothing is kept of it.
    pub fn has_retired(&self, number: StreamId) -> bool {
        self.streams.get(number).is_none() && self.credit.was_opened(number)
    }

    /// The application is still to be told of stream `number`: until then it stays, since one without a segment may have ended.
    pub(crate) fn hold_until_announced(&mut self, number: StreamId) {
        if let Some(stream) = self.streams.get_mut(number) {
            stream.end.unannounced = true;
        }
    }

    /// The application has been told of stream `number`.
    pub(crate) fn on_announced(&mut self, number: StreamId) {
        if let Some(stream) = self.streams.get_mut(number) {
            stream.end.unannounced = false;
            self.may_retire |= stream.has_ended();
        }
    }

    /// Retires streams that have ended and of which everything is confirmed.
    pub(super) fn retire_ended(&mut self, now: Instant) {
        self.may_retire = false;
        for stream in self.streams.iter_mut().filter(|stream| stream.has_ended()) {
            if let Some(memory) = &mut self.memory {
                memory.give_back(stream.charge());
            }
            stream.on_retired();
            self.events.streams_changed = true;
            let schedule = &mut self.reports.schedule;
            if self.credit.on_retired() {
                schedule.report_now(now);
            } else if self.credit.is_unconfirmed() {
                schedule.report_delayed(now);
            }
        }
    }

    /// Another stream is opened: removes retired ones from the table.
    pub(super) fn remove_retired(&mut self) {
        self.streams.retain(|_, stream| !stream.is_retired());
        debug_assert!(self.streams.len() < self.config.streams_max as usize, "more streams are kept than may be live");
    }

    /// The peer still announces a retired stream: it has not received the GRANT that confirms the end.
    pub(super) fn answer_for_retired(&mut self, now: Instant, number: StreamId) {
        self.reports.composition.on_retired_named(number);
        self.reports.schedule.report_delayed(now);
    }
}
