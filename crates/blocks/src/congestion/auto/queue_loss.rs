//! Loss that comes with a queue: others fill it, and it is too short to show them by its delay.
//!
//! Called by delay mode for every exchange. A sender alone holds the queue at the target, and what it loses is ordinary (random): it
//! comes as often below the target as above. Beside senders that fill a queue of little more than the target, loss comes when they
//! have raised it above.
//!
//! Invariant: without an exchange above the target there is no such loss.

use super::readings::View;

/// The queue is above the target from this part of it on: control leaves it within a tenth.
const ABOVE: f64 = 1.1;
/// Exchanges are forgotten over so many seconds.
const MEMORY: f64 = 6.0;
/// So many exchanges with loss above the target at least, and so many times what is lost below it.
const EXCHANGES: f64 = 3.0;
const TIMES: f64 = 3.0;

/// Shipments sent, and exchanges in which some of them were lost.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    shipments: f64,
    losses: f64,
}

/// What was lost above the target, and below.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct QueueLoss {
    above: Count,
    below: Count,
}

impl QueueLoss {
    /// Counts an exchange; returns whether it lost something with a queue above the target.
    pub(super) fn record(&mut self, view: &View, target: f64) -> bool {
        let keep = 1.0 - (view.alpha / MEMORY).min(1.0);
        for count in [&mut self.above, &mut self.below] {
            count.shipments *= keep;
            count.losses *= keep;
        }
        // Why the newest: the queue is the least of a quarter of the control time, and a short one overflows for less than that.
        let is_above = view.newest > ABOVE * target;
        let count = if is_above { &mut self.above } else { &mut self.below };
        count.shipments += view.shipments;
        // Why exchanges: packets that are lost together, as radio loses them, have one cause.
        count.losses += f64::from(u8::from(view.has_lost));
        is_above && view.has_lost
    }

    /// Whether more is lost above the target than chance explains.
    pub(super) fn is_significant(&self) -> bool {
        // Why one more below: nothing lost among few says little.
        let by_chance = (self.below.losses + 1.0) / self.below.shipments.max(1.0) * self.above.shipments;
        self.above.losses >= EXCHANGES && self.above.losses > TIMES * by_chance
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Six seconds of exchanges of ten shipments; `queue` and `lost` of the exchange with this number.
    fn after(queue: impl Fn(u32) -> f64, lost: impl Fn(u32) -> bool) -> QueueLoss {
        let mut count = QueueLoss::default();
        for exchange in 0..2_400 {
            let view = View {
                alpha: 0.0025,
                shipments: 10.0,
                queue: queue(exchange),
                newest: queue(exchange),
                has_lost: lost(exchange),
                ..View::default()
            };
            let is_above = count.record(&view, 0.01);
            assert_eq!(is_above, queue(exchange) > 0.011 && lost(exchange));
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
