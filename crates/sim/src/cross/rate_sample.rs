//! How fast packets are delivered.
//!
//! Called by [`super::Sender`] when a packet leaves and when one is acknowledged.
//!
//! Invariant: a sample is never above what the path delivered: it takes the longer of the spans in which the packets were sent
//! and acknowledged.
//! Source: draft-cheng-iccrg-delivery-rate-estimation-00, section 3.

use super::packet::DATA_BYTES;
use segstream_base::{Bandwidth, Instant};

/// What a packet keeps from when it left.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Departure {
    pub(super) sent_at: Instant,
    pub(super) delivered: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    pub(super) source_limited: bool,
}

/// The deliveries of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Deliveries {
    pub(super) count: u64,
    at: Instant,
    first_sent_at: Instant,
    /// Until so many packets are delivered, samples tell of the source.
    source_limited_until: u64,
}

impl Deliveries {
    /// A packet leaves; `idle` when nothing is under way.
    pub(super) const fn depart(&mut self, now: Instant, idle: bool) -> Departure {
        if idle {
            self.first_sent_at = now;
            self.at = now;
        }
        Departure {
            sent_at: now,
            delivered: self.count,
            delivered_at: self.at,
            first_sent_at: self.first_sent_at,
            source_limited: self.count < self.source_limited_until,
        }
    }

    /// The source had nothing while `in_flight` packets were under way and the window was open.
    pub(super) const fn source_was_empty(&mut self, in_flight: u64) {
        self.source_limited_until = self.count + in_flight + 1;
    }

    /// So many packets are delivered.
    pub(super) const fn deliver(&mut self, now: Instant, packets: u64) {
        self.count += packets;
        self.at = now;
    }

    /// The rate that the packet `departed`, delivered last, has seen.
    pub(super) fn rate(&mut self, departed: &Departure) -> Option<Bandwidth> {
        self.first_sent_at = departed.sent_at;
        let sending = departed.sent_at.since(departed.first_sent_at);
        let span = sending.max(self.at.since(departed.delivered_at)).as_nanos();
        let bits = u128::from(self.count - departed.delivered) * DATA_BYTES as u128 * 8;
        let rate = (bits * 1_000_000_000).checked_div(u128::from(span))?;
        Some(Bandwidth::from_bits_per_second(u64::try_from(rate).unwrap_or(u64::MAX)))
    }
}
