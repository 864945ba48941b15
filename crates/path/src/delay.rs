//! Propagation delay and jitter.
//!
//! Called by [`crate::Path`] with the departure of each packet from the bottleneck.
//!
//! The delay is a minimum: jitter is uniform in [0, J] and added to it, so the mean is the delay plus J/2
//! and no packet is ever faster than the delay. (`netem` takes J to both sides and lets packets overtake
//! one another; here only [`crate::ReorderSpec`] reorders.)
//!
//! Invariant: arrivals in order never go backward; a packet whose jitter would let it overtake arrives
//! together with the one before it.

use segstream_base::random::{Random, Seed};
use segstream_base::{Duration, Instant};

/// The delay of one direction.
#[derive(Clone, Debug)]
pub struct Delay {
    constant: Duration,
    jitter: Option<Jitter>,
    last_arrival: Instant,
}

#[derive(Clone, Debug)]
struct Jitter {
    most: Duration,
    random: Random,
    random_of_copies: Random,
}

impl Jitter {
    fn draw(random: &mut Random, most: Duration) -> Duration {
        Duration::from_nanos(random.below(most.as_nanos().saturating_add(1)))
    }
}

impl Delay {
    /// A delay of `constant` and jitter up to `most`, drawn from the streams `jitter.<direction>` and,
    /// for duplicates, `duplicate_jitter.<direction>`.
    pub fn new(constant: Duration, most: Duration, seed: Seed, direction: &str) -> Self {
        let jitter = (!most.is_zero()).then(|| Jitter {
            most,
            random: seed.stream(&format!("jitter.{direction}")),
            random_of_copies: seed.stream(&format!("duplicate_jitter.{direction}")),
        });
        Self { constant, jitter, last_arrival: Instant::ZERO }
    }

    /// The delay of the next packet, jitter included. Drawn once for each packet sent.
    #[inline]
    pub fn draw(&mut self) -> Duration {
        match &mut self.jitter {
            None => self.constant,
            Some(jitter) => self.constant + Jitter::draw(&mut jitter.random, jitter.most),
        }
    }

    /// The delay of a duplicate, which has a jitter of its own.
    pub fn draw_of_copy(&mut self) -> Duration {
        match &mut self.jitter {
            None => self.constant,
            Some(jitter) => self.constant + Jitter::draw(&mut jitter.random_of_copies, jitter.most),
        }
    }

    /// The arrival of a packet that leaves at `departure` and takes `delay`, not before the one in front.
    #[inline]
    pub fn arrive_in_order(&mut self, departure: Instant, delay: Duration) -> Instant {
        self.wait_for(departure + delay);
        self.last_arrival
    }

    /// Lets no later packet arrive in order before `arrival`.
    #[inline]
    pub fn wait_for(&mut self, arrival: Instant) {
        self.last_arrival = self.last_arrival.max(arrival);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_delays_never_below_the_delay_and_never_reorders() {
        let constant = Duration::from_millis(30);
        let most = Duration::from_millis(5);
        let mut delay = Delay::new(constant, most, Seed(1), "forward");
        let mut before = Instant::ZERO;
        for packet in 0..100_000u64 {
            let departure = Instant::from_nanos(packet * 10_000);
            let drawn = delay.draw();
            assert!(drawn >= constant && drawn <= constant + most);
            let arrival = delay.arrive_in_order(departure, drawn);
            assert!(arrival >= before && arrival >= departure + constant && arrival <= departure + constant + most);
            before = arrival;
        }
    }

    #[test]
    fn jitter_has_the_mean_and_the_variance_of_a_uniform_number() {
        let mut delay = Delay::new(Duration::ZERO, Duration::from_millis(12), Seed(2), "forward");
        let n = 200_000;
        let draws: Vec<f64> = (0..n).map(|_| delay.draw().as_millis_f64()).collect();
        let mean = draws.iter().sum::<f64>() / f64::from(n);
        let variance = draws.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / f64::from(n - 1);
        // A uniform number on [0, 12]: mean 6, variance 12, fourth central moment 12^4 / 80 = 259.2.
        assert!((mean - 6.0).abs() < 4.5 * (12.0 / f64::from(n)).sqrt(), "{mean}");
        assert!((variance - 12.0).abs() < 4.5 * ((259.2 - 144.0) / f64::from(n)).sqrt(), "{variance}");
    }
}
