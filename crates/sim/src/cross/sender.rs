//! The sender of a model TCP: window, pacing, loss recovery and retransmission timeout around a congestion control.
//!
//! Called by [`crate::Simulation`].
//!
//! Invariant: at most a window of packets is under way; lost packets go before new ones.
//! Source: RFC 6675 5 (recovery until all that was sent before it is acknowledged), RFC 6298 5 (the timer), RFC 3168 6.1.2
//! (a mark is answered like a loss, once a round trip).
//!
//! Limit: no tail loss probe, so a burst whose last packets are lost waits for the timer.

use super::congestion::{Acknowledged, Congestion};
use super::packet::{Ack, DATA_BYTES, Data};
use super::rate_sample::Deliveries;
use super::round_trip::RoundTrip;
use super::scoreboard::Scoreboard;
use super::supply::Supply;
use segstream_base::halves::SubmitError;
use segstream_base::halves::{self, Deadline, Probe, Reconfigure, ReconfigureError, Segment, SegmentNumber, SenderCounters, SenderEvent};
use segstream_base::quantity::Remainder;
use segstream_base::{Bytes, Instant};

/// The sender of a model TCP.
#[derive(Clone, Debug)]
pub struct Sender<C> {
    congestion: C,
    supply: Supply,
    markable: bool,
    board: Scoreboard,
    deliveries: Deliveries,
    round_trip: RoundTrip,
    /// While packets are being repaired: until this one is acknowledged.
    recovery: Option<u64>,
    /// Marks are not answered again before this packet is acknowledged.
    marks_from: u64,
    window_limited: bool,
    pace_at: Instant,
    pace_remainder: Remainder,
    /// When something can leave that cannot now.
    wake: Instant,
    timeout_at: Instant,
    counters: SenderCounters,
}

impl<C: Congestion> Sender<C> {
    /// A sender of what `supply` has. With `markable` its packets can be marked instead of dropped.
    pub fn new(congestion: C, supply: Supply, markable: bool) -> Self {
        Self {
            congestion,
            supply,
            markable,
            board: Scoreboard::default(),
            deliveries: Deliveries::default(),
            round_trip: RoundTrip::default(),
            recovery: None,
            marks_from: 0,
            window_limited: false,
            pace_at: Instant::ZERO,
            pace_remainder: Remainder::default(),
            wake: Instant::FAR_FUTURE,
            timeout_at: Instant::FAR_FUTURE,
            counters: SenderCounters::default(),
        }
    }

    /// The congestion control.
    pub const fn congestion(&self) -> &C {
        &self.congestion
    }

    /// Packets under way: sent, neither acknowledged nor held lost.
    pub const fn in_flight(&self) -> u64 {
        self.board.in_flight()
    }

    /// Whether lost packets are being repaired.
    pub const fn is_recovering(&self) -> bool {
        self.recovery.is_some()
    }

    /// Whether a packet can leave now; notes what it waits for if not.
    fn may_send(&mut self, now: Instant) -> bool {
        self.wake = Instant::FAR_FUTURE;
        if self.board.in_flight() >= (self.congestion.window() as u64).max(1) {
            self.window_limited = true;
            return false;
        }
        if !self.board.has_lost() {
            let due = self.supply.due(now);
            if due > now {
                self.window_limited = false;
                self.deliveries.source_was_empty(self.board.in_flight());
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
        if let Some(rate) = self.congestion.pacing() {
            let time = rate.transmit_time(Bytes::new(DATA_BYTES as u64), &mut self.pace_remainder);
            self.pace_at = self.pace_at.max(now) + time;
        }
    }

    /// Loss and marks: at most one answer in a round trip.
    fn answer_congestion(&mut self, now: Instant, lost: u64, marked: bool, in_flight: u64) {
        let first = self.board.first();
        if lost > 0 && self.recovery.is_none() {
            self.recovery = Some(self.board.next());
            self.marks_from = self.board.next();
            self.congestion.on_congestion(now, in_flight);
        } else if marked && self.recovery.is_none() && first >= self.marks_from {
            self.marks_from = self.board.next();
            self.congestion.on_mark(now, in_flight);
        }
    }

    fn set_timer(&mut self, now: Instant) {
        let waits = self.board.in_flight() > 0;
        self.timeout_at = if waits { now + self.round_trip.timeout() } else { Instant::FAR_FUTURE };
    }

    fn time_out(&mut self, now: Instant) {
        let in_flight = self.board.in_flight();
        let again = self.round_trip.expired();
        self.board.lose_all();
        self.recovery = Some(self.board.next());
        self.marks_from = self.board.next();
        self.congestion.on_timeout(now, in_flight, again);
        self.timeout_at = Instant::FAR_FUTURE;
        self.pace_at = now;
    }
}

impl<C: Congestion> halves::Sender for Sender<C> {
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
        self.deliveries.deliver(now, change.acknowledged);
        let rtt = change.departure.map(|departure| now.since(departure.sent_at));
        if let Some(rtt) = rtt {
            self.round_trip.sample(rtt);
        }
        let recovered = self.recovery.is_some_and(|until| self.board.first() >= until);
        if recovered {
            self.recovery = None;
            self.congestion.on_recovered(now);
        }
        self.answer_congestion(now, change.lost, packet.marked, in_flight_before);
        if change.acknowledged > 0 {
            self.round_trip.answered();
            self.set_timer(now);
        }
        let rate = change.departure.and_then(|departure| self.deliveries.rate(&departure));
        self.congestion.on_ack(&Acknowledged {
            now,
            packets: change.acknowledged,
            lost: change.lost,
            rtt,
            rtt_min: self.round_trip.min(),
            in_flight: self.board.in_flight(),
            in_flight_before,
            delivered: self.deliveries.count,
            delivered_before: change.departure.map_or(0, |departure| departure.delivered),
            rate,
            source_limited: change.departure.is_some_and(|departure| departure.source_limited),
            recovering: self.recovery.is_some(),
            window_limited: self.window_limited,
        });
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Data> {
        if !self.may_send(now) {
            return None;
        }
        let idle = self.board.in_flight() == 0;
        let departure = self.deliveries.depart(now, idle);
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
        // RFC 3168 6.1.5: what is sent again is never markable.
        Some(Data { transmission, sequence, markable: self.markable && !again })
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
        out.gauge("window_packets", self.congestion.window());
        out.gauge("in_flight_packets", self.board.in_flight() as f64);
        if let Some(rate) = self.congestion.pacing() {
            out.gauge("rate_bps", rate.bits_per_second() as f64);
        }
    }
}
