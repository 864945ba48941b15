//! The order in which the units of a segment leave for the first time.
//!
//! Called by the sender for every first shipment, and by the receiver to know which missing unit should
//! have come before one that is here. A path loses bursts, a partial tolerance allows only short runs:
//! sent in strided order, a burst on the path becomes isolated holes. Interleaving is old (RFC 2354);
//! the stride from (W,E,B) of EC 3.1 is ours.
//!
//! A block of n units with stride S leaves column by column: 0, S, 2S, .., 1, 1 + S, .., each column having
//! q = n/S units or one more. Consecutive positions are S units apart, so a lost burst touches one unit in
//! S, and a run can only come from several columns.
//!
//! Invariant: the order is a bijection of `0..units` that depends on block, stride and `units` alone, and
//! maps every block onto itself.

use segstream_base::tolerance::Tolerance;
use segstream_base::{Position, UnitIndex};

/// What the contract of a stream says about the order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Default)]
pub enum Interleave {
    /// Whole segments with a partial tolerance leave strided, all others in order.
    #[default]
    Auto,
    /// Everything leaves in order.
    Off,
    /// Units leave strided within blocks of this many units, of open segments too, which delays them by
    /// as many units.
    Depth(u32),
}

/// Fewer units than these leave in order.
const INTERLEAVED_MIN: u32 = 4;

/// The order of first transmission within a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct SendingOrder {
    /// Units of a block; the last may be shorter. 0: the whole segment is one block.
    pub block: u32,
    /// How many units lie between consecutive positions. 0 and 1: in order.
    pub stride: u32,
}

impl SendingOrder {
    /// Unit 0 first, the last unit last.
    pub const fn in_order() -> Self {
        Self { block: 0, stride: 1 }
    }

    /// The order of a segment of `units`, or of an open segment (`None`).
    ///
    /// `Auto` gives whole segments with a partial tolerance the stride S = ceil(B * W / E), with W no longer
    /// than the segment and S in `2..=units/2`; fewer than 4 units stay in order. Why this stride: of W
    /// consecutive units a column then has about E / B, so B columns together have about E, and they make
    /// runs of at most B. A burst of about B columns, that is `B * units / S = E * units / W` positions, so
    /// leaves runs of at most B and about E holes a window. [`SendingOrder::burst_tolerated`] is the proven
    /// bound; it falls short of `E * units / W` when B does not divide E or is above it.
    ///
    /// `Depth(N)` does the same within blocks of N units; without a partial tolerance the stride is the
    /// root of N, which keeps lost units as far apart as columns are long.
    pub fn choose(interleave: Interleave, tolerance: Tolerance, units: Option<u32>) -> Self {
        match (interleave, units) {
            (Interleave::Off, _) | (Interleave::Auto, None | Some(0..INTERLEAVED_MIN)) => Self::in_order(),
            (Interleave::Auto, Some(units)) if tolerance.is_partial() => Self::strided(0, tolerance_stride(tolerance, units), units),
            (Interleave::Auto, Some(_)) => Self::in_order(),
            (Interleave::Depth(block), _) => {
                let stride = if tolerance.is_partial() { tolerance_stride(tolerance, block) } else { block.isqrt() };
                Self::strided(block, stride, block)
            }
        }
    }

    /// Blocks of `block` units, `length` long, with a stride that gives every column two units or more.
    fn strided(block: u32, stride: u32, length: u32) -> Self {
        if length < INTERLEAVED_MIN { Self::in_order() } else { Self { block, stride: stride.clamp(2, length / 2) } }
    }

    /// The same with the longest stride that is no longer and shares no factor with `every`: then the units of a column, which leave one
    /// after another, are not all of every `every`-th or none.
    #[must_use]
    pub const fn coprime_to(self, every: u32) -> Self {
        let mut stride = self.stride;
        while stride > 2 && greatest_common_divisor(stride, every) > 1 {
            stride -= 1;
        }
        Self { stride, ..self }
    }

    /// Whether units leave in ascending order.
    #[inline]
    pub const fn is_in_order(&self) -> bool {
        self.stride <= 1
    }

    /// The unit that leaves at `position` of a segment of `units`. Positions from `units` on are units of
    /// their own number, which do not exist.
    #[inline]
    pub fn unit_at(&self, position: Position, units: u32) -> UnitIndex {
        let Position(position) = position;
        if self.is_in_order() || position >= units {
            return UnitIndex(position);
        }
        let (start, length) = self.block_of(position, units);
        let (short, long_columns) = (length / self.stride, length % self.stride);
        let at = position - start;
        let in_long = long_columns * (short + 1);
        let (column, row) = if at < in_long {
            (at / (short + 1), at % (short + 1))
        } else {
            // `short` is not 0: with more columns than units all units are in long columns of one.
            let beyond = at - in_long;
            (long_columns + beyond / short.max(1), beyond % short.max(1))
        };
        let unit = start + row * self.stride + column;
        debug_assert!(unit < start + length, "unit {unit} lies outside of its block");
        debug_assert_eq!(self.position_of(UnitIndex(unit), units), Position(position), "two positions have unit {unit}");
        UnitIndex(unit)
    }

    /// The position at which `unit` leaves: the inverse of [`SendingOrder::unit_at`].
    #[inline]
    pub fn position_of(&self, unit: UnitIndex, units: u32) -> Position {
        let UnitIndex(unit) = unit;
        if self.is_in_order() || unit >= units {
            return Position(unit);
        }
        let (start, length) = self.block_of(unit, units);
        let (short, long_columns) = (length / self.stride, length % self.stride);
        let (row, column) = ((unit - start) / self.stride, (unit - start) % self.stride);
        Position(start + column * short + column.min(long_columns) + row)
    }

    /// The units that leave at `count` positions from `position` on, as far as the segment goes. Steps
    /// from one to the next without a division.
    pub fn units_from(&self, position: Position, count: u32, units: u32) -> impl Iterator<Item = UnitIndex> + use<> {
        let left = count.min(units.saturating_sub(position.0));
        let (start, length) = if left == 0 { (0, 0) } else { self.block_of(position.0, units) };
        let UnitIndex(unit) = self.unit_at(position, units);
        let stride = self.stride.max(1);
        let column = if self.is_in_order() { 0 } else { (unit - start) % stride };
        Walk { block: if self.block == 0 { units } else { self.block }, stride, units, start, length, column, unit, left }
    }

    /// How many consecutive positions of a segment of `units` may be lost, wherever they are, so that the
    /// tolerance surely allows the holes. Important units are not considered.
    ///
    /// A loss of up to min(E, B) is always allowed. For one block with stride S > B, both of these hold:
    ///
    /// - Runs. Let every column have at least q units. A burst that makes a run of B + 1 in one row of S
    ///   units covers B - 1 whole columns, the end of one from that row on and the start of another up to
    ///   that row: more than Bq positions. A run that goes on from the last column into the next row needs
    ///   all S columns: Bq positions or more if S = B + 1, more than Bq + 1 if S is larger. So Bq positions
    ///   are allowed, and Bq - 1 if S = B + 1.
    /// - Windows. A window has at most t = ceil(W/S) units in a column, one after another in sending order,
    ///   and from one column to the k-th after it their first positions are at least kq - 1 apart. E + 1 of
    ///   them lie in at least j + 1 columns, j = floor(E/t), hence at least j(q - t) + E positions apart,
    ///   first and last included. So one position less is allowed, and E always.
    pub fn burst_tolerated(&self, tolerance: Tolerance, units: u32) -> u32 {
        if tolerance.is_any() {
            return units;
        }
        let tolerance = tolerance.clipped_to(units);
        let (errors, burst) = (tolerance.errors(), tolerance.burst());
        let least = errors.min(burst).min(units);
        let one_block = self.block == 0 || self.block >= units;
        if self.is_in_order() || !one_block || self.stride <= burst || least == 0 {
            return least;
        }
        let q = units / self.stride;
        let by_runs = burst.saturating_mul(q) - u32::from(self.stride == burst + 1 && q > 0);
        let in_column = tolerance.window().div_ceil(self.stride);
        let apart = (errors / in_column).saturating_mul(q.saturating_sub(in_column));
        let by_windows = errors.saturating_add(apart.saturating_sub(1));
        by_runs.min(by_windows).max(least).min(units)
    }

    /// Start and length of the block that holds `number` (a unit or a position, which share blocks).
    #[inline]
    const fn block_of(&self, number: u32, units: u32) -> (u32, u32) {
        if self.block == 0 || self.block >= units {
            return (0, units);
        }
        let start = number - number % self.block;
        let left = units - start;
        (start, if self.block < left { self.block } else { left })
    }
}

const fn greatest_common_divisor(mut one: u32, mut other: u32) -> u32 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}

/// S = ceil(B * W / E) for a segment or block of `units`; not yet clamped.
fn tolerance_stride(tolerance: Tolerance, units: u32) -> u32 {
    let tolerance = tolerance.clipped_to(units);
    let product = u64::from(tolerance.burst()) * u64::from(tolerance.window());
    // `errors` is not 0: the tolerance is partial.
    u32::try_from(product.div_ceil(u64::from(tolerance.errors().max(1)))).unwrap_or(u32::MAX)
}

/// The state of [`SendingOrder::units_from`].
#[derive(Clone, Debug)]
struct Walk {
    block: u32,
    stride: u32,
    units: u32,
    /// The running block.
    start: u32,
    length: u32,
    /// The running column of it.
    column: u32,
    /// The unit that comes next.
    unit: u32,
    left: u32,
}

impl Iterator for Walk {
    type Item = UnitIndex;

    #[inline]
    fn next(&mut self) -> Option<UnitIndex> {
        self.left = self.left.checked_sub(1)?;
        let unit = self.unit;
        if self.start + self.length - unit > self.stride {
            self.unit = unit + self.stride;
        } else if self.column + 1 < self.stride.min(self.length) {
            self.column += 1;
            self.unit = self.start + self.column;
        } else {
            self.start += self.length;
            self.length = self.block.min(self.units - self.start);
            self.column = 0;
            self.unit = self.start;
        }
        Some(UnitIndex(unit))
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left as usize, Some(self.left as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tolerance(window: u32, errors: u32, burst: u32) -> Tolerance {
        Tolerance::new(window, errors, burst).unwrap()
    }

    fn order_of(order: SendingOrder, units: u32) -> Vec<u32> {
        (0..units).map(|position| order.unit_at(Position(position), units).0).collect()
    }

    #[test]
    fn columns_leave_one_after_another() {
        assert_eq!(order_of(SendingOrder { block: 0, stride: 4 }, 10), [0, 4, 8, 1, 5, 9, 2, 6, 3, 7]);
        assert_eq!(order_of(SendingOrder { block: 4, stride: 2 }, 11), [0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9]);
        assert_eq!(order_of(SendingOrder { block: 8, stride: 4 }, 11), [0, 4, 1, 5, 2, 6, 3, 7, 8, 9, 10]);
        assert_eq!(order_of(SendingOrder::in_order(), 3), [0, 1, 2]);
    }

    #[test]
    fn the_order_follows_the_contract() {
        let partial = tolerance(1024, 5, 1);
        let order = |block, stride| SendingOrder { block, stride };
        let cases = [
            (Interleave::Auto, partial, Some(1024), order(0, 205)),
            (Interleave::Auto, partial, Some(10_240), order(0, 205)),
            (Interleave::Auto, partial, Some(100), order(0, 20)),
            (Interleave::Auto, partial, Some(4), order(0, 2)),
            (Interleave::Auto, partial, Some(3), SendingOrder::in_order()),
            (Interleave::Auto, partial, Some(0), SendingOrder::in_order()),
            (Interleave::Auto, partial, None, SendingOrder::in_order()),
            (Interleave::Auto, tolerance(64, 1, 64), Some(u32::MAX), order(0, 4096)),
            (Interleave::Auto, tolerance(u32::MAX, 1, u32::MAX), Some(u32::MAX), order(0, u32::MAX / 2)),
            (Interleave::Auto, Tolerance::reliable(64), Some(64), SendingOrder::in_order()),
            (Interleave::Auto, Tolerance::any(64), Some(64), SendingOrder::in_order()),
            (Interleave::Off, partial, Some(1024), SendingOrder::in_order()),
            (Interleave::Depth(64), partial, None, order(64, 13)),
            (Interleave::Depth(64), Tolerance::reliable(1), Some(1024), order(64, 8)),
            (Interleave::Depth(3), partial, None, SendingOrder::in_order()),
            (Interleave::Depth(0), partial, None, SendingOrder::in_order()),
        ];
        for (interleave, tolerance, units, expected) in cases {
            assert_eq!(SendingOrder::choose(interleave, tolerance, units), expected, "{interleave:?} {tolerance} {units:?}");
        }
    }

    #[test]
    fn the_bound_is_near_what_the_tolerance_can_bear() {
        let cases = [((1024, 5, 1), 1024, 4), ((1024, 5, 1), 10_240, 48), ((64, 4, 2), 4096, 255), ((256, 8, 4), 256, 8)];
        for ((w, e, b), units, bound) in cases {
            let t = tolerance(w, e, b);
            let order = SendingOrder::choose(Interleave::Auto, t, Some(units));
            assert_eq!(order.burst_tolerated(t, units), bound, "({w},{e},{b}) of {units}");
            assert_eq!(SendingOrder::in_order().burst_tolerated(t, units), e.min(b));
        }
    }

    #[test]
    fn numbers_beyond_the_segment_do_not_panic() {
        let order = SendingOrder { block: 7, stride: 3 };
        assert_eq!((order.unit_at(Position(9), 9), order.position_of(UnitIndex(u32::MAX), 9)), (UnitIndex(9), Position(u32::MAX)));
        assert_eq!(order.units_from(Position(9), 5, 9).count(), 0);
        assert_eq!(order.units_from(Position(0), 5, 0).count(), 0);
        let huge = SendingOrder { block: 0, stride: u32::MAX / 2 };
        assert_eq!(
            huge.units_from(Position(u32::MAX - 2), 9, u32::MAX).collect::<Vec<_>>(),
            [UnitIndex(u32::MAX / 2 - 1), UnitIndex(u32::MAX - 2)]
        );
    }

    fn lost(order: SendingOrder, units: u32, from: u32, count: u32) -> Vec<UnitIndex> {
        let mut holes: Vec<UnitIndex> = order.units_from(Position(from), count, units).collect();
        holes.sort_unstable();
        holes
    }

    fn partial() -> impl Strategy<Value = Tolerance> {
        (2u32..120, 1u32..12, 1u32..12).prop_map(|(w, e, b)| tolerance(w, e.min(w), b.min(w))).prop_filter("partial", |t| t.is_partial())
    }

    proptest! {
        #[test]
        fn every_order_is_a_bijection_that_keeps_blocks(block in 0u32..70, stride in 0u32..90, units in 0u32..200) {
            let order = SendingOrder { block, stride };
            let mut seen = vec![false; units as usize];
            for position in Position::FIRST.up_to(Position(units)) {
                let unit = order.unit_at(position, units);
                prop_assert!(unit.0 < units && !seen[unit.0 as usize], "{position} gives {unit}");
                seen[unit.0 as usize] = true;
                prop_assert_eq!(order.position_of(unit, units), position);
                prop_assert!(block == 0 || unit.0 / block == position.0 / block, "a unit left its block");
            }
        }

        #[test]
        fn walking_is_looking_up(block in 0u32..70, stride in 0u32..90, units in 0u32..200, from in 0u32..210, count in 0u32..210) {
            let order = SendingOrder { block, stride };
            let walked: Vec<UnitIndex> = order.units_from(Position(from), count, units).collect();
            let end = from.saturating_add(count).min(units);
            let looked: Vec<UnitIndex> = (from..end).map(|position| order.unit_at(Position(position), units)).collect();
            prop_assert_eq!(walked, looked);
        }

        #[test]
        fn a_burst_within_the_bound_keeps_the_promise_wherever_it_falls(t in partial(), units in 1u32..400) {
            let order = SendingOrder::choose(Interleave::Auto, t, Some(units));
            let bound = order.burst_tolerated(t, units);
            prop_assert!(bound >= t.errors().min(t.burst()).min(units));
            for from in 0..units {
                let holes = lost(order, units, from, bound);
                prop_assert!(t.allows(holes.iter().copied(), 0), "{bound} from {from} leave {holes:?}");
            }
        }

        #[test]
        fn the_bound_holds_for_any_stride_and_block(t in partial(), units in 1u32..200, stride in 0u32..120, block in 0u32..250) {
            let order = SendingOrder { block, stride };
            let bound = order.burst_tolerated(t, units);
            for from in 0..units {
                prop_assert!(t.allows(lost(order, units, from, bound).into_iter(), 0), "{bound} from {from}");
            }
        }
    }
}
