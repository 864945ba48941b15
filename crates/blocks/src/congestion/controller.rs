//! The contract of a congestion controller: what it is told, what it answers.
//!
//! Implemented by every controller of [`super::ALGORITHMS`], and by whoever brings their own. Called by senders: the flagship's,
//! whose path is measured by state exchanges, and the model TCP of the cross traffic, whose packets are acknowledged one by one.
//!
//! | told | by the flagship | by TCP |
//! |---|---|---|
//! | [`Controller::on_exchange`] | for each state exchange that was echoed | never |
//! | [`Controller::on_report`] | for each report that acknowledges data or holds some lost | for each acknowledgment |
//! | [`Controller::on_silence`] | when a state packet leaves while others are unanswered | when its retransmission timeout expires |
//! | [`Controller::on_path_change`] | when the peer has moved | never |
//!
//! All bytes are those of whole IP packets. A controller whose window counts packets divides by [`Bounds::datagram`].
//!
//! Why no timer: a controller is told something at least once each [`Controller::exchange_period`] while anything is in flight, an
//! echo or a silence. What must happen at a time happens then.
//!
//! Invariant: answers change only when something is told, so a sender may keep them until then.

use core::fmt;
use segstream_base::halves::Probe;
use segstream_base::{Bandwidth, Bytes, Duration, Instant};

/// What bounds a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Never slower than this.
    pub floor: Bandwidth,
    /// Never faster than this.
    pub peak: Bandwidth,
    /// The size of a full IP packet.
    pub datagram: Bytes,
}

/// What held a sender back besides its pacing rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The application had nothing to send (RFC 9002 7.8: application-limited).
    Application,
    /// The receiver's flow control window was closed.
    Window,
    /// [`Controller::in_flight_cap`] was reached (RFC 9002 7.8: congestion window fully used).
    Cap,
}

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
    /// Bytes sent between the two departures, data and state.
    pub sent_bytes: u64,
    /// Bytes that arrived between the two arrivals.
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
    /// What held the sender back for most of alpha, if anything did: the application or the receiver's window.
    pub limited: Option<Limit>,
}

/// What one report (of the flagship) or one acknowledgment (of TCP) tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// Bytes that it acknowledges for the first time.
    pub delivered: u64,
    /// Bytes that are held lost through it.
    pub lost: u64,
    /// Packets that are known through it to have been marked (RFC 3168).
    pub marked: u64,
    /// Bytes in flight behind it: sent, neither acknowledged nor held lost.
    pub in_flight: u64,
    /// Bytes in flight before it.
    pub in_flight_before: u64,
    /// Bytes acknowledged so far, these included.
    pub delivered_total: u64,
    /// What the newest packet that it acknowledges tells of the rate of delivery; `None` when no such packet is news.
    pub sample: Option<DeliverySample>,
    /// A sample of the round trip.
    pub rtt: Option<Duration>,
    /// The smallest round trip known; zero before the first.
    pub rtt_min: Duration,
    /// What held the sender back last.
    pub limited: Option<Limit>,
    /// Loss or a mark that is to be answered: the first in a round trip.
    pub event: Option<CongestionEvent>,
    /// All that was lost before is repaired: the recovery that went on before this report is over. An [`Report::event`] beside it
    /// begins the next.
    pub recovered: bool,
    /// A recovery goes on, or begins: what was sent before the loss is not all acknowledged.
    pub recovering: bool,
}

/// A sample of the delivery rate, as the newest acknowledged packet saw it (draft-ietf-ccwg-bbr 4.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliverySample {
    /// How fast bytes were delivered between its departure and now; `None` when no time lies between.
    pub rate: Option<Bandwidth>,
    /// Bytes that had been acknowledged when it left. At or above the total at the start of a round, a round is over.
    pub prior_delivered: u64,
    /// The application held the sender back when it left, so the path may be faster than the rate.
    pub app_limited: bool,
}

/// What asks for an answer, once a round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionEvent {
    /// Something was lost: a recovery begins (RFC 5681 3.2, RFC 9002 7.3.2).
    Loss,
    /// A packet was marked (RFC 3168 6.1.2).
    Mark,
}

/// Nothing has come back for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silence {
    /// State packets in a row that have had no echo; zero where there are none.
    pub unanswered: u32,
    /// How long ago the oldest of them left, or the newest acknowledgment came.
    pub since: Duration,
    /// Bytes in flight.
    pub in_flight: u64,
    /// A retransmission timeout expires now (RFC 6298 5), this one of a row: 1 for the first. `None` when none does.
    pub timeout: Option<u32>,
}

/// A congestion controller of one direction of one path.
///
/// Whoever writes one implements what it needs to be told, and the answers; [`super::reno`] is a short one.
pub trait Controller: fmt::Debug + Send {
    /// Other bounds are in force from now on.
    fn set_bounds(&mut self, now: Instant, bounds: Bounds);

    /// A round trip was measured otherwise than by an exchange or a report, as in the set-up of a connection.
    fn on_round_trip(&mut self, now: Instant, rtt: Duration);

    /// The echo of a state exchange has come. By default nothing is done.
    fn on_exchange(&mut self, _now: Instant, _exchange: &Exchange) {}

    /// A report has come that acknowledges data or holds some lost; only to a controller on [`super::Clock::Reports`]. By
    /// default nothing is done.
    fn on_report(&mut self, _now: Instant, _report: &Report) {}

    /// Nothing has come back for a while.
    fn on_silence(&mut self, now: Instant, silence: &Silence);

    /// Packets take another path from now on: what was found out no longer holds (RFC 9000 9.4).
    fn on_path_change(&mut self, now: Instant);

    /// The rate at which packets may leave; `None` when the cap in flight alone limits.
    fn pacing_rate(&self) -> Option<Bandwidth>;

    /// How many bytes may be in flight. Nothing leaves while as many are.
    fn in_flight_cap(&self) -> Bytes;

    /// How much should leave back to back at most (draft-ietf-ccwg-bbr 5.6.3: send quantum); `None` leaves that to the sender.
    fn quantum(&self) -> Option<Bytes> {
        None
    }

    /// How far apart state exchanges should leave, where the sender has them.
    fn exchange_period(&self) -> Duration;

    /// What the controller is doing, in a word, for statistics.
    fn phase(&self) -> &'static str;

    /// Writes the controller's gauges.
    fn probe(&self, out: &mut dyn Probe);
}
