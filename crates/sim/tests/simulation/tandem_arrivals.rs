//! The arrival processes against the exact moments of their interarrival times.

use segstream_base::random::Seed;
use segstream_sim::tandem::arrivals::{Chain, Process};
use segstream_sim::tandem::{Arrivals, ArrivalsError};

/// Mean and squared coefficient of variation of the time between arrivals, from its distribution, slot by slot.
fn exact_moments(chain: Chain) -> (f64, f64) {
    // After an arrival the chain is active.
    let (mut active, mut idle) = (1.0f64, 0.0f64);
    let (mut mean, mut square, mut slots) = (0.0, 0.0, 0.0f64);
    while active + idle > 1e-16 {
        (active, idle) = (active * chain.p + idle * (1.0 - chain.q), active * (1.0 - chain.p) + idle * chain.q);
        slots += 1.0;
        let arrives = active * chain.alpha;
        mean += slots * arrives;
        square += slots * slots * arrives;
        active -= arrives;
    }
    (mean, square / (mean * mean) - 1.0)
}

#[test]
fn a_solved_chain_has_the_rate_and_the_variation_it_was_solved_for() {
    let mut solved = 0;
    for rate in [0.02, 0.06, 0.12, 0.15, 0.3, 0.5] {
        for scv in [0.95, 1.0, 2.0, 10.0, 50.0] {
            for alpha in [0.55, 0.8, 1.0] {
                let Ok(chain) = Chain::solve(rate, scv, alpha) else { continue };
                solved += 1;
                let (mean, variation) = exact_moments(chain);
                assert!((mean * rate - 1.0).abs() < 1e-9, "{rate} {scv} {alpha}: {chain:?} has a mean of {mean}");
                assert!((variation / scv - 1.0).abs() < 1e-8, "{rate} {scv} {alpha}: {chain:?} has {variation}");
                assert!((chain.rate() - rate).abs() < 1e-12 && (chain.scv() / scv - 1.0).abs() < 1e-9);
                assert!((0.0..=1.0).contains(&chain.p) && (0.0..=1.0).contains(&chain.q));
            }
        }
    }
    assert!(solved > 60, "only {solved} chains");
}

#[test]
fn the_burstiness_of_the_paper_at_its_throughput_is_this_chain() {
    let chain = Chain::solve(0.12, 10.0, 1.0).unwrap();
    assert!((chain.p - 0.85765).abs() < 1e-5 && (chain.q - 0.98059).abs() < 1e-5, "{chain:?}");
}

#[test]
fn an_interrupted_process_with_the_variation_of_a_bernoulli_process_has_no_memory() {
    let chain = Chain::solve(0.12, 0.88, 1.0).unwrap();
    assert!((chain.p - 0.12).abs() < 1e-12 && (chain.q - 0.88).abs() < 1e-12, "{chain:?}");
}

#[test]
fn a_variation_no_chain_has_is_refused_and_the_least_one_is_not() {
    let Err(ArrivalsError::Variation { least, .. }) = Chain::solve(0.12, 0.1, 1.0) else { panic!("0.1 is no variation") };
    let chain = Chain::solve(0.12, least, 1.0).unwrap();
    assert!(chain.p < 1e-9, "the least variation never stays active: {chain:?}");
    assert!((exact_moments(chain).1 - least).abs() < 1e-9);
    assert!(Chain::solve(0.12, f64::NAN, 1.0).is_err() && Chain::solve(0.12, f64::INFINITY, 1.0).is_err());
    assert!(matches!(Chain::solve(0.5, 10.0, 0.4), Err(ArrivalsError::Alpha { .. })));
    assert!(matches!(Chain::solve(0.0, 10.0, 1.0), Err(ArrivalsError::Alpha { .. })));
    assert!(matches!(Chain::solve(1.2, 10.0, 1.0), Err(ArrivalsError::Rate { .. })));
    assert!(matches!(Process::new(Arrivals::Bernoulli { rate: f64::NAN }), Err(ArrivalsError::Rate { .. })));
}

/// The gaps of a renewal process are independent, so their means have exact standard errors.
#[test]
fn a_running_process_has_the_moments_of_its_chain() {
    let processes = [
        Arrivals::Bernoulli { rate: 0.12 },
        Arrivals::Bernoulli { rate: 0.02 },
        Arrivals::Interrupted { rate: 0.12, scv: 10.0, alpha: 1.0 },
        Arrivals::Interrupted { rate: 0.06, scv: 4.0, alpha: 0.5 },
    ];
    for (seed, arrivals) in (1..).zip(processes) {
        let mut process = Process::new(arrivals).unwrap();
        let mut random = Seed(seed).stream("arrivals");
        let (mut gaps, mut last) = (Vec::new(), None);
        for slot in 0..4_000_000u64 {
            if process.arrives(&mut random) {
                gaps.extend(last.map(|last| (slot - last) as f64));
                last = Some(slot);
            }
        }
        let count = gaps.len() as f64;
        let mean = gaps.iter().sum::<f64>() / count;
        let squares: Vec<f64> = gaps.iter().map(|gap| gap * gap).collect();
        let square = squares.iter().sum::<f64>() / count;
        let spread = |values: &[f64], mean: f64| (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt();
        let exact = 1.0 / arrivals.rate();
        let exact_square = (arrivals.scv() + 1.0) * exact * exact;
        assert!((mean - exact).abs() < 5.0 * spread(&gaps, mean) / count.sqrt(), "{arrivals:?}: {mean} is not {exact}");
        assert!(
            (square - exact_square).abs() < 5.0 * spread(&squares, square) / count.sqrt(),
            "{arrivals:?}: {square} is not {exact_square}"
        );
    }
}

#[test]
fn an_interrupted_process_begins_in_its_stationary_state() {
    let arrivals = Arrivals::Interrupted { rate: 0.3, scv: 10.0, alpha: 0.75 };
    for later in [0, 1, 5] {
        let mut hits = 0u32;
        for seed in 0..20_000 {
            let (mut process, mut random) = (Process::new(arrivals).unwrap(), Seed(seed).stream("arrivals"));
            (0..later).for_each(|_| {
                process.arrives(&mut random);
            });
            hits += u32::from(process.arrives(&mut random));
        }
        let z = (f64::from(hits) - 6000.0) / (20_000.0f64 * 0.3 * 0.7).sqrt();
        assert!(z.abs() < 5.0, "slot {later}: {hits} of 20000");
    }
}
