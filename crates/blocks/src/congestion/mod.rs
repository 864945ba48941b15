//! The congestion controller: what rate a sender may pace at, told by its exchanges of state.
//!
//! Called by the sender of a protocol that sends small state packets every alpha and learns from their echoes how far
//! apart they arrived. Source: HT 3.5 (PTIF), made safe on shared networks. `rho = beta / alpha` sees a queue grow, not
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
//! - `readings`: the filters, from exchanges to queue, rho, rate of service and loss; `base_delay` under it.
//! - `start_up`, `delay_mode`, `competitive` (with `cubic_window`), `policed`, `outage`: one mode a file; each
//!   answers an exchange with a rate and, when it is over, the next mode.
//! - `company`: when delay mode gives up; `drain`: how the queue is emptied and the capacity measured; `memory`.
//!
//! Invariant: the rate lies between the floor and the peak of the contract, whatever the exchanges say, and nothing is
//! allocated for an exchange once warm.
//!
//! Limit: more than about ten streams that begin within seconds of each other, or several at some 100 kbit/s each, can
//! take each other for competition; the queue is then long. Streams above 900 Mbit/s at one bottleneck share it unevenly.
//! Beside several streams that yield to loss, one of these can take up to 45 % of the link.

mod base_delay;
mod company;
mod competitive;
mod cubic_window;
mod delay_mode;
mod drain;
mod law;
mod memory;
mod outage;
mod policed;
mod readings;
mod start_up;

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

/// No round trip is shorter, in seconds; it is divided by.
const RTT_LEAST: f64 = 1e-5;

/// What one echo of a state exchange tells, against the one before it that was told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// When this state packet left, by the sender's clock.
    pub sent_at: Instant,
    /// Between the departures of the two.
    pub alpha: Duration,
    /// Between their arrivals, by the receiver's clock.
    pub beta: Duration,
    /// The difference of their numbers; above 1 when some in between were lost.
    pub exchanges: u64,
    /// IP bytes sent between the two departures, data and state.
    pub sent_bytes: u64,
    /// IP bytes that arrived between the two arrivals.
    pub received_bytes: u64,
    /// Shipments sent between the two departures.
    pub shipments: u64,
    /// Shipments held lost by the receiver in that time.
    pub lost: u64,
    /// Shipments that arrived with a congestion mark in that time.
    pub marked: u64,
    /// Arrival on the receiver's clock less departure on the sender's, in nanoseconds. Only differences mean
    /// something: the offset of the clocks is unknown, and they may drift.
    pub delay: i64,
    /// A fresh sample of the round trip.
    pub rtt: Duration,
    /// For most of alpha the application had nothing to send, or a window held it back.
    pub limited: bool,
}

/// What bounds the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contract {
    /// Never slower than this.
    pub floor: Bandwidth,
    /// Never faster than this.
    pub peak: Bandwidth,
    /// The size of a full IP packet.
    pub datagram: Bytes,
}

/// What the controller is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
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
    pub const fn name(self) -> &'static str {
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
    Delay(DelayMode),
    // Why boxed: it is larger than the others, and rare.
    Competitive(Box<Competitive>),
    Policed(Policed),
    Outage(Outage),
}

/// The controller of one direction of one connection.
#[derive(Clone, Debug)]
pub struct Controller {
    contract: Contract,
    mode: Mode,
    readings: Readings,
    memory: Memory,
    rtt: Rtt,
    /// Bytes a second.
    rate: f64,
}

impl Controller {
    /// A controller that knows no round trip yet, at the smallest sensible rate.
    pub fn new(contract: Contract, now: Instant) -> Self {
        let mut new = Self {
            contract,
            mode: Mode::StartUp(StartUp),
            readings: Readings::new(),
            memory: Memory::default(),
            rtt: Rtt::new(),
            rate: 0.0,
        };
        new.set_rate(now, start_up::first_rate(new.datagram(), law::RTT_GUESSED));
        new
    }

    /// Other bounds are in force from now on.
    pub fn set_contract(&mut self, now: Instant, contract: Contract) {
        self.contract = contract;
        self.set_rate(now, self.rate);
    }

    /// The round trip of connection set-up.
    pub fn on_rtt(&mut self, now: Instant, rtt: Duration) {
        let first = self.rtt.latest().is_none();
        self.rtt.on_sample(now, rtt);
        if first {
            self.set_rate(now, start_up::first_rate(self.datagram(), rtt.as_secs_f64()));
        }
    }

    /// An echo has come.
    pub fn on_exchange(&mut self, now: Instant, exchange: &Exchange) {
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

    /// `unanswered` states in a row have had no echo, the oldest of them for `since`.
    pub fn on_silence(&mut self, now: Instant, unanswered: u32, since: Duration) {
        let patience = self.readings.patience(self.rtt.latest());
        if unanswered < 2 || since.as_secs_f64() < patience {
            return;
        }
        if !matches!(self.mode, Mode::Outage(_)) {
            self.mode = Mode::Outage(Outage::new(now, self.rate));
        }
        if let Mode::Outage(outage) = &mut self.mode {
            let rate = outage.on_silence(now, self.rate, patience, self.contract.datagram.get().max(1) as f64);
            self.set_rate(now, rate);
        }
    }

    /// The rate to pace at, in IP bytes.
    pub fn rate(&self) -> Bandwidth {
        Bandwidth::from_bits_per_second((self.rate * 8.0) as u64)
    }

    /// How much may be sent and neither echoed nor held lost. Never the normal limit: a brake.
    pub fn in_flight_max(&self) -> Bytes {
        let rtt = self.rtt.smoothed().map_or(law::RTT_GUESSED, Duration::as_secs_f64);
        let span = 2.0 * rtt + 4.0 * self.period().as_secs_f64() + 0.01;
        Bytes::new((self.rate * span + 16.0 * self.datagram()) as u64)
    }

    /// The spacing of state packets wanted.
    pub fn period(&self) -> Duration {
        law::period(self.rtt.min(), self.datagram() / self.rate)
    }

    /// What the controller is doing.
    pub const fn phase(&self) -> Phase {
        match self.mode {
            Mode::StartUp(_) => Phase::StartUp,
            Mode::Delay(_) => Phase::Delay,
            Mode::Competitive(_) => Phase::Competitive,
            Mode::Policed(_) => Phase::Policed,
            Mode::Outage(_) => Phase::Outage,
        }
    }

    /// Gauges: `rho`, `queue_ms`, `delivery_bps` and `phase` (0 start-up, 1 delay, 2 competitive, 3 policed, 4 outage).
    pub fn probe(&self, out: &mut dyn Probe) {
        out.gauge("rho", self.readings.rho());
        out.gauge("queue_ms", self.readings.queue() * 1e3);
        out.gauge("delivery_bps", self.readings.delivery() * 8.0);
        out.gauge("phase", f64::from(self.phase() as u8));
    }

    fn datagram(&self) -> f64 {
        self.contract.datagram.get().max(1) as f64
    }

    fn set_rate(&mut self, now: Instant, rate: f64) {
        let floor = self.contract.floor.bits_per_second().max(8) as f64 / 8.0;
        let peak = (self.contract.peak.bits_per_second() as f64 / 8.0).max(floor);
        self.rate = if rate.is_finite() { rate.clamp(floor, peak) } else { floor };
        self.readings.note_rate(now, self.rate);
    }
}

#[cfg(test)]
mod tests;
