//! A model of processors: the processes of a protocol that is parallel by function, each call of which costs time (HT 6).
//!
//! [`StageModel`] runs real [`Stage`]s in virtual time. A cost function says what a call costs, a list of [`Place`]s
//! which processor does it. Called by laboratories, which ask how many packets a second this many processors carry;
//! it names no protocol.
//!
//! A processor serves one call at a time, in the order in which the calls became ready; calls that are ready at one
//! instant are served in the order of their making. The stage is called at the end of the service, and what it says
//! is with the others at that instant. A stage that is a link occupies nobody and is called a delay after the
//! message was sent to it.
//!
//! - `event_queue`: the events to come; `processor`: a processor and its queue; [`tally`]: counters.
//!
//! Invariant: the same stages, places and costs give the same calls in the same order, on every platform.
//!
//! Limit: queues are not bounded, as the windows of protocols bound them. A link with a timer that is always due would
//! be called forever at one instant.

mod event_queue;
mod processor;
pub mod tally;
#[cfg(test)]
mod tests;

pub use tally::StageTally;

use event_queue::{Event, EventQueue};
use processor::{Job, Processor};
use segstream_base::stage::{Stage, StageId};
use segstream_base::{Duration, Instant};

/// Where a stage runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On this processor, with the others that are there. Counted from 0.
    Processor(usize),
    /// Nowhere: it is called this long after each message was sent to it, and when its timer is due.
    Link(Duration),
}

/// A call that costs time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work<'a, M> {
    /// [`Stage::handle`] with this message.
    Message(&'a M),
    /// [`Stage::handle_timeout`].
    Timer,
}

/// Why a model cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StageModelError {
    /// See the message.
    #[error("{places} places were given for {stages} stages; give each its place")]
    Places {
        /// Places given.
        places: usize,
        /// Stages to place.
        stages: usize,
    },
    /// See the message.
    #[error("processor {processor} is beyond the number of stages, {stages}; count processors from 0 without a gap")]
    Processor {
        /// The processor.
        processor: usize,
        /// Stages to place.
        stages: usize,
    },
    /// See the message.
    #[error("stage {from} addressed stage {to}, which does not exist; give it a stage of the model")]
    NoSuchStage {
        /// Who.
        from: &'static str,
        /// Whom.
        to: usize,
    },
}

/// How far a stage's timer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TimerState {
    /// Nobody will look at it.
    Idle,
    /// It will be looked at then.
    Armed(Instant),
    /// It was due, and waits for the processor.
    Waiting,
}

/// Stages on processors, in virtual time.
pub struct StageModel<S: Stage, C> {
    stages: Vec<S>,
    places: Vec<Place>,
    cost: C,
    processors: Vec<Processor<S::Message>>,
    event_queue: EventQueue<S::Message>,
    timers: Vec<TimerState>,
    tallies: Vec<StageTally>,
    now: Instant,
    out: Vec<(StageId, S::Message)>,
}

impl<S, C> StageModel<S, C>
where
    S: Stage,
    C: FnMut(StageId, Work<'_, S::Message>) -> Duration,
{
    /// `stages` at their `places`, at time zero; `cost` says how long a processor is occupied by a call,
    /// and is asked once for each, when its service begins.
    ///
    /// # Errors
    ///
    /// When the places do not fit the stages.
    pub fn new(stages: Vec<S>, places: Vec<Place>, cost: C) -> Result<Self, StageModelError> {
        let count = stages.len();
        if places.len() != count {
            return Err(StageModelError::Places { places: places.len(), stages: count });
        }
        let last = places.iter().filter_map(|place| if let Place::Processor(number) = place { Some(*number) } else { None }).max();
        if let Some(processor) = last.filter(|number| *number >= count) {
            return Err(StageModelError::Processor { processor, stages: count });
        }
        let mut model = Self {
            tallies: stages.iter().map(|stage| StageTally::new(stage.name())).collect(),
            stages,
            places,
            cost,
            processors: (0..last.map_or(0, |last| last + 1)).map(|_| Processor::new()).collect(),
            event_queue: EventQueue::new(),
            timers: vec![TimerState::Idle; count],
            now: Instant::ZERO,
            out: Vec::new(),
        };
        (0..count).for_each(|stage| model.arm(stage));
        Ok(model)
    }

    /// Sends a message from outside; it is with the stage at `at`, or now when that has passed.
    ///
    /// # Errors
    ///
    /// When there is no such stage.
    pub fn send(&mut self, at: Instant, to: StageId, message: S::Message) -> Result<(), StageModelError> {
        if to.0 >= self.stages.len() {
            return Err(StageModelError::NoSuchStage { from: "outside", to: to.0 });
        }
        self.event_queue.put(at.max(self.now), Event::Arrival { to: to.0, message });
        Ok(())
    }

    /// Does the next thing that happens, if it happens until `until`; returns whether there was one.
    ///
    /// # Errors
    ///
    /// When a stage addresses one that does not exist.
    pub fn step(&mut self, until: Instant) -> Result<bool, StageModelError> {
        let Some((at, event)) = self.event_queue.take(until) else {
            return Ok(false);
        };
        self.now = at;
        match event {
            Event::Arrival { to, message } => self.arrive(to, message),
            Event::Passed { stage, message } => self.call(stage, Some(message))?,
            Event::Served { processor } => {
                if let Some(job) = self.processors[processor].finish() {
                    self.call(job.stage, job.message)?;
                }
                self.serve(processor);
            }
            Event::Timer { stage } => self.look_at_timer(stage)?,
        }
        Ok(true)
    }

    /// Does all that happens until `until`, as long as `wanted` says so.
    ///
    /// # Errors
    ///
    /// When a stage addresses one that does not exist.
    pub fn run(&mut self, until: Instant, mut wanted: impl FnMut(&Self) -> bool) -> Result<(), StageModelError> {
        while wanted(self) && self.step(until)? {}
        Ok(())
    }

    /// The instant of the last thing that happened.
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// The stages, in their order.
    pub fn stages(&self) -> &[S] {
        &self.stages
    }

    /// What each stage did, in their order.
    pub fn tallies(&self) -> &[StageTally] {
        &self.tallies
    }

    /// How long each processor was occupied by calls that have ended.
    pub fn processors_busy(&self) -> Vec<Duration> {
        self.processors.iter().map(Processor::busy).collect()
    }

    /// A message is with a stage.
    fn arrive(&mut self, to: usize, message: S::Message) {
        match self.places[to] {
            Place::Link(delay) => self.event_queue.put(self.now + delay, Event::Passed { stage: to, message }),
            Place::Processor(processor) => {
                self.processors[processor].wait(Job { stage: to, ready: self.now, message: Some(message) });
                self.serve(processor);
            }
        }
    }

    /// Begins the next service, if the processor is free and somebody waits.
    fn serve(&mut self, processor: usize) {
        while let Some(job) = self.processors[processor].next() {
            let work = match &job.message {
                Some(message) => Work::Message(message),
                None if self.is_due(job.stage) => Work::Timer,
                None => {
                    // A message has settled what the timer was for.
                    self.timers[job.stage] = TimerState::Idle;
                    self.arm(job.stage);
                    continue;
                }
            };
            let cost = (self.cost)(StageId(job.stage), work);
            self.tallies[job.stage].note(job.message.is_some(), cost, self.now.since(job.ready));
            self.processors[processor].begin(job, cost);
            self.event_queue.put(self.now + cost, Event::Served { processor });
        }
    }

    fn is_due(&self, stage: usize) -> bool {
        self.stages[stage].poll_timeout().is_some_and(|at| at <= self.now)
    }

    /// Calls a stage, with a message or for its timer, and hands on what it says.
    fn call(&mut self, stage: usize, message: Option<S::Message>) -> Result<(), StageModelError> {
        let mut out = std::mem::take(&mut self.out);
        match message {
            Some(message) => self.stages[stage].handle(self.now, message, &mut out),
            None => {
                self.stages[stage].handle_timeout(self.now, &mut out);
                self.timers[stage] = TimerState::Idle;
            }
        }
        for (to, message) in out.drain(..) {
            if to.0 >= self.stages.len() {
                return Err(StageModelError::NoSuchStage { from: self.stages[stage].name(), to: to.0 });
            }
            self.arrive(to.0, message);
        }
        self.out = out;
        self.arm(stage);
        Ok(())
    }

    /// Sees to it that the stage's timer is looked at when it is due.
    fn arm(&mut self, stage: usize) {
        let due = self.stages[stage].poll_timeout().map(|at| at.max(self.now));
        match (due, self.timers[stage]) {
            (_, TimerState::Waiting) => {}
            (Some(due), TimerState::Armed(at)) if at <= due => {}
            (Some(due), _) => {
                self.timers[stage] = TimerState::Armed(due);
                self.event_queue.put(due, Event::Timer { stage });
            }
            (None, _) => self.timers[stage] = TimerState::Idle,
        }
    }

    fn look_at_timer(&mut self, stage: usize) -> Result<(), StageModelError> {
        if self.timers[stage] != TimerState::Armed(self.now) {
            return Ok(());
        }
        self.timers[stage] = TimerState::Idle;
        if !self.is_due(stage) {
            self.arm(stage);
            return Ok(());
        }
        match self.places[stage] {
            Place::Link(_) => self.call(stage, None),
            Place::Processor(processor) => {
                self.timers[stage] = TimerState::Waiting;
                self.processors[processor].wait(Job { stage, ready: self.now, message: None });
                self.serve(processor);
                Ok(())
            }
        }
    }
}
