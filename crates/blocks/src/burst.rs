//! The pacer: burst rate control decides when the next shipment may leave.
//!
//! Called by the sender before and after every shipment. Source: FC 3.3, R = (P, F, L): F bursts a
//! second of L shipments each, paced at the peak P within a burst. The paper ends a burst as soon as the
//! queue is empty, which wastes the rest of it; here what is queued while a burst runs may use what the
//! burst has left, until its end.
//!
//! Time is kept exactly: the ideal departure of a shipment is that of the one before plus its time at P,
//! the part below one nanosecond included, and not the moment the caller came round to sending it. So a
//! late timer costs no rate, up to `catch_up`; beyond that it does, or a stall would end in a flood.
//!
//! Invariant: between two moments no more leaves than P carries in that time plus `catch_up`, and one
//! shipment; a burst has at most L, and the control beyond them that left the last place to data. While the caller is idle no credit
//! accrues.

use core::fmt;
use segstream_base::quantity::Remainder;
use segstream_base::{Bandwidth, Bytes, Duration, Instant};

/// Nanoseconds of a second.
const SECOND: u128 = 1_000_000_000;
/// A full datagram, before any was sent: what every path carries (RFC 9000 14).
const DATAGRAM: Bytes = Bytes::new(1200);

/// A rate specification R = (P, F, L), or a smooth rate P.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RateSpec {
    peak: Bandwidth,
    bursts_per_second: u32,
    burst_shipments: u32,
}

/// Why three numbers are no rate specification.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RateSpecError {
    /// The peak carries nothing.
    PeakZero,
    /// There are no bursts.
    BurstsPerSecondZero {
        /// L, as given.
        burst_shipments: u32,
    },
    /// A burst has no shipments.
    BurstShipmentsZero {
        /// F, as given.
        bursts_per_second: u32,
    },
    /// The bursts do not fit the peak: F > P / (8 L l).
    PeakTooLow {
        /// P, as given.
        peak: Bandwidth,
        /// What the bursts need: A = 8 F L l.
        average: Bandwidth,
        /// l, the size of a datagram.
        datagram: Bytes,
    },
}

impl fmt::Display for RateSpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PeakZero => f.write_str("the peak rate P is 0, so nothing could be sent; give a peak above 0"),
            Self::BurstsPerSecondZero { burst_shipments } => {
                write!(
                    f,
                    "F = 0 bursts per second of L = {burst_shipments} datagrams send nothing; raise F, or give only P for a smooth rate"
                )
            }
            Self::BurstShipmentsZero { bursts_per_second } => {
                write!(
                    f,
                    "F = {bursts_per_second} bursts per second of L = 0 datagrams send nothing; raise L, or give only P for a smooth rate"
                )
            }
            Self::PeakTooLow { peak, average, datagram } => {
                write!(f, "bursts of datagrams of {datagram} need {average}, above the peak of {peak}; raise P, or lower F or L")
            }
        }
    }
}

impl core::error::Error for RateSpecError {}

impl RateSpec {
    /// `bursts_per_second` bursts (F) of `burst_shipments` (L), paced at `peak` (P). Whether they fit the peak
    /// depends on the datagrams: see [`RateSpec::check`].
    ///
    /// # Errors
    /// When one of the three is 0.
    pub const fn new(peak: Bandwidth, bursts_per_second: u32, burst_shipments: u32) -> Result<Self, RateSpecError> {
        if peak.is_zero() {
            Err(RateSpecError::PeakZero)
        } else if bursts_per_second == 0 {
            Err(RateSpecError::BurstsPerSecondZero { burst_shipments })
        } else if burst_shipments == 0 {
            Err(RateSpecError::BurstShipmentsZero { bursts_per_second })
        } else {
            Ok(Self { peak, bursts_per_second, burst_shipments })
        }
    }

    /// An even rate without bursts. At a peak of 0 nothing leaves.
    pub const fn smooth(peak: Bandwidth) -> Self {
        Self { peak, bursts_per_second: 0, burst_shipments: 0 }
    }

    /// Whether anything can leave, and the bursts fit the peak with datagrams of `bytes`: F <= P / (8 L l).
    ///
    /// # Errors
    /// A peak of zero; bursts that do not fit, where the pacer keeps the peak and falls short of F bursts.
    pub fn check(&self, bytes: Bytes) -> Result<(), RateSpecError> {
        if self.peak.is_zero() {
            return Err(RateSpecError::PeakZero);
        }
        let average = self.bursts_need(bytes);
        if average <= self.peak { Ok(()) } else { Err(RateSpecError::PeakTooLow { peak: self.peak, average, datagram: bytes }) }
    }

    /// The average rate A = 8 F L l of datagrams of `bytes`, at most the peak; the peak itself when smooth.
    pub fn average_of(&self, bytes: Bytes) -> Bandwidth {
        if self.is_smooth() { self.peak } else { self.bursts_need(bytes).min(self.peak) }
    }

    /// P.
    pub const fn peak(&self) -> Bandwidth {
        self.peak
    }

    /// F, 0 when smooth.
    pub const fn bursts_per_second(&self) -> u32 {
        self.bursts_per_second
    }

    /// L, 0 when smooth.
    pub const fn burst_shipments(&self) -> u32 {
        self.burst_shipments
    }

    /// Whether there is no burst structure.
    #[inline]
    pub const fn is_smooth(&self) -> bool {
        self.bursts_per_second == 0
    }

    /// 8 F L l.
    fn bursts_need(&self, bytes: Bytes) -> Bandwidth {
        let shipments = u64::from(self.bursts_per_second) * u64::from(self.burst_shipments);
        Bandwidth::from_bits_per_second(shipments.saturating_mul(8).saturating_mul(bytes.get()))
    }
}

/// The burst in which the next shipment leaves; one without end when the rate is smooth.
#[derive(Clone, Copy, Debug)]
struct Burst {
    /// F and L; F is 0 when there are no bursts.
    per_second: u32,
    shipments: u32,
    /// When burst 0 started: all others start a multiple of 1/F later.
    epoch: Instant,
    index: u64,
    start: Instant,
    end: Instant,
    /// Shipments that this burst has used.
    sent: u32,
}

impl Burst {
    fn first(spec: RateSpec, epoch: Instant) -> Self {
        let mut burst = Self {
            per_second: spec.bursts_per_second,
            shipments: spec.burst_shipments,
            epoch,
            index: 0,
            start: Instant::ZERO,
            end: Instant::FAR_FUTURE,
            sent: 0,
        };
        burst.enter(0);
        burst
    }

    /// The burst that follows this one in time when the specification changes to `spec` at `now`. Shipments
    /// used stay used, and a burst to come is no further away than one new period: so neither does a change
    /// give credit, nor does it hold anything up.
    fn changed(self, now: Instant, spec: RateSpec) -> Self {
        if self.per_second == 0 {
            return Self::first(spec, now);
        }
        let one_period_on = Self::first(spec, now).end;
        Self { sent: self.sent, ..Self::first(spec, self.start.min(one_period_on)) }
    }

    /// When burst `index` starts, to the nanosecond, without drift.
    fn start_of(&self, index: u64) -> Instant {
        let after = u128::from(index) * SECOND / u128::from(self.per_second.max(1));
        self.epoch + Duration::from_nanos(u64::try_from(after).unwrap_or(u64::MAX))
    }

    /// The last burst that has started at `at`.
    fn index_at(&self, at: Instant) -> u64 {
        let nanos = u128::from(at.since(self.epoch).as_nanos()) + 1;
        let index = (nanos * u128::from(self.per_second)).saturating_sub(1) / SECOND;
        u64::try_from(index).unwrap_or(u64::MAX)
    }

    fn enter(&mut self, index: u64) {
        if self.per_second != 0 {
            (self.index, self.sent) = (index, 0);
            (self.start, self.end) = (self.start_of(index), self.start_of(index.saturating_add(1)));
        }
    }

    /// Leaves the burst if it is used up or `paced` lies behind it.
    #[inline]
    fn leave_if_over(&mut self, paced: Instant) {
        let over = self.sent >= self.shipments || paced >= self.end;
        if over && self.per_second != 0 {
            self.enter((self.index.saturating_add(1)).max(self.index_at(paced)));
        }
    }
}

/// Says when shipments may leave.
///
/// Ask [`Pacer::ready`] when something is queued and tell [`Pacer::on_sent`]; when nothing is queued tell
/// [`Pacer::on_idle`]. A shipment may be sent without being ready (control that cannot wait); it is
/// charged all the same.
#[derive(Clone, Debug)]
pub struct Pacer {
    /// For how much lateness shipments leave faster than the peak to make up; 2 ms by default.
    pub catch_up: Duration,
    /// `None`: unlimited.
    spec: Option<RateSpec>,
    /// The ideal departure of the next shipment by the peak alone.
    paced: Instant,
    remainder: Remainder,
    burst: Burst,
    idle: bool,
    /// The largest datagram of data under this specification.
    largest: Bytes,
    /// What control has been charged since the last data, while data waited.
    control: Bytes,
}

impl Pacer {
    /// The default of [`Pacer::catch_up`]. Why as much: timers of a millisecond, and a pacing quantum, must cost no
    /// rate. Why no more: it is what leaves at once after a stall.
    pub const CATCH_UP: Duration = Duration::from_millis(2);

    /// A pacer whose first shipment may leave at `now`, when the first burst starts.
    pub fn new(spec: RateSpec, now: Instant) -> Self {
        Self {
            catch_up: Self::CATCH_UP,
            spec: Some(spec),
            paced: now,
            remainder: Remainder::default(),
            burst: Burst::first(spec, now),
            idle: false,
            largest: Bytes::ZERO,
            control: Bytes::ZERO,
        }
    }

    /// A pacer that is always ready.
    pub fn unlimited() -> Self {
        Self { spec: None, ..Self::new(RateSpec::smooth(Bandwidth::ZERO), Instant::ZERO) }
    }

    /// Whether a shipment may leave at `now`.
    #[inline]
    pub fn ready(&mut self, now: Instant) -> bool {
        let Some(spec) = self.spec else { return true };
        if self.idle {
            self.idle = false;
            self.skip_to(now);
        } else if now.since(self.next()) > self.catch_up {
            self.skip_to(now - self.catch_up);
        }
        self.next() <= now && !spec.peak.is_zero()
    }

    /// Whether one of those that are queued may leave at `now`; with none queued, as [`Pacer::on_idle`].
    #[inline]
    pub fn lets_leave(&mut self, now: Instant, is_queued: bool) -> bool {
        if !is_queued {
            self.on_idle(now);
        }
        is_queued && self.ready(now)
    }

    /// A shipment in a datagram of `bytes` has left.
    #[inline]
    pub fn on_sent(&mut self, now: Instant, bytes: Bytes) {
        let Some(spec) = self.spec else { return };
        self.largest = self.largest.max(bytes);
        self.control = Bytes::ZERO;
        self.charge(now, spec, bytes, 1);
    }

    /// Control in a datagram of `bytes` has left, whether it was ready or not, while data waits or not.
    ///
    /// Invariant: while data waits, control takes no more time than a full datagram does before data leaves, and it leaves the last place of a
    /// burst. Why: control is not paced. Where it is due more often than the rate allows, data would wait for ever.
    #[inline]
    pub fn on_control_sent(&mut self, now: Instant, bytes: Bytes, data_waits: bool) {
        let Some(spec) = self.spec else { return };
        let is_last = self.burst.sent.saturating_add(1) >= self.burst.shipments;
        let places = u32::from(!(data_waits && is_last));
        let charged = if data_waits { bytes.min(self.largest.max(DATAGRAM) - self.control) } else { bytes };
        self.control = if data_waits { self.control + charged } else { Bytes::ZERO };
        self.charge(now, spec, charged, places);
    }

    /// Takes the time of `bytes` at P, and so many places of the burst.
    #[inline]
    fn charge(&mut self, now: Instant, spec: RateSpec, bytes: Bytes, places: u32) {
        if self.idle {
            self.idle = false;
            self.skip_to(now);
        }
        if self.paced < self.burst.start {
            self.paced = self.burst.start;
            self.remainder = Remainder::default();
        }
        self.paced += spec.peak.transmit_time(bytes, &mut self.remainder);
        self.burst.sent = self.burst.sent.saturating_add(places);
        self.burst.leave_if_over(self.paced);
        self.debug_assert_burst();
    }

    /// The burst has room for another shipment, and ends after it has started.
    fn debug_assert_burst(&self) {
        let Burst { per_second, shipments, start, end, sent, .. } = self.burst;
        debug_assert!(per_second == 0 || sent < shipments, "{sent} of {shipments} have left in the present burst");
        debug_assert!(start <= end, "a burst from {start:?} to {end:?}");
    }

    /// Ends the burst of the shipment that has just left: the next one leaves with the next burst, and what this one had left is lost
    /// (FC 3.3, step 3). Nothing where the rate is smooth.
    pub fn end_burst(&mut self) {
        // None sent: the shipment was the last of its burst, and the pacer stands at the next.
        if self.burst.sent > 0 {
            self.burst.sent = self.burst.shipments;
            self.burst.leave_if_over(self.paced);
        }
    }

    /// Nothing is queued. Until the next [`Pacer::ready`] or [`Pacer::on_sent`] no credit accrues.
    #[inline]
    pub fn on_idle(&mut self, _now: Instant) {
        // Why not move the departure here: what follows is only known to have been idle when the next
        // shipment is there.
        self.idle = true;
    }

    /// When the next shipment may leave: possibly in the past, never for a peak of 0, and `None` when
    /// unlimited.
    #[inline]
    pub fn next_departure(&self) -> Option<Instant> {
        let spec = self.spec?;
        Some(if spec.peak.is_zero() { Instant::FAR_FUTURE } else { self.next() })
    }

    /// Changes the specification. What has left stays charged: the wait that the last shipment caused is
    /// scaled to the new peak, and shipments of the running burst stay used.
    pub fn set_spec(&mut self, now: Instant, spec: RateSpec) {
        let Some(old) = self.spec else {
            *self = Self { catch_up: self.catch_up, ..Self::new(spec, now) };
            return;
        };
        if old == spec {
            return;
        }
        let wait = u128::from(self.paced.since(now).as_nanos()) * u128::from(old.peak.bits_per_second());
        if self.paced > now {
            let wait = wait.checked_div(u128::from(spec.peak.bits_per_second())).unwrap_or(0);
            self.paced = now + Duration::from_nanos(u64::try_from(wait).unwrap_or(u64::MAX));
        }
        self.remainder = Remainder::default();
        self.burst = self.burst.changed(now, spec);
        self.burst.leave_if_over(self.paced);
        self.largest = Bytes::ZERO;
        self.spec = Some(spec);
    }

    /// The specification in force, `None` when unlimited.
    pub const fn spec(&self) -> Option<RateSpec> {
        self.spec
    }

    /// The average rate A = 8 F L l with l the largest datagram of data under the specification; the peak when
    /// smooth or before anything was sent; `None` when unlimited.
    pub fn average(&self) -> Option<Bandwidth> {
        let spec = self.spec?;
        Some(if self.largest == Bytes::ZERO { spec.peak } else { spec.average_of(self.largest) })
    }

    /// The ideal departure of the next shipment.
    #[inline]
    fn next(&self) -> Instant {
        self.paced.max(self.burst.start)
    }

    /// Gives up the credit of departures before `at`.
    #[inline]
    fn skip_to(&mut self, at: Instant) {
        if at > self.next() {
            self.paced = at;
            self.remainder = Remainder::default();
            if at >= self.burst.end {
                self.burst.enter(self.burst.index_at(at));
            }
        }
    }
}

#[cfg(test)]
#[path = "burst_tests.rs"]
mod tests;
