//! The report period of the receiver: long while nothing is missing, short while something is.
//!
//! Called by the receiver for its report timer. Source: AA 2 (two timer intervals, T_normal and T_error)
//! and AA 3.1, Figure 2. The error phase begins with the first detected loss, and the timer is set to the
//! short period there and then, or up to a long one would pass first. It ends as Figure 2 draws it, not
//! at the moment of recovery but when the short period next expires with nothing missing: that report
//! tells the sender of the recovery, and only then does the long period begin.
//!
//! The paper sets both periods by hand, for one path, one rate and one window. Here they follow all three: several
//! reports a round trip while something is missing, and two while nothing is; but where a round trip is short, no more
//! of them than the window needs, because where the end systems are the bottleneck a report costs as much as a shipment
//! (AA Table 1). While something is missing that is sixteen in the time by which a window outlasts a round trip, while
//! nothing is one in five hundred shipments.
//!
//! Invariant: 4 * short <= long and gap <= short after [`ReportPeriod::set_from`], and the timer is never further away
//! than the period of the phase.

use segstream_base::{Duration, Instant};

/// The bounds of the short period, before the shipment time is looked at. A fast sender's window may last no longer than
/// the lower one, which then gives way: a sender without feedback for a whole window is blocked, and so is its receiver.
const SHORT_LEAST: Duration = Duration::from_micros(500);
const SHORT_MOST: Duration = Duration::from_millis(25);
/// The upper bound of the long period.
const LONG_MOST: Duration = Duration::from_millis(200);
/// How many reports the time of a window has beyond a round trip, and between which bounds the shipments for each lie.
const PER_WINDOW: u64 = 16;
const SHARE_LEAST: u64 = 4;
const SHARE_MOST: u64 = 32;
/// How many shipments there are to a report while nothing is missing, where that is more than half a round trip.
pub const SHARE_NORMAL: u64 = 512;
/// Where shipments are slow, no end system is the bottleneck: shares count up to these times (AA 3.2.2).
const GAP_MOST: Duration = Duration::from_millis(5);
const NORMAL_MOST: Duration = Duration::from_millis(64);

/// The short period is doubled so often at most.
const DOUBLINGS_MOST: u32 = 10;

/// The report timer and its two periods.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReportPeriod {
    normal: Duration,
    error: Duration,
    gap: Duration,
    in_error: bool,
    /// When the timer was last set; it expires one period later.
    armed: Instant,
}

impl ReportPeriod {
    /// A timer set at `now`, error-free, with the longest periods (200 ms and 25 ms) until more is known.
    pub const fn new(now: Instant) -> Self {
        Self::with_periods(now, LONG_MOST, SHORT_MOST)
    }

    /// A timer set at `now`, error-free, with periods of one's own, as in the paper's study; the gap is an eighth of the
    /// short one.
    pub const fn with_periods(now: Instant, normal: Duration, error: Duration) -> Self {
        Self { normal, error, gap: Duration::from_nanos(error.as_nanos() / 8), in_error: false, armed: now }
    }

    /// Fits the periods to the round trip, to the time one shipment takes at the present rate, and to the window, in
    /// shipments:
    ///
    /// - gap, the least distance of reports in the long run: a sixteenth of what the window has beyond a round trip, 4 to 32
    ///   shipments, in time; at most 5 ms where four shipments take less;
    /// - short = rtt/16 within 500 us (or a sixteenth of the window, at least 32 shipments, if that takes less) and 25 ms,
    ///   or the gap if that is longer;
    /// - long = rtt/2, or the time of 512 shipments up to 64 ms if that is longer, within four short ones and 200 ms.
    ///
    /// Where bounds contradict each other, on slow paths, the lower one holds. The running timer follows.
    pub fn set_from(&mut self, rtt: Duration, shipment_time: Duration, window: u64) {
        // Why beyond: what is requested must come, or the window is held up.
        let on_their_way = rtt.as_nanos().checked_div(shipment_time.as_nanos()).unwrap_or(0);
        let share = (window.saturating_sub(on_their_way) / PER_WINDOW).clamp(SHARE_LEAST, SHARE_MOST);
        self.gap = (shipment_time * share).min(GAP_MOST).max(shipment_time * SHARE_LEAST);
        let short_least = match shipment_time * (window / PER_WINDOW).max(SHARE_MOST) {
            Duration::ZERO => SHORT_LEAST,
            in_time => SHORT_LEAST.min(in_time),
        };
        self.error = (rtt / 16).min(SHORT_MOST).max(short_least).max(self.gap);
        let seldom = (shipment_time * SHARE_NORMAL).min(NORMAL_MOST);
        self.normal = (rtt / 2).max(seldom).min(LONG_MOST).max(self.error * 4);
        debug_assert!(self.error * 4 <= self.normal && self.gap <= self.error, "{self:?}");
    }

    /// The least distance of reports in the long run.
    #[inline]
    pub const fn gap(&self) -> Duration {
        self.gap
    }

    /// T_normal: the period while nothing is missing.
    #[inline]
    pub const fn normal(&self) -> Duration {
        self.normal
    }

    /// T_error: the period while something is missing.
    #[inline]
    pub const fn error(&self) -> Duration {
        self.error
    }

    /// The short period doubled so many times, up to the long one: for what only repeats what was said before.
    #[inline]
    pub fn repetition(&self, doublings: u32) -> Duration {
        (self.error * (1 << doublings.min(DOUBLINGS_MOST))).min(self.normal)
    }

    /// Whether the error phase lasts.
    #[inline]
    pub const fn in_error(&self) -> bool {
        self.in_error
    }

    /// A loss was detected. The first one of a phase sets the timer to the short period from `now`; further
    /// ones change nothing, or a stream of losses would put the report off forever.
    #[inline]
    pub fn enter_error(&mut self, now: Instant) {
        if !self.in_error {
            self.in_error = true;
            self.armed = now;
        }
    }

    /// A report has left at `now`, because the timer rang or for another reason.
    ///
    /// With something `still_missing` the error phase lasts (or begins), and the next report is a short
    /// period away. With nothing missing a report on time ends the error phase; one before the timer rang
    /// leaves it running, as in Figure 2.
    #[inline]
    pub fn on_report(&mut self, now: Instant, still_missing: bool) {
        if self.in_error && !still_missing && now < self.due() {
            return;
        }
        self.in_error = still_missing;
        self.armed = now;
    }

    /// When the next report is due.
    #[inline]
    pub fn due(&self) -> Instant {
        self.armed + if self.in_error { self.error } else { self.normal }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// The paper's optimum, 40 ms and 5 ms.
    fn papers() -> ReportPeriod {
        ReportPeriod::with_periods(Instant::ZERO, Duration::from_millis(40), Duration::from_millis(5))
    }

    #[test]
    fn a_repetition_is_ever_rarer_up_to_the_long_period() {
        let (short, long) = (Duration::from_millis(4), Duration::from_millis(50));
        let period = ReportPeriod::with_periods(Instant::ZERO, long, short);
        let times = |doublings| period.repetition(doublings);
        assert_eq!([0, 1, 2, 3, 4, u32::MAX].map(times), [short, short * 2, short * 4, short * 8, long, long]);
    }

    #[test]
    fn figure_2_returns_to_the_long_period_when_the_short_one_expires() {
        let mut period = papers();
        assert_eq!(period.due(), ms(40));
        period.on_report(ms(40), false);
        assert_eq!(period.due(), ms(80));
        // A gap: reported at once, and the timer is set to the short period there and then.
        period.enter_error(ms(50));
        period.on_report(ms(50), true);
        assert_eq!(period.due(), ms(55));
        // A second gap is reported at once too.
        period.enter_error(ms(52));
        period.on_report(ms(52), true);
        assert_eq!(period.due(), ms(57));
        // All is there at 54 ms. Nothing happens until the short period expires; that report says so.
        assert_eq!((period.due(), period.in_error()), (ms(57), true));
        period.on_report(ms(57), false);
        assert_eq!((period.due(), period.in_error()), (ms(97), false));
    }

    #[test]
    fn a_report_for_another_reason_does_not_end_the_error_phase_early() {
        let mut period = papers();
        period.enter_error(ms(10));
        period.on_report(ms(12), false);
        assert_eq!((period.due(), period.in_error()), (ms(15), true));
    }

    #[test]
    fn a_stream_of_losses_cannot_put_the_report_off() {
        let mut period = papers();
        for millis in 10..14 {
            period.enter_error(ms(millis));
        }
        assert_eq!(period.due(), ms(15));
    }

    #[test]
    fn what_is_still_missing_at_a_report_begins_the_error_phase() {
        let mut period = papers();
        period.on_report(ms(40), true);
        assert_eq!((period.due(), period.in_error()), (ms(45), true));
    }

    #[test]
    fn periods_follow_round_trip_rate_and_window() {
        let us = Duration::from_micros;
        // (round trip, shipment time, window) -> (gap, short, long), in microseconds.
        let cases = [
            // EC: the round trip decides.
            ((60_000, 16, 9216), (512, 3_750, 30_000)),
            ((600_000, 16, 9216), (64, 25_000, 200_000)),
            // AA: no round trip to speak of, 400 packets in 48.48 ms; 50; 10.
            ((500, 121, 400), (2_904, 2_904, 61_952)),
            ((500, 121, 50), (484, 500, 61_952)),
            // HT: a window of little more than a round trip.
            ((20_000, 83, 256), (332, 1_250, 42_496)),
            ((500, 121, 10), (484, 500, 61_952)),
            // A slow path, and one on which four shipments take longer than anything else.
            ((60_000, 2_000, 400), (8_000, 8_000, 64_000)),
            ((60_000, 30_000, 400), (120_000, 120_000, 480_000)),
            // A window that does not outlast 500 us by much.
            ((60, 1, 8192), (32, 500, 2_000)),
            ((60, 1, 4096), (32, 256, 1_024)),
            ((60, 1, 256), (12, 32, 512)),
            // Nothing known.
            ((0, 0, 0), (0, 500, 2_000)),
        ];
        for ((rtt, shipment, window), (gap, short, long)) in cases {
            let mut period = papers();
            period.set_from(us(rtt), us(shipment), window);
            let found = (period.gap(), period.error(), period.normal());
            assert_eq!(found, (us(gap), us(short), us(long)), "rtt {rtt} us, shipment {shipment} us, window {window}");
        }
    }

    #[test]
    fn the_running_timer_follows_a_change_of_periods() {
        let mut period = ReportPeriod::new(Instant::ZERO);
        assert_eq!(period.due(), ms(200));
        period.set_from(Duration::from_millis(64), Duration::ZERO, 0);
        assert_eq!(period.due(), ms(32));
        period.enter_error(ms(10));
        assert_eq!(period.due(), ms(14));
    }
}
