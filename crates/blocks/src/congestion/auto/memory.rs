//! What survives a change of mode: what the path has once served, its ordinary loss, when competition was left, when a
//! policer was last seen.
//!
//! Called by every mode.
//!
//! Invariant: an ordinary loss is below 15 %, and forgotten after 30 s.

use super::law;
use super::queue_depth::QueueDepth;
use super::remembered::Remembered;
use super::source_rate::SourceRate;
use segstream_base::{Duration, Instant};

/// How long an ordinary loss is believed.
const LOSS_BELIEVED: Duration = Duration::from_secs(30);
/// From here on no loss is ordinary: to send on as if it were would be no service to anyone.
pub(super) const ORDINARY_MOST: f64 = 0.15;
/// What is forgotten of the best service in a second without new evidence.
const FORGET: f64 = 0.01;
/// The rate of service believed when none was seen, for the size of a datagram in time: 4 Mbit/s.
const MODEST: f64 = 500e3;
/// Up to so many targets a queue is short.
const SHORT: f64 = 4.0;

/// Knowledge about the path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Memory {
    /// What the source takes, where that is known in advance.
    pub(super) source: SourceRate,
    /// The highest rate of service seen in bytes a second, forgotten slowly.
    pub(super) service_most: f64,
    /// The base delay must be found anew.
    pub(super) path_is_longer: bool,
    /// The base delay is higher by so many seconds than was thought.
    pub(super) base_rises: Option<f64>,
    /// The delay fell by so many seconds without a queue as the cause.
    pub(super) fell: Option<f64>,
    /// What falls of the delay said of noise is not to be believed.
    pub(super) distrusts_falls: bool,
    /// When competition was last left.
    pub(super) left_at: Option<Instant>,
    /// When a policer was last seen.
    pub(super) policer_at: Option<Instant>,
    /// How often in turn it was found where it was.
    pub(super) policer_found: u32,
    /// How long the queue can be.
    pub(super) depth: QueueDepth,
    noted_at: Option<Instant>,
    loss: Remembered,
}

impl Memory {
    /// Nothing is known but the source.
    pub(super) fn new(source: SourceRate) -> Self {
        Self { source, ..Self::default() }
    }

    /// What we sent was served at this rate.
    pub(super) fn note_service(&mut self, now: Instant, service: f64) {
        let idle = self.noted_at.map_or(0.0, |at| now.since(at).as_secs_f64());
        self.noted_at = Some(now);
        self.service_most = (self.service_most * (1.0 - FORGET * idle.min(1.0))).max(service);
    }

    /// The queueing delay that delay mode holds at `rate`: less than a stream wants where a queue of a few times that overflows.
    ///
    /// Why not the least of the two: the target must still fall with the rate, or streams at one queue do not become equal.
    pub(super) fn target(&self, now: Instant, rate: f64, datagram: f64) -> f64 {
        let wanted = law::scaled(rate);
        let depth = self.depth.get(now).filter(|depth| *depth < SHORT * wanted);
        depth.map_or(wanted, |depth| wanted * depth / (wanted + depth)) + law::datagram_time(rate, datagram)
    }

    /// The time a datagram takes at the highest rate of service seen.
    pub(super) fn datagram_time(&self, datagram: f64) -> f64 {
        law::datagram_time(self.service_most.max(MODEST), datagram)
    }

    /// The fraction lost that does not depend on how much is sent.
    pub(super) fn ordinary_loss(&self, now: Instant) -> f64 {
        self.loss.get(now, LOSS_BELIEVED)
    }

    /// The loss from which on so much is `beyond` what is ordinary, which itself varies by half.
    pub(super) fn loss_beyond_ordinary(&self, now: Instant, beyond: f64) -> f64 {
        beyond + 1.5 * self.ordinary_loss(now)
    }

    /// Sending less has not lowered this loss; returns whether it counts as ordinary.
    pub(super) fn learn_ordinary_loss(&mut self, now: Instant, loss: f64) -> bool {
        let is_ordinary = loss < ORDINARY_MOST;
        if is_ordinary {
            self.loss.learn(now, loss);
        } else {
            self.loss.forget();
        }
        is_ordinary
    }
}
