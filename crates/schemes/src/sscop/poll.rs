//! When a POLL is due: every Timer_POLL while data is in flight, seldom when nothing is.
//!
//! Called by the sender. Q.2110 has three phases, each with a timer of its own:
//!
//! - *active*: data is in flight or waits. A POLL leaves every Timer_POLL, and after MaxPD SDs if that is sooner.
//! - *transient*: the last POLL found nothing in flight and is not answered yet. One leaves every Timer_KEEP-ALIVE.
//! - *idle*: it is answered. The next leaves after Timer_IDLE.
//!
//! In the first two Timer_NO-RESPONSE runs from one STAT to the next; when it expires the peer counts as gone.
//!
//! A period lies between two POLLs: the timer is set when one leaves, not when it became due.
//!
//! Invariant: while the connection is ready one of the three timers runs or a POLL waits to leave. So whatever is lost,
//! the receiver is told N(S) again.
//!
//! Source: Q.2110 7.6 and 7.7.

use super::Config;
use segstream_base::endpoint::Deadline;
use segstream_base::{Duration, Instant};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// There is no connection.
    Stopped,
    Active,
    Transient,
    Idle,
}

/// The polls of a connection.
#[derive(Clone, Debug)]
pub(super) struct Polls {
    phase: Phase,
    /// When the timer of the phase expires.
    timer: Option<Instant>,
    /// When Timer_NO-RESPONSE expires.
    no_response: Option<Instant>,
    /// Since when a POLL is to leave.
    due: Option<Instant>,
    /// VT(PS): the number of the newest POLL.
    vt_ps: u64,
    /// VT(PA): the number of the newest POLL that was answered, at first 1.
    vt_pa: u64,
    /// VT(PD): SDs that have left since the newest POLL.
    vt_pd: u32,
}

impl Polls {
    pub(super) const fn new() -> Self {
        Self { phase: Phase::Stopped, timer: None, no_response: None, due: None, vt_ps: 0, vt_pa: 1, vt_pd: 0 }
    }

    #[inline]
    pub(super) const fn vt_ps(&self) -> u64 {
        self.vt_ps
    }

    pub(super) const fn vt_pa(&self) -> u64 {
        self.vt_pa
    }

    /// The connection is ready; `pending` says whether data is in flight or waits.
    pub(super) fn start(&mut self, now: Instant, config: &Config, pending: bool) {
        self.enter(now, config, pending);
        self.no_response = Some(now + config.timer_no_response);
        self.vt_pd = 0;
    }

    /// The connection is not ready any more. The numbers continue.
    pub(super) fn stop(&mut self) {
        (self.phase, self.timer, self.no_response, self.due) = (Phase::Stopped, None, None, None);
    }

    /// A POLL is wanted now.
    pub(super) fn ask(&mut self, now: Instant) {
        self.due.get_or_insert(now);
    }

    fn enter(&mut self, now: Instant, config: &Config, pending: bool) {
        let (phase, wait) = if pending { (Phase::Active, config.timer_poll) } else { (Phase::Transient, config.timer_keep_alive) };
        self.set(now, phase, wait);
    }

    fn set(&mut self, now: Instant, phase: Phase, wait: Duration) {
        (self.phase, self.timer) = (phase, Some(now + wait));
    }

    /// An SD leaves.
    #[inline]
    pub(super) fn on_sd(&mut self, now: Instant, config: &Config) {
        if self.phase != Phase::Active {
            if self.phase == Phase::Idle {
                self.no_response = Some(now + config.timer_no_response);
            }
            self.set(now, Phase::Active, config.timer_poll);
        }
        self.vt_pd = self.vt_pd.saturating_add(1);
        if config.max_pd.is_some_and(|max_pd| self.vt_pd >= max_pd) {
            self.ask(now);
        }
    }

    /// The number of the POLL that leaves, if one is due.
    #[inline]
    pub(super) fn take(&mut self, now: Instant, config: &Config, pending: bool) -> Option<u64> {
        self.due.take()?;
        if self.phase == Phase::Idle {
            self.no_response = Some(now + config.timer_no_response);
        }
        self.enter(now, config, pending);
        self.vt_ps += 1;
        self.vt_pd = 0;
        Some(self.vt_ps)
    }

    /// The POLL with the number `n_ps`, not before VT(PA) and not behind VT(PS), is answered.
    pub(super) fn on_stat(&mut self, now: Instant, config: &Config, n_ps: u64) {
        self.vt_pa = n_ps;
        match self.phase {
            Phase::Active => self.no_response = Some(now + config.timer_no_response),
            Phase::Transient => {
                self.set(now, Phase::Idle, config.timer_idle);
                self.no_response = None;
            }
            Phase::Idle | Phase::Stopped => {}
        }
    }

    /// Lets the timers expire that are due. Returns whether the peer counts as gone.
    pub(super) fn on_time(&mut self, now: Instant) -> bool {
        if self.no_response.is_some_and(|at| at <= now) {
            return true;
        }
        if self.timer.is_some_and(|at| at <= now) {
            self.timer = None;
            self.ask(now);
        }
        false
    }

    /// The timer that expires next.
    #[inline]
    pub(super) fn timer(&self) -> Option<Deadline> {
        let name = match self.phase {
            Phase::Active | Phase::Stopped => "poll",
            Phase::Transient => "keep-alive",
            Phase::Idle => "idle",
        };
        let no_response = self.no_response.map(|at| Deadline { at, timer: "no-response" });
        Deadline::earlier(self.timer.map(|at| Deadline { at, timer: name }), no_response)
    }

    /// Since when a POLL waits to leave.
    #[inline]
    pub(super) fn waits(&self) -> Option<Deadline> {
        self.due.map(|at| Deadline { at, timer: "poll" })
    }
}
