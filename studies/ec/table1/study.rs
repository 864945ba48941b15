//! EC Table 1: SSTP and SNR side by side, with a measurement for every row that has one.
//!
//! Called through [`super::STUDIES`].
//!
//! Invariant: here SNR has its control on the path too, and the return path can lose, since the table is about control.
//! Source: EC 5.3, Table 1.

use super::four_tolerances::{ANY, NONE, ONE, scenario};
use crate::black_box::{Who, random};
use segstream_blocks::Accounting;
use segstream_lab::closed_forms::{Point, violation_probability};
use segstream_lab::figure::TextTable;
use segstream_lab::measured::Measured;
use segstream_lab::point::PointResult;
use segstream_lab::scenario::Scenario;
use segstream_lab::study::{Study, StudyPoint};
use segstream_path::LossSpec;
use segstream_schemes::sstp::FeedbackMode;

/// The study.
pub(super) static STUDY: Study = Study {
    id: "ec/table1",
    title: "SSTP and SNR, feature by feature",
    source: "EC 5.3, Table 1",
    summary: "The paper's table has words only. Each of its rows stands here with a measurement where one can be made: no loss, loss \
              of one packet in a thousand on the way there, and that with one packet in ten lost on the way back. Segstream stands \
              beside the two.",
    parameters: &[
        ("bandwidth, round trip, window", "500 Mbit/s, 60 ms, 36 segments (chosen)"),
        ("control", "on the path for all three (chosen: the paper's simulations have it beside the path)"),
        ("loss", "none; 1e-3 there; 1e-3 there and 0.1 back (chosen)"),
        ("SNR's T_in", "5 ms (EC 5.3)"),
    ],
    points,
    at_whole_length: true,
    figures: |_| Vec::new(),
    tables,
    claims: &[],
    expected: include_str!("expected.csv"),
    ..Study::NONE
};

/// The loss on the forward path.
const LOSS: f64 = 1e-3;
/// The loss on the return path where reports are lost.
const LOSS_BACK: f64 = 0.1;

/// The three that are compared, by the names of their curves.
const WHO: [(Who, &str); 3] = [(Who::SstpFull, "sstp-full"), (Who::Snr, "snr in band"), (Who::Segstream, "segstream")];

/// What the path loses.
#[derive(Clone, Copy)]
enum Case {
    Nothing,
    Data,
    DataAndReports,
}

impl Case {
    const ALL: [(Self, &'static str, f64); 3] =
        [(Self::Nothing, "no loss", 0.0), (Self::Data, "data lost", LOSS), (Self::DataAndReports, "data and reports lost", LOSS)];

    fn losses(self) -> (LossSpec, LossSpec) {
        match self {
            Self::Nothing => (LossSpec::None, LossSpec::None),
            Self::Data => (random(LOSS), LossSpec::None),
            Self::DataAndReports => (random(LOSS), random(LOSS_BACK)),
        }
    }
}

fn over(who: Who, wanted: (u32, u32), case: Case) -> Scenario {
    let (loss, loss_back) = case.losses();
    scenario(who, wanted, Accounting::StrictAll, &loss).with(|it| {
        it.black_box.loss_back = loss_back;
        it.black_box.feedback = FeedbackMode::Full;
    })
}

fn points() -> Vec<StudyPoint> {
    let mut points = Vec::new();
    for (who, name) in WHO {
        for (case, lost, x) in Case::ALL {
            points.push(StudyPoint { curve: format!("{name}, {lost}"), x, scenario: over(who, NONE, case) });
        }
        // SNR knows all or nothing.
        let wanted = if who == Who::Snr { ANY } else { ONE };
        points.push(StudyPoint { curve: format!("{name}, tolerant"), x: LOSS, scenario: over(who, wanted, Case::Data) });
    }
    points
}

/// A row: the feature, the paper's words for SSTP and SNR, and what is measured of each.
struct Row {
    feature: &'static str,
    paper: [&'static str; 2],
    measure: &'static str,
    cell: fn(&Measured, &str) -> Option<String>,
}

const ROWS: [Row; 8] = [
    Row {
        feature: "Location of loss detection",
        paper: ["receiver", "sender"],
        measure: "reports of the receiver for each packet lost, those it sends anyway not counted",
        cell: |points, name| {
            let (clean, lossy) = (at(points, name, "no loss")?, at(points, name, "data lost")?);
            let each = |found: &PointResult| reports(found) as f64 / found.total(|one| one.packets_sent).max(1) as f64;
            Some(format!("{:.2}", (each(&lossy) - each(&clean)) / LOSS))
        },
    },
    Row {
        feature: "Loss detection method",
        paper: ["gap detection and timer", "timer"],
        measure: "mean delay a loss adds to its segment (ms); a round trip is 60",
        cell: |points, name| at(points, name, "data lost").map(|found| format!("{:.1}", added_ms(&found))),
    },
    Row {
        feature: "Error control unit",
        paper: ["segment", "block"],
        measure: "packets in it (chosen alike)",
        cell: |points, name| at(points, name, "no loss").map(|found| found.scenario.workload.segment_packets.to_string()),
    },
    Row {
        feature: "Retransmission strategy (unit)",
        paper: ["selective (packet)", "selective (block)"],
        measure: "data packets sent again for each packet lost",
        cell: |points, name| at(points, name, "data lost").map(|found| ratio(again(&found), found.total(|one| one.packets_lost))),
    },
    Row {
        feature: "Control, sender to receiver (frequency)",
        paper: ["pause / end (when idle)", "highest number (periodic, T_in)"],
        measure: "packets for each 1000 data packets, without loss",
        cell: |points, name| at(points, name, "no loss").map(|found| per_thousand(&found, found.total(|one| one.control_packets))),
    },
    Row {
        feature: "Control, receiver to sender (frequency)",
        paper: ["cumulative ACK and selective NAK (periodic NAK)", "cumulative ACK and selective NAK (periodic, T_in)"],
        measure: "packets for each 1000 data packets, without loss / with it",
        cell: |points, name| {
            let (clean, lossy) = (at(points, name, "no loss")?, at(points, name, "data lost")?);
            Some(format!("{} / {}", per_thousand(&clean, reports(&clean)), per_thousand(&lossy, reports(&lossy))))
        },
    },
    Row {
        feature: "Variable grades of reliability",
        paper: ["application-dependent recovery", "error control yes or no"],
        measure: "largest delay (ms) and share of packets missing: reliable / (256,1,1), for SNR without error control",
        cell: |points, name| {
            let (strict, tolerant) = (at(points, name, "data lost")?, at(points, name, "tolerant")?);
            Some(format!("{}, {} / {}, {}", max(&strict), missing(&strict), max(&tolerant), missing(&tolerant)))
        },
    },
    Row {
        feature: "Lost control (not in the paper's table; EC 3.3)",
        paper: ["periodic NAK makes up for it", "the next state makes up for it"],
        measure: "mean delay (ms) and throughput efficiency: every report arrives / one in ten is lost",
        cell: |points, name| {
            let (all, some) = (at(points, name, "data lost")?, at(points, name, "data and reports lost")?);
            Some(format!("{} / {}", mean_and_efficiency(&all), mean_and_efficiency(&some)))
        },
    },
];

fn tables(points: &Measured) -> Vec<TextTable> {
    let columns = ["feature", "SSTP (paper)", "SNR (paper)", "measured", "SSTP", "SNR", "Segstream"].map(str::to_owned).to_vec();
    let row = |row: &Row| {
        let [sstp, snr] = row.paper;
        let mut cells: Vec<String> = [row.feature, sstp, snr, row.measure].map(str::to_owned).to_vec();
        cells.extend(WHO.map(|(_, name)| (row.cell)(points, name).unwrap_or_default()));
        cells
    };
    vec![TextTable { title: "SSTP and SNR".to_owned(), columns, rows: ROWS.iter().map(row).collect() }]
}

fn at(points: &Measured, name: &str, case: &str) -> Option<PointResult> {
    let curve = format!("{name}, {case}");
    let place = points.curve(&curve).next()?.x;
    points.at(&curve, place).cloned()
}

fn again(found: &PointResult) -> u64 {
    found.total(|one| one.packets_retransmitted)
}

fn reports(found: &PointResult) -> u64 {
    found.total(|one| one.feedback_packets)
}

fn ratio(count: u64, of: u64) -> String {
    format!("{:.2}", count as f64 / of.max(1) as f64)
}

fn per_thousand(found: &PointResult, count: u64) -> String {
    format!("{:.2}", 1000.0 * count as f64 / found.total(|one| one.packets_sent).max(1) as f64)
}

/// By how much the mean delay of a segment that lost something exceeds the least delay.
fn added_ms(found: &PointResult) -> f64 {
    let least = Point::of_the_papers(500e6).receiver_delay(0.0) * 1e3;
    (found.delay_ms_mean().mean - least) / violation_probability(found.scenario.workload.segment_packets, 0, LOSS)
}

fn max(found: &PointResult) -> String {
    format!("{:.0}", found.delay_ms_max().value)
}

fn missing(found: &PointResult) -> String {
    let (accepted, arrived) = (found.total(|one| one.packets_accepted), found.total(|one| one.packets_delivered));
    let missing = accepted.saturating_sub(arrived);
    if missing == 0 { "none".to_owned() } else { format!("{:.1e}", missing as f64 / accepted.max(1) as f64) }
}

fn mean_and_efficiency(found: &PointResult) -> String {
    format!("{:.1}, {:.3}", found.delay_ms_mean().mean, found.throughput_efficiency().mean)
}
