//! Report periods that follow window, rate and round trip against a pair of periods set by hand, at the point of AA Table 1.
//!
//! Called through [`super::STUDIES`].
//!
//! Invariant: at every window and loss rate Segstream, whose settings are the same everywhere, stands against the best of all
//! pairs there, each on the same losses.
//! Source: AA 3.2.2, where a pair is set by hand for one window.

use super::target::{Place, judged};
use crate::aa::efficiency;
use crate::aa::intervals::{self, Grid, T_ERROR, T_NORMAL, pair_text};
use segstream_lab::claim::{Claim, Finding};
use segstream_lab::figure::{Axis, Scale, TextTable};
use segstream_lab::heat_map::{Cell, HeatMap, Side};
use segstream_lab::measured::Measured;
use segstream_lab::point::PointResult;
use segstream_lab::study::{Study, StudyPoint};

/// The study.
pub(super) static STUDY: Study = Study {
    id: "flagship/report_periods",
    title: "Report periods against the best pair set by hand",
    source: "AA 3.2.2, Figures 5 to 8",
    summary: "Adaptive acknowledgment has two report periods that are set by hand, and which pair is the best depends on the window and on \
              the loss rate. Segstream's receiver derives its periods from the window, the rate that it sees and the round trip. At 30 points \
              each stands against the best of 56 pairs: those that another user would have had to find.\n\n\
              The maps show by how much the best pair's throughput is larger than Segstream's, and Segstream's feedback packets as a part of the best pair's.",
    parameters: &[
        ("end systems, channels", "those of AA Table 1"),
        ("windows", "50 to 600 packets"),
        ("loss rates", "1e-4 to 1e-1, each data packet alone; feedback is not lost"),
        ("pairs", "T_normal 5 to 80 ms and T_error 1 to 40 ms, 8 times 7"),
        ("the best pair", "the one with the largest throughput; of 56 the largest of a short run is a little too large, against Segstream"),
        (
            "run length",
            "a fortieth of the preset's packets; throughput between the first eighth and the last, feedback packets of all of it",
        ),
    ],
    points,
    // Why: there are 1,710 points.
    shortened: 40,
    heat_maps,
    tables,
    claims: &[
        Claim {
            id: "SG-T22",
            text: "At no window of 50 to 600 packets and no loss rate of 1e-4 to 1e-1 is a pair of T_normal and T_error better than Segstream by \
                   more than 0.5 %.",
            check: no_pair_is_better,
        },
        Claim {
            id: "SG-T23",
            text: "Segstream needs fewer feedback packets than the best pair at each of these points.",
            check: less_feedback,
        },
    ],
    expected: include_str!("expected.csv"),
    ..Study::NONE
};

const WINDOWS: [u32; 6] = [50, 100, 200, 300, 400, 600];
const RATES: [f64; 5] = [1e-4, 1e-3, 1e-2, 3e-2, 1e-1];
/// By how much a pair may be better.
const MARGIN: f64 = 1.005;

fn points() -> Vec<StudyPoint> {
    let mut points = Vec::new();
    for window in WINDOWS {
        for p in RATES {
            points.extend(intervals::pairs(window, p));
            points.push(intervals::flagship(window, p));
        }
    }
    points
}

/// The best pair beside Segstream.
struct Beside<'a> {
    window: u32,
    pair: (u64, u64),
    best: &'a PointResult,
    ours: &'a PointResult,
    /// The pair with the fewest feedback packets of those within the margin of the best, and how many.
    thrifty: Option<((u64, u64), f64)>,
}

impl Beside<'_> {
    fn read(points: &Measured, window: u32, p: f64) -> Option<Beside<'_>> {
        let grid = Grid::read(points, window, p)?;
        let ours = points.at(&intervals::flagship_name(window), p)?;
        let (pair, best, value) = grid.best();
        let near = grid.each().filter(|(_, _, other)| other * MARGIN >= value);
        let told = near.map(|(pair, result, _)| (pair, efficiency::feedback_per_1000(result)));
        let thrifty = told.reduce(|least, other| if other.1 < least.1 { other } else { least });
        Some(Beside { window, pair, best, ours, thrifty })
    }

    /// The best pair's throughput as a multiple of Segstream's.
    fn throughput(&self) -> f64 {
        efficiency::of(self.best).mean / efficiency::of(self.ours).mean
    }

    /// Segstream's feedback packets as a part of the best pair's.
    fn feedback(&self) -> f64 {
        efficiency::feedback_per_1000(self.ours) / efficiency::feedback_per_1000(self.best)
    }
}

fn heat_maps(points: &Measured) -> Vec<HeatMap> {
    let map = |id: &str, title: &str, value: &str, range: (f64, f64), of: fn(&Beside<'_>) -> f64| {
        let sides = (Side::numbers("loss rate", &RATES), Side::numbers("window (packets)", &WINDOWS.map(f64::from)));
        let axis = Axis { label: value.to_owned(), scale: Scale::Linear, range: Some(range) };
        HeatMap::of((id, title), sides, axis, |column, row| {
            let beside = Beside::read(points, WINDOWS[row], RATES[column])?;
            let note = format!(
                "best pair {}, {} runs of {} packets",
                pair_text(beside.pair),
                beside.best.outcomes.len(),
                beside.best.scenario.workload.packets
            );
            Some(Cell { note, ..Cell::from(of(&beside)) })
        })
    };
    vec![
        map(
            "flagship-report-periods",
            "The best pair against Segstream: by how much its throughput is larger",
            "throughput of the best pair over Segstream's (%)",
            (-3.0, 1.0),
            |beside| 100.0 * (beside.throughput() - 1.0),
        )
        .marking_highest("where the best pair is the most ahead"),
        map(
            "flagship-report-periods-feedback",
            "Segstream against the best pair: feedback packets",
            "feedback packets of Segstream / the best pair",
            (0.0, 1.2),
            |beside| beside.feedback(),
        )
        .marking_highest("where Segstream needs the most"),
    ]
}

fn tables(points: &Measured) -> Vec<TextTable> {
    let mut rows = Vec::new();
    for p in RATES {
        for beside in WINDOWS.into_iter().filter_map(|window| Beside::read(points, window, p)) {
            let of = |result: &PointResult| format!("{:.4}", efficiency::of(result).mean);
            let told = |result: &PointResult| format!("{:.1}", efficiency::feedback_per_1000(result));
            let less = efficiency::difference(beside.best, beside.ours);
            let half = less.half_width.map_or_else(String::new, |half| format!(" ± {half:.4}"));
            let thrifty = beside.thrifty.map_or_else(String::new, |(pair, told)| format!("{told:.1} with {}", pair_text(pair)));
            rows.push(vec![
                format!("{p:e}"),
                beside.window.to_string(),
                pair_text(beside.pair),
                of(beside.best),
                of(beside.ours),
                format!("{:+.4}{half}", less.mean),
                format!("{:.4}", beside.throughput()),
                told(beside.best),
                told(beside.ours),
                format!("{:.2}", beside.feedback()),
                thrifty,
            ]);
        }
    }
    let columns = [
        "loss rate",
        "window",
        "best pair",
        "its efficiency",
        "Segstream",
        "difference",
        "ratio",
        "its feedback packets for 1000 of data",
        "Segstream's",
        "ratio",
        "the fewest of a pair within 0.5 % of the best",
    ];
    let title = format!("The best of {} pairs against Segstream", T_NORMAL.len() * T_ERROR.len());
    vec![TextTable { title, columns: columns.map(str::to_owned).to_vec(), rows }]
}

/// One setting a loss rate: the range of a value over the windows, and at which windows it is not as wanted.
fn by_rate(points: &Measured, of: fn(&Beside<'_>) -> f64, decimals: usize, met: fn(f64) -> bool) -> Option<Vec<Place>> {
    let each = |p: f64| {
        let values = WINDOWS.into_iter().map(|window| Some(of(&Beside::read(points, window, p)?))).collect::<Option<Vec<f64>>>()?;
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let missed: Vec<String> =
            WINDOWS.iter().zip(&values).filter(|(_, value)| !met(**value)).map(|(window, _)| window.to_string()).collect();
        let at = if missed.is_empty() { String::new() } else { format!(" (missed at windows of {})", missed.join(", ")) };
        Some(Place::new(format!("p {p:e}"), format!("{least:.decimals$} to {most:.decimals$}{at}"), missed.is_empty()))
    };
    RATES.into_iter().map(each).collect()
}

fn no_pair_is_better(points: &Measured) -> Option<Finding> {
    let places = by_rate(points, |beside| beside.throughput(), 4, |ratio| ratio <= MARGIN)?;
    Some(judged(&places, ""))
}

fn less_feedback(points: &Measured) -> Option<Finding> {
    let places = by_rate(points, |beside| beside.feedback(), 2, |ratio| ratio < 1.0)?;
    Some(judged(
        &places,
        "Segstream's first reports are counted with the rest: until its receiver knows the rate it sends some tens more than later, which \
         in a run of a few thousand packets is much.",
    ))
}
