//! Which positions of a segment have left, and in which shipment each did last.
//!
//! Owned by the segment, which notes every departure. Whether a position that is requested is lost follows from its last shipment.
//!
//! Invariant: every position below `next` was sent at least once and its last shipment is stored; none from `next` on was.

use segstream_base::{Instant, Position, ShipmentNumber};
use smallvec::SmallVec;

/// The positions of a segment that have left.
#[derive(Debug, Default)]
pub(crate) struct SentPositions {
    /// The next position that has not left yet.
    pub(crate) next: Position,
    /// The last shipment of each position below `next`, low 32 bits.
    pub(super) ships: SmallVec<[u32; 2]>,
    /// The last shipment that carried a unit for the first time, and when it left.
    pub(crate) first_pass_last: Option<ShipmentNumber>,
    pub(crate) first_pass_ended: Instant,
    /// The last shipment that carried any unit.
    pub(crate) last_shipment: Option<ShipmentNumber>,
}

impl SentPositions {
    /// Those of a new segment, which have not left, in the buffer of this one.
    pub(super) fn renewed(&mut self) -> Self {
        let mut ships = core::mem::take(&mut self.ships);
        ships.clear();
        Self { ships, ..Self::default() }
    }

    /// The next `count` positions leave for the first time, in shipment `number`.
    #[inline]
    pub(super) fn on_first_time(&mut self, now: Instant, count: u32, number: ShipmentNumber) {
        self.next += count;
        if count == 1 {
            self.ships.push(number.0 as u32);
        } else {
            self.ships.resize(self.next.0 as usize, number.0 as u32);
        }
        // Why each time: an open segment may turn out later to have ended here.
        self.first_pass_last = Some(number);
        self.first_pass_ended = now;
    }

    /// Positions `first..first + count`, which had left before, leave again in shipment `number`.
    pub(super) fn on_again(&mut self, first: Position, count: u32, number: ShipmentNumber) {
        for ship in self.ships.iter_mut().skip(first.0 as usize).take(count as usize) {
            *ship = number.0 as u32;
        }
    }

    /// Whether the last shipment of `position`, which has left, is lost by the echo and the reordering threshold.
    pub(crate) fn is_lost(&self, position: Position, echo: ShipmentNumber, reorder: u32) -> bool {
        self.ships.get(position.0 as usize).is_some_and(|&ship| is_lost(ship, echo, reorder))
    }
}

/// Whether a shipment, of which the low 32 bits are known, is lost by the echo and the reordering threshold (spec 7.3).
pub(in crate::sender) const fn is_lost(ship: u32, echo: ShipmentNumber, reorder: u32) -> bool {
    // Limit: fewer than 2^31 shipments may be in flight.
    (echo.0 as u32).wrapping_sub(ship) as i32 as i64 > reorder as i64
}
