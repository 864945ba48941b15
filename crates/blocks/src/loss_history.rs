//! Losses of the last seconds, as the far end of a path counts them.
//!
//! Called by a sender with the totals that reports tell. A loss process changes, so old counts must go; losses are rare, so that few
//! seconds may have too few of them. The time that is looked at is 0.8 s, or as much more, up to eight seconds, as it takes to see
//! eight runs or five thousand shipments. If anything was lost in it, the time before counts too as long as one process may have made
//! both: ten runs tell a rate to a third only.
//!
//! Invariant: totals that come late or twice change nothing; a bounded number of them is kept.

use crate::two_state_loss::{LossCounts, TwoStateLoss};
use segstream_base::{Duration, Instant};
use std::collections::VecDeque;

/// How far apart the totals are that are kept.
const SPACING: Duration = Duration::from_millis(100);
/// The time that is looked at. Why less than a second: the totals are [`SPACING`] apart and come half a round trip late, and a second after a
/// change the estimate is to be that of the new process alone.
const LOOKED_AT: Duration = Duration::from_millis(800);
/// The time that is looked at at most, and the runs or shipments that are looked for so far back.
pub const LOOKED_AT_MAX: Duration = Duration::from_secs(8);
/// How many totals are kept.
const KEPT: usize = (LOOKED_AT_MAX.as_nanos() / SPACING.as_nanos()) as usize;
const RUNS_SOUGHT: u64 = 8;
const PASSED_SOUGHT: u64 = 5000;

/// Totals over time.
#[derive(Clone, Debug, Default)]
pub struct LossHistory {
    /// Totals that are `SPACING` apart, oldest first.
    kept: VecDeque<(Instant, LossCounts)>,
    newest: LossCounts,
    newest_at: Instant,
}

impl LossHistory {
    /// The far end has counted so much in all. Totals below those that are known are old.
    pub fn on_totals(&mut self, now: Instant, totals: LossCounts) {
        if totals.passed <= self.newest.passed {
            return;
        }
        if self.kept.back().is_none_or(|&(at, _)| self.newest_at.since(at) >= SPACING) {
            if self.kept.len() == KEPT {
                self.kept.pop_front();
            }
            self.kept.push_back((self.newest_at, self.newest));
        }
        (self.newest, self.newest_at) = (totals, now);
    }

    /// What was counted lately, of one process as far as that can be told.
    pub fn recent(&self, now: Instant) -> LossCounts {
        let mut back = self.kept.iter().rev().map(|&(at, totals)| (now.since(at), self.newest.since(totals)));
        let (mut looked_at, mut counts) = (Duration::ZERO, LossCounts::default());
        for (age, longer) in back.by_ref() {
            if age > LOOKED_AT_MAX && counts.passed > 0 {
                return counts;
            }
            (looked_at, counts) = (age, longer);
            if age >= LOOKED_AT && (counts.runs >= RUNS_SOUGHT || counts.passed >= PASSED_SOUGHT) {
                break;
            }
        }
        // Why: when losses have ended nothing is to be coded any more, whatever was lost before.
        if counts.lost == 0 {
            return counts;
        }
        for (age, longer) in back.take_while(|(age, _)| *age <= LOOKED_AT_MAX) {
            if age < looked_at + looked_at {
                continue;
            }
            if !counts.may_be_of_one_process_with(longer.since(counts)) {
                break;
            }
            (looked_at, counts) = (age, longer);
        }
        counts
    }

    /// The process that has most likely made it.
    pub fn process(&self, now: Instant) -> TwoStateLoss {
        TwoStateLoss::fit(self.recent(now))
    }

    /// How many shipments were counted in all.
    pub const fn passed(&self) -> u64 {
        self.newest.passed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// A thousand shipments a second, one in `every` of which is lost.
    fn run(history: &mut LossHistory, totals: &mut LossCounts, ms: core::ops::Range<u64>, every: u64) {
        for now in ms {
            totals.passed += 1;
            totals.lost += u64::from(now % every == 0);
            totals.runs += u64::from(now % every == 0);
            history.on_totals(at(now), *totals);
        }
    }

    #[test]
    fn nine_tenths_of_a_second_after_a_change_the_estimate_is_that_of_the_new_process() {
        let (mut history, mut totals) = (LossHistory::default(), LossCounts::default());
        run(&mut history, &mut totals, 0..5000, 10);
        assert!((history.process(at(5000)).rate() - 0.1).abs() < 0.01);
        run(&mut history, &mut totals, 5000..5900, 100);
        assert!((history.process(at(5900)).rate() - 0.01).abs() < 0.003, "{:?}", history.process(at(5900)));
        run(&mut history, &mut totals, 5900..6800, 10);
        assert!((history.process(at(6800)).rate() - 0.1).abs() < 0.01);
    }

    #[test]
    fn a_loss_is_forgotten_after_eight_seconds_however_little_is_sent() {
        let (mut history, mut totals) = (LossHistory::default(), LossCounts::default());
        run(&mut history, &mut totals, 0..100, 10);
        for now in (100..9000).step_by(200) {
            totals.passed += 1;
            history.on_totals(at(now), totals);
        }
        assert_eq!(history.process(at(9000)), TwoStateLoss::NONE, "{:?}", history.recent(at(9000)));
    }

    #[test]
    fn rare_losses_are_counted_over_more_time() {
        let (mut history, mut totals) = (LossHistory::default(), LossCounts::default());
        run(&mut history, &mut totals, 0..20_000, 1000);
        assert!((2..=8).contains(&history.recent(at(20_000)).runs), "{:?}", history.recent(at(20_000)));
        assert!((history.process(at(20_000)).rate() - 1e-3).abs() < 3e-4);
    }

    /// With a burst of eight in each 800 shipments the eight seconds have a hundred runs, and 0.8 s ten.
    #[test]
    fn what_the_same_process_did_before_counts_too() {
        let (mut history, mut totals) = (LossHistory::default(), LossCounts::default());
        let mut burst = |history: &mut LossHistory, ms: core::ops::Range<u64>, every: u64| {
            for now in ms {
                totals.passed += 10;
                let begins = now % every == 0;
                totals.lost += if begins { 8 } else { 0 };
                totals.runs += u64::from(begins);
                history.on_totals(at(now), totals);
            }
        };
        burst(&mut history, 0..8000, 80);
        let recent = history.recent(at(8000));
        assert!((75..=100).contains(&recent.runs), "{recent:?}");
        burst(&mut history, 8000..9000, 8);
        let recent = history.recent(at(9000));
        assert!((95..=125).contains(&recent.runs) && recent.passed <= 10_000, "{recent:?}");
    }

    #[test]
    fn late_totals_change_nothing() {
        let (mut history, mut totals) = (LossHistory::default(), LossCounts::default());
        run(&mut history, &mut totals, 0..2000, 10);
        let before = history.recent(at(2000));
        history.on_totals(at(2000), LossCounts { passed: 500, lost: 400, runs: 1 });
        assert_eq!(history.recent(at(2000)), before);
    }
}
