//! A node of the dataflow graph: a stage, its incoming and outgoing queues, and its backlog.
//!
//! Called by `worker`, turn by turn.
//!
//! Invariant: while a message for a downstream stage waits for room, the stage is not called. Messages between one pair of stages
//! keep their order.

use super::bounded_queue::{QueueReceiver, QueueSender, bounded_queue};
use super::error::StagedError;
use super::options::StagedOptions;
use super::report::StageCounters;
use super::worker::Topology;
use segstream_base::Instant;
use segstream_base::stage::{Stage, StageId};
use std::sync::atomic::Ordering;

/// The threads to wake after a turn, as bit masks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WakeSet {
    /// Threads that have new messages.
    pub(super) messages: u64,
    /// Threads whose stages have new room in a queue.
    pub(super) room: u64,
}

/// A stage and its queues.
pub(super) struct Node<S: Stage> {
    id: usize,
    stage: S,
    /// By sender.
    incoming: Vec<QueueReceiver<S::Message>>,
    /// By receiver.
    outgoing: Vec<QueueSender<S::Message>>,
    /// The downstream receivers, as a bit mask.
    down: u64,
    /// The receivers for which there is a backlog, as a bit mask.
    backlog: u64,
    /// The sender whose queue is read first (round robin).
    next_sender: u32,
    counters: StageCounters,
}

/// The bit mask of one number.
const fn set_of(number: usize) -> u64 {
    1 << number
}

/// The numbers in the bit mask `set`, smallest first.
fn members(mut set: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let smallest = (set != 0).then(|| set.trailing_zeros() as usize)?;
        set &= set - 1;
        Some(smallest)
    })
}

impl<S: Stage> Node<S> {
    /// A node for each of `stages`, connected by queues of `queue_messages` messages.
    pub(super) fn all(stages: Vec<S>, topology: &Topology, queue_messages: usize) -> Vec<Self> {
        let count = stages.len();
        let mut incoming: Vec<Vec<_>> = (0..count).map(|_| Vec::with_capacity(count)).collect();
        let mut outgoing: Vec<Vec<_>> = (0..count).map(|_| Vec::with_capacity(count)).collect();
        for sends in &mut outgoing {
            for receives in &mut incoming {
                let (sender, receiver) = bounded_queue(queue_messages);
                sends.push(sender);
                receives.push(receiver);
            }
        }
        let queues = incoming.into_iter().zip(outgoing);
        let node = |(id, (stage, (incoming, outgoing))): (usize, (S, _))| {
            let down = (0..count).filter(|to| topology.rank[*to] > topology.rank[id]).map(set_of).sum();
            let counters = StageCounters::new(stage.name());
            Self { id, stage, incoming, outgoing, down, backlog: 0, next_sender: 0, counters }
        };
        stages.into_iter().zip(queues).enumerate().map(node).collect()
    }

    /// Whether a message for a downstream stage waits for room, so that the stage must not be called.
    const fn is_blocked(&self) -> bool {
        self.backlog & self.down != 0
    }

    /// Whether any message waits for room.
    pub(super) const fn has_backlog(&self) -> bool {
        self.backlog != 0
    }

    /// When its timer is due; `None` if it has none, or the stage is blocked.
    pub(super) fn deadline(&self) -> Option<Instant> {
        if self.is_blocked() { None } else { self.stage.poll_timeout() }
    }

    /// Whether a turn would now do something, apart from timers.
    pub(super) fn has_work(&self, topology: &Topology) -> bool {
        let flushes = members(self.backlog).any(|to| self.outgoing[to].has_room());
        let senders = topology.senders[self.id].load(Ordering::Relaxed);
        flushes || !self.is_blocked() && members(senders).any(|from| !self.incoming[from].is_empty())
    }

    /// One turn: sends the backlog, then calls the stage for its timer and for messages alternately, up to the limit. `None` if there
    /// was nothing to do.
    pub(super) fn turn(
        &mut self,
        now: Instant,
        topology: &Topology,
        options: &StagedOptions,
        out: &mut Vec<(StageId, S::Message)>,
    ) -> Result<Option<WakeSet>, StagedError> {
        let mut wake_set = WakeSet::default();
        let mut worked = self.backlog != 0 && self.flush(topology, &mut wake_set);
        if self.is_blocked() {
            return Ok(worked.then_some(wake_set));
        }
        for _ in 0..options.turn_messages.max(1) {
            let called = self.handle_timer(now, topology, options, out, &mut wake_set)?
                | self.handle_message(now, topology, options, out, &mut wake_set)?;
            if !called {
                break;
            }
            worked = true;
        }
        Ok(worked.then_some(wake_set))
    }

    /// Calls the stage for its timer if that is due. Returns whether it was called.
    #[inline]
    fn handle_timer(
        &mut self,
        now: Instant,
        topology: &Topology,
        options: &StagedOptions,
        out: &mut Vec<(StageId, S::Message)>,
        wake_set: &mut WakeSet,
    ) -> Result<bool, StagedError> {
        if self.is_blocked() || self.stage.poll_timeout().is_none_or(|at| at > now) {
            return Ok(false);
        }
        self.counters.timeouts += 1;
        self.stage.handle_timeout(now, out);
        self.forward(topology, options, out, wake_set)?;
        Ok(true)
    }

    /// Calls the stage with a message if there is one. Returns whether it was called.
    #[inline]
    fn handle_message(
        &mut self,
        now: Instant,
        topology: &Topology,
        options: &StagedOptions,
        out: &mut Vec<(StageId, S::Message)>,
        wake_set: &mut WakeSet,
    ) -> Result<bool, StagedError> {
        if self.is_blocked() {
            return Ok(false);
        }
        let Some((from, message)) = self.take(topology) else {
            return Ok(false);
        };
        self.counters.messages += 1;
        wake_set.room |= set_of(topology.thread_of[from]);
        self.stage.handle(now, message, out);
        self.forward(topology, options, out, wake_set)?;
        Ok(true)
    }

    /// The next message; the senders are served round robin.
    #[inline]
    fn take(&mut self, topology: &Topology) -> Option<(usize, S::Message)> {
        let senders = topology.senders[self.id].load(Ordering::Relaxed);
        let mut left = senders.rotate_right(self.next_sender);
        while left != 0 {
            let from = (left.trailing_zeros() + self.next_sender) % u64::BITS;
            if let Ok(message) = self.incoming[from as usize].pop() {
                self.next_sender = (from + 1) % u64::BITS;
                return Some((from as usize, message));
            }
            left &= left - 1;
        }
        None
    }

    /// Sends the messages that the stage has returned.
    #[inline]
    fn forward(
        &mut self,
        topology: &Topology,
        options: &StagedOptions,
        out: &mut Vec<(StageId, S::Message)>,
        wake_set: &mut WakeSet,
    ) -> Result<(), StagedError> {
        for (StageId(to), message) in out.drain(..) {
            let Some(queue) = self.outgoing.get_mut(to) else {
                return Err(StagedError::NoSuchStage { from: self.counters.name, to });
            };
            self.counters.sent += 1;
            if queue.send(message) {
                if !queue.announced {
                    queue.announced = true;
                    topology.senders[to].fetch_or(set_of(self.id), Ordering::Release);
                }
                wake_set.messages |= set_of(topology.thread_of[to]);
                // Why here too: a parked thread then need not wait for the end of a long turn. A wake-up that is missed here, for
                // want of a fence, is given at the end of the turn.
                topology.parkers[topology.thread_of[to]].wake();
                continue;
            }
            let waiting = queue.waiting();
            self.counters.backlog_max = self.counters.backlog_max.max(waiting);
            if self.down & set_of(to) != 0 {
                self.counters.stalls += u64::from(self.backlog & self.down == 0);
            } else if waiting > options.backlog_max {
                return Err(StagedError::Backlog { from: self.counters.name, to, backlog_max: options.backlog_max });
            }
            self.backlog |= set_of(to);
        }
        Ok(())
    }

    /// Sends as much of the backlog as there is room for. Returns whether anything was sent.
    fn flush(&mut self, topology: &Topology, wake_set: &mut WakeSet) -> bool {
        let before = wake_set.messages;
        for to in members(self.backlog) {
            let queue = &mut self.outgoing[to];
            if queue.flush() > 0 {
                wake_set.messages |= set_of(topology.thread_of[to]);
            }
            if queue.waiting() == 0 {
                self.backlog &= !set_of(to);
            }
        }
        wake_set.messages != before
    }

    /// Adds to the time of its turns.
    pub(super) fn add_busy(&mut self, span: segstream_base::Duration) {
        self.counters.busy += span;
    }

    /// Its name.
    pub(super) const fn name(&self) -> &'static str {
        self.counters.name
    }

    /// The number of the stage, the stage and its counters.
    pub(super) fn leave(self) -> (usize, S, StageCounters) {
        (self.id, self.stage, self.counters)
    }
}
