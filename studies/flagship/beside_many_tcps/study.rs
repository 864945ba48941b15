//! A stream beside several TCPs: its share over their number.
//!
//! Called through [`super::STUDIES`].
//!
//! Invariant: a share is of all bytes that arrived after the warm-up, and an equal one is that of one of all flows.
//! Source: RFC 9743 5.2.1 and 5.2.3.

use super::link::{self, OURS, RTT, TCP_LOOKS, TCPS, mbit, second, stream};
use super::sweep;
use super::target::{Place, judged};
use crate::curves::{Look, SHADES, closed_form};
use segstream_base::Duration;
use segstream_blocks::congestion::cubic;
use segstream_lab::claim::{Claim, Finding};
use segstream_lab::figure::{Figure, Line, Marker, Scale, TextTable};
use segstream_lab::measured::{Measured, MeasuredShared};
use segstream_lab::shared::{FlowOutcome, SharedFlow, SharedScenario, Traffic};
use segstream_lab::study::{SharedPoint, Study};

/// The study.
pub(super) static STUDY: Study = Study {
    id: "flagship/beside_many_tcps",
    title: "A stream beside several TCPs",
    source: "RFC 9743 5.2.1 and 5.2.3",
    summary: "One to sixteen TCPs have the link; a stream joins them at 2 s. An equal share is that of one of all flows. Beside TCPs that \
              answer loss the stream is to have about that, and not a part of the link that does not depend on how many they are. \
              Beside BBR, which does not answer loss, nobody has a share who does not claim one.\n\n\
              For comparison, a CUBIC flow joins in place of the stream.",
    parameters: &[
        ("link", "20 Mbit/s, 60 ms, a queue of one bandwidth-delay product"),
        ("run", "60 s; the TCPs begin within two seconds, shares from 15 s on"),
    ],
    shared: points,
    figures,
    tables,
    claims: &[
        Claim {
            id: "SG-T32",
            text: "Beside one to sixteen CUBIC or Reno flows it has half to twice an equal share.",
            check: beside_yielding,
        },
        Claim { id: "SG-T33", text: "So it has beside one to eight BBR flows.", check: beside_bbr },
    ],
    expected: include_str!("expected.csv"),
    ..Study::NONE
};

const MANY: [u32; 5] = [1, 2, 4, 8, 16];
const MANY_BBR: [u32; 4] = [1, 2, 4, 8];
const BBR: &str = "BBR";
const IN_ITS_PLACE: &str = "CUBIC beside CUBIC";
const RATIO: std::ops::RangeInclusive<f64> = 0.5..=2.0;
const WHY_MANY: &str = "Of sixteen flows each has about ten packets under way and loses 1 to 2 %, which looks as if nobody answered loss. Beside \
                        eight the share falls from that of the trial.";
const WHY_BBR: &str = "Each BBR flow keeps two products under way whatever is lost, and the stream claims no more of the link while it loses \
                       5 % of its packets.";

/// `flow` joins `count` flows of `traffic`.
fn beside(flow: SharedFlow, traffic: &Traffic, count: u32) -> SharedScenario {
    let joining = SharedFlow { start: second(2), ..flow };
    let other = |number: u32| {
        let start = second(0) + Duration::from_secs(2) * u64::from(number) / u64::from(count);
        SharedFlow { start, ..link::tcp(&format!("tcp {number}"), traffic.clone()) }
    };
    let flows = [joining].into_iter().chain((0..count).map(other)).collect();
    SharedScenario { duration: Duration::from_secs(60), warm_up: Duration::from_secs(15), flows, ..link::link(mbit(20), RTT, 1.0) }
}

fn numbers(name: &str) -> &'static [u32] {
    if name == BBR { &MANY_BBR } else { &MANY }
}

fn points() -> Vec<SharedPoint> {
    let mut points = Vec::new();
    let mut swept = |curve: &str, flow: SharedFlow, traffic: &Traffic, numbers: &[u32]| {
        points.extend(numbers.iter().map(|count| SharedPoint {
            curve: curve.to_owned(),
            x: f64::from(*count),
            scenario: beside(flow.clone(), traffic, *count),
        }));
    };
    for (name, traffic) in &TCPS {
        swept(name, stream(OURS, mbit(20), RTT), traffic, numbers(name));
    }
    let cubic = Traffic::tcp(&cubic::LINUX);
    swept(IN_ITS_PLACE, link::tcp(OURS, cubic.clone()), &cubic, &MANY);
    points
}

const fn equal(count: f64) -> f64 {
    1.0 / (count + 1.0)
}

fn figures(points: &Measured) -> Vec<Figure> {
    let curve = |name: &str, label: &str, look| sweep::curve(points, name, label, look, |result| result.share(OURS));
    let ours = TCPS.iter().zip(TCP_LOOKS).map(|((name, _), look)| curve(name, &format!("Segstream beside {name}"), look));
    let mut curves: Vec<_> = ours.collect();
    curves.push(curve(IN_ITS_PLACE, IN_ITS_PLACE, Look { colour: SHADES[0], marker: Marker::Circle, line: Line::Solid }));
    let equally = |label, line, times: f64| {
        let look = Look { colour: SHADES[5], marker: Marker::None, line };
        closed_form(label, look, MANY.map(f64::from), |count| times * equal(count))
    };
    curves.push(equally("an equal share", Line::Dashed, 1.0));
    curves.push(equally("target: at most twice that", Line::Dotted, 2.0));
    vec![sweep::shares(
        "flagship-beside-many-tcps",
        "The stream's share over the number of TCPs beside it, 20 Mbit/s",
        ("TCPs", Scale::Log),
        "share of the stream",
        curves,
    )]
}

fn tables(points: &Measured) -> Vec<TextTable> {
    let row = |point: &MeasuredShared| {
        let result = &point.result;
        vec![
            point.curve.clone(),
            format!("{}", point.x),
            format!("{:.3}", result.share(OURS).mean),
            format!("{:.2}", result.share(OURS).mean / equal(point.x)),
            format!("{:.4}", result.of_flow(OURS, FlowOutcome::loss_share).mean),
            format!("{:.3}", result.utilisation().mean),
            format!("{:.1}", result.queue_ms_mean().mean),
        ]
    };
    let columns = ["beside", "flows", "share", "of an equal share", "packets lost", "utilisation", "queueing delay, mean (ms)"];
    vec![TextTable {
        title: "Beside several TCPs".to_owned(),
        columns: columns.map(str::to_owned).to_vec(),
        rows: points.shared.iter().map(row).collect(),
    }]
}

fn places(points: &Measured, names: &[&str]) -> Option<Vec<Place>> {
    let mut places = Vec::new();
    for name in names {
        for count in numbers(name) {
            let ratio = points.shared_at(name, f64::from(*count))?.share(OURS).mean / equal(f64::from(*count));
            places.push(Place::new(format!("{name} {count}"), format!("{ratio:.2}"), RATIO.contains(&ratio)));
        }
    }
    Some(places)
}

fn beside_yielding(points: &Measured) -> Option<Finding> {
    Some(judged(&places(points, &["CUBIC", "Reno"])?, WHY_MANY))
}

fn beside_bbr(points: &Measured) -> Option<Finding> {
    Some(judged(&places(points, &[BBR])?, WHY_BBR))
}
