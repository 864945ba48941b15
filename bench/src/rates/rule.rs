//! When a cell is met.
//!
//! Called by [`super::page`] with the medians of the seeds.
//!
//! Invariant: a run that is void does not count, and a cell without what its rule needs is neither met nor missed.

use super::cells::{Cell, Rule};
use super::journal::Run;
use crate::spread::Spread;

/// G: this part of the better kernel flow's goodput.
const GOODPUT_PART: f64 = 0.9;
/// G: a queue up to here is always good.
const QUEUE_MS: f64 = 15.0;
/// G: and up to so many datagram times.
const QUEUE_DATAGRAMS: f64 = 5.0;
/// How long the queue may be after a change.
const WAIT_MS_MAX: f64 = 300.0;
/// How soon most of the link is used again.
const AGAIN_S_MAX: f64 = 2.0;

/// The medians of a contender's runs that count.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Medians {
    pub(super) goodput_mbit: f64,
    pub(super) filled: f64,
    pub(super) other_mbit: f64,
    pub(super) starved_seconds: f64,
    pub(super) jain: f64,
    pub(super) dropped: f64,
    pub(super) queue_ms_p95: f64,
    pub(super) wait_ms_max: f64,
    pub(super) again_after_s: f64,
    pub(super) in_time: f64,
}

/// What is said of a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Met,
    Missed(Vec<String>),
    /// What is not measured.
    Unknown,
}

/// The three contenders of a cell, as far as they were measured.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Measured {
    pub(super) cubic: Option<Medians>,
    pub(super) bbr: Option<Medians>,
    pub(super) ours: Option<Medians>,
}

impl Medians {
    /// Of runs of one contender; `None` if none counts.
    pub(super) fn of(runs: &[&Run]) -> Option<Self> {
        let valid: Vec<&Run> = runs.iter().copied().filter(|run| run.void.is_none()).collect();
        if valid.is_empty() {
            return None;
        }
        let median = |of: fn(&Run) -> f64| Spread::of(valid.iter().map(|run| of(run)).collect()).median;
        Some(Self {
            goodput_mbit: median(|run| run.goodput_bps / 1e6),
            filled: median(|run| run.filled),
            other_mbit: median(|run| run.other_bps.unwrap_or(f64::NAN) / 1e6),
            starved_seconds: median(|run| f64::from(run.starved_seconds)),
            jain: median(|run| run.jain.unwrap_or(f64::NAN)),
            dropped: median(|run| run.dropped),
            queue_ms_p95: median(|run| run.queue_ms_p95),
            wait_ms_max: median(|run| run.wait_ms_max.unwrap_or(f64::NAN)),
            again_after_s: median(|run| run.again_after_s.unwrap_or(f64::NAN)),
            in_time: median(|run| run.in_time.unwrap_or(f64::NAN)),
        })
    }
}

/// The longest queue that G allows, given that of the kernel's BBR.
pub(super) fn queue_ms_max(cell: &Cell, bbr_ms: f64) -> f64 {
    let most = bbr_ms.max(QUEUE_MS).max(QUEUE_DATAGRAMS * cell.datagram_ms());
    cell.jitter.map_or(most, |(_, jitter_ms)| most.max(cell.queue_ms() / 2.0 + jitter_ms / 2.0))
}

/// Whether a cell is met.
pub(super) fn judge(cell: &Cell, measured: &Measured) -> Verdict {
    failures(cell, measured).map_or(Verdict::Unknown, |failures| if failures.is_empty() { Verdict::Met } else { Verdict::Missed(failures) })
}

/// What a value has to be: at least or at most a bound. A value that is no number fails.
fn at_least(what: &str, value: f64, bound: f64) -> Option<String> {
    if value >= bound { None } else { Some(format!("{what} {value:.3} < {bound:.3}")) }
}

fn at_most(what: &str, value: f64, bound: f64) -> Option<String> {
    if value <= bound { None } else { Some(format!("{what} {value:.3} > {bound:.3}")) }
}

/// What is not as it should be; `None` if that cannot be told.
fn failures(cell: &Cell, &Measured { cubic, bbr, ours }: &Measured) -> Option<Vec<String>> {
    let ours = ours?;
    let failures: Vec<Option<String>> = match cell.met {
        Rule::Good { filled_min, loss_max } => {
            let (cubic, bbr) = (cubic?, bbr?);
            let better = cubic.goodput_mbit.max(bbr.goodput_mbit);
            vec![
                at_least("goodput", ours.goodput_mbit, GOODPUT_PART * better),
                at_most("queue p95 ms", ours.queue_ms_p95, queue_ms_max(cell, bbr.queue_ms_p95)),
                at_least("part of the link", ours.filled, filled_min),
                at_most("loss", ours.dropped, loss_max),
            ]
        }
        Rule::AtLeast { mbit, loss_max } => {
            vec![at_least("goodput", ours.goodput_mbit, mbit), at_most("loss", ours.dropped, loss_max)]
        }
        Rule::LeavesCubic => vec![at_least("CUBIC beside", ours.other_mbit, bbr?.other_mbit)],
        Rule::Share { min, max, steady } => {
            let starved = if steady { at_most("starved seconds", ours.starved_seconds, cubic?.starved_seconds) } else { None };
            vec![at_least("share", ours.filled, min), at_most("share", ours.filled, max), starved]
        }
        Rule::Fair { jain_min, loss_max } => vec![at_least("Jain", ours.jain, jain_min), at_most("loss", ours.dropped, loss_max)],
        Rule::FairAsKernel => vec![at_least("Jain", ours.jain, cubic?.jain.max(bbr?.jain))],
        Rule::Recovers => {
            vec![at_most("wait ms", ours.wait_ms_max, WAIT_MS_MAX), at_most("0.9 again after s", ours.again_after_s, AGAIN_S_MAX)]
        }
        Rule::InTime { min, .. } => vec![at_least("in time", ours.in_time, min)],
        Rule::QueueBelow { p95_ms } => vec![at_most("queue p95 ms", ours.queue_ms_p95, p95_ms)],
    };
    Some(failures.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::super::cells::CELLS;
    use super::*;

    fn cell(name: &str) -> Cell {
        *CELLS.iter().find(|cell| cell.name == name).unwrap()
    }

    fn of(goodput_mbit: f64, queue_ms_p95: f64) -> Option<Medians> {
        Some(Medians { goodput_mbit, queue_ms_p95, filled: 0.97, ..Medians::default() })
    }

    fn met(cell: &Cell, cubic: Option<Medians>, bbr: Option<Medians>, ours: Option<Medians>) -> Verdict {
        judge(cell, &Measured { cubic, bbr, ours })
    }

    #[test]
    fn good_is_nine_tenths_of_the_better_kernel_flow() {
        let cell = cell("50-20-aggregate8");
        assert_eq!(met(&cell, of(40.0, 20.0), of(30.0, 5.0), of(36.0, 15.0)), Verdict::Met);
        assert!(matches!(met(&cell, of(40.1, 20.0), of(30.0, 5.0), of(36.0, 15.0)), Verdict::Missed(_)));
        assert!(matches!(met(&cell, of(30.0, 20.0), of(40.1, 5.0), of(36.0, 15.0)), Verdict::Missed(_)));
        assert_eq!(met(&cell, of(40.0, 20.0), None, of(36.0, 15.0)), Verdict::Unknown);
    }

    #[test]
    fn the_queue_may_be_as_long_as_bbrs_or_15_ms_or_five_datagram_times() {
        assert_eq!(queue_ms_max(&cell("clean"), 8.0), 15.0);
        assert_eq!(queue_ms_max(&cell("clean"), 21.0), 21.0);
        // 120 ms a datagram.
        assert!((queue_ms_max(&cell("slow"), 21.0) - 600.0).abs() < 1e-9);
        assert!(matches!(met(&cell("clean"), of(19.0, 40.0), of(19.0, 9.0), of(19.0, 15.1)), Verdict::Missed(_)));
    }

    #[test]
    fn under_jitter_half_the_queue_and_half_the_jitter_are_allowed_if_that_is_more() {
        // The queue is 40 ms.
        assert_eq!(queue_ms_max(&cell("jitter20"), 8.0), 30.0);
        assert_eq!(queue_ms_max(&cell("jitter20"), 35.0), 35.0);
    }

    #[test]
    fn a_clean_path_must_be_filled_too() {
        let ours = |filled| of(19.0, 5.0).map(|ours| Medians { filled, ..ours });
        assert_eq!(met(&cell("clean"), of(19.0, 40.0), of(19.0, 9.0), ours(0.95)), Verdict::Met);
        assert!(matches!(met(&cell("clean"), of(19.0, 40.0), of(19.0, 9.0), ours(0.94)), Verdict::Missed(_)));
    }

    #[test]
    fn beside_cubic_the_share_has_two_bounds_and_starved_seconds_are_those_of_the_kernel() {
        let of = |filled, starved_seconds| Some(Medians { filled, starved_seconds, ..Medians::default() });
        let cell = cell("cubic-1-second");
        assert_eq!(met(&cell, of(0.1, 2.0), None, of(0.35, 2.0)), Verdict::Met);
        for (share, starved) in [(0.34, 0.0), (0.61, 0.0), (0.5, 3.0)] {
            assert!(matches!(met(&cell, of(0.5, 2.0), None, of(share, starved)), Verdict::Missed(_)));
        }
        assert_eq!(met(&cell, None, None, of(0.5, 0.0)), Verdict::Unknown);
    }

    #[test]
    fn void_runs_do_not_count_and_what_was_not_measured_is_not_met() {
        let run = |goodput_bps, void: Option<&str>| Run { goodput_bps, void: void.map(str::to_owned), ..Run::default() };
        let (late, good) = (run(1e6, Some("late")), run(2e6, None));
        assert_eq!(Medians::of(&[&late, &good]).map(|medians| medians.goodput_mbit), Some(2.0));
        assert!(Medians::of(&[&late]).is_none());
        let nothing = Some(Medians { jain: f64::NAN, ..Medians::default() });
        assert!(matches!(met(&cell("ours8-20"), None, None, nothing), Verdict::Missed(_)));
    }
}
