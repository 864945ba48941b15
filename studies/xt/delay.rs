//! The mean delay of a message, as curves and numbers.
//!
//! Called by the studies of this folder.
//!
//! Invariant: a point that never reached a steady state has no mean delay. It is drawn at the top of the picture, in a
//! curve of its own, and in comparisons it is longer than any other.

use super::tandem::Who;
use crate::curves::Look;
use segstream_lab::figure::{Axis, Curve, Figure, Line, Point, Scale};
use segstream_lab::measured::{Measured, MeasuredTandem};
use segstream_lab::standing::{Quality, Standing};
use segstream_lab::tandem::TandemOutcome;

/// The name of the axis.
pub(super) const LABEL: &str = "mean delay of a message (slots)";

/// The mean delay at a point in slots; infinite without a steady state.
pub(super) fn at(points: &Measured, curve: &str, x: f64) -> Option<f64> {
    let result = points.tandem_at(curve, x)?;
    Some(if result.is_unstable() { f64::INFINITY } else { result.delay_slots_mean().mean })
}

/// Each of `xs`.
pub(super) fn row(points: &Measured, curve: &str, xs: &[f64]) -> Option<Vec<f64>> {
    xs.iter().map(|x| at(points, curve, *x)).collect()
}

/// A count at a point, summed over the runs.
pub(super) fn total(points: &Measured, curve: &str, x: f64, count: fn(&TandemOutcome) -> u64) -> Option<u64> {
    points.tandem_at(curve, x).map(|result| result.total(count))
}

/// A delay as text.
pub(super) fn text(delay: f64) -> String {
    if delay.is_finite() { format!("{delay:.1}") } else { "none".to_owned() }
}

/// Delays as text.
pub(super) fn list(delays: &[f64]) -> String {
    delays.iter().map(|delay| text(*delay)).collect::<Vec<_>>().join(", ")
}

/// A delay with its interval, for a table of results.
pub(super) fn cell(points: &Measured, curve: &str, x: f64) -> String {
    let Some(result) = points.tandem_at(curve, x) else { return String::new() };
    if result.is_unstable() {
        return format!("none ({} of {} runs)", result.unstable_runs(), result.outcomes.len());
    }
    let delay = result.delay_slots_mean();
    let half = delay.half_width.map_or_else(String::new, |half| format!(" ± {half:.1}"));
    format!("{:.1}{half}", delay.mean)
}

/// What is drawn: the curve's name, its label and its look.
pub(super) type Drawn = (String, String, Look);

/// A horizontal axis: its name, and from where to where.
pub(super) type Across = (&'static str, (f64, f64));

/// A picture over `x` from `low` to `high` slots.
pub(super) fn figure(points: &Measured, (id, title): (&str, &str), x: Across, (low, high): (f64, f64), drawn: &[Drawn]) -> Figure {
    let mut curves: Vec<Curve> = drawn.iter().map(|(name, label, look)| steady(points, name, label, *look)).collect();
    // Why: below each other, so that none covers another.
    let mut y = high - 0.015 * (high - low);
    for (name, label, look) in drawn {
        let marks = unsteady(points, name, label, *look, y);
        if !marks.points.is_empty() {
            curves.push(marks);
            y -= 0.03 * (high - low);
        }
    }
    Figure {
        id: id.to_owned(),
        title: title.to_owned(),
        x: Axis { label: x.0.to_owned(), scale: Scale::Linear, range: Some(x.1) },
        y: Axis { label: LABEL.to_owned(), scale: Scale::Linear, range: Some((low, high)) },
        curves,
    }
}

fn steady(points: &Measured, name: &str, label: &str, look: Look) -> Curve {
    let drawn = of(points, name).filter(|point| !point.result.is_unstable()).map(|point| {
        let delay = point.result.delay_slots_mean();
        Point { x: point.x, y: delay.mean, interval: delay.interval(), imprecise: false, note: note(point) }
    });
    Curve { label: label.to_owned(), colour: look.colour.to_owned(), marker: look.marker, line: look.line, points: drawn.collect() }
}

/// The places of a curve at which there is no steady state, at the height `y`.
fn unsteady(points: &Measured, name: &str, label: &str, look: Look, y: f64) -> Curve {
    let drawn = of(points, name).filter(|point| point.result.is_unstable()).map(|point| {
        let note = format!("{} runs without a steady state; {}", point.result.unstable_runs(), note(point));
        Point { x: point.x, y, interval: None, imprecise: false, note }
    });
    Curve {
        label: format!("{}: no steady state", label.split(',').next().unwrap_or(label)),
        colour: look.colour.to_owned(),
        marker: look.marker,
        line: Line::None,
        points: drawn.collect(),
    }
}

fn of<'a>(points: &'a Measured, name: &'a str) -> impl Iterator<Item = &'a MeasuredTandem> {
    points.tandem_curve(name).filter(|point| point.result.trouble().is_none())
}

fn note(point: &MeasuredTandem) -> String {
    let result = &point.result;
    let again = result.total(|outcome| outcome.packets_retransmitted);
    let (runs, slots) = (result.outcomes.len(), result.scenario.tandem.slots);
    format!(
        "{runs} runs of {slots} slots, window {}, {} packets dropped, {again} sent again",
        result.scenario.window,
        result.total(TandemOutcome::overflow_drops)
    )
}

/// The flagship's curve beside the best of the others at each place: in delay, and in feedback for a message beside the same one.
pub(super) fn standings(points: &Measured, ours: &str, others: &[Who], curve: &str) -> Vec<Standing> {
    let feedback = |name: &str, x: f64| {
        let told = total(points, name, x, |outcome| outcome.feedback_packets)? as f64;
        Some(told / total(points, name, x, |outcome| outcome.messages_delivered)?.max(1) as f64)
    };
    let mut found = Vec::new();
    for point in points.tandem_curve(ours) {
        let each = others.iter().filter_map(|who| Some((*who, at(points, &who.name(), point.x)?)));
        let Some((best, theirs)) = each.min_by(|a, b| a.1.total_cmp(&b.1)) else { continue };
        let standing = |quality, what: &str, ours, theirs| Standing {
            with: "the best of XTP's six".to_owned(),
            quality,
            curve: format!("{curve}{what}"),
            x: point.x,
            ours,
            theirs,
        };
        found.extend(at(points, ours, point.x).map(|delay| standing(Quality::Delay, "", delay, theirs)));
        let both = feedback(ours, point.x).zip(feedback(&best.name(), point.x));
        found.extend(both.map(|(ours, theirs)| standing(Quality::Feedback, "", ours, theirs)));
    }
    found
}
