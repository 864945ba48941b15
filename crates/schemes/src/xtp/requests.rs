//! The sender's questions: each has a number, and WTIMER guards the last.
//!
//! Called by the sender. Source: XT 2. Numbers and their echo are XTP's SYNC and ECHO. The study does not say which CNTL
//! stops WTIMER; if any did, the answer to an older question would stop it and the loss of the last one would
//! never be noticed. So only the echo of the last question does.
//!
//! Invariant: while a question is open WTIMER runs or a CNTL that asks again waits to leave; numbers never fall.
//!
//! Limit: 2^32 - 1 questions have numbers of their own; those after them share the last.

use segstream_base::{Duration, Instant};
use std::collections::VecDeque;

/// How many questions are remembered: for one before these it is not known what had been sent when it was asked.
const REMEMBERED_MAX: usize = 64;

/// What an echo tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Heard {
    /// Everything below had been sent before the question was asked.
    pub(super) asked: u64,
    /// It ends a synchronising handshake.
    pub(super) ends_handshake: bool,
}

/// A question.
#[derive(Clone, Copy, Debug)]
struct Asked {
    number: u32,
    /// The sequence number behind all that had been sent.
    below: u64,
}

/// The questions, and WTIMER.
#[derive(Clone, Debug)]
pub(super) struct Requests {
    wait: Duration,
    /// The number of the last question.
    last: u32,
    /// The last question has not been answered.
    open: bool,
    /// It was asked by a CNTL.
    is_handshake: bool,
    /// A CNTL that asks waits to leave.
    due: bool,
    wtimer: Option<Instant>,
    remembered: VecDeque<Asked>,
    /// That of the highest echo.
    below: u64,
    handshakes: u64,
}

impl Requests {
    pub(super) fn new(wait: Duration) -> Self {
        Self {
            wait,
            last: 0,
            open: false,
            is_handshake: false,
            due: false,
            wtimer: None,
            remembered: VecDeque::new(),
            below: 0,
            handshakes: 0,
        }
    }

    /// The number of the last question, 0 when there was none.
    #[inline]
    pub(super) const fn last(&self) -> u32 {
        self.last
    }

    /// Whether a CNTL that asks waits to leave.
    #[inline]
    pub(super) const fn is_due(&self) -> bool {
        self.due
    }

    /// When WTIMER runs out.
    #[inline]
    pub(super) const fn wtimer(&self) -> Option<Instant> {
        self.wtimer
    }

    /// How many CNTL have asked, repetitions included.
    pub(super) const fn handshakes(&self) -> u64 {
        self.handshakes
    }

    /// A packet that leaves at `now` asks; everything below `below` has been sent with it. Its number.
    pub(super) fn ask(&mut self, now: Instant, below: u64) -> u32 {
        self.number(below);
        self.is_handshake = false;
        // Why: a CNTL that was to repeat the question before would now repeat this one, which has just left.
        self.due = false;
        self.wtimer = Some(now + self.wait);
        self.last
    }

    /// A CNTL that leaves at `now` asks. Its number, which is that of the pending handshake, if there is one.
    ///
    /// Why the same number: with one of its own for each try none would be the last when its answer comes, if WTIMER
    /// is shorter than the round trip.
    pub(super) fn ask_by_control(&mut self, now: Instant, below: u64) -> u32 {
        if !(self.open && self.is_handshake) {
            self.number(below);
        }
        self.is_handshake = true;
        self.due = false;
        self.handshakes += 1;
        self.wtimer = Some(now + self.wait);
        self.last
    }

    fn number(&mut self, below: u64) {
        self.last = self.last.saturating_add(1);
        self.open = true;
        if self.remembered.len() == REMEMBERED_MAX {
            self.remembered.pop_front();
        }
        self.remembered.push_back(Asked { number: self.last, below });
    }

    /// A CNTL has come with this echo, at most [`Requests::last`].
    pub(super) fn on_echo(&mut self, echo: u32) -> Heard {
        while let Some(asked) = self.remembered.front().filter(|asked| asked.number <= echo) {
            self.below = asked.below;
            self.remembered.pop_front();
        }
        let answered = self.open && echo == self.last;
        if answered {
            self.open = false;
            self.due = false;
            self.wtimer = None;
        }
        Heard { asked: self.below, ends_handshake: answered && self.is_handshake }
    }

    /// A CNTL that asks shall leave at once, as a question of its own.
    pub(super) fn want(&mut self) {
        self.is_handshake = false;
        self.due = true;
    }

    /// Whether the sender is stuck has been found out: WTIMER runs while it is, and no question is open.
    #[inline]
    pub(super) fn note_stuck(&mut self, now: Instant, stuck: bool) {
        if self.open || self.due {
            return;
        }
        if !stuck {
            self.wtimer = None;
        } else if self.wtimer.is_none() {
            self.wtimer = Some(now + self.wait);
        }
    }

    /// Time has passed.
    pub(super) fn on_time(&mut self, now: Instant) {
        if self.wtimer.take_if(|at| *at <= now).is_some() {
            self.due = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Duration = Duration::from_millis(10);

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn only_the_echo_of_the_last_question_stops_wtimer() {
        let mut requests = Requests::new(WAIT);
        assert_eq!((requests.ask(at(0), 100), requests.ask(at(3), 200)), (1, 2));
        assert_eq!(requests.on_echo(1), Heard { asked: 100, ends_handshake: false });
        assert_eq!((requests.open, requests.wtimer()), (true, Some(at(13))));
        assert_eq!(requests.on_echo(2), Heard { asked: 200, ends_handshake: false });
        assert_eq!((requests.open, requests.wtimer()), (false, None));
    }

    #[test]
    fn a_handshake_keeps_its_number_until_it_is_answered() {
        let mut requests = Requests::new(WAIT);
        requests.ask(at(0), 100);
        for (round, now) in [10, 20, 30].into_iter().enumerate() {
            requests.on_time(at(now - 1));
            assert!(!requests.is_due());
            requests.on_time(at(now));
            assert!(requests.is_due());
            assert_eq!(requests.ask_by_control(at(now), 100 + now), 2, "round {round}");
        }
        assert_eq!(requests.on_echo(2), Heard { asked: 110, ends_handshake: true });
        assert_eq!(requests.on_echo(2), Heard { asked: 110, ends_handshake: false }, "it ends once");
        requests.note_stuck(at(31), true);
        requests.on_time(at(41));
        assert_eq!(requests.ask_by_control(at(41), 300), 3);
    }

    #[test]
    fn wtimer_runs_while_the_sender_is_stuck_and_has_asked_nothing() {
        let mut requests = Requests::new(WAIT);
        requests.note_stuck(at(5), true);
        requests.note_stuck(at(7), true);
        assert_eq!(requests.wtimer(), Some(at(15)));
        requests.note_stuck(at(8), false);
        assert_eq!(requests.wtimer(), None);
        requests.ask(at(9), 0);
        requests.note_stuck(at(10), false);
        assert_eq!(requests.wtimer(), Some(at(19)), "that of the question runs on");
    }
}
