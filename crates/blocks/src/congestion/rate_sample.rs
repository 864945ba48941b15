//! Delivery rate samples of acknowledged packets.
//!
//! Called by senders when a packet leaves and when one is acknowledged; the samples go into [`super::Report`]s.
//!
//! Invariant: a sample is never above what the path delivered: it takes the longer of the spans in which the packets were sent
//! and acknowledged.
//! Source: draft-ietf-ccwg-bbr 4.1.1, before it draft-cheng-iccrg-delivery-rate-estimation-00, section 3.

use super::DeliverySample;
use segstream_base::{Bandwidth, Instant};

/// The state that is kept with a sent packet.
#[derive(Clone, Copy, Debug, Default)]
pub struct Departure {
    /// When it left.
    pub sent_at: Instant,
    delivered: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    app_limited: bool,
    tx_in_flight: u64,
    lost: u64,
    marked: u64,
}

/// The deliveries of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Deliveries {
    delivered: u64,
    at: Instant,
    first_sent_at: Instant,
    /// Until this many bytes are delivered, samples are application-limited.
    app_limited_until: u64,
    /// Bytes held lost, and packets known to have been marked.
    lost: u64,
    marked: u64,
}

impl Departure {
    /// Others have left with it, after which so many bytes are in flight.
    pub const fn joined(&mut self, in_flight: u64) {
        self.tx_in_flight = in_flight;
    }
}

impl Deliveries {
    /// A packet of `bytes` leaves while `in_flight` are in flight.
    pub const fn depart(&mut self, now: Instant, in_flight: u64, bytes: u64) -> Departure {
        if in_flight == 0 {
            self.first_sent_at = now;
            self.at = now;
        }
        Departure {
            sent_at: now,
            delivered: self.delivered,
            delivered_at: self.at,
            first_sent_at: self.first_sent_at,
            app_limited: self.delivered < self.app_limited_until,
            tx_in_flight: in_flight + bytes,
            lost: self.lost,
            marked: self.marked,
        }
    }

    /// The application had nothing while `in_flight` bytes were in flight and the cap was not reached.
    pub const fn on_app_limited(&mut self, in_flight: u64) {
        self.app_limited_until = self.delivered + in_flight + 1;
    }

    /// This many bytes are delivered.
    pub const fn deliver(&mut self, now: Instant, bytes: u64) {
        self.delivered += bytes;
        self.at = now;
    }

    /// So many bytes are held lost.
    pub const fn lose(&mut self, bytes: u64) {
        self.lost += bytes;
    }

    /// So many packets are known to have been marked.
    pub const fn mark(&mut self, packets: u64) {
        self.marked += packets;
    }

    /// Bytes delivered so far.
    pub const fn total(&self) -> u64 {
        self.delivered
    }

    /// What the packet `departed`, delivered last, has seen.
    pub fn sample(&mut self, departed: &Departure) -> DeliverySample {
        debug_assert!(departed.delivered <= self.delivered && departed.delivered_at <= self.at, "a packet of another connection");
        debug_assert!(departed.first_sent_at <= departed.sent_at);
        self.first_sent_at = departed.sent_at;
        let sending = departed.sent_at.since(departed.first_sent_at);
        let span = sending.max(self.at.since(departed.delivered_at)).as_nanos();
        let bits = u128::from(self.delivered - departed.delivered) * 8;
        let rate = (bits * 1_000_000_000).checked_div(u128::from(span));
        DeliverySample {
            rate: rate.map(|rate| Bandwidth::from_bits_per_second(u64::try_from(rate).unwrap_or(u64::MAX))),
            prior_delivered: departed.delivered,
            app_limited: departed.app_limited,
            tx_in_flight: departed.tx_in_flight,
            lost: self.lost - departed.lost,
            marked: self.marked - departed.marked,
        }
    }
}
