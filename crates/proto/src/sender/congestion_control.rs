//! Congestion control: sends exchanges periodically, passes their results to the controller, and sets the pacer.
//!
//! Called by the half. The controller itself is a block ([`segstream_blocks::congestion`]). This file decides when exchanges leave, and
//! notifies the application of the rate.
//!
//! Invariant: while data is in flight that no acknowledged exchange covers, or anything could leave, the next exchange is due; neither
//! the rate nor the in-flight cap delays an exchange. So no loss of exchanges or reports blocks a sender permanently.

use super::{Outgoing, SendHalf, SenderHalfEvent};
use crate::number::ShipmentCounter;
use crate::path::careful_resume::SavedCapacity;
use crate::path::circuit_breaker::CircuitBreaker;
use crate::path::delivery::Delivery;
use crate::path::exchange::Exchanges;
use crate::path::{Addresses, Path};
use crate::rate::{Rate, RateError};
use segstream_base::endpoint::{Deadline, Ecn};
use segstream_base::quantity::Remainder;
use segstream_base::random::Seed;
use segstream_base::{Bandwidth, Bytes, Duration, Instant, ShipmentNumber};
use segstream_blocks::burst::{Pacer, RateSpec};
use segstream_blocks::congestion::{Clock, Controller, Limit, Silence, Start};
use segstream_wire::State;
use segstream_wire::report::Arrived;

/// The application is not notified of a change of the rate below one part in this many.
const NOTIFY_THRESHOLD: u64 = 20;
/// The minimum interval between two notifications of the rate.
const NOTIFY_INTERVAL: Duration = Duration::from_millis(100);
/// If this many exchanges from the first on are not acknowledged, ECN is disabled.
const ECN_DISABLED_AFTER: u32 = 8;

/// The rate of the last notification.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NotifiedRate {
    rate: Bandwidth,
    at: Instant,
}

/// The initial round trip (RFC 9002 6.2.2).
const RTT_INITIAL: Duration = Duration::from_millis(333);

/// On a path that carries reports, fewer exchanges than this in a row are unacknowledged.
const UNACKED_MAX: u32 = 256;

impl SendHalf {
    /// Starts the controller of `rate` at `initial`, if anything is known; none unless the rate is automatic.
    pub(super) fn start_controller(&mut self, now: Instant, rate: Rate, initial: Option<Bandwidth>) {
        let epoch = self.config.epoch;
        let chosen = rate.congestion().zip(rate.bounds(self.datagram()));
        self.path.congestion.controller = chosen.map(|(congestion, bounds)| {
            // Why the time is the seed: connections that begin at different times have different random numbers, and a simulation repeats.
            (congestion.start)(Start { now, bounds, seed: Seed(now.as_nanos()), initial, source: rate.start(), epoch })
        });
        self.path.congestion.delivery = chosen.filter(|(congestion, _)| congestion.clock == Clock::Reports).map(|_| Box::default());
    }

    /// The rate of the pacer; `None` when unpaced.
    pub(super) fn spec(&self) -> Option<RateSpec> {
        match self.config.rate {
            Rate::Unpaced => None,
            Rate::Fixed(spec) => self.config.class.rate_control().then_some(spec),
            // Why whatever the class: see `crate::rate`.
            Rate::Auto { .. } => {
                self.path.congestion.controller.as_ref().map(|controller| RateSpec::smooth(self.pacing_rate(controller.as_ref())))
            }
        }
    }

    /// The pacing rate of `controller`, within the bounds. A controller with a cap only is paced a quarter above the rate that fills the
    /// cap, so that the cap is the limit (RFC 9002 7.7).
    fn pacing_rate(&self, controller: &dyn Controller) -> Bandwidth {
        let rate = controller.pacing_rate().unwrap_or_else(|| {
            let rtt = self.path.rtt.smoothed().unwrap_or(RTT_INITIAL).max(Duration::from_micros(1));
            let bits = u128::from(controller.in_flight_cap().get()) * 10_000_000_000 / u128::from(rtt.as_nanos());
            Bandwidth::from_bits_per_second(u64::try_from(bits).unwrap_or(u64::MAX))
        });
        match self.config.rate {
            Rate::Auto { floor, peak, .. } => rate.max(floor).min(peak),
            _ => rate,
        }
    }

    /// Makes the pacer keep the rate in force.
    pub(super) fn set_pacing(&mut self, now: Instant) {
        match (self.spec(), self.path.pacer.spec()) {
            (Some(spec), Some(_)) => self.path.pacer.set_spec(now, spec),
            (None, None) => {}
            (Some(spec), None) => {
                self.path.pacer = Pacer::new(spec, now);
                self.path.pacer.on_idle(now);
            }
            (None, Some(_)) => self.path.pacer = Pacer::unlimited(),
        }
        self.fit_data();
    }

    /// A new rate, in force at once.
    ///
    /// # Errors
    /// When the rate cannot be kept, with the class in force or asked for.
    pub fn set_rate(&mut self, now: Instant, rate: Rate) -> Result<(), RateError> {
        rate.check(self.class_to_come())?;
        self.invalidate_due();
        let bounds = rate.bounds(self.datagram());
        match (&mut self.path.congestion.controller, bounds) {
            (Some(controller), Some(bounds)) if rate.congestion() == self.config.rate.congestion() => controller.set_bounds(now, bounds),
            _ => {
                self.start_controller(now, rate, rate.start());
                if let (Some(controller), Some(rtt)) = (&mut self.path.congestion.controller, self.path.rtt.smoothed()) {
                    controller.on_round_trip(now, rtt);
                }
            }
        }
        // Of an automatic rate only the peak is announced to the peer.
        let announced = rate.peak() != self.config.rate.peak();
        self.config.rate = rate;
        self.path.breaker.reset();
        self.set_pacing(now);
        self.notify_rate(now, true);
        if announced {
            // A requested class that was not echoed yet stays requested.
            self.state_timer.announce_reclass(now, self.class_to_come());
        }
        Ok(())
    }

    /// The peer has migrated to another host, and is on a new path.
    pub(crate) fn on_path_change(&mut self, now: Instant, addresses: Addresses) {
        self.invalidate_due();
        let old = core::mem::replace(&mut self.path, Path::new(self.config.body_bytes));
        self.path = old.migrated(now, addresses);
        self.state_timer.on_path_change(now);
        self.set_pacing(now);
        self.notify_rate(now, true);
    }

    /// The bytes of a full datagram in a whole IP packet, of the size that every path carries or that is fixed. Why not the
    /// size in use: it follows the rate, so the rate must not follow it.
    pub(super) fn datagram(&self) -> Bytes {
        Bytes::new((self.config.body_bytes + self.config.overhead_bytes) as u64)
    }

    /// When the next exchange is due; `None` unless the rate is automatic and data is in flight or could leave.
    #[inline]
    pub(super) fn exchange_due(&self) -> Option<Deadline> {
        let controller = self.path.congestion.controller.as_ref()?;
        let uncovered = self.last_data.is_some_and(|last| !self.path.congestion.exchanges.covers(last));
        if !uncovered && !self.has_eligible() {
            return None;
        }
        let period = || {
            let period = controller.exchange_period();
            let blocked = self.path.congestion.exchanges.blocked_period(period, self.last_data);
            if blocked > period && self.in_flight_cap_reached() { blocked } else { period }
        };
        let at = self.path.congestion.exchanges.last().map_or(Instant::ZERO, |last| last + period());
        Some(Deadline { at, timer: "state.exchange" })
    }

    /// Whether a TXS that leaves now for another reason is an exchange as well.
    pub(super) fn asks_for_arrival(&self, now: Instant) -> bool {
        let since = |last: Instant| now.since(last);
        match &self.path.congestion.controller {
            // A TXS that leaves a little early as an exchange saves a separate one.
            Some(controller) => {
                self.path.congestion.exchanges.last().is_none_or(|last| since(last) >= controller.exchange_period() / 4 * 3)
            }
            // Why the class: without rate control nothing is paced, so there is no rate to check.
            None if self.config.circuit_breaker && self.config.class.rate_control() && matches!(self.config.rate, Rate::Fixed(_)) => {
                let acked = self.path.congestion.exchanges.acked().map(|acked| acked.departure.at);
                // An unacknowledged exchange may be lost: another one leaves, but not with every TXS.
                let asked = self.path.congestion.exchanges.last().is_some_and(|last| since(last) < CircuitBreaker::PERIOD / 5);
                !asked && acked.is_none_or(|acked| since(acked) >= CircuitBreaker::PERIOD)
            }
            None => false,
        }
    }

    /// Sends an exchange: with all pending statements if there are any, otherwise without frames.
    pub(super) fn emit_exchange(&mut self, now: Instant, counter: &mut ShipmentCounter) -> (ShipmentNumber, Outgoing) {
        if self.state_timer.has_immediate() {
            return self.emit_state(now, counter);
        }
        let number = counter.take();
        let state = State {
            sync: self.state_timer.take_sync(),
            time: now.as_nanos(),
            answer: false,
            exchange: true,
            confirmed: self.state_timer.confirmed,
            frames: smallvec::SmallVec::new(),
        };
        self.on_state_sent(now, number, &state);
        (number, Outgoing::State(Box::new(state)))
    }

    /// A TXS has left.
    pub(super) fn on_state_sent(&mut self, now: Instant, number: ShipmentNumber, state: &State) {
        let bytes = (state.encoded_len() + self.config.overhead_bytes) as u64;
        self.counters.state_shipments += 1;
        let data_waits = self.has_eligible();
        self.path.pacer.on_control_sent(now, Bytes::new(bytes), data_waits);
        self.path.congestion.exchanges.on_sent(bytes);
        if let Some(delivery) = &mut self.path.congestion.delivery {
            delivery.on_sent(now, number, bytes);
        }
        if !data_waits {
            self.path.pacer.on_idle(now);
        }
        if !state.exchange {
            return;
        }
        self.path.congestion.exchanges.on_departure(now, state.sync, number, self.last_data);
        if let Some(controller) = &mut self.path.congestion.controller
            && let Some((unacked, since)) = self.path.congestion.exchanges.unacked()
        {
            if self.path.congestion.exchanges.acked().is_none() && unacked >= ECN_DISABLED_AFTER {
                self.path.congestion.ecn_capable = false;
            }
            let timeout = self.path.congestion.delivery.as_mut().and_then(|delivery| delivery.timeout(now, since, &self.path.rtt));
            let in_flight = in_flight(&self.path.congestion.exchanges, self.path.congestion.delivery.as_deref());
            let silence = Silence { unanswered: unacked, since: now.since(since), in_flight, timeout };
            controller.on_silence(now, &silence);
            self.follow(now);
        }
    }

    /// An exchange is acknowledged.
    pub(super) fn on_arrived(&mut self, now: Instant, arrived: &Arrived) {
        let Some(rtt) = self.path.rtt.latest() else { return };
        let Some(exchange) = self.path.congestion.exchanges.on_arrival(arrived, rtt, self.path.reordering_threshold) else { return };
        self.path.congestion.capacity.on_exchange(&exchange, self.path.rtt.min().unwrap_or(rtt));
        if let Some(controller) = &mut self.path.congestion.controller {
            controller.on_exchange(now, &exchange);
            if let Some(delivery) = &mut self.path.congestion.delivery {
                delivery.on_exchange(&exchange);
            }
            self.follow(now);
        } else if self.config.circuit_breaker
            && matches!(self.config.rate, Rate::Fixed(_))
            && let Some(acked) = self.path.congestion.exchanges.acked()
        {
            let broken = self.path.breaker.on_acked(acked.departure.at, acked.departure.bytes, acked.arrived.bytes, rtt);
            self.state_timer.on_carried(self.path.breaker.is_crowded());
            if let Some(broken) = broken {
                self.path.breaker.reset();
                self.events.push_back(SenderHalfEvent::CircuitBroken(broken));
            }
        }
    }

    /// A report was processed, with an RTT sample if it gave one: passes what it acknowledges and declares lost to the controller.
    pub(super) fn on_delivery(&mut self, now: Instant, fresh: Option<Duration>) {
        if let (Some(delivery), Some(controller), Some(echo)) =
            (&mut self.path.congestion.delivery, &mut self.path.congestion.controller, self.path.echo)
            && let Some(report) = delivery.on_report(now, echo, fresh, &self.path.rtt)
        {
            controller.on_report(now, &report);
            self.follow(now);
        }
    }

    /// Records what limits the sender besides the rate, if anything does.
    #[inline]
    pub(super) fn note_limit(&mut self, now: Instant) {
        let limit = match (self.has_eligible(), self.stream_counts.window_blocked) {
            (true, _) => None,
            (false, 0) => Some(Limit::Application),
            (false, _) => Some(Limit::Window),
        };
        self.path.congestion.exchanges.note_limit(now, limit);
        if self.path.congestion.delivery.is_some() {
            let cap = self.in_flight_cap_reached().then_some(Limit::Cap);
            if let Some(delivery) = &mut self.path.congestion.delivery {
                delivery.note_limit(cap.or(limit));
            }
        }
    }

    /// The pacing quantum as a time: how long departures may be collected.
    pub(super) fn pacing_quantum(&self) -> Duration {
        let Some(controller) = &self.path.congestion.controller else { return self.config.pacing_quantum };
        let quantum = controller.quantum().zip(self.path.pacer.spec());
        quantum.map_or(self.config.pacing_quantum, |(quantum, spec)| {
            self.config.pacing_quantum.min(spec.peak().transmit_time(quantum, &mut Remainder::default()))
        })
    }

    /// What to save of the path for the next connection (RFC 9959 3.1). Nothing of a rate that does not look for it.
    pub(crate) fn capacity(&self) -> Option<SavedCapacity> {
        self.path.congestion.controller.as_ref()?;
        self.path.congestion.capacity.saved(self.path.rtt.min()?)
    }

    /// The first round trip is known.
    pub(super) fn on_first_round_trip(&mut self, now: Instant, rtt: Duration) {
        let saved = self.path.saved.take().filter(|_| self.config.rate.start().is_none());
        if let Some(jump) = saved.and_then(|saved| saved.jump(now, rtt)) {
            // Why anew: a controller takes a rate that is known only before it has measured anything, and this one has not.
            self.start_controller(now, self.config.rate, Some(jump));
        }
        if let Some(controller) = &mut self.path.congestion.controller {
            controller.on_round_trip(now, rtt);
            self.follow(now);
        }
    }

    /// Sets the pacer to the controller's rate, and notifies the application.
    fn follow(&mut self, now: Instant) {
        self.set_pacing(now);
        self.notify_rate(now, false);
    }

    /// Notifies the application of the rate, if it has changed enough and the last notification is not too recent.
    fn notify_rate(&mut self, now: Instant, at_once: bool) {
        let Some(rate) = self.rate() else { return };
        let (new, old) = (rate.bits_per_second(), self.notified_rate.rate.bits_per_second());
        let due = at_once || now.since(self.notified_rate.at) >= NOTIFY_INTERVAL || old == 0;
        if due && new.abs_diff(old).saturating_mul(NOTIFY_THRESHOLD) >= old.max(1) && new != old {
            self.notified_rate = NotifiedRate { rate, at: now };
            self.events.push_back(SenderHalfEvent::RateChanged(rate));
        }
    }

    /// Whether the in-flight cap is reached.
    #[inline]
    pub(super) fn in_flight_cap_reached(&self) -> bool {
        self.path.congestion.controller.is_some() && self.in_flight() >= self.in_flight_cap() && !self.is_never_acked()
    }

    /// Whether reports arrive but none acknowledges an exchange. The cap would then block data permanently. The rate has been reduced to its
    /// floor by then, and that is all such a receiver gets.
    fn is_never_acked(&self) -> bool {
        self.state_timer.is_answered() && self.path.congestion.exchanges.unacked().is_some_and(|(unacked, _)| unacked >= UNACKED_MAX)
    }

    /// Bytes in flight: sent, and neither acknowledged nor declared lost, in IP bytes; by exchanges, so only with an automatic rate.
    pub fn in_flight(&self) -> u64 {
        in_flight(&self.path.congestion.exchanges, self.path.congestion.delivery.as_deref())
    }

    /// How much may be in flight; no limit without an automatic rate.
    pub fn in_flight_cap(&self) -> u64 {
        self.path.congestion.controller.as_ref().map_or(u64::MAX, |controller| controller.in_flight_cap().get())
    }

    /// A shipment of the receiving half or of set-up was sent in this direction: `bytes` IP bytes.
    pub fn note_sent(&mut self, bytes: u64) {
        self.path.congestion.exchanges.on_sent(bytes);
    }

    /// The ECN codepoint of sent packets (RFC 3168): ECT only with congestion control, and ECT(1) only with a scalable one (RFC 9331 4.1).
    pub fn ecn(&self) -> Option<Ecn> {
        let Rate::Auto { congestion, .. } = self.config.rate else { return None };
        let scalable = self.path.congestion.controller.as_ref().is_some_and(|controller| controller.is_scalable());
        (self.path.congestion.ecn_capable && congestion.responds_to_ecn).then_some(if scalable { Ecn::Ect1 } else { Ecn::Ect0 })
    }

    /// The controller of an automatic rate.
    pub fn controller(&self) -> Option<&dyn Controller> {
        self.path.congestion.controller.as_deref()
    }
}

/// Bytes in flight: by the newest echo if delivery is tracked, otherwise by the newest acknowledged exchange.
#[inline]
fn in_flight(exchanges: &Exchanges, delivery: Option<&Delivery>) -> u64 {
    delivery.map_or_else(|| exchanges.in_flight(), Delivery::in_flight)
}
