//! The figures of one workload as rows, for people and for Markdown.
//!
//! Called by the verb.
//!
//! Invariant: both show the same figures.

use super::figures::{Figures, Run};
use serde_json::{Map, Value};
use std::fmt::Write as _;

/// Rows under headings; the first column is names.
#[derive(Debug)]
pub(super) struct Table {
    headings: Vec<String>,
    rows: Vec<Vec<String>>,
    /// What is said below.
    notes: Vec<String>,
}

impl Table {
    /// Of the runs of one workload, with what they compare to.
    pub(super) fn of(workload: &str, runs: &[&Run], ratios: &Map<String, Value>) -> Self {
        let headings = runs.first().map_or(&[][..], |run| columns(&run.figures));
        let mut headings: Vec<String> = [workload].iter().chain(headings).map(|heading| (*heading).to_owned()).collect();
        let ratio = |run: &Run| ratios.get(&format!("ratio_to_{}", run.name)).and_then(Value::as_f64);
        let compares = runs.iter().any(|run| ratio(run).is_some());
        if compares {
            headings.push("ours / this".to_owned());
        }
        let row = |run: &&Run| {
            let mut row = vec![run.name.clone()];
            row.extend(cells(&run.figures));
            if compares {
                row.push(ratio(run).map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}")));
            }
            row
        };
        let rows = runs.iter().map(row).collect();
        let encrypted = ratios.get("ratio_encrypted_to_plain").and_then(Value::as_f64);
        let mut notes: Vec<String> = encrypted.map(|ratio| format!("encrypted / plain: {ratio:.2}")).into_iter().collect();
        notes.extend(runs.iter().filter_map(|run| incomplete(run)));
        Self { headings, rows, notes }
    }

    /// For a terminal.
    pub(super) fn text(&self) -> String {
        let width = |at: usize| {
            let cells = self.rows.iter().chain([&self.headings]).filter_map(|row| row.get(at));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let mut text = String::new();
        for row in [&self.headings].into_iter().chain(&self.rows) {
            let mut line = String::new();
            for (at, cell) in row.iter().enumerate() {
                let width = width(at);
                let _ = if at == 0 { write!(line, "{cell:<width$}") } else { write!(line, "  {cell:>width$}") };
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        for note in &self.notes {
            let _ = writeln!(text, "{note}");
        }
        text
    }

    /// The same in Markdown, with the version of each transport, whether it encrypts, and how it was set up.
    pub(super) fn markdown(&self, runs: &[&Run]) -> String {
        let mut text = String::new();
        let (name, figures) = self.headings.split_first().map_or(("", &[][..]), |(name, figures)| (name.as_str(), figures));
        let _ = writeln!(text, "| {name} | version | encrypts | {} |", figures.join(" | "));
        let _ = writeln!(text, "|---|---|---|{}", "---:|".repeat(figures.len()));
        for (row, run) in self.rows.iter().zip(runs) {
            let (name, figures) = row.split_first().map_or(("", &[][..]), |(name, figures)| (name.as_str(), figures));
            let encrypts = if run.encrypts { "yes" } else { "no" };
            let _ = writeln!(text, "| {name} | {} | {encrypts} | {} |", run.version, figures.join(" | "));
        }
        for note in &self.notes {
            let _ = writeln!(text, "\n{note}");
        }
        text.push_str("\nHow each was set up:\n\n");
        for run in runs {
            let _ = writeln!(text, "- {}: {}", run.name, run.settings);
        }
        text
    }
}

const fn columns(figures: &Figures) -> &'static [&'static str] {
    match figures {
        Figures::Goodput { .. } => &["Gbit/s", "min to max", "CPU s/GB"],
        Figures::Records { .. } => &["segments/s", "min to max", "CPU us each"],
        Figures::RoundTrips { .. } => &["round trip us", "p50", "p99", "max", "CPU us each"],
        Figures::Delays { .. } => &["delay us", "p50", "p99", "max", "segments"],
        Figures::Active { .. } => &["connections", "Gbit/s", "CPU s/GB", "units sent again"],
        Figures::Connections { .. } => &["server CPU us a set-up", "set-ups a CPU second", "kB an idle connection", "idle connections"],
    }
}

fn cells(figures: &Figures) -> Vec<String> {
    let gigabits = |bps: f64| format!("{:.2}", bps / 1e9);
    match *figures {
        Figures::Goodput { goodput_bps_median, goodput_bps_min, goodput_bps_max, cpu_seconds_per_gb, .. } => vec![
            gigabits(goodput_bps_median),
            format!("{} to {}", gigabits(goodput_bps_min), gigabits(goodput_bps_max)),
            format!("{cpu_seconds_per_gb:.2}"),
        ],
        Figures::Records { segments_per_second_median, segments_per_second_min, segments_per_second_max, cpu_us_per_segment, .. } => vec![
            format!("{segments_per_second_median:.0}"),
            format!("{segments_per_second_min:.0} to {segments_per_second_max:.0}"),
            format!("{cpu_us_per_segment:.2}"),
        ],
        Figures::RoundTrips {
            round_trip_us_mean, round_trip_us_p50, round_trip_us_p99, round_trip_us_max, cpu_us_per_round_trip, ..
        } => [round_trip_us_mean, round_trip_us_p50, round_trip_us_p99, round_trip_us_max, cpu_us_per_round_trip].map(one_digit).to_vec(),
        Figures::Delays { delay_us_mean, delay_us_p50, delay_us_p99, delay_us_max, segments, .. } => {
            let mut cells = [delay_us_mean, delay_us_p50, delay_us_p99, delay_us_max].map(one_digit).to_vec();
            cells.push(segments.to_string());
            cells
        }
        Figures::Active { goodput_bps_median, cpu_seconds_per_gb, connections, sent_again, .. } => {
            vec![connections.to_string(), gigabits(goodput_bps_median), format!("{cpu_seconds_per_gb:.2}"), sent_again.to_string()]
        }
        Figures::Connections { server_cpu_us_per_setup, setups_per_server_cpu_second, memory_bytes_per_connection, idle_connections } => {
            vec![
                one_digit(server_cpu_us_per_setup),
                format!("{setups_per_server_cpu_second:.0}"),
                one_digit(memory_bytes_per_connection / 1e3),
                idle_connections.to_string(),
            ]
        }
    }
}

fn one_digit(value: f64) -> String {
    format!("{value:.1}")
}

/// What did not come through, if anything.
fn incomplete(run: &Run) -> Option<String> {
    let (Figures::Goodput { incomplete, .. }
    | Figures::Records { incomplete, .. }
    | Figures::Active { incomplete, .. }
    | Figures::Delays { incomplete, .. }) = run.figures
    else {
        return None;
    };
    (incomplete > 0).then(|| format!("{}: {incomplete} did not come through", run.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn run(name: &str, bps: f64, incomplete: u64) -> Run {
        let figures = Figures::Goodput {
            goodput_bps_median: bps,
            goodput_bps_min: bps / 2.0,
            goodput_bps_max: bps * 2.0,
            cpu_seconds_per_gb: 0.5,
            bytes: 1,
            incomplete,
        };
        let (name, version, settings) = (name.to_owned(), "1.2".to_owned(), format!("as {name} likes it"));
        Run { name, workload: "throughput", version, encrypts: false, settings, repetitions: 1, figures }
    }

    #[test]
    fn the_table_shows_medians_spreads_ratios_and_what_was_lost() {
        let runs = [run("plain", 8e9, 0), run("raw", 16e9, 3)];
        let runs: Vec<&Run> = runs.iter().collect();
        let ratios = json!({"ratio_to_raw": 0.5});
        let table = Table::of("throughput", &runs, ratios.as_object().unwrap());
        let text = table.text();
        assert!(
            text.lines().any(|line| line.starts_with("plain") && line.ends_with("8.00  4.00 to 16.00      0.50            -")),
            "{text}"
        );
        assert!(text.contains("8.00 to 32.00      0.50         0.50") && text.contains("raw: 3 did not come through"), "{text}");
        let markdown = table.markdown(&runs);
        assert!(markdown.contains("| raw | 1.2 | no | 16.00 | 8.00 to 32.00 | 0.50 | 0.50 |"), "{markdown}");
        assert!(markdown.ends_with("\n- plain: as plain likes it\n- raw: as raw likes it\n"), "{markdown}");
    }
}
