//! The verdicts that were given, for the trace of the connection.
//!
//! Filled by the receiving half once it is switched on; emptied by the connection after each input.
//!
//! Invariant: at most [`EVENTS_MAX`] are kept.

use crate::trace::{EVENTS_MAX, SegmentJudged};

/// Verdicts that the trace does not have yet; `None` while it is off.
#[derive(Debug, Default)]
#[expect(clippy::box_collection, reason = "nearly every connection has none, and each would carry its size")]
pub(super) struct VerdictLog(Option<Box<Vec<SegmentJudged>>>);

impl VerdictLog {
    pub(super) fn switch_on(&mut self) {
        self.0.get_or_insert_default();
    }

    pub(super) const fn is_on(&self) -> bool {
        self.0.is_some()
    }

    pub(super) fn push(&mut self, judged: SegmentJudged) {
        if let Some(kept) = self.0.as_mut().filter(|kept| kept.len() < EVENTS_MAX) {
            kept.push(judged);
        }
    }

    pub(super) fn take(&mut self) -> Vec<SegmentJudged> {
        self.0.as_mut().map(|kept| core::mem::take(&mut **kept)).unwrap_or_default()
    }
}
