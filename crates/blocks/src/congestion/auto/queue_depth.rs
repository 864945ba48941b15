//! How long the bottleneck's queue can be, where it overflows below the target or a little above it.
//!
//! Called by the controller for every exchange. A queue that cannot become as long as the target is never too long: it overflows, some per cent
//! are lost for good, and whoever answers loss beside gets nothing. What tells this from random loss is that it comes with the longest
//! queue, and not below. A mark says the same as loss (RFC 3168 5).
//!
//! Invariant: without loss or a mark no depth is known.

use super::longest_queue::LongestQueue;
use super::queue_loss::QueueLoss;
use super::view::View;
use segstream_base::Instant;

/// From this part of the longest queue on loss or a mark may be that of an overflow.
const NEAR: f64 = 0.7;
/// A shorter queue cannot be told: where nothing queues, the longest of what is seen is no queue (a policer).
const LEAST: f64 = 0.001;
/// What is known of the depth doubles in so many seconds without an overflow.
///
/// Why: of several streams at one queue one learns of an overflow first, makes way, and there is no other overflow to tell the rest. So all try
/// a longer queue again, and the fastest loses most.
const DOUBLED_AFTER: f64 = 5.0;
/// After so many doublings it is too long to count.
const DOUBLINGS: f64 = 8.0;

/// The longest queue, what was lost near it and below, and what that has told.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct QueueDepth {
    longest: LongestQueue,
    loss: QueueLoss,
    depth: f64,
    told_at: Option<Instant>,
}

impl QueueDepth {
    /// Takes an exchange in, unless in noise, which would be taken for the queue.
    pub(super) fn record(&mut self, view: &View) {
        if view.delay.noise > 0.0 {
            return;
        }
        self.longest.record(view.delay.longer, view.exchange.alpha);
        let longest = self.longest.get();
        let overflows = self.loss.record(view, view.delay.longer > NEAR * longest, view.loss.has_lost || view.loss.has_marked);
        if overflows && longest > LEAST && self.loss.is_significant() {
            (self.depth, self.told_at) = (longest, Some(view.now));
        }
    }

    /// The longest queue that there is room for in seconds, if an overflow has told it; it grows until the next tells it again.
    pub(super) fn get(&self, now: Instant) -> Option<f64> {
        let doublings = now.since(self.told_at?).as_secs_f64() / DOUBLED_AFTER;
        (doublings < DOUBLINGS).then(|| self.depth * doublings.exp2())
    }
}

#[cfg(test)]
mod tests {
    use super::super::view::{Covered, Delay, Loss};
    use super::*;
    use segstream_base::Duration;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// Three seconds of exchanges of ten shipments, of which a drain takes every tenth below 1 ms; `lost` by number and queue.
    fn after(lost: impl Fn(u64, f64) -> bool) -> QueueDepth {
        let mut depth = QueueDepth::default();
        for exchange in 0..1_200 {
            let longer = if exchange % 10 == 0 { 0.001 } else { 0.006 + 0.0002 * (exchange % 7) as f64 };
            let now = at(exchange * 5 / 2);
            depth.record(&View {
                now,
                exchange: Covered { alpha: 0.0025, shipments: 10.0, ..Covered::default() },
                delay: Delay { longer, ..Delay::default() },
                loss: Loss { has_lost: lost(exchange, longer), ..Loss::default() },
                ..View::default()
            });
        }
        depth
    }

    #[test]
    fn an_overflow_tells_the_depth_and_random_loss_does_not() {
        let depth = after(|exchange, longer| longer > 0.007 && exchange % 3 == 0).get(at(3000)).expect("an overflow");
        assert!((0.0068..0.0075).contains(&depth), "{depth}");
        assert_eq!(after(|exchange, _| exchange % 5 == 0).get(at(3000)), None);
        assert_eq!(after(|_, _| false).get(at(3000)), None);
    }

    #[test]
    fn what_is_known_doubles_in_five_seconds_and_is_forgotten_then() {
        let depth = after(|exchange, longer| longer > 0.007 && exchange % 3 == 0);
        let (first, later) = (depth.get(at(3000)).unwrap(), depth.get(at(8000)).unwrap());
        assert!((later / first - 2.0).abs() < 0.01, "{first} {later}");
        assert_eq!(depth.get(at(60_000)), None);
    }
}
