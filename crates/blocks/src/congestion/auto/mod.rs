//! `auto`: a rate from exchanges of state, which keeps queues short and holds its own beside those that do not.
//!
//! Called through [`Controller`] by the sender of a protocol that sends small state packets every alpha and learns from their
//! echoes how far apart they arrived. Source: HT 3.5 (PTIF), made safe on shared networks. `rho = beta / alpha` sees a queue grow, not
//! stand: rho - 1 is the overload of the whole bottleneck, whatever our part in it. So the one-way delay above its minimum
//! tells what stands, and drains it; marks and loss are a backstop.
//!
//! ```text
//!            queue, loss              a queue remains in a drain, or loss comes with one
//! start_up --------------> delay_mode -------------------------------------------------> competitive
//!    ^                      |     ^  <-------------------------------------------------
//!    | first echo      loss |     |         alone, or the queue has gone
//!    |    without a queue   v     | every 4 s, or the loss is ordinary
//!  outage <-- silence       policed <-- as much loss in start_up
//! ```
//!
//! - `law`: the target delay, which falls with the stream's own rate, and other numbers all share.
//! - `readings`: the filters, from exchanges (`samples`) to queue, rho, rate of service and loss, which the modes see as a `view`; `base_delay`,
//!   `noise` (jitter), `delivery_max`, `calm_loss` and `paced_rates` under it.
//! - `start_up`, `delay_mode`, `competitive` (with `cubic_window` and `defence`), `policed`, `outage`: one mode a file; each
//!   answers an exchange with a rate and, when it is over, the next mode.
//! - `schedule` and `drain`: when and how all senders of this kind empty the queue, and what it tells them of others.
//! - `longest_queue`: of late; `queue_depth`: how long the queue can be, where that is less than the target.
//! - `competing_flows`, `queue_loss`: what else speaks for others; `source_rate`: what a live stream may hold beside them; `probe`: how a
//!   noisy path is asked for more; `memory`, and `remembered`: a number that is believed for some time.
//!
//! Invariant: the rate lies between the floor and the peak of the bounds, whatever the exchanges say, and nothing is
//! allocated for an exchange once warm.
//!
//! Limit: the time of day of hosts must agree to a few hundredths of a second (as NTP keeps it). Where clocks are a second apart, more
//! than about four streams take each other for competing flows: they then share less evenly, and lose up to 6 %.
//!
//! Limit: with jitter that keeps the order up to 2 % are lost. More than about twenty streams that begin within seconds of each other
//! can take each other for competition for some ten seconds. Streams above 900 Mbit/s at one bottleneck share it unevenly. At 100 kbit/s
//! and below, where a datagram takes longer than a round trip, the queue can be as long as the bottleneck lets it.

mod base_delay;
mod calm_loss;
mod competing_flows;
mod competitive;
mod cubic_window;
mod defence;
mod delay_mode;
mod delivery_max;
mod drain;
mod law;
mod longest_queue;
mod memory;
mod noise;
mod outage;
mod paced_rates;
mod policed;
mod probe;
mod products;
mod queue_depth;
mod queue_loss;
mod readings;
mod remembered;
mod samples;
mod schedule;
mod source_rate;
mod start_up;
mod view;

pub use schedule::SLOT;

use super::spacing::PERIOD_LEAST;
use super::{Algorithm, Bounds, Clock, Controller, Exchange, Silence, Start, exchange_period};
use crate::rtt::Rtt;
use competitive::Competitive;
use delay_mode::DelayMode;
use drain::Drain;
use memory::Memory;
use outage::Outage;
use policed::Policed;
use products::Products;
use readings::{Context, Readings};
use schedule::Schedule;
use segstream_base::halves::Probe;
use segstream_base::random::Random;
use segstream_base::{Bandwidth, Bytes, Duration, Instant};
use source_rate::SourceRate;
use start_up::StartUp;
use view::View;

/// The entry of the list.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "auto",
    about: "keeps queues short, and holds its own beside streams that fill them",
    offered: true,
    clock: Clock::Exchanges,
    responds_to_ecn: true,
    start: |start| Box::new(Auto::new(start)),
};

/// No round trip is shorter, in seconds; it is divided by.
const RTT_LEAST: f64 = 1e-5;

/// The bytes of a state packet, and what part of the rate state packets may take in a drain.
const STATE: f64 = 70.0;
const DRAIN_STATES: f64 = 0.2;

/// In start-up so many products of delivery rate and round trip are in flight at most (BBR's gain).
const START_PRODUCTS: f64 = 2.885;
/// So many datagrams may be in flight besides, since they leave and are acknowledged together.
const CAP_DATAGRAMS: f64 = 16.0;
/// So many before anything is known of what the path serves, in the place of those (RFC 6928, RFC 9002 7.2).
const CAP_INITIAL: f64 = 10.0;

/// Exchanges are spaced at random, by up to this part more or less than their period.
///
/// Why: a path may hold back what it carries in periods of its own (frames of a radio, aggregation). Even spacing beats with them, and the
/// beat reads as a queue that grows and falls (RFC 2330 11.1.1).
const DITHER: f64 = 0.4;

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
    // Why boxed: it keeps the mode before.
    Outage(Box<Outage>),
}

impl Mode {
    /// The mode's answer to an exchange: the rate, and the next mode once it is over.
    fn step(&mut self, view: &View, memory: &mut Memory) -> (f64, Option<Self>) {
        match self {
            Self::StartUp(mode) => mode.step(view, memory),
            Self::Delay(mode) => mode.step(view, memory),
            Self::Competitive(mode) => mode.step(view, memory),
            Self::Policed(mode) => mode.step(view, memory),
            Self::Outage(mode) => mode.step(view, memory),
        }
    }

    /// Answers the exchange at which another mode ended with this one: the rate, and the mode that follows.
    fn enter(mut self, view: &View, memory: &mut Memory) -> (f64, Option<Self>) {
        let (rate, next) = self.step(view, memory);
        (rate, next.or(Some(self)))
    }
}

impl From<DelayMode> for Mode {
    fn from(mode: DelayMode) -> Self {
        Self::Delay(Box::new(mode))
    }
}

/// The controller of one direction of one connection.
#[derive(Clone, Debug)]
pub struct Auto {
    bounds: Bounds,
    mode: Mode,
    readings: Readings,
    memory: Memory,
    schedule: Schedule,
    /// Exchanges are dense: a drain begins soon, or goes on.
    drains: bool,
    random: Random,
    /// Where in its range the spacing of exchanges is, between 0 and 1.
    dither: f64,
    /// How much is in flight in noise.
    products: Products,
    /// A drain goes on: the rate is a fraction of what it is else.
    is_sending_less: bool,
    rtt: Rtt,
    /// What the source has and what the path had, as far as that was known in advance, and the rate now, in bytes a second.
    source: Option<f64>,
    initial: Option<f64>,
    rate: f64,
}

impl Auto {
    /// A controller that knows no round trip yet, at the smallest sensible rate.
    pub fn new(start: Start) -> Self {
        let bytes = |rate: Bandwidth| rate.bits_per_second() as f64 / 8.0;
        let known = (start.source.map(bytes), start.initial.map(bytes));
        Self::begin(start.bounds, known, Schedule::new(start.epoch), start.seed.stream("auto"), start.now)
    }

    fn begin(bounds: Bounds, (source, initial): (Option<f64>, Option<f64>), schedule: Schedule, random: Random, now: Instant) -> Self {
        let mut new = Self {
            source,
            initial,
            bounds,
            mode: Mode::StartUp(StartUp::new(now)),
            readings: Readings::new(),
            memory: Memory::new(SourceRate::new(source)),
            schedule,
            drains: false,
            random,
            dither: 0.5,
            products: Products::new(now),
            is_sending_less: false,
            rtt: Rtt::new(),
            rate: 0.0,
        };
        new.set_rate(now, new.first_rate(law::RTT_GUESSED));
        new
    }

    /// What is known of the rate before anything was sent: of the source, and of the last connection to the same host.
    fn known_rate(&self) -> f64 {
        self.memory.source.first_rate().max(self.initial.unwrap_or(0.0))
    }

    /// Where start-up begins.
    fn first_rate(&self, rtt: f64) -> f64 {
        start_up::first_rate(self.datagram(), rtt).max(self.known_rate())
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

    /// The drain that goes on, or waits for its echoes.
    const fn drain(&self) -> Option<&Drain> {
        match &self.mode {
            Mode::Delay(mode) => mode.drain(),
            Mode::Competitive(mode) => mode.drain(),
            _ => None,
        }
    }

    /// Whether an exchange that leaves from now on could be the first to see the next slot.
    fn drain_is_near(&self, view: &View) -> bool {
        let period = exchange_period(self.rtt.min(), view.datagram / view.rate).as_secs_f64();
        self.schedule.until_next(view.now) < view.tau + view.delay.queue + 2.0 * period
    }

    /// The mean spacing of exchanges in seconds.
    fn exchange_period_mean(&self) -> f64 {
        // Why: whoever sends little has few exchanges, and a drain is short.
        let packet = if self.drains { STATE / DRAIN_STATES / 3.0 } else { self.datagram() };
        exchange_period(self.rtt.min(), packet / self.rate).as_secs_f64()
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
            self.set_rate(now, self.first_rate(rtt.as_secs_f64()));
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
            slot: self.schedule.slot(now),
        };
        self.dither = self.random.unit();
        let Some(view) = self.readings.take(now, exchange, context) else { return };
        let least = law::least_rate(view.datagram, view.tau + view.delay.queue, self.memory.service_most);
        if matches!(self.mode, Mode::Outage(_)) {
            self.readings.forget_samples();
        }
        self.memory.depth.record(&view);
        self.products.record(&view, self.memory.ordinary_loss(now));
        let (rate, next) = self.mode.step(&view, &mut self.memory);
        if let Some(fall) = self.memory.fell.take() {
            self.readings.note_fall(now, fall);
        }
        if std::mem::take(&mut self.memory.distrusts_falls) {
            self.readings.forget_falls();
        }
        if std::mem::take(&mut self.memory.path_is_longer) {
            self.readings.forget_base();
        }
        if let Some(rise) = self.memory.base_rises.take() {
            self.readings.raise_base(now, rise);
        }
        if let Some(next) = next {
            self.mode = next;
        }
        self.set_rate(now, rate.max(least));
        let tells = !view.limited && drain::can_tell(&view, self.memory.service_most);
        self.drains = tells && (self.drain().is_some() || self.drain_is_near(&view));
        self.is_sending_less = self.drain().is_some_and(|drain| drain.is_sending_less(now));
    }

    fn on_silence(&mut self, now: Instant, silence: &Silence) {
        let patience = self.readings.patience(self.rtt.latest());
        if silence.unanswered < 2 || silence.since.as_secs_f64() < patience {
            return;
        }
        if !matches!(self.mode, Mode::Outage(_)) {
            self.mode = Mode::Outage(Box::new(Outage::new(now, self.rate, self.mode.clone())));
            (self.drains, self.is_sending_less) = (false, false);
        }
        if let Mode::Outage(outage) = &mut self.mode {
            let rate = outage.on_silence(now, self.rate, patience, self.bounds.datagram.get().max(1) as f64);
            self.set_rate(now, rate);
        }
    }

    fn on_path_change(&mut self, now: Instant) {
        // Why nothing of the path is known in advance: what was known was known of the old one.
        *self = Self::begin(self.bounds, (self.source, None), self.schedule, self.random.clone(), now);
    }

    fn pacing_rate(&self) -> Option<Bandwidth> {
        Some(self.rate())
    }

    /// Never the normal limit: the rate is.
    fn in_flight_cap(&self) -> Bytes {
        let rtt = self.rtt.smoothed().map_or(law::RTT_GUESSED, Duration::as_secs_f64);
        let span = 2.0 * rtt + 4.0 * self.exchange_period_mean() + 0.01;
        // Why: what is in flight when a drain begins left at the full rate.
        let rate = if self.is_sending_less { self.rate / drain::DRAIN_RATE } else { self.rate };
        let cap = rate * span;
        let rtt = self.rtt.min().map_or(law::RTT_GUESSED, Duration::as_secs_f64).max(law::TAU_LEAST);
        let noise = self.readings.noise();
        let products = |rate: f64, count: f64| rate * (count * rtt + noise.unwrap_or(0.0));
        let (most, datagrams) = match self.mode {
            // Why known: a path that is known from before may be filled at once. Why no more than that is before the first acknowledgment:
            // RFC 9002 7.2.
            Mode::StartUp(_) => {
                let datagrams = if self.readings.best() > 0.0 { CAP_DATAGRAMS } else { CAP_INITIAL };
                (products(self.readings.best().max(self.known_rate()), START_PRODUCTS), datagrams)
            }
            Mode::Competitive(_) => (f64::INFINITY, CAP_DATAGRAMS),
            _ if noise.is_some() && self.readings.best() > 0.0 => {
                let count = self.products.get();
                (products(self.readings.best(), count), CAP_DATAGRAMS * self.products.part())
            }
            _ => (f64::INFINITY, CAP_DATAGRAMS),
        };
        Bytes::new((cap.min(most) + datagrams * self.datagram()) as u64)
    }

    fn exchange_period(&self) -> Duration {
        let dithered = self.exchange_period_mean() * (1.0 + DITHER * (2.0 * self.dither - 1.0));
        Duration::from_secs_f64(dithered.max(PERIOD_LEAST))
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
