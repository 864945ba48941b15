//! AA Fig. 6: the two intervals at a loss rate of 1e-3.
//!
//! Called through [`super::STUDIES`].
//!
//! Invariant: the claims are on Figs. 5 and 6 together, so the points of Fig. 5 are here too; they are run once.
//! Source: AA 3.2.2, Fig. 6.

use super::efficiency::{largest, spread};
use super::end_system::{self, WINDOW, Who};
use super::fig5;
use super::intervals::{self, Grid, PARAMETERS, SHORTENED, T_ERROR, T_NORMAL};
use super::rearming::{self, OTHERS};
use crate::black_box::random;
use segstream_lab::claim::{Claim, Finding, Part};
use segstream_lab::measured::Measured;
use segstream_lab::study::{Study, StudyPoint};
use segstream_schemes::adaptive_ack::Rearming;

/// The loss rate: bit errors of 1e-7.
pub(super) const LOSS: f64 = 1e-3;

/// The study.
pub(super) static STUDY: Study = Study {
    id: "aa/fig6",
    title: "The two intervals at a loss rate of 1e-3",
    source: "AA 3.2.2, Figure 6",
    summary: "The same as Figure 5 at ten times its losses. The optimum is the same and a little lower; T_error begins to show where it \
              is longer than 20 ms.",
    parameters: PARAMETERS,
    points,
    shortened: SHORTENED,
    figures: |points| vec![intervals::figure(points, "aa-fig6", LOSS)],
    heat_maps: |points| intervals::heat_map(points, "aa-fig6-map", LOSS),
    tables: |points| intervals::table(points, LOSS),
    claims: &[
        Claim {
            id: "AA-C1",
            text: "At loss rates of 1e-4 and 1e-3 the throughput rises with T_normal to an optimum of 40 ms for a window of 400, and falls \
                   after it (AA 3.2.2, Figures 5 and 6)",
            check: optimum,
        },
        Claim { id: "AA-C2", text: "T_error has little effect there (AA 3.2.2, Figures 5 and 6)", check: little_effect },
    ],
    expected: include_str!("expected.csv"),
    ..Study::NONE
};

const BOTH: [f64; 2] = [fig5::LOSS, LOSS];

fn points() -> Vec<StudyPoint> {
    let mut points = fig5::points();
    points.extend(intervals::pairs(WINDOW, LOSS));
    points.push(intervals::flagship(WINDOW, LOSS));
    points.extend(T_NORMAL.map(|t_normal| StudyPoint {
        curve: SERIAL.to_owned(),
        x: t_normal as f64,
        scenario: end_system::one_after_the_other(Who::AdaptiveAck(t_normal, 5).over(WINDOW, &random(LOSS))),
    }));
    for reading in OTHERS {
        points.extend(T_NORMAL.map(|t_normal| StudyPoint {
            curve: read_so(reading),
            x: t_normal as f64,
            scenario: rearming::read(Who::AdaptiveAck(t_normal, 5).over(WINDOW, &random(LOSS)), (t_normal, 5), reading),
        }));
    }
    points
}

/// The curve over T_normal of a reading of when the timer is set anew, at a T_error of 5 ms.
fn read_so(reading: Rearming) -> String {
    format!("timer set anew: {reading}, T_error 5ms")
}

/// The curve of ends whose processor waits for the channel, at a T_error of 5 ms.
const SERIAL: &str = "processor, then channel, T_error 5ms";

fn optimum(points: &Measured) -> Option<Finding> {
    // A step may fall by so much and still count as flat.
    const NOISE: f64 = 0.0005;
    let (mut shaped, mut at_40, mut told) = (0, 0, Vec::new());
    for p in BOTH {
        let grid = Grid::read(points, WINDOW, p)?;
        for t_error in T_ERROR {
            let values = grid.over_t_normal(t_error)?;
            let best = largest(values)?;
            let rises = values[..=best].is_sorted_by(|a, b| *a <= *b + NOISE);
            let falls = values[best..].is_sorted_by(|a, b| *a + NOISE >= *b);
            shaped += usize::from(rises && falls && best + 1 < values.len());
            at_40 += usize::from(T_NORMAL[best] == 40);
        }
        let at_5: Vec<String> = grid.over_t_normal(5)?.iter().map(|value| format!("{value:.4}")).collect();
        told.push(format!("p {p:e}, T_error 5 ms: {}", at_5.join(", ")));
    }
    let of = BOTH.len() * T_ERROR.len();
    let parts = [
        Part::point("most curves rise and fall", 2 * shaped > of),
        Part::also("every curve rises and falls", shaped == of),
        Part::also("every optimum is 40 ms", at_40 == of),
    ];
    let serial: Vec<f64> =
        T_NORMAL.iter().map(|t_normal| super::efficiency::at(points, SERIAL, *t_normal as f64)).collect::<Option<_>>()?;
    let otherwise = format!(
        "one after the other the optimum is {} ms at p {LOSS:e} and T_error 5 ms ({} by T_normal of {})",
        T_NORMAL[largest(&serial)?],
        serial.iter().map(|value| format!("{value:.4}")).collect::<Vec<_>>().join(", "),
        T_NORMAL.map(|t_normal| t_normal.to_string()).join(", ")
    );
    let mut anew = Vec::new();
    for reading in OTHERS {
        let row: Option<Vec<f64>> =
            T_NORMAL.iter().map(|t_normal| super::efficiency::at(points, &read_so(reading), *t_normal as f64)).collect();
        anew.push(format!("{reading} {} ms", T_NORMAL[largest(&row?)?]));
    }
    let otherwise = format!("{otherwise}; with the timer set anew in other ways the optimum is: {}", anew.join(", "));
    let measured =
        format!("{}; {shaped} of {of} curves rise to their optimum and fall after it, {at_40} have it at 40 ms", told.join("; "));
    Some(Finding::of(parts, measured).by_choice_of("that processor and channel work at the same time", &otherwise))
}

fn little_effect(points: &Measured) -> Option<Finding> {
    // "Little" is put at half a percent, and not more than a tenth of what T_normal does.
    const LITTLE: f64 = 0.005;
    let (mut measured, mut little, mut less) = (Vec::new(), true, true);
    for p in BOTH {
        let grid = Grid::read(points, WINDOW, p)?;
        let spreads = T_NORMAL.map(|t_normal| grid.over_t_error(t_normal).map(|column| spread(&column)));
        let spreads = spreads.into_iter().collect::<Option<Vec<f64>>>()?;
        let until_40 = spreads[..=T_NORMAL.into_iter().position(|t_normal| t_normal == 40)?].iter().copied().fold(0.0, f64::max);
        let beyond = spreads.iter().copied().fold(0.0, f64::max);
        let by_normal = spread(grid.over_t_normal(5)?);
        little &= until_40 <= LITTLE;
        less &= beyond < by_normal;
        measured.push(format!(
            "p {p:e}: over all T_error the efficiency varies by at most {until_40:.4} up to T_normal 40 ms and {beyond:.4} beyond, over \
             T_normal by {by_normal:.3}"
        ));
    }
    let parts = [Part::point("less than T_normal has", less), Part::also("half a percent at most up to 40 ms", little)];
    let finding = Finding::of(parts, measured.join("; "));
    Some(finding.because(
        "Where T_normal is too long for the window, a loss brings a report T_error after it; the later that comes, the more it releases.",
    ))
}
