//! Pictures over a probability of loss, and the numbers that claims read off their curves.
//!
//! Called by the studies of this folder.
//!
//! Invariant: a number read here is one of a point that was run and ended well.

use crate::curves::Measure;
use segstream_lab::figure::{Axis, Curve, Figure, Scale};
use segstream_lab::measured::Measured;

/// What the horizontal axis shows under random loss.
pub(super) const LOSS: &str = "packet loss probability p";
/// What it shows under bursts.
pub(super) const BAD_STATE_LOSS: &str = "loss probability in the bad state, p_b";
/// The packets of a point behind the paper's figures (EC 5.2: at least).
const PACKETS_OF_THE_PAPER: u64 = 10_000_000;

/// A picture of `measure` over a probability, in decades.
pub(super) fn picture(id: &str, title: &str, x: &str, measure: Measure, curves: Vec<Curve>) -> Figure {
    Figure {
        id: id.to_owned(),
        title: title.to_owned(),
        x: Axis { label: x.to_owned(), scale: Scale::Log, range: None },
        y: Axis { label: measure.label().to_owned(), scale: Scale::Linear, range: None },
        curves,
    }
}

/// The largest delay at a point, in milliseconds.
pub(super) fn delay_ms_max(points: &Measured, curve: &str, x: f64) -> Option<f64> {
    Some(points.at(curve, x)?.delay_ms_max().value)
}

/// The mean delay at a point, in milliseconds.
pub(super) fn delay_ms_mean(points: &Measured, curve: &str, x: f64) -> Option<f64> {
    Some(points.at(curve, x)?.delay_ms_mean().mean)
}

/// The throughput efficiency at a point.
pub(super) fn efficiency(points: &Measured, curve: &str, x: f64) -> Option<f64> {
    Some(points.at(curve, x)?.throughput_efficiency().mean)
}

/// Packets of a point over which its largest delay was taken.
pub(super) fn packets(points: &Measured) -> u64 {
    let plan = points.preset.plan();
    plan.packets * u64::from(plan.replications_min)
}

/// `explanation`, and what is to be said of runs shorter than the paper's.
pub(super) fn with_run_length(points: &Measured, explanation: &str) -> String {
    let packets = packets(points);
    if packets >= PACKETS_OF_THE_PAPER {
        return explanation.to_owned();
    }
    let each = points.preset.plan().packets;
    format!(
        "{explanation} These maxima are over {packets} packets a point in runs of {each}, those of the paper over at least \
         {PACKETS_OF_THE_PAPER} in one: rare rounds are missing, and only --paper can judge the numbers."
    )
    .trim_start()
    .to_owned()
}

/// Numbers with a slash between them, rounded to `decimals`.
pub(super) fn list(values: &[f64], decimals: usize) -> String {
    values.iter().map(|value| format!("{value:.decimals$}")).collect::<Vec<_>>().join(" / ")
}
