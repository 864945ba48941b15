//! What a congestion control is told, and what it answers.
//!
//! Called by [`super::Sender`]; implemented by [`super::Reno`], [`super::Cubic`] and [`super::Bbr`].
//!
//! Invariant: windows are in packets; a window below one counts as one.

use segstream_base::{Bandwidth, Duration, Instant};

/// What an acknowledgment tells.
#[derive(Clone, Copy, Debug)]
pub struct Acknowledged {
    /// When it came.
    pub now: Instant,
    /// Packets it acknowledges for the first time.
    pub packets: u64,
    /// Packets held lost through it.
    pub lost: u64,
    /// The round trip of the packet that caused it.
    pub rtt: Option<Duration>,
    /// The smallest round trip ever.
    pub rtt_min: Duration,
    /// Packets under way behind it: sent, neither acknowledged nor held lost.
    pub in_flight: u64,
    /// Packets under way before it.
    pub in_flight_before: u64,
    /// Packets acknowledged so far.
    pub delivered: u64,
    /// Packets that had been acknowledged when the packet that caused it was sent.
    pub delivered_before: u64,
    /// How fast packets were delivered between then and now; `None` when no span of a round trip tells.
    pub rate: Option<Bandwidth>,
    /// The source, not the network, was what held the sender back when that was measured.
    pub source_limited: bool,
    /// Lost packets are being repaired.
    pub recovering: bool,
    /// The window was what held the sender back.
    pub window_limited: bool,
}

/// A congestion control.
pub trait Congestion {
    /// Its name, as studies and commands call it.
    const NAME: &'static str;
    /// An acknowledgment has come.
    fn on_ack(&mut self, ack: &Acknowledged);
    /// Packets were held lost for the first time since the last recovery ended. `in_flight` counts the packets under way just
    /// before.
    fn on_congestion(&mut self, now: Instant, in_flight: u64);
    /// A mark has come, the first in a round trip. By default it counts as a loss (RFC 3168).
    fn on_mark(&mut self, now: Instant, in_flight: u64) {
        self.on_congestion(now, in_flight);
    }
    /// All that was lost is repaired.
    fn on_recovered(&mut self, now: Instant);
    /// Nothing came back for a retransmission timeout: all is held lost. `again` when nothing has come since the last one, which
    /// must not lower a threshold twice (RFC 5681 3.1).
    fn on_timeout(&mut self, now: Instant, in_flight: u64, again: bool);
    /// How many packets may be under way.
    fn window(&self) -> f64;
    /// At which rate packets may leave; `None` for at once.
    fn pacing(&self) -> Option<Bandwidth> {
        None
    }
}
