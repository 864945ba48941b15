//! A congestion window in packets, and a controller whose only answer it is.
//!
//! Called by the controllers whose laws count packets: [`super::reno`] and [`super::cubic`], which say by a [`WindowLaw`] how the
//! window changes; [`super::prague`], which has a [`Window`] and a rate of its own; [`super::bbr`] and [`super::bbr1`], which use
//! [`PacketUnits`] alone.
//!
//! Why packets inside and bytes outside: RFC 5681 and RFC 9438 grow a window by packets, while a path may carry datagrams of any
//! size. A window is rounded down to whole packets only where it is answered.
//!
//! Invariant: at least one packet may be in flight.

use super::spacing::{RTT_GUESSED, exchange_period};
use super::start_rate::StartRate;
use super::{Bounds, Controller, Report, Silence, Start};
use core::fmt;
use segstream_base::halves::Probe;
use segstream_base::{Bandwidth, Bytes, Duration, Instant};

/// The initial window in packets (RFC 6928).
pub(super) const INITIAL: f64 = 10.0;
/// The smallest window after a loss, in packets (RFC 5681 equation 4).
pub(super) const LEAST: f64 = 2.0;

/// A shorter round trip in seconds is not believed for a rate.
const RTT_LEAST: f64 = 1e-6;

/// Converts between packets and bytes, and between a window and the spacing of exchanges.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketUnits {
    bounds: Bounds,
    rtt_min: Option<Duration>,
    /// The smoothed round trip in seconds.
    rtt_smoothed: Option<f64>,
}

impl PacketUnits {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self { bounds, rtt_min: None, rtt_smoothed: None }
    }

    pub(super) const fn set_bounds(&mut self, bounds: Bounds) {
        self.bounds = bounds;
    }

    /// A round-trip sample of set-up.
    pub(super) fn on_round_trip(&mut self, rtt: Duration) {
        self.rtt_min = Some(self.rtt_min.map_or(rtt, |min| min.min(rtt)));
        self.smooth(rtt);
    }

    pub(super) fn on_report(&mut self, report: &Report) {
        if !report.rtt_min.is_zero() {
            self.rtt_min = Some(report.rtt_min);
        }
        if let Some(rtt) = report.rtt {
            self.smooth(rtt);
        }
    }

    /// RFC 6298 2.3.
    fn smooth(&mut self, rtt: Duration) {
        let rtt = rtt.as_secs_f64();
        self.rtt_smoothed = Some(self.rtt_smoothed.map_or(rtt, |smoothed| smoothed + (rtt - smoothed) / 8.0));
    }

    pub(super) const fn forget_path(&mut self) {
        self.rtt_min = None;
        self.rtt_smoothed = None;
    }

    /// The smoothed round trip in seconds; `None` before the first.
    pub(super) const fn rtt_smoothed(&self) -> Option<f64> {
        self.rtt_smoothed
    }

    /// The size of a packet in bytes.
    pub(super) fn datagram(&self) -> u64 {
        self.bounds.datagram.get().max(1)
    }

    /// `bytes` in packets.
    pub(super) fn packets(&self, bytes: u64) -> f64 {
        bytes as f64 / self.datagram() as f64
    }

    /// The in-flight cap in bytes of a window in packets.
    pub(super) fn cap(&self, window: f64) -> Bytes {
        debug_assert!(window.is_finite() && window >= 1.0, "a window of {window} packets");
        Bytes::new((window as u64).max(1).saturating_mul(self.datagram()))
    }

    /// So many packets each smoothed round trip as a rate within the bounds; `None` before a round trip is known.
    pub(super) fn rate(&self, packets: f64) -> Option<Bandwidth> {
        let rtt = self.rtt_smoothed?.max(RTT_LEAST);
        Some(self.bounded(packets * (self.datagram() * 8) as f64 / rtt))
    }

    /// So many bits a second within the bounds.
    pub(super) fn bounded(&self, bits: f64) -> Bandwidth {
        debug_assert!(!bits.is_nan(), "a rate that is none");
        Bandwidth::from_bits_per_second(bits as u64).max(self.bounds.floor).min(self.bounds.peak)
    }

    /// The spacing of exchanges for a window of packets each round trip.
    ///
    /// Why within the bounds: with a peak far below what the window allows, exchanges would take all of the rate.
    pub(super) fn exchange_period(&self, window: f64) -> Duration {
        let (rtt, bits) = (self.rtt_min.map_or(RTT_GUESSED, Duration::as_secs_f64), (self.datagram() * 8) as f64);
        let rate = self.bounded(window.max(1.0) * bits / rtt.max(RTT_LEAST)).bits_per_second().max(1);
        exchange_period(self.rtt_min, bits / rate as f64)
    }
}

/// A congestion window and its slow start threshold, in packets (RFC 5681 2: cwnd, ssthresh).
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) units: PacketUnits,
    pub(super) size: f64,
    pub(super) threshold: f64,
}

impl Window {
    pub(super) const fn new(units: PacketUnits) -> Self {
        Self { units, size: INITIAL, threshold: f64::INFINITY }
    }

    /// Whether the window is below the slow start threshold.
    pub(super) fn in_slow_start(&self) -> bool {
        self.size < self.threshold
    }

    /// The phase, for statistics.
    pub(super) fn phase(&self) -> &'static str {
        if self.in_slow_start() { "slow_start" } else { "congestion_avoidance" }
    }

    /// Grows by `growth` times what was acknowledged, up to the threshold (RFC 5681 equation 2).
    pub(super) fn slow_start(&mut self, delivered: u64, growth: f64) {
        self.size = (self.size + growth * self.units.packets(delivered)).min(self.threshold);
    }
}

/// How a congestion window changes.
pub(super) trait WindowLaw: fmt::Debug + Default + Send {
    /// A report has arrived.
    fn on_report(&mut self, window: &mut Window, now: Instant, report: &Report);

    /// The retransmission timeout has expired, for the `expiry`-th time in a row, with `in_flight` bytes in flight. The window
    /// is one packet afterwards (RFC 5681 3.1).
    fn on_timeout(&mut self, window: &mut Window, expiry: u32, in_flight: u64);

    /// Windows a round trip at which packets leave; by default nothing is paced.
    fn pacing_gain(&self, _window: &Window) -> Option<f64> {
        None
    }
}

/// The controller of a law. The floor and the peak are the sender's to keep where nothing is paced.
#[derive(Debug)]
pub(super) struct WindowController<L> {
    window: Window,
    law: L,
    start_rate: StartRate,
}

impl<L: WindowLaw> WindowController<L> {
    /// At the start of a connection.
    pub(super) fn new(start: Start) -> Self {
        let window = Window::new(PacketUnits::new(start.bounds));
        Self { window, law: L::default(), start_rate: StartRate::new(start.initial) }
    }
}

impl<L: WindowLaw> Controller for WindowController<L> {
    fn set_bounds(&mut self, _now: Instant, bounds: Bounds) {
        self.window.units.set_bounds(bounds);
    }

    fn on_round_trip(&mut self, _now: Instant, rtt: Duration) {
        self.window.units.on_round_trip(rtt);
        self.start_rate.begin(&mut self.window);
    }

    fn on_report(&mut self, now: Instant, report: &Report) {
        self.window.units.on_report(report);
        self.start_rate.begin(&mut self.window);
        let before = self.window.size;
        self.law.on_report(&mut self.window, now, report);
        if self.start_rate.is_unvalidated() {
            self.window.size = self.window.size.min(before);
        }
        if let Some(size) = self.start_rate.on_report(&self.window.units, report) {
            self.window.size = self.window.size.min(size);
            self.window.threshold = self.window.threshold.min(self.window.size);
        }
    }

    fn on_silence(&mut self, _now: Instant, silence: &Silence) {
        let Some(expiry) = silence.timeout else { return };
        self.law.on_timeout(&mut self.window, expiry, silence.in_flight);
        self.window.size = 1.0;
    }

    fn on_path_change(&mut self, _now: Instant) {
        self.window.units.forget_path();
        *self = Self { window: Window::new(self.window.units), law: L::default(), start_rate: StartRate::Past };
    }

    fn pacing_rate(&self) -> Option<Bandwidth> {
        let gain = self.law.pacing_gain(&self.window)?;
        self.window.units.rate(if self.start_rate.is_unvalidated() { 1.0 } else { gain } * self.window.size)
    }

    fn in_flight_cap(&self) -> Bytes {
        self.window.units.cap(self.window.size)
    }

    fn exchange_period(&self) -> Duration {
        self.window.units.exchange_period(self.window.size)
    }

    fn phase(&self) -> &'static str {
        self.window.phase()
    }

    /// Gauge: `window_packets`.
    fn probe(&self, out: &mut dyn Probe) {
        out.gauge("window_packets", self.window.size);
    }
}
