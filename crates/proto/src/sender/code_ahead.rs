//! Coding ahead: repair units that leave behind a segment before anybody asks for them.
//!
//! Called by the half when a segment begins and when its first pass is over. A stream that names a latency which a round of retransmission
//! would miss gets the cheapest code with which its promise is broken in at most [`RISK`] of the segments, under the losses that the receiver
//! has counted lately, and within a budget. Under a partial tolerance that protects the fence only
//! ([`segstream_blocks::fence`]).
//!
//! Invariant: which units are protected is fixed when the segment begins; the repair units leave last; what the budget does not allow is not
//! sent, nor anything while whole segments wait to be sent.

use super::SendHalf;
use super::repair::SendCode;
use segstream_base::{Bytes, Duration, Instant, Position, SegmentNumber};
use segstream_blocks::fence::{Fence, Promise};
use segstream_blocks::two_state_loss::TwoStateLoss;

/// The promise may be broken in so many segments without a round of retransmission.
///
/// Why not more: the 99th percentile is what people ask for, and a count of 400 segments has four broken ones in one run of seven at 5e-3, in
/// one of thirty at 3e-3.
const RISK: f64 = 3e-3;
/// What a round takes beyond the round trip: the reordering threshold, the report, and the retransmission itself.
const ROUND_EXTRA: Duration = Duration::from_millis(12);

/// What a stream asks of coding ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodingTarget {
    /// From when a segment is submitted to when it is accepted. Where a round of retransmission keeps it nothing is coded ahead.
    pub latency: Duration,
    /// The most repair units for a thousand units of a segment.
    pub budget_permille: u16,
}

impl CodingTarget {
    /// The budget where none is named: 10 %.
    pub const BUDGET_PERMILLE: u16 = 100;
}

impl SendHalf {
    /// The first unit of a segment is about to leave: fixes its code.
    pub(super) fn plan_code(&mut self, now: Instant, place: usize, number: SegmentNumber) {
        let Some(target) = self.streams[place].coding_target else { return };
        let Some(process) = self.loss_estimate(now) else { return };
        if process == TwoStateLoss::NONE || self.has_backlog() || self.round_keeps(target, place, number) {
            return;
        }
        let room = self.path.pmtu.data_bytes;
        let stream = &self.streams[place];
        let Some(segment) = stream.segments.get(number).filter(|segment| segment.has_codable_length() && segment.code.is_none()) else {
            return;
        };
        let (units, order) = (segment.units(), segment.layout.order);
        let fits = u32::try_from(room).unwrap_or(u32::MAX) / segment.layout.unit_bytes.max(1);
        let promise = Promise {
            tolerance: segment.tolerance.in_force,
            important: stream.contract.importance.min(units),
            units,
            per_shipment: fits.clamp(1, segment.tolerance.per_shipment.max(1)),
        };
        let most = (u64::from(units) * u64::from(target.budget_permille.min(1000)) / 1000) as u32;
        let code = promise.cheapest_code(process, RISK, most, |at| order.unit_at(Position(at), units));
        let Some(code) = code.filter(|code| SendCode::can_protect(code.fence, units)) else { return };
        let planned = SendCode::ahead(code.fence, units, code.repairs);
        if let Some(segment) = self.streams[place].segments.get_mut(number) {
            segment.code = Some(Box::new(planned));
        }
    }

    /// The first pass of a segment is over: its planned repair units leave next.
    pub(super) fn release_planned(&mut self, now: Instant, place: usize, number: SegmentNumber) {
        let stream = &mut self.streams[place];
        let released = stream.segments.get_mut(number).and_then(|segment| segment.code.as_mut()).map_or(0, |code| code.release());
        if released > 0 {
            stream.repairs.add(number, released);
            stream.counters.repair_units_ahead += u64::from(released);
            self.counters.repair_units_ahead += u64::from(released);
            // Why: repair units move no frontier. FINISHED in front of them does, as soon as R + 1 of them have arrived: so nobody waits for
            // the next segment to learn that the last unit of this one was lost.
            self.invalidate_due();
            self.state_timer.schedule_immediate(now);
        }
    }

    /// Whether a round of retransmission keeps the latency.
    fn round_keeps(&self, target: CodingTarget, place: usize, number: SegmentNumber) -> bool {
        let Some(round_trip) = self.path.rtt.smoothed() else { return true };
        let bytes = Bytes::new(self.streams[place].segments.get(number).map_or(0, |segment| segment.bytes));
        let sending = self.rate().map_or(Duration::ZERO, |rate| rate.transmit_time(bytes, &mut Default::default()));
        sending + round_trip / 2 + round_trip + ROUND_EXTRA <= target.latency
    }
}

impl SendCode {
    /// Whether a code can be made over `fence` of a segment of `units`.
    pub(super) fn can_protect(fence: Fence, units: u32) -> bool {
        (1..=segstream_wire::repair::PROTECTED_MAX).contains(&fence.count(units))
    }
}
