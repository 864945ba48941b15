//! The packets of an idle sender: keep-alive and end of stream.
//!
//! Called by the sending half when its queue is empty. Sources: EC 3.2 and 4.2 (such a packet takes a
//! shipment number, so that the receiver can see a gap behind the last data), FC 3.3 step 3.
//!
//! Invariant: behind every burst of data come R + 1 such packets at most a quarter of a round trip later,
//! and one every quarter of a round trip from then on.

use segstream_base::{Duration, Instant};

/// The period while no round trip is known.
const PERIOD_UNKNOWN: Duration = Duration::from_millis(25);
/// The shortest period.
const PERIOD_MIN: Duration = Duration::from_millis(1);

/// The clock of idle packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Idle {
    /// R + 1: how many packets it takes to tell loss from lateness.
    batch: u32,
    /// How many of the batch are left.
    left: u32,
    /// When the next may leave.
    at: Instant,
    /// Whether data have left since the last idle packet.
    busy: bool,
}

impl Idle {
    pub(super) const fn new(reorder: u32) -> Self {
        Self { batch: reorder + 1, left: 1, at: Instant::ZERO, busy: false }
    }

    /// A data packet has left.
    #[inline]
    pub(super) const fn on_data(&mut self) {
        self.busy = true;
    }

    /// The stream has ended: the end-of-stream packet need not wait for the period.
    pub(super) const fn hurry(&mut self, now: Instant) {
        self.busy = true;
        self.at = now;
    }

    /// When the next packet is due, if the sender stays idle.
    #[inline]
    pub(super) const fn at(&self) -> Instant {
        self.at
    }

    /// Whether a packet is due.
    #[inline]
    pub(super) fn due(&mut self, now: Instant) -> bool {
        if self.busy {
            self.busy = false;
            // Why R + 1: only a shipment number R + 1 beyond a lost one tells that it is lost, and behind
            // the last data there are no others.
            self.left = self.batch;
        }
        now >= self.at
    }

    /// A packet has left.
    pub(super) fn on_sent(&mut self, now: Instant, round_trip: Option<Duration>) {
        self.left = self.left.saturating_sub(1);
        if self.left == 0 {
            self.left = 1;
            // FC 3.3 sends one on every burst tick; a smooth rate has no ticks, and a fast one too many.
            self.at = now + round_trip.map_or(PERIOD_UNKNOWN, |trip| trip / 4).max(PERIOD_MIN);
        }
    }
}
