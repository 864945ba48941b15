//! The sender of a model TCP: window, pacing, loss recovery and retransmission timeout around a congestion controller.
//!
//! Called by the driver of the halves.
//!
//! Invariant: at most a window of packets is in flight; lost packets go before new ones.
//! Source: RFC 6675 5 (recovery until all that was sent before it is acknowledged), RFC 6298 5 (the timer), RFC 3168 6.1.2
//! (a mark is answered like a loss, once a round trip).
//!
//! Limit: no tail loss probe, so a burst whose last packets are lost waits for the timer. A batch is one packet, whatever quantum
//! the controller asks for.

use super::packet::{Ack, DATA_BYTES, Data};
use super::round_trip::RoundTrip;
use super::scoreboard::Scoreboard;
use super::supply::Supply;
use segstream_base::endpoint::Ecn;
use segstream_base::halves::SubmitError;
use segstream_base::halves::{self, Deadline, Probe, Reconfigure, ReconfigureError, Segment, SegmentNumber, SenderCounters, SenderEvent};
use segstream_base::quantity::Remainder;
use segstream_base::{Bandwidth, Bytes, Instant};
use segstream_blocks::congestion::rate_sample::Deliveries;
use segstream_blocks::congestion::{Bounds, CongestionEvent, Controller, Limit, Report, Silence};

/// What bounds a controller here: the size of a packet alone.
pub const BOUNDS: Bounds =
    Bounds { floor: Bandwidth::ZERO, peak: Bandwidth::from_bits_per_second(u64::MAX), datagram: Bytes::new(DATA_BYTES as u64) };

/// The sender of a model TCP.
#[derive(Debug)]
pub struct Sender {
    controller: Box<dyn Controller>,
    supply: Supply,
    ecn: Option<Ecn>,
    board: Scoreboard,
    deliveries: Deliveries,
    round_trip: RoundTrip,
    /// While packets are being repaired: until this one is acknowledged.
    recovery: Option<u64>,
    /// Marks are not answered again before this packet is acknowledged.
    marks_from: u64,
    limited: Option<Limit>,
    pace_at: Instant,
    pace_remainder: Remainder,
    /// When something can leave that cannot now.
    wake: Instant,
    timeout_at: Instant,
    counters: SenderCounters,
}

impl Sender {
    /// A sender of what `supply` has, under a controller that was started with [`BOUNDS`]. Packets that it sends for the first
    /// time carry the codepoint `ecn`; `None` is Not-ECT.
    pub fn new(controller: Box<dyn Controller>, supply: Supply, ecn: Option<Ecn>) -> Self {
        Self {
            controller,
            supply,
            ecn,
            board: Scoreboard::default(),
            deliveries: Deliveries::default(),
            round_trip: RoundTrip::default(),
            recovery: None,
            marks_from: 0,
            limited: None,
            pace_at: Instant::ZERO,
            pace_remainder: Remainder::default(),
            wake: Instant::FAR_FUTURE,
            timeout_at: Instant::FAR_FUTURE,
            counters: SenderCounters::default(),
        }
    }

    /// Whether lost packets are being repaired.
    pub const fn is_recovering(&self) -> bool {
        self.recovery.is_some()
    }

    /// Whether a packet can leave now; notes what it waits for if not.
    fn may_send(&mut self, now: Instant) -> bool {
        self.wake = Instant::FAR_FUTURE;
        if bytes(self.board.in_flight()) >= self.controller.in_flight_cap().get() {
            self.limited = Some(Limit::Cap);
            return false;
        }
        if !self.board.has_lost() {
            let due = self.supply.due(now);
            if due > now {
                self.limited = Some(Limit::Application);
                self.deliveries.on_app_limited(bytes(self.board.in_flight()));
                self.wake = due;
                return false;
            }
        }
        if self.pace_at > now {
            self.wake = self.pace_at;
            return false;
        }
        true
    }

    fn pace(&mut self, now: Instant) {
        if let Some(rate) = self.controller.pacing_rate() {
            let time = rate.transmit_time(Bytes::new(DATA_BYTES as u64), &mut self.pace_remainder);
            self.pace_at = self.pace_at.max(now) + time;
        }
    }

    /// Loss and marks: at most one answer in a round trip.
    fn congestion_event(&mut self, lost: u64, marked: bool) -> Option<CongestionEvent> {
        if self.recovery.is_some() {
            return None;
        }
        if lost > 0 {
            self.recovery = Some(self.board.next());
            self.marks_from = self.board.next();
            return Some(CongestionEvent::Loss);
        }
        let answers = marked && self.board.first() >= self.marks_from;
        if answers {
            self.marks_from = self.board.next();
        }
        answers.then_some(CongestionEvent::Mark)
    }

    fn set_timer(&mut self, now: Instant) {
        let waits = self.board.in_flight() > 0;
        self.timeout_at = if waits { now + self.round_trip.timeout() } else { Instant::FAR_FUTURE };
    }

    fn time_out(&mut self, now: Instant) {
        let in_flight = bytes(self.board.in_flight());
        let since = self.round_trip.timeout();
        let timeout = Some(self.round_trip.expired());
        self.deliveries.lose(in_flight);
        self.board.lose_all();
        self.recovery = Some(self.board.next());
        self.marks_from = self.board.next();
        self.controller.on_silence(now, &Silence { unanswered: 0, since, in_flight, timeout });
        self.timeout_at = Instant::FAR_FUTURE;
        self.pace_at = now;
    }
}

/// This many packets in bytes.
const fn bytes(packets: u64) -> u64 {
    packets * DATA_BYTES as u64
}

impl halves::Sender for Sender {
    type Forward = Data;
    type Feedback = Ack;

    fn submit(&mut self, _now: Instant, _segment: Segment) -> Result<SegmentNumber, SubmitError> {
        Err(SubmitError::Finished)
    }

    fn finish(&mut self, _now: Instant) {}

    fn reconfigure(&mut self, _now: Instant, _change: Reconfigure) -> Result<(), ReconfigureError> {
        Err(ReconfigureError::Unsupported)
    }

    fn handle_feedback(&mut self, now: Instant, packet: &Ack) {
        let in_flight_before = self.board.in_flight();
        let change = self.board.acknowledge(packet);
        self.deliveries.deliver(now, bytes(change.acknowledged));
        self.deliveries.lose(bytes(change.lost));
        self.deliveries.mark(u64::from(packet.marked));
        let rtt = change.departure.map(|departure| now.since(departure.sent_at));
        if let Some(rtt) = rtt {
            self.round_trip.sample(rtt);
        }
        let recovered = self.recovery.is_some_and(|until| self.board.first() >= until);
        if recovered {
            self.recovery = None;
        }
        let event = self.congestion_event(change.lost, packet.marked);
        if change.acknowledged > 0 {
            self.round_trip.answered();
            self.set_timer(now);
        }
        let sample = change.departure.map(|departure| self.deliveries.sample(&departure));
        let report = Report {
            delivered: bytes(change.acknowledged),
            packets: change.acknowledged,
            lost: bytes(change.lost),
            marked: u64::from(packet.marked),
            in_flight: bytes(self.board.in_flight()),
            in_flight_before: bytes(in_flight_before),
            delivered_total: self.deliveries.total(),
            sample,
            rtt,
            rtt_min: self.round_trip.min(),
            limited: self.limited.take(),
            event,
            recovered,
            recovering: self.recovery.is_some(),
        };
        self.controller.on_report(now, &report);
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Data> {
        if !self.may_send(now) {
            return None;
        }
        let departure = self.deliveries.depart(now, bytes(self.board.in_flight()), DATA_BYTES as u64);
        let (transmission, sequence, again) = self.board.send(departure);
        if !again {
            self.supply.take();
        }
        self.pace(now);
        if self.timeout_at == Instant::FAR_FUTURE {
            self.set_timer(now);
        }
        self.counters.packets_sent += 1;
        self.counters.packets_retransmitted += u64::from(again);
        // RFC 3168 6.1.5: a retransmission is Not-ECT; RFC 9331 4.1 lifts that for ECT(1).
        Some(Data { transmission, sequence, ecn: self.ecn.filter(|ecn| !again || *ecn == Ecn::Ect1) })
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        let (at, timer) = if self.wake <= self.timeout_at { (self.wake, "send") } else { (self.timeout_at, "retransmission timeout") };
        (at < Instant::FAR_FUTURE).then_some(Deadline { at, timer })
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.timeout_at <= now {
            self.time_out(now);
        }
    }

    fn poll_event(&mut self) -> Option<SenderEvent> {
        None
    }

    fn counters(&self) -> SenderCounters {
        self.counters
    }

    fn probe(&self, out: &mut dyn Probe) {
        self.controller.probe(out);
        out.gauge("in_flight_packets", self.board.in_flight() as f64);
        if let Some(rate) = self.controller.pacing_rate() {
            out.gauge("rate_bps", rate.bits_per_second() as f64);
        }
    }
}
