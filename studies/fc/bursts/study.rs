//! FC 3.3: bursts (P, F, L), the lower of FC's two levels: what F and L, the window and a bottleneck do to them.
//!
//! Called through [`super::STUDIES`]. `bottleneck` holds the points of several senders over one link, `served` those of a receiver that
//! serves fewer packets a burst than come, `claims` judges.
//!
//! Invariant: throughput is in segments a second over F, so that 1 is what the application asked for.
//! Source: FC 3.3, 3.4. The paper describes the level and runs it in no figure.

mod bottleneck;
mod claims;
mod served;

use crate::black_box::{Who, random};
use crate::curves::{Look, SHADES, closed_form, valued};
use segstream_lab::claim::Claim;
use segstream_lab::closed_forms::{self, Point};
use segstream_lab::figure::{Axis, Curve, Figure, Line, Marker, Scale, TextTable};
use segstream_lab::measured::Measured;
use segstream_lab::outcome::Outcome;
use segstream_lab::point::PointResult;
use segstream_lab::scenario::Scenario;
use segstream_lab::statistics::Estimate;
use segstream_lab::study::{Study, StudyPoint};
use segstream_schemes::transport::Bursts;

/// The study.
pub(super) static STUDY: Study = Study {
    id: "fc/bursts",
    title: "Rate control in bursts: (P, F, L)",
    source: "FC 3.3 and 3.4; no figure of the paper runs it",
    summary: "The lower level of the paper's flow control sends F bursts a second of L packets each, at the peak rate P. The paper gives \
              two ways of choosing L, the segment (L = s) or the segment and what it expects to repeat (L = s + X), and runs neither. \
              Here the application has F segments a second, and what is seen is how many arrive.\n\n\
              The last two pictures put bursts on a bottleneck beside an even rate of the same average.",
    parameters: &[
        ("paper", "R = (P, F, L) and how to choose L are stated; no numbers are, everything here is chosen"),
        ("path", "60 ms; P = 500 Mbit/s, the bandwidth; packets of 1024 bytes, s = 256, as in the other figures of FC"),
        ("F", "100 segments a second, 0.42 of P (at most 238 bursts of 256 packets fit); 25 to 238 where F is what changes"),
        ("window", "36 segments, as in Figs. 17 to 19; 3 to 10 where it is what changes"),
        ("source", "F segments a second at even intervals; always one where F or the window changes"),
        ("X", "s p / (1 - p), rounded up: the mean number of packets of a segment that are sent again"),
        ("served", "m packets of each burst of 256: the user works 256 / (m F) on a segment; the window is 36, the buffer 36 or 7"),
        ("bottleneck", "100 Mbit/s; four senders of segments of 64 packets, F = 30, L = 64, P = 400 Mbit/s: a load of 0.6"),
    ],
    points,
    shortened: 2,
    shared: bottleneck::points,
    figures: |measured| [figures(measured), served::figures(measured), bottleneck::figures(measured)].concat(),
    tables: |measured| [tables(measured), served::tables(measured), bottleneck::tables(measured)].concat(),
    claims: &[
        Claim {
            id: "FC-B1",
            text: "With L = s + X a connection keeps F segments a second at every loss probability (FC 3.3).",
            check: claims::room_for_repeats_keeps_f,
        },
        Claim {
            id: "FC-B2",
            text: "With L = s it does not: F (1 - p) segments a second arrive, by the closed form F L (1 - p) / s.",
            check: claims::without_room_repeats_cost_segments,
        },
        Claim {
            id: "FC-B3",
            text: "With L = s + X a new segment is still delivered in one burst (FC 3.3): at least half of them are, where L = s spreads \
                   them over two.",
            check: claims::delivered_in_one_burst,
        },
        Claim {
            id: "FC-B4",
            text: "A window of 1 + w_a, with w_a at the average rate, keeps F segments a second without loss; with a smaller one the rate \
                   control is idle some of the time (FC 3.4).",
            check: claims::least_window,
        },
        Claim {
            id: "FC-B5",
            text: "Over a bottleneck of rate C a burst alone fills L (1 - C / P) places: in a smaller queue bursts lose packets, and an \
                   even rate of the same average does not (ours).",
            check: bottleneck::bursts_need_room,
        },
        Claim {
            id: "FC-B6",
            text: "Where the queue has room, a segment sent as a burst is delivered sooner than one sent evenly (FC 3.3: as fast as \
                   possible when ready).",
            check: bottleneck::bursts_are_sooner,
        },
        Claim {
            id: "FC-B7",
            text: "A receiver that serves m < L packets a burst is sent F m / L segments a second, by the closed form, and none in vain (ours; \
                   FC 3.3: bursts match how segments are consumed).",
            check: served::gets_what_it_serves,
        },
    ],
    expected: include_str!("expected.csv"),
    ..Study::NONE
};

/// s.
const SEGMENT: u32 = 256;
/// F.
const PER_SECOND: u32 = 100;
const PROBABILITIES: [f64; 5] = [1e-4, 1e-3, 1e-2, 3e-2, 1e-1];
/// Where L changes.
const LOSS: f64 = 1e-2;
/// Values in a row of a finding.
fn listed(values: &[f64], decimals: usize) -> String {
    values.iter().map(|value| format!("{value:.decimals$}")).collect::<Vec<_>>().join(" / ")
}

/// L - s.
const ROOM: [u32; 9] = [0, 1, 2, 3, 4, 6, 8, 16, 32];
const RATES: [u32; 4] = [25, 100, 200, 238];
const WINDOWS: [u32; 7] = [3, 4, 5, 6, 7, 8, 10];
/// Who is in the sweeps over one of the parameters.
const TWO: [Who; 2] = [Who::SstpIdeal, Who::Segstream];
const ALL: [Who; 3] = [Who::SstpIdeal, Who::SstpFull, Who::Segstream];

/// How L is chosen (FC 3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Length {
    Segment,
    SegmentAndRepeats,
}

impl Length {
    const BOTH: [Self; 2] = [Self::Segment, Self::SegmentAndRepeats];

    const fn label(self) -> &'static str {
        match self {
            Self::Segment => "L = s",
            Self::SegmentAndRepeats => "L = s + X",
        }
    }

    fn packets(self, p: f64) -> u32 {
        match self {
            Self::Segment => SEGMENT,
            Self::SegmentAndRepeats => closed_forms::burst_packets(SEGMENT, p) as u32,
        }
    }

    /// The closed form: F L (1 - p) / s, at most F; over F.
    fn predicted(self, p: f64) -> f64 {
        (f64::from(self.packets(p)) * (1.0 - p) / f64::from(SEGMENT)).min(1.0)
    }

    fn curve(self, who: Who) -> String {
        format!("{} {}", who.name(), self.label())
    }
}

fn over_room(who: Who) -> String {
    format!("{} L", who.name())
}

fn over_rate(who: Who) -> String {
    format!("{} F", who.name())
}

fn over_window(who: Who) -> String {
    format!("{} W", who.name())
}

/// Bursts of `packets`, each with the segment that the application has for it.
fn steady(who: Who, p: f64, packets: u32) -> Scenario {
    who.over(&random(p)).with(|it| {
        it.workload.bursts = Some(Bursts { per_second: PER_SECOND, packets });
        it.workload.offered = Some(PER_SECOND * SEGMENT);
    })
}

/// Bursts of a segment without losses, with always a segment to send.
fn greedy(who: Who, per_second: u32) -> Scenario {
    let none = segstream_path::LossSpec::None;
    who.over(&none).with(|it| it.workload.bursts = Some(Bursts { per_second, packets: SEGMENT }))
}

fn points() -> Vec<StudyPoint> {
    let mut points = Vec::new();
    for who in ALL {
        for length in Length::BOTH {
            let point = |p: f64| StudyPoint { curve: length.curve(who), x: p, scenario: steady(who, p, length.packets(p)) };
            points.extend(PROBABILITIES.map(point));
        }
    }
    for who in TWO {
        let over_l = |room: u32| StudyPoint { curve: over_room(who), x: f64::from(room), scenario: steady(who, LOSS, SEGMENT + room) };
        points.extend(ROOM.map(over_l));
        let over_f = |rate: u32| StudyPoint { curve: over_rate(who), x: f64::from(rate), scenario: greedy(who, rate) };
        points.extend(RATES.map(over_f));
        let over_w = |window: u32| {
            let scenario = greedy(who, PER_SECOND).with(|it| it.workload.window = window);
            StudyPoint { curve: over_window(who), x: f64::from(window), scenario }
        };
        points.extend(WINDOWS.map(over_w));
    }
    points.extend(served::points());
    points
}

/// Segments accepted a second, from the second of the run's batches to the last but one. Why not over all of it: a short run ends
/// with a wait for what was lost last, which is no matter of the rate.
fn segments_per_second(outcome: &Outcome) -> f64 {
    let batches = &outcome.batches;
    let inner = batches.get(1..batches.len().saturating_sub(1)).filter(|inner| !inner.is_empty()).unwrap_or(batches);
    let (segments, nanos) = inner.iter().fold((0, 0), |(segments, nanos), it| (segments + it.segments, nanos + it.span_ns));
    segments as f64 * 1e9 / nanos as f64
}

/// Throughput in segments a second over the F of its bursts.
fn over_f(result: &PointResult) -> Estimate {
    let bursts = result.scenario.workload.bursts.map_or(1, |bursts| bursts.per_second);
    result.over_replications(|outcome| segments_per_second(outcome) / f64::from(bursts))
}

/// The delay that half of the segments have at most, in milliseconds.
fn delay_ms_median(result: &PointResult) -> Estimate {
    result.over_replications(|outcome| outcome.delays.median_ns as f64 * 1e-6)
}

fn look(who: Who, length: Length) -> Look {
    let colour = match who {
        Who::SstpIdeal => SHADES[2],
        Who::SstpFull => SHADES[5],
        Who::Segstream | Who::Snr => SHADES[1],
    };
    Look { colour, marker: who.marker(), line: if length == Length::Segment { Line::Dashed } else { Line::Solid } }
}

fn figure(id: &str, title: &str, x: (&str, Scale), y: &str, curves: Vec<Curve>) -> Figure {
    let axis = |label: &str, scale: Scale| Axis { label: label.to_owned(), scale, range: None };
    Figure { id: format!("fc-bursts-{id}"), title: title.to_owned(), x: axis(x.0, x.1), y: axis(y, Scale::Linear), curves }
}

/// What is drawn of a result.
type Value = fn(&PointResult) -> Estimate;

fn curve(points: &Measured, name: &str, label: &str, look: Look, value: Value) -> Curve {
    valued(points, name, label, look, |result| (value(result).mean, value(result).interval()))
}

/// Everyone's curves over the loss probability, for both lengths.
fn over_p(points: &Measured, value: Value) -> Vec<Curve> {
    let label = |who: Who, it: Length| format!("{}, {}", who.label(), it.label());
    let of = |who: Who| Length::BOTH.map(|it| curve(points, &it.curve(who), &label(who, it), look(who, it), value));
    ALL.map(of).concat()
}

/// The curves of the two that are swept over something else.
fn over(points: &Measured, name: fn(Who) -> String, value: Value) -> Vec<Curve> {
    TWO.map(|who| curve(points, &name(who), &who.label(), look(who, Length::SegmentAndRepeats), value)).to_vec()
}

const fn dotted(colour: &'static str) -> Look {
    Look { colour, marker: Marker::None, line: Line::Dotted }
}

fn figures(points: &Measured) -> Vec<Figure> {
    let forms = Length::BOTH.map(|it| {
        let label = format!("{}, closed form", it.label());
        closed_form(&label, dotted(SHADES[if it == Length::Segment { 4 } else { 0 }]), PROBABILITIES, |p| it.predicted(p))
    });
    let room = |room: f64| ((f64::from(SEGMENT) + room) * (1.0 - LOSS) / f64::from(SEGMENT)).min(1.0);
    let of_room = closed_form("closed form", dotted(SHADES[0]), ROOM.map(f64::from), room);
    let of_window = closed_form("closed form", dotted(SHADES[0]), WINDOWS.map(f64::from), window_predicted);
    let (loss, length) = (("loss probability", Scale::Log), ("L - s (packets)", Scale::Linear));
    let (rate, window) = (("F (bursts a second)", Scale::Linear), ("window (segments)", Scale::Linear));
    let (over_f_label, delay_label) = ("segments a second / F", "segment delay, median (ms)");
    let with_forms = [over_p(points, over_f), forms.to_vec()].concat();
    let by_room = [over(points, over_room, over_f), vec![of_room]].concat();
    let by_window = [over(points, over_window, over_f), vec![of_window]].concat();
    vec![
        figure("loss", "Segments a second, with two ways of choosing L", loss, over_f_label, with_forms),
        figure("delay", "Delay of half of the segments", loss, delay_label, over_p(points, delay_ms_median)),
        figure("length", "Segments a second over L, p = 1e-2", length, over_f_label, by_room),
        figure(
            "length-delay",
            "Delay of half of the segments over L, p = 1e-2",
            length,
            delay_label,
            over(points, over_room, delay_ms_median),
        ),
        figure("rate", "Segments a second over F, no loss, L = s", rate, over_f_label, over(points, over_rate, over_f)),
        figure("window", "Segments a second over the window, no loss, L = s", window, over_f_label, by_window),
    ]
}

/// w_a at the average rate of bursts of a segment, F t_a with t_p at the peak (FC 3.4).
fn acknowledgment_window() -> f64 {
    f64::from(PER_SECOND) * Point::of_the_papers(500e6).acknowledgment_time()
}

/// FC 3.4: `window` segments leave in the time of w_a and one more; over F.
fn window_predicted(window: f64) -> f64 {
    (window / (1.0 + acknowledgment_window())).min(1.0)
}

fn tables(points: &Measured) -> Vec<TextTable> {
    let text = |result: Option<&PointResult>| {
        result.map_or_else(String::new, |it| format!("{:.4}, {:.1} ms", over_f(it).mean, delay_ms_median(it).mean))
    };
    let mut columns = vec!["p".to_owned(), "X".to_owned()];
    columns.extend(ALL.iter().flat_map(|who| Length::BOTH.map(|it| format!("{}, {}", who.label(), it.label()))));
    let row = |p: f64| {
        let mut row = vec![format!("{p:e}"), (Length::SegmentAndRepeats.packets(p) - SEGMENT).to_string()];
        row.extend(ALL.iter().flat_map(|who| Length::BOTH.map(|it| text(points.at(&it.curve(*who), p)))));
        row
    };
    let over_p = TextTable {
        title: "Segments a second / F, and the delay of half of them".to_owned(),
        columns,
        rows: PROBABILITIES.map(row).to_vec(),
    };
    let mut rows = Vec::new();
    type Curve = fn(Who) -> String;
    let sweeps = [
        ("L - s, p = 1e-2", over_room as Curve, ROOM.to_vec()),
        ("F", over_rate as Curve, RATES.to_vec()),
        ("window", over_window as Curve, WINDOWS.to_vec()),
    ];
    for (what, name, values) in sweeps {
        for x in values {
            let mut row = vec![what.to_owned(), x.to_string()];
            row.extend(TWO.map(|who| text(points.at(&name(who), f64::from(x)))));
            rows.push(row);
        }
    }
    let columns = [vec!["what changes".to_owned(), "value".to_owned()], TWO.map(Who::label).to_vec()].concat();
    vec![over_p, TextTable { title: "The same over L, F and the window".to_owned(), columns, rows }]
}
