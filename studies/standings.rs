//! Pairs of points of a figure, the flagship's and a paper's scheme's, to be counted as ahead, level or behind.
//!
//! Called by the studies of the papers in which both stand.
//!
//! Invariant: both points meet the same losses, and are read by the same code.

use segstream_lab::measured::Measured;
use segstream_lab::point::PointResult;
use segstream_lab::standing::{Quality, Standing};

/// Two curves that are compared: the flagship's, the other's, and what both are called in words.
pub(crate) struct Pair {
    /// The flagship's curve.
    pub(crate) ours: String,
    /// The other's.
    pub(crate) theirs: String,
    /// What distinguishes the curve in its figure: `B = 4`.
    pub(crate) curve: String,
}

/// All points that both curves of a pair have.
pub(crate) fn of(points: &Measured, with: &str, quality: Quality, pairs: &[Pair], value: impl Fn(&PointResult) -> f64) -> Vec<Standing> {
    let mut found = Vec::new();
    for pair in pairs {
        for point in points.curve(&pair.ours).filter(|point| point.result.trouble().is_none()) {
            let Some(other) = points.at(&pair.theirs, point.x) else { continue };
            found.push(Standing {
                with: with.to_owned(),
                quality,
                curve: pair.curve.clone(),
                x: point.x,
                ours: value(&point.result),
                theirs: value(other),
            });
        }
    }
    found
}

/// Throughput efficiency (EC 5).
pub(crate) fn efficiency(result: &PointResult) -> f64 {
    result.throughput_efficiency().mean
}

/// The mean delay in milliseconds.
pub(crate) fn delay_mean(result: &PointResult) -> f64 {
    result.delay_ms_mean().mean
}

/// The largest delay in milliseconds.
pub(crate) fn delay_max(result: &PointResult) -> f64 {
    result.delay_ms_max().value
}
