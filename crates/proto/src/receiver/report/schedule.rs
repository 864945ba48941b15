//! When a report is due.
//!
//! A report is *immediate* or *delayed*, as the ACK of RFC 9000 13.2. It is immediate when a first loss is detected, on request, when the
//! sender would soon reach the edge of the window, and when a whole stream is judged. It is delayed by the short period while units are
//! requested or the sender is blocked by the window, and by the long period while data arrives or a verdict is unconfirmed. Where nothing
//! arrives between reports that request units, the short period doubles with each, up to the long one. Losses are reported immediately
//! within the report budget ([`segstream_blocks::report_budget`]), in which each shipment of a report counts.
//!
//! Called by the half. It knows times and counts, and not the contents of reports.
//!
//! Invariant: while units are requested or a verdict is unconfirmed, a report is due.

use super::arrival_rate::ArrivalRate;
use super::rtt::ReportRtt;
use segstream_base::endpoint::Deadline;
use segstream_base::{Duration, Instant, ReportNumber, ShipmentNumber};
use segstream_blocks::report_budget::ReportBudget;
use segstream_blocks::report_period::{ReportPeriod, SHARE_NORMAL};

/// The longest period to which reports to a silent sender back off.
const BACKOFF_MAX: Duration = Duration::from_millis(500);
/// How many times as fast as before shipments come when the periods are updated before a report leaves.
const SPEEDUP: u64 = 8;

/// The counts of the half's streams that the schedule depends on.
#[derive(Clone, Copy, Debug)]
pub(in crate::receiver) struct Outstanding {
    /// Segments with requested units.
    pub(in crate::receiver) in_repair: u64,
    /// Verdicts, or anything else repeated until it is confirmed.
    pub(in crate::receiver) unconfirmed: u64,
}

/// When a report is due.
#[derive(Debug)]
pub(in crate::receiver) struct ReportSchedule {
    period: ReportPeriod,
    rate_limit: ReportBudget,
    /// When a report was asked for, whatever the periods say.
    requested_at: Option<Instant>,
    /// When the last report left.
    last: Instant,
    /// Data or state has arrived since the last report.
    data_since_report: bool,
    /// Reports since the sender's state last came.
    unacked_reports: u32,
    /// Of the last reports, those before which nothing had arrived since the one before them.
    repeats: u32,
    rtt: ReportRtt,
    arrivals: ArrivalRate,
    /// The smallest window of a stream, in units.
    window: u64,
}

impl ReportSchedule {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            period: ReportPeriod::new(now),
            rate_limit: ReportBudget::new(now),
            requested_at: None,
            last: now,
            data_since_report: false,
            unacked_reports: 0,
            repeats: 0,
            rtt: ReportRtt::new(),
            arrivals: ArrivalRate::default(),
            window: 0,
        }
    }

    /// An immediate report: the sender has asked for it, or can do nothing before it comes.
    pub(in crate::receiver) fn report_now(&mut self, now: Instant) {
        self.request_at(now.max(self.last + self.arrivals.shipment_time() * 2));
    }

    /// A report as soon as the rate limit allows.
    pub(in crate::receiver) fn report_now_within_budget(&mut self, now: Instant) {
        let at = self.rate_limit.earliest(now, self.period.gap());
        self.request_at(at.max(self.last + self.arrivals.shipment_time() * 2));
    }

    /// A delayed report: within the short period.
    pub(in crate::receiver) fn report_delayed(&mut self, now: Instant) {
        self.request_at(now.max(self.last + self.period.error()));
    }

    fn request_at(&mut self, at: Instant) {
        self.requested_at = Some(self.requested_at.map_or(at, |earlier| earlier.min(at)));
    }

    /// Whether a report that was asked for is due.
    pub(in crate::receiver) fn is_requested_by(&self, now: Instant) -> bool {
        self.requested_at.is_some_and(|at| at <= now)
    }

    /// Data has arrived.
    #[inline]
    pub(in crate::receiver) const fn on_data(&mut self) {
        self.data_since_report = true;
    }

    /// The sender's state has arrived.
    pub(in crate::receiver) const fn on_state(&mut self) {
        self.unacked_reports = 0;
        self.data_since_report = true;
    }

    /// Whether a sender at the measured rate comes to the end of a window of `units`, one a shipment, within so many round
    /// trips: then it may wait for what is reported.
    pub(in crate::receiver) fn exhausts_window_within(&self, units: u64, round_trips: u64) -> bool {
        self.rtt.of_reports().is_some_and(|rtt| self.arrivals.time_of(units) < rtt * round_trips)
    }

    /// How long before a sender comes to the edge of its window it must be told of a new one. `None` until a round trip
    /// is known.
    // Why a half more: the minimum round trip does not contain the processing delay of a busy end.
    pub(in crate::receiver) fn window_update_lead(&self) -> Option<Duration> {
        self.rtt.lowest().map(|rtt| rtt * 3 / 2 + self.arrivals.shipment_time() * 2)
    }

    /// Connection migration: the round trip of the new path is unknown.
    pub(in crate::receiver) fn on_path_change(&mut self, now: Instant) {
        self.rtt.on_path_change();
        self.period = ReportPeriod::new(now);
    }

    /// The round trip, as far as it is known.
    pub(in crate::receiver) fn round_trip(&self) -> Option<Duration> {
        self.rtt.lowest()
    }

    /// The round trip as the sending half measures it.
    pub(in crate::receiver) fn set_rtt(&mut self, rtt: Duration) {
        self.rtt.set_sender_rtt(rtt);
        self.update_periods();
    }

    /// The sender has confirmed reports up to `highest`; the next to leave will be `next`.
    pub(super) fn on_confirmed(&mut self, now: Instant, highest: Option<ReportNumber>, next: ReportNumber) {
        if self.rtt.on_confirmed(now, highest, next) {
            self.update_periods();
        }
    }

    fn update_periods(&mut self) {
        if let Some(rtt) = self.rtt.lowest() {
            self.period.set_from(rtt, self.arrivals.shipment_time(), self.window);
        }
    }

    /// Updates the periods where shipments, the highest of which is `highest`, come far faster than before.
    ///
    /// Why: from the few shipments of set-up or of an application-limited sender follows a rate so low that a whole window passes
    /// before the next report. When as many shipments have arrived as one report covers, a report is due.
    #[inline]
    pub(super) fn update_periods_if_faster(&mut self, now: Instant, highest: ShipmentNumber) {
        let shipments = self.arrivals.since_report(highest);
        if shipments >= SHARE_NORMAL {
            let elapsed = now.since(self.last);
            if elapsed * SPEEDUP < self.arrivals.shipment_time() * shipments {
                self.arrivals.restart(elapsed, highest);
                self.update_periods();
            }
        }
    }

    /// When the next report is due, and why.
    #[inline]
    pub(super) fn due(&self, outstanding: Outstanding) -> Option<Deadline> {
        let mut due = self.requested_at.map(|at| Deadline { at, timer: "report.news" });
        if outstanding.in_repair > 0 {
            let at = self.last + self.backed_off(self.repetition_period());
            due = Deadline::earlier(due, Some(Deadline { at, timer: "report.short" }));
        } else if self.data_since_report || outstanding.unconfirmed > 0 {
            let at = self.last + self.backed_off(self.period.normal());
            due = Deadline::earlier(due, Some(Deadline { at, timer: "report.long" }));
        }
        due
    }

    /// The short period; while nothing arrives doubled with each report, up to the long one.
    ///
    /// Why: such a report tells what the last one told, and is of use only if that was lost. On a slow path, where many short periods pass
    /// between two shipments, such reports filled the way back.
    #[inline]
    fn repetition_period(&self) -> Duration {
        self.period.repetition(if self.data_since_report { 0 } else { self.repeats })
    }

    #[inline]
    fn backed_off(&self, period: Duration) -> Duration {
        let doublings = (self.unacked_reports.saturating_sub(16) / 8).min(10);
        // Why: that is asked twice for each shipment, nearly always without a backoff.
        if doublings == 0 {
            return period;
        }
        (period * (1 << doublings)).min(BACKOFF_MAX.max(period))
    }

    /// A report begins that echoes `highest`; the smallest window of a stream has `window` units.
    pub(super) fn on_report(&mut self, now: Instant, highest: ShipmentNumber, window: u64) {
        self.arrivals.on_report(now.since(self.last), highest);
        self.window = window;
        self.update_periods();
        self.last = now;
        self.requested_at = None;
        self.repeats = if core::mem::take(&mut self.data_since_report) { 0 } else { self.repeats.saturating_add(1) };
        self.unacked_reports = self.unacked_reports.saturating_add(1);
    }

    /// A shipment of the report leaves.
    pub(super) fn on_shipment(&mut self, now: Instant) {
        self.rtt.on_sent(now);
    }

    /// The report has ended with so many shipments.
    pub(super) fn on_report_end(&mut self, shipments: u64) {
        self.rate_limit.spend(self.last, self.period.gap(), shipments);
    }
}

#[cfg(test)]
#[path = "schedule_tests.rs"]
mod tests;
