//! AA Fig. 7: the two intervals at a loss rate of 1e-1.
//!
//! Called through [`super::STUDIES`].
//!
//! Invariant: the claim on the best pair is on Figs. 5 to 7 together, so the points of all are here; they are run once.
//! Source: AA 3.2.2, Fig. 7.

use super::efficiency::{largest, spread};
use super::end_system::{BEST_PAIR, WINDOW, Who};
use super::intervals::{self, Grid, PARAMETERS, SHORTENED, T_ERROR, pair_text};
use super::rearming::{self, OTHERS};
use super::{fig5, fig6};
use crate::black_box::random;
use segstream_lab::claim::{Claim, Finding, Part};
use segstream_lab::measured::Measured;
use segstream_lab::study::{Study, StudyPoint};
use segstream_schemes::adaptive_ack::Rearming;

/// The loss rate.
pub(super) const LOSS: f64 = 1e-1;

/// The study.
pub(super) static STUDY: Study = Study {
    id: "aa/fig7",
    title: "The two intervals at a loss rate of 1e-1",
    source: "AA 3.2.2, Figure 7",
    summary: "At one loss in ten packets something is missing all the time, so that T_normal is next to never used and T_error decides. A \
              short one costs acknowledgments, one for each gap every time; a long one leaves lost packets, and all behind them, \
              in the window.",
    parameters: PARAMETERS,
    points,
    shortened: SHORTENED,
    figures: |points| vec![intervals::figure(points, "aa-fig7", LOSS)],
    heat_maps: |points| intervals::heat_map(points, "aa-fig7-map", LOSS),
    tables: |points| intervals::table(points, LOSS),
    claims: &[
        Claim {
            id: "AA-C3",
            text: "At a loss rate of 1e-1 T_error rather than T_normal decides, and 5 ms is the optimum (AA 3.2.2, Figure 7)",
            check: t_error_decides,
        },
        Claim {
            id: "AA-C5",
            text: "With a window of 400 the largest throughput efficiency requires T_normal 40 ms and T_error 5 ms (AA 3.2.2)",
            check: best_pair,
        },
    ],
    expected: include_str!("expected.csv"),
    ..Study::NONE
};

const ALL: [f64; 3] = [fig5::LOSS, fig6::LOSS, LOSS];
/// What counts as near the best.
const NEAR: f64 = 0.01;

fn points() -> Vec<StudyPoint> {
    let grid = |p: f64| intervals::pairs(WINDOW, p).into_iter().chain([intervals::flagship(WINDOW, p)]);
    let read = |reading: Rearming| {
        T_ERROR.map(|t_error| StudyPoint {
            curve: read_so(reading),
            x: t_error as f64,
            scenario: rearming::read(Who::AdaptiveAck(BEST_PAIR.0, t_error).over(WINDOW, &random(LOSS)), (BEST_PAIR.0, t_error), reading),
        })
    };
    ALL.into_iter().flat_map(grid).chain(OTHERS.into_iter().flat_map(read)).collect()
}

/// The curve over T_error of a reading of when the timer is set anew, at a T_normal of 40 ms and this loss rate.
fn read_so(reading: Rearming) -> String {
    format!("timer set anew: {reading}, T_normal 40ms")
}

fn t_error_decides(points: &Measured) -> Option<Finding> {
    let grid = Grid::read(points, WINDOW, LOSS)?;
    let over_t_error = grid.over_t_error(BEST_PAIR.0)?;
    let (by_error, by_normal) = (spread(&over_t_error), spread(grid.over_t_normal(BEST_PAIR.1)?));
    let best = largest(&over_t_error)?;
    let at_5 = over_t_error[T_ERROR.into_iter().position(|t_error| t_error == BEST_PAIR.1)?];
    let behind = over_t_error[best] - at_5;
    let parts =
        [Part::point("T_error decides", by_error > 3.0 * by_normal), Part::also("its optimum is 5 ms", T_ERROR[best] == BEST_PAIR.1)];
    let each: Vec<String> = T_ERROR.iter().zip(&over_t_error).map(|(t_error, value)| format!("{t_error}: {value:.4}")).collect();
    let measured = format!(
        "at T_normal 40 ms over T_error in ms: {}; varies by {by_error:.4}, over T_normal at T_error 5 ms by {by_normal:.4}; the best is {} \
         ms, 5 ms is {behind:.4} below it",
        each.join(", "),
        T_ERROR[best]
    );
    let mut anew = Vec::new();
    for reading in OTHERS {
        let row: Option<Vec<f64>> =
            T_ERROR.iter().map(|t_error| super::efficiency::at(points, &read_so(reading), *t_error as f64)).collect();
        let row = row?;
        let at = largest(&row)?;
        let at_5 = row[T_ERROR.into_iter().position(|t_error| t_error == BEST_PAIR.1)?];
        anew.push(format!("{reading} {} ms ({:.4}; 5 ms {at_5:.4})", T_ERROR[at], row[at]));
    }
    let measured = format!("{measured}; with the timer set anew in other ways the best is: {}", anew.join(", "));
    let flat = "Between 5 and 20 ms the curve is almost flat: a status comes later, and costs fewer acknowledgments. Where on it the optimum \
                lies rests on what the paper does not state, such as what becomes of a request for a packet that has just left again.";
    let why = if parts[1].holds { "" } else { flat };
    Some(Finding::of(parts, measured).because(why))
}

fn best_pair(points: &Measured) -> Option<Finding> {
    let (mut told, mut first, mut near, mut t_normal) = (Vec::new(), true, true, true);
    for p in ALL {
        let grid = Grid::read(points, WINDOW, p)?;
        let (pair, _, best) = grid.best();
        let stated = super::efficiency::of(grid.at(BEST_PAIR)?).mean;
        first &= pair == BEST_PAIR;
        near &= best - stated <= NEAR;
        t_normal &= pair.0 == BEST_PAIR.0 || p >= LOSS;
        told.push(format!("p {p:e}: 40/5 ms {stated:.4}, best {} {best:.4}", pair_text(pair)));
    }
    let parts = [Part::point("within a percent of the best, T_normal as stated", near && t_normal), Part::also("the best pair", first)];
    let is_near = parts[0].holds;
    let finding = Finding::of(parts, told.join("; "));
    let why = "T_normal is 40 ms in the best pair wherever T_normal matters, and 40/5 ms is within one percent of the best pair at all \
               three rates. A T_error of 5 ms is not needed: a longer one costs nothing at low rates and gains a little at 1e-1.";
    Some(if is_near && !first { finding.because(why) } else { finding })
}
