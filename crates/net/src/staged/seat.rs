//! A stage in its place: where its messages come from, where they go, and what waits for room.
//!
//! Called by `worker`, turn by turn.
//!
//! Invariant: while a message down the flow waits for room the stage is not called. Messages of one pair of stages
//! keep their order.

use super::error::StagedError;
use super::lane::{LaneIn, LaneOut, lane};
use super::options::StagedOptions;
use super::report::StageCounters;
use super::worker::Places;
use segstream_base::Instant;
use segstream_base::stage::{Stage, StageId};
use std::sync::atomic::Ordering;

/// The threads a turn concerns, as sets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Touched {
    /// Have messages that they did not have.
    pub(super) messages: u64,
    /// Have room that they did not have.
    pub(super) room: u64,
}

/// A stage in its place.
pub(super) struct Seat<S: Stage> {
    id: usize,
    stage: S,
    /// By sender.
    incoming: Vec<LaneOut<S::Message>>,
    /// By receiver.
    outgoing: Vec<LaneIn<S::Message>>,
    /// The receivers down the flow.
    down: u64,
    /// The receivers for which something waits here.
    holding: u64,
    /// The sender that is looked at first.
    next_sender: u32,
    counters: StageCounters,
}

/// The set of one.
const fn only(number: usize) -> u64 {
    1 << number
}

/// The members of `set`, from the smallest.
fn members(mut set: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let smallest = (set != 0).then(|| set.trailing_zeros() as usize)?;
        set &= set - 1;
        Some(smallest)
    })
}

impl<S: Stage> Seat<S> {
    /// A seat for each of `stages`, joined by lanes of `queue_messages` places.
    pub(super) fn all(stages: Vec<S>, places: &Places, queue_messages: usize) -> Vec<Self> {
        let count = stages.len();
        let mut incoming: Vec<Vec<_>> = (0..count).map(|_| Vec::with_capacity(count)).collect();
        let mut outgoing: Vec<Vec<_>> = (0..count).map(|_| Vec::with_capacity(count)).collect();
        for sends in &mut outgoing {
            for receives in &mut incoming {
                let (sender, receiver) = lane(queue_messages);
                sends.push(sender);
                receives.push(receiver);
            }
        }
        let lanes = incoming.into_iter().zip(outgoing);
        let seat = |(id, (stage, (incoming, outgoing))): (usize, (S, _))| {
            let down = (0..count).filter(|to| places.rank[*to] > places.rank[id]).map(only).sum();
            let counters = StageCounters::new(stage.name());
            Self { id, stage, incoming, outgoing, down, holding: 0, next_sender: 0, counters }
        };
        stages.into_iter().zip(lanes).enumerate().map(seat).collect()
    }

    /// Whether something down the flow waits, so that the stage is not called.
    const fn is_held(&self) -> bool {
        self.holding & self.down != 0
    }

    /// Whether anything waits for room.
    pub(super) const fn is_holding(&self) -> bool {
        self.holding != 0
    }

    /// When its timer is due; `None` when nothing is, or the stage is held.
    pub(super) fn deadline(&self) -> Option<Instant> {
        if self.is_held() { None } else { self.stage.poll_timeout() }
    }

    /// Whether a turn at this moment would do something, timers apart.
    pub(super) fn could_work(&self, places: &Places) -> bool {
        let flushes = members(self.holding).any(|to| self.outgoing[to].has_room());
        let senders = places.senders[self.id].load(Ordering::Relaxed);
        flushes || !self.is_held() && members(senders).any(|from| !self.incoming[from].is_empty())
    }

    /// One turn: what waits is sent, then the timer and the messages have their calls in turns, up to the limit. `None` when there was nothing to do.
    pub(super) fn turn(
        &mut self,
        now: Instant,
        places: &Places,
        options: &StagedOptions,
        out: &mut Vec<(StageId, S::Message)>,
    ) -> Result<Option<Touched>, StagedError> {
        let mut touched = Touched::default();
        let mut worked = self.holding != 0 && self.flush(places, &mut touched);
        if self.is_held() {
            return Ok(worked.then_some(touched));
        }
        for _ in 0..options.turn_messages.max(1) {
            let called =
                self.time_out(now, places, options, out, &mut touched)? | self.take_one(now, places, options, out, &mut touched)?;
            if !called {
                break;
            }
            worked = true;
        }
        Ok(worked.then_some(touched))
    }

    /// Calls the stage for its timer, if that is due. Returns whether it did.
    #[inline]
    fn time_out(
        &mut self,
        now: Instant,
        places: &Places,
        options: &StagedOptions,
        out: &mut Vec<(StageId, S::Message)>,
        touched: &mut Touched,
    ) -> Result<bool, StagedError> {
        if self.is_held() || self.stage.poll_timeout().is_none_or(|at| at > now) {
            return Ok(false);
        }
        self.counters.timeouts += 1;
        self.stage.handle_timeout(now, out);
        self.hand_on(places, options, out, touched)?;
        Ok(true)
    }

    /// Calls the stage with a message, if there is one. Returns whether it did.
    #[inline]
    fn take_one(
        &mut self,
        now: Instant,
        places: &Places,
        options: &StagedOptions,
        out: &mut Vec<(StageId, S::Message)>,
        touched: &mut Touched,
    ) -> Result<bool, StagedError> {
        if self.is_held() {
            return Ok(false);
        }
        let Some((from, message)) = self.take(places) else {
            return Ok(false);
        };
        self.counters.messages += 1;
        touched.room |= only(places.thread_of[from]);
        self.stage.handle(now, message, out);
        self.hand_on(places, options, out, touched)?;
        Ok(true)
    }

    /// The next message: of one sender after the other.
    #[inline]
    fn take(&mut self, places: &Places) -> Option<(usize, S::Message)> {
        let senders = places.senders[self.id].load(Ordering::Relaxed);
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

    /// Sends what the stage had to say.
    #[inline]
    fn hand_on(
        &mut self,
        places: &Places,
        options: &StagedOptions,
        out: &mut Vec<(StageId, S::Message)>,
        touched: &mut Touched,
    ) -> Result<(), StagedError> {
        for (StageId(to), message) in out.drain(..) {
            let Some(lane) = self.outgoing.get_mut(to) else {
                return Err(StagedError::NoSuchStage { from: self.counters.name, to });
            };
            self.counters.sent += 1;
            if lane.send(message) {
                if !lane.announced {
                    lane.announced = true;
                    places.senders[to].fetch_or(only(self.id), Ordering::Release);
                }
                touched.messages |= only(places.thread_of[to]);
                // Why here too: a sleeper need not wait for the end of a long turn. What this look misses, the end
                // of the turn does not.
                places.sleepers[places.thread_of[to]].wake();
                continue;
            }
            let waiting = lane.waiting();
            self.counters.held_back_max = self.counters.held_back_max.max(waiting);
            if self.down & only(to) != 0 {
                self.counters.stalls += u64::from(self.holding & self.down == 0);
            } else if waiting > options.held_back_max {
                return Err(StagedError::HeldBack { from: self.counters.name, to, held_back_max: options.held_back_max });
            }
            self.holding |= only(to);
        }
        Ok(())
    }

    /// Sends what waits and finds room. Returns whether anything did.
    fn flush(&mut self, places: &Places, touched: &mut Touched) -> bool {
        let before = touched.messages;
        for to in members(self.holding) {
            let lane = &mut self.outgoing[to];
            if lane.flush() > 0 {
                touched.messages |= only(places.thread_of[to]);
            }
            if lane.waiting() == 0 {
                self.holding &= !only(to);
            }
        }
        touched.messages != before
    }

    /// Adds to the time its turns took.
    pub(super) fn add_busy(&mut self, span: segstream_base::Duration) {
        self.counters.busy += span;
    }

    /// Its name.
    pub(super) const fn name(&self) -> &'static str {
        self.counters.name
    }

    /// The stage, its place and its counters.
    pub(super) fn leave(self) -> (usize, S, StageCounters) {
        (self.id, self.stage, self.counters)
    }
}
