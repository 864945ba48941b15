//! AA Fig. 9: adaptive acknowledgment against SSCOP, each packet lost alone.
//!
//! Called through [`super::STUDIES`].
//!
//! Invariant: the claims are judged at the polls AA names; what SSCOP does at its best poll is told beside it.
//! Source: AA 3.2.2, Fig. 9.

use super::against_sscop::{self, Losses, RATES, above, at, best_poll};
use super::efficiency;
use super::end_system::Who;
use crate::black_box::random;
use segstream_lab::claim::{Claim, Finding, Part};
use segstream_lab::measured::Measured;
use segstream_lab::study::Study;

/// The study.
pub(super) static STUDY: Study = Study {
    id: "aa/fig9",
    title: "Adaptive acknowledgment against SSCOP, uniform losses",
    source: "AA 3.2.2, Figure 9",
    summary: "Throughput efficiency over the loss rate. SSCOP's sender polls by one timer, which is either too often without losses, since a \
              POLL and its STAT take time of both processors, or too seldom with many. Adaptive acknowledgment has a period for each, and \
              polls nothing.\n\n\
              AA gave SSCOP two polls. Here it is also given the best of twelve at each loss rate.",
    parameters: &[
        against_sscop::PARAMETERS[0],
        against_sscop::PARAMETERS[1],
        against_sscop::PARAMETERS[2],
        against_sscop::PARAMETERS[3],
        against_sscop::PARAMETERS[5],
        ("loss", "each data packet alone (stated: uniform); ACK, POLL, STAT and USTAT not at all (chosen)"),
        ("run length", "a fourth of the preset's packets, between the first eighth and the last; AA's 1000 / p where that is less"),
    ],
    points: || against_sscop::points(UNIFORM),
    // Why: at 1e-2 SSCOP's loss is in rare events, a repetition that is lost too, once in 10,000 packets.
    shortened: 4,
    figures: |points| against_sscop::figures(points, "aa-fig9", UNIFORM, "uniform"),
    tables: |points| against_sscop::tables(points, UNIFORM, "uniform"),
    claims: &[
        Claim {
            id: "AA-C6",
            text: "Adaptive acknowledgment at 40 and 5 ms has a larger throughput efficiency than SSCOP polling each 10 ms and each 40 ms, at \
                   every loss rate (AA 3.2.2, Figure 9)",
            check: superior,
        },
        Claim {
            id: "AA-C7",
            text: "SSCOP's best Timer_POLL is 40 ms at low loss rates and 10 ms at high ones (AA 3.2.2)",
            check: best_polls,
        },
    ],
    standings: |points| against_sscop::standings(points, UNIFORM),
    expected: include_str!("expected.csv"),
    ..Study::NONE
};

const UNIFORM: Losses = Losses { name: "", at: random };

fn superior(points: &Measured) -> Option<Finding> {
    let found = above(points, UNIFORM)?;
    let parts = [
        Part::point("at most loss rates", found.missed.len() < RATES.len() / 2),
        Part::also("at every loss rate", found.missed.is_empty()),
    ];
    Some(Finding::of(parts, found.told).because(
        "Against SSCOP at its best poll it is ahead by what the POLLs cost at low loss rates, and by no more than chance at 1e-1. \
         At 1e-1 the order rests on a reading: an error phase that begins while the timer of the last still runs sets it anew.",
    ))
}

fn best_polls(points: &Measured) -> Option<Finding> {
    // What counts as the same efficiency.
    const SAME: f64 = 0.002;
    let value = |poll: u64, p: f64| Some(efficiency::of(at(points, Who::Sscop(poll), UNIFORM, p)?).mean);
    let (mut told, mut order, mut nearly) = (Vec::new(), true, true);
    for p in RATES {
        let (poll, best) = best_poll(points, UNIFORM, p)?;
        let (ten, forty, best) = (value(10, p)?, value(40, p)?, efficiency::of(best).mean);
        if p <= 1e-3 {
            order &= forty > ten;
            nearly &= best - forty <= SAME;
        }
        if p >= 1e-1 {
            order &= ten > forty;
            nearly &= best - ten <= SAME;
        }
        told.push(format!("p {p:e}: {poll} ms {best:.4}, 40 ms {forty:.4}, 10 ms {ten:.4}"));
    }
    let parts = [Part::point("the better of the two at each end", order), Part::also("and of all that were tried", nearly)];
    let finding = Finding::of(parts, format!("best poll at each loss rate: {}", told.join("; ")));
    Some(finding.because(
        "Of the two, 40 ms is the better at low loss rates and 10 ms at high ones. Of twelve, the best is as long as the window allows at \
         low rates, and between the two in the middle.",
    ))
}
