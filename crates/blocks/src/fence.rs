//! Which units of a segment a code protects so that its tolerance holds: the fence.
//!
//! Called by a sender that codes ahead and by the receiver that decodes. An MDS code over all units is all or nothing: it restores every
//! loss or none. Under (W, E, B) it is enough to protect the units that can break the promise: with every (B+1)-th unit present no run is
//! longer than B, and what is lost of the others only has to stay within E.
//!
//! ```text
//!  unit       0  1  2  3  4  5  6  7  8  9 10 11
//!  (W,E,3)    .  .  .  F  .  .  .  F  .  .  .  F     every = 4: between two units F lie three
//! ```
//!
//! Units are counted from the beginning of the segment, behind those that are important, and the count does not restart at windows: so runs
//! across the border of two windows are bounded too, and so is one that ends the segment, which is shorter than `every`.
//!
//! Invariant: with all protected units present, no unit below `important` is missing and no run of missing units is longer than
//! `every - 1`. How many are missing of a window is bounded by its unprotected units only.

use crate::two_state_loss::{LostCount, TwoStateLoss};
use segstream_base::{Tolerance, UnitIndex};

/// The protected units of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fence {
    /// All units below this one are protected.
    pub important: u32,
    /// Of those behind, every so many-th is, at least 1: with 1 all are. 0: none is.
    pub every: u32,
}

impl Fence {
    /// All units are protected.
    pub const ALL: Self = Self { important: 0, every: 1 };

    /// Whether `unit` is protected.
    #[inline]
    pub const fn protects(self, unit: UnitIndex) -> bool {
        unit.0 < self.important || self.every > 0 && (unit.0 - self.important) % self.every == self.every - 1
    }

    /// How many of `units` units are protected.
    pub fn count(self, units: u32) -> u32 {
        let important = self.important.min(units);
        important + (units - important).checked_div(self.every).unwrap_or(0)
    }

    /// The protected ones of `units` units, in ascending order.
    pub fn units(self, units: u32) -> impl Iterator<Item = UnitIndex> {
        let important = self.important.min(units);
        let step = if self.every == 0 { usize::MAX } else { self.every as usize };
        let behind = important.saturating_add(self.every.max(1) - 1)..if self.every == 0 { 0 } else { units };
        (0..important).chain(behind.step_by(step)).map(UnitIndex)
    }

    /// Whether the tolerance holds with all protected units present, whatever else is missing, in segments of `units`.
    pub fn guarantees(self, tolerance: Tolerance, units: u32, important: u32) -> bool {
        let missing = |unit: &UnitIndex| !self.protects(*unit);
        tolerance.clipped_to(units).allows((0..units).map(UnitIndex).filter(missing), important.min(units))
    }
}

/// What is sent ahead of a segment's losses: which units are protected, and by how many repair units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CodeAhead {
    /// The protected units.
    pub fence: Fence,
    /// How many repair units.
    pub repairs: u32,
    /// The probability that the promise is broken all the same; not more than this.
    pub risk: f64,
}

/// A segment, as far as a code has to know it.
#[derive(Clone, Copy, Debug)]
pub struct Promise {
    /// The tolerance, W not longer than the segment.
    pub tolerance: Tolerance,
    /// The first so many units must arrive.
    pub important: u32,
    /// Units of the segment.
    pub units: u32,
    /// Units that share a shipment, and so its fate.
    pub per_shipment: u32,
}

/// The most units of a segment that is coded ahead, and the most repair units. Why: what is calculated grows with their product.
pub const UNITS_MAX: u32 = 4096;
/// See [`UNITS_MAX`].
pub const REPAIRS_MAX: u32 = 128;
/// The most units times E, for the same reason: each of a window's losses up to E has a probability of its own. What is beyond is not coded
/// ahead.
const STEPS_MAX: u64 = UNITS_MAX as u64 * REPAIRS_MAX as u64;

impl Promise {
    /// The cheapest code by which the promise is broken with a probability of at most `risk`, with at most `repairs_max` repair units. If
    /// none reaches that, the one with the lowest probability, if that is at most half of what it is without; otherwise `None`.
    ///
    /// `unit_at` says which unit leaves at a position: neighbours in sending order share a fate under a burst.
    pub fn cheapest_code(
        &self,
        process: TwoStateLoss,
        risk: f64,
        repairs_max: u32,
        unit_at: impl Fn(u32) -> UnitIndex,
    ) -> Option<CodeAhead> {
        let most = repairs_max.min(REPAIRS_MAX);
        if process == TwoStateLoss::NONE
            || most == 0
            || self.units == 0
            || self.units > UNITS_MAX
            || u64::from(self.units) * u64::from(self.tolerance.triplet().1.min(self.units)) > STEPS_MAX && !self.tolerance.is_any()
            || self.tolerance.is_any() && self.important == 0
        {
            return None;
        }
        let order: Vec<UnitIndex> = (0..self.units).map(unit_at).collect();
        let uncoded = self.risk_uncoded(process, &order);
        if uncoded <= risk {
            return None;
        }
        let mut best: Option<CodeAhead> = None;
        for every in self.candidates() {
            let fence = Fence { important: self.important.min(self.units), every };
            let beside = self.risk_beside(process, fence, &order);
            let allowed = best.map_or(most, |best| if best.risk <= risk { best.repairs.saturating_sub(1) } else { most });
            let Some(code) = self.with_fence(process, fence, (risk, uncoded, beside), allowed, &order) else { continue };
            let better = best.is_none_or(|best| code.risk <= risk || code.risk < best.risk);
            if better {
                best = Some(code);
            }
        }
        best.filter(|best| best.risk <= risk || best.risk <= uncoded / 2.0)
    }

    /// Fences that can hold B: wide ones first, since they take the fewest repairs.
    fn candidates(&self) -> impl Iterator<Item = u32> {
        let widest = if self.tolerance.is_any() { 0 } else { self.tolerance.burst().saturating_add(1).min(self.units) };
        // Why halves: between them the cost changes little, and each candidate is calculated anew.
        core::iter::successors(Some(widest), |every| (*every > 1).then_some(every / 2))
    }

    /// The fewest repairs over `fence`, up to `most`, that reach the risk; otherwise those that come nearest.
    fn with_fence(
        &self,
        process: TwoStateLoss,
        fence: Fence,
        (risk, uncoded, beside): (f64, f64, f64),
        most: u32,
        order: &[UnitIndex],
    ) -> Option<CodeAhead> {
        if most == 0 {
            return None;
        }
        let mut lost = LostCount::new(process, most as usize);
        for shipment in order.chunks(self.per_shipment.max(1) as usize) {
            lost.step(shipment.iter().filter(|&&unit| fence.protects(unit)).count());
        }
        let (mut best, mut in_shipment) = (None::<CodeAhead>, 0);
        for repairs in 1..=most {
            in_shipment += 1;
            // Repair units that share a shipment are lost together.
            let whole = in_shipment == self.per_shipment.max(1);
            let mut with = lost.clone();
            with.step(in_shipment as usize);
            if whole {
                (lost, in_shipment) = (with.clone(), 0);
            }
            // Why the smaller: where the code fails, the promise is broken at most as often as it fails, and as it is without.
            let broken = (with.above(repairs as usize).min(uncoded) + beside).min(1.0);
            if best.is_none_or(|best| broken < best.risk) {
                best = Some(CodeAhead { fence, repairs, risk: broken });
            }
            if broken <= risk {
                break;
            }
        }
        best
    }

    /// A bound on the probability that too many of a window are missing although all protected units are present.
    fn risk_beside(&self, process: TwoStateLoss, fence: Fence, order: &[UnitIndex]) -> f64 {
        self.risk_of_windows(process, order, |unit| !fence.protects(unit))
    }

    /// A bound on the probability that the promise is broken without any code.
    fn risk_uncoded(&self, process: TwoStateLoss, order: &[UnitIndex]) -> f64 {
        if self.tolerance.is_reliable() {
            return self.risk_of_any(process, order, |_| true);
        }
        let important = if self.important == 0 { 0.0 } else { self.risk_of_any(process, order, |unit| unit.0 < self.important) };
        // Limit: units of a run lie far apart in sending order when it is strided, and are taken as independent then.
        let run = i32::try_from(self.tolerance.burst().saturating_add(1)).unwrap_or(i32::MAX);
        let in_order = order.windows(2).all(|pair| pair[0] < pair[1]);
        let again = if in_order { 1.0 - 1.0 / process.mean_run() } else { process.rate() };
        let begins = process.rate() * (1.0 - again);
        let runs = if self.tolerance.is_any() { 0.0 } else { f64::from(self.units) * begins * power(again, run - 1) };
        (important + runs + self.risk_of_windows(process, order, |_| true)).min(1.0)
    }

    /// The probability that any of some units is lost.
    fn risk_of_any(&self, process: TwoStateLoss, order: &[UnitIndex], counts: impl Fn(UnitIndex) -> bool) -> f64 {
        let mut lost = LostCount::new(process, 0);
        for shipment in order.chunks(self.per_shipment.max(1) as usize) {
            lost.step(shipment.iter().filter(|&&unit| counts(unit)).count());
        }
        lost.above(0)
    }

    /// The sum over all windows of the probability that more than E of those units that count are lost.
    fn risk_of_windows(&self, process: TwoStateLoss, order: &[UnitIndex], counts: impl Fn(UnitIndex) -> bool) -> f64 {
        let (window, errors, _) = self.tolerance.triplet();
        if self.tolerance.is_any() {
            return 0.0;
        }
        let whole = self.units / window.max(1);
        let of_window = |at: u32| {
            let range = at * window..(at + 1).saturating_mul(window).min(self.units);
            if range.clone().filter(|&unit| counts(UnitIndex(unit))).count() <= errors as usize {
                return 0.0;
            }
            let mut lost = LostCount::new(process, errors as usize);
            for shipment in order.chunks(self.per_shipment.max(1) as usize) {
                lost.step(shipment.iter().filter(|&&unit| range.contains(&unit.0) && counts(unit)).count());
            }
            lost.above(errors as usize)
        };
        // Why the first stands for all: windows differ by where the fence lies in them, by one unit at most.
        let rest = if self.units.is_multiple_of(window.max(1)) { 0.0 } else { of_window(whole) };
        if whole == 0 { rest } else { (f64::from(whole) * of_window(0) + rest).min(1.0) }
    }
}

/// `base` to the power of `exponent`, at least 0, by squaring: `powi` may differ between platforms.
fn power(mut base: f64, mut exponent: i32) -> f64 {
    let mut product = 1.0;
    while exponent > 0 {
        if exponent & 1 == 1 {
            product *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    product
}

#[cfg(test)]
#[path = "fence_tests.rs"]
mod tests;
