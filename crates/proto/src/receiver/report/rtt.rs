//! The round trip as reports measure it: from a report's departure to the first sender's state that confirms it.
//!
//! Owned by the schedule. The sending half of the connection measures the same path with its own packets; the lower of
//! both counts.
//!
//! Limit: a sample includes the time the sender took to confirm (RFC 9002 5.3 would subtract an ACK delay; no state
//! tells one).
//!
//! Invariant: `sent_at` holds the times of the newest report shipments, without a gap, the newest last.

use segstream_base::{Duration, Instant, ReportNumber};
use segstream_blocks::rtt::Rtt;
use std::collections::VecDeque;

/// Report shipments whose times are kept: many may leave before the first is confirmed.
const SENT_TIMES_MAX: usize = 256;

/// The round trip of reports.
#[derive(Debug)]
pub(super) struct ReportRtt {
    sent_at: VecDeque<Instant>,
    /// The highest report the sender has confirmed.
    confirmed: Option<ReportNumber>,
    rtt: Rtt,
    /// The round trip as the sending half of this connection measures it.
    sender_rtt: Option<Duration>,
}

impl ReportRtt {
    pub(super) fn new() -> Self {
        Self { sent_at: VecDeque::new(), confirmed: None, rtt: Rtt::new(), sender_rtt: None }
    }

    /// A report shipment leaves.
    pub(super) fn on_sent(&mut self, now: Instant) {
        if self.sent_at.len() >= SENT_TIMES_MAX {
            self.sent_at.pop_front();
        }
        self.sent_at.push_back(now);
    }

    /// The sender has confirmed reports up to `highest`; the next to leave will be `next`. Returns whether that was a sample.
    pub(super) fn on_confirmed(&mut self, now: Instant, highest: Option<ReportNumber>, next: ReportNumber) -> bool {
        let Some(highest) = highest.filter(|&highest| self.confirmed.is_none_or(|known| highest > known)) else { return false };
        if highest >= next {
            // Such a report has not left: the peer claims what it cannot have.
            return false;
        }
        self.confirmed = Some(highest);
        let behind = usize::try_from(next - highest).unwrap_or(usize::MAX);
        let Some(at) = self.sent_at.len().checked_sub(behind) else { return false };
        self.rtt.on_sample(now, now.since(self.sent_at[at]));
        self.sent_at.drain(..=at);
        true
    }

    /// Packets take another path: reports that have left say nothing of it (RFC 9000 9.4).
    pub(super) fn on_path_change(&mut self) {
        *self = Self { confirmed: self.confirmed, ..Self::new() };
    }

    /// The round trip as the sending half measures it.
    pub(super) const fn set_sender_rtt(&mut self, rtt: Duration) {
        self.sender_rtt = Some(rtt);
    }

    /// The lowest round trip that reports have measured.
    pub(super) fn of_reports(&self) -> Option<Duration> {
        self.rtt.min()
    }

    /// The lower of both measurements.
    pub(super) fn lowest(&self) -> Option<Duration> {
        let own = self.rtt.min();
        own.zip(self.sender_rtt).map(|(own, sender)| own.min(sender)).or(own).or(self.sender_rtt)
    }
}
