//! HT Fig. 14b: HTPNET and TCP under errors at a round trip of 40 ms, and the claim on both halves of the figure.
//!
//! Called through [`super::STUDIES`].
//!
//! Invariant: the points of 20 ms are those of [`super::fig14a`], and run once.
//! Source: HT 7, Fig. 14.

use super::end_system::Who;
use super::under_errors::{self, PARAMETERS, PROBABILITIES};
use segstream_lab::claim::{Claim, Finding, Part};
use segstream_lab::measured::Measured;
use segstream_lab::study::Study;
use segstream_schemes::htpnet::Ranges;
use segstream_schemes::tcp::Backoff;

/// HT 7.
const RTT_MS: u64 = 40;
/// Of Fig. 14a.
const SHORTER_MS: u64 = super::fig14a::RTT_MS;

/// The study.
pub(super) static STUDY: Study = Study {
    id: "ht/fig14b",
    title: "HTPNET and TCP under errors, 40 ms",
    source: "HT 7, Figure 14b",
    summary: "As Figure 14a at twice the round trip. What a loss costs TCP grows with the round trip; HTPNET goes on sending meanwhile.\n\n\
              The pairs of a report hold HTPNET up: four from about one packet in a hundred on, eight from three; all runs do not.",
    parameters: PARAMETERS,
    points: || [under_errors::points(RTT_MS), under_errors::points(SHORTER_MS)].concat(),
    shortened: 10,
    figures: |points| vec![under_errors::figure(points, "ht-fig14b", RTT_MS)],
    tables: |points| vec![under_errors::table(points, RTT_MS)],
    claims: &[Claim {
        id: "HT-C6",
        text: "At low error rates HTPNET and TCP are the same; then HTPNET falls gently, TCP fast, and faster at 40 ms, where almost \
               nothing is left of it at the extreme (HT 7)",
        check: fall,
    }],
    standings: |points| under_errors::standings(points, 40),
    expected: include_str!("expected.csv"),
    ..Study::NONE
};

fn fall(points: &Measured) -> Option<Finding> {
    // "Identical" is put at 5 % at 1e-5; "extreme" at the largest rate, "stable" at half kept there, "almost zero" at 0.05.
    const SAME: f64 = 0.05;
    const MIDDLE: f64 = 1e-2;
    const STABLE: f64 = 0.5;
    const NOTHING: f64 = 0.05;
    let of = |who, rtt_ms, p| under_errors::part(points, who, rtt_ms, p);
    let [eight, four, all] = [Ranges::Eight, Ranges::Four, Ranges::All].map(Who::Htpnet);
    let tcp = Who::Tcp(Backoff::Retain);
    let (low, high) = (PROBABILITIES[0], PROBABILITIES[PROBABILITIES.len() - 1]);
    let same = of(tcp, RTT_MS, low)?.min(of(eight, RTT_MS, low)?) >= 1.0 - SAME;
    let gentle = of(eight, RTT_MS, high)? >= STABLE;
    let fast = [Backoff::Retain, Backoff::Own, Backoff::Oldest]
        .iter()
        .all(|way| of(Who::Tcp(*way), RTT_MS, high).is_some_and(|left| left <= NOTHING));
    let faster = of(tcp, RTT_MS, 3e-3)? < of(tcp, SHORTER_MS, 3e-3)?;
    let parts = [
        Part::point("TCP falls faster", of(tcp, RTT_MS, MIDDLE)? < 0.5 * of(eight, RTT_MS, MIDDLE)?),
        Part::also("the same at low error rates", same),
        Part::also("TCP faster at 40 ms", faster),
        Part::also("HTPNET gently to the largest rate, with the paper's report", gentle),
        Part::also("TCP to almost nothing, by every reading of its backoff", fast),
    ];
    let readings = |rtt_ms, p| {
        let parts = [Backoff::Retain, Backoff::Own, Backoff::Oldest].map(|backoff| of(Who::Tcp(backoff), rtt_ms, p));
        let told: Option<Vec<String>> = parts.iter().map(|part| part.map(|part| format!("{part:.3}"))).collect();
        told.map(|told| told.join(" / "))
    };
    let measured = format!(
        "TCP with its timeout retained / each packet's own / one timer, 20 ms: {} at 3e-3, {} at 1e-2; 40 ms: {} at 1e-3, {} at 3e-3, {} \
         at 1e-2, {} at 1e-1. HTPNET with eight pairs / four / all runs at 40 ms: {:.3} / {:.3} / {:.3} at 1e-2, {:.3} / {:.3} / {:.3} at 1e-1",
        readings(SHORTER_MS, 3e-3)?,
        readings(SHORTER_MS, MIDDLE)?,
        readings(RTT_MS, 1e-3)?,
        readings(RTT_MS, 3e-3)?,
        readings(RTT_MS, MIDDLE)?,
        readings(RTT_MS, high)?,
        of(eight, RTT_MS, MIDDLE)?,
        of(four, RTT_MS, MIDDLE)?,
        of(all, RTT_MS, MIDDLE)?,
        of(eight, RTT_MS, high)?,
        of(four, RTT_MS, high)?,
        of(all, RTT_MS, high)?
    );
    Some(Finding::of(parts, measured).because(
        "The text names neither the largest rate nor how TCP backs off. Up to 1e-2, and with Karn's algorithm as published, which retains a \
         timeout, all of it comes out; beyond, the pairs of a report limit HTPNET as in Figure 10, and only a receiver that reports all runs stays gentle to 1e-1. A TCP in which each packet backs \
         off alone does not come near zero: its new packets go on at the usual timeout.",
    ))
}
