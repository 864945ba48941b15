//! The mapping of stages to threads, and the direction in which data flows.
//!
//! Made by the caller of [`super::run`].
//!
//! Invariant: every thread of a mapping has at least one stage.

use super::error::StagedError;
use segstream_base::stage::StageId;

/// The maximum number of stages in a run: a set of stages is a bit mask of one word.
pub const STAGES_MAX: usize = 64;

/// The thread of each stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    thread_of: Vec<usize>,
    threads: usize,
}

impl Mapping {
    /// Stage `i` on thread `thread_of[i]`; threads are counted from 0.
    ///
    /// # Errors
    ///
    /// If a thread has no stage, or there are no stages.
    pub fn new(thread_of: Vec<usize>) -> Result<Self, StagedError> {
        let Some(last) = thread_of.iter().max().copied() else {
            return Err(StagedError::Stages(0));
        };
        // If a thread number is at least the number of stages, some thread below it has no stage.
        let threads = last.saturating_add(1).min(thread_of.len() + 1);
        match (0..threads).find(|thread| !thread_of.contains(thread)) {
            Some(empty) => Err(StagedError::EmptyThread(empty)),
            None => Ok(Self { thread_of, threads }),
        }
    }

    /// All of `stages` on one thread.
    pub fn one_thread(stages: usize) -> Self {
        Self { thread_of: vec![0; stages], threads: 1 }
    }

    /// The number of threads.
    pub const fn threads(&self) -> usize {
        self.threads
    }

    /// The thread of each stage.
    pub fn threads_of(&self) -> &[usize] {
        &self.thread_of
    }
}

/// The rank of each stage in the flow; by default the order of the stages.
pub(super) fn ranks(flow: Option<&[StageId]>, stages: usize) -> Result<Vec<usize>, StagedError> {
    let Some(flow) = flow else {
        return Ok((0..stages).collect());
    };
    let mut ranks = vec![usize::MAX; stages];
    for (rank, stage) in flow.iter().enumerate() {
        match ranks.get_mut(stage.0) {
            Some(place) if *place == usize::MAX => *place = rank,
            _ => return Err(StagedError::Flow(stages)),
        }
    }
    if ranks.contains(&usize::MAX) { Err(StagedError::Flow(stages)) } else { Ok(ranks) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_has_a_stage_on_every_thread() {
        assert_eq!(Mapping::new(vec![1, 0, 1]).unwrap().threads(), 2);
        assert!(matches!(Mapping::new(vec![0, 2]), Err(StagedError::EmptyThread(1))));
        assert!(matches!(Mapping::new(vec![usize::MAX]), Err(StagedError::EmptyThread(0))));
        assert!(matches!(Mapping::new(Vec::new()), Err(StagedError::Stages(0))));
    }

    #[test]
    fn a_flow_names_every_stage_once() {
        let flow = |ids: &[usize]| ids.iter().map(|id| StageId(*id)).collect::<Vec<_>>();
        assert_eq!(ranks(Some(&flow(&[2, 0, 1])), 3).unwrap(), [1, 2, 0]);
        for wrong in [&[0, 1][..], &[0, 1, 1], &[0, 1, 3], &[0, 1, 2, 2]] {
            assert!(matches!(ranks(Some(&flow(wrong)), 3), Err(StagedError::Flow(3))), "{wrong:?}");
        }
    }
}
