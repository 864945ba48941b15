//! What a staged run gave.
//!
//! Made by the workers; read by whoever started the run.
//!
//! Invariant: counters are of one stage each and are written by its thread alone.

use super::error::StagedError;
use segstream_base::Duration;

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Somebody set the [`super::Stop`].
    Stopped,
    /// [`super::StagedOptions::time_max`] was over.
    TimeMax,
}

/// What one stage did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageCounters {
    /// Its name.
    pub name: &'static str,
    /// Messages it took.
    pub messages: u64,
    /// How often its timer was due.
    pub timeouts: u64,
    /// Messages it sent.
    pub sent: u64,
    /// How often it had a message down the flow for which there was no room.
    pub stalls: u64,
    /// The most messages that waited at it for room.
    pub held_back_max: usize,
    /// Wall time of its turns, with what its messages cost to take and to hand on.
    pub busy: Duration,
}

impl StageCounters {
    pub(super) const fn new(name: &'static str) -> Self {
        Self { name, messages: 0, timeouts: 0, sent: 0, stalls: 0, held_back_max: 0, busy: Duration::ZERO }
    }
}

/// What one thread had of its processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadCounters {
    /// Wall time it did not sleep.
    pub awake: Duration,
    /// Processor time of it; `None` where the system does not tell.
    pub processor: Option<Duration>,
}

impl ThreadCounters {
    /// The share of its waking time in which it had a processor: below one when it shared it with others. One when
    /// that is not known.
    pub fn share(&self) -> f64 {
        match self.processor {
            Some(processor) if !self.awake.is_zero() => (processor.as_secs_f64() / self.awake.as_secs_f64()).min(1.0),
            _ => 1.0,
        }
    }
}

/// A run that ended as it should.
#[derive(Debug)]
pub struct Finished<S> {
    /// The stages, in their order.
    pub stages: Vec<S>,
    /// What each did.
    pub counters: Vec<StageCounters>,
    /// What each thread had of its processor.
    pub threads: Vec<ThreadCounters>,
    /// Why it ended.
    pub ended: Ended,
    /// Wall time of the run, starting threads included.
    pub elapsed: Duration,
    /// Whether every thread was bound to its processor.
    pub pinned: bool,
}

/// What one thread brings back.
pub(super) struct Brought<S> {
    /// Stages with their places and counters.
    pub(super) stages: Vec<(usize, S, StageCounters)>,
    pub(super) thread: ThreadCounters,
    pub(super) ended: Ended,
    pub(super) pinned: bool,
}

/// All threads' results as one.
pub(super) fn join<S>(results: Vec<Result<Brought<S>, StagedError>>, elapsed: Duration) -> Result<Finished<S>, StagedError> {
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
