//! Results depend on scenario and seed alone: not on threads, not on the order of points, not on the store,
//! not on whether packets are encoded.

use segstream_base::random::Seed;
use segstream_lab::outcome::Outcome;
use segstream_lab::plan::Plan;
use segstream_lab::registry::SCHEMES;
use segstream_lab::run::run_observed;
use segstream_lab::runner::{Progress, Runner, RunnerError};
use segstream_lab::scenario::Scenario;
use segstream_lab::store::Store;
use segstream_schemes::sstp::FeedbackMode;
use segstream_schemes::transport::{Takes, UsualPoint};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const PLAN: Plan = Plan { packets: 25_600, replications_min: 3, replications_max: 6, half_width: 0.01, losses_min: 10, trial: None };

fn points() -> Vec<(Scenario, Plan)> {
    let mut points = Vec::new();
    for scheme in SCHEMES {
        for p in ["1e-4", "1e-2", "bursty:good=1620ms,bad=180ms,loss=0.1"] {
            // Why a short one: TCP's list of timers is as long as its window, and is searched.
            let usual = Scenario::of(scheme);
            let window = if scheme.usual_point == UsualPoint::ProcessorBound { 2 } else { usual.workload.window };
            let scenario = usual.with(|it| {
                it.black_box.loss = p.parse().unwrap();
                it.workload.window = window;
            });
            points.push((scenario, PLAN));
        }
    }
    points
}

fn run(points: &[(Scenario, Plan)], threads: usize, store: Option<&Store>) -> (Vec<Vec<Outcome>>, u64) {
    let simulated = AtomicU64::new(0);
    let runner = Runner {
        seed: Seed(7),
        store,
        threads,
        progress: &|progress: Progress| {
            simulated.fetch_max(progress.packets, Ordering::Relaxed);
        },
        stop: &AtomicBool::new(false),
        only_stored: false,
    };
    let results = runner.run(points).unwrap();
    (results.into_iter().map(|result| result.outcomes).collect(), simulated.into_inner())
}

#[test]
fn one_two_and_seven_threads_give_the_same_results() {
    let (alone, _) = run(&points(), 1, None);
    for threads in [2, 7] {
        assert_eq!(run(&points(), threads, None).0, alone, "{threads} threads");
    }
}

#[test]
fn the_order_of_points_does_not_matter() {
    let mut turned = points();
    turned.reverse();
    let (mut results, _) = run(&turned, 2, None);
    results.reverse();
    assert_eq!(results, run(&points(), 2, None).0);
}

#[test]
fn a_second_sweep_over_a_store_runs_nothing_and_gives_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("store")).unwrap();
    let (first, simulated) = run(&points(), 2, Some(&store));
    assert!(simulated > 0);
    let (second, simulated) = run(&points(), 2, Some(&store));
    assert_eq!((second, simulated), (first, 0));
}

#[test]
fn an_interrupted_sweep_goes_on_where_it_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("store")).unwrap();
    let stop = AtomicBool::new(false);
    let runner = Runner {
        seed: Seed(7),
        store: Some(&store),
        threads: 1,
        progress: &|progress: Progress| stop.store(progress.runs_done >= 4, Ordering::Relaxed),
        stop: &stop,
        only_stored: false,
    };
    assert!(matches!(runner.run(&points()), Err(RunnerError::Interrupted)));
    let (whole, all) = run(&points(), 1, None);
    let (rest, simulated) = run(&points(), 1, Some(&store));
    assert_eq!(rest, whole);
    assert_eq!(simulated, all - 4 * PLAN.packets);
}

#[test]
fn equal_points_are_run_once() {
    let twice = [points(), points()].concat();
    let (results, simulated) = run(&twice, 1, None);
    let (once, alone) = run(&points(), 1, None);
    assert_eq!(simulated, alone);
    assert_eq!(results, [once.clone(), once].concat());
}

#[test]
fn encoding_every_packet_changes_nothing() {
    for scheme in SCHEMES {
        for feedback in [FeedbackMode::Full, FeedbackMode::Ideal] {
            let loss = "1e-2".parse().unwrap();
            let scenario = Scenario::of(scheme).with(|it| {
                it.black_box.loss = loss;
                it.black_box.feedback = feedback;
                it.workload.packets = 50_000;
            });
            let Ok((typed, _)) = run_observed(&scenario, Seed(3), false, ()) else {
                let has_none = !scheme.takes.contains(&Takes::IdealFeedback);
                assert!(has_none && feedback == FeedbackMode::Ideal, "{} {feedback:?} cannot be run", scheme.key);
                continue;
            };
            let (encoded, _) = run_observed(&scenario, Seed(3), true, ()).unwrap();
            assert_eq!(typed.outcome, encoded.outcome, "{} {feedback:?}", scheme.key);
        }
    }
}

#[test]
fn a_point_that_a_short_run_settles_is_not_run_at_whole_length_and_no_thread_sees_another() {
    let lossy = Scenario::default().with(|it| it.black_box.loss = "1e-2".parse().unwrap());
    let clean = Scenario::default();
    // Twenty windows; a tenth of them before. The first plan is content with that, the second with nothing that is measured.
    let easy = Plan { packets: 256_000, replications_min: 1, replications_max: 1, half_width: 0.5, losses_min: 50, trial: Some(64_000) };
    let hard = Plan { half_width: 0.0, ..easy };
    let rare = Plan { losses_min: 1000, ..easy };
    let asked = [(lossy.clone(), easy), (lossy.clone(), hard), (lossy, rare), (clean, easy)];
    let (alone, simulated) = run(&asked, 1, None);
    let segments: Vec<u64> = alone.iter().map(|outcomes| outcomes.iter().map(|outcome| outcome.segments_delivered).sum()).collect();
    // What is not settled is run once more, at its whole length, and that run is the only one that counts. Whether the first point is
    // settled depends on whether its batches, of four segments each, are found to be independent.
    assert!(segments[1..] == [1000, 1000, 250] && [250, 1000].contains(&segments[0]), "{segments:?}");
    assert!(alone.iter().all(|outcomes| outcomes.len() == 1));
    // The trials of a scenario differ in their plans alone, and are run for each; the whole runs too.
    let whole = segments.iter().filter(|segments| **segments == 1000).count() as u64;
    assert_eq!(simulated, 4 * 64_000 + whole * 256_000);
    for threads in [2, 7] {
        assert_eq!(run(&asked, threads, None).0, alone, "{threads} threads");
    }
}
