//! The targets of the study, and when each is met.
//!
//! Called through the claims of [`super::STUDY`].
//!
//! Invariant: margins are named in the text of the claim that has them.

use super::bounds::{Losses, measured_high};
use super::{BURSTS, Coding, Over, P50, P95, P99, Promise, RATE, RATES, RTT_MS, RTTS_MS, UNITS, at, floor_ms, ms, sent_more, signed};
use crate::flagship::target::{Place, judged};
use segstream_lab::claim::Finding;
use segstream_lab::measured::Measured;
use segstream_lab::point::PointResult;

/// What the detection of losses and the restoring may take.
const NEAR_MS: f64 = 6.0;
/// The same with a round of requests and answers.
const ROUND_MS: f64 = 12.0;
/// The fewest repair units are those with which no more segments fail: as many as the sender lets fail (docs/spec 7.7).
pub(super) const TARGET: f64 = 3e-3;

/// Whether the 99th percentile is so near the floor.
fn near_the_floor(name: String, result: &PointResult, rtt_ms: f64, most: f64) -> Place {
    let above = ms(result, P99) - floor_ms(rtt_ms);
    Place::new(name, format!("{} ms", signed(above, 1)), above <= most)
}

pub(super) fn both_is_at_the_floor(points: &Measured) -> Option<Finding> {
    let mut places = Vec::new();
    for promise in Promise::ALL {
        let most = if promise == Promise::Reliable { 1e-2 } else { 1e-1 };
        for rate in RATES.into_iter().filter(|rate| *rate <= most) {
            let result = at(points, Over::Loss, promise, Coding::BOTH, rate)?;
            places.push(near_the_floor(format!("{} at {rate:e}", promise.name()), result, RTT_MS as f64, NEAR_MS));
        }
    }
    Some(judged(&places, ""))
}

pub(super) fn third_rounds_are_rare(points: &Measured) -> Option<Finding> {
    let place = |rate: f64| {
        let result = at(points, Over::Loss, Promise::Reliable, Coding::Hedged, rate)?;
        Some(near_the_floor(format!("{rate:e}"), result, RTT_MS as f64, RTT_MS as f64 + ROUND_MS))
    };
    Some(judged(&RATES.into_iter().map(place).collect::<Option<Vec<_>>>()?, ""))
}

/// What a perfect code sends more for a segment, in per cent.
pub(super) fn perfect_code(losses: Losses) -> f64 {
    100.0 * f64::from(losses.least_repair_units(UNITS, TARGET)) / f64::from(UNITS)
}

/// The same at the loss that may be measured in a second.
pub(super) fn perfect_code_as_measured(rate: f64) -> f64 {
    perfect_code(Losses::random(measured_high(rate, f64::from(Promise::Reliable.offered(rate)))))
}

pub(super) fn costs_no_more_than_a_perfect_code(points: &Measured) -> Option<Finding> {
    let place = |rate: f64| {
        let more = sent_more(at(points, Over::Loss, Promise::Reliable, Coding::both_at(rate), rate)?);
        let most = perfect_code_as_measured(rate);
        Some(Place::new(format!("{rate:e}"), format!("{more:.2} of {most:.2} %"), more <= most))
    };
    Some(judged(&RATES.into_iter().map(place).collect::<Option<Vec<_>>>()?, ""))
}

pub(super) fn the_fence_is_cheap(points: &Measured) -> Option<Finding> {
    let more = sent_more(at(points, Over::Loss, Promise::Partial, Coding::BOTH, 1e-1)?);
    let all = perfect_code(Losses::random(1e-1));
    Some(judged(&[Place::new("1e-1", format!("{more:.2} of {all:.2} %"), more <= all / 2.0)], ""))
}

pub(super) fn nothing_without_loss(points: &Measured) -> Option<Finding> {
    let mut places = Vec::new();
    for promise in Promise::ALL {
        let seen = |coding| {
            let result = at(points, Over::Loss, promise, coding, 0.0)?;
            Some((result.total(|outcome| outcome.packets_sent), [P50, P95, P99].map(|quantile| ms(result, quantile))))
        };
        let without = seen(Coding::None)?;
        for coding in [Coding::Hedged, Coding::BOTH] {
            let (sent, delays) = seen(coding)?;
            let met = sent == without.0 && delays.iter().zip(without.1).all(|(with, without)| *with <= without);
            let more = sent as i64 - without.0 as i64;
            places.push(Place::new(format!("{}, {}", promise.name(), coding.name()), format!("{more:+} packets"), met));
        }
    }
    Some(judged(&places, ""))
}

pub(super) fn bursts_are_repaired(points: &Measured) -> Option<Finding> {
    let place = |burst: f64| {
        let result = at(points, Over::Burst, Promise::Reliable, Coding::BOTH, burst)?;
        let above = |quantile| ms(result, quantile) - floor_ms(RTT_MS as f64);
        let (most, rest) = (above(P95), above(P99));
        let met = most <= NEAR_MS && rest <= RTT_MS as f64 + ROUND_MS;
        Some(Place::new(format!("bursts of {burst}"), format!("{} and {} ms", signed(most, 1), signed(rest, 1)), met))
    };
    let [eight, sixteen] = [8.0, 16.0].map(|burst| perfect_code(Losses::bursts(RATE, burst)));
    let why = format!("A perfect code needs {eight:.0} % more for bursts of 8, {sixteen:.0} % for bursts of 16; the budget is 10 %.");
    Some(judged(&BURSTS.into_iter().filter(|burst| *burst > 1.0).map(place).collect::<Option<Vec<_>>>()?, &why))
}

pub(super) fn at_every_round_trip(points: &Measured) -> Option<Finding> {
    let place = |rtt_ms: u64| {
        let result = at(points, Over::RoundTrip, Promise::Reliable, Coding::BOTH, rtt_ms as f64)?;
        Some(near_the_floor(format!("{rtt_ms} ms"), result, rtt_ms as f64, NEAR_MS))
    };
    Some(judged(&RTTS_MS.into_iter().map(place).collect::<Option<Vec<_>>>()?, ""))
}
