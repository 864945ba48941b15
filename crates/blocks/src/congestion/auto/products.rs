//! How many products of delivery rate and round trip are in flight where there is noise: fewer after loss.
//!
//! Asked by the controller for the in-flight cap. In noise a short queue cannot be seen before it overflows, and nothing but loss tells that
//! it did. So the cap answers loss as the upper bound of BBR's does (draft-ietf-ccwg-bbr 5.5.10.1), and grows back. Others at the bottleneck
//! that respond to the same losses find room then.
//!
//! Invariant: between [`LEAST`] and [`MOST`].

use super::view::View;
use segstream_base::Instant;

/// BBR's gain. So much is in flight while nothing is lost.
const MOST: f64 = 2.0;
/// However much is lost: where the path pauses, as radio does, all queues overflow.
const LEAST: f64 = 1.25;
/// What remains after a loss of more than this part, beside one and a half times what is ordinary, and how much comes back a round.
const DECREASE: f64 = 0.85;
const LOSS: f64 = 0.03;
const GROWTH: f64 = 0.004;

/// The number of products.
#[derive(Clone, Copy, Debug)]
pub(super) struct Products {
    value: f64,
    decreased_at: Instant,
}

impl Products {
    pub(super) const fn new(now: Instant) -> Self {
        Self { value: MOST, decreased_at: now }
    }

    pub(super) const fn get(&self) -> f64 {
        self.value
    }

    /// How much of the datagrams that may be in flight besides is left: a fourth of them at the least number of products. On a slow path they are the queue.
    pub(super) const fn part(&self) -> f64 {
        0.25 + 0.75 * (self.value - LEAST) / (MOST - LEAST)
    }

    /// Takes an exchange in; `ordinary` is the loss that does not depend on what is sent.
    pub(super) fn record(&mut self, view: &View, ordinary: f64) {
        if view.delay.noise <= 0.0 {
            self.value = MOST;
        } else if view.loss.has_lost && view.loss.fraction > LOSS + 1.5 * ordinary && view.exchange.sent_at > self.decreased_at {
            self.decreased_at = view.now;
            self.value = (self.value * DECREASE).max(LEAST);
        } else {
            self.value = (self.value + GROWTH * view.exchange.alpha / view.delivery.round.max(view.exchange.alpha)).min(MOST);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::view::{Covered, Delay, Delivery, Loss};
    use super::*;
    use segstream_base::Duration;

    /// An exchange of a sixteenth of a round of 40 ms at `at` milliseconds, with noise and so much loss.
    fn view(at: u64, loss: f64) -> View {
        let now = Instant::ZERO + Duration::from_millis(at);
        View {
            now,
            exchange: Covered { sent_at: now, alpha: 0.0025, ..Covered::default() },
            delay: Delay { noise: 0.004, ..Delay::default() },
            delivery: Delivery { round: 0.04, ..Delivery::default() },
            loss: Loss { has_lost: loss > 0.0, fraction: loss, ..Loss::default() },
            ..View::default()
        }
    }

    #[test]
    fn loss_lowers_it_once_a_round_trip_and_it_grows_back() {
        let mut products = Products::new(Instant::ZERO);
        products.record(&view(10, 0.1), 0.0);
        // What left before that was answered tells nothing new.
        let late = view(12, 0.1);
        let sent_at = Instant::ZERO + Duration::from_millis(9);
        products.record(&View { exchange: Covered { sent_at, ..late.exchange }, ..late }, 0.0);
        assert!((products.get() - MOST * DECREASE).abs() < 1e-3, "{}", products.get());
        let rounds = (MOST * (1.0 - DECREASE) / GROWTH).ceil() as u64;
        (0..rounds * 16).for_each(|step| products.record(&view(20 + step * 5 / 2, 0.0), 0.0));
        assert!((products.get() - MOST).abs() < 1e-9, "{}", products.get());
    }

    #[test]
    fn it_stays_within_its_bounds_whatever_is_lost() {
        let mut products = Products::new(Instant::ZERO);
        (1..200).for_each(|step| products.record(&view(step * 10, 0.3), 0.0));
        assert_eq!((products.get(), products.part()), (LEAST, 0.25));
    }

    #[test]
    fn little_loss_ordinary_loss_and_loss_without_noise_change_nothing() {
        let mut products = Products::new(Instant::ZERO);
        products.record(&view(10, 0.01), 0.0);
        products.record(&view(20, 0.1), 0.08);
        products.record(&View { delay: Delay::default(), ..view(30, 0.5) }, 0.0);
        assert_eq!((products.get(), products.part()), (MOST, 1.0));
    }
}
