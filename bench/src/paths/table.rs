//! The measurements as people read them: Markdown tables with the median of the seeds.
//!
//! Called by [`super::run`].
//!
//! Invariant: a cell that was not measured is a dash; one that failed says so.

use super::cell::{Delay, Measured};
use super::matrix::{CONTENDERS, LOSSES, Work};
use crate::spread::Spread;
use anyhow::Result;
use segstream_lab::machine::Machine;
use std::fmt::Write as _;

/// What is said of the seeds of a cell that have a result.
type Summary = fn(&[&Measured]) -> Option<String>;

/// The tables with what they say of a cell's seeds.
const TABLES: [(Work, &str, Summary); 7] = [
    (
        Work::Schedule,
        "One-way delay of 256 KiB segments due every 26.2144 ms, from when they were due, ms: mean / p99 / max; then the part that \
         was never complete, and what was delivered where the load was not carried",
        delays,
    ),
    (Work::Schedule, "The same: p99 of the segments of all seeds together, ms", p99_of_all),
    (Work::Schedule, "The same: IP bytes the sender's host sent for each byte delivered", wire),
    (Work::Bulk, "Bulk: goodput, Mbit/s", goodput),
    (Work::Bulk, "The same: IP bytes the sender's host sent for each byte delivered", wire),
    (
        Work::Live,
        "256 KiB segments due every 26.2144 ms, @60: every 34.9525 ms, without the first 200; from when they were due, ms: p50 / p95 / p99 of \
         the segments of all seeds together, those that were never complete as the last; then their part",
        quantiles,
    ),
    (Work::Live, "The same: IP bytes the sender's host sent for each byte delivered", wire),
];

/// Below this a transport does not carry the 80 Mbit/s of `schedule`.
const CARRIED_BPS_MIN: f64 = 76e6;

/// All tables.
pub(super) fn text(machine: &Machine, cells: &[Measured]) -> Result<String> {
    let mut text =
        format!("{machine}\n100 Mbit/s, 60 ms, a drop-tail queue of one bandwidth-delay product, loss before it in both directions\n");
    for (work, title, told) in TABLES {
        let cells: Vec<&Measured> = cells.iter().filter(|cell| cell.workload == work.name()).collect();
        if cells.is_empty() {
            continue;
        }
        let losses: Vec<&str> = LOSSES.iter().map(|loss| loss.name).filter(|name| cells.iter().any(|cell| cell.loss == *name)).collect();
        writeln!(text, "\n{title}\n\n| | {} |\n|---|{}", losses.join(" | "), "---|".repeat(losses.len()))?;
        for contender in CONTENDERS.iter().filter(|contender| cells.iter().any(|cell| cell.transport == contender.name)) {
            write!(text, "| {} |", contender.name)?;
            for loss in &losses {
                let seeds = cells.iter().copied().filter(|cell| cell.loss == *loss && cell.transport == contender.name);
                write!(text, " {} |", of_seeds(&seeds.collect::<Vec<_>>(), told))?;
            }
            writeln!(text)?;
        }
    }
    let late: Vec<f64> = cells.iter().filter(|cell| !cell.link_kept_up).map(|cell| cell.link_lateness_ms).collect();
    if !late.is_empty() {
        let (count, all, worst) = (late.len(), cells.len(), late.iter().fold(0.0, |most: f64, ms| most.max(*ms)));
        let median = Spread::of(late).median;
        writeln!(
            text,
            "\nIn {count} of {all} measurements the link could not keep up: one packet of a thousand was {median:.1} ms late or more (median of \
             these; worst {worst:.1} ms)."
        )?;
    }
    let failed: Vec<&Measured> = cells.iter().filter(|cell| cell.error.is_some()).collect();
    for Measured { workload, transport, loss, seed, error, .. } in failed {
        writeln!(text, "\n{workload} of {transport} at loss {loss}, seed {seed}: {}", error.as_deref().unwrap_or_default())?;
    }
    Ok(text)
}

/// What is said of the seeds that have a result.
fn of_seeds(seeds: &[&Measured], told: Summary) -> String {
    let results: Vec<&Measured> = seeds.iter().copied().filter(|cell| cell.error.is_none()).collect();
    match (seeds.len(), told(&results)) {
        (0, _) => "-".to_owned(),
        (_, None) => "no result".to_owned(),
        (_, Some(told)) => told,
    }
}

fn median(seeds: &[&Measured], of: impl Fn(&Measured) -> Option<f64>) -> Option<f64> {
    let values: Vec<f64> = seeds.iter().filter_map(|cell| of(cell)).collect();
    (!values.is_empty()).then(|| Spread::of(values).median)
}

fn delays(seeds: &[&Measured]) -> Option<String> {
    let incomplete = median(seeds, |cell| cell.incomplete)?;
    let of = |part: fn(&Delay) -> f64| median(seeds, |cell| cell.delay_ms.as_ref().map(part));
    let (Some(mean), Some(p99), Some(max)) = (of(|delay| delay.mean), of(|delay| delay.p99), of(|delay| delay.max)) else {
        return Some("none complete".to_owned());
    };
    let incomplete = if incomplete > 0.0 { format!(", {:.1} %", incomplete * 100.0) } else { String::new() };
    // Where the queue grows, how fast it is drained says more than how long it was.
    let slow = median(seeds, |cell| Some(cell.goodput_bps)).filter(|bps| *bps < CARRIED_BPS_MIN);
    let slow = slow.map_or(String::new(), |bps| format!(", {:.1} Mbit/s", bps / 1e6));
    Some(format!("{mean:.0}/{p99:.0}/{max:.0}{incomplete}{slow}"))
}

fn p99_of_all(seeds: &[&Measured]) -> Option<String> {
    let all = seeds.iter().flat_map(|cell| &cell.delays_ms).copied().collect();
    Some(Delay::of(all).map_or_else(|| "none complete".to_owned(), |delay| format!("{:.1}", delay.p99)))
}

fn quantiles(seeds: &[&Measured]) -> Option<String> {
    let due = seeds.len() * (Work::Live.segments() - Work::Live.warm_up()) as usize;
    let mut delays: Vec<f64> = seeds.iter().flat_map(|cell| &cell.delays_ms).copied().collect();
    delays.sort_by(f64::total_cmp);
    (due > 0).then(|| of_due(&delays, due))
}

/// Quantiles of the segments that were due, of which these, in ascending order, have come.
fn of_due(delays: &[f64], due: usize) -> String {
    let at = |share: f64| {
        let rank = (due as f64 * share).ceil() as usize;
        delays.get(rank.saturating_sub(1)).map_or_else(|| "never".to_owned(), |delay| format!("{delay:.1}"))
    };
    let never = match due.saturating_sub(delays.len()) {
        0 => String::new(),
        missing => format!(", {:.1} %", missing as f64 * 100.0 / due as f64),
    };
    format!("{} / {} / {}{never}", at(0.5), at(0.95), at(0.99))
}

fn wire(seeds: &[&Measured]) -> Option<String> {
    Some(format!("{:.3}", median(seeds, |cell| cell.wire_bytes_per_byte)?))
}

fn goodput(seeds: &[&Measured]) -> Option<String> {
    Some(format!("{:.1}", median(seeds, |cell| Some(cell.goodput_bps))? / 1e6))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_never_came_is_later_than_all_that_came() {
        let delays: Vec<f64> = (1..=97).map(f64::from).collect();
        assert_eq!(of_due(&delays, 97), "49.0 / 93.0 / 97.0");
        assert_eq!(of_due(&delays, 100), "50.0 / 95.0 / never, 3.0 %");
        assert_eq!(of_due(&[], 4), "never / never / never, 100.0 %");
    }
}
