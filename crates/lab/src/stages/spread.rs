//! Assigns stages to processors or threads, balanced.
//!
//! Called by scenarios and measurements.
//!
//! Invariant: the same costs give the same answer; processors are numbered in the order of their first stage, and each
//! has one.

use super::costs::StageCosts;
use super::process::{FLOW, PTIF, STAGES, TX2};
use segstream_base::Duration;

/// The most processors or threads: congestion avoidance, which has almost nothing to do, shares that of Tx2.
pub const PROCESSORS_MAX: usize = STAGES - 1;

/// The processor of each stage, such that the busiest of `processors` has as little to do as possible, and then the
/// sum of squares is smallest: of all ways, tried one after the other. At most [`PROCESSORS_MAX`] are used, and at least one.
pub fn balanced(costs: &StageCosts, processors: usize) -> [usize; STAGES] {
    let processors = processors.clamp(1, PROCESSORS_MAX);
    let mut search = Search { costs, loads: vec![0; processors], of: [0; STAGES], best: None };
    search.place(0, 0);
    search.best.map_or([0; STAGES], |(_, of)| of)
}

/// Busiest processor and sum of squares: the smaller, the better.
type Score = (u64, u128);

struct Search<'a> {
    costs: &'a StageCosts,
    /// Nanoseconds a packet, by processor.
    loads: Vec<u64>,
    of: [usize; STAGES],
    best: Option<(Score, [usize; STAGES])>,
}

impl Search<'_> {
    fn score(&self) -> Score {
        let squares = self.loads.iter().map(|load| u128::from(*load).pow(2)).sum();
        (self.loads.iter().copied().max().unwrap_or(0), squares)
    }

    /// Places `stage` and those after it; `used` processors have a stage.
    fn place(&mut self, stage: usize, used: usize) {
        if stage == PTIF.0 {
            self.of[stage] = self.of[TX2.0];
            return self.place(stage + 1, used);
        }
        if stage == STAGES {
            let score = self.score();
            if used == self.loads.len() && self.best.is_none_or(|(best, _)| score < best) {
                self.best = Some((score, self.of));
            }
            return;
        }
        let cost = self.costs.0[stage].as_nanos();
        for processor in 0..(used + 1).min(self.loads.len()) {
            self.loads[processor] += cost;
            self.of[stage] = processor;
            if self.best.is_none_or(|((busiest, _), _)| self.loads[processor] <= busiest) {
                self.place(stage + 1, used.max(processor + 1));
            }
            self.loads[processor] -= cost;
        }
    }
}

/// The thread of each stage, such that every thread has a run of the way of the data, with Tx2 and Rx2 beside Tx1 and Rx1,
/// and the busiest has as little to do as possible. Few messages then go from thread to thread.
pub fn in_a_row(costs: &StageCosts, threads: usize) -> [usize; STAGES] {
    let groups = groups();
    let threads = threads.clamp(1, groups.len());
    let load = |groups: &[Vec<usize>]| groups.iter().flatten().fold(Duration::ZERO, |sum, stage| sum + costs.0[*stage]);
    // The least busiest thread for the first `n` groups on `k` threads, and where the last one begins.
    let mut least = vec![vec![(Duration::MAX, 0); groups.len() + 1]; threads + 1];
    least[0][0] = (Duration::ZERO, 0);
    for thread in 1..=threads {
        for end in thread..=groups.len() {
            let from = |begin: usize| (least[thread - 1][begin].0.max(load(&groups[begin..end])), begin);
            if let Some(best) = (thread - 1..end).map(from).min() {
                least[thread][end] = best;
            }
        }
    }
    let (mut of, mut end) = ([0; STAGES], groups.len());
    for thread in (1..=threads).rev() {
        let begin = least[thread][end].1;
        for stage in groups[begin..end].iter().flatten() {
            of[*stage] = thread - 1;
        }
        end = begin;
    }
    of
}

/// The way of the data, the processes of state beside those of data.
fn groups() -> Vec<Vec<usize>> {
    use super::process::{HOST_OUT, RX1, RX2, TX1};
    let with = |stage: usize| match stage {
        stage if stage == TX1.0 => vec![stage, TX2.0, PTIF.0],
        stage if stage == RX1.0 => vec![stage, RX2.0],
        stage => vec![stage],
    };
    let end = FLOW.iter().position(|stage| *stage == HOST_OUT).map_or(FLOW.len(), |at| at + 1);
    FLOW[..end].iter().map(|stage| with(stage.0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loads(of: &[usize; STAGES], costs: &StageCosts) -> Vec<u64> {
        let mut loads = vec![0; of.iter().max().unwrap() + 1];
        for (stage, processor) in of.iter().enumerate() {
            loads[*processor] += costs.0[stage].as_micros();
        }
        loads
    }

    #[test]
    fn the_busiest_of_n_processors_has_no_more_than_it_must() {
        let costs = StageCosts::paper();
        let busiest = |n| *loads(&balanced(&costs, n), &costs).iter().max().unwrap();
        let all: Vec<u64> = (1..=9).map(busiest).collect();
        assert_eq!(all[0], 416);
        let sum = |set: u64| (0..STAGES).filter(|stage| set >> stage & 1 != 0).map(|stage| costs.0[stage].as_micros()).sum::<u64>();
        let halves = (0..1 << STAGES).map(|set| sum(set).max(416 - sum(set)));
        assert_eq!(Some(all[1]), halves.min());
        assert!(all.windows(2).all(|pair| pair[1] <= pair[0]), "{all:?}");
        assert!((1..=9).zip(&all).all(|(n, busiest)| *busiest >= 416u64.div_ceil(n)), "{all:?}");
        assert_eq!(all[7], 80);
    }

    #[test]
    fn eight_processors_are_five_for_the_protocol_and_three_for_the_network() {
        use super::super::process::{HOST_IN, HOST_OUT, NETWORK, NODE_RX, NODE_TX, RX1, RX2, TX1};
        let of = balanced(&StageCosts::paper(), 8);
        let alone = |stage: usize| of.iter().enumerate().all(|(other, at)| *at != of[stage] || other == stage || other == PTIF.0);
        for stage in [TX1, TX2, RX1, RX2, NODE_TX, NETWORK, NODE_RX] {
            assert!(alone(stage.0), "{of:?}");
        }
        assert_eq!(of[HOST_IN.0], of[HOST_OUT.0], "{of:?}");
    }

    #[test]
    fn a_row_is_cut_where_it_balances() {
        let costs = StageCosts::paper();
        assert_eq!(in_a_row(&costs, 1), [0; STAGES]);
        let mut two = loads(&in_a_row(&costs, 2), &costs);
        two.sort_unstable();
        assert_eq!(two, [192, 224]);
        for threads in 1..=7 {
            let of = in_a_row(&costs, threads);
            let in_flow: Vec<usize> = FLOW[..7].iter().map(|stage| of[stage.0]).collect();
            assert!(in_flow.is_sorted() && in_flow[6] == threads - 1, "{in_flow:?}");
            assert_eq!(of[TX2.0], of[PTIF.0]);
        }
    }
}
