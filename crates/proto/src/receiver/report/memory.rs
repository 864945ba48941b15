//! The verdicts that reports have carried, until the sender confirms one of those reports.
//!
//! Called by the composition, which adds to it, and by the half when the sender's state confirms reports.
//!
//! Invariant: `unconfirmed` is the sum of what the streams count; a verdict is confirmed only by a report that carried it,
//! and one with a map of holes only when all of the map is.

use crate::live_streams::LiveStreams;
use crate::receiver::stream::RecvStream;
use segstream_base::{ReportNumber, SegmentNumber, StreamId};
use segstream_wire::state::Confirmed;
use std::collections::VecDeque;

/// How far behind the highest confirmed report the contents of a report are remembered: as far as a state can confirm.
const UNCONFIRMED_REPORTS_MAX: u64 = 64;
/// Verdict frames remembered at most.
const SENT_VERDICTS_MAX: usize = 8192;

/// The verdicts of one frame that a report carried.
#[derive(Clone, Copy, Debug)]
pub(super) struct SentVerdicts {
    pub(super) report: ReportNumber,
    pub(super) stream: StreamId,
    pub(super) from: SegmentNumber,
    pub(super) to: SegmentNumber,
    /// For a map of holes: the units it speaks of.
    pub(super) map: Option<(u32, u32)>,
}

/// The verdicts to repeat until they are confirmed.
#[derive(Debug, Default)]
pub(in crate::receiver) struct VerdictMemory {
    sent: VecDeque<SentVerdicts>,
    /// Verdicts of all streams that the sender has not confirmed.
    unconfirmed: u64,
}

impl VerdictMemory {
    /// A segment has been judged.
    pub(in crate::receiver) const fn on_judged(&mut self) {
        self.unconfirmed += 1;
    }

    /// How many verdicts the sender has not confirmed.
    pub(in crate::receiver) const fn unconfirmed(&self) -> u64 {
        self.unconfirmed
    }

    /// A report carries these verdicts.
    pub(super) fn on_sent(&mut self, verdicts: SentVerdicts) {
        if self.sent.len() >= SENT_VERDICTS_MAX {
            self.sent.pop_front();
        }
        self.sent.push_back(verdicts);
    }

    /// The sender has confirmed reports, and with them what they carried of these streams.
    pub(in crate::receiver) fn on_confirmed(&mut self, confirmed: &Confirmed, streams: &mut LiveStreams<RecvStream>) {
        let Some(highest) = confirmed.highest else { return };
        let unconfirmed = &mut self.unconfirmed;
        self.sent.retain(|verdicts| {
            let may_come = verdicts.report + UNCONFIRMED_REPORTS_MAX >= highest;
            if !confirmed.contains(verdicts.report) {
                return may_come;
            }
            let Some(stream) = streams.get_mut(verdicts.stream) else { return false };
            if let (Some((from, to)), Some(segment)) = (verdicts.map, stream.get_mut(verdicts.from)) {
                if from > segment.holes_confirmed && !segment.confirmed {
                    // The sender keeps it; it counts here when what comes before it is confirmed too.
                    return may_come;
                }
                segment.holes_confirmed = segment.holes_confirmed.max(to);
            }
            let before = stream.unconfirmed;
            stream.confirm(verdicts.from, verdicts.to, verdicts.report);
            *unconfirmed -= before - stream.unconfirmed;
            false
        });
    }
}
