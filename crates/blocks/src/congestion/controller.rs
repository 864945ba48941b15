//! The contract of a congestion controller: its inputs and its outputs.
//!
//! Implemented by every controller of [`super::ALGORITHMS`], and by controllers of users. Called by senders: that of the flagship,
//! which measures its path by state exchanges, and the model TCP of the cross traffic, whose packets are acknowledged one by one.
//!
//! | input | from the flagship | from TCP |
//! |---|---|---|
//! | [`Controller::on_exchange`] | for each state exchange that was echoed | never |
//! | [`Controller::on_report`] | for each report that acknowledges data or declares some lost | for each acknowledgment |
//! | [`Controller::on_silence`] | when a state packet leaves while others are unanswered | when its retransmission timeout expires |
//! | [`Controller::on_path_change`] | after connection migration | never |
//!
//! All bytes are those of whole IP packets. A controller whose window counts packets divides by [`Bounds::datagram`].
//!
//! Why no timer: while anything is in flight, a controller gets an echo or a silence at least once in each
//! [`Controller::exchange_period`], and acts then.
//!
//! Invariant: outputs change only with an input, so a sender may cache them until then.

use core::fmt;
use segstream_base::halves::Probe;
use segstream_base::{Bandwidth, Bytes, Duration, Instant};

/// Bounds of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The lowest rate.
    pub floor: Bandwidth,
    /// The highest rate.
    pub peak: Bandwidth,
    /// The size of a full IP packet.
    pub datagram: Bytes,
}

/// What limited a sender besides its pacing rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The application had nothing to send (RFC 9002 7.8: application-limited).
    Application,
    /// The receiver's flow control window was closed.
    Window,
    /// [`Controller::in_flight_cap`] was reached (RFC 9002 7.8: congestion window fully used).
    Cap,
}

/// One echoed state exchange, compared with the one before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exchange {
    /// When this state packet was sent, by the sender's clock.
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
    /// Shipments declared lost by the receiver in that time.
    pub lost: u64,
    /// Shipments that arrived with a congestion mark in that time.
    pub marked: u64,
    /// Arrival on the receiver's clock less departure on the sender's, in nanoseconds. Only differences mean
    /// something: the offset of the clocks is unknown, and they may drift.
    pub delay: i64,
    /// A fresh sample of the round trip.
    pub rtt: Duration,
    /// What limited the sender for most of alpha, if anything did: the application or the receiver's window.
    pub limited: Option<Limit>,
    /// For how much of alpha it was limited so.
    pub limited_for: Duration,
}

/// One report (of the flagship) or one acknowledgment (of TCP).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Bytes that it newly acknowledges.
    pub delivered: u64,
    /// Packets that it acknowledges for the first time, marked ones included.
    pub packets: u64,
    /// Bytes that are declared lost because of it.
    pub lost: u64,
    /// Newly reported CE marks (RFC 3168).
    pub marked: u64,
    /// Bytes in flight after it: sent, neither acknowledged nor declared lost.
    pub in_flight: u64,
    /// Bytes in flight before it.
    pub in_flight_before: u64,
    /// Bytes acknowledged so far, these included.
    pub delivered_total: u64,
    /// The delivery rate sample of the newest packet that it newly acknowledges; `None` when it acknowledges nothing new.
    pub sample: Option<DeliverySample>,
    /// A sample of the round trip.
    pub rtt: Option<Duration>,
    /// The smallest round trip known; zero before the first.
    pub rtt_min: Duration,
    /// What has held the sender back since the report before: the cap if it was reached at all, else what did last; `None` when
    /// the pacing rate alone did.
    pub limited: Option<Limit>,
    /// A congestion event to respond to: the first loss or mark in a round trip.
    pub event: Option<CongestionEvent>,
    /// The recovery that was in progress before this report is over. A [`Report::event`] of the same report begins the next.
    pub recovered: bool,
    /// A recovery is in progress or begins: not everything that was sent before the loss is acknowledged.
    pub recovering: bool,
}

/// A delivery rate sample of the newest acknowledged packet (draft-ietf-ccwg-bbr 4.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliverySample {
    /// The delivery rate between its departure and now; `None` when no time lies between.
    pub rate: Option<Bandwidth>,
    /// Bytes that had been acknowledged when it was sent. At or above the total at the start of a round, a round is over.
    pub prior_delivered: u64,
    /// The sender was application-limited when it was sent, so the path may be faster than the rate.
    pub app_limited: bool,
    /// Bytes in flight when it had just left (draft-ietf-ccwg-bbr 2.3: RS.tx_in_flight).
    pub tx_in_flight: u64,
    /// Bytes held lost since it left (RS.lost).
    pub lost: u64,
    /// Packets known since it left to have been marked.
    pub marked: u64,
}

/// A congestion event, at most one each round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionEvent {
    /// Something was lost: a recovery begins (RFC 5681 3.2, RFC 9002 7.3.2).
    Loss,
    /// A packet was marked (RFC 3168 6.1.2).
    Mark,
}

/// No feedback has arrived for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silence {
    /// State packets in a row without an echo; zero for a sender without states.
    pub unanswered: u32,
    /// The time since the oldest of them was sent, or since the newest acknowledgment arrived.
    pub since: Duration,
    /// Bytes in flight.
    pub in_flight: u64,
    /// A retransmission timeout expires now (RFC 6298 5), this one of a row: 1 for the first. `None` when none does.
    pub timeout: Option<u32>,
}

/// A congestion controller of one direction of one path.
///
/// A controller implements the inputs that it needs, and all outputs; [`super::bbr`] is an example.
pub trait Controller: fmt::Debug + Send {
    /// The bounds have changed.
    fn set_bounds(&mut self, now: Instant, bounds: Bounds);

    /// A round trip was measured by other means than an exchange or a report, such as set-up.
    fn on_round_trip(&mut self, now: Instant, rtt: Duration);

    /// The echo of a state exchange has arrived. Does nothing by default.
    fn on_exchange(&mut self, _now: Instant, _exchange: &Exchange) {}

    /// A report has arrived that acknowledges data or declares data lost. Only called for [`super::Clock::Reports`]. Does nothing by
    /// default.
    fn on_report(&mut self, _now: Instant, _report: &Report) {}

    /// No feedback has arrived for a while.
    fn on_silence(&mut self, now: Instant, silence: &Silence);

    /// The path has changed: forget what was measured (RFC 9000 9.4).
    fn on_path_change(&mut self, now: Instant);

    /// The pacing rate; `None` when only the in-flight cap limits.
    fn pacing_rate(&self) -> Option<Bandwidth>;

    /// The in-flight cap: how many bytes may be in flight.
    fn in_flight_cap(&self) -> Bytes;

    /// The largest burst to send back to back (draft-ietf-ccwg-bbr 5.6.3: send quantum); `None` leaves that to the sender.
    fn quantum(&self) -> Option<Bytes> {
        None
    }

    /// Whether it answers marks in proportion to their share, as a scalable congestion control does, so that its packets may carry
    /// ECT(1) instead of ECT(0) (RFC 9331 4.3). By default it does not.
    fn is_scalable(&self) -> bool {
        false
    }

    /// The spacing of state exchanges, for senders that have them. Exchanges wait for no pacing, so below three datagram times at the
    /// rate ([`super::exchange_period`]) they take much of it.
    fn exchange_period(&self) -> Duration;

    /// The state of the controller in a word, for statistics.
    fn phase(&self) -> &'static str;

    /// Writes the controller's gauges.
    fn probe(&self, out: &mut dyn Probe);
}
