//! What must hold of a receiving half in debug builds: its hand-kept counts against its streams.
//!
//! Called before a report may leave: whatever changes the half comes between two such calls.
//!
//! Invariant: only the half's own state is judged, never what a peer says.

use super::RecvHalf;
use super::durability::Durability;
use segstream_blocks::recount;

impl RecvHalf {
    /// What the half counts is the sum of what its streams count, and each of them counts its segments rightly.
    #[inline]
    pub(super) fn debug_assert_counts(&self) {
        if !recount::is_due(self.streams.len()) {
            return;
        }
        let (mut in_repair, mut unconfirmed, mut live, mut told) = (0, 0, 0, 0);
        for stream in self.streams.iter() {
            stream.debug_assert_counts();
            in_repair += stream.in_repair;
            unconfirmed += stream.verdicts.unconfirmed;
            live += u64::from(!stream.is_retired());
            told += u64::from(stream.durability.as_ref().is_some_and(Durability::is_unconfirmed));
        }
        debug_assert_eq!(self.judging.in_repair, in_repair, "segments in repair are miscounted");
        debug_assert_eq!(self.reports.verdicts.unconfirmed(), unconfirmed, "the half and its streams count different unconfirmed verdicts");
        debug_assert_eq!(self.confirmations.unconfirmed, told, "confirmations that are not confirmed are miscounted");
        debug_assert_eq!(self.credit.live(), live, "live streams are miscounted");
    }
}
