//! `prague`: a window that falls in proportion to the share of marked packets, as L4S wants (RFC 9330): queues of a millisecond.
//!
//! Its packets carry ECT(1), so queues that know L4S (DualPI2, RFC 9332) mark early and often. The share of marks, averaged, is
//! `alpha`; once a round trip with marks the window falls by alpha / 2, and it grows by one packet a round trip. At the balance there
//! are two marks a round trip, whatever the rate. Where there are no marks it falls by half after a loss, as Reno (RFC 9331 4.3).
//!
//! Source: draft-briscoe-iccrg-prague-congestion-control-04, 2.4, and what its authors have published for UDP where the draft leaves
//! room: the faster growth after a time without marks, the burst of 250 us, the window above the pacing rate.
//!
//! Invariant: the window never falls below two packets, and by no more than half a virtual round trip apart. `alpha` is a share.
//!
//! Limit: a classic queue that marks ECT(1) as it marks ECT(0) (RFC 3168) is not recognised: beside flows that take such a mark for a
//! loss it takes more than they. Windows below two packets are not paced slower (RFC 9331 4.3, point 5): the floor of the rate is.

use super::hystart::HyStart;
use super::start_rate::StartRate;
use super::window::{LEAST, PacketUnits, Window};
use super::{Algorithm, Bounds, Clock, CongestionEvent, Controller, Limit, Report, Silence, Start};
use segstream_base::halves::Probe;
use segstream_base::{Bandwidth, Bytes, Duration, Instant};

/// The entry of the list.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "prague",
    about: "a window that falls in proportion to marks, for queues that know L4S (Prague)",
    offered: true,
    clock: Clock::Reports,
    responds_to_ecn: true,
    start: |start| Box::new(Prague::new(start)),
};

/// The round trip of a flow of which all shorter ones take the share (2.4.4), in seconds.
const RTT_VIRTUAL: f64 = 0.025;
/// How much of the newest share goes into alpha (2.4.1).
const GAIN: f64 = 1.0 / 16.0;
/// What is left after a loss (RFC 5681).
const AFTER_LOSS: f64 = 0.5;
/// After so many virtual round trips without a mark at least, the window grows faster.
const CALM_ROUNDS: f64 = 7.0;
/// It then grows by what leaves in this time, in seconds.
const CALM_GROWTH: f64 = 0.001;
/// How long a burst may take, in seconds.
const BURST: f64 = 0.000_250;
/// Windows a round trip at which packets leave in slow start, so that it nearly doubles.
///
/// Why not two: a queue that marks above a millisecond would see twice the window at once, and the first mark came at half of what
/// the path holds. At 20 Mbit/s and 40 ms the link was then full after 2 s, and is after 0.6 s.
const PACING_SLOW_START: f64 = 1.25;
/// What may be in flight above the window: reports come sixteen times a round trip, and the pacing rate is to limit, not the cap.
const SLACK: f64 = 1.0 / 8.0;
const SLACK_PACKETS: f64 = 2.0;

/// Prague.
#[derive(Clone, Copy, Debug)]
pub struct Prague {
    window: Window,
    hystart: HyStart,
    /// The share of marked packets, averaged.
    alpha: f64,
    /// Shares that alpha is made of; one of the first counts as much as all before it.
    shares: u32,
    /// The share that is being counted.
    counting: Counting,
    /// Marks are not answered again within it.
    answered: Option<Span>,
    /// Virtual round trips until the window grows faster.
    calm: f64,
    start_rate: StartRate,
}

/// A round trip by packets that lasts a virtual one at least.
#[derive(Clone, Copy, Debug)]
struct Span {
    began: Instant,
    delivered: u64,
}

#[derive(Clone, Copy, Debug)]
struct Counting {
    span: Span,
    packets: u64,
    marked: u64,
}

impl Prague {
    /// At the start of a connection. The floor and the peak are kept in the pacing rate.
    pub fn new(start: Start) -> Self {
        let start_rate = StartRate::new(start.initial);
        Self { start_rate, ..Self::with(start.now, 0, PacketUnits::new(start.bounds)) }
    }

    fn with(now: Instant, delivered: u64, units: PacketUnits) -> Self {
        let span = Span { began: now, delivered };
        Self {
            window: Window::new(units),
            hystart: HyStart::default(),
            alpha: 1.0,
            shares: 0,
            counting: Counting { span, packets: 0, marked: 0 },
            answered: None,
            calm: CALM_ROUNDS,
            start_rate: StartRate::Past,
        }
    }

    /// 2.4.4: the round trip in seconds, and a virtual one.
    fn round_trips(&self) -> (f64, f64) {
        let rtt = self.window.units.rtt_smoothed().unwrap_or(RTT_VIRTUAL);
        (rtt, rtt.max(RTT_VIRTUAL))
    }

    fn is_over(&self, now: Instant, span: Span, report: &Report) -> bool {
        let acknowledged = report.sample.is_some_and(|sample| sample.prior_delivered >= span.delivered);
        acknowledged && now.since(span.began).as_secs_f64() >= self.round_trips().1
    }

    const fn begin(now: Instant, report: &Report) -> Span {
        Span { began: now, delivered: report.delivered_total }
    }

    /// 2.4.1: once a virtual round trip.
    fn update_alpha(&mut self, now: Instant, report: &Report) {
        let counting = &mut self.counting;
        counting.packets = counting.packets.saturating_add(report.packets);
        counting.marked = counting.marked.saturating_add(report.marked);
        let Counting { span, packets, marked } = self.counting;
        if packets == 0 || !self.is_over(now, span, report) {
            return;
        }
        self.counting = Counting { span: Self::begin(now, report), packets: 0, marked: 0 };
        self.calm = (self.calm - 1.0).max(0.0);
        if self.window.in_slow_start() {
            return;
        }
        // Why not the gain from the first on: it would take a second or two until alpha, which begins at one, tells of the path.
        self.shares = self.shares.saturating_add(1);
        let gain = (1.0 / f64::from(self.shares)).max(GAIN);
        let share = (marked as f64 / packets as f64).min(1.0);
        self.alpha += (share - self.alpha) * gain;
    }

    /// 2.4.2.
    fn on_marks(&mut self, now: Instant, report: &Report) {
        if self.answered.is_some_and(|span| !self.is_over(now, span, report)) {
            return;
        }
        self.answered = Some(Self::begin(now, report));
        self.window.size = (self.window.size * (1.0 - self.alpha / 2.0)).max(LEAST);
        self.window.threshold = self.window.size;
        self.calm = self.calm_rounds();
    }

    /// How long there must be no marks until more is there than the sawtooth leaves.
    ///
    /// Why: under a queue that marks all above a delay there are marks every sqrt(W / 2) round trips, where what alpha takes is
    /// what has grown. Twice that is longer than the authors' 7 and one for each 15 Mbit/s, which at 20 Mbit/s and 40 ms is within
    /// the sawtooth: the queue then grows by two packets a round trip, and more is given back.
    fn calm_rounds(&self) -> f64 {
        libm::sqrt(2.0 * self.window.size).max(CALM_ROUNDS)
    }

    /// 2.4.5: as Reno, with no answer to marks of the same round trip.
    fn on_loss(&mut self, now: Instant, report: &Report) {
        self.window.size = (self.window.size * AFTER_LOSS).max(LEAST);
        self.window.threshold = self.window.size;
        self.answered = Some(Self::begin(now, report));
        let (rtt, virtual_rtt) = self.round_trips();
        // As long as a flow of 25 ms takes to come back.
        self.calm = self.window.size * RTT_VIRTUAL / rtt.max(RTT_VIRTUAL / 25.0) * RTT_VIRTUAL / virtual_rtt;
    }

    /// 2.4.3: what is acknowledged without a mark lets the window grow.
    fn grow(&mut self, report: &Report) {
        let unmarked = 1.0 - (report.marked as f64 / report.packets.max(report.marked).max(1) as f64);
        if self.window.in_slow_start() {
            match self.hystart.on_report(report) {
                Some(growth) => self.window.slow_start(report.delivered, growth * unmarked),
                None => self.window.threshold = self.window.size,
            }
            return;
        }
        let (rtt, virtual_rtt) = self.round_trips();
        let in_growth = self.window.size * CALM_GROWTH / rtt.max(CALM_GROWTH);
        let increment = if self.calm > 0.0 { 1.0 } else { in_growth.max(1.0) };
        let scale = rtt / virtual_rtt;
        let acked = self.window.units.packets(report.delivered) * unmarked;
        self.window.size += acked / self.window.size * increment * scale * scale;
    }
}

impl Controller for Prague {
    fn set_bounds(&mut self, _now: Instant, bounds: Bounds) {
        self.window.units.set_bounds(bounds);
    }

    fn on_round_trip(&mut self, _now: Instant, rtt: Duration) {
        self.window.units.on_round_trip(rtt);
        self.start_rate.begin(&mut self.window);
    }

    fn on_report(&mut self, now: Instant, report: &Report) {
        self.window.units.on_report(report);
        self.start_rate.begin(&mut self.window);
        if let Some(size) = self.start_rate.on_report(&self.window.units, report) {
            self.window.size = self.window.size.min(size);
        }
        self.update_alpha(now, report);
        if report.event == Some(CongestionEvent::Loss) {
            self.on_loss(now, report);
        }
        if report.recovering {
            return;
        }
        if report.marked > 0 {
            self.on_marks(now, report);
        }
        if !matches!(report.limited, Some(Limit::Application | Limit::Window)) && !self.start_rate.is_unvalidated() {
            self.grow(report);
        }
    }

    fn on_silence(&mut self, _now: Instant, silence: &Silence) {
        let Some(expiry) = silence.timeout else { return };
        if expiry == 1 {
            self.window.threshold = (self.window.size * AFTER_LOSS).max(LEAST);
        }
        self.window.size = 1.0;
        self.hystart = HyStart::default();
    }

    fn on_path_change(&mut self, now: Instant) {
        self.window.units.forget_path();
        *self = Self::with(now, self.counting.span.delivered, self.window.units);
    }

    fn pacing_rate(&self) -> Option<Bandwidth> {
        let doubles = self.window.in_slow_start() && !self.start_rate.is_unvalidated();
        self.window.units.rate(if doubles { PACING_SLOW_START * self.window.size } else { self.window.size })
    }

    fn in_flight_cap(&self) -> Bytes {
        self.window.units.cap(self.window.size * (1.0 + SLACK) + SLACK_PACKETS)
    }

    fn quantum(&self) -> Option<Bytes> {
        let rate = self.pacing_rate()?.bits_per_second() as f64 / 8.0;
        Some(Bytes::new((rate * BURST) as u64).max(Bytes::new(self.window.units.datagram())))
    }

    fn is_scalable(&self) -> bool {
        true
    }

    fn exchange_period(&self) -> Duration {
        self.window.units.exchange_period(self.window.size)
    }

    fn phase(&self) -> &'static str {
        self.window.phase()
    }

    /// Gauges: `window_packets` and `alpha`.
    fn probe(&self, out: &mut dyn Probe) {
        out.gauge("window_packets", self.window.size);
        out.gauge("alpha", self.alpha);
    }
}

#[cfg(test)]
mod tests {
    use super::super::DeliverySample;
    use super::*;
    use segstream_base::random::Seed;

    const DATAGRAM: u64 = 1000;

    /// A flow of which each round trip of so many milliseconds is one report.
    struct Flow {
        prague: Prague,
        now: Instant,
        rtt: Duration,
        delivered: u64,
    }

    impl Flow {
        fn new(rtt_ms: u64) -> Self {
            let peak = Bandwidth::from_megabits_per_second(10_000);
            let bounds = Bounds { floor: Bandwidth::from_bits_per_second(64_000), peak, datagram: Bytes::new(DATAGRAM) };
            let rtt = Duration::from_millis(rtt_ms);
            let mut prague = Prague::new(Start::new(Instant::ZERO, bounds, Seed(1)));
            prague.on_round_trip(Instant::ZERO, rtt);
            Self { prague, now: Instant::ZERO, rtt, delivered: 0 }
        }

        /// A round trip in which a window is acknowledged, of which so many packets were marked.
        fn round(&mut self, marked: u64, event: Option<CongestionEvent>) {
            self.now += self.rtt;
            let (before, packets) = (self.delivered, self.prague.window.size as u64);
            self.delivered += packets * DATAGRAM;
            let sample = DeliverySample { rate: None, prior_delivered: before, app_limited: false, tx_in_flight: 0, lost: 0, marked };
            let report = Report {
                delivered: packets * DATAGRAM,
                packets,
                marked,
                delivered_total: self.delivered,
                sample: Some(sample),
                rtt: Some(self.rtt),
                rtt_min: self.rtt,
                limited: Some(Limit::Cap),
                event,
                ..Report::default()
            };
            self.prague.on_report(self.now, &report);
        }
    }

    #[test]
    fn slow_start_doubles_and_the_first_mark_halves() {
        let mut flow = Flow::new(40);
        flow.round(0, None);
        flow.round(0, None);
        assert_eq!((flow.prague.window.size, flow.prague.phase()), (40.0, "slow_start"));
        flow.round(1, Some(CongestionEvent::Mark));
        // Half, and what the unmarked ones let it grow by.
        assert!((20.0..22.0).contains(&flow.prague.window.size), "{}", flow.prague.window.size);
        assert_eq!(flow.prague.phase(), "congestion_avoidance");
    }

    #[test]
    fn the_window_falls_by_half_the_share_of_marks() {
        let mut flow = Flow::new(40);
        (flow.prague.window.size, flow.prague.window.threshold) = (100.0, 100.0);
        for _ in 0..200 {
            flow.prague.window.size = 100.0;
            flow.round(10, Some(CongestionEvent::Mark));
        }
        assert!((0.099..0.101).contains(&flow.prague.alpha), "{}", flow.prague.alpha);
        // 5 % less, and nine tenths of a packet more.
        assert!((95.5..96.1).contains(&flow.prague.window.size), "{}", flow.prague.window.size);
    }

    #[test]
    fn two_marks_a_round_trip_are_the_balance() {
        let mut flow = Flow::new(40);
        (flow.prague.window.size, flow.prague.window.threshold, flow.prague.alpha) = (60.0, 60.0, 2.0 / 60.0);
        for _ in 0..300 {
            flow.round(2, Some(CongestionEvent::Mark));
        }
        // W alpha / 2 = 1 - 2 / W.
        assert!((50.0..70.0).contains(&flow.prague.window.size), "{}", flow.prague.window.size);
    }

    #[test]
    fn a_loss_halves_and_marks_of_the_same_round_trip_do_nothing_more() {
        let mut flow = Flow::new(40);
        (flow.prague.window.size, flow.prague.window.threshold) = (80.0, 80.0);
        flow.round(5, Some(CongestionEvent::Loss));
        assert!((40.0..42.0).contains(&flow.prague.window.size), "{}", flow.prague.window.size);
    }

    #[test]
    fn short_round_trips_take_the_share_of_one_of_25_ms() {
        let grown = |rtt_ms: u64| {
            let mut flow = Flow::new(rtt_ms);
            (flow.prague.window.size, flow.prague.window.threshold, flow.prague.calm) = (50.0, 50.0, 100.0);
            // A fifth of a second, which is not long enough without marks for more than a packet a round trip.
            (0..200 / rtt_ms).for_each(|_| flow.round(0, None));
            flow.prague.window.size - 50.0
        };
        // At 5 ms there are five times as many round trips, and each adds a twenty-fifth.
        let (short, long) = (grown(5), grown(25));
        assert!((0.15..0.25).contains(&(short / long)), "{short} and {long}");
    }
}
