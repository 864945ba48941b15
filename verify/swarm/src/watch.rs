//! Passes every event to the checkers, the digest, the counts and the trace.
//!
//! Called by the swarm, its hosts and their applications. A *tap* may change, drop or repeat the events of the checkers: so a
//! test breaks something on purpose and sees whether they notice.
//!
//! Invariant: only the first failure is kept, and nothing is judged after it.

use crate::checker::{self, Checker};
use crate::event::Event;
use crate::tally::Tally;
use crate::trace::{Digest, Line, has_line};
use core::fmt;
use segstream_base::Instant;

/// What a test does to events before they reach the checkers.
pub type Tap = Box<dyn FnMut(Instant, Event) -> Vec<Event>>;

/// Takes the lines of a trace.
pub type Trace = Box<dyn FnMut(&str)>;

/// What a checker has found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Which checker.
    pub checker: &'static str,
    /// When, in the swarm's time.
    pub at: Instant,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {} ({} ns): {}", self.checker, self.at, self.at.as_nanos(), self.what)
    }
}

/// Sees everything.
pub(crate) struct Watch {
    now: Instant,
    /// When the last verdict was told.
    told_at: Option<Instant>,
    checkers: Vec<Box<dyn Checker>>,
    digest: Digest,
    tally: Tally,
    tap: Option<Tap>,
    trace: Option<Trace>,
    failure: Option<Failure>,
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("now", &self.now).field("failure", &self.failure).finish_non_exhaustive()
    }
}

impl Watch {
    /// With every checker. `peaceful`: nothing happens in the run that excuses an end other than the graceful one.
    pub(crate) fn new(peaceful: bool, tap: Option<Tap>, trace: Option<Trace>) -> Self {
        Self {
            now: Instant::ZERO,
            told_at: None,
            checkers: checker::all(peaceful),
            digest: Digest::default(),
            tally: Tally::default(),
            tap,
            trace,
            failure: None,
        }
    }

    /// Checks only what holds whatever the peers of a host send.
    pub(crate) fn check_bounds_only(&mut self) {
        self.checkers = checker::of_bounds();
    }

    /// Time has come to `now`.
    pub(crate) fn step(&mut self, now: Instant) {
        self.now = now;
        self.tell(Event::Step);
    }

    /// When the last verdict was told.
    pub(crate) const fn told_at(&self) -> Option<Instant> {
        self.told_at
    }

    /// Something has happened.
    pub(crate) fn tell(&mut self, event: Event) {
        if self.failure.is_some() {
            return;
        }
        if matches!(event, Event::Told { .. }) {
            self.told_at = Some(self.now);
        }
        self.digest.add(self.now, &event);
        self.tally.count(&event);
        if let Some(trace) = &mut self.trace
            && has_line(&event)
        {
            trace(&format!("{} {}", self.now.as_nanos(), Line(&event)));
        }
        match &mut self.tap {
            None => self.check(&event),
            Some(tap) => tap(self.now, event).iter().for_each(|event| self.check(event)),
        }
    }

    /// A line for the trace only, so that a trace changes nothing.
    pub(crate) fn note(&mut self, what: String) {
        if self.failure.is_none()
            && let Some(trace) = &mut self.trace
        {
            trace(&format!("{} {}", self.now.as_nanos(), Line(&Event::Fault(what))));
        }
    }

    fn check(&mut self, event: &Event) {
        for checker in &mut self.checkers {
            if self.failure.is_none()
                && let Err(what) = checker.observe(self.now, event)
            {
                self.failure = Some(Failure { checker: checker.name(), at: self.now, what });
            }
        }
    }

    pub(crate) const fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    pub(crate) const fn is_traced(&self) -> bool {
        self.trace.is_some()
    }

    /// What was found, the digest and the tally.
    pub(crate) fn finish(self) -> (Option<Failure>, u64, Tally) {
        (self.failure, self.digest.value(), self.tally)
    }
}
