//! A thread of a staged run and its stages.
//!
//! Started by [`super::run`], one a thread.
//!
//! Invariant: a stage is called by its own thread alone. A worker that has nothing to do looks a limited number of
//! times, then sleeps until it is woken or a timer is due; it never waits for a lock.

use super::error::StagedError;
use super::options::StagedOptions;
use super::pinning;
use super::report::{Brought, Ended, ThreadCounters};
use super::seat::{Seat, Touched};
use super::stop::Stop;
use crate::clock::Clock;
use crate::sleeper::Sleeper;
use segstream_base::stage::{Stage, StageId};
use segstream_base::{Duration, Instant};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// The shortest sleep: less than this is spent looking, because the system would oversleep.
const SLEEP_MIN: Duration = Duration::from_micros(50);

/// What all threads of a run know.
pub(super) struct Places {
    /// By stage.
    pub(super) thread_of: Vec<usize>,
    /// The place of each stage in the flow.
    pub(super) rank: Vec<usize>,
    /// For each stage the set of those that have ever sent to it, so that only their lanes are looked at.
    pub(super) senders: Vec<AtomicU64>,
    /// By thread.
    pub(super) sleepers: Arc<[Sleeper]>,
}

/// A thread and its stages.
pub(super) struct Worker<'a, S: Stage> {
    thread: usize,
    seats: Vec<Seat<S>>,
    /// Index of the seat whose turn it is.
    current: usize,
    out: Vec<(StageId, S::Message)>,
    places: &'a Places,
    options: &'a StagedOptions,
    stop: &'a Stop,
    clock: Clock,
    /// Wall time spent asleep.
    slept: Duration,
}

impl<'a, S: Stage> Worker<'a, S> {
    pub(super) fn new(
        thread: usize,
        seats: Vec<Seat<S>>,
        places: &'a Places,
        options: &'a StagedOptions,
        stop: &'a Stop,
        clock: Clock,
    ) -> Self {
        Self { thread, seats, current: 0, out: Vec::new(), places, options, stop, clock, slept: Duration::ZERO }
    }

    /// Runs until the end of the run. Whatever ends it here ends it everywhere.
    pub(super) fn run(mut self) -> Result<Brought<S>, StagedError> {
        self.places.sleepers[self.thread].enter();
        let pinned = self.options.pin && pinning::pin(self.thread);
        let began = (self.clock.now(), processor_time());
        // Why unwind safe: after a panic the stages are dropped and not called again.
        let turned = catch_unwind(AssertUnwindSafe(|| self.turns()));
        self.stop.stop();
        let thread = ThreadCounters {
            awake: self.clock.now().since(began.0).saturating_sub(self.slept),
            processor: processor_time().zip(began.1).map(|(now, then)| now.saturating_sub(then)),
        };
        match turned {
            Ok(Ok(ended)) => Ok(Brought { stages: self.seats.into_iter().map(Seat::leave).collect(), thread, ended, pinned }),
            Ok(Err(error)) => Err(error),
            Err(thrown) => {
                Err(StagedError::Panicked { stage: self.seats.get(self.current).map_or("none", Seat::name), said: said(thrown.as_ref()) })
            }
        }
    }

    fn turns(&mut self) -> Result<Ended, StagedError> {
        let end = self.options.time_max.map_or(Instant::FAR_FUTURE, |span| Instant::ZERO + span);
        let mut now = self.clock.now();
        let mut looks = 0;
        while !self.stop.is_set() {
            if now >= end {
                return Ok(Ended::TimeMax);
            }
            let mut worked = false;
            for index in 0..self.seats.len() {
                self.current = index;
                let seat = &mut self.seats[index];
                if let Some(touched) = seat.turn(now, self.places, self.options, &mut self.out)? {
                    let after = self.clock.now();
                    seat.add_busy(after.since(now));
                    now = after;
                    worked = true;
                    self.wake(touched);
                }
            }
            if worked {
                looks = 0;
                continue;
            }
            looks += 1;
            if looks > self.options.looks {
                let before = self.clock.now();
                self.sleep(before, end);
                self.slept += self.clock.now().since(before);
            } else if looks > self.options.looks / 2 {
                // Why: the thread that is waited for may want this very processor.
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
            now = self.clock.now();
        }
        Ok(Ended::Stopped)
    }

    /// Wakes the threads a turn concerns.
    #[inline]
    fn wake(&self, touched: Touched) {
        let others = !(1u64 << self.thread);
        let (messages, room) = (touched.messages & others, touched.room & others);
        if messages | room == 0 {
            return;
        }
        fence(Ordering::SeqCst);
        for (thread, sleeper) in self.places.sleepers.iter().enumerate() {
            if messages >> thread & 1 != 0 {
                sleeper.wake();
            } else if room >> thread & 1 != 0 {
                sleeper.wake_for_room();
            }
        }
    }

    /// Sleeps until woken, until a timer is due, or until `end`.
    fn sleep(&self, now: Instant, end: Instant) {
        let deadline = self.seats.iter().filter_map(Seat::deadline).fold(end, Instant::min);
        let left = deadline.since(now);
        if left < SLEEP_MIN {
            return;
        }
        let at_most = (deadline != Instant::FAR_FUTURE).then(|| left.into());
        let held = self.seats.iter().any(Seat::is_holding);
        let look_again = || self.stop.is_set() || self.seats.iter().any(|seat| seat.could_work(self.places));
        self.places.sleepers[self.thread].sleep(held, at_most, look_again);
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

/// What a panic said.
fn said(thrown: &(dyn Any + Send)) -> String {
    let text = thrown.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| thrown.downcast_ref::<String>().cloned()).unwrap_or_else(|| "nothing that can be read".to_owned())
}
