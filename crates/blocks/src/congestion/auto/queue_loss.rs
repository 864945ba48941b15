//! Loss that comes with a long queue, and not with a shorter one.
//!
//! Called for every exchange by delay mode, and to learn the depth of the queue. What is lost at random is lost as often with a short queue as
//! with a long one.
//!
//! - A sender alone holds the queue at the target. Beside senders that fill a queue of little more than the target, loss comes when they have
//!   raised it above.
//! - A queue that overflows does so at its longest.
//!
//! Invariant: without an exchange above there is no such loss.

use super::view::View;

/// Exchanges are forgotten over so many seconds.
const MEMORY: f64 = 6.0;
/// So many exchanges with loss above at least, and so many times what is lost below.
const EXCHANGES: f64 = 3.0;
const TIMES: f64 = 3.0;

/// Shipments sent, and exchanges in which some of them were lost.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    shipments: f64,
    losses: f64,
}

/// What was lost above some queue, and below.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct QueueLoss {
    above: Count,
    below: Count,
}

impl QueueLoss {
    /// Counts an exchange; returns whether it lost something above.
    pub(super) fn record(&mut self, view: &View, is_above: bool, has_lost: bool) -> bool {
        let keep = 1.0 - (view.exchange.alpha / MEMORY).min(1.0);
        for count in [&mut self.above, &mut self.below] {
            count.shipments *= keep;
            count.losses *= keep;
        }
        let count = if is_above { &mut self.above } else { &mut self.below };
        count.shipments += view.exchange.shipments;
        // Why exchanges: packets that are lost together, as radio loses them, have one cause.
        count.losses += f64::from(u8::from(has_lost));
        is_above && has_lost
    }

    /// Whether more is lost above than chance explains.
    pub(super) fn is_significant(&self) -> bool {
        // Why one more below: nothing lost among few says little.
        let by_chance = (self.below.losses + 1.0) / self.below.shipments.max(1.0) * self.above.shipments;
        self.above.losses >= EXCHANGES && self.above.losses > TIMES * by_chance
    }
}

#[cfg(test)]
mod tests {
    use super::super::view::Covered;
    use super::*;

    /// Six seconds of exchanges of ten shipments; `queue` and `lost` of the exchange with this number.
    fn after(queue: impl Fn(u32) -> f64, lost: impl Fn(u32) -> bool) -> QueueLoss {
        let mut count = QueueLoss::default();
        for exchange in 0..2_400 {
            let covered = Covered { alpha: 0.0025, shipments: 10.0, ..Covered::default() };
            let is_above = queue(exchange) > 0.011;
            let recorded = count.record(&View { exchange: covered, ..View::default() }, is_above, lost(exchange));
            assert_eq!(recorded, is_above && lost(exchange));
        }
        count
    }

    #[test]
    fn loss_above_the_target_is_significant_and_random_loss_is_not() {
        let wave = |exchange: u32| if exchange % 40 < 20 { 0.009 } else { 0.012 };
        assert!(!after(wave, |_| false).is_significant());
        assert!(!after(wave, |exchange| exchange % 7 == 0).is_significant(), "as much below as above");
        assert!(after(wave, |exchange| exchange % 40 == 30).is_significant());
        assert!(!after(|_| 0.01, |exchange| exchange % 7 == 0).is_significant(), "control never leaves the target");
    }
}
