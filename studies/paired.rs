//! Segstream against SSTP in full mode, point by point, on the same losses.
//!
//! Called by the studies in which both stand. Replication r of both meets the same loss process, so the
//! difference of the two is taken run by run, and its interval is narrower than theirs.
//!
//! Invariant: a row compares two points of the same scenario except for the scheme.

use segstream_lab::figure::{TextTable, digits};
use segstream_lab::measured::Measured;
use segstream_lab::outcome::Outcome;
use segstream_lab::point::PointResult;
use segstream_lab::statistics::{Confidence, Paired};

/// `tables` with one more: the differences, unless no point of Segstream has one of SSTP beside it.
pub fn with_differences(mut tables: Vec<TextTable>, points: &Measured) -> Vec<TextTable> {
    let mut rows = Vec::new();
    for point in points.points.iter().filter(|point| point.curve.starts_with("segstream")) {
        let rest = &point.curve["segstream".len()..];
        let names = [format!("sstp-full{rest}"), format!("sstp-full hard{rest}")];
        let Some(other) = names.iter().find_map(|name| points.at(name, point.x)) else { continue };
        let time = point.result.scenario.packet_time_s();
        rows.push(vec![
            rest.trim().to_owned(),
            digits(point.x),
            difference(&point.result, other, |outcome| outcome.throughput_efficiency(time)),
            difference(&point.result, other, Outcome::delay_ms_mean),
        ]);
    }
    let columns = ["curve", "x", "throughput efficiency", "mean delay (ms)"].map(str::to_owned).to_vec();
    let title = "Segstream less SSTP full, run by run on the same losses".to_owned();
    if !rows.is_empty() {
        tables.push(TextTable { title, columns, rows });
    }
    tables
}

/// The mean difference with its interval, where there are runs enough for one.
fn difference(ours: &PointResult, theirs: &PointResult, value: impl Fn(&Outcome) -> f64) -> String {
    let runs = ours.outcomes.len().min(theirs.outcomes.len());
    let values = |result: &PointResult| result.outcomes.iter().take(runs).map(&value).collect::<Vec<f64>>();
    let (ours, theirs) = (values(ours), values(theirs));
    match Paired::new(&ours, &theirs, Confidence::P95) {
        Ok(paired) => {
            let half = paired.difference.half_width.map_or_else(String::new, |half| format!(" ± {half:.4}"));
            format!("{:+.4}{half}", paired.difference.mean)
        }
        Err(_) => ours.iter().zip(&theirs).map(|(ours, theirs)| format!("{:+.4}", ours - theirs)).collect(),
    }
}
