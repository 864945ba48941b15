//! What a connection tells the sending half of its surroundings, and what it may look at.
//!
//! Called by the connection. Invariant: nothing here decides what is sent; it only changes when, or how
//! much.

use super::{SendHalf, StreamCounters};
use crate::layout::Layout;
use segstream_base::{Duration, Instant};
use segstream_wire::Class;

impl SendHalf {
    /// The class agreed on in set-up, in force at once.
    pub fn set_agreed_class(&mut self, now: Instant, class: Class) {
        self.stale();
        self.config.class = class;
        self.set_pacing(now);
    }

    /// The class in force.
    pub const fn class(&self) -> Class {
        self.config.class
    }

    /// State is sent this often when there is nothing else to say.
    pub fn set_keep_alive(&mut self, pause: Duration) {
        self.stale();
        self.config.keep_alive = pause;
    }

    /// Shipments carry at most so many bytes of parts or frames from now on.
    pub fn set_body_bytes(&mut self, bytes: usize) {
        self.config.body_bytes = bytes;
    }

    /// The next state is due now.
    pub fn hasten_state(&mut self, now: Instant) {
        self.stale();
        self.clock.hasten(now);
    }

    /// The smoothed round trip; zero before the first measurement.
    pub fn round_trip(&self) -> Duration {
        self.rtt.smoothed().unwrap_or(Duration::ZERO)
    }

    /// The smallest round trip of the last seconds.
    pub fn rtt_min(&self) -> Option<Duration> {
        self.rtt.min()
    }

    /// The smoothed round trip.
    pub fn rtt_smoothed(&self) -> Option<Duration> {
        self.rtt.smoothed()
    }

    /// The counters of one stream.
    pub fn stream_counters(&self, stream: u32) -> Option<StreamCounters> {
        self.streams.get(stream as usize).map(|stream| stream.counters)
    }

    /// How a segment without a verdict lies in units.
    #[inline]
    pub fn segment_layout(&self, stream: u32, segment: u64) -> Option<Layout> {
        Some(self.streams.get(stream as usize)?.get(segment)?.layout)
    }
}
