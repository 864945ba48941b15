//! The congestion-controlled rate: exchanges leave every period, the controller hears of them, the pacer follows.
//!
//! Called by the half. The controller itself is a block ([`segstream_blocks::congestion`]); here is when exchanges
//! leave, what is done with their answers, and what the application hears.
//!
//! Invariant: while data is on its way that no told exchange covers, or anything could leave, the next exchange is due;
//! neither the rate nor the cap in flight holds an exchange back. So no loss of exchanges or reports stops a sender for good.

use super::{Outgoing, SendHalf, SenderHalfEvent};
use crate::number::ShipmentCounter;
use crate::path::circuit_breaker::CircuitBreaker;
use crate::path::delivery::Delivery;
use crate::path::exchange::Exchanges;
use crate::path::{Addresses, Path};
use crate::rate::{Rate, RateError};
use segstream_base::endpoint::Deadline;
use segstream_base::quantity::Remainder;
use segstream_base::random::Seed;
use segstream_base::{Bandwidth, Bytes, Duration, Instant, ShipmentNumber};
use segstream_blocks::burst::{Pacer, RateSpec};
use segstream_blocks::congestion::{Clock, Controller, Limit, Silence, Start};
use segstream_wire::State;
use segstream_wire::report::Arrived;

/// A change of the rate below one part in so many is not told to the application.
const NOTIFY_THRESHOLD: u64 = 20;
/// The application hears of the rate no more often than this.
const NOTIFY_INTERVAL: Duration = Duration::from_millis(100);
/// Exchanges that go unanswered from the very first on, before marks are taken for the cause.
const ECN_DISABLED_AFTER: u32 = 8;

/// What the application was told last.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NotifiedRate {
    rate: Bandwidth,
    at: Instant,
}

/// The round trip believed before any is known (RFC 9002 6.2.2).
const RTT_INITIAL: Duration = Duration::from_millis(333);

/// So many exchanges in a row stay untold on no path that lets reports through.
const UNTOLD_MOST: u32 = 256;

impl SendHalf {
    /// The controller of `rate`, which knows nothing yet; none unless the rate is automatic.
    pub(super) fn start_controller(&mut self, now: Instant, rate: Rate) {
        let chosen = rate.congestion().zip(rate.bounds(self.datagram()));
        self.path.congestion.controller = chosen.map(|(congestion, bounds)| {
            // Why the time: connections that begin at different times draw differently, and a simulation draws the same again.
            (congestion.start)(Start { now, bounds, seed: Seed(now.as_nanos()) })
        });
        self.path.congestion.delivery = chosen.filter(|(congestion, _)| congestion.clock == Clock::Reports).map(|_| Box::default());
    }

    /// The rate that the pacer is to keep; `None` when nothing is paced.
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

    /// The rate that `controller` asks for, within the bounds. One that answers a cap alone is paced a quarter above what fills it,
    /// so that the cap is what limits (RFC 9002 7.7).
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
        self.stale();
        let bounds = rate.bounds(self.datagram());
        match (&mut self.path.congestion.controller, bounds) {
            (Some(controller), Some(bounds)) if rate.congestion() == self.config.rate.congestion() => controller.set_bounds(now, bounds),
            _ => {
                self.start_controller(now, rate);
                if let (Some(controller), Some(rtt)) = (&mut self.path.congestion.controller, self.path.rtt.smoothed()) {
                    controller.on_round_trip(now, rtt);
                }
            }
        }
        // Only the peak of an automatic rate is the peer's business.
        let announced = rate.peak() != self.config.rate.peak();
        self.config.rate = rate;
        self.path.breaker.reset();
        self.set_pacing(now);
        self.notify_rate(now, true);
        if announced {
            // A class that is asked for and not echoed yet is still asked for.
            self.clock.announce_reclass(now, self.class_to_come());
        }
        Ok(())
    }

    /// The peer has migrated to another host, and is on a new path.
    pub(crate) fn on_path_change(&mut self, now: Instant, addresses: Addresses) {
        self.stale();
        let old = core::mem::replace(&mut self.path, Path::new(self.config.body_bytes));
        self.path = old.migrated(now, addresses);
        self.clock.on_path_change(now);
        self.set_pacing(now);
        self.notify_rate(now, true);
    }

    /// The bytes of a full datagram in a whole IP packet, of the size that every path carries or that is fixed. Why not the
    /// size in use: it follows the rate, so the rate must not follow it.
    pub(super) fn datagram(&self) -> Bytes {
        Bytes::new((self.config.body_bytes + self.config.overhead_bytes) as u64)
    }

    /// When the next exchange is due; `None` unless the rate is automatic and there is something to find out.
    #[inline]
    pub(super) fn exchange_due(&self) -> Option<Deadline> {
        let controller = self.path.congestion.controller.as_ref()?;
        let uncovered = self.last_data.is_some_and(|last| !self.path.congestion.exchanges.covers(last));
        if !uncovered && !self.has_eligible() {
            return None;
        }
        let at = self.path.congestion.exchanges.last().map_or(Instant::ZERO, |last| last + controller.exchange_period());
        Some(Deadline { at, timer: "state.exchange" })
    }

    /// Whether a TXS that leaves now for another reason is an exchange as well.
    pub(super) fn asks_for_arrival(&self, now: Instant) -> bool {
        let since = |last: Instant| now.since(last);
        match &self.path.congestion.controller {
            // A little early is early enough, and saves one of its own.
            Some(controller) => {
                self.path.congestion.exchanges.last().is_none_or(|last| since(last) >= controller.exchange_period() / 4 * 3)
            }
            // Why the class: without rate control nothing is paced, so there is no rate to be judged.
            None if self.config.circuit_breaker && self.config.class.rate_control() && matches!(self.config.rate, Rate::Fixed(_)) => {
                let told = self.path.congestion.exchanges.told().map(|told| told.departure.at);
                // What was asked and not told may be lost: it is asked again, but not by every TXS.
                let asked = self.path.congestion.exchanges.last().is_some_and(|last| since(last) < CircuitBreaker::PERIOD / 5);
                !asked && told.is_none_or(|told| since(told) >= CircuitBreaker::PERIOD)
            }
            None => false,
        }
    }

    /// An exchange leaves: with everything there is to say if something is, else without any statement.
    pub(super) fn emit_exchange(&mut self, now: Instant, counter: &mut ShipmentCounter) -> (ShipmentNumber, Outgoing) {
        if self.clock.has_news() {
            return self.emit_state(now, counter);
        }
        let number = counter.take();
        let state = State {
            sync: self.clock.take_sync(),
            time: now.as_nanos(),
            answer: false,
            exchange: true,
            confirmed: self.clock.confirmed,
            frames: smallvec::SmallVec::new(),
        };
        self.on_state_sent(now, number, &state);
        (number, Outgoing::State(Box::new(state)))
    }

    /// A TXS has left.
    pub(super) fn on_state_sent(&mut self, now: Instant, number: ShipmentNumber, state: &State) {
        let bytes = (state.encoded_len() + self.config.overhead_bytes) as u64;
        self.counters.state_shipments += 1;
        self.path.pacer.on_sent(now, Bytes::new(bytes));
        self.path.congestion.exchanges.on_sent(bytes);
        if let Some(delivery) = &mut self.path.congestion.delivery {
            delivery.on_sent(now, number, bytes, self.path.congestion.exchanges.sent_bytes());
        }
        if !self.has_eligible() {
            self.path.pacer.on_idle(now);
        }
        if !state.exchange {
            return;
        }
        self.path.congestion.exchanges.on_departure(now, state.sync, number);
        if let Some(controller) = &mut self.path.congestion.controller
            && let Some((untold, since)) = self.path.congestion.exchanges.untold()
        {
            if self.path.congestion.exchanges.told().is_none() && untold >= ECN_DISABLED_AFTER {
                self.path.congestion.ecn_capable = false;
            }
            let timeout = self.path.congestion.delivery.as_mut().and_then(|delivery| delivery.timeout(now, since, &self.path.rtt));
            let in_flight = in_flight(&self.path.congestion.exchanges, self.path.congestion.delivery.as_deref());
            let silence = Silence { unanswered: untold, since: now.since(since), in_flight, timeout };
            controller.on_silence(now, &silence);
            self.follow(now);
        }
    }

    /// The arrival of an exchange is told.
    pub(super) fn on_arrived(&mut self, now: Instant, arrived: &Arrived) {
        let Some(rtt) = self.path.rtt.latest() else { return };
        let Some(exchange) = self.path.congestion.exchanges.on_arrival(arrived, rtt, self.path.reordering_threshold) else { return };
        if let Some(controller) = &mut self.path.congestion.controller {
            controller.on_exchange(now, &exchange);
            if let Some(delivery) = &mut self.path.congestion.delivery {
                delivery.on_exchange(&exchange);
            }
            self.follow(now);
        } else if self.config.circuit_breaker
            && matches!(self.config.rate, Rate::Fixed(_))
            && let Some(told) = self.path.congestion.exchanges.told()
            && let Some(broken) = self.path.breaker.on_told(told.departure.at, told.departure.bytes, told.arrived.bytes, rtt)
        {
            self.path.breaker.reset();
            self.events.push_back(SenderHalfEvent::CircuitBroken(broken));
        }
    }

    /// A report was taken, with a fresh round trip if it brought one: what it acknowledges and loses.
    pub(super) fn on_delivery(&mut self, now: Instant, fresh: Option<Duration>) {
        if let (Some(delivery), Some(controller), Some(echo)) =
            (&mut self.path.congestion.delivery, &mut self.path.congestion.controller, self.path.echo)
            && let Some(report) = delivery.on_report(now, echo, self.path.congestion.exchanges.sent_bytes(), fresh, &self.path.rtt)
        {
            controller.on_report(now, &report);
            self.follow(now);
        }
    }

    /// Notes what holds data back besides the rate, if anything does.
    #[inline]
    pub(super) fn note_limit(&mut self, now: Instant) {
        let limit = match (self.has_eligible(), self.tally.waits) {
            (true, _) => None,
            (false, 0) => Some(Limit::Application),
            (false, _) => Some(Limit::Window),
        };
        self.path.congestion.exchanges.note_limit(now, limit);
        if self.path.congestion.delivery.is_some() {
            let cap = self.in_flight_cap_reached().then_some(Limit::Cap);
            if let Some(delivery) = &mut self.path.congestion.delivery {
                delivery.note_limit(cap.or(limit), self.path.congestion.exchanges.sent_bytes());
            }
        }
    }

    /// The pacing quantum as a time: for so long departures wait for one another.
    pub(super) fn pacing_quantum(&self) -> Duration {
        let quantum = self.path.congestion.controller.as_ref().and_then(|controller| controller.quantum()).zip(self.path.pacer.spec());
        quantum.map_or(self.config.pacing_quantum, |(quantum, spec)| {
            self.config.pacing_quantum.min(spec.peak().transmit_time(quantum, &mut Remainder::default()))
        })
    }

    /// The first round trip is known.
    pub(super) fn on_first_round_trip(&mut self, now: Instant, rtt: Duration) {
        if let Some(controller) = &mut self.path.congestion.controller {
            controller.on_round_trip(now, rtt);
            self.follow(now);
        }
    }

    /// The pacer follows the controller, and the application hears of it.
    fn follow(&mut self, now: Instant) {
        self.set_pacing(now);
        self.notify_rate(now, false);
    }

    /// Tells the application what the rate is, if it has changed enough for it and was not told a moment ago.
    fn notify_rate(&mut self, now: Instant, at_once: bool) {
        let Some(rate) = self.rate() else { return };
        let (new, old) = (rate.bits_per_second(), self.notified_rate.rate.bits_per_second());
        let due = at_once || now.since(self.notified_rate.at) >= NOTIFY_INTERVAL || old == 0;
        if due && new.abs_diff(old) * NOTIFY_THRESHOLD >= old.max(1) && new != old {
            self.notified_rate = NotifiedRate { rate, at: now };
            self.events.push_back(SenderHalfEvent::RateChanged(rate));
        }
    }

    /// Whether as much is in flight as the controller allows.
    #[inline]
    pub(super) fn in_flight_cap_reached(&self) -> bool {
        self.path.congestion.controller.is_some() && self.in_flight() >= self.in_flight_cap() && !self.is_never_told()
    }

    /// Whether reports come and none tells of an exchange. The cap would hold data for ever then, while the silence has
    /// brought the rate down to its floor: that is all such a receiver gets.
    fn is_never_told(&self) -> bool {
        self.clock.is_answered() && self.path.congestion.exchanges.untold().is_some_and(|(untold, _)| untold >= UNTOLD_MOST)
    }

    /// What is in flight: sent, and not known to have arrived or been lost, in IP bytes; told by exchanges, so only with an
    /// automatic rate.
    pub fn in_flight(&self) -> u64 {
        in_flight(&self.path.congestion.exchanges, self.path.congestion.delivery.as_deref())
    }

    /// How much may be in flight; no limit without an automatic rate.
    pub fn in_flight_cap(&self) -> u64 {
        self.path.congestion.controller.as_ref().map_or(u64::MAX, |controller| controller.in_flight_cap().get())
    }

    /// Something of the connection's other half, or of its set-up, has left in this direction: `bytes` IP bytes.
    pub fn note_sent(&mut self, bytes: u64) {
        self.path.congestion.exchanges.on_sent(bytes);
    }

    /// Whether a congested path may mark what leaves instead of dropping it (RFC 3168): only a rate that gives way
    /// promises to heed it.
    pub const fn is_markable(&self) -> bool {
        matches!(self.config.rate, Rate::Auto { congestion, .. } if self.path.congestion.ecn_capable && congestion.heeds_marks)
    }

    /// The controller of an automatic rate.
    pub fn controller(&self) -> Option<&dyn Controller> {
        self.path.congestion.controller.as_deref()
    }
}

/// Bytes in flight: by the newest echo where that is kept, else by the newest exchange that was told.
#[inline]
fn in_flight(exchanges: &Exchanges, delivery: Option<&Delivery>) -> u64 {
    delivery.map_or_else(|| exchanges.in_flight(), |delivery| delivery.in_flight(exchanges.sent_bytes()))
}
