//! HT Fig. 5: misordered packets, and the offset that waits for them.
//!
//! Called through [`super::STUDIES`].
//!
//! Invariant: where nothing is lost, whatever arrives again was sent in vain.
//! Source: HT 4, Figure 5, which is a diagram.

use super::end_system::Who;
use super::packet_rate::{self, received_again};
use crate::black_box::random;
use crate::curves::{Look, SHADES, valued};
use segstream_base::Duration;
use segstream_lab::claim::{Claim, Finding, Part};
use segstream_lab::figure::{Axis, Curve, Figure, Line, Marker, Scale, TextTable};
use segstream_lab::measured::Measured;
use segstream_lab::point::PointResult;
use segstream_lab::scenario::Scenario;
use segstream_lab::study::{Study, StudyPoint};
use segstream_path::LossSpec;
use segstream_schemes::htpnet::{self, Ranges};

/// The study.
pub(super) static STUDY: Study = Study {
    id: "ht/fig5",
    title: "Misordered packets, and the offset",
    source: "HT 4, Figure 5",
    summary: "In a connectionless network packets overtake each other, and a packet that comes after the state it is bound to looks lost. \
              HT compares the echoed number with that of packets bound to an exchange some before it, the offset. Here one packet in a \
              hundred comes later than the others, by up to four exchanges.\n\n\
              The second picture shows what the offset costs where packets are lost: each waits so many exchanges longer for its \
              repetition.",
    parameters: &[
        ("round trip, window, exchange", "40 ms, 512 packets, 5 ms (chosen)"),
        ("misordered", "1 % of the packets, data and states, on the way there, 1 to 20 ms late (chosen)"),
        ("offsets", "0, 1, 2 and 4 exchanges (the paper has 0 where order is kept)"),
        ("errors of the second picture", "0.1 to 3 % of data and states, both ways"),
        ("Segstream", "its reordering threshold adapts"),
        ("run length", "a tenth of the preset's packets"),
    ],
    points,
    shortened: 10,
    figures,
    tables,
    claims: &[Claim {
        id: "HT-C9",
        text: "An offset eliminates the unnecessary retransmission of misordered packets; it must be set by how late they are (HT 4, Figure 5)",
        check: eliminates,
    }],
    expected: include_str!("expected.csv"),
    ..Study::NONE
};

const RTT: Duration = Duration::from_millis(40);
const PERIOD: Duration = Duration::from_millis(5);
const WINDOW: u32 = 512;
const LATE_MS: [u64; 5] = [1, 3, 6, 11, 20];
const OFFSETS: [u16; 4] = [0, 1, 2, 4];
const ERRORS: [f64; 4] = [1e-3, 3e-3, 1e-2, 3e-2];

/// HTPNET with an offset, or the flagship.
fn name(offset: Option<u16>) -> String {
    offset.map_or_else(|| "segstream".to_owned(), |offset| format!("htpnet offset {offset}"))
}

fn label(offset: Option<u16>) -> String {
    offset.map_or_else(|| "Segstream".to_owned(), |offset| format!("HTPNET, offset {offset}"))
}

fn everyone() -> impl Iterator<Item = Option<u16>> {
    OFFSETS.into_iter().map(Some).chain([None])
}

fn look(offset: Option<u16>) -> Look {
    const COLOURS: [&str; 4] = [SHADES[0], SHADES[2], SHADES[3], SHADES[4]];
    const SIGNS: [Marker; 4] = [Marker::Square, Marker::Triangle, Marker::Diamond, Marker::Plus];
    match offset.and_then(|offset| OFFSETS.iter().position(|known| *known == offset)) {
        Some(place) => Look { colour: COLOURS[place], marker: SIGNS[place], line: Line::Solid },
        None => Look { colour: SHADES[1], marker: Marker::Circle, line: Line::Dashed },
    }
}

fn over(offset: Option<u16>, loss: &LossSpec) -> Scenario {
    let who = if offset.is_some() { Who::Htpnet(Ranges::Eight) } else { Who::Segstream };
    let scenario = who.over(RTT, WINDOW, loss);
    match offset {
        Some(offset) => scenario.with_settings(|it: &mut htpnet::Settings| (it.sync_period, it.offset) = (Some(PERIOD), offset)),
        None => scenario,
    }
}

fn points() -> Vec<StudyPoint> {
    let mut points = Vec::new();
    for offset in everyone() {
        points.extend(LATE_MS.map(|late| StudyPoint {
            curve: name(offset),
            x: late as f64,
            scenario: over(offset, &LossSpec::None).with(|it| {
                it.black_box.hop.reorder = format!("0.01:delay={late}ms").parse().expect("a study's reordering is one");
            }),
        }));
        points.extend(ERRORS.map(|p| StudyPoint { curve: format!("{} errors", name(offset)), x: p, scenario: over(offset, &random(p)) }));
    }
    points
}

/// Data packets that arrived again for each thousand delivered.
fn in_vain(result: &PointResult) -> f64 {
    1e3 * received_again(result).map_or(f64::NAN, |again| again as f64) / result.total(|outcome| outcome.packets_delivered) as f64
}

fn figures(points: &Measured) -> Vec<Figure> {
    let vain: Vec<Curve> =
        everyone().map(|offset| valued(points, &name(offset), &label(offset), look(offset), |result| (in_vain(result), None))).collect();
    let rate = |offset| packet_rate::curve(points, &format!("{} errors", name(offset)), &label(offset), look(offset), 1.0);
    let axis = |label: &str, scale| Axis { label: label.to_owned(), scale, range: None };
    vec![
        Figure {
            id: "ht-fig5".to_owned(),
            title: "Packets sent in vain where one in a hundred is late".to_owned(),
            x: axis("how late (ms)", Scale::Linear),
            y: axis("arrived again, of a thousand", Scale::Linear),
            curves: vain,
        },
        packet_rate::figure(
            "ht-fig5-errors",
            "What the offset costs where packets are lost",
            (packet_rate::ERRORS, Scale::Log),
            packet_rate::LABEL,
            everyone().map(rate).collect(),
        ),
    ]
}

fn tables(points: &Measured) -> Vec<TextTable> {
    let columns = |first: &str| std::iter::once(first.to_owned()).chain(everyone().map(label)).collect::<Vec<_>>();
    let vain = |late: u64| {
        let cell = |offset| points.at(&name(offset), late as f64).map_or_else(String::new, |result| format!("{:.2}", in_vain(result)));
        std::iter::once(late.to_string()).chain(everyone().map(cell)).collect()
    };
    let rate = |p: f64| {
        let cell =
            |offset| packet_rate::at(points, &format!("{} errors", name(offset)), p).map_or_else(String::new, |rate| format!("{rate:.0}"));
        std::iter::once(format!("{p:e}")).chain(everyone().map(cell)).collect()
    };
    vec![
        TextTable {
            title: "Packets that arrived again for each thousand delivered, by how late one in a hundred is".to_owned(),
            columns: columns("late (ms)"),
            rows: LATE_MS.map(vain).to_vec(),
        },
        TextTable { title: "Packets a second under errors".to_owned(), columns: columns("errors"), rows: ERRORS.map(rate).to_vec() },
    ]
}

fn eliminates(points: &Measured) -> Option<Finding> {
    let value = |offset: Option<u16>, late: u64| points.at(&name(offset), late as f64).map(in_vain);
    let (mut without, mut covered, mut exact, mut told) = (0, true, true, Vec::new());
    for offset in OFFSETS {
        let row: Vec<f64> = LATE_MS.iter().map(|late| value(Some(offset), *late)).collect::<Option<_>>()?;
        for (late, vain) in LATE_MS.iter().zip(&row) {
            // The exchange behind the packet's own comes within a period; each exchange of offset covers another.
            let covers = Duration::from_millis(*late) <= PERIOD * u64::from(offset);
            covered &= !covers || *vain == 0.0;
            exact &= covers || offset == 0 || *vain > 0.0;
            without += usize::from(offset == 0 && *vain > 0.0);
        }
        let listed: Vec<String> = row.iter().map(|vain| format!("{vain:.2}")).collect();
        told.push(format!("offset {offset} {}", listed.join(" / ")));
    }
    let ours: Vec<f64> = LATE_MS.iter().map(|late| value(None, *late)).collect::<Option<_>>()?;
    let listed: Vec<String> = ours.iter().map(|vain| format!("{vain:.2}")).collect();
    let parts = [
        Part::point("none in vain where the offset covers the delay, some without it", covered && without == LATE_MS.len()),
        Part::also("and some where it does not cover it", exact),
    ];
    Some(Finding::of(
        parts,
        format!(
            "arrived again of a thousand, one in a hundred 1 / 3 / 6 / 11 / 20 ms late, an exchange each 5 ms: {}; Segstream {}",
            told.join("; "),
            listed.join(" / ")
        ),
    ))
}
