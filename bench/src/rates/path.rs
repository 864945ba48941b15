//! A cell's path as flags of `segstream link`.
//!
//! Called by [`super::trial`], and by [`super::run`] for the key of a run.
//!
//! Invariant: the same cell and seed give the same flags.

use super::cells::Cell;
use super::trial::Contender;
use anyhow::{Context as _, Result, ensure};
use std::path::Path;

/// A full datagram with its IP header, in bits.
const DATAGRAM_BITS: f64 = 1500.0 * 8.0;
/// A queue holds at least this many.
const QUEUE_DATAGRAMS_MIN: f64 = 10.0;

impl Cell {
    /// How long a full datagram takes.
    pub(super) fn datagram_ms(&self) -> f64 {
        DATAGRAM_BITS / (self.mbit * 1e3)
    }

    /// How long the whole queue takes.
    pub(super) fn queue_ms(&self) -> f64 {
        (self.queue_bdp * self.rtt_ms).max(QUEUE_DATAGRAMS_MIN * self.datagram_ms())
    }

    /// When the first flow begins, in seconds after the link. Fifty milliseconds for each receiver to start are plenty.
    pub(super) const fn lead(&self) -> f64 {
        0.5 + 0.05 * self.count as f64
    }

    pub(super) fn queue_bytes(&self) -> u64 {
        (self.queue_ms() * self.mbit * 1e3 / 8.0).round() as u64
    }
}

/// Where the recorded link of a cell is, if it has one.
pub(super) fn trace(cell: &Cell, traces: Option<&Path>) -> Result<Option<String>> {
    let Some(file) = cell.trace else { return Ok(None) };
    let directory = traces.with_context(|| format!("{} needs the trace {file}; name its directory with --traces", cell.name))?;
    let path = directory.join(file);
    ensure!(path.is_file(), "there is no {}; name the directory of the traces with --traces", path.display());
    Ok(Some(path.display().to_string()))
}

/// The flags for a contender, with `trace` in the place of a bandwidth.
pub(super) fn flags(cell: &Cell, seed: u64, trace: Option<&str>, contender: Contender) -> Vec<String> {
    let mut flags: Vec<String> = Vec::new();
    let mut flag = |name: &str, value: String| flags.extend([format!("--{name}"), value]);
    match trace {
        Some(file) => flag("trace", file.to_owned()),
        None => flag("bandwidth", bandwidth(cell)),
    }
    flag("rtt", format!("{}ms", cell.rtt_ms));
    flag("queue", cell.queue_bytes().to_string());
    flag("aqm", cell.aqm.to_owned());
    flag("loss", cell.loss.to_owned());
    if let Some((jitter, _)) = cell.jitter {
        flag("jitter", jitter.to_owned());
    }
    flag("seed", seed.to_string());
    // Why not for the kernel's: they do not ask for ECN then, which is the same.
    if contender == Contender::Ours && !cell.ecn && cell.aqm != "droptail" {
        flags.push("--no-ecn".to_owned());
    }
    flags.extend(cell.flags.iter().map(|flag| (*flag).to_owned()));
    flags
}

/// Changes come so long after those of the link's clock as the flows begin.
fn bandwidth(cell: &Cell) -> String {
    let lead = cell.lead();
    let kbit = |mbit: f64| format!("{:.0}kbit", mbit * 1e3);
    let change = |(at, mbit): &(f64, f64)| format!("{}ms:{}", if *at > 0.0 { ((at + lead) * 1e3).round() } else { 0.0 }, kbit(*mbit));
    match cell.changes {
        [] => kbit(cell.mbit),
        changes => changes.iter().map(change).collect::<Vec<_>>().join(","),
    }
}

#[cfg(test)]
mod tests {
    use super::super::cells::CELLS;
    use super::*;

    fn of(name: &str) -> String {
        let cell = CELLS.iter().find(|cell| cell.name == name).unwrap();
        flags(cell, 7, cell.trace, Contender::Ours).join(" ")
    }

    #[test]
    fn a_queue_is_as_long_as_the_row_says_and_never_below_ten_datagrams() {
        assert_eq!(of("clean"), "--bandwidth 20000kbit --rtt 40ms --queue 100000 --aqm droptail --loss none --seed 7");
        assert!(of("slow").contains("--bandwidth 100kbit --rtt 40ms --queue 15000 "));
        assert!(of("deep").contains("--queue 1000000 "));
    }

    #[test]
    fn without_ecn_our_queue_drops_what_it_would_mark() {
        assert!(of("codel").ends_with(" --no-ecn") && of("pie-beside").ends_with(" --no-ecn"));
        assert!(!of("codel-ecn").contains("--no-ecn") && !of("clean").contains("--no-ecn"));
    }

    #[test]
    fn changes_come_when_the_flows_have_begun() {
        assert!(of("outage3").starts_with("--bandwidth 0ms:20000kbit,5550ms:0kbit,8550ms:20000kbit "));
    }

    #[test]
    fn a_trace_that_is_not_there_says_what_to_do() {
        let cell = CELLS.iter().find(|cell| cell.trace.is_some()).unwrap();
        assert!(trace(cell, None).unwrap_err().to_string().contains("--traces"));
    }

    #[test]
    fn no_two_cells_have_one_name() {
        let mut names: Vec<&str> = CELLS.iter().map(|cell| cell.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CELLS.len());
    }
}
