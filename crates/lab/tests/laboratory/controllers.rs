//! Every congestion controller runs under the flagship as it does under TCP, and so does a user's own.

use segstream_base::halves::Probe;
use segstream_base::random::Seed;
use segstream_base::{Bandwidth, Bytes, Duration, Instant, Tolerance};
use segstream_blocks::congestion::{
    ALGORITHMS, Algorithm, Bounds, Clock, Controller, Report, Silence, Start, cubic, exchange_period, reno,
};
use segstream_lab::flagship;
use segstream_lab::scenario::Scenario;
use segstream_lab::shared::{Pace, SharedFlow, SharedOutcome, SharedScenario, Traffic, run};

/// A window of this many packets, whatever happens: all that a controller needs.
#[derive(Debug)]
struct FixedWindow {
    datagram: u64,
    rtt: Option<Duration>,
    /// Bytes it was told to have been delivered.
    delivered: u64,
}

const WINDOW: u64 = 100;

static FIXED_WINDOW: Algorithm = Algorithm {
    name: "fixed_window",
    about: "a window of 100 packets",
    offered: false,
    clock: Clock::Reports,
    responds_to_ecn: false,
    start: |Start { bounds, .. }| Box::new(FixedWindow { datagram: bounds.datagram.get(), rtt: None, delivered: 0 }),
};

impl Controller for FixedWindow {
    fn set_bounds(&mut self, _now: Instant, bounds: Bounds) {
        self.datagram = bounds.datagram.get();
    }

    fn on_round_trip(&mut self, _now: Instant, rtt: Duration) {
        self.rtt = Some(rtt);
    }

    fn on_report(&mut self, _now: Instant, report: &Report) {
        self.delivered += report.delivered;
        self.rtt = report.rtt.or(self.rtt);
    }

    fn on_silence(&mut self, _now: Instant, _silence: &Silence) {}

    fn on_path_change(&mut self, _now: Instant) {
        self.rtt = None;
    }

    fn pacing_rate(&self) -> Option<Bandwidth> {
        None
    }

    fn in_flight_cap(&self) -> Bytes {
        Bytes::new(WINDOW * self.datagram)
    }

    fn exchange_period(&self) -> Duration {
        exchange_period(self.rtt, 0.0)
    }

    fn phase(&self) -> &'static str {
        "fixed"
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.gauge("delivered_bytes", self.delivered as f64);
    }
}

/// The flagship with `congestion` and a window of this many segments of 36 kB.
pub(crate) fn traffic(congestion: &'static Algorithm, window: u32) -> Traffic {
    let scenario = Scenario::default().with(|it| {
        it.scheme = flagship::Settings::default().into();
        it.workload.packet_bytes = 1144;
        it.workload.segment_packets = 32;
        it.workload.tolerance = Tolerance::reliable(32);
        it.workload.window = window;
    });
    Traffic::Scheme { scenario: Box::new(scenario), pace: Pace::Controlled(congestion) }
}

fn flagship(name: &str, congestion: &'static Algorithm) -> SharedFlow {
    SharedFlow::new(name, traffic(congestion, 400))
}

/// 20 Mbit/s and 60 ms, with a queue of one bandwidth-delay product.
fn link(flows: Vec<SharedFlow>, seconds: u64) -> SharedScenario {
    SharedScenario {
        bandwidth: Bandwidth::from_megabits_per_second(20),
        queue: Bytes::new(150_000),
        duration: Duration::from_secs(seconds),
        warm_up: Duration::from_secs(5),
        flows,
        ..SharedScenario::default()
    }
}

/// What comes of a scenario in which nothing goes wrong.
pub(crate) fn outcome(scenario: &SharedScenario) -> SharedOutcome {
    let (outcome, _) = run(scenario, Seed(1)).unwrap();
    assert_eq!(outcome.trouble, None);
    outcome
}

fn throughput(outcome: &SharedOutcome, flow: &str) -> f64 {
    outcome.flow(flow).unwrap().throughput_bps()
}

#[test]
fn a_users_own_controller_runs_under_the_flagship_and_under_tcp() {
    // 100 packets a round trip of 60 ms: 15.3 and 20 Mbit/s on a link of 100.
    for (flow, packet) in [(flagship("own", &FIXED_WINDOW), 1144.0), (SharedFlow::new("own", Traffic::tcp(&FIXED_WINDOW)), 1500.0)] {
        let scenario = SharedScenario { bandwidth: Bandwidth::from_megabits_per_second(100), ..link(vec![flow], 10) };
        let outcome = outcome(&scenario);
        let ratio = throughput(&outcome, "own") / (WINDOW as f64 * packet * 8.0 / 0.060);
        assert!((0.9..1.02).contains(&ratio), "packets of {packet} bytes: {ratio}");
        assert_eq!(outcome.link_dropped_queue, 0);
    }
}

#[test]
fn every_controller_fills_a_link_under_the_flagship() {
    for congestion in ALGORITHMS {
        let outcome = outcome(&link(vec![flagship("ours", congestion)], 20));
        let share = throughput(&outcome, "ours") / 20e6;
        assert!(share > 0.9, "{congestion:?}: {share}");
        let sent = outcome.flow("ours").unwrap();
        assert!(sent.packets_retransmitted * 20 < sent.packets_sent, "{congestion:?}: {sent:?}");
    }
}

#[test]
fn every_controller_goes_on_after_an_outage_under_the_flagship() {
    for congestion in ALGORITHMS {
        let trace = "0s:20mbit,5s:0bit,8s:20mbit".parse().unwrap();
        let scenario = SharedScenario { trace, warm_up: Duration::from_secs(12), ..link(vec![flagship("ours", congestion)], 25) };
        let share = throughput(&outcome(&scenario), "ours") / 20e6;
        assert!(share > 0.8, "{congestion:?}: {share}");
    }
}

#[test]
fn a_controller_gets_of_a_link_under_the_flagship_about_what_it_gets_under_tcp() {
    for congestion in [&cubic::ALGORITHM, &reno::ALGORITHM] {
        let flows = vec![flagship("ours", congestion), SharedFlow::new("tcp", Traffic::tcp(congestion))];
        let outcome = outcome(&link(flows, 60));
        let (ours, tcp) = (throughput(&outcome, "ours"), throughput(&outcome, "tcp"));
        assert!((0.4..2.5).contains(&(ours / tcp)), "{congestion:?}: {ours} beside {tcp}");
        assert!(ours + tcp > 0.9 * 20e6, "{congestion:?}: {ours} and {tcp}");
    }
}
