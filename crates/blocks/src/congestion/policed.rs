//! Policed mode: what is sent above some rate is lost, and no queue tells (a policer, or a queue of a few packets).
//!
//! Called by delay mode when much is lost without a queue. First a trial, at a little less than what arrived: if loss
//! goes away it was the rate, which is kept and probed every few seconds; if it stays it is ordinary (random), and no
//! reason to send less.
//!
//! Invariant: a trial ends after the echoes of two and a half control times.

use super::delay_mode::DelayMode;
use super::readings::View;
use super::{Memory, Mode};
use segstream_base::{Duration, Instant};

/// Loss without a queue, beyond one and a half times the ordinary, that is looked into.
const LOSS_MOST: f64 = 0.04;
/// What is sent of what arrived: room for the policer's bucket to fill.
const ADOPTED: f64 = 0.97;
/// How often more is tried; the loss of the trial then costs well below 1 %.
const PROBE_EVERY: Duration = Duration::from_secs(4);

/// Whether so much is lost without a queue that it must be looked into.
pub(super) fn is_suspicious(view: &View, memory: &Memory) -> bool {
    !view.limited && view.calm_loss_is_significant && view.calm_loss > LOSS_MOST + 1.5 * memory.ordinary_loss(view.now)
}

/// A trial, or its outcome.
#[derive(Clone, Copy, Debug)]
pub(super) struct Policed {
    rate: f64,
    since: Instant,
    /// The trial has shown that the rate was the cause.
    settled: bool,
    /// What was sent a second, and the loss, before the trial.
    sent_before: f64,
    loss_before: f64,
}

impl Policed {
    pub(super) fn new(view: &View) -> Self {
        // Why no more than was sent: what arrives at once, as after a pause of the receiver, is no rate.
        let rate = view.received.min(view.sent) * ADOPTED;
        Self { rate, since: view.now, settled: false, sent_before: view.sent, loss_before: view.calm_loss }
    }

    pub(super) fn step(&mut self, view: &View, memory: &mut Memory) -> (f64, Option<Mode>) {
        let to_delay = |rate| (rate, Some(Mode::Delay(DelayMode::new(rate, view.now))));
        if !self.settled && view.sent_at.since(self.since).as_secs_f64() > 2.5 * view.tau {
            if view.calm_loss > self.loss_before / 2.0 {
                let is_ordinary = memory.learn_ordinary_loss(view.now, view.calm_loss.max(self.loss_before));
                return to_delay(if is_ordinary { self.sent_before } else { self.rate });
            }
            self.settled = true;
        }
        if view.now.since(self.since) >= PROBE_EVERY || (self.settled && is_suspicious(view, memory)) {
            return to_delay(self.rate);
        }
        (self.rate, None)
    }
}
