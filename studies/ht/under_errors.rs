//! HT Fig. 14: throughput under errors as a part of each protocol's own largest, at 20 and at 40 ms.
//!
//! Called by [`super::fig14a`] and [`super::fig14b`], which differ in the round trip.
//!
//! Invariant: each is divided by the largest of its own curve, so that what its bookkeeping costs without loss is taken out.
//! Source: HT 7, Fig. 14.

use super::end_system::{EVERYONE, Who};
use super::packet_rate::{self, ERRORS};
use crate::black_box::random;
use crate::standings::{self, Pair};
use segstream_base::Duration;
use segstream_lab::figure::{Figure, Scale, TextTable};
use segstream_lab::measured::Measured;
use segstream_lab::standing::{Quality, Standing};
use segstream_lab::study::StudyPoint;
use segstream_schemes::htpnet::{self, Ranges};

/// Packets that may be unacknowledged.
pub(super) const WINDOW: u32 = 256;
/// The rates of errors.
pub(super) const PROBABILITIES: [f64; 7] = [1e-5, 1e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1];

/// The points at a round trip of this many milliseconds.
pub(super) fn points(rtt_ms: u64) -> Vec<StudyPoint> {
    let rtt = Duration::from_millis(rtt_ms);
    let of = |who: Who| {
        PROBABILITIES.map(|p| {
            let scenario = who.over(rtt, WINDOW, &random(p));
            // An eighth of the round trip.
            let sync_period = matches!(who, Who::Htpnet(_)).then_some(rtt / 8);
            StudyPoint {
                curve: curve(who, rtt_ms),
                x: p,
                scenario: scenario.with_settings(|it: &mut htpnet::Settings| it.sync_period = sync_period),
            }
        })
    };
    EVERYONE.into_iter().flat_map(of).collect()
}

fn curve(who: Who, rtt_ms: u64) -> String {
    format!("{} {rtt_ms}ms", who.name())
}

/// The largest of a curve, in packets a second.
fn largest(points: &Measured, who: Who, rtt_ms: u64) -> Option<f64> {
    let rates = packet_rate::row(points, &curve(who, rtt_ms), &PROBABILITIES)?;
    Some(rates.into_iter().fold(0.0, f64::max))
}

/// The throughput as a part of the largest.
pub(super) fn part(points: &Measured, who: Who, rtt_ms: u64, p: f64) -> Option<f64> {
    Some(packet_rate::at(points, &curve(who, rtt_ms), p)? / largest(points, who, rtt_ms)?)
}

/// The picture.
pub(super) fn figure(points: &Measured, id: &str, rtt_ms: u64) -> Figure {
    let curves = EVERYONE.into_iter().filter_map(|who| {
        let by = 1.0 / largest(points, who, rtt_ms)?;
        Some(packet_rate::curve(points, &curve(who, rtt_ms), &who.label(), who.look(), by))
    });
    let title = format!("Throughput under errors, of each its own largest, round trip {rtt_ms} ms");
    packet_rate::figure(id, &title, (ERRORS, Scale::Log), "throughput / own largest", curves.collect())
}

/// The numbers of the picture.
pub(super) fn table(points: &Measured, rtt_ms: u64) -> TextTable {
    let mut rows = Vec::new();
    for who in EVERYONE {
        let mut row = vec![who.label(), largest(points, who, rtt_ms).map_or_else(String::new, |rate| format!("{rate:.0}"))];
        row.extend(PROBABILITIES.map(|p| part(points, who, rtt_ms, p).map_or_else(String::new, |part| format!("{part:.3}"))));
        rows.push(row);
    }
    let mut columns = ["", "largest (packets/s)"].map(str::to_owned).to_vec();
    columns.extend(PROBABILITIES.map(|p| format!("{p:e}")));
    TextTable { title: format!("Throughput as a part of the largest, round trip {rtt_ms} ms"), columns, rows }
}

/// The flagship beside HTPNET, in packets a second.
pub(super) fn standings(points: &Measured, rtt_ms: u64) -> Vec<Standing> {
    let pair =
        Pair { ours: curve(Who::Segstream, rtt_ms), theirs: curve(Who::Htpnet(Ranges::Eight), rtt_ms), curve: format!("{rtt_ms} ms, p") };
    standings::of(points, "HTPNET, eight pairs", Quality::Throughput, &[pair], |result| packet_rate::of(result).mean)
}

/// What both halves of the figure say of their parameters.
pub(super) const PARAMETERS: &[(&str, &str)] = &[
    ("window", "256 packets (chosen: not stated)"),
    ("packet error rates", "1e-5 to 1e-1, the same for every packet in both directions (chosen)"),
    ("processor", "83 us a packet (inferred)"),
    ("a timer of TCP", "5 us to set or clear one, 1 us for each it passes (chosen)"),
    ("exchange of states", "an eighth of the round trip (chosen)"),
    ("backoff", "three readings of Karn's algorithm with a timer for every packet (HT names the algorithm)"),
    ("run length", "a tenth of the preset's packets, between the first quarter and the last eighth"),
];
