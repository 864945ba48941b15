//! Efficiency of plain repeat request under independent loss against its exact formulas, as z-scores.

use crate::arq::{Mode, SLOT, Settings, backlog, pair, setup};
use segstream_base::halves::Sender as _;
use segstream_base::{Duration, Instant};
use segstream_path::{LossSpec, Probability};
use segstream_sim::{End, Setup};

const PACKETS: u64 = 20_000;
const LOSSES: [f64; 5] = [1e-3, 1e-2, 0.05, 0.1, 0.3];

fn lossy(round_trip: u64, forward: f64, back: f64) -> Setup {
    let mut setup = setup(round_trip);
    setup.forward.loss = LossSpec::Random(Probability::new(forward).unwrap());
    setup.back.loss = LossSpec::Random(Probability::new(back).unwrap());
    setup
}

/// How far `failures` lies from what a negative binomial distribution expects until [`PACKETS`] successes, in
/// standard deviations.
fn z(failures: f64, loss: f64) -> f64 {
    let packets = PACKETS as f64;
    (failures - packets * loss / (1.0 - loss)) / ((packets * loss).sqrt() / (1.0 - loss))
}

/// Whether the scores look like draws of the standard normal distribution: their sum, their sum of squares
/// (chi-square) and their extremes, each within five standard deviations.
fn assert_normal(scores: &[f64]) {
    let count = scores.len() as f64;
    assert!(count >= 200.0, "{count} points are too few");
    let mean = scores.iter().sum::<f64>() / count;
    let square = scores.iter().map(|z| z * z).sum::<f64>() / count;
    assert!(mean.abs() < 5.0 / count.sqrt(), "mean {mean}");
    assert!((square - 1.0).abs() < 5.0 * (2.0 / count).sqrt(), "mean square {square}");
    assert!(scores.iter().all(|z| z.abs() < 5.0), "{scores:?}");
}

fn slots(span: Duration) -> u64 {
    assert_eq!(span.as_nanos() % SLOT.as_nanos(), 0, "{span} is no whole number of slots");
    span.as_nanos() / SLOT.as_nanos()
}

#[test]
fn stop_and_wait_takes_a_round_trip_a_success_and_a_timeout_a_failure() {
    let mut scores = Vec::new();
    for (case, (loss, back)) in LOSSES.iter().flat_map(|loss| [(*loss, 0.0), (*loss, 0.1)]).enumerate() {
        for repetition in 0..20 {
            let (round_trip, timeout) = (10, 17);
            let settings = Settings { window: 1, timeout: Some(SLOT * timeout), ..Settings::filling(Mode::GoBackN, round_trip) };
            let mut run = pair(&settings, backlog(PACKETS), &lossy(round_trip, loss, back), case as u64 * 100 + repetition, ());
            assert_eq!(run.settle(), End::Settled);
            let failures = run.sender().counters().packets_retransmitted;
            assert_eq!(slots(run.now().since(Instant::ZERO)), PACKETS * (round_trip + 1) + failures * timeout);
            scores.push(z(failures as f64, 1.0 - (1.0 - loss) * (1.0 - back)));
        }
    }
    assert_normal(&scores);
}

/// `(1 - p) / (1 + (W - 1) p)`: a loss costs the whole window.
#[test]
fn go_back_n_loses_a_window_a_loss() {
    let mut scores = Vec::new();
    for (case, (loss, round_trip)) in LOSSES.iter().flat_map(|loss| [4, 20, 60, 200].map(|slots| (*loss, slots))).enumerate() {
        for repetition in 0..10 {
            let settings = Settings::filling(Mode::GoBackN, round_trip);
            let mut run = pair(&settings, backlog(PACKETS), &lossy(round_trip, loss, 0.0), case as u64 * 100 + repetition, ());
            assert_eq!(run.run(), End::Delivered);
            // The last packet has been accepted half a round trip after it left the bottleneck.
            let wasted = slots(run.now().since(Instant::ZERO)) - round_trip / 2 - PACKETS;
            assert_eq!(wasted % settings.window, 0);
            scores.push(z((wasted / settings.window) as f64, loss));
        }
    }
    assert_normal(&scores);
}

/// `1 - p`: a loss costs one packet.
#[test]
fn selective_repeat_loses_a_packet_a_loss() {
    let mut scores = Vec::new();
    for (case, (loss, round_trip)) in LOSSES.iter().flat_map(|loss| [4, 20, 60, 200].map(|slots| (*loss, slots))).enumerate() {
        for repetition in 0..10 {
            let settings = Settings::filling(Mode::SelectiveRepeat, round_trip);
            let mut run = pair(&settings, backlog(PACKETS), &lossy(round_trip, loss, 0.0), case as u64 * 100 + repetition, ());
            assert_eq!(run.run(), End::Delivered);
            let sent = run.sender().counters().packets_sent;
            let idle = slots(run.now().since(Instant::ZERO)) - round_trip / 2 - sent;
            // No slot stays empty before the last new packet; the rounds after it are few.
            assert!(idle <= 15 * (round_trip + 1), "{idle} slots stayed empty at {loss}");
            scores.push(z((sent - PACKETS) as f64, loss));
        }
    }
    assert_normal(&scores);
}

#[test]
fn without_loss_the_closed_form_holds_to_the_nanosecond() {
    for round_trip in [0, 2, 40, 1000] {
        let whole = SLOT * PACKETS + SLOT * round_trip / 2;
        for mode in [Mode::GoBackN, Mode::SelectiveRepeat] {
            let mut run = pair(&Settings::filling(mode, round_trip), backlog(PACKETS), &setup(round_trip), 1, ());
            assert_eq!((run.run(), run.now()), (End::Delivered, Instant::ZERO + whole));
            assert_eq!((run.settle(), run.now()), (End::Settled, Instant::ZERO + whole + SLOT * round_trip / 2));
        }
        // A window of w packets sends w in every round trip and packet time.
        for window in [1, 3].into_iter().filter(|window| *window <= round_trip) {
            let settings = Settings { window, ..Settings::filling(Mode::GoBackN, round_trip) };
            let mut run = pair(&settings, backlog(3000), &setup(round_trip), 1, ());
            assert_eq!(run.settle(), End::Settled);
            assert_eq!(run.now(), Instant::ZERO + SLOT * ((round_trip + 1) * 3000 / window + window - 1));
        }
    }
}
