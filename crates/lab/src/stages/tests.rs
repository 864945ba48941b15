//! HTPNET on threads and on modelled processors.

use super::*;
use crate::store::Store;
use segstream_base::Duration;
use segstream_base::random::Seed;

fn outcome(scenario: &StageScenario) -> StageOutcome {
    let outcome = run(scenario).unwrap();
    assert_eq!((outcome.trouble.as_deref(), outcome.spurious), (None, 0));
    outcome
}

fn on(processors: usize) -> StageScenario {
    StageScenario { processors, ..StageScenario::default() }
}

#[test]
fn one_processor_carries_what_all_stages_together_leave() {
    // 416 us a packet.
    let rate = outcome(&on(1)).packets_per_second();
    assert!((rate * 416e-6 - 1.0).abs() < 0.01, "{rate}");
}

#[test]
fn eight_processors_carry_what_the_slowest_stage_carries() {
    let outcome = outcome(&on(8));
    assert!((outcome.packets_per_second() * 80e-6 - 1.0).abs() < 0.01, "{outcome:?}");
    assert!(outcome.busy_shares().iter().all(|share| *share <= 1.0));
}

#[test]
fn throughput_grows_with_every_processor_as_ht_fig_8_says() {
    let rates: Vec<f64> = (1..=8).map(|processors| outcome(&on(processors)).packets_per_second()).collect();
    assert!(rates.windows(2).all(|pair| pair[1] >= pair[0]), "{rates:?}");
    assert!((4.0..=6.0).contains(&(rates[7] / rates[0])), "{rates:?}");
}

#[test]
fn an_outcome_depends_on_its_scenario_alone() {
    let scenario = StageScenario { processors: 3, packets: 2_000, delay: Duration::from_millis(10), ..StageScenario::default() };
    assert_eq!(outcome(&scenario), outcome(&scenario));
    assert_eq!(StageScenario::from_canonical(&scenario.canonical()).unwrap(), scenario);
}

#[test]
fn an_outcome_is_kept_in_the_store_like_any_other() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("store")).unwrap();
    let scenario = StageScenario { packets: 500, ..on(2) };
    let outcome = outcome(&scenario);
    store.put(&scenario, Seed(1), &outcome).unwrap();
    assert_eq!(store.get(&scenario, Seed(1)), Some(outcome));
    assert_eq!(store.get(&StageScenario { packets: 501, ..scenario }, Seed(1)), None);
}

#[test]
fn nonsense_is_refused_with_a_sentence() {
    let cases = [
        (on(0), "0 processors"),
        (on(10), "10 processors"),
        (StageScenario { packets: 99, ..on(1) }, "99 packets"),
        (StageScenario { window: 0, ..on(1) }, "a window of 0"),
        (StageScenario { sync_period: Duration::ZERO, ..on(1) }, "period"),
    ];
    for (scenario, sentence) in cases {
        let message = run(&scenario).unwrap_err().to_string();
        assert!(message.contains(sentence), "{message:?} does not say {sentence:?}");
    }
    assert!(matches!(measure(&Measuring { runs: 0, packets: 100, ..Measuring::default() }), Err(StagesError::NoRuns)));
}

/// A short run on `threads` threads over a network with this loss in both directions.
fn short(threads: usize, loss: &str) -> Measuring {
    let loss: segstream_path::LossSpec = loss.parse().unwrap();
    Measuring {
        threads,
        runs: 1,
        packets: 20_000,
        window: 512,
        loss: loss.clone(),
        loss_back: loss,
        delay: Duration::from_micros(500),
        ..Measuring::default()
    }
}

#[test]
fn every_byte_arrives_in_order_over_a_lossy_network_on_any_number_of_threads() {
    // A run that delivers less, or anything else, is an error.
    for threads in [1, 2, 4] {
        let measured = measure(&short(threads, "random:0.02")).unwrap();
        assert!(measured.data_lost > 0);
        // HT 4: whatever is lost, data, TXS or RXS, nothing leaves again that was not lost itself.
        assert_eq!(measured.data_sent, 20_000 + measured.data_lost, "{threads} threads");
    }
}

#[test]
fn nothing_is_sent_again_when_nothing_is_lost_on_any_number_of_threads() {
    for threads in [1, 2, 4] {
        let measured = measure(&short(threads, "none")).unwrap();
        assert_eq!(measured.data_sent, 20_000, "{threads} threads");
    }
}
