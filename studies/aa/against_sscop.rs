//! Adaptive acknowledgment against SSCOP over the loss rate: at the polls that AA compares with, and at the best of a sweep.
//!
//! Called by [`super::fig9`] and [`super::fig10`], which differ in how losses come.
//!
//! Invariant: all at one loss rate meet the same losses, and differences are taken run by run.
//! Source: AA 3.2.2, Figs. 9 and 10.

use super::efficiency::{self, LABEL, LOSSES};
use super::end_system::{BEST_PAIR, WINDOW, Who};
use super::rearming::{self, OTHERS};
use crate::standings::{self, Pair};
use segstream_lab::figure::{Curve, Figure, Line, Marker, Point, Scale, TextTable};
use segstream_lab::measured::Measured;
use segstream_lab::point::PointResult;
use segstream_lab::standing::{Quality, Standing};
use segstream_lab::statistics::Estimate;
use segstream_lab::study::StudyPoint;
use segstream_path::LossSpec;
use segstream_schemes::adaptive_ack::Rearming;

/// The loss rates. Chosen; the paper speaks of 1e-4 to 1e-1.
pub(super) const RATES: [f64; 7] = [1e-5, 1e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1];
/// Timer_POLL in milliseconds, of which AA has 10 and 40.
pub(super) const POLLS: [u64; 12] = [5, 8, 10, 13, 15, 20, 25, 30, 40, 45, 50, 60];
/// AA at its best, which is what it compares.
pub(super) const OURS: Who = Who::AdaptiveAck(BEST_PAIR.0, BEST_PAIR.1);

/// How losses come: under which name, and as which process at a rate.
#[derive(Clone, Copy)]
pub(super) struct Losses {
    /// The end of a curve's name: empty, or ` burst 5`.
    pub(super) name: &'static str,
    /// The process.
    pub(super) at: fn(f64) -> LossSpec,
}

fn name(who: Who, losses: Losses) -> String {
    match who {
        Who::AdaptiveAck(t_normal, t_error) => format!("adaptive-ack {t_normal}/{t_error}ms{}", losses.name),
        Who::Sscop(poll) => format!("sscop poll {poll}ms{}", losses.name),
        Who::Segstream => format!("segstream{}", losses.name),
    }
}

/// Everyone at every loss rate, SSCOP at every poll.
pub(super) fn points(losses: Losses) -> Vec<StudyPoint> {
    let at = |who: Who| RATES.map(|p| StudyPoint { curve: name(who, losses), x: p, scenario: who.over(WINDOW, &(losses.at)(p)) });
    let read = |reading: Rearming| {
        let over = |p: f64| rearming::read(OURS.over(WINDOW, &(losses.at)(p)), BEST_PAIR, reading);
        RATES.map(|p| StudyPoint { curve: read_so(reading, losses), x: p, scenario: over(p) })
    };
    let usual = [OURS, Who::Segstream].into_iter().chain(POLLS.map(Who::Sscop)).flat_map(at);
    usual.chain(OTHERS.into_iter().flat_map(read)).collect()
}

/// The curve of adaptive acknowledgment with another reading of when its timer is set anew.
fn read_so(reading: Rearming, losses: Losses) -> String {
    format!("timer set anew: {reading}{}", losses.name)
}

/// Where adaptive acknowledgment is not above SSCOP at both stated polls, by each other reading of when its timer is set anew.
fn otherwise(points: &Measured, losses: Losses) -> Option<String> {
    let mut told = Vec::new();
    for reading in OTHERS {
        let mut below = Vec::new();
        for p in RATES {
            let ours = efficiency::of(points.at(&read_so(reading, losses), p)?).mean;
            let theirs = [10, 40].map(|poll| at(points, Who::Sscop(poll), losses, p).map(|result| efficiency::of(result).mean));
            let [Some(ten), Some(forty)] = theirs else { return None };
            if ours <= ten.max(forty) {
                below.push(format!("{p:e} ({:+.4})", ours - ten.max(forty)));
            }
        }
        told.push(if below.is_empty() {
            format!("{reading}: above at every rate")
        } else {
            format!("{reading}: not at {}", below.join(", "))
        });
    }
    Some(format!("with the timer set anew in other ways: {}", told.join("; ")))
}

/// The result of one at a loss rate.
pub(super) fn at(points: &Measured, who: Who, losses: Losses, p: f64) -> Option<&PointResult> {
    points.at(&name(who, losses), p)
}

/// SSCOP's best poll at a loss rate.
pub(super) fn best_poll(points: &Measured, losses: Losses, p: f64) -> Option<(u64, &PointResult)> {
    let each = POLLS.into_iter().filter_map(|poll| Some((poll, at(points, Who::Sscop(poll), losses, p)?)));
    each.reduce(|best, poll| if efficiency::of(poll.1).mean > efficiency::of(best.1).mean { poll } else { best })
}

/// Throughput efficiency over the loss rate, and the others less SSCOP at its best poll.
pub(super) fn figures(points: &Measured, id: &str, losses: Losses, how: &str) -> Vec<Figure> {
    let drawn = [(OURS, Line::Solid), (Who::Sscop(10), Line::Dashed), (Who::Sscop(40), Line::Solid), (Who::Segstream, Line::Solid)];
    let mut curves: Vec<Curve> =
        drawn.iter().map(|(who, line)| efficiency::curve(points, &name(*who, losses), &who.label(), who.look(*line))).collect();
    let value = |result: &PointResult, _: &PointResult| efficiency::of(result);
    curves.push(against_best(points, losses, None, value));
    // Why without it: at 40 ms SSCOP falls so far at high loss rates that nothing else would be told apart.
    let less = drawn.iter().filter(|(who, _)| *who != Who::Sscop(40)).map(|(who, line)| {
        let mut curve = against_best(points, losses, Some(*who), efficiency::difference);
        let look = who.look(*line);
        (curve.colour, curve.marker, curve.line) = (look.colour.to_owned(), look.marker, look.line);
        curve
    });
    let x = (LOSSES, Scale::Log);
    let title = format!("Less SSCOP at its best poll, {how} losses");
    let less_figure = efficiency::figure(&format!("{id}-less"), &title, x, "difference of throughput efficiency", less.collect());
    vec![efficiency::figure(id, &format!("Adaptive acknowledgment against SSCOP, {how} losses"), x, LABEL, curves), less_figure]
}

/// A value of `whose` result with SSCOP's best poll beside it, or of the best poll itself, over the loss rate.
fn against_best(points: &Measured, losses: Losses, whose: Option<Who>, value: impl Fn(&PointResult, &PointResult) -> Estimate) -> Curve {
    let drawn = RATES.into_iter().filter_map(|p| {
        let (poll, best) = best_poll(points, losses, p)?;
        let result = match whose {
            None => best,
            Some(who) => at(points, who, losses, p)?,
        };
        let estimate = value(result, best);
        let note = format!("best poll {poll} ms, {} runs of {} packets", result.outcomes.len(), result.scenario.workload.packets);
        Some(Point { x: p, y: estimate.mean, interval: estimate.interval(), imprecise: !result.is_precise(), note })
    });
    let look = Who::Sscop(0).look(Line::Dotted);
    let label = match whose {
        None => polls_text(points, losses),
        Some(who) => who.label(),
    };
    Curve { label, colour: look.colour.to_owned(), marker: Marker::None, line: look.line, points: drawn.collect() }
}

/// The name of the curve of best polls, with the polls.
fn polls_text(points: &Measured, losses: Losses) -> String {
    let polls: Vec<String> = RATES.into_iter().filter_map(|p| best_poll(points, losses, p)).map(|(poll, _)| poll.to_string()).collect();
    format!("SSCOP, best poll ({} ms)", polls.join(", "))
}

/// The numbers of the figures, with the differences, and the sweep of polls.
pub(super) fn tables(points: &Measured, losses: Losses, how: &str) -> Vec<TextTable> {
    let text =
        |who: Who, p: f64| at(points, who, losses, p).map_or_else(String::new, |result| format!("{:.4}", efficiency::of(result).mean));
    let everyone = [OURS, Who::Sscop(40), Who::Sscop(10), Who::Segstream];
    let mut rows = Vec::new();
    for p in RATES {
        let Some((poll, best)) = best_poll(points, losses, p) else { continue };
        let mut row = vec![format!("{p:e}")];
        row.extend(everyone.map(|who| text(who, p)));
        row.push(format!("{:.4} at {poll} ms", efficiency::of(best).mean));
        let less = |who: Who| at(points, who, losses, p).map_or_else(String::new, |result| signed(efficiency::difference(result, best)));
        row.extend([less(OURS), less(Who::Segstream)]);
        let told = |who: Who| {
            at(points, who, losses, p).map_or_else(String::new, |result| format!("{:.1}", efficiency::feedback_per_1000(result)))
        };
        row.extend([told(OURS), told(Who::Segstream), format!("{:.1}", efficiency::feedback_per_1000(best))]);
        rows.push(row);
    }
    let mut columns = vec!["loss rate".to_owned()];
    columns.extend(everyone.map(Who::label));
    columns.extend(["SSCOP, best poll", "Adaptive ack. less that", "Segstream less that"].map(str::to_owned));
    columns.extend(["Adaptive ack.", "Segstream", "SSCOP, best"].map(|who| format!("{who}: feedback packets of 1000")));
    let title = format!("Throughput efficiency, {how} losses");
    let polls = RATES.into_iter().map(|p| {
        let mut row = vec![format!("{p:e}")];
        row.extend(POLLS.map(|poll| text(Who::Sscop(poll), p)));
        row
    });
    let poll_columns = std::iter::once("loss rate".to_owned()).chain(POLLS.map(|poll| format!("{poll} ms"))).collect();
    vec![
        TextTable { title, columns, rows },
        TextTable { title: format!("SSCOP over its poll, {how} losses"), columns: poll_columns, rows: polls.collect() },
    ]
}

/// A difference with its interval.
pub(super) fn signed(difference: Estimate) -> String {
    let half = difference.half_width.map_or_else(String::new, |half| format!(" ± {half:.4}"));
    format!("{:+.4}{half}", difference.mean)
}

/// The parameters of both figures but the way losses come.
pub(super) const PARAMETERS: [(&str, &str); 6] = [
    ("window", "400 packets; SSCOP's credit is as long (chosen: not stated for these figures)"),
    ("T_normal, T_error", "40 ms, 5 ms (stated)"),
    ("Timer_POLL", "10 and 40 ms (stated); a sweep of 5 to 60 ms (ours), the best of which is one more curve"),
    ("MaxPD", "infinite, so that the timer alone polls (chosen: not stated)"),
    ("run length", "a tenth of the preset's packets, between the first eighth and the last; AA's 1000 / p where that is less"),
    rearming::PARAMETER,
];

/// The flagship beside adaptive acknowledgment, in throughput and in feedback.
pub(super) fn standings(points: &Measured, losses: Losses) -> Vec<Standing> {
    let pair =
        || [Pair { ours: name(Who::Segstream, losses), theirs: name(OURS, losses), curve: format!("{} p", losses.name).trim().to_owned() }];
    let with = "adaptive ack., 40 and 5 ms";
    let mut found = standings::of(points, with, Quality::Throughput, &pair(), |result| efficiency::of(result).mean);
    found.extend(standings::of(points, with, Quality::Feedback, &pair(), efficiency::feedback_per_1000));
    found
}

/// The difference of AA to another at every loss rate.
pub(super) fn differences(points: &Measured, losses: Losses, whom: impl Fn(f64) -> Option<Who>) -> Option<Vec<Estimate>> {
    let each = |p: f64| Some(efficiency::difference(at(points, OURS, losses, p)?, at(points, whom(p)?, losses, p)?));
    RATES.into_iter().map(each).collect()
}

/// Whether AA is above SSCOP at both stated polls: at how many loss rates, the least difference, and where it is not.
pub(super) struct Above {
    /// The numbers as a text.
    pub(super) told: String,
    /// The loss rates at which it is not.
    pub(super) missed: Vec<f64>,
}

/// AA against SSCOP at 10 and 40 ms, and at its best poll, which decides nothing.
pub(super) fn above(points: &Measured, losses: Losses) -> Option<Above> {
    let (ten, forty) = (differences(points, losses, |_| Some(Who::Sscop(10)))?, differences(points, losses, |_| Some(Who::Sscop(40)))?);
    let best = differences(points, losses, |p| best_poll(points, losses, p).map(|(poll, _)| Who::Sscop(poll)))?;
    let missed = (0..RATES.len()).filter(|at| ten[*at].mean <= 0.0 || forty[*at].mean <= 0.0).map(|at| RATES[at]).collect();
    let each = (0..RATES.len()).map(|at| {
        let poll = best_poll(points, losses, RATES[at]).map_or(0, |(poll, _)| poll);
        format!(
            "p {:e}: {:+.4} to 40 ms, {:+.4} to 10 ms, {} to the best ({poll} ms)",
            RATES[at],
            forty[at].mean,
            ten[at].mean,
            signed(best[at])
        )
    });
    let told = format!("{}; {}", each.collect::<Vec<_>>().join("; "), otherwise(points, losses)?);
    Some(Above { told, missed })
}
