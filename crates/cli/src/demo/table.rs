//! The results as text for a terminal.
//!
//! Called by the verb, which prints it to standard error. Two blocks, one for delay and cost and one for what a viewer
//! gets, each with the runs grouped by loss process.
//!
//! Invariant: with names of up to 24 characters no line is wider than 120 columns, whatever the numbers up to a
//! million.

use super::report::{Report, Run};
use std::fmt::Write;

/// A column: two lines of heading, and what stands below them.
struct Column {
    heading: (&'static str, String),
    cell: Box<dyn Fn(&Run) -> String>,
}

impl Column {
    fn new(above: &'static str, below: &str, cell: impl Fn(&Run) -> String + 'static) -> Self {
        Self { heading: (above, below.into()), cell: Box::new(cell) }
    }
}

/// The report as text, each line ended.
pub(crate) fn text(report: &Report) -> String {
    let mut text = block(report, "", &delay_and_cost());
    text.push('\n');
    text.push_str(&block(report, "(usable: % of slices)", &what_a_viewer_gets()));
    text.push_str("PSNR: `exact` when every pixel shown was right. Usable: promise met, and delivered so long after due.\n");
    text
}

/// A number with `digits` digits after the point, or `-` when it is not known.
pub(crate) fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".into(), |value| format!("{value:.digits$}"))
}

/// A signal-to-noise ratio in dB; `exact` when it is infinite.
pub(crate) fn decibels(value: Option<f64>) -> String {
    value.map_or_else(|| "exact".into(), |value| format!("{value:.1}"))
}

/// A share in percent. Below 100 it is never rounded up to 100.
pub(crate) fn percent(share: f64) -> String {
    let rounded = (share * 1000.0).round() / 10.0;
    let shown = if share < 1.0 { rounded.min(99.9) } else { rounded };
    format!("{shown:.1}")
}

fn delay_and_cost() -> Vec<Column> {
    vec![
        Column::new("tolerance", "W,E,B", Run::tolerance_text),
        Column::new("", "slices", |run| run.slices.to_string()),
        Column::new("delay", "mean ms", |run| number(run.delay_ms_mean, 1)),
        Column::new("delay", "p99 ms", |run| number(run.delay_ms_p99, 1)),
        Column::new("delay", "max ms", |run| number(run.delay_ms_max, 1)),
        Column::new("units", "again", |run| run.units_retransmitted.to_string()),
        Column::new("repair", "units", |run| run.repair_units_sent.to_string()),
        Column::new("wire B", "per B", |run| number(run.wire_bytes_per_byte, 4)),
        Column::new("path late", "p99.9 ms", |run| number(run.emulator_lateness_ms_p999, 2)),
        Column::new("", "tries", |run| run.attempts.to_string()),
    ]
}

fn what_a_viewer_gets() -> Vec<Column> {
    let usable = |latency_ms: u32| {
        let share = move |run: &Run| run.usable_share.get(&latency_ms).map_or_else(|| "-".into(), |&share| percent(share));
        Column::new("usable", &format!("@{latency_ms}ms"), share)
    };
    let mut columns: Vec<_> = super::score::PLAYOUT_LATENCIES_MS.into_iter().map(usable).collect();
    columns.extend([
        Column::new("holes/", "slice", |run| format!("{:.2}", run.holes_per_slice_mean)),
        Column::new("longest", "run", |run| run.holes_longest_run.to_string()),
        Column::new("PSNR", "mean dB", |run| decibels(run.psnr_db_mean)),
        Column::new("PSNR", "worst dB", |run| decibels(run.psnr_db_worst)),
    ]);
    columns
}

/// One block: headings with a note before them, and for each loss process its runs.
fn block(report: &Report, note: &str, columns: &[Column]) -> String {
    let length = |text: &str| text.chars().count();
    let names = report.runs.iter().map(|run| length(&run.name) + 2).max().unwrap_or(0).max(length(note));
    let widths: Vec<usize> = columns
        .iter()
        .map(|column| {
            let cells = report.runs.iter().map(|run| length(&(column.cell)(run)));
            cells.chain([length(column.heading.0), length(&column.heading.1)]).max().unwrap_or(0)
        })
        .collect();
    let mut text = String::new();
    let mut line = |first: &str, cells: &mut dyn Iterator<Item = String>| {
        let mut line = format!("{first:names$}");
        for (cell, width) in cells.zip(&widths) {
            let _ = write!(line, "  {cell:>width$}");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    };
    line("", &mut columns.iter().map(|column| column.heading.0.to_owned()));
    line(note, &mut columns.iter().map(|column| column.heading.1.clone()));
    for loss in report.losses() {
        line(&format!("loss {loss}"), &mut std::iter::empty());
        for run in report.runs.iter().filter(|run| run.loss == loss) {
            line(&format!("  {}", run.name), &mut columns.iter().map(|column| (column.cell)(run)));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::report::made_up;

    #[test]
    fn every_line_fits_the_terminal_and_every_run_is_in_both_blocks() {
        let mut report = made_up();
        for run in &mut report.runs {
            run.units_retransmitted = 999_999;
            run.delay_ms_max = Some(99_999.94);
        }
        let text = text(&report);
        assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
        assert_eq!(text.lines().filter(|line| line.starts_with("  tolerant, interleaved ")).count(), 4);
        assert_eq!(text.lines().filter(|line| *line == "loss gilbert:rate=0.1%,burst=8").count(), 2);
    }

    #[test]
    fn columns_are_aligned() {
        let text = text(&made_up());
        let block: Vec<&str> = text.lines().take_while(|line| !line.is_empty()).collect();
        let ends: Vec<usize> = block.iter().filter(|line| !line.starts_with("loss")).map(|line| line.chars().count()).collect();
        assert!(ends[1..].windows(2).all(|pair| pair[0] == pair[1]), "{text}");
    }

    #[test]
    fn unknown_infinite_and_nearly_full_are_told_apart() {
        assert_eq!([number(None, 1), number(Some(0.0), 1), decibels(None)], ["-", "0.0", "exact"]);
        assert_eq!([percent(1.0), percent(0.9999), percent(0.9), percent(0.0)], ["100.0", "99.9", "90.0", "0.0"]);
    }
}
