//! XTP over the tandem of queues against an independent simulation, what is marked as unstable, and this protocol there.

use segstream_base::random::Seed;
use segstream_lab::runner::Runner;
use segstream_lab::store::Store;
use segstream_lab::tandem::{Arrivals, TandemConfig, TandemResult, TandemScenario, TandemScheme};
use segstream_schemes::xtp::{ReceiverStrategy, SenderStrategy};
use std::sync::atomic::AtomicBool;

use ReceiverStrategy::{Discard, StoreAggressive, StoreConservative};
use SenderStrategy::{GoBackN, Handshake, SelectiveRepeat};

fn run(scenarios: &[TandemScenario], slots: u64, replications: u32, threads: usize, store: Option<&Store>) -> Vec<TandemResult> {
    let runner = Runner { seed: Seed(1), store, threads, progress: &|_| {}, stop: &AtomicBool::new(false), only_stored: false };
    let wanted: Vec<_> = scenarios.iter().map(|scenario| (scenario.with_slots(slots), replications)).collect();
    runner.run_repeated(&wanted).unwrap()
}

fn over(rate: f64, window: u32, scheme: TandemScheme) -> TandemScenario {
    let tandem = TandemConfig { arrivals: Arrivals::Bernoulli { rate }, ..TandemConfig::default() };
    TandemScenario { scheme, window, tandem }
}

fn xtp(rate: f64, window: u32, sender: SenderStrategy, receiver: ReceiverStrategy) -> TandemScenario {
    over(rate, window, TandemScheme::xtp(sender, receiver))
}

/// Mean delays of a second simulation of the same model, which shares nothing with this one, over 2e6 slots and five
/// seeds, where it has them to 2 % and better.
#[test]
fn mean_delays_agree_with_an_independent_simulation_within_5_per_cent() {
    let ibp = |scv| move |rate| Arrivals::Interrupted { rate, scv, alpha: 1.0 };
    let with =
        |scenario: TandemScenario, arrivals: Arrivals| TandemScenario { tandem: TandemConfig { arrivals, ..scenario.tandem }, ..scenario };
    let room = |scenario: TandemScenario, link1_room| TandemScenario { tandem: TandemConfig { link1_room, ..scenario.tandem }, ..scenario };
    let external =
        |scenario: TandemScenario, external_rate| TandemScenario { tandem: TandemConfig { external_rate, ..scenario.tandem }, ..scenario };
    let cases = [
        (xtp(0.05, 45, GoBackN, Discard), 21.08),
        (xtp(0.05, 45, GoBackN, StoreConservative), 21.13),
        (xtp(0.085, 55, GoBackN, Discard), 23.75),
        (xtp(0.085, 55, GoBackN, StoreAggressive), 23.75),
        (xtp(0.085, 55, SelectiveRepeat, StoreAggressive), 23.77),
        (xtp(0.115, 75, GoBackN, StoreConservative), 31.02),
        (xtp(0.115, 75, SelectiveRepeat, StoreConservative), 27.81),
        (xtp(0.115, 75, SelectiveRepeat, StoreAggressive), 28.46),
        (room(xtp(0.125, 85, SelectiveRepeat, StoreConservative), 15), 29.39),
        (room(xtp(0.125, 85, SelectiveRepeat, StoreAggressive), 15), 30.27),
        (external(xtp(0.105, 60, SelectiveRepeat, StoreConservative), 0.15), 33.59),
        (with(xtp(0.07, 60, SelectiveRepeat, StoreConservative), ibp(10.0)(0.07)), 63.36),
        (with(xtp(0.07, 60, GoBackN, StoreAggressive), ibp(10.0)(0.07)), 63.04),
    ];
    let scenarios: Vec<TandemScenario> = cases.iter().map(|(scenario, _)| scenario.clone()).collect();
    for (result, (scenario, expected)) in run(&scenarios, 1_000_000, 3, 0, None).iter().zip(&cases) {
        let found = result.delay_slots_mean().mean;
        assert!((found / expected - 1.0).abs() < 0.05, "{found} is not {expected}: {}", scenario.canonical());
    }
}

#[test]
fn what_never_reaches_a_steady_state_is_marked_and_has_no_delay() {
    let wanted =
        [xtp(0.115, 75, GoBackN, Discard), xtp(0.115, 75, Handshake, StoreConservative), xtp(0.115, 75, GoBackN, StoreConservative)];
    let results = run(&wanted, 500_000, 2, 0, None);
    for lost in &results[..2] {
        assert!(lost.is_unstable() && lost.unstable_runs() == 2 && lost.delay_slots_mean().mean.is_nan());
        assert_eq!(lost.trouble(), None);
    }
    assert!(!results[2].is_unstable() && results[2].delay_slots_mean().mean > 25.0);
}

#[test]
fn with_a_receiver_that_discards_both_senders_are_the_same() {
    for rate in [0.05, 0.1] {
        let [back, selective] = [GoBackN, SelectiveRepeat].map(|sender| run(&[xtp(rate, 60, sender, Discard)], 300_000, 1, 1, None));
        assert!(back[0].outcomes[0].packets_retransmitted > 0);
        assert_eq!(back[0].outcomes, selective[0].outcomes, "rate {rate}");
    }
}

#[test]
fn threads_and_store_change_nothing() {
    let wanted = [xtp(0.1, 60, SelectiveRepeat, StoreAggressive), over(0.1, 60, TandemScheme::Segstream { rate: None })];
    let outcomes =
        |threads, store| -> Vec<_> { run(&wanted, 50_000, 3, threads, store).into_iter().map(|result| result.outcomes).collect() };
    let alone = outcomes(1, None);
    assert!(alone.iter().all(|outcomes| outcomes.len() == 3 && outcomes[0] != outcomes[1]));
    // Common random numbers: the same messages and external packets for both.
    for (one, other) in alone[0].iter().zip(&alone[1]) {
        assert_eq!((one.messages_offered, one.external_packets), (other.messages_offered, other.external_packets));
    }
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("store")).unwrap();
    assert_eq!(outcomes(3, Some(&store)), alone);
    assert_eq!(outcomes(2, Some(&store)), alone);
}

/// Its acknowledgments do not wait for the end of a window, so a window of any size costs it no pause.
#[test]
fn the_flagship_delivers_everything_sooner_than_the_best_of_the_six() {
    for rate in [0.06, 0.12] {
        let ours = [None, Some(0.45)].map(|pace| over(rate, 80, TandemScheme::Segstream { rate: pace }));
        let six = [xtp(rate, 80, SelectiveRepeat, StoreConservative), xtp(rate, 80, SelectiveRepeat, StoreAggressive)];
        let best = run(&six, 300_000, 2, 0, None).iter().map(|result| result.delay_slots_mean().mean).fold(f64::INFINITY, f64::min);
        for result in run(&ours, 300_000, 2, 0, None) {
            assert_eq!(result.trouble(), None);
            assert!(!result.is_unstable());
            let delay = result.delay_slots_mean().mean;
            assert!(delay > 17.0 && delay < best, "{rate}: {delay} against {best}");
            assert!((result.throughput_messages_per_slot().mean / rate - 1.0).abs() < 0.03);
        }
    }
}
