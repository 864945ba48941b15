//! The receiver's acknowledgments: a new gap at once, and its status whenever its timer expires.
//!
//! Called by the receiving half. Source: AA 2, receiver operations; AA Figures 2 and 3. A gap is seen when a packet
//! arrives whose number is above the highest expected; the acknowledgment that leaves at once names that gap alone. The status
//! names every gap, in one acknowledgment each, or has gap-in = gap-out = cumulative number when there is none.
//!
//! The error phase is that "in which there are lost packets" (AA 2). Which gap sets the timer to T_error, and whether recovery sets it
//! back, is a value ([`Rearming`]). As a rule the gap that begins a phase sets it; one that comes while others are open does not, or at
//! a high loss the status would never come. When all is recovered the timer runs on, and only when it runs out with nothing missing
//! the next period is T_normal (AA Figure 2).
//!
//! Invariant: `missing` are the packets below `highest` that are not here; of acknowledgments that wait there are at most
//! as many as gaps in a status, or one a packet of the window.

use super::packet::Feedback;
use super::{Config, Rearming};
use segstream_base::Instant;
use segstream_blocks::{RangeSet, ReportPeriod};
use std::collections::VecDeque;

/// The gaps, the timer, and the pending status.
#[derive(Clone, Debug)]
pub(super) struct Status {
    connection: u32,
    window: usize,
    rearming: Rearming,
    period: ReportPeriod,
    missing: RangeSet,
    /// The highest expected number: that behind the newest packet that arrived.
    highest: u32,
    waiting: VecDeque<Feedback>,
}

impl Status {
    /// Nothing has arrived; the timer is set to T_normal.
    pub(super) const fn new(config: &Config, now: Instant) -> Self {
        Self {
            connection: config.connection,
            window: config.window as usize,
            rearming: config.rearming,
            period: ReportPeriod::with_periods(now, config.t_normal, config.t_error),
            missing: RangeSet::new(),
            highest: 0,
            waiting: VecDeque::new(),
        }
    }

    /// A packet that was not here has arrived, while all below `cumulative` had.
    #[inline]
    pub(super) fn on_arrival(&mut self, now: Instant, sequence: u32, cumulative: u32) {
        if sequence < self.highest {
            self.missing.remove(u64::from(sequence)..u64::from(sequence) + 1);
            if self.rearming == Rearming::Recovery && self.missing.is_empty() && self.period.in_error() {
                self.period = ReportPeriod::with_periods(now, self.period.normal(), self.period.error());
            }
            return;
        }
        if sequence > self.highest {
            if self.sets_timer() {
                self.period.on_report(now, true);
            }
            self.missing.insert(u64::from(self.highest)..u64::from(sequence));
            let gap = Feedback { connection: self.connection, cumulative, gap_in: self.highest, gap_out: sequence };
            // Limit: who is never asked for what waits says the rest by the next status.
            if self.waiting.len() < self.window {
                self.waiting.push_back(gap);
            }
        }
        self.highest = sequence + 1;
    }

    /// Whether the gap that is seen now sets the timer anew.
    fn sets_timer(&self) -> bool {
        match self.rearming {
            // Also when the timer of the phase before still runs: what leaves now tells of all that it would.
            Rearming::Phase | Rearming::Recovery => self.missing.is_empty(),
            Rearming::First => !self.period.in_error(),
            Rearming::Gap => true,
            Rearming::Expiry => false,
        }
    }

    /// A packet that had arrived was of no use: it is missing again.
    pub(super) fn on_refused(&mut self, now: Instant, sequence: u32) {
        self.missing.insert(u64::from(sequence)..u64::from(sequence) + 1);
        self.period.enter_error(now);
    }

    /// All is here; nothing that follows is of interest.
    pub(super) fn on_end(&mut self) {
        self.missing.clear();
    }

    /// Makes the status if its time has come.
    pub(super) fn on_timeout(&mut self, now: Instant, cumulative: u32) {
        if now < self.period.due() {
            return;
        }
        // What still waits is part of it.
        self.waiting.clear();
        let connection = self.connection;
        // Every number below `highest` has 32 bits.
        let gaps = self.missing.iter().map(|gap| (gap.start as u32, gap.end as u32));
        self.waiting.extend(gaps.map(|(gap_in, gap_out)| Feedback { connection, cumulative, gap_in, gap_out }));
        if self.waiting.is_empty() {
            self.waiting.push_back(Feedback { connection, cumulative, gap_in: cumulative, gap_out: cumulative });
        }
        self.period.on_report(now, !self.missing.is_empty());
    }

    /// The next acknowledgment.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<Feedback> {
        self.waiting.pop_front()
    }

    /// When the timer runs out.
    #[inline]
    pub(super) fn due(&self) -> Instant {
        self.period.due()
    }

    /// Whether the period is T_error.
    pub(super) const fn in_error(&self) -> bool {
        self.period.in_error()
    }

    /// How many gaps there are.
    pub(super) fn gaps(&self) -> usize {
        self.missing.range_count()
    }
}
