//! PTIF, periodic traffic intensity feedback (HT 3.5): a process that spaces the packets by what the exchanges measure.
//!
//! Called as a [`Stage`] by Tx2's measurements. HT gives the signal, `rho = beta / alpha`, and no control law. Two are here.
//!
//! Invariant: the gap is never below the one that holds by RATE, nor above 65 ms.

use super::message::{Measured, Message};
use super::pipeline::Routes;
use core::fmt;
use core::str::FromStr;
use segstream_base::stage::{Stage, StageId};
use segstream_base::{Duration, Instant};
use segstream_blocks::TrafficIntensity;

/// The largest gap: what RATE could say.
const GAP_MAX_S: f64 = 65_535e-6;
/// [`Ptif::Held`]: the queue that is let alone, as a state packet waits for the data packet before it or not.
const QUEUE_PACKETS: f64 = 2.0;
/// [`Ptif::Held`]: what is kept of the queue from one exchange to the next, so that an error in it is forgotten.
const KEPT: f64 = 0.98;
/// [`Ptif::Held`]: the time in which a queue is drained.
const DRAIN_S: f64 = 25e-3;
/// [`Ptif::Held`]: by what part of the gap packets come closer in a second without a queue; 2 % in 5 ms.
const CLOSER_PER_S: f64 = 4.0;

/// Which law spaces the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Ptif {
    /// None: whatever RATE allows leaves.
    #[default]
    Off,
    /// `rho` smoothed with the weight 1/4; the gap times min(rho, 2) above 1.05, times 0.98 below 1.02.
    Literal,
    /// The queue estimated from all measurements so far, and the gap set from what the bottleneck serves: holds the
    /// throughput of a bottleneck at twice its load.
    Held,
}

impl Ptif {
    /// Every law, the default first.
    pub const ALL: [Self; 3] = [Self::Off, Self::Literal, Self::Held];

    /// The name: `off`, `literal` or `held`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Literal => "literal",
            Self::Held => "held",
        }
    }
}

impl fmt::Display for Ptif {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A text that names no law.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is no law of congestion avoidance; write off, literal or held")]
pub struct UnknownPtif(String);

impl FromStr for Ptif {
    type Err = UnknownPtif;

    fn from_str(text: &str) -> Result<Self, UnknownPtif> {
        Self::ALL.into_iter().find(|ptif| ptif.name() == text).ok_or_else(|| UnknownPtif(text.to_owned()))
    }
}

/// The congestion avoidance process.
#[derive(Clone, Debug)]
pub struct CongestionAvoidance {
    routes: Routes,
    law: Ptif,
    intensity: TrafficIntensity,
    /// Seconds; 0 before the first measurement.
    gap: f64,
    /// What waits at the bottleneck, in seconds of its time.
    queued: f64,
}

impl CongestionAvoidance {
    /// A process that has measured nothing.
    pub fn new(law: Ptif, routes: Routes) -> Self {
        let gain = if law == Ptif::Literal { 0.25 } else { 0.5 };
        Self { routes, law, intensity: TrafficIntensity::new(gain), gap: 0.0, queued: 0.0 }
    }

    /// The traffic intensity, smoothed.
    pub const fn rho(&self) -> f64 {
        self.intensity.smoothed()
    }

    fn on_measured(&mut self, measured: &Measured) -> Duration {
        let rho = self.intensity.on_exchange(measured.alpha, measured.beta, 1);
        if self.gap == 0.0 {
            self.gap = measured.gap.as_secs_f64();
        }
        match self.law {
            Ptif::Off => self.gap = 0.0,
            Ptif::Literal => self.literal(),
            Ptif::Held => self.held(measured, rho),
        }
        self.gap = self.gap.clamp(measured.floor.as_secs_f64(), GAP_MAX_S);
        Duration::from_secs_f64(self.gap)
    }

    fn literal(&mut self) {
        let rho = self.intensity.smoothed();
        if rho > 1.05 {
            self.gap *= rho.min(2.0);
        } else if rho < 1.02 {
            self.gap *= 0.98;
        }
    }

    /// `beta - alpha` is by how much the queue has grown, in time; added up, never below none, it is the queue. While there
    /// is one, the gap of the exchange that was measured, times `rho`, is the gap at which the bottleneck serves; packets
    /// come further apart than that, by as much as drains the queue. Without a queue they slowly come closer.
    ///
    /// Why not the gap in force: the measured exchange left a round trip ago, and a change since then would be made twice.
    fn held(&mut self, measured: &Measured, rho: f64) {
        let (alpha, beta) = (measured.alpha.as_secs_f64(), measured.beta.as_secs_f64());
        self.queued = (self.queued * KEPT + (beta - alpha) * measured.exchanges as f64).max(0.0);
        let smoothed = self.intensity.smoothed();
        if smoothed > 1.05 || self.queued > QUEUE_PACKETS * measured.gap.as_secs_f64() {
            let served = measured.gap.as_secs_f64() * rho.max(smoothed);
            self.gap = self.gap.max(served * (1.0 + self.queued / DRAIN_S));
        } else {
            self.gap *= 1.0 - (CLOSER_PER_S * alpha).min(0.1);
        }
    }
}

impl Stage for CongestionAvoidance {
    type Message = Message;

    fn name(&self) -> &'static str {
        "PTIF"
    }

    fn handle(&mut self, _now: Instant, message: Message, out: &mut Vec<(StageId, Message)>) {
        if let Message::Measured(measured) = message {
            let gap = self.on_measured(&measured);
            out.push((self.routes.tx1, Message::AvoidingGap(gap)));
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn handle_timeout(&mut self, _now: Instant, _out: &mut Vec<(StageId, Message)>) {}
}
