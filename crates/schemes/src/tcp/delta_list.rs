//! The timers of all packets in one list, by the time at which they run out: a delta list (Comer and Stevens 1991).
//!
//! Called by the sender for every packet it sends and for every one that is acknowledged.
//!
//! Each timer keeps how long after the one before it it runs out, so a clock need only look at the first. The price is
//! that the list is searched from its head whenever a timer is set or cleared (HT 4): how far is counted.
//!
//! Invariant: a timer is in the list at most once; [`Operations`] say what a search from the head would have passed.

use segstream_base::halves::Operations;
use segstream_base::{Duration, Instant};

const NONE: u32 = u32::MAX;
/// What the delta of the first timer counts from.
const START: Instant = Instant::ZERO;

/// A timer of the list.
#[derive(Clone, Copy, Debug)]
struct Timer {
    next: u32,
    delta: Duration,
}

/// Timers by the time at which they run out.
#[derive(Clone, Debug)]
pub(super) struct DeltaList {
    timers: Vec<Timer>,
    head: u32,
    tail: u32,
    /// When the last one runs out.
    last_at: Instant,
    running: u64,
    operations: Operations,
}

impl DeltaList {
    /// An empty list for timers numbered from 0 to `count`, that one excluded.
    pub(super) fn new(count: u32) -> Self {
        Self {
            timers: vec![Timer { next: NONE, delta: Duration::ZERO }; count as usize],
            head: NONE,
            tail: NONE,
            last_at: Instant::ZERO,
            running: 0,
            operations: Operations::default(),
        }
    }

    /// When the first timer runs out.
    #[inline]
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.get(self.head).map(|timer| START + timer.delta)
    }

    /// How many timers run.
    pub(super) const fn running(&self) -> u64 {
        self.running
    }

    /// What the list has cost so far.
    #[inline]
    pub(super) const fn operations(&self) -> Operations {
        self.operations
    }

    /// Sets `timer`, which does not run, to run out at `at`: behind those that do so at the same time.
    #[inline]
    pub(super) fn set(&mut self, timer: u32, at: Instant) {
        self.operations.timer_operations += 1;
        // Why not walked: who runs out last has passed all others, which is the usual case of a new packet.
        let (before, before_at, passed) =
            if at >= self.last_at { (self.tail, self.last_at, self.running) } else { self.last_not_after(at) };
        self.operations.timers_passed += passed;
        let (before_at, next) = match self.get(before) {
            Some(found) => (before_at, found.next),
            None => (START, self.head),
        };
        if let Some(place) = self.timers.get_mut(timer as usize) {
            *place = Timer { next, delta: at.since(before_at) };
            self.link(before, timer);
            match self.timers.get_mut(next as usize) {
                Some(next) => next.delta = (before_at + next.delta).since(at),
                None => (self.tail, self.last_at) = (timer, at),
            }
            self.running += 1;
        }
    }

    /// Clears `timer`; nothing happens but the search when it does not run.
    #[inline]
    pub(super) fn clear(&mut self, timer: u32) {
        self.operations.timer_operations += 1;
        let (mut before, mut before_at, mut at) = (NONE, START, self.head);
        while let Some(here) = self.get(at) {
            if at == timer {
                self.unlink(before, before_at, here);
                return;
            }
            self.operations.timers_passed += 1;
            (before, before_at, at) = (at, before_at + here.delta, here.next);
        }
    }

    /// Takes the first timer off the list if it has run out by `now`.
    #[inline]
    pub(super) fn pop_expired(&mut self, now: Instant) -> Option<u32> {
        let (timer, here) = (self.head, self.get(self.head)?);
        let at = START + here.delta;
        if at > now {
            return None;
        }
        self.operations.timer_operations += 1;
        self.unlink(NONE, START, here);
        Some(timer)
    }

    /// The last timer that runs out at `at` or before, when it does so, and how many a search from the head passes.
    fn last_not_after(&self, at: Instant) -> (u32, Instant, u64) {
        let (mut before, mut before_at, mut next, mut passed) = (NONE, START, self.head, 0);
        while let Some(timer) = self.get(next)
            && before_at + timer.delta <= at
        {
            (before, before_at, next) = (next, before_at + timer.delta, timer.next);
            passed += 1;
        }
        (before, before_at, passed)
    }

    /// Takes `here` off the list, which follows `before`, the timer that runs out at `before_at`.
    fn unlink(&mut self, before: u32, before_at: Instant, here: Timer) {
        self.link(before, here.next);
        match self.timers.get_mut(here.next as usize) {
            Some(next) => next.delta += here.delta,
            None => (self.tail, self.last_at) = (before, before_at),
        }
        self.running -= 1;
    }

    fn link(&mut self, before: u32, next: u32) {
        match self.timers.get_mut(before as usize) {
            Some(before) => before.next = next,
            None => self.head = next,
        }
    }

    #[inline]
    fn get(&self, timer: u32) -> Option<Timer> {
        self.timers.get(timer as usize).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn a_new_timer_passes_the_whole_list_and_the_oldest_none() {
        let mut list = DeltaList::new(10);
        for timer in 0..10 {
            list.set(timer, at(100 + u64::from(timer)));
        }
        assert_eq!(list.operations(), Operations { timer_operations: 10, timers_passed: 45, slots_searched: 0 });
        list.clear(0);
        assert_eq!(list.operations().timers_passed, 45, "the oldest is the first");
        list.clear(9);
        assert_eq!(list.operations().timers_passed, 53, "the youngest is behind the eight others");
        assert_eq!((list.next_at(), list.running()), (Some(at(101)), 8));
    }

    proptest! {
        /// Against a plain sorted vector that is searched step by step.
        #[test]
        fn the_list_is_a_sorted_one_and_counts_what_a_search_passes(steps in prop::collection::vec((0u32..12, 0u64..60, 0u8..4), 1..200)) {
            let mut list = DeltaList::new(12);
            let mut model: Vec<(u64, u32)> = Vec::new();
            let (mut now, mut operations, mut passed) = (0, 0, 0);
            for (timer, wait, what) in steps {
                let place = model.iter().position(|entry| entry.1 == timer);
                match (what, place) {
                    (0 | 1, None) => {
                        let place = model.iter().position(|entry| entry.0 > now + wait).unwrap_or(model.len());
                        model.insert(place, (now + wait, timer));
                        list.set(timer, at(now + wait));
                        (operations, passed) = (operations + 1, passed + place as u64);
                    }
                    (2, Some(place)) => {
                        model.remove(place);
                        list.clear(timer);
                        (operations, passed) = (operations + 1, passed + place as u64);
                    }
                    (3, _) => {
                        now += wait / 4;
                        while let Some(expired) = list.pop_expired(at(now)) {
                            prop_assert_eq!(expired, model.remove(0).1);
                            operations += 1;
                        }
                        prop_assert!(model.first().is_none_or(|first| first.0 > now));
                    }
                    _ => {}
                }
                prop_assert_eq!(list.next_at(), model.first().map(|first| at(first.0)));
                prop_assert_eq!(list.running(), model.len() as u64);
                let counted = Operations { timer_operations: operations, timers_passed: passed, slots_searched: 0 };
                prop_assert_eq!(list.operations(), counted);
            }
        }
    }
}
