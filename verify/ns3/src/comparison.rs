//! What must agree, and how far.
//!
//! Called by `main`.
//!
//! Invariant: a margin is stated where the two boxes are not built alike, with its reason; everything else is equality or an interval.

use crate::cases::{Case, Losses};
use crate::theirs::Ns3;
use crate::{Outcome, ours};
use anyhow::Result;
use segstream_lab::statistics::{Estimate, over_replications};

/// How far arrivals may lie apart where nothing is drawn, in nanoseconds: ns-3 rounds the time of each transmission to one, and a busy
/// period adds these up.
fn rounding_ns(case: &Case) -> u64 {
    u64::from(case.packets)
}

/// A number of a run.
type Measure = fn(&Case, &[(u64, u32)], &Outcome) -> f64;

/// Compares one case, and prints it; whether it agrees.
pub(crate) fn compare(case: &Case, ns3: &Ns3) -> Result<bool> {
    let mut runs = Vec::new();
    for run in 0..case.runs {
        let schedule = case.schedule(run);
        let pair = (ours::run(case, run, &schedule)?, ns3.run(case, run, &schedule)?);
        runs.push((schedule, pair));
    }
    if case.is_deterministic() {
        let (_, (ours, theirs)) = &runs[0];
        return Ok(same(case, ours, theirs));
    }
    let measures: &[(&str, Measure, f64)] = match case.loss {
        Losses::Independent(_) => &[("lost", lost, 0.0), ("lost after a loss", lost_after_loss, 0.0)],
        // Why margins. Loss: CoDel's return to dropping is RFC 8289's in ours and an older kernel's in ns-3, PIE's random numbers are
        // others; half a per cent of the packets. Delay: in ns-3 a packet waits in the device behind the discipline, so that two packet
        // times pass that the discipline does not see.
        _ => &[("lost", lost, 0.005), ("queueing delay [ms]", delay_ms, f64::NAN)],
    };
    let mut agree = true;
    for (name, measure, margin) in measures {
        let of = |pick: fn(&(Outcome, Outcome)) -> &Outcome| {
            let values: Vec<f64> = runs.iter().map(|(schedule, pair)| measure(case, schedule, pick(pair))).collect();
            over_replications(&values)
        };
        let margin = if margin.is_nan() { 2.0 * case.packet_ns() * 1e-6 } else { *margin };
        let (ours, theirs) = (of(|pair| &pair.0), of(|pair| &pair.1));
        let agrees = (ours.mean - theirs.mean).abs() <= reach(ours, theirs) + margin;
        eprintln!("{:<28} {name:<26} {:>22} {:>22}{}", case.name, shown(ours), shown(theirs), if agrees { "" } else { "  DIFFERS" });
        agree &= agrees;
    }
    Ok(agree)
}

/// Whether the same packets have arrived, at the same times.
fn same(case: &Case, ours: &Outcome, theirs: &Outcome) -> bool {
    let count = |outcome: &Outcome| outcome.iter().flatten().count();
    let pairs = || ours.iter().zip(theirs);
    let fates = pairs().filter(|(ours, theirs)| ours.is_some() != theirs.is_some()).count();
    let apart = pairs().filter_map(|(ours, theirs)| Some(ours.as_ref()?.abs_diff(*theirs.as_ref()?))).max().unwrap_or(0);
    let agrees = fates == 0 && apart <= rounding_ns(case);
    let told = if agrees { String::new() } else { format!("  DIFFERS: {fates} packets have another fate") };
    eprintln!("{:<28} {:<26} {:>22} {:>22}, at most {apart} ns apart{told}", case.name, "arrived, each", count(ours), count(theirs));
    agrees
}

/// The half-width of the interval of the difference of two means.
fn reach(ours: Estimate, theirs: Estimate) -> f64 {
    let half = |estimate: Estimate| estimate.half_width.unwrap_or(0.0);
    half(ours).hypot(half(theirs))
}

fn shown(estimate: Estimate) -> String {
    format!("{:.5} ± {:.5}", estimate.mean, estimate.half_width.unwrap_or(0.0))
}

/// The share of packets that have not arrived.
fn lost(_: &Case, _: &[(u64, u32)], outcome: &Outcome) -> f64 {
    outcome.iter().filter(|arrived| arrived.is_none()).count() as f64 / outcome.len() as f64
}

/// The share of losses among packets behind a lost one: that of all, where losses are independent.
fn lost_after_loss(_: &Case, _: &[(u64, u32)], outcome: &Outcome) -> f64 {
    let behind: Vec<bool> = outcome.windows(2).filter(|pair| pair[0].is_none()).map(|pair| pair[1].is_none()).collect();
    behind.iter().filter(|lost| **lost).count() as f64 / behind.len().max(1) as f64
}

/// The mean wait in the queue of what has arrived.
fn delay_ms(case: &Case, schedule: &[(u64, u32)], outcome: &Outcome) -> f64 {
    let unloaded = case.delay_ns as f64 + case.packet_ns();
    let waits = schedule.iter().zip(outcome).filter_map(|((left, _), arrived)| Some((*arrived)? as f64 - *left as f64 - unloaded));
    let waits: Vec<f64> = waits.collect();
    waits.iter().sum::<f64>() / waits.len().max(1) as f64 * 1e-6
}
