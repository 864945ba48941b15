//! How a segment lies in units, and its units in sending order.
//!
//! Both ends compute it from the contract, the segment's tolerance and length, and whether it was opened
//! before its length was known. Called by both halves and by the payload store.
//!
//! Invariant: for the same segment both ends get the same layout as soon as either could use it: a whole
//! segment's length travels in each of its parts, and an open segment's order does not need it.

use segstream_base::tolerance::Tolerance;
use segstream_base::{Position, Run, UnitIndex};
use segstream_blocks::interleave::{Interleave, SendingOrder};
use segstream_wire::contract::{Contract, InterleaveChoice};

/// The layout of one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The size of a unit in bytes.
    pub unit_bytes: u32,
    /// The order in which units leave.
    pub order: SendingOrder,
    /// Units, when the length is known.
    pub units: Option<u32>,
    /// Length in bytes, when it is known.
    pub length: Option<u64>,
}

impl Layout {
    /// The layout of a segment of `length` bytes (`None`: not known yet) under `contract`.
    pub fn new(contract: &Contract, tolerance: Tolerance, opened: bool, length: Option<u64>) -> Self {
        let units = length.map(|bytes| u32::try_from(contract.units_of(bytes)).unwrap_or(u32::MAX));
        let interleave = match contract.interleave {
            InterleaveChoice::Auto => Interleave::Auto,
            InterleaveChoice::Off => Interleave::Off,
            InterleaveChoice::Depth(depth) => Interleave::Depth(depth),
        };
        let order = match (opened, units) {
            // A whole segment's order needs its length; until that is known nothing of it has arrived.
            (false, None) => SendingOrder::in_order(),
            (false, Some(units)) => SendingOrder::choose(interleave, tolerance.clipped_to(units), Some(units)),
            (true, _) => SendingOrder::choose(interleave, tolerance, None),
        };
        Self { unit_bytes: contract.unit_bytes, order, units, length }
    }

    /// How many units the mapping of `position` may assume: all of them, or, in an open segment, those up
    /// to the end of the position's block, which is whole or it would not have been sent.
    fn extent(&self, position: Position) -> u32 {
        match self.units {
            Some(units) => units,
            None if self.order.block == 0 => u32::MAX,
            None => (position.0 / self.order.block + 1).saturating_mul(self.order.block),
        }
    }

    /// The units at the positions `first..first + count`.
    #[inline]
    pub fn units_at(&self, first: Position, count: u32) -> impl Iterator<Item = UnitIndex> {
        self.order.units_from(first, count, self.extent(first.saturating_add(count.saturating_sub(1))))
    }

    /// The units at `positions`, of a segment whose units leave in order.
    #[inline]
    pub(crate) fn units_in_order(&self, positions: Run<Position>) -> Run<UnitIndex> {
        debug_assert!(self.order.is_in_order(), "units are taken for positions");
        positions.cast()
    }

    /// The units at `positions` as runs: one run if units leave in order, a run for each unit if they are interleaved.
    pub(crate) fn unit_runs(&self, positions: Run<Position>) -> impl Iterator<Item = Run<UnitIndex>> {
        let in_order = self.order.is_in_order();
        let interleaved = (!in_order).then(|| self.units_at(positions.start(), positions.len()).filter_map(Run::single));
        in_order.then(|| self.units_in_order(positions)).into_iter().chain(interleaved.into_iter().flatten())
    }

    /// How many units the positions below `end` of an open segment take of the window: whole blocks, because the units of a
    /// block that has begun may lie anywhere in it.
    #[inline]
    pub(crate) fn counted(&self, end: Position) -> u64 {
        u64::from(end).next_multiple_of(u64::from(self.order.block.max(1)))
    }

    /// The bytes of `unit`; only the last of a segment may be short.
    #[inline]
    pub fn bytes_of(&self, unit: UnitIndex) -> u32 {
        let start = u64::from(unit) * u64::from(self.unit_bytes);
        match self.length {
            Some(length) => length.saturating_sub(start).min(u64::from(self.unit_bytes)) as u32,
            None => self.unit_bytes,
        }
    }

    /// The payload of the positions `first..first + count` in bytes.
    #[inline]
    pub fn payload_bytes(&self, first: Position, count: u32) -> u32 {
        let full = count.saturating_mul(self.unit_bytes);
        let (Some(units), Some(length)) = (self.units, self.length) else { return full };
        let last = u64::from(units) * u64::from(self.unit_bytes);
        // A length that no window holds has fewer units here than it needs; then no unit is short.
        if last <= length {
            return full;
        }
        let position = if self.order.is_in_order() { Position(units - 1) } else { self.order.position_of(UnitIndex(units - 1), units) };
        if (first..first.saturating_add(count)).contains(&position) { full - (last - length) as u32 } else { full }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_unit_is_short_wherever_interleaving_puts_it() {
        let contract = Contract { unit_bytes: 10, tolerance: Tolerance::new(16, 4, 1).unwrap(), ..Contract::default() };
        let layout = Layout::new(&contract, contract.tolerance, false, Some(155));
        assert_eq!(layout.units, Some(16));
        assert!(!layout.order.is_in_order());
        let sum: u32 = (0..16).map(|position| layout.payload_bytes(Position(position), 1)).sum();
        assert_eq!(sum, 155);
        assert_eq!(layout.payload_bytes(Position(0), 16), 155);
        let short: Vec<UnitIndex> = layout.units_at(Position(0), 16).filter(|&unit| layout.bytes_of(unit) == 5).collect();
        assert_eq!(short, [UnitIndex(15)]);
    }

    #[test]
    fn an_open_segment_is_mapped_block_by_block_before_its_length_is_known() {
        let contract = Contract {
            unit_bytes: 10,
            tolerance: Tolerance::new(16, 4, 2).unwrap(),
            interleave: InterleaveChoice::Depth(8),
            ..Contract::default()
        };
        let open = Layout::new(&contract, contract.tolerance, true, None);
        let known = Layout::new(&contract, contract.tolerance, true, Some(160));
        let units: Vec<UnitIndex> = open.units_at(Position(8), 8).collect();
        assert_eq!(units, known.units_at(Position(8), 8).collect::<Vec<_>>());
        assert!(units.iter().all(|unit| (8..16).contains(&unit.0)));
    }

    #[test]
    fn an_empty_segment_has_one_unit_of_no_bytes() {
        let layout = Layout::new(&Contract::default(), Tolerance::reliable(8), false, Some(0));
        assert_eq!((layout.units, layout.payload_bytes(Position(0), 1)), (Some(1), 0));
    }
}
