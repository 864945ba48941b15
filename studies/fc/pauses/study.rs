//! FC 3.3, EC 4.1: what a sender says in a pause, and a receiver that closes when it hears nothing.
//!
//! Called through [`super::STUDIES`].
//!
//! Invariant: the limits stand here as numbers and were written down before the first run.
//! Source: FC 3.3 (step 3: a keep-alive packet on each tick of an empty queue), EC 4.1 (what keep-alive packets are for). No figure
//! of the papers runs it.

use crate::black_box::{Who, random};
use crate::curves::{Look, SHADES, valued};
use segstream_base::Duration;
use segstream_lab::claim::{Claim, Finding, Part};
use segstream_lab::figure::{Axis, Curve, Figure, Line, Scale, TextTable};
use segstream_lab::measured::Measured;
use segstream_lab::outcome::Outcome;
use segstream_lab::point::PointResult;
use segstream_lab::scenario::Scenario;
use segstream_lab::statistics::Estimate;
use segstream_lab::study::{Study, StudyPoint};
use segstream_schemes::sstp::{self, KeepAlive};
use segstream_schemes::transport::Bursts;

/// The study.
pub(super) static STUDY: Study = Study {
    id: "fc/pauses",
    title: "Pauses: keep-alive packets on each tick, and a receiver that closes",
    source: "FC 3.3 and EC 4.1; no figure of the papers runs it",
    summary: "An application that has a segment every two seconds, and pauses between. The paper's sender then sends a keep-alive packet \
              on every tick of its burst timer, which is to keep the receiver from closing and to show it what was lost last. Beside it \
              stand keep-alive packets a quarter of a round trip apart, the first at once, and Segstream.",
    parameters: &[
        ("path", "60 ms, 500 Mbit/s, random loss both ways; packets of 1024 bytes, s = 256"),
        ("F, L", "100 bursts a second of L = s packets, so that a tick is 10 ms (chosen)"),
        ("pauses", "a segment each 2 s, 200 ticks (chosen)"),
        ("closing", "an end of SSTP closes after 500 ms without a packet of the other, 50 ticks (chosen; the papers give no time)"),
        ("run length", "a fifth of the preset's packets"),
    ],
    points,
    shortened: 5,
    figures,
    tables,
    claims: &[
        Claim {
            id: "FC-K1",
            text: "Keep-alive packets on each tick keep the receiver from closing (EC 4.1, FC 3.3): it closes after 50 ticks, pauses are of 200",
            check: stays_open,
        },
        Claim {
            id: "FC-K2",
            text: "They let the receiver detect what was lost last (EC 4.1): the mean delay is at most a tick longer than with one at once",
            check: finds_what_was_lost_last,
        },
        Claim { id: "FC-K3", text: "A pause costs one keep-alive packet a tick, and no more answers than that (ours)", check: cost },
    ],
    expected: include_str!("expected.csv"),
    ..Study::NONE
};

const SEGMENT: u32 = 256;
/// F.
const PER_SECOND: u32 = 100;
/// From one segment to the next.
const PAUSE_S: u32 = 2;
const CLOSE_AFTER: Duration = Duration::from_millis(500);
const PROBABILITIES: [f64; 5] = [1e-4, 1e-3, 1e-2, 3e-2, 1e-1];

/// Who pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Sstp(KeepAlive),
    Segstream,
}

const WAYS: [Way; 3] = [Way::Sstp(KeepAlive::Tick), Way::Sstp(KeepAlive::Spaced), Way::Segstream];

impl Way {
    fn name(self) -> String {
        match self {
            Self::Sstp(keep_alive) => format!("sstp-full {keep_alive}"),
            Self::Segstream => "segstream".to_owned(),
        }
    }

    const fn label(self) -> &'static str {
        match self {
            Self::Sstp(KeepAlive::Tick) => "SSTP, on each tick",
            Self::Sstp(KeepAlive::Spaced) => "SSTP, at once and each RTT/4",
            Self::Segstream => "Segstream",
        }
    }

    fn look(self) -> Look {
        match self {
            Self::Sstp(keep_alive) => Look {
                colour: SHADES[2],
                marker: Who::SstpFull.marker(),
                line: if keep_alive == KeepAlive::Tick { Line::Solid } else { Line::Dashed },
            },
            Self::Segstream => Look { colour: SHADES[1], marker: Who::Segstream.marker(), line: Line::Solid },
        }
    }

    fn scenario(self, p: f64) -> Scenario {
        let who = if self == Self::Segstream { Who::Segstream } else { Who::SstpFull };
        let scenario = who.over(&random(p)).with(|it| {
            it.workload.bursts = Some(Bursts { per_second: PER_SECOND, packets: SEGMENT });
            it.workload.offered = Some(SEGMENT / PAUSE_S);
        });
        let Self::Sstp(keep_alive) = self else { return scenario };
        scenario.with_settings(|it: &mut sstp::Settings| (it.keep_alive, it.close_after) = (keep_alive, Some(CLOSE_AFTER)))
    }
}

fn points() -> Vec<StudyPoint> {
    let of = |way: Way| PROBABILITIES.map(|p| StudyPoint { curve: way.name(), x: p, scenario: way.scenario(p) });
    WAYS.map(of).concat()
}

/// Control packets of the sender for a segment, which is a pause.
fn control(result: &PointResult) -> Estimate {
    result.over_replications(|outcome| outcome.control_packets as f64 / outcome.segments_delivered as f64)
}

/// Packets of the receiver for a segment.
fn feedback(result: &PointResult) -> Estimate {
    result.over_replications(|outcome| outcome.feedback_packets as f64 / outcome.segments_delivered as f64)
}

fn delay_ms(result: &PointResult) -> Estimate {
    result.over_replications(Outcome::delay_ms_mean)
}

fn figures(points: &Measured) -> Vec<Figure> {
    let figure = |id: &str, title: &str, y: &str, value: fn(&PointResult) -> Estimate| {
        let curve = |way: Way| -> Curve {
            valued(points, &way.name(), way.label(), way.look(), |result| (value(result).mean, value(result).interval()))
        };
        let axis = |label: &str, scale: Scale| Axis { label: label.to_owned(), scale, range: None };
        Figure {
            id: format!("fc-pauses{id}"),
            title: title.to_owned(),
            x: axis("loss probability", Scale::Log),
            y: axis(y, Scale::Linear),
            curves: WAYS.map(curve).to_vec(),
        }
    };
    vec![
        figure("", "Delay of a segment with a pause behind it", "mean segment delay (ms)", delay_ms),
        figure("-control", "Control packets of the sender for a pause of 2 s", "control packets a segment", control),
    ]
}

fn tables(points: &Measured) -> Vec<TextTable> {
    let text = |way: Way, p: f64| {
        points.at(&way.name(), p).map_or_else(String::new, |result| {
            let (mean, largest) = (delay_ms(result).mean, result.delay_ms_max().value);
            format!("{mean:.1}, {largest:.1} ms; {:.1}, {:.1}", control(result).mean, feedback(result).mean)
        })
    };
    let row = |p: f64| [vec![format!("{p:e}")], WAYS.map(|way| text(way, p)).to_vec()].concat();
    vec![TextTable {
        title: "Mean and largest delay; control packets of the sender and packets of the receiver for a segment and a pause of 2 s"
            .to_owned(),
        columns: [vec!["p".to_owned()], WAYS.map(|way| way.label().to_owned()).to_vec()].concat(),
        rows: PROBABILITIES.map(row).to_vec(),
    }]
}

fn row(points: &Measured, way: Way, value: impl Fn(&PointResult) -> f64) -> Option<Vec<f64>> {
    PROBABILITIES.iter().map(|p| Some(value(points.at(&way.name(), *p)?))).collect()
}

fn listed(values: &[f64]) -> String {
    values.iter().map(|value| format!("{value:.1}")).collect::<Vec<_>>().join(" / ")
}

/// What a finding says of every way at every probability.
fn told(rows: &[(Way, Vec<f64>)]) -> String {
    let rows: Vec<String> = rows.iter().map(|(way, row)| format!("{}: {}", way.label(), listed(row))).collect();
    format!("at p = 1e-4 / 1e-3 / 1e-2 / 3e-2 / 1e-1: {}", rows.join("; "))
}

fn rows(points: &Measured, value: impl Fn(&PointResult) -> f64 + Copy) -> Option<Vec<(Way, Vec<f64>)>> {
    WAYS.into_iter().map(|way| Some((way, row(points, way, value)?))).collect()
}

fn stays_open(points: &Measured) -> Option<Finding> {
    // A closed receiver takes nothing, and its run does not end well.
    let open = |result: &PointResult| {
        let wanted = result.scenario.segments() * result.outcomes.len() as u64;
        result.total(|outcome| outcome.segments_delivered) as f64 / wanted as f64
    };
    let rows = rows(points, |result| 100.0 * open(result))?;
    let all = |at: usize| rows[at].1.iter().all(|share| *share >= 100.0);
    let parts = [Part::point("with one on each tick", all(0)), Part::also("with one each quarter of a round trip", all(1))];
    Some(Finding::of(parts, format!("segments delivered in %, {}", told(&rows))))
}

fn finds_what_was_lost_last(points: &Measured) -> Option<Finding> {
    let rows = rows(points, |result| delay_ms(result).mean)?;
    let tick = 1e3 / f64::from(PER_SECOND);
    let later: Vec<f64> = rows[0].1.iter().zip(&rows[1].1).map(|(tick, at_once)| tick - at_once).collect();
    let within = |most: f64| later.iter().all(|later| *later <= most);
    let parts = [Part::point("at most a tick later", within(tick)), Part::also("less than half a tick later", within(tick / 2.0))];
    Some(Finding::of(parts, format!("mean delay in ms {}; a tick is {tick} ms", told(&rows))))
}

fn cost(points: &Measured) -> Option<Finding> {
    let (sent, answers) = (rows(points, |result| control(result).mean)?, rows(points, |result| feedback(result).mean)?);
    let ticks = f64::from(PER_SECOND * PAUSE_S);
    let near = sent[0].1.iter().all(|sent| (sent / ticks - 1.0).abs() <= 0.05);
    let fewer = sent[0].1.iter().zip(&answers[0].1).all(|(sent, answers)| *answers <= sent * 1.05);
    let parts = [Part::point("one a tick", near), Part::also("no more answers", fewer)];
    Some(Finding::of(
        parts,
        format!("control packets of the sender for {ticks} ticks, {}; packets of the receiver, {}", told(&sent), told(&answers)),
    ))
}
