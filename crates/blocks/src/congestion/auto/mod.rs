//! `auto`: a rate from exchanges of state, which keeps queues short and holds its own beside those that do not.
//!
//! Called through [`Controller`] by the sender of a protocol that sends small state packets every alpha and learns from their
//! echoes how far apart they arrived. Source: HT 3.5 (PTIF), made safe on shared networks. `rho = beta / alpha` sees a queue grow, not
//! stand: rho - 1 is the overload of the whole bottleneck, whatever our part in it. So the one-way delay above its minimum
//! tells what stands, and drains it; marks and loss are a backstop.
//!
//! ```text
//!            queue, loss              a queue that stands although we make way
//! start_up --------------> delay_mode -----------------------------------------> competitive
//!    ^                      |     ^  <-----------------------------------------
//!    | first echo      loss |     |         alone, or the queue has gone
//!    |    without a queue   v     | every 4 s, or the loss is ordinary
//!  outage <-- silence       policed <-- as much loss in start_up
//! ```
//!
//! - `law`: the target delay, which falls with the stream's own rate, and other numbers all share.
//! - `readings`: the filters, from exchanges to queue, rho, rate of service and loss; `base_delay`, `noise` (jitter) and `delivery_max`
//!   under it.
//! - `start_up`, `delay_mode`, `competitive` (with `cubic_window`), `policed`, `outage`: one mode a file; each
//!   answers an exchange with a rate and, when it is over, the next mode.
//! - `competing_flows`: when delay mode gives up; `drain`: how the queue is emptied and the capacity measured;
//!   `probe`: how a noisy path is asked for more; `memory`.
//!
//! Invariant: the rate lies between the floor and the peak of the bounds, whatever the exchanges say, and nothing is
//! allocated for an exchange once warm.
//!
//! Limit: beside jitter that keeps the order a queue of up to a round trip can stand, and some per cent are lost to it. Four streams
//! or more at 5 Mbit/s each or less can take each other's coming and going for noise.
//!
//! Limit: more than about ten streams that begin within seconds of each other, or several at some 100 kbit/s each, can
//! take each other for competition; the queue is then long. Streams above 900 Mbit/s at one bottleneck share it unevenly.
//! Beside several streams that yield to loss, one of these can take up to 45 % of the link.

mod base_delay;
mod competing_flows;
mod competitive;
mod cubic_window;
mod delay_mode;
mod delivery_max;
mod drain;
mod law;
mod memory;
mod noise;
mod outage;
mod policed;
mod probe;
mod readings;
mod start_up;

use super::{Algorithm, Bounds, Clock, Controller, Exchange, Silence, exchange_period};
use crate::rtt::Rtt;
use competitive::Competitive;
use delay_mode::DelayMode;
use memory::Memory;
use outage::Outage;
use policed::Policed;
use readings::{Context, Readings};
use segstream_base::halves::Probe;
use segstream_base::{Bandwidth, Bytes, Duration, Instant};
use start_up::StartUp;

/// The entry of the list.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "auto",
    about: "keeps queues short, and holds its own beside streams that fill them",
    offered: true,
    clock: Clock::Exchanges,
    heeds_marks: true,
    start: |start| Box::new(Auto::new(start.bounds, start.now)),
};

/// No round trip is shorter, in seconds; it is divided by.
const RTT_LEAST: f64 = 1e-5;

/// What the controller is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Growing by 70 % a round trip to find the capacity.
    StartUp,
    /// Holding a small queue.
    Delay,
    /// Holding its own against traffic that keeps the queue full.
    Competitive,
    /// At the rate that gets through a policer.
    Policed,
    /// Nothing comes back.
    Outage,
}

impl Phase {
    /// The name of the phase in printed output.
    const fn name(self) -> &'static str {
        match self {
            Self::StartUp => "start_up",
            Self::Delay => "delay",
            Self::Competitive => "competitive",
            Self::Policed => "policed",
            Self::Outage => "outage",
        }
    }
}

/// The mode in force, with its own state.
#[derive(Clone, Debug)]
enum Mode {
    StartUp(StartUp),
    // Why boxed: start-up has no state, and an outage little.
    Delay(Box<DelayMode>),
    // Why boxed: it is larger than the others, and rare.
    Competitive(Box<Competitive>),
    Policed(Policed),
    Outage(Outage),
}

/// The controller of one direction of one connection.
#[derive(Clone, Debug)]
pub struct Auto {
    bounds: Bounds,
    mode: Mode,
    readings: Readings,
    memory: Memory,
    rtt: Rtt,
    /// Bytes a second.
    rate: f64,
}

impl Auto {
    /// A controller that knows no round trip yet, at the smallest sensible rate.
    pub fn new(bounds: Bounds, now: Instant) -> Self {
        let mut new =
            Self { bounds, mode: Mode::StartUp(StartUp), readings: Readings::new(), memory: Memory::default(), rtt: Rtt::new(), rate: 0.0 };
        new.set_rate(now, start_up::first_rate(new.datagram(), law::RTT_GUESSED));
        new
    }

    /// The rate to pace at.
    pub fn rate(&self) -> Bandwidth {
        Bandwidth::from_bits_per_second((self.rate * 8.0) as u64)
    }

    const fn mode(&self) -> Phase {
        match self.mode {
            Mode::StartUp(_) => Phase::StartUp,
            Mode::Delay(_) => Phase::Delay,
            Mode::Competitive(_) => Phase::Competitive,
            Mode::Policed(_) => Phase::Policed,
            Mode::Outage(_) => Phase::Outage,
        }
    }

    fn datagram(&self) -> f64 {
        self.bounds.datagram.get().max(1) as f64
    }

    fn set_rate(&mut self, now: Instant, rate: f64) {
        let floor = self.bounds.floor.bits_per_second().max(8) as f64 / 8.0;
        let peak = (self.bounds.peak.bits_per_second() as f64 / 8.0).max(floor);
        self.rate = if rate.is_finite() { rate.clamp(floor, peak) } else { floor };
        self.readings.note_rate(now, self.rate);
    }
}

impl Controller for Auto {
    fn set_bounds(&mut self, now: Instant, bounds: Bounds) {
        self.bounds = bounds;
        self.set_rate(now, self.rate);
    }

    fn on_round_trip(&mut self, now: Instant, rtt: Duration) {
        let first = self.rtt.latest().is_none();
        self.rtt.on_sample(now, rtt);
        if first {
            self.set_rate(now, start_up::first_rate(self.datagram(), rtt.as_secs_f64()));
        }
    }

    fn on_exchange(&mut self, now: Instant, exchange: &Exchange) {
        self.rtt.on_sample(now, exchange.rtt);
        let context = Context {
            rtt: self.rtt.min().unwrap_or(exchange.rtt).as_secs_f64().max(RTT_LEAST),
            rate: self.rate,
            datagram: self.datagram(),
            memory: &self.memory,
            hold_base: matches!(self.mode, Mode::Competitive(_)),
        };
        let Some(view) = self.readings.take(now, exchange, context) else { return };
        let least = law::least_rate(view.datagram, view.tau + view.queue);
        let (rate, next) = match &mut self.mode {
            Mode::StartUp(mode) => mode.step(&view, &mut self.memory),
            Mode::Delay(mode) => mode.step(&view, &mut self.memory),
            Mode::Competitive(mode) => mode.step(&view, &mut self.memory),
            Mode::Policed(mode) => mode.step(&view, &mut self.memory),
            Mode::Outage(mode) => {
                self.readings.forget_samples();
                mode.step(&view, &mut self.memory)
            }
        };
        if std::mem::take(&mut self.memory.path_is_longer) {
            self.readings.forget_base();
        }
        if let Some(next) = next {
            self.mode = next;
        }
        self.set_rate(now, rate.max(least));
    }

    fn on_silence(&mut self, now: Instant, silence: &Silence) {
        let patience = self.readings.patience(self.rtt.latest());
        if silence.unanswered < 2 || silence.since.as_secs_f64() < patience {
            return;
        }
        if !matches!(self.mode, Mode::Outage(_)) {
            self.mode = Mode::Outage(Outage::new(now, self.rate));
        }
        if let Mode::Outage(outage) = &mut self.mode {
            let rate = outage.on_silence(now, self.rate, patience, self.bounds.datagram.get().max(1) as f64);
            self.set_rate(now, rate);
        }
    }

    fn on_path_change(&mut self, now: Instant) {
        *self = Self::new(self.bounds, now);
    }

    fn pacing_rate(&self) -> Option<Bandwidth> {
        Some(self.rate())
    }

    /// Never the normal limit: the rate is.
    fn in_flight_cap(&self) -> Bytes {
        let rtt = self.rtt.smoothed().map_or(law::RTT_GUESSED, Duration::as_secs_f64);
        let span = 2.0 * rtt + 4.0 * self.exchange_period().as_secs_f64() + 0.01;
        Bytes::new((self.rate * span + 16.0 * self.datagram()) as u64)
    }

    fn exchange_period(&self) -> Duration {
        exchange_period(self.rtt.min(), self.datagram() / self.rate)
    }

    fn phase(&self) -> &'static str {
        self.mode().name()
    }

    /// Gauges: `rho`, `queue_ms`, `delivery_bps` and `phase` (0 start-up, 1 delay, 2 competitive, 3 policed, 4 outage).
    fn probe(&self, out: &mut dyn Probe) {
        out.gauge("rho", self.readings.rho());
        out.gauge("queue_ms", self.readings.queue() * 1e3);
        out.gauge("delivery_bps", self.readings.delivery() * 8.0);
        out.gauge("phase", f64::from(self.mode() as u8));
    }
}

#[cfg(test)]
mod tests;
