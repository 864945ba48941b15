//! What holds of every congestion controller whatever it is told, by any sequence of events that a path or a hostile peer can make.

use proptest::prelude::*;
use segstream_base::random::Seed;
use segstream_base::{Bandwidth, Bytes, Duration, Instant};
use segstream_blocks::congestion::rate_sample::{Deliveries, Departure};
use segstream_blocks::congestion::{
    ALGORITHMS, Algorithm, Bounds, CongestionEvent, Controller, DeliverySample, Exchange, Limit, Report, Silence, Start,
};
use std::collections::VecDeque;

const DATAGRAM: u64 = 1228;

const BOUNDS: Bounds = Bounds {
    floor: Bandwidth::from_bits_per_second(100_000),
    peak: Bandwidth::from_megabits_per_second(10_000),
    datagram: Bytes::new(DATAGRAM),
};

/// One that knows a rate in advance, or not.
fn started(algorithm: &Algorithm, initial: Option<Bandwidth>) -> Box<dyn Controller> {
    (algorithm.start)(Start { initial, ..Start::new(Instant::ZERO, BOUNDS, Seed(1)) })
}

fn start(algorithm: &Algorithm) -> Box<dyn Controller> {
    started(algorithm, None)
}

/// What holds after every event.
fn check(algorithm: &Algorithm, controller: &dyn Controller) -> Result<(), TestCaseError> {
    let (name, rate, cap) = (algorithm.name, controller.pacing_rate(), controller.in_flight_cap().get());
    // Models of cross traffic leave the bounds to their sender.
    if algorithm.offered
        && let Some(rate) = rate
    {
        prop_assert!((BOUNDS.floor..=BOUNDS.peak).contains(&rate), "{}: {}", name, rate);
    }
    prop_assert!(cap >= DATAGRAM, "{}: a cap of {}", name, cap);
    let period = controller.exchange_period();
    prop_assert!((Duration::from_millis(1)..=Duration::from_millis(420)).contains(&period), "{}: {}", name, period);
    prop_assert!(controller.quantum().is_none_or(|quantum| quantum.get() > 0), "{}", name);
    Ok(())
}

/// Something that a controller is told, with any numbers: a peer has a part in most of them.
#[derive(Clone, Debug)]
enum Told {
    Report(Report),
    Exchange(Exchange),
    Silence(Silence),
    RoundTrip(Duration),
    PathChange,
    Bounds,
}

/// Numbers of any size, small ones and the largest among them.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(1), 0..100_u64, 0..10_000_000_u64, any::<u64>(), Just(u64::MAX)]
}

fn duration() -> impl Strategy<Value = Duration> {
    number().prop_map(Duration::from_nanos)
}

fn limit() -> impl Strategy<Value = Option<Limit>> {
    prop_oneof![Just(None), Just(Some(Limit::Application)), Just(Some(Limit::Window)), Just(Some(Limit::Cap))]
}

prop_compose! {
    fn sample()(rate in proptest::option::of(number()), prior_delivered in number(), app_limited: bool, tx_in_flight in number(),
                lost in number(), marked in number()) -> DeliverySample {
        let rate = rate.map(Bandwidth::from_bits_per_second);
        DeliverySample { rate, prior_delivered, app_limited, tx_in_flight, lost, marked }
    }
}

prop_compose! {
    fn report()((delivered, packets, lost, marked) in (number(), number(), number(), number()),
                (in_flight, in_flight_before, delivered_total) in (number(), number(), number()),
                sample in proptest::option::of(sample()), rtt in proptest::option::of(duration()), rtt_min in duration(),
                limited in limit(), event in proptest::option::of(prop_oneof![Just(CongestionEvent::Loss), Just(CongestionEvent::Mark)]),
                recovered: bool, recovering: bool) -> Report {
        Report { delivered, packets, lost, marked, in_flight, in_flight_before, delivered_total, sample, rtt, rtt_min, limited, event,
                 recovered, recovering }
    }
}

prop_compose! {
    fn exchange()((alpha, beta, rtt) in (duration(), duration(), duration()), (sent_bytes, received_bytes) in (number(), number()),
                  (exchanges, shipments, lost, marked) in (number(), number(), number(), number()), delay: i64, limited in limit(),
                  limited_for in duration()) -> Exchange {
        Exchange { sent_at: Instant::ZERO, alpha, beta, exchanges, sent_bytes, received_bytes, shipments, lost, marked, delay, rtt, limited,
                   limited_for }
    }
}

fn told() -> impl Strategy<Value = Told> {
    prop_oneof![
        8 => report().prop_map(Told::Report),
        3 => exchange().prop_map(Told::Exchange),
        1 => (any::<u32>(), duration(), number(), proptest::option::of(any::<u32>()))
            .prop_map(|(unanswered, since, in_flight, timeout)| Told::Silence(Silence { unanswered, since, in_flight, timeout })),
        1 => duration().prop_map(Told::RoundTrip),
        1 => Just(Told::PathChange),
        1 => Just(Told::Bounds),
    ]
}

fn tell(controller: &mut dyn Controller, now: Instant, told: &Told) {
    match told {
        Told::Report(report) => controller.on_report(now, report),
        Told::Exchange(exchange) => controller.on_exchange(now, exchange),
        Told::Silence(silence) => controller.on_silence(now, silence),
        Told::RoundTrip(rtt) => controller.on_round_trip(now, *rtt),
        Told::PathChange => controller.on_path_change(now),
        Told::Bounds => controller.set_bounds(now, BOUNDS),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_told_the_answers_are_numbers_within_bounds(
        events in prop::collection::vec((0..1000_u64, told()), 1..60),
        initial in proptest::option::of(number().prop_map(Bandwidth::from_bits_per_second)),
    ) {
        for algorithm in ALGORITHMS {
            let mut controller = started(algorithm, initial);
            let mut now = Instant::ZERO;
            for (millis, told) in &events {
                now += Duration::from_millis(*millis);
                tell(controller.as_mut(), now, told);
                check(algorithm, controller.as_ref())?;
            }
        }
    }
}

/// What a path does with a sender that keeps to its controller.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Packets leave, so many at most.
    Send(u8),
    /// Time passes, in milliseconds.
    Wait(u8),
    /// The oldest packets in flight are acknowledged, of which some were marked.
    Acknowledge(u8, bool),
    /// The oldest is lost, those behind it acknowledged.
    Lose(u8),
    /// The retransmission timeout expires.
    TimeOut,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => any::<u8>().prop_map(Step::Send),
        2 => any::<u8>().prop_map(Step::Wait),
        6 => (1..64_u8, any::<bool>()).prop_map(|(packets, marked)| Step::Acknowledge(packets, marked)),
        2 => (1..8_u8).prop_map(Step::Lose),
        1 => Just(Step::TimeOut),
    ]
}

/// A sender of full packets.
struct Sender {
    controller: Box<dyn Controller>,
    now: Instant,
    deliveries: Deliveries,
    packets: VecDeque<Departure>,
    recovery: Option<Instant>,
    limited: Option<Limit>,
    timeouts: u32,
}

impl Sender {
    fn new(algorithm: &Algorithm) -> Self {
        let mut controller = start(algorithm);
        controller.on_round_trip(Instant::ZERO, Duration::from_millis(30));
        let (deliveries, packets) = (Deliveries::default(), VecDeque::new());
        Self { controller, now: Instant::ZERO, deliveries, packets, recovery: None, limited: None, timeouts: 0 }
    }

    fn in_flight(&self) -> u64 {
        self.packets.len() as u64 * DATAGRAM
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Send(most) => {
                for _ in 0..most {
                    if self.in_flight() >= self.controller.in_flight_cap().get() {
                        self.limited = Some(Limit::Cap);
                        return;
                    }
                    self.packets.push_back(self.deliveries.depart(self.now, self.in_flight(), DATAGRAM));
                }
            }
            Step::Wait(millis) => self.now += Duration::from_millis(u64::from(millis)),
            Step::Acknowledge(packets, marked) => self.report(0, u64::from(packets), u64::from(marked)),
            Step::Lose(behind) => self.report(1, u64::from(behind), 0),
            Step::TimeOut => {
                self.timeouts += 1;
                let silence =
                    Silence { unanswered: 0, since: Duration::from_secs(1), in_flight: self.in_flight(), timeout: Some(self.timeouts) };
                self.controller.on_silence(self.now, &silence);
            }
        }
    }

    fn report(&mut self, lost: u64, packets: u64, marked: u64) {
        let in_flight_before = self.in_flight();
        let lost = lost.min(self.packets.len() as u64);
        self.packets.drain(..lost as usize);
        let packets = packets.min(self.packets.len() as u64);
        let Some(newest) = self.packets.drain(..packets as usize).next_back() else { return };
        self.timeouts = 0;
        self.deliveries.deliver(self.now, packets * DATAGRAM);
        self.deliveries.lose(lost * DATAGRAM);
        self.deliveries.mark(marked);
        let recovered = self.recovery.is_some_and(|since| newest.sent_at >= since);
        self.recovery = self.recovery.filter(|_| !recovered);
        let event = (lost > 0 && self.recovery.is_none()).then_some(CongestionEvent::Loss);
        self.recovery = self.recovery.or(event.map(|_| self.now));
        let rtt = self.now.since(newest.sent_at);
        let report = Report {
            delivered: packets * DATAGRAM,
            packets,
            lost: lost * DATAGRAM,
            marked,
            in_flight: self.in_flight(),
            in_flight_before,
            delivered_total: self.deliveries.total(),
            sample: Some(self.deliveries.sample(&newest)),
            rtt: Some(rtt),
            rtt_min: rtt,
            limited: self.limited.take(),
            event: event.or((marked > 0).then_some(CongestionEvent::Mark)),
            recovered,
            recovering: self.recovery.is_some(),
        };
        self.controller.on_report(self.now, &report);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// No law here lets a window grow by more than what is acknowledged: slow start and startup do so by all of it, and all begin with
    /// ten packets (RFC 6928). `auto` bounds what is in flight by its rate instead.
    #[test]
    fn no_more_is_in_flight_than_was_acknowledged_and_ten_packets(steps in prop::collection::vec(step(), 1..200)) {
        for algorithm in ALGORITHMS.iter().filter(|algorithm| algorithm.name != "auto") {
            let mut sender = Sender::new(algorithm);
            for step in &steps {
                sender.take(*step);
                check(algorithm, sender.controller.as_ref())?;
                let grown = 10 * DATAGRAM + sender.deliveries.total();
                // Prague's cap is an eighth and two packets above its window.
                let most = if algorithm.name == "prague" { grown + grown / 8 + 3 * DATAGRAM } else { grown };
                let cap = sender.controller.in_flight_cap().get();
                prop_assert!(cap <= most, "{}: {} above {}", algorithm.name, cap, most);
            }
        }
    }

    /// After a timeout little may leave until something comes back (RFC 5681 3.1, RFC 9002 7.6.2).
    #[test]
    fn a_timeout_leaves_a_packet_or_so(steps in prop::collection::vec(step(), 1..100)) {
        for algorithm in ALGORITHMS.iter().filter(|algorithm| algorithm.name != "auto") {
            let mut sender = Sender::new(algorithm);
            steps.iter().for_each(|step| sender.take(*step));
            sender.take(Step::TimeOut);
            let cap = sender.controller.in_flight_cap().get();
            prop_assert!(cap <= 3 * DATAGRAM, "{}: {}", algorithm.name, cap);
        }
    }
}

#[test]
fn exchanges_leave_most_of_a_low_peak_to_data() {
    // 300 kbit/s are a packet each 32.7 ms; three of them lie between two exchanges, whatever a window allows on a LAN.
    let bounds = Bounds { peak: Bandwidth::from_bits_per_second(300_000), ..BOUNDS };
    for algorithm in ALGORITHMS {
        let mut controller = (algorithm.start)(Start::new(Instant::ZERO, bounds, Seed(1)));
        controller.on_round_trip(Instant::ZERO, Duration::from_micros(500));
        assert!(controller.exchange_period() > Duration::from_millis(57), "{algorithm:?}: {}", controller.exchange_period());
    }
}
