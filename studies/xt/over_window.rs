//! The points of XT Figures 7 and 8 and Table 4: over the window, at the throughput of Table 4.
//!
//! Called by the studies of these, which share their points, and by the one of what moves them.
//!
//! Invariant: the best window is the one with the least mean delay; of two equals the smaller.

use super::delay::{self, Across, Drawn};
use super::tandem::{THROUGHPUT, Who, bernoulli};
use segstream_lab::figure::Figure;
use segstream_lab::measured::Measured;
use segstream_lab::study::TandemPoint;

/// The ten windows of XT Table 4, in packets.
pub(super) const WINDOWS: [u32; 10] = [30, 40, 50, 60, 70, 80, 90, 100, 110, 120];
/// The horizontal axis.
const X: Across = ("window (packets)", (25.0, 125.0));

/// The points of everybody named.
pub(super) fn points(all: &[Who]) -> Vec<TandemPoint> {
    let of = |who: &Who| {
        let who = *who;
        WINDOWS.map(|window| TandemPoint { curve: who.name(), x: f64::from(window), scenario: who.over(window, bernoulli(THROUGHPUT)) })
    };
    all.iter().flat_map(of).collect()
}

/// The mean delays of a curve over the windows.
pub(super) fn delays(measured: &Measured, curve: &str) -> Option<Vec<f64>> {
    delay::row(measured, curve, &WINDOWS.map(f64::from))
}

/// The best window of a curve and its delay; `None` when a point is missing or none has a steady state.
pub(super) fn best(measured: &Measured, curve: &str) -> Option<(u32, f64)> {
    let delays: Vec<(u32, f64)> =
        WINDOWS.into_iter().filter_map(|window| Some((window, delay::at(measured, curve, f64::from(window))?))).collect();
    delays.into_iter().filter(|(_, delay)| delay.is_finite()).min_by(|a, b| a.1.total_cmp(&b.1))
}

/// A picture of everybody named.
pub(super) fn figure(measured: &Measured, (id, title): (&str, &str), range: (f64, f64), all: &[Who]) -> Figure {
    let drawn: Vec<Drawn> = all.iter().map(|who| (who.name(), who.label(), who.look())).collect();
    delay::figure(measured, (id, title), X, range, &drawn)
}
