//! AA Fig. 10: adaptive acknowledgment against SSCOP, losses in bursts.
//!
//! Called through [`super::STUDIES`].
//!
//! Invariant: the loss rate is the share of all packets; a burst is a run of packets that are all lost.
//! Source: AA 3.2.2, Fig. 10.

use super::against_sscop::{self, Losses, RATES, above};
use super::end_system::bursty;
use super::intervals::SHORTENED;
use segstream_lab::claim::{Claim, Finding, Part};
use segstream_lab::measured::Measured;
use segstream_lab::study::Study;

/// The study.
pub(super) static STUDY: Study = Study {
    id: "aa/fig10",
    title: "Adaptive acknowledgment against SSCOP, bursty losses",
    source: "AA 3.2.2, Figure 10",
    summary: "The same as Figure 9 with losses in bursts, of 5 packets on average and of 20. A burst is one gap, so the same share of \
              losses costs fewer acknowledgments and fewer waits: all are faster than with uniform losses.",
    parameters: &[
        against_sscop::PARAMETERS[0],
        against_sscop::PARAMETERS[1],
        against_sscop::PARAMETERS[2],
        against_sscop::PARAMETERS[3],
        against_sscop::PARAMETERS[5],
        ("loss", "bursts of geometric length, 5 packets on average, and 20 (chosen: not stated); data alone (chosen)"),
        against_sscop::PARAMETERS[4],
    ],
    points: || BURSTS.into_iter().flat_map(|(_, losses)| against_sscop::points(losses)).collect(),
    shortened: SHORTENED,
    figures: |points| {
        let of = |(id, losses): (&str, Losses)| against_sscop::figures(points, id, losses, &how(losses));
        BURSTS.into_iter().flat_map(of).collect()
    },
    tables: |points| BURSTS.into_iter().flat_map(|(_, losses)| against_sscop::tables(points, losses, &how(losses))).collect(),
    claims: &[Claim {
        id: "AA-C8",
        text: "Adaptive acknowledgment at 40 and 5 ms has a larger throughput efficiency than SSCOP polling each 10 ms and each 40 ms with \
               bursty losses too, at every loss rate (AA 3.2.2, Figure 10)",
        check: superior,
    }],
    standings: |points| BURSTS.into_iter().flat_map(|(_, losses)| against_sscop::standings(points, losses)).collect(),
    expected: include_str!("expected.csv"),
    ..Study::NONE
};

const BURSTS: [(&str, Losses); 2] = [
    ("aa-fig10", Losses { name: " burst 5", at: |p| bursty(p, 5) }),
    ("aa-fig10-long", Losses { name: " burst 20", at: |p| bursty(p, 20) }),
];

fn how(losses: Losses) -> String {
    format!("bursty{}", losses.name.replace("burst", "(mean") + ")")
}

fn superior(points: &Measured) -> Option<Finding> {
    let mut told = Vec::new();
    let (mut missed, mut judged) = (Vec::new(), 0);
    for (_, losses) in BURSTS {
        let found = above(points, losses)?;
        judged += RATES.len();
        missed.extend(found.missed.iter().map(|p| format!("p {p:e}{}", losses.name)));
        told.push(format!("{}: {}", losses.name.trim(), found.told));
    }
    let parts = [Part::point("at most points", missed.len() * 2 < judged), Part::also("at every point", missed.is_empty())];
    let finding = Finding::of(parts, told.join(". "));
    Some(if missed.is_empty() { finding } else { finding.because(format!("Not above at {}.", missed.join(", "))) })
}
