//! The receiver's state, RXS (AA 2, EC 4.3, HT 3.1): when it is due, what it says, and what it repeats.
//!
//! - `schedule`: when a report is due; `rtt` and `arrival_rate` are what it measures for that;
//! - `composition`: what a report says;
//! - `unconfirmed_verdicts`: the verdicts to repeat until the sender has confirmed them.
//!
//! Called by the half. Invariant: all shipments of one report have the same echo.

mod arrival_rate;
mod composition;
mod rtt;
mod schedule;
mod unconfirmed_verdicts;

use super::RecvHalf;
use composition::Composition;
pub(super) use composition::grant;
use schedule::{Outstanding, ReportSchedule};
use segstream_base::Instant;
use segstream_base::endpoint::Deadline;
use segstream_wire::Report;
use segstream_wire::state::Confirmed;
use unconfirmed_verdicts::UnconfirmedVerdicts;

/// Everything about reports.
#[derive(Debug)]
pub(super) struct Reports {
    pub(super) schedule: ReportSchedule,
    pub(super) composition: Composition,
    pub(super) verdicts: UnconfirmedVerdicts,
}

impl Reports {
    pub(super) fn new(now: Instant) -> Self {
        Self { schedule: ReportSchedule::new(now), composition: Composition::default(), verdicts: UnconfirmedVerdicts::default() }
    }
}

impl RecvHalf {
    /// Whether a report is due for another reason than that time has passed.
    pub fn has_immediate_report(&self, now: Instant) -> bool {
        self.reports.schedule.is_requested_by(now)
    }

    /// When the next report is due, and why.
    #[inline]
    pub(crate) fn report_due(&self) -> Option<Deadline> {
        self.reports.schedule.due(Outstanding {
            in_repair: self.judging.in_repair,
            unconfirmed: self.reports.verdicts.unconfirmed() + u64::from(self.credit.is_unconfirmed()) + self.confirmations.unconfirmed,
        })
    }

    /// The next shipment of the report that is due, if one is.
    #[inline]
    pub fn poll_report(&mut self, now: Instant) -> Option<Report> {
        if self.may_retire {
            self.retire_ended(now);
        }
        self.debug_assert_counts();
        if !self.reports.composition.is_under_way() {
            // Why here and not with each arrival: what comes in one batch is taken as if it had come one by one.
            self.reports.schedule.update_periods_if_faster(now, self.highest_shipment().unwrap_or_default());
            if self.report_due().is_none_or(|deadline| deadline.at > now) {
                return None;
            }
            self.start_report(now);
        }
        self.next_report_shipment(now)
    }

    fn next_report_shipment(&mut self, now: Instant) -> Option<Report> {
        let Reports { schedule, composition, verdicts } = &mut self.reports;
        let (report, ended) = composition.next_shipment(
            now,
            &self.arrivals.detector,
            self.config.body_bytes,
            (&mut self.streams, &mut self.credit),
            verdicts,
        );
        if let Some(shipments) = ended {
            schedule.on_report_end(shipments);
        }
        if report.is_some() {
            schedule.on_shipment(now);
            self.counters.report_shipments += 1;
        }
        report
    }

    fn start_report(&mut self, now: Instant) {
        let window = self.streams.iter().map(|stream| stream.room.window.size().1).min().unwrap_or(0);
        self.reports.schedule.on_report(now, self.highest_shipment().unwrap_or_default(), window);
        for stream in self.streams.iter_mut() {
            stream.on_report(now);
        }
        self.reports.composition.start(self.streams.len(), self.confirmations.unconfirmed > 0);
    }

    /// The sender has confirmed reports.
    pub(super) fn on_confirmed(&mut self, now: Instant, confirmed: &Confirmed) {
        let Reports { schedule, composition, verdicts } = &mut self.reports;
        schedule.on_confirmed(now, confirmed.highest, composition.next_number());
        verdicts.on_confirmed(confirmed, &mut self.streams, &mut self.unfinished.confirmations_left);
        self.unfinished.any |= verdicts.is_behind();
        self.credit.on_confirmed(confirmed);
        self.confirmations.on_confirmed(confirmed, &mut self.streams);
    }
}
