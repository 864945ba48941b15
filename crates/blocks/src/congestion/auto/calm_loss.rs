//! What was lost while the queue was short, and how.
//!
//! Called by the readings. Such loss is random, in bursts, or that of a policer, and these ask for different answers.
//!
//! Invariant: fractions are between 0 and 1; without shipments nothing is lost.

use super::samples::{Sample, Samples};

/// Loss comes in bursts when fewer than this part of the exchanges have some that would have if each shipment were lost by itself. A policer,
/// which drops of each so many shipments one, makes more of them have some. Of so many shipments some are lost in any case.
const BURSTY: f64 = 0.6;
const SHIPMENTS_MOST: f64 = 1000.0;

/// What was lost while the queue was short.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(test, derive(Default))]
pub(super) struct CalmLoss {
    /// The fraction over two tau, whether so much was lost that it means something, and whether that comes in bursts.
    pub(super) fraction: f64,
    pub(super) is_significant: bool,
    pub(super) is_bursty: bool,
    /// The least fraction of the last two, and of the last four halves of a tau: loss in bursts leaves one out now and then.
    pub(super) least_of_two: f64,
    pub(super) least_of_four: f64,
}

impl CalmLoss {
    /// What was lost while the queue was short.
    pub(super) fn of(samples: &Samples, tau: f64) -> Self {
        let is_calm = |sample: &Sample| sample.calm;
        let sum = samples.sum(2.0 * tau, is_calm);
        let (fraction, is_significant) = (sum.lost / sum.shipments.max(1.0), is_significant(&sum));
        Self {
            fraction,
            is_significant,
            is_bursty: is_significant && is_bursty(samples.recent(2.0 * tau).filter(|sample| is_calm(sample)), fraction),
            least_of_two: least_loss(samples, tau, 2, is_calm),
            least_of_four: least_loss(samples, tau, 4, is_calm),
        }
    }
}

/// The least fraction lost in the newest halves of a tau, of which it takes so many; zero when there are fewer.
pub(super) fn least_loss(samples: &Samples, tau: f64, halves: u32, which: impl Fn(&Sample) -> bool) -> f64 {
    let (mut least, mut missing, mut half) = (f64::INFINITY, halves, Sample::default());
    // Why twice as far: an exchange ends a half late, by as much as itself.
    for sample in samples.recent(tau * f64::from(halves)).filter(|sample| which(sample)) {
        half.alpha += sample.alpha;
        half.shipments += sample.shipments;
        half.lost += sample.lost;
        if half.alpha >= tau / 2.0 {
            least = least.min(half.lost / half.shipments.max(1.0));
            missing -= 1;
            if missing == 0 {
                return least;
            }
            half = Sample::default();
        }
    }
    0.0
}

/// The fraction lost if chance has added two standard deviations to it.
pub(super) fn surely_lost(sum: &Sample) -> f64 {
    (sum.lost - 2.0 * sum.lost.sqrt()).max(0.0) / sum.shipments.max(1.0)
}

/// Whether a fraction lost means something: its uncertainty is a quarter of it, or less when it is large.
fn is_significant(sum: &Sample) -> bool {
    sum.lost >= 20.0 || (sum.lost >= 8.0 && sum.lost > 0.2 * sum.shipments)
}

/// Whether the `fraction` that is lost in these samples, newest first, comes in bursts: in far fewer of those since the first with loss than if
/// each shipment were lost by itself.
fn is_bursty<'a>(samples: impl Iterator<Item = &'a Sample>, fraction: f64) -> bool {
    let (mut with_loss, mut expected, mut expected_since) = (0.0, 0.0, 0.0);
    for sample in samples {
        expected += 1.0 - (1.0 - fraction).powi(sample.shipments.min(SHIPMENTS_MOST) as i32);
        if sample.lost > 0.0 {
            with_loss += 1.0;
            // Why: of a policer that has just been met, what was before says nothing.
            expected_since = expected;
        }
    }
    with_loss < BURSTY * expected_since
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(shipments: f64, lost: f64) -> Sample {
        Sample { shipments, lost, ..Sample::default() }
    }

    /// Whether the loss of these samples, oldest first, comes in bursts.
    fn has_bursts(samples: impl DoubleEndedIterator<Item = Sample>) -> bool {
        let newest_first: Vec<_> = samples.rev().collect();
        let sum = |of: fn(&Sample) -> f64| newest_first.iter().map(of).sum::<f64>();
        is_bursty(newest_first.iter(), sum(|sample| sample.lost) / sum(|sample| sample.shipments))
    }

    #[test]
    fn loss_in_bursts_is_told_from_that_of_a_policer() {
        // 5 %: eight of every four exchanges of 40, or two of each.
        let burst = |exchange: u32| if exchange.is_multiple_of(4) { 8.0 } else { 0.0 };
        assert!(has_bursts((0..32).map(|exchange| sample(40.0, burst(exchange)))));
        assert!(!has_bursts((0..32).map(|_| sample(40.0, 2.0))));
        // Of a policer that was met in the middle, and on a slow path, where an exchange covers three shipments.
        assert!(!has_bursts((0..32).map(|exchange| sample(40.0, if exchange < 16 { 0.0 } else { 4.0 }))));
        assert!(!has_bursts((0..53).map(|exchange| sample(3.0, if exchange % 7 == 3 { 1.0 } else { 0.0 }))));
    }
}
