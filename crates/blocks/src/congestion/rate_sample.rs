//! Delivery-rate samples: how fast packets that were acknowledged went through.
//!
//! Called by senders when a packet leaves and when one is acknowledged; the samples go into [`super::Report`]s.
//!
//! Invariant: a sample is never above what the path delivered: it takes the longer of the spans in which the packets were sent
//! and acknowledged.
//! Source: draft-ietf-ccwg-bbr 4.1.1, before it draft-cheng-iccrg-delivery-rate-estimation-00, section 3.

use super::DeliverySample;
use segstream_base::{Bandwidth, Instant};

/// What a packet keeps from when it left.
#[derive(Clone, Copy, Debug, Default)]
pub struct Departure {
    /// When it left.
    pub sent_at: Instant,
    delivered: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    app_limited: bool,
}

/// The deliveries of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Deliveries {
    delivered: u64,
    at: Instant,
    first_sent_at: Instant,
    /// Until so many bytes are delivered, samples tell of the application.
    app_limited_until: u64,
}

impl Deliveries {
    /// A packet leaves; `idle` when nothing is in flight.
    pub const fn depart(&mut self, now: Instant, idle: bool) -> Departure {
        if idle {
            self.first_sent_at = now;
            self.at = now;
        }
        Departure {
            sent_at: now,
            delivered: self.delivered,
            delivered_at: self.at,
            first_sent_at: self.first_sent_at,
            app_limited: self.delivered < self.app_limited_until,
        }
    }

    /// The application had nothing while `in_flight` bytes were in flight and the cap was not reached.
    pub const fn on_app_limited(&mut self, in_flight: u64) {
        self.app_limited_until = self.delivered + in_flight + 1;
    }

    /// So many bytes are delivered.
    pub const fn deliver(&mut self, now: Instant, bytes: u64) {
        self.delivered += bytes;
        self.at = now;
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
        }
    }
}
