//! The numbers every mode shares: the target delay, the least rate.
//!
//! Called by the modes of the congestion controller. Times are in seconds, rates in bytes a second. That a target
//! which falls with the stream's own rate makes streams at one queue equal is flow scaling (Swift, SIGCOMM 2020, 3.1).
//!
//! Invariant: the target falls strictly with the rate, so at one queue there is one rate.

pub(super) use super::super::spacing::{RTT_GUESSED, TAU_LEAST};

/// The target delay at [`TARGET_RATE`]: three times the uncertainty of a time stamp.
const TARGET: f64 = 0.003;
/// 100 Mbit/s.
const TARGET_RATE: f64 = 12.5e6;
/// The target at high rates (900 Mbit/s): what a time stamp can tell at all. Above it the rates of streams that share a
/// queue are no longer drawn together.
const TARGET_LEAST: f64 = 0.001;
/// The target at low rates (5.8 Mbit/s), so that many streams do not add up to a queue that people notice.
const TARGET_MOST: f64 = 0.0125;
/// Half a round trip, or this if that is longer, is a queue that streams of this kind do not keep standing.
const STANDING: f64 = TARGET_MOST;

/// A rate that is so many times less is next to nothing.
const NEXT_TO_NOTHING: f64 = 32.0;

/// The queueing delay a stream of `rate` wants to see: it falls with the square root of the rate, and below some Mbit/s,
/// where that is capped, with the time one datagram takes at that rate.
pub(super) fn target(rate: f64, datagram: f64) -> f64 {
    scaled(rate) + datagram_time(rate, datagram)
}

/// The time of a datagram at `rate`.
pub(super) fn datagram_time(rate: f64, datagram: f64) -> f64 {
    datagram / rate.max(1.0)
}

/// The part of the target that does not depend on the size of a datagram.
pub(super) fn scaled(rate: f64) -> f64 {
    (TARGET * (TARGET_RATE / rate.max(1.0)).sqrt()).clamp(TARGET_LEAST, TARGET_MOST)
}

/// The queue from which on others may be at work, on a path of control time `tau`.
pub(super) fn standing(tau: f64) -> f64 {
    (tau / 2.0).min(STANDING)
}

/// The least sensible rate, where `best` is the best service seen: a datagram each `lag`, a round trip with its queue (RFC 8085 3.1.2); two
/// where that is next to nothing of the best service, so that a stream is back sooner after a pause of the path. With two everywhere,
/// forty streams filled a queue of eighty datagrams and lost 4 %.
pub(super) fn least_rate(datagram: f64, lag: f64, best: f64) -> f64 {
    let one = datagram / lag;
    one.max((2.0 * one).min(best / NEXT_TO_NOTHING)).min(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_rate_is_a_datagram_a_round_trip_or_two_where_that_is_next_to_nothing() {
        let least = |best: f64| least_rate(1000.0, 0.1, best);
        assert_eq!((least(1e5), least(5e5), least(1e6)), (1e4, 15_625.0, 2e4));
        // Where a datagram takes longer than a round trip, one a round trip is too many.
        assert_eq!(least(5e3), 5e3);
    }

    #[test]
    fn the_target_falls_with_the_rate_and_stays_short() {
        // (Mbit/s, target in ms) for datagrams of 1228 bytes.
        for (rate, expected) in [(0.5, 32.148), (1.0, 22.324), (10.0, 10.469), (25.0, 6.393), (100.0, 3.098), (10_000.0, 1.001)] {
            let ms = target(rate * 125e3, 1228.0) * 1e3;
            assert!((ms - expected).abs() < 0.001, "{rate} Mbit/s: {ms} ms");
        }
        let rates = (0..80).map(|step| 1e4 * 1.2f64.powi(step));
        let targets: Vec<f64> = rates.map(|rate| target(rate, 1228.0)).collect();
        assert!(targets.windows(2).all(|pair| pair[0] > pair[1]));
    }
}
