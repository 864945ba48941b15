//! A drain: sending at a fraction of the rate for a moment, so that everyone sees the base delay, and so that the answer
//! of the queue tells how much of the bottleneck is ours.
//!
//! Called by delay mode and competitive mode. With capacity C, own rate S and others' X, `rho = (S + X) / C` while a
//! queue stands (HT 3.5). When S falls by D, rho falls by D / C: so C is D over the fall of rho, as long as others have
//! not noticed, which takes them a round trip.
//!
//! Invariant: only exchanges that left within the drain and met a queue are counted.

use super::readings::View;
use segstream_base::{Duration, Instant};

/// The fraction sent at: little enough to drain, enough for the spacing of states to mean something.
pub(super) const DRAIN_RATE: f64 = 0.3;
/// A smaller fall of rho may be others' doing (BBR varies its rate by a quarter).
const FALL_LEAST: f64 = 0.2;
/// A queue shorter than this may be gone before the next state arrives.
const QUEUE_LEAST: f64 = 0.002;

/// A drain under way, or gone by and waiting for its echoes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drain {
    since: Instant,
    until: Instant,
    /// What was sent a second, and the traffic intensity, before it.
    sent_before: f64,
    rho_before: f64,
    /// Sums over the exchanges of the drain.
    alpha: f64,
    beta: f64,
    sent: f64,
    /// The shortest queue seen since.
    pub(super) least: f64,
}

impl Drain {
    /// A drain that begins now and lasts `span` seconds.
    pub(super) fn new(view: &View, span: f64) -> Self {
        Self {
            since: view.now,
            until: view.now + Duration::from_secs_f64(span),
            // Why: not the rate sent at, of which a full queue has dropped a part.
            sent_before: view.received * view.rho,
            rho_before: view.rho,
            alpha: 0.0,
            beta: 0.0,
            sent: 0.0,
            least: view.queue,
        }
    }

    /// Whether less is to be sent now.
    pub(super) fn is_sending_less(&self, now: Instant) -> bool {
        now < self.until
    }

    /// Whether all echoes of it have come.
    pub(super) fn is_over(&self, view: &View) -> bool {
        view.sent_at > self.until + Duration::from_secs_f64(view.tau / 4.0)
    }

    /// Takes an exchange in.
    pub(super) fn record(&mut self, view: &View) {
        let from = view.sent_at - Duration::from_secs_f64(view.alpha);
        self.least = self.least.min(view.newest);
        if from >= self.since && view.sent_at <= self.until && view.newest > QUEUE_LEAST {
            self.alpha += view.alpha;
            self.beta += view.beta;
            self.sent += view.bytes;
        }
    }

    /// By how much rho fell, if the queue stood long enough to tell.
    pub(super) fn fall(&self, view: &View) -> Option<f64> {
        (self.alpha >= view.tau / 4.0).then(|| self.rho_before - self.beta / self.alpha)
    }

    /// The capacity of the bottleneck in bytes a second, if rho fell by enough to tell.
    pub(super) fn capacity(&self, view: &View) -> Option<f64> {
        let fall = self.fall(view).filter(|fall| *fall > FALL_LEAST)?;
        let capacity = (self.sent_before - self.sent / self.alpha) / fall;
        (capacity > 0.0).then_some(capacity.max(0.9 * self.sent_before))
    }

    /// Whether the drain says that nobody else uses the bottleneck.
    pub(super) fn is_alone(&self, view: &View) -> bool {
        self.capacity(view).is_some_and(|capacity| self.sent_before > 0.8 * capacity)
    }
}
