//! The pictures and tables of the study.
//!
//! Called through [`super::STUDY`].
//!
//! Invariant: every point that was run stands in a table; bounds are drawn dotted.

use super::bounds::{Losses, asymptotic};
use super::judged::{perfect_code, perfect_code_as_measured};
use super::{BURSTS, Coding, Over, P50, P95, P99, Promise, RATE, RATES, RTT_MS, RTTS_MS, at, floor_ms, ms, sent_more, signed};
use crate::curves::{Look, SHADES, closed_form, valued};
use crate::flagship::sweep;
use segstream_lab::figure::{Curve, Figure, Line, Marker, Scale, TextTable};
use segstream_lab::measured::Measured;
use segstream_lab::outcome::Quantiles;

const MODES: [(Coding, &str, Marker); 3] =
    [(Coding::None, SHADES[2], Marker::Square), (Coding::Hedged, SHADES[3], Marker::Triangle), (Coding::BOTH, SHADES[1], Marker::Circle)];
const DOTTED: Look = Look { colour: SHADES[0], marker: Marker::None, line: Line::Dotted };
const STAR: Look = Look { colour: SHADES[1], marker: Marker::Star, line: Line::None };
const DELAY: (&str, Scale) = ("segment delay from when it was due (ms)", Scale::Log);

pub(super) fn figures(points: &Measured) -> Vec<Figure> {
    let loss = ("loss probability", Scale::Log);
    let floor = || closed_form("floor", DOTTED, [RATES[0], RATES[4]], |_| floor_ms(RTT_MS as f64));
    let delays = |over, promise, quantiles: &[Quantile], floor: Curve| -> Vec<Curve> {
        quantiles.iter().flat_map(|one| one.curves(points, over, promise)).chain([floor]).collect()
    };
    let upper = [Quantile::P99, Quantile::P50];
    let long = [Quantile::P99, Quantile::P95];
    let burst_floor = closed_form("floor", DOTTED, [BURSTS[0], BURSTS[4]], |_| floor_ms(RTT_MS as f64));
    let rtt_floor = closed_form("floor", DOTTED, RTTS_MS.map(|rtt| rtt as f64), floor_ms);
    let (bursts, rtts) = (("mean burst length (packets)", Scale::Log), ("round trip (ms)", Scale::Log));
    let mut reliable = delays(Over::Loss, Promise::Reliable, &upper, floor());
    let more = Over::Loss.curve(Promise::Reliable, Coding::BOTH_MORE);
    reliable.push(valued(points, &more, "both with 20 %, 99 %", STAR, |result| (ms(result, P99), None)));
    vec![
        figure("", "Reliable segments over loss", loss, DELAY, reliable),
        figure("-tolerance", "Segments of (256,32,3) over loss", loss, DELAY, delays(Over::Loss, Promise::Partial, &upper, floor())),
        figure(
            "-burst",
            "Reliable segments over the length of bursts, loss 1e-2",
            bursts,
            DELAY,
            delays(Over::Burst, Promise::Reliable, &long, burst_floor),
        ),
        figure(
            "-rtt",
            "Reliable segments over the round trip, loss 1e-2",
            rtts,
            DELAY,
            delays(Over::RoundTrip, Promise::Reliable, &upper, rtt_floor),
        ),
        overhead(points),
    ]
}

fn figure(id: &str, title: &str, x: (&str, Scale), y: (&str, Scale), curves: Vec<Curve>) -> Figure {
    sweep::figure(&format!("flagship-coded-repair{id}"), title, x, y, curves)
}

/// A quantile as it is drawn.
struct Quantile {
    name: &'static str,
    of: fn(&Quantiles) -> u64,
    line: Line,
}

impl Quantile {
    const P99: Self = Self { name: "99 %", of: P99, line: Line::Solid };
    const P95: Self = Self { name: "95 %", of: P95, line: Line::Dashed };
    const P50: Self = Self { name: "median", of: P50, line: Line::Dashed };

    /// One curve for each of the codings.
    fn curves(&self, points: &Measured, over: Over, promise: Promise) -> Vec<Curve> {
        let curve = |(coding, colour, marker): (Coding, &'static str, Marker)| {
            let label = format!("{}, {}", coding.name(), self.name);
            let look = Look { colour, marker, line: self.line };
            let drawn = valued(points, &over.curve(promise, coding), &label, look, |result| (ms(result, self.of), None));
            // Without loss has no place on an axis of decades.
            Curve { points: drawn.points.into_iter().filter(|point| point.x > 0.0).collect(), ..drawn }
        };
        MODES.map(curve).into()
    }
}

/// What is sent more, and what a code costs at least.
fn overhead(points: &Measured) -> Figure {
    let drawn = |promise: Promise, coding: Coding, label: &str, look: Look| {
        let curve = valued(points, &Over::Loss.curve(promise, coding), label, look, |result| (sent_more(result), None));
        // What is nothing has no place there either.
        Curve { points: curve.points.into_iter().filter(|point| point.x > 0.0 && point.y > 0.0).collect(), ..curve }
    };
    let mut curves: Vec<Curve> = MODES
        .iter()
        .map(|(coding, colour, marker)| {
            let look = Look { colour, marker: *marker, line: Line::Solid };
            drawn(Promise::Reliable, *coding, &format!("reliable, {}", coding.name()), look)
        })
        .collect();
    curves.push(drawn(Promise::Reliable, Coding::BOTH_MORE, "reliable, both with 20 %", STAR));
    let fence = Look { colour: SHADES[4], marker: Marker::Diamond, line: Line::None };
    curves.push(drawn(Promise::Partial, Coding::BOTH, "(256,32,3), both", fence));
    curves.push(closed_form("p / (1 - p)", DOTTED, RATES, |rate| 100.0 * asymptotic(rate)));
    let perfect = Look { colour: SHADES[5], ..DOTTED };
    curves.push(closed_form("a perfect code for a segment", perfect, RATES, |rate| perfect_code(Losses::random(rate))));
    let (x, y) = (("loss probability", Scale::Log), ("sent beyond the units (%)", Scale::Log));
    figure("-overhead", "What is sent more, and what a code costs at least", x, y, curves)
}

pub(super) fn tables(points: &Measured) -> Vec<TextTable> {
    let rates: Vec<f64> = [0.0].into_iter().chain(RATES).collect();
    vec![
        delays(points, "Over random loss", ("loss", &rates), Over::Loss),
        delays(points, "Over the mean length of bursts, loss 1e-2", ("burst", &BURSTS), Over::Burst),
        delays(points, "Over the round trip, loss 1e-2", ("round trip (ms)", &RTTS_MS.map(|rtt| rtt as f64)), Over::RoundTrip),
        bounds(points),
    ]
}

fn table(title: &str, columns: &[&str], rows: Vec<Vec<String>>) -> TextTable {
    TextTable { title: title.to_owned(), columns: columns.iter().map(|column| (*column).to_owned()).collect(), rows }
}

/// Every point over what is varied.
fn delays(points: &Measured, title: &str, (name, places): (&str, &[f64]), over: Over) -> TextTable {
    let mut rows = Vec::new();
    for x in places {
        for promise in Promise::ALL {
            let plain = at(points, over, promise, Coding::None, *x).map_or(f64::NAN, sent_more);
            for coding in Coding::ALL.into_iter().chain([Coding::BOTH_MORE]) {
                let Some(result) = at(points, over, promise, coding, *x) else { continue };
                let [p50, p95, p99] = [P50, P95, P99].map(|quantile| format!("{:.1}", ms(result, quantile)));
                let more = sent_more(result);
                let beyond = if coding == Coding::None { String::new() } else { signed(more - plain, 2) };
                let place = if over == Over::Loss && *x > 0.0 { format!("{x:e}") } else { x.to_string() };
                rows.push(vec![place, promise.name().to_owned(), coding.name(), p50, p95, p99, format!("{more:.2}"), beyond]);
            }
        }
    }
    table(title, &[name, "tolerance", "repair units", "median (ms)", "95 % (ms)", "99 % (ms)", "sent more (%)", "beyond none (%)"], rows)
}

/// What reliable segments cost with both, and the bounds.
fn bounds(points: &Measured) -> TextTable {
    let mut rows = Vec::new();
    let mut row = |name: String, over, x: f64, coding: Coding, losses: Losses, rate: f64, as_measured: String| {
        let Some(result) = at(points, over, Promise::Reliable, coding, x) else { return };
        let of_any_length = format!("{:.2}", 100.0 * asymptotic(rate));
        let perfect = format!("{:.2}", perfect_code(losses));
        rows.push(vec![name, coding.name(), format!("{:.2}", sent_more(result)), of_any_length, perfect, as_measured]);
    };
    for rate in RATES {
        let as_measured = format!("{:.2}", perfect_code_as_measured(rate));
        row(format!("{rate:e}"), Over::Loss, rate, Coding::both_at(rate), Losses::random(rate), rate, as_measured);
    }
    for burst in BURSTS.into_iter().filter(|burst| *burst > 1.0) {
        row(format!("1e-2 in {burst}"), Over::Burst, burst, Coding::BOTH, Losses::bursts(RATE, burst), RATE, String::new());
    }
    let columns = ["loss", "repair units", "sent more (%)", "p / (1 - p) (%)", "perfect code (%)", "two deviations above (%)"];
    table("Reliable segments: what is sent more, and the least", &columns, rows)
}
