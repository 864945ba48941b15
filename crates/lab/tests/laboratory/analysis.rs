//! The simulator against closed forms: many points, each with a score that must be standard normal when the
//! simulator is right.

use segstream_base::Tolerance;
use segstream_base::random::Seed;
use segstream_base::{Bandwidth, Duration};
use segstream_lab::closed_forms::{Point, rounds_mean};
use segstream_lab::outcome::Outcome;
use segstream_lab::run::run;
use segstream_lab::runner::replication_seed;
use segstream_lab::scenario::Scenario;
use segstream_lab::statistics::{Normality, z_score};
use segstream_schemes::sstp::FeedbackMode;

const REPLICATIONS: u32 = 24;

/// With a window of one segment and ideal feedback the analysis is exact: nothing is sent between a segment's
/// first pass and its repetitions.
fn one_at_a_time(megabits: u64, rtt_ms: u64, segment_packets: u32, p: f64) -> Scenario {
    Scenario::default().with(|it| {
        it.black_box.bandwidth = Bandwidth::from_megabits_per_second(megabits);
        it.black_box.rtt = Duration::from_millis(rtt_ms);
        it.workload.segment_packets = segment_packets;
        it.workload.window = 1;
        it.workload.tolerance = Tolerance::reliable(segment_packets);
        it.black_box.loss = format!("random:{p}").parse().unwrap();
        it.black_box.feedback = FeedbackMode::Ideal;
        it.workload.packets = u64::from(segment_packets) * 60;
    })
}

fn point(scenario: &Scenario) -> Point {
    Point {
        bandwidth_bps: scenario.black_box.bandwidth.bits_per_second() as f64,
        rtt_s: scenario.black_box.rtt.as_secs_f64(),
        packet_bytes: scenario.workload.packet_bytes,
        segment_packets: scenario.workload.segment_packets,
    }
}

/// The points and their loss probabilities.
fn grid() -> Vec<(Scenario, f64)> {
    let mut grid = Vec::new();
    for (megabits, rtt_ms) in [(50, 10), (100, 60), (155, 35), (500, 60), (1000, 100)] {
        for segment_packets in [16, 64, 256] {
            for p in [0.002, 0.005, 0.01, 0.03, 0.1] {
                grid.push((one_at_a_time(megabits, rtt_ms, segment_packets, p), p));
            }
        }
    }
    grid
}

/// What each replication of each point gives for `measure`, as a score against what `truth` says.
fn scores(root: u64, measure: impl Fn(&Scenario, &Outcome) -> f64, truth: impl Fn(&Scenario, f64) -> f64) -> Vec<f64> {
    let mut scores = Vec::new();
    for (at, (scenario, p)) in grid().iter().enumerate() {
        // Points must be independent of each other, so each has a root of its own.
        let root = Seed(root).child(&format!("point-{at}"));
        let values: Vec<f64> = (0..REPLICATIONS)
            .map(|replication| {
                let outcome = run(scenario, replication_seed(root, replication)).unwrap().outcome;
                assert_eq!(outcome.trouble, None, "{}", scenario.canonical());
                measure(scenario, &outcome)
            })
            .collect();
        scores.push(z_score(&values, truth(scenario, *p)).unwrap());
    }
    scores
}

fn delay_scores(seconds_off: f64) -> Vec<f64> {
    scores(1, |_, outcome| outcome.delay_ms_mean() * 1e-3, |scenario, p| point(scenario).receiver_delay(p) + seconds_off)
}

fn repetition_scores() -> Vec<f64> {
    scores(2, |_, outcome| outcome.packets_retransmitted as f64 / outcome.packets_sent as f64, |_, p| p)
}

/// Rounds, seen through the time a whole run takes: each segment keeps the window for D_s.
fn span_scores() -> Vec<f64> {
    scores(
        3,
        |scenario, outcome| {
            let point = point(scenario);
            // The last segment is done when it is accepted, not when the sender hears of it.
            let segments = outcome.segments_delivered as f64;
            let tail = point.rtt_s + 3.0 * point.packet_time();
            (outcome.span_ns as f64 * 1e-9 + tail) / segments
        },
        |scenario, p| {
            let point = point(scenario);
            point.segment_time() / (1.0 - p) + point.acknowledgment_time() * rounds_mean(scenario.workload.segment_packets, p)
        },
    )
}

#[test]
fn delays_repetitions_and_spans_score_as_standard_normal_against_the_analysis() {
    let all = [delay_scores(0.0), repetition_scores(), span_scores()].concat();
    assert!(all.len() >= 200, "{} points are too few", all.len());
    let normality = Normality::of(&all).unwrap();
    assert!(normality.looks_standard(0.001), "{normality:?}");
}

#[test]
fn a_simulator_that_is_off_by_three_packet_times_would_be_found() {
    // Three packet times at 155 Mbit/s are 0.16 ms, a quarter of a percent of the round trip.
    let normality = Normality::of(&delay_scores(0.16e-3)).unwrap();
    assert!(!normality.looks_standard(0.001), "{normality:?}");
}
