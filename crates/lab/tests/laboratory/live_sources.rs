//! Live sources at an automatic rate that is known in advance: how many of their segments are accepted before they expire.

use super::controllers::traffic;
use segstream_base::random::Seed;
use segstream_base::{Bandwidth, Bytes, Duration, Instant, Tolerance};
use segstream_blocks::congestion::{Algorithm, auto, bbr1, cubic};
use segstream_lab::shared::{Application, FlowOutcome, SharedFlow, SharedOutcome, SharedScenario, Traffic, run};

/// A path in Mbit/s, milliseconds and bytes of queue, the Mbit/s of the source, and the lifetime of its segments.
struct Path {
    mbit: f64,
    rtt_ms: u64,
    queue: u64,
    source_mbit: f64,
    lifetime_ms: u64,
}

const SECONDS: u64 = 30;

fn bandwidth(mbit: f64) -> Bandwidth {
    Bandwidth::from_bits_per_second((mbit * 1e6) as u64)
}

fn second(second: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(second)
}

impl Path {
    /// The source from `start` on, on and off for five seconds in turn, beside what `others` are.
    fn run(&self, start: u64, others: Vec<SharedFlow>, seed: u64) -> SharedOutcome {
        let rtt = Duration::from_millis(self.rtt_ms);
        let pauses: Vec<_> = (0..4).map(|turn| (second(start + 5 + 10 * turn), second(start + 10 + 10 * turn))).collect();
        let application = Application::periodic(bandwidth(self.source_mbit)).idle_in(&pauses);
        let application = application.live(Duration::from_millis(self.lifetime_ms));
        let live = SharedFlow { application, start: second(start), rtt, ..SharedFlow::new("live", short_segments()) };
        let scenario = SharedScenario {
            bandwidth: bandwidth(self.mbit),
            queue: Bytes::new(self.queue),
            duration: Duration::from_secs(SECONDS),
            warm_up: Duration::ZERO,
            flows: others.into_iter().map(|flow| SharedFlow { rtt, ..flow }).chain([live]).collect(),
            ..SharedScenario::default()
        };
        run(&scenario, Seed(seed)).expect("it runs").0
    }
}

/// Segments of eight packets, 9 kB.
fn short_segments() -> Traffic {
    let mut traffic = traffic(&auto::ALGORITHM, 1024);
    if let Traffic::Scheme { scenario, .. } = &mut traffic {
        scenario.workload.segment_packets = 8;
        scenario.workload.tolerance = Tolerance::reliable(8);
    }
    traffic
}

fn tcp(congestion: &'static Algorithm, start: u64) -> SharedFlow {
    SharedFlow { start: second(start), ..SharedFlow::new("tcp", Traffic::tcp(congestion)) }
}

/// The part of the segments that were accepted before they expired.
fn in_time(outcome: &SharedOutcome) -> f64 {
    outcome.flow("live").and_then(FlowOutcome::accepted_share).expect("segments are judged")
}

/// Paths on which sources once waited for seconds: what others queued, or lost, when the source or the other began had left it a fraction of its
/// rate; a burst made it give way for ten seconds, to nothing; or it took a fast path for a slow one.
#[test]
fn a_live_source_beside_cubic_has_nearly_all_of_its_segments_in_time() {
    let paths = [
        (Path { mbit: 20.0, rtt_ms: 40, queue: 100_000, source_mbit: 8.0, lifetime_ms: 200 }, 2, 0),
        (Path { mbit: 120.0, rtt_ms: 23, queue: 144_900, source_mbit: 14.0, lifetime_ms: 85 }, 0, 2),
        (Path { mbit: 18.0, rtt_ms: 27, queue: 85_050, source_mbit: 3.4, lifetime_ms: 170 }, 0, 0),
        (Path { mbit: 28.0, rtt_ms: 160, queue: 324_800, source_mbit: 6.5, lifetime_ms: 640 }, 0, 2),
        (Path { mbit: 130.0, rtt_ms: 130, queue: 1_014_000, source_mbit: 54.0, lifetime_ms: 480 }, 0, 0),
    ];
    for (path, start, other) in paths {
        let mut parts: Vec<f64> = (1..=3).map(|seed| in_time(&path.run(start, vec![tcp(&cubic::LINUX, other)], seed))).collect();
        parts.sort_by(f64::total_cmp);
        assert!(parts[1] > 0.985 && parts[0] > 0.9, "{} of {} Mbit/s: {parts:?}", path.source_mbit, path.mbit);
    }
}

/// BBR version 1 does not answer loss, and of three CUBICs one begins another round of loss every few seconds: neither may make the source give way.
#[test]
fn a_live_source_that_asks_for_a_third_is_in_time_beside_bbr_and_beside_three_cubics() {
    let path = Path { mbit: 20.0, rtt_ms: 40, queue: 100_000, source_mbit: 6.0, lifetime_ms: 200 };
    for (congestion, count) in [(&bbr1::ALGORITHM, 1), (&cubic::LINUX, 3)] {
        for seed in 1..=3 {
            let others = (0..count).map(|number| SharedFlow { name: format!("tcp{number}"), ..tcp(congestion, 0) }).collect();
            let part = in_time(&path.run(2, others, seed));
            assert!(part > 0.97, "{part} beside {count} {}, seed {seed}", congestion.name);
        }
    }
}

/// Until the next drain has told that nobody else is there it competes.
#[test]
fn a_live_source_that_the_link_cannot_carry_uses_all_of_it_and_loses_little() {
    let path = Path { mbit: 5.0, rtt_ms: 40, queue: 25_000, source_mbit: 8.0, lifetime_ms: 200 };
    let outcome = path.run(0, Vec::new(), 1);
    let live = outcome.flow("live").expect("it runs");
    let carried = live.bytes_arrived as f64 * 8.0 / 15.0;
    assert!(carried > 4.9e6 && live.loss_share() < 0.05, "{carried} bit/s with a loss of {}", live.loss_share());
}
