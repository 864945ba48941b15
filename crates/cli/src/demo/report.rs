//! The results of the demonstration, as they are printed with `--json` and embedded in the page.
//!
//! Filled by the verb, read by [`table`](super::table) and [`page`](super::page).
//!
//! Invariant: the printed object has the fields of [`Run`] alone; the series of single slices and the circumstances
//! belong to the page.

use super::score::{DelaySummary, PictureScore};
use segstream_base::Duration;
use segstream_base::halves::Verdict;
use serde::Serialize;
use std::collections::BTreeMap;

/// All runs of one demonstration.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Report {
    /// The runs, in the order in which they are shown.
    pub runs: Vec<Run>,
    /// What was the same in all runs, for people: (`"link"`, `"100 Mbit/s, 60 ms round trip"`). On the page only.
    #[serde(skip)]
    pub circumstances: Vec<(String, String)>,
}

/// One run: one way to send all slices over one path.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Run {
    /// What people call this way: the same for the same way on another path.
    pub name: String,
    /// The loss process of the path, as it is written on the command line.
    pub loss: String,
    /// The tolerance: of every W units at most E may be missing, and at most B in a row.
    pub tolerance: [u32; 3],
    /// Whether consecutive lines left apart from each other.
    pub interleave: bool,
    /// What was done with repair units, as it is written on the command line.
    pub coding: String,
    /// The number of slices sent.
    pub slices: usize,
    /// The mean delay of the accepted slices; null when there are none.
    pub delay_ms_mean: Option<f64>,
    /// The delay that 99 % of the accepted slices do not exceed; null when there are none.
    pub delay_ms_p99: Option<f64>,
    /// The longest delay of an accepted slice; null when there are none.
    pub delay_ms_max: Option<f64>,
    /// The share of slices usable when every slice is shown so many milliseconds after it was due.
    pub usable_share: BTreeMap<u32, f64>,
    /// Units sent again, each time counted.
    pub units_retransmitted: u64,
    /// Repair units sent, ahead of losses and for what was asked for.
    pub repair_units_sent: u64,
    /// Bytes on the wire, both directions, for each byte of the slices; null when nothing was sent.
    pub wire_bytes_per_byte: Option<f64>,
    /// The mean number of missing lines in a slice.
    pub holes_per_slice_mean: f64,
    /// The longest run of consecutive missing lines.
    pub holes_longest_run: usize,
    /// The peak signal-to-noise ratio of all slices as shown; null when every pixel was right (it is infinite).
    pub psnr_db_mean: Option<f64>,
    /// The peak signal-to-noise ratio of the worst slice; null when every pixel of every slice was right.
    pub psnr_db_worst: Option<f64>,
    /// How late the emulated path was in forwarding, exceeded by one datagram in a thousand; null when not measured.
    pub emulator_lateness_ms_p999: Option<f64>,
    /// How often the run was made until the emulated path kept its time.
    pub attempts: u32,
    /// Every slice, in the order sent. On the page only.
    #[serde(skip)]
    pub series: Vec<SliceRecord>,
}

/// What became of one slice.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct SliceRecord {
    /// The delay; null when the slice was not accepted.
    pub delay_ms: Option<f64>,
    /// The number of missing lines.
    pub holes: usize,
    /// The verdict's name.
    pub verdict: &'static str,
}

impl SliceRecord {
    /// The record of a slice.
    pub(crate) fn new(delay: Option<Duration>, holes: usize, verdict: Verdict) -> Self {
        Self { delay_ms: delay.map(Duration::as_millis_f64), holes, verdict: verdict.name() }
    }
}

impl Run {
    /// Takes over mean, 99th percentile and maximum of the delays.
    pub(crate) fn set_delays(&mut self, summary: Option<DelaySummary>) {
        self.delay_ms_mean = summary.map(|summary| summary.mean.as_millis_f64());
        self.delay_ms_p99 = summary.map(|summary| summary.p99.as_millis_f64());
        self.delay_ms_max = summary.map(|summary| summary.max.as_millis_f64());
    }

    /// Takes over the picture quality.
    pub(crate) fn set_quality(&mut self, score: &PictureScore) {
        self.psnr_db_mean = score.mean_db();
        self.psnr_db_worst = score.worst_db();
    }

    /// Repair units for a hundred units, each a line of a slice.
    pub(crate) fn repair_percent(&self) -> f64 {
        let lines = self.slices as f64 * f64::from(super::way::UNITS);
        if lines > 0.0 { self.repair_units_sent as f64 * 100.0 / lines } else { 0.0 }
    }

    /// The tolerance as it is written on the command line: `1024,32,1`.
    pub(crate) fn tolerance_text(&self) -> String {
        let [window, missing, run] = self.tolerance;
        format!("{window},{missing},{run}")
    }
}

impl Report {
    /// The loss processes, each once, in the order of the runs.
    pub(crate) fn losses(&self) -> Vec<&str> {
        let mut losses: Vec<&str> = Vec::new();
        for run in &self.runs {
            if !losses.contains(&run.loss.as_str()) {
                losses.push(&run.loss);
            }
        }
        losses
    }
}

/// Made-up results for the tests of the table and the page.
#[cfg(test)]
pub(crate) fn made_up() -> Report {
    use super::score::{self, Outcome};
    let ways: [(&str, [u32; 3], bool); 5] = [
        ("plain datagrams", [1024, 1024, 1024], false),
        ("reliable", [1024, 0, 0], false),
        ("reliable, coded ahead", [1024, 0, 0], false),
        ("tolerant", [1024, 32, 1], false),
        ("tolerant, interleaved", [1024, 32, 1], true),
    ];
    let mut random = segstream_base::random::Seed(9).stream("made up");
    let mut runs = Vec::new();
    for loss in ["1e-3", "gilbert:rate=0.1%,burst=8"] {
        for (index, (name, tolerance, interleave)) in ways.into_iter().enumerate() {
            let again = [0.0, 0.65, 0.01, if loss == "1e-3" { 0.02 } else { 0.55 }, 0.01][index];
            let millis = |random: &mut segstream_base::random::Random| {
                let rounds = if random.chance(again) { 1.0 + f64::from(u8::from(random.chance(0.06))) } else { 0.0 };
                55.0 + 62.0 * rounds + 1.5 * random.unit()
            };
            let delays: Vec<Duration> = (0..96).map(|_| Duration::from_secs_f64(millis(&mut random) / 1000.0)).collect();
            let outcome = |&delay: &Duration| Outcome { verdict: Verdict::Complete, latency: Some(delay) };
            let mut run = Run {
                name: name.into(),
                loss: loss.into(),
                tolerance,
                interleave,
                slices: 96,
                usable_share: score::usable_share(&delays.iter().map(outcome).collect::<Vec<_>>()),
                coding: if index == 2 { "auto:latency=100ms,budget=10%" } else { "off" }.into(),
                units_retransmitted: [0, 98, 0, 3, 1][index],
                repair_units_sent: [0, 0, 590, 0, 0][index],
                wire_bytes_per_byte: Some(1.0421),
                holes_per_slice_mean: [1.02, 0.0, 0.0, 1.0, 1.01][index],
                holes_longest_run: [17, 0, 0, 1, 1][index],
                psnr_db_mean: [Some(38.211), None, None, Some(61.9), Some(62.03)][index],
                psnr_db_worst: [Some(21.5), None, None, Some(55.25), Some(54.9)][index],
                emulator_lateness_ms_p999: Some(0.21),
                attempts: 1,
                ..Run::default()
            };
            run.set_delays(DelaySummary::of(&delays));
            run.series = delays.iter().map(|&delay| SliceRecord::new(Some(delay), index, Verdict::Complete)).collect();
            runs.push(run);
        }
    }
    let circumstances = [("Link", "100 Mbit/s, 60 ms round trip"), ("Slices", "96 of 1024 lines, one every 50 ms")];
    Report { runs, circumstances: circumstances.map(|(name, value)| (name.into(), value.into())).to_vec() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_printed_object_has_these_keys_and_null_for_what_is_not_known() {
        let printed = serde_json::to_value(made_up()).unwrap();
        assert_eq!(printed.as_object().unwrap().keys().collect::<Vec<_>>(), ["runs"]);
        let run = &printed["runs"][1];
        let mut keys: Vec<&String> = run.as_object().unwrap().keys().collect();
        keys.sort();
        let expected = "attempts coding delay_ms_max delay_ms_mean delay_ms_p99 emulator_lateness_ms_p999 holes_longest_run \
                        holes_per_slice_mean interleave loss name psnr_db_mean psnr_db_worst repair_units_sent slices tolerance \
                        units_retransmitted usable_share wire_bytes_per_byte";
        assert_eq!(keys, expected.split_whitespace().collect::<Vec<_>>());
        assert!(run["psnr_db_mean"].is_null());
        assert_eq!(run["tolerance"], serde_json::json!([1024, 0, 0]));
        assert!(run["usable_share"]["60"].is_number() && run["usable_share"]["400"].is_number());
        assert_eq!(made_up().losses(), ["1e-3", "gilbert:rate=0.1%,burst=8"]);
    }
}
