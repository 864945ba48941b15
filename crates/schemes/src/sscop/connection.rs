//! Set-up and release, as the side sees them that asks for both: BGN until a BGAK comes, END until an ENDAK comes.
//!
//! Called by the sender. A protocol error, and a peer that answers no polls, lead back to set-up: see
//! [`Connection::establish`].
//!
//! Q.2110 gives an attempt up after MaxCC PDUs without an answer and leaves it to the user of SSCOP whether to try again.
//! The user here has accepted segments that must arrive, so it does: the next attempt has the next N(SQ). An END it
//! repeats for as long as it is not answered.
//!
//! Invariant: one BGN or END leaves each Timer_CC while an answer is awaited, and none otherwise.
//!
//! Source: Q.2110 6 (states 1, 2, 4 and 10) and 7.3.

use super::Config;
use super::packet::Forward;
use segstream_base::Instant;
use segstream_base::endpoint::Deadline;

/// The states of Q.2110 that this side can be in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing was requested yet.
    Idle,
    /// BGN has left, or is about to.
    OutgoingConnection,
    /// Data transfer ready.
    Ready,
    /// END has left, or is about to.
    OutgoingDisconnection,
    /// Idle again, for good.
    Released,
}

/// The connection and what it takes to set it up and release it.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    state: State,
    /// VT(SQ): the N(SQ) of the newest attempt.
    vt_sq: u8,
    /// VT(CC): how often the present BGN or END has left.
    vt_cc: u32,
    /// Since when a BGN or an END is to leave.
    owed: Option<Instant>,
    /// When Timer_CC expires.
    timer_cc: Option<Instant>,
}

impl Connection {
    pub(super) const fn new() -> Self {
        Self { state: State::Idle, vt_sq: 0, vt_cc: 0, owed: None, timer_cc: None }
    }

    /// Whether it was never asked for.
    pub(super) fn is_idle(&self) -> bool {
        self.state == State::Idle
    }

    /// Whether data may be transferred.
    #[inline]
    pub(super) fn is_ready(&self) -> bool {
        self.state == State::Ready
    }

    /// Asks for the connection, or asks for it anew.
    pub(super) fn establish(&mut self, now: Instant) {
        self.vt_sq = self.vt_sq.wrapping_add(1);
        self.ask(now, State::OutgoingConnection);
    }

    /// Releases the connection.
    pub(super) fn release(&mut self, now: Instant) {
        self.ask(now, State::OutgoingDisconnection);
    }

    fn ask(&mut self, now: Instant, state: State) {
        (self.state, self.vt_cc, self.owed, self.timer_cc) = (state, 0, Some(now), None);
    }

    /// A BGAK has come. Returns whether it was awaited.
    pub(super) fn on_bgak(&mut self) -> bool {
        self.answered(State::OutgoingConnection, State::Ready)
    }

    /// An ENDAK has come.
    pub(super) fn on_endak(&mut self) {
        self.answered(State::OutgoingDisconnection, State::Released);
    }

    fn answered(&mut self, from: State, to: State) -> bool {
        let awaited = self.state == from;
        if awaited {
            (self.state, self.owed, self.timer_cc) = (to, None, None);
        }
        awaited
    }

    /// The BGN or END that is to leave.
    #[inline]
    pub(super) fn poll(&mut self, now: Instant, config: &Config) -> Option<Forward> {
        self.owed.take()?;
        self.vt_cc = self.vt_cc.saturating_add(1);
        self.timer_cc = Some(now + config.timer_cc);
        Some(match self.state {
            State::OutgoingDisconnection => Forward::End { by_sscop: false },
            // No SD travels back, so no credit is given.
            _ => Forward::Bgn { n_sq: self.vt_sq, n_mr: 0 },
        })
    }

    /// Lets Timer_CC ring if it is due.
    pub(super) fn on_time(&mut self, now: Instant, config: &Config) {
        if self.timer_cc.is_none_or(|at| at > now) {
            return;
        }
        self.timer_cc = None;
        if self.state == State::OutgoingConnection && self.vt_cc >= config.max_cc {
            self.establish(now);
        } else {
            self.owed = Some(now);
        }
    }

    /// When Timer_CC expires.
    #[inline]
    pub(super) fn timer(&self) -> Option<Deadline> {
        self.timer_cc.map(|at| Deadline { at, timer: "connection" })
    }

    /// Since when a BGN or an END waits to leave.
    #[inline]
    pub(super) fn waits(&self) -> Option<Deadline> {
        self.owed.map(|at| Deadline { at, timer: "connection" })
    }
}
