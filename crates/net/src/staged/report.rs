//! The results of a staged run.
//!
//! Made by the workers; returned by [`super::run`].
//!
//! Invariant: each stage has its own counters, which only its thread writes.

use super::error::StagedError;
use segstream_base::Duration;

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The [`super::Stop`] was set.
    Stopped,
    /// [`super::StagedOptions::time_max`] was over.
    TimeMax,
}

/// The counters of one stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageCounters {
    /// Its name.
    pub name: &'static str,
    /// Messages it handled.
    pub messages: u64,
    /// How often its timer expired.
    pub timeouts: u64,
    /// Messages it sent.
    pub sent: u64,
    /// How often it became blocked: it had a message for a downstream stage whose queue was full.
    pub stalls: u64,
    /// The greatest backlog, in messages.
    pub backlog_max: usize,
    /// Wall time of its turns, including taking and passing on its messages.
    pub busy: Duration,
}

impl StageCounters {
    pub(super) const fn new(name: &'static str) -> Self {
        Self { name, messages: 0, timeouts: 0, sent: 0, stalls: 0, backlog_max: 0, busy: Duration::ZERO }
    }
}

/// The time of one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadCounters {
    /// Wall time in which it did not sleep.
    pub awake: Duration,
    /// Its processor time; `None` if the system does not report it.
    pub processor: Option<Duration>,
}

impl ThreadCounters {
    /// Processor time over wall time while it did not sleep: below one if it shared its processor. One if that is not known.
    pub fn share(&self) -> f64 {
        match self.processor {
            Some(processor) if !self.awake.is_zero() => (processor.as_secs_f64() / self.awake.as_secs_f64()).min(1.0),
            _ => 1.0,
        }
    }
}

/// The result of a run without an error.
#[derive(Debug)]
pub struct Finished<S> {
    /// The stages, in their order.
    pub stages: Vec<S>,
    /// The counters of each.
    pub counters: Vec<StageCounters>,
    /// The time of each thread.
    pub threads: Vec<ThreadCounters>,
    /// Why the run ended.
    pub ended: Ended,
    /// Wall time of the run, starting threads included.
    pub elapsed: Duration,
    /// Whether every thread was pinned to its processor.
    pub pinned: bool,
}

/// The result of one thread.
pub(super) struct ThreadResult<S> {
    /// Stages with their numbers and counters.
    pub(super) stages: Vec<(usize, S, StageCounters)>,
    pub(super) thread: ThreadCounters,
    pub(super) ended: Ended,
    pub(super) pinned: bool,
}

/// Merges the results of all threads.
pub(super) fn join<S>(results: Vec<Result<ThreadResult<S>, StagedError>>, elapsed: Duration) -> Result<Finished<S>, StagedError> {
    let (mut all, mut threads, mut ended, mut pinned) = (Vec::new(), Vec::new(), Ended::Stopped, true);
    for result in results {
        let brought = result?;
        all.extend(brought.stages);
        threads.push(brought.thread);
        pinned &= brought.pinned;
        if brought.ended == Ended::TimeMax {
            ended = Ended::TimeMax;
        }
    }
    all.sort_by_key(|(place, _, _)| *place);
    let counters = all.iter().map(|(_, _, counters)| *counters).collect();
    Ok(Finished { stages: all.into_iter().map(|(_, stage, _)| stage).collect(), counters, threads, ended, elapsed, pinned })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_known_only_where_the_system_tells_and_never_above_one() {
        let share = |awake, processor| {
            ThreadCounters { awake: Duration::from_millis(awake), processor: Option::map(processor, Duration::from_millis) }.share()
        };
        assert_eq!([share(10, Some(5)), share(10, Some(11)), share(10, None), share(0, Some(0))], [0.5, 1.0, 1.0, 1.0]);
    }
}
