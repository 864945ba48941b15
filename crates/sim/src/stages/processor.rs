//! A processor of the model and its queue of calls.
//!
//! Called by [`super::StageModel`].
//!
//! Invariant: one call is served at a time, and those that wait are served in the order in which they came.

use segstream_base::{Duration, Instant};
use std::collections::VecDeque;

/// A call that is to be made.
#[derive(Debug)]
pub(super) struct Job<M> {
    pub(super) stage: usize,
    /// Since when it waits.
    pub(super) ready: Instant,
    /// The message; `None` for the timer.
    pub(super) message: Option<M>,
}

/// One processor.
#[derive(Debug)]
pub(super) struct Processor<M> {
    waiting: VecDeque<Job<M>>,
    serving: Option<(Job<M>, Duration)>,
    busy: Duration,
}

impl<M> Processor<M> {
    pub(super) const fn new() -> Self {
        Self { waiting: VecDeque::new(), serving: None, busy: Duration::ZERO }
    }

    /// A call waits to be served.
    pub(super) fn wait(&mut self, job: Job<M>) {
        self.waiting.push_back(job);
    }

    /// The call that is to be served now: `None` while another is, or nobody waits.
    pub(super) fn next(&mut self) -> Option<Job<M>> {
        if self.serving.is_some() { None } else { self.waiting.pop_front() }
    }

    /// Begins a service.
    pub(super) fn begin(&mut self, job: Job<M>, cost: Duration) {
        self.serving = Some((job, cost));
    }

    /// Ends the service.
    pub(super) fn finish(&mut self) -> Option<Job<M>> {
        let (job, cost) = self.serving.take()?;
        self.busy += cost;
        Some(job)
    }

    /// How long it was occupied by services that have ended.
    pub(super) const fn busy(&self) -> Duration {
        self.busy
    }
}
