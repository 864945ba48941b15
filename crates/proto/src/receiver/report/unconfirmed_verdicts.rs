//! Unconfirmed verdicts: which reports have carried them, until the sender confirms one of those reports.
//!
//! Called by the composition, which adds to it, and by the half when the sender's state confirms reports.
//!
//! Invariant: `unconfirmed` is the sum of what the streams count; a verdict is confirmed only by a report that carried it,
//! and one with a map of holes only when all of the map is.

use crate::live_streams::LiveStreams;
use crate::receiver::stream::RecvStream;
use segstream_base::{ReportNumber, Run, SegmentNumber, StreamId, UnitIndex};
use segstream_blocks::rare_queue::RareQueue;
use segstream_wire::state::Confirmed;
use std::collections::VecDeque;

/// How far behind the highest confirmed report the contents of a report are remembered: as far as a state can confirm.
const UNCONFIRMED_REPORTS_MAX: u64 = 64;
/// Verdict frames remembered at most.
const SENT_VERDICTS_MAX: usize = 4096;

/// The verdicts of one frame that a report carried.
#[derive(Clone, Copy, Debug)]
pub(super) struct SentVerdicts {
    pub(super) report: ReportNumber,
    pub(super) stream: StreamId,
    pub(super) from: SegmentNumber,
    pub(super) to: SegmentNumber,
    /// For a map of holes: the units it speaks of.
    pub(super) map: Option<Run<UnitIndex>>,
}

/// The verdicts to repeat until they are confirmed.
#[derive(Debug, Default)]
pub(in crate::receiver) struct UnconfirmedVerdicts {
    sent: VecDeque<SentVerdicts>,
    /// Confirmed verdicts that no turn has come to yet.
    behind: RareQueue<SentVerdicts>,
    /// Verdicts of all streams that the sender has not confirmed.
    unconfirmed: u64,
}

impl UnconfirmedVerdicts {
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

    /// The memory that it takes, in bytes.
    pub(in crate::receiver) fn kept_bytes(&self) -> u64 {
        (self.sent.capacity() * size_of::<SentVerdicts>() + self.behind.heap_bytes()) as u64
    }

    /// Whether confirmed verdicts wait for another turn.
    pub(in crate::receiver) fn is_behind(&self) -> bool {
        !self.behind.is_empty()
    }

    /// A turn: goes on with confirmed verdicts, of `left` segments at most.
    pub(in crate::receiver) fn go_on(&mut self, streams: &mut LiveStreams<RecvStream>, left: &mut u64) {
        while *left > 0
            && let Some(verdicts) = self.behind.pop_front()
        {
            let rest = confirm(verdicts, streams, &mut self.unconfirmed, left);
            rest.into_iter().for_each(|rest| self.behind.push_front(rest));
        }
    }

    /// The sender has confirmed reports, and with them what they carried of these streams. Of `left` segments that is noted at once.
    pub(in crate::receiver) fn on_confirmed(&mut self, confirmed: &Confirmed, streams: &mut LiveStreams<RecvStream>, left: &mut u64) {
        let Some(highest) = confirmed.highest else { return };
        let (unconfirmed, behind) = (&mut self.unconfirmed, &mut self.behind);
        self.sent.retain(|verdicts| {
            let may_come = verdicts.report + UNCONFIRMED_REPORTS_MAX >= highest;
            if !confirmed.contains(verdicts.report) {
                return may_come;
            }
            let Some(stream) = streams.get_mut(verdicts.stream) else { return false };
            if let (Some(map), Some(segment)) = (verdicts.map, stream.segments.get_mut(verdicts.from)) {
                if map.start() > segment.judgement.holes_confirmed && !segment.judgement.confirmed {
                    // The sender keeps it; it counts here when what comes before it is confirmed too.
                    return may_come;
                }
                segment.judgement.holes_confirmed = segment.judgement.holes_confirmed.max(map.end());
            }
            confirm(*verdicts, streams, unconfirmed, left).into_iter().for_each(|rest| behind.push_back(rest));
            false
        });
    }
}

/// Notes that `verdicts` are confirmed, of `left` segments at most. Returns what is left of them.
fn confirm(verdicts: SentVerdicts, streams: &mut LiveStreams<RecvStream>, unconfirmed: &mut u64, left: &mut u64) -> Option<SentVerdicts> {
    let stream = streams.get_mut(verdicts.stream)?;
    let before = stream.verdicts.unconfirmed;
    let from = stream.confirm(verdicts.from, verdicts.to, verdicts.report, left);
    *unconfirmed -= before - stream.verdicts.unconfirmed;
    (from < verdicts.to).then_some(SentVerdicts { from, ..verdicts })
}

#[cfg(test)]
#[path = "unconfirmed_verdicts_tests.rs"]
mod tests;
