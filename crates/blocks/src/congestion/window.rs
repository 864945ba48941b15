//! A window of whole packets, as the bounds of a sender that counts bytes.
//!
//! Called by the controllers whose laws count packets: [`super::reno`], [`super::cubic`], [`super::bbr`].
//!
//! Why packets inside and bytes outside: RFC 5681 and RFC 9438 grow a window by packets, while a path may carry datagrams of any
//! size. A window is rounded down to whole packets only where it is answered.
//!
//! Invariant: at least one packet may be in flight.

use super::spacing::{RTT_GUESSED, exchange_period};
use super::{Bounds, Report};
use segstream_base::{Bytes, Duration};

/// The window a connection starts with, in packets (RFC 6928).
pub(super) const INITIAL: f64 = 10.0;
/// The least a window is reduced to after a loss (RFC 5681 equation 4).
pub(super) const LEAST: f64 = 2.0;

/// What turns packets into bytes and round trips into the spacing of exchanges.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measure {
    datagram: u64,
    rtt_min: Option<Duration>,
}

impl Measure {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self { datagram: bounds.datagram.get().max(1), rtt_min: None }
    }

    pub(super) fn set_bounds(&mut self, bounds: Bounds) {
        self.datagram = bounds.datagram.get().max(1);
    }

    /// A round trip of set-up.
    pub(super) fn on_round_trip(&mut self, rtt: Duration) {
        self.rtt_min = Some(self.rtt_min.map_or(rtt, |min| min.min(rtt)));
    }

    pub(super) fn on_report(&mut self, report: &Report) {
        if !report.rtt_min.is_zero() {
            self.rtt_min = Some(report.rtt_min);
        }
    }

    pub(super) const fn forget_path(&mut self) {
        self.rtt_min = None;
    }

    /// The size of a packet in bytes.
    pub(super) const fn datagram(&self) -> u64 {
        self.datagram
    }

    /// So many bytes in packets.
    pub(super) fn packets(&self, bytes: u64) -> f64 {
        bytes as f64 / self.datagram as f64
    }

    /// A window of packets as the cap in flight.
    pub(super) fn cap(&self, window: f64) -> Bytes {
        debug_assert!(window.is_finite() && window >= 1.0, "a window of {window} packets");
        Bytes::new((window as u64).max(1).saturating_mul(self.datagram))
    }

    /// The spacing of exchanges for a window of packets each round trip.
    pub(super) fn exchange_period(&self, window: f64) -> Duration {
        let rtt = self.rtt_min.map_or(RTT_GUESSED, Duration::as_secs_f64);
        exchange_period(self.rtt_min, rtt / window.max(1.0))
    }
}
