//! A thread of a staged run and its stages.
//!
//! Started by [`super::run`], one for each thread.
//!
//! Invariant: only its own thread calls a stage. A worker that has nothing to do polls a limited number of times, then sleeps until it
//! is woken or a timer is due; it never waits for a lock.

use super::error::StagedError;
use super::node::{Node, WakeSet};
use super::options::StagedOptions;
use super::report::{Ended, ThreadCounters, ThreadResult};
use super::stop::Stop;
use crate::clock::Clock;
use crate::parker::Parker;
use crate::pinning;
use segstream_base::stage::{Stage, StageId};
use segstream_base::{Duration, Instant};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// The shortest sleep: for less the thread polls, because the system would oversleep.
const SLEEP_MIN: Duration = Duration::from_micros(50);

/// Pins this thread, the one of number `thread`, to one of the processors that it may use. Returns whether it succeeded.
fn pin(thread: usize) -> bool {
    let permitted = pinning::permitted();
    permitted.get(thread % permitted.len().max(1)).is_some_and(|processor| pinning::pin_to(*processor))
}

/// What all threads of a run share.
pub(super) struct Topology {
    /// The thread of each stage.
    pub(super) thread_of: Vec<usize>,
    /// The rank of each stage in the flow.
    pub(super) rank: Vec<usize>,
    /// For each stage the set of stages that have sent to it, so that only their queues are read.
    pub(super) senders: Vec<AtomicU64>,
    /// The parker of each thread.
    pub(super) parkers: Arc<[Parker]>,
}

/// A thread and its stages.
pub(super) struct Worker<'a, S: Stage> {
    thread: usize,
    nodes: Vec<Node<S>>,
    /// The index of the node that is running.
    current: usize,
    out: Vec<(StageId, S::Message)>,
    topology: &'a Topology,
    options: &'a StagedOptions,
    stop: &'a Stop,
    clock: Clock,
    /// Wall time spent asleep.
    slept: Duration,
}

impl<'a, S: Stage> Worker<'a, S> {
    pub(super) fn new(
        thread: usize,
        nodes: Vec<Node<S>>,
        topology: &'a Topology,
        options: &'a StagedOptions,
        stop: &'a Stop,
        clock: Clock,
    ) -> Self {
        Self { thread, nodes, current: 0, out: Vec::new(), topology, options, stop, clock, slept: Duration::ZERO }
    }

    /// Runs until the end of the run. An end on one thread ends all threads.
    pub(super) fn run(mut self) -> Result<ThreadResult<S>, StagedError> {
        self.topology.parkers[self.thread].register();
        let pinned = self.options.pin && pin(self.thread);
        let began = (self.clock.now(), processor_time());
        // Why this is unwind safe: after a panic the stages are dropped and not called again.
        let turned = catch_unwind(AssertUnwindSafe(|| self.turns()));
        self.stop.stop();
        let thread = ThreadCounters {
            awake: self.clock.now().since(began.0).saturating_sub(self.slept),
            processor: processor_time().zip(began.1).map(|(now, then)| now.saturating_sub(then)),
        };
        match turned {
            Ok(Ok(ended)) => Ok(ThreadResult { stages: self.nodes.into_iter().map(Node::leave).collect(), thread, ended, pinned }),
            Ok(Err(error)) => Err(error),
            Err(payload) => Err(StagedError::Panicked {
                stage: self.nodes.get(self.current).map_or("none", Node::name),
                panic_message: panic_message(payload.as_ref()),
            }),
        }
    }

    fn turns(&mut self) -> Result<Ended, StagedError> {
        let end = self.options.time_max.map_or(Instant::FAR_FUTURE, |span| Instant::ZERO + span);
        let mut now = self.clock.now();
        let mut polls = 0;
        while !self.stop.is_set() {
            if now >= end {
                return Ok(Ended::TimeMax);
            }
            let mut worked = false;
            for index in 0..self.nodes.len() {
                self.current = index;
                let node = &mut self.nodes[index];
                if let Some(wake_set) = node.turn(now, self.topology, self.options, &mut self.out)? {
                    let after = self.clock.now();
                    node.add_busy(after.since(now));
                    now = after;
                    worked = true;
                    self.wake(wake_set);
                }
            }
            if worked {
                polls = 0;
                continue;
            }
            polls += 1;
            if polls > self.options.polls {
                let before = self.clock.now();
                self.sleep(before, end);
                self.slept += self.clock.now().since(before);
            } else if polls > self.options.polls / 2 {
                // Why: the thread that this one waits for may need this processor.
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
            now = self.clock.now();
        }
        Ok(Ended::Stopped)
    }

    /// Wakes the threads of `wake_set`.
    #[inline]
    fn wake(&self, wake_set: WakeSet) {
        let others = !(1u64 << self.thread);
        let (messages, room) = (wake_set.messages & others, wake_set.room & others);
        if messages | room == 0 {
            return;
        }
        fence(Ordering::SeqCst);
        for (thread, parker) in self.topology.parkers.iter().enumerate() {
            if messages >> thread & 1 != 0 {
                parker.wake();
            } else if room >> thread & 1 != 0 {
                parker.wake_for_room();
            }
        }
    }

    /// Sleeps until woken, until a timer is due, or until `end`.
    fn sleep(&self, now: Instant, end: Instant) {
        let deadline = self.nodes.iter().filter_map(Node::deadline).fold(end, Instant::min);
        let left = deadline.since(now);
        if left < SLEEP_MIN {
            return;
        }
        let at_most = (deadline != Instant::FAR_FUTURE).then(|| left.into());
        let held = self.nodes.iter().any(Node::has_backlog);
        let look_again = || self.stop.is_set() || self.nodes.iter().any(|node| node.has_work(self.topology));
        self.topology.parkers[self.thread].sleep(held, at_most, look_again);
    }
}

/// Processor time of this thread so far.
#[cfg(target_os = "linux")]
fn processor_time() -> Option<Duration> {
    use rustix::time::{ClockId, clock_gettime};
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Some(Duration::from_secs(u64::try_from(time.tv_sec).ok()?) + Duration::from_nanos(u64::try_from(time.tv_nsec).ok()?))
}

#[cfg(not(target_os = "linux"))]
fn processor_time() -> Option<Duration> {
    None
}

/// The message of a panic.
fn panic_message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no readable message".to_owned())
}
