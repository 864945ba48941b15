//! The connection's interface of the sending half: settings and queries.
//!
//! Called by the connection. Invariant: nothing here decides what is sent; it only changes when, or how much.

use super::{SendHalf, StreamCounters};
use crate::layout::Layout;
use segstream_base::{Bytes, Duration, Instant, SegmentNumber, ShipmentNumber, StreamId};
use segstream_blocks::Histogram;
use segstream_wire::Class;

/// The maximum serialization time, at the rate in force, of a datagram above 1500 bytes.
///
/// Why: the next packet waits for it, and the queue that the congestion controller measures, at least 1 ms at high rates, must not be
/// its own datagram. A quarter of a millisecond holds 65,507 bytes from 2.1 Gbit/s on and jumbo frames from 288 Mbit/s on, and is
/// long enough to make the cost per datagram small.
const DATAGRAM_TIME: Duration = Duration::from_micros(250);
/// An IP packet of this size is used at any rate: it is the MTU of Ethernet.
const UNCAPPED_BYTES: u64 = 1500;

/// For at most this time due state and reports let data leave first.
///
/// Why: data has the lower latency then, and both ends process control while they wait for each other. Why so short: it is negligible to a
/// rate or a window.
const CONTROL_DELAY_MAX: Duration = Duration::from_micros(20);

impl SendHalf {
    /// The class agreed on in set-up, in force at once.
    pub fn set_agreed_class(&mut self, now: Instant, class: Class) {
        self.invalidate_due();
        self.config.class = class;
        self.set_pacing(now);
    }

    /// From the source's time of each segment to when its verdict was known here, in nanoseconds; *unknown* is no verdict.
    pub const fn verdict_times(&self) -> &Histogram {
        &self.verdict_times
    }

    /// The class in force.
    pub const fn class(&self) -> Class {
        self.config.class
    }

    /// Sets the keep-alive interval.
    pub fn set_keep_alive(&mut self, pause: Duration) {
        self.invalidate_due();
        self.config.keep_alive = pause;
    }

    /// Shipments carry at most so many bytes of parts or frames from now on.
    pub fn set_body_bytes(&mut self, bytes: usize) {
        self.config.body_bytes = bytes;
        self.fit_data();
    }

    /// The path is known to carry shipments with so many bytes of parts.
    pub(crate) fn set_pmtu_body_bytes(&mut self, bytes: usize) {
        if self.path.pmtu.body_bytes != Some(bytes) {
            self.path.pmtu.body_bytes = Some(bytes);
            self.fit_data();
        }
    }

    /// Bytes of parts a shipment may carry at present.
    pub(crate) const fn data_bytes(&self) -> usize {
        self.path.pmtu.data_bytes
    }

    /// The size in use follows what the path carries, and the rate.
    pub(super) fn fit_data(&mut self) {
        let least = self.config.body_bytes;
        self.path.pmtu.rate_capped_bytes = self.rate_cap();
        self.path.pmtu.data_bytes = self.path.pmtu.body_bytes.map_or(least, |found| found.min(self.path.pmtu.rate_capped_bytes).max(least));
    }

    /// Bytes of parts that a shipment may sensibly carry at the rate in force.
    pub(crate) const fn rate_capped_bytes(&self) -> usize {
        self.path.pmtu.rate_capped_bytes
    }

    fn rate_cap(&self) -> usize {
        match self.path.pacer.spec() {
            None => usize::MAX,
            Some(spec) if spec.is_smooth() => {
                let packet = spec.peak().bytes_in(DATAGRAM_TIME).max(Bytes::new(UNCAPPED_BYTES));
                usize::try_from(packet.get()).unwrap_or(usize::MAX).saturating_sub(self.config.overhead_bytes)
            }
            // Why: the contract counts shipments, so their size is a part of it.
            Some(_) => self.config.body_bytes,
        }
    }

    /// Whether data waits that the rate lets leave now.
    pub(crate) fn can_send_data(&mut self, now: Instant) -> bool {
        self.has_eligible() && !self.in_flight_cap_reached() && self.path.pacer.ready(now)
    }

    /// Whether data that may leave now goes before control that is due since `due`.
    pub(crate) fn data_precedes_control(&mut self, now: Instant, due: Instant) -> bool {
        now.since(due) < CONTROL_DELAY_MAX && self.can_send_data(now)
    }

    /// Whether there are pending retransmissions.
    pub(crate) const fn has_retransmissions(&self) -> bool {
        self.stream_counts.retransmit > 0
    }

    /// A probe of the datagram size was sent as shipment `number`, `bytes` IP bytes; it is charged to the rate like data.
    pub(crate) fn on_probe_sent(&mut self, now: Instant, number: ShipmentNumber, bytes: u64) {
        self.path.pacer.on_sent(now, Bytes::new(bytes));
        self.path.congestion.exchanges.on_probe(number, bytes);
    }

    /// The probe in shipment `number` has arrived.
    pub(crate) fn on_probe_arrived(&mut self, number: ShipmentNumber) {
        self.path.congestion.exchanges.on_probe_arrived(number);
    }

    /// A state leaves now, however short ago the last one left. For what a peer may ask for that would give us up otherwise.
    pub(crate) fn request_state_now(&mut self, now: Instant) {
        self.invalidate_due();
        self.state_timer.schedule_at(now);
    }

    /// Makes the next state immediate.
    pub fn request_immediate_state(&mut self, now: Instant) {
        self.invalidate_due();
        self.state_timer.schedule_immediate(now);
    }

    /// The smoothed round trip; zero before the first measurement.
    pub fn round_trip(&self) -> Duration {
        self.path.rtt.smoothed().unwrap_or(Duration::ZERO)
    }

    /// The smallest round trip of the last seconds.
    pub fn rtt_min(&self) -> Option<Duration> {
        self.path.rtt.min()
    }

    /// The smoothed round trip.
    pub fn rtt_smoothed(&self) -> Option<Duration> {
        self.path.rtt.smoothed()
    }

    /// The counters of one stream; `None` once it has ended and another one was opened.
    pub fn stream_counters(&self, stream: StreamId) -> Option<StreamCounters> {
        self.streams.get(stream).map(|stream| stream.counters)
    }

    /// How a segment without a verdict lies in units.
    #[inline]
    pub fn segment_layout(&self, stream: StreamId, segment: SegmentNumber) -> Option<Layout> {
        Some(self.streams.get(stream)?.segments.get(segment)?.layout)
    }
}
