//! A seed gives the same run, whatever runs beside it; and a run of many seeds reaches what it is there for.

use segstream_swarm::runner::{self, Outcome, Summary};
use segstream_swarm::tally::Tally;
use std::cell::RefCell;
use std::rc::Rc;

fn outcomes(threads: usize) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    runner::run_many(100, 60, threads, |outcome| outcomes.push(outcome));
    outcomes
}

#[test]
fn the_same_seeds_give_the_same_on_any_number_of_threads() {
    let alone = outcomes(1);
    assert_eq!(alone, outcomes(3));
    assert!(alone.iter().map(|outcome| outcome.seed).eq(100..160), "in the order of the seeds");
    let mut digests: Vec<u64> = alone.iter().map(|outcome| outcome.digest).collect();
    digests.sort_unstable();
    digests.dedup();
    assert_eq!(digests.len(), 60, "every seed is a run of its own");
}

#[test]
fn a_trace_changes_nothing() {
    for seed in 0..5 {
        let lines = Rc::new(RefCell::new(Vec::new()));
        let into = Rc::clone(&lines);
        let traced = runner::run_traced(seed, Box::new(move |line| into.borrow_mut().push(line.to_owned())));
        assert_eq!(traced, runner::run(seed));
        assert!(lines.borrow().len() > 20 && lines.borrow().iter().all(|line| line.split(' ').next().unwrap().parse::<u64>().is_ok()));
    }
}

#[test]
fn many_seeds_reach_everything_that_can_happen_and_none_fails() {
    let mut summary = Summary::default();
    runner::run_many(0, 1000, 2, |outcome| summary.add(outcome));
    assert_eq!(summary.failures, []);
    for name in Tally::NAMES {
        assert!(summary.tally.get(name) > 0, "{name} never happened");
    }
}
