//! Throughput efficiency against the window: the one sweep behind EC Fig. 10 and FC Fig. 14.
//!
//! Called by `ec/fig10` and `fc/fig14`, whose points are the same and are run once: points, pictures, the
//! table and the findings ([`least_window_slow`] and `_fast` for C1, [`recommended_window_slow`] and `_fast`
//! for C2, [`accuracy`] for C3) are all here, and a study only adds its names: `figures: |points| window_sweep::figures("ec-fig10", points)`.
//! Curves are called `<who> <rate>mbit <p>`, such as `sstp-ideal 500mbit 1e-3`; x is the window in segments.
//!
//! Invariant: both papers are judged on the same points by the same code.
//! Source: EC 5.3 and Fig. 10, FC 4.3 and Fig. 14.

use crate::black_box::{EVERYWHERE, Who, mbit, random};
use crate::curves::{self, Look, Measure, SHADES};
use crate::standings::{self, Pair};
use segstream_lab::claim::{Finding, Part};
use segstream_lab::closed_forms::{Form, Point, throughput};
use segstream_lab::figure::{Axis, Curve, Figure, Line, Marker, Scale, TextTable};
use segstream_lab::measured::Measured;
use segstream_lab::standing::{Quality, Standing};
use segstream_lab::study::StudyPoint;

/// The loss probabilities: three curves, of which the text names the ends.
pub const PROBABILITIES: [f64; 3] = [1e-4, 1e-3, 1e-2];
/// One more, for the claim on very small losses only.
const VERY_SMALL: f64 = 1e-5;

/// One bandwidth with its windows.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    /// In Mbit/s.
    pub mbit: u64,
    /// The windows of SSTP with ideal feedback.
    pub windows: &'static [u32],
    /// Those at which everybody is measured.
    pub windows_all: &'static [u32],
    /// ceil(1 + w_a).
    pub least: u32,
    /// ceil(2.5 w_a).
    pub recommended: u32,
}

/// The bandwidth of the papers' example of 732 packets, where w_a is 2.873 segments.
pub const SLOW: Rate = Rate { mbit: 100, windows: &[1, 2, 3, 4, 5, 6, 7, 8], windows_all: &[2, 4, 6, 8], least: 4, recommended: 8 };
/// The bandwidth of every other figure, where w_a is 14.317 segments.
pub const FAST: Rate = Rate {
    mbit: 500,
    windows: &[1, 4, 7, 11, 14, 16, 21, 25, 29, 36, 43],
    windows_all: &[1, 4, 7, 11, 14, 16, 21, 25, 29, 36, 43],
    least: 16,
    recommended: 36,
};

impl Rate {
    /// The papers' point at this bandwidth.
    pub fn point(&self) -> Point {
        Point::of_the_papers(self.mbit as f64 * 1e6)
    }

    /// The name of a curve.
    pub fn curve(&self, who: Who, p: f64) -> String {
        format!("{} {}mbit {p:e}", who.name(), self.mbit)
    }

    /// The share of a run that its end takes, one t_a in which nothing new is sent.
    fn end_share(&self, points: &Measured, p: f64) -> Option<f64> {
        let run = &points.at(&self.curve(Who::SstpIdeal, p), f64::from(self.recommended))?.scenario;
        Some(self.point().acknowledgment_time() / (run.workload.packets as f64 * run.packet_time_s()))
    }

    fn efficiency(&self, points: &Measured, p: f64, window: u32) -> Option<f64> {
        let result = points.at(&self.curve(Who::SstpIdeal, p), f64::from(window))?;
        Some(result.throughput_efficiency().mean)
    }
}

/// All points.
pub fn points() -> Vec<StudyPoint> {
    let mut points = Vec::new();
    for rate in [SLOW, FAST] {
        for who in EVERYWHERE {
            let windows = if who == Who::SstpIdeal { rate.windows } else { rate.windows_all };
            for p in PROBABILITIES {
                points.extend(windows.iter().map(|window| point(&rate, who, p, *window)));
            }
        }
        points.push(point(&rate, Who::SstpIdeal, VERY_SMALL, rate.least));
    }
    points
}

fn point(rate: &Rate, who: Who, p: f64, window: u32) -> StudyPoint {
    let scenario = who.over(&random(p)).with(|it| {
        it.black_box.bandwidth = mbit(rate.mbit);
        it.workload.window = window;
    });
    StudyPoint { curve: rate.curve(who, p), x: f64::from(window), scenario }
}

/// A picture for each bandwidth; `id` is the study's, such as `ec-fig10`.
pub fn figures(id: &str, points: &Measured) -> Vec<Figure> {
    [SLOW, FAST].iter().map(|rate| figure(id, rate, points)).collect()
}

fn figure(id: &str, rate: &Rate, points: &Measured) -> Figure {
    let w_a = rate.point().acknowledgment_window();
    let last = rate.windows.last().map_or(1.0, |window| f64::from(*window));
    let mut curves: Vec<Curve> = Vec::new();
    for (p, colour) in PROBABILITIES.into_iter().zip(SHADES) {
        curves.push(analysis(rate, p, Form::Corrected, &format!("analysis, p = {p:e}"), look(colour, Marker::None, Line::Solid), last));
    }
    let printed = look(SHADES[2], Marker::None, Line::Dotted);
    curves.push(analysis(rate, 1e-2, Form::Printed, "analysis as printed, p = 1e-2", printed, last));
    for who in EVERYWHERE {
        for (p, colour) in PROBABILITIES.into_iter().zip(SHADES) {
            let label = format!("{}, p = {p:e}", who.label());
            let look = look(colour, who.marker(), Line::None);
            curves.push(curves::measured(points, &rate.curve(who, p), &label, Measure::ThroughputEfficiency, look));
        }
    }
    Figure {
        id: format!("{id}-{}mbit", rate.mbit),
        title: format!("Throughput efficiency against the window at {} Mbit/s", rate.mbit),
        x: Axis { label: format!("window (segments; w_a = {w_a:.2})"), scale: Scale::Linear, range: None },
        y: Axis { label: Measure::ThroughputEfficiency.label().to_owned(), scale: Scale::Linear, range: Some((0.0, 1.0)) },
        curves,
    }
}

const fn look(colour: &'static str, marker: Marker, line: Line) -> Look {
    Look { colour, marker, line }
}

/// The closed form on a grid fine enough to show where its branches meet.
fn analysis(rate: &Rate, p: f64, form: Form, label: &str, look: Look, last: f64) -> Curve {
    const STEPS: u32 = 168;
    let xs = (0..=STEPS).map(|step| 1.0 + (last - 1.0) * f64::from(step) / f64::from(STEPS));
    let point = rate.point();
    curves::closed_form(label, look, xs, |window| throughput(&point, p, window, form))
}

/// The flagship beside SSTP with everything on, at every window.
pub fn standings(points: &Measured) -> Vec<Standing> {
    let pair = |rate: Rate, p: f64| Pair {
        ours: rate.curve(Who::Segstream, p),
        theirs: rate.curve(Who::SstpFull, p),
        curve: format!("{} Mbit/s, p = {p:e}, W", rate.mbit),
    };
    let pairs: Vec<Pair> = [SLOW, FAST].into_iter().flat_map(|rate| PROBABILITIES.map(|p| pair(rate, p))).collect();
    standings::of(points, "SSTP, full", Quality::Throughput, &pairs, standings::efficiency)
}

/// Analysis and simulation side by side.
pub fn tables(points: &Measured) -> Vec<TextTable> {
    let columns = ["Mbit/s", "p", "window", "analysis", "as printed", "SSTP ideal", "SSTP full", "Segstream"];
    let mut rows = Vec::new();
    for rate in [SLOW, FAST] {
        for p in PROBABILITIES {
            for window in rate.windows {
                let form = |form| format!("{:.4}", throughput(&rate.point(), p, f64::from(*window), form));
                let mut row = vec![rate.mbit.to_string(), format!("{p:e}"), window.to_string()];
                row.extend([form(Form::Corrected), form(Form::Printed)]);
                row.extend(EVERYWHERE.map(|who| cell(points, &rate.curve(who, p), *window)));
                rows.push(row);
            }
        }
    }
    let columns = columns.map(str::to_owned).to_vec();
    vec![TextTable { title: "Analysis and simulation".to_owned(), columns, rows }]
}

fn cell(points: &Measured, curve: &str, window: u32) -> String {
    points.at(curve, f64::from(window)).map_or_else(String::new, |result| format!("{:.4}", result.throughput_efficiency().mean))
}

/// EC-C1, FC-C1 at the rate of the papers' own example: with p <= 1e-4 a window of 1 + w_a is close to the maximum.
pub fn least_window_slow(points: &Measured) -> Option<Finding> {
    least_window(points, &SLOW)
}

/// The same at the rate that fits EC's delays.
pub fn least_window_fast(points: &Measured) -> Option<Finding> {
    least_window(points, &FAST)
}

fn least_window(points: &Measured, rate: &Rate) -> Option<Finding> {
    // "Close to maximum" is put at 90 % of 1 - p.
    const CLOSE: f64 = 0.9;
    let (often, rare) = (rate.efficiency(points, 1e-4, rate.least)?, rate.efficiency(points, VERY_SMALL, rate.least)?);
    let measured = format!(
        "{} Mbit/s, W = {}: {often:.3} at p = 1e-4, {rare:.3} at 1e-5; close is taken as at least {CLOSE} (1 - p)",
        rate.mbit, rate.least
    );
    let parts = [
        Part::also("close to the maximum at 1e-5", rare >= CLOSE * (1.0 - VERY_SMALL)),
        Part::also("close to it at 1e-4", often >= CLOSE * (1.0 - 1e-4)),
    ];
    Some(Finding::of(parts, measured).because(
        "A loss costs about one round trip of a full window once every 1/p packets, so the cost grows with p times the packets in \
         flight: 0.07 at 100 Mbit/s and 0.37 at 500 Mbit/s for p = 1e-4. The papers state no rate; their example of 732 packets in a \
         round trip of 60 ms is 100 Mbit/s, and 500 Mbit/s are inferred from the delays of another figure. Each is judged by itself.",
    ))
}

/// EC-C2, FC-C2 at the rate of the papers' own example: up to p = 1e-2 a window of 2.5 w_a gives almost perfect throughput.
pub fn recommended_window_slow(points: &Measured) -> Option<Finding> {
    recommended_window(points, &SLOW)
}

/// The same at the rate that fits EC's delays.
pub fn recommended_window_fast(points: &Measured) -> Option<Finding> {
    recommended_window(points, &FAST)
}

fn recommended_window(points: &Measured, rate: &Rate) -> Option<Finding> {
    // "Almost perfect" is put at 95 % of 1 - p.
    const ALMOST: f64 = 0.95;
    let at = |p: f64| rate.efficiency(points, p, rate.recommended);
    let (rare, often) = (at(1e-3)?, at(1e-2)?);
    let measured = format!(
        "{} Mbit/s, W = {}: {rare:.3} at p = 1e-3, {often:.3} at 1e-2; the limit is 1 - p, almost perfect is taken as at least {ALMOST} of \
         it",
        rate.mbit, rate.recommended
    );
    let parts =
        [Part::also("almost perfect at 1e-3", rare >= ALMOST * 0.999), Part::also("almost perfect at 1e-2", often >= ALMOST * 0.99)];
    Some(Finding::of(parts, measured).because(
        "At p = 1e-2 nine segments of ten need a second transmission and one of forty a third, which 2.5 w_a has no room for: at 500 \
         Mbit/s some segment waits for a third in six windows of ten. The papers state no rate, and each is judged by itself.",
    ))
}

/// EC-C3, FC-C3: the analysis is quite accurate up to p = 1e-2 and lies above the simulation.
pub fn accuracy(points: &Measured) -> Option<Finding> {
    const ACCURATE: f64 = 0.05;
    let mut below: f64 = 0.0;
    let mut above = Vec::new();
    let mut accurate = true;
    let (mut printed_below, mut printed) = (0, 0);
    for p in PROBABILITIES {
        let mut most: f64 = 0.0;
        for rate in [SLOW, FAST] {
            let point = rate.point();
            let w_a = point.acknowledgment_window();
            // A run ends with a window that is not refilled, which the analysis does not know of.
            let end = rate.end_share(points, p)?;
            for window in rate.windows {
                let (simulated, at) = (rate.efficiency(points, p, *window)?, f64::from(*window));
                let over = throughput(&point, p, at, Form::Corrected) - simulated;
                below = below.max(-over);
                most = most.max(over);
                accurate &= p > 1e-3 || over <= ACCURATE + end;
                if at > w_a + 1.0 && at < 2.0 * w_a + 1.0 {
                    printed += 1;
                    printed_below += u32::from(throughput(&point, p, at, Form::Printed) < simulated);
                }
            }
        }
        above.push(most);
    }
    let parts = [
        Part::point("accurate up to 1e-3, and not below the simulation", accurate && below <= ACCURATE),
        Part::also("accurate at 1e-2 too", above[2] <= ACCURATE),
        Part::also("never below the simulation by more than 0.01", below <= 0.01),
    ];
    let measured = format!(
        "corrected analysis: at most {:.3}, {:.3}, {:.3} above the simulation at p = 1e-4, 1e-3, 1e-2, and at most {below:.3} below it; \
         the form as printed lies below it at {printed_below} of {printed} points between w_a + 1 and 2 w_a + 1",
        above[0], above[1], above[2]
    );
    Some(Finding::of(parts, measured).because(
        "With p M for M below the line the second branch joins the first and lies above the simulation but for small differences. At p = \
         1e-2 the analysis leaves out second retransmissions, which matter from about 2 w_a on.",
    ))
}
