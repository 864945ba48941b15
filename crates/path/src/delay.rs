//! Propagation delay and its variation.
//!
//! Called by [`crate::Path`] with the departure of each packet from the bottleneck.
//!
//! A packet waits for its aggregate, then for the medium of a wireless hop, and then travels: for the constant delay, or
//! that of the step it leaves in, plus uniform jitter. The delay is a minimum: uniform jitter is in [0, J] and added to it, so
//! the mean is the delay plus J/2 and no packet is ever faster than the delay. (`netem` takes J to both sides and lets
//! packets overtake one another; here only [`crate::ReorderSpec`] reorders.)
//!
//! Limit: behind a step to a shorter delay the packets of the new route wait for those of the old one, where a real network
//! may let them overtake.
//!
//! Invariant: arrivals in order never go backward; a packet whose jitter would let it overtake arrives
//! together with the one before it.

use crate::aggregate::Aggregate;
use crate::config::PathConfig;
use crate::delay_steps::DelaySteps;
use crate::jitter::{Jitter, Medium};
use crate::spec_error::SpecError;
use segstream_base::random::{Random, Seed};
use segstream_base::{Duration, Instant};

/// The delay of one direction.
#[derive(Clone, Debug)]
pub struct Delay {
    constant: Duration,
    uniform: Option<Uniform>,
    /// Why boxed: most paths have none of it.
    varied: Option<Box<Varied>>,
    last_arrival: Instant,
}

#[derive(Clone, Debug)]
struct Uniform {
    most: Duration,
    random: Random,
    random_of_copies: Random,
}

/// What changes the delay of packets by when they leave.
#[derive(Clone, Debug)]
struct Varied {
    aggregate: Option<Aggregate>,
    medium: Option<Medium>,
    steps: DelaySteps,
}

impl Uniform {
    fn draw(random: &mut Random, most: Duration) -> Duration {
        Duration::from_nanos(random.below(most.as_nanos().saturating_add(1)))
    }
}

impl Delay {
    /// The delay that `config` describes. Uniform jitter is drawn from the streams `jitter.<direction>` and, for duplicates,
    /// `duplicate_jitter.<direction>`.
    ///
    /// # Errors
    /// As [`Jitter::check`].
    pub fn new(config: &PathConfig, seed: Seed, direction: &str) -> Result<Self, SpecError> {
        config.jitter.check()?;
        let uniform = match config.jitter {
            Jitter::Uniform(most) if !most.is_zero() => Some(Uniform {
                most,
                random: seed.stream(&format!("jitter.{direction}")),
                random_of_copies: seed.stream(&format!("duplicate_jitter.{direction}")),
            }),
            _ => None,
        };
        let medium = match config.jitter {
            Jitter::Wifi(mean) => Some(Medium::new(mean, seed, direction)),
            _ => None,
        };
        let aggregate = (!config.aggregate.is_zero()).then(|| Aggregate::new(config.aggregate, seed, direction));
        let varies = medium.is_some() || aggregate.is_some() || !config.delay_steps.is_none();
        let varied = varies.then(|| Box::new(Varied { aggregate, medium, steps: config.delay_steps.clone() }));
        Ok(Self { constant: config.delay, uniform, varied, last_arrival: Instant::ZERO })
    }

    /// The uniform jitter of the next packet. Drawn once for each packet sent.
    #[inline]
    pub fn draw(&mut self) -> Duration {
        self.uniform.as_mut().map_or(Duration::ZERO, |uniform| Uniform::draw(&mut uniform.random, uniform.most))
    }

    /// That of a duplicate, which has a jitter of its own.
    pub fn draw_of_copy(&mut self) -> Duration {
        self.uniform.as_mut().map_or(Duration::ZERO, |uniform| Uniform::draw(&mut uniform.random_of_copies, uniform.most))
    }

    /// The arrival of a packet that leaves the bottleneck at `departure` with `jitter` drawn for it, not before the one in
    /// front. Departures never go backward.
    #[inline]
    pub fn arrive_in_order(&mut self, departure: Instant, jitter: Duration) -> Instant {
        let arrival = match &mut self.varied {
            None => departure + (self.constant + jitter),
            Some(varied) => varied.arrival(departure, self.constant) + jitter,
        };
        self.wait_for(arrival);
        self.last_arrival
    }

    /// Lets no later packet arrive in order before `arrival`.
    #[inline]
    pub fn wait_for(&mut self, arrival: Instant) {
        self.last_arrival = self.last_arrival.max(arrival);
    }

    /// The delay, without jitter, of what leaves at `at`.
    pub fn at(&self, at: Instant) -> Duration {
        self.varied.as_ref().and_then(|varied| varied.steps.at(at)).unwrap_or(self.constant)
    }
}

impl Varied {
    /// When a packet that leaves the bottleneck at `departure` has come through, except for uniform jitter.
    fn arrival(&mut self, departure: Instant, constant: Duration) -> Instant {
        let released = self.aggregate.as_ref().map_or(departure, |aggregate| aggregate.leaves(departure));
        let leaves = self.medium.as_mut().map_or(released, |medium| medium.leaves(released));
        leaves + self.steps.at(leaves).unwrap_or(constant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_delays_never_below_the_delay_and_never_reorders() {
        let constant = Duration::from_millis(30);
        let most = Duration::from_millis(5);
        let config = PathConfig { delay: constant, jitter: most.into(), ..PathConfig::default() };
        let mut delay = Delay::new(&config, Seed(1), "forward").unwrap();
        let mut before = Instant::ZERO;
        for packet in 0..100_000u64 {
            let departure = Instant::from_nanos(packet * 10_000);
            let drawn = delay.draw();
            assert!(drawn <= most);
            let arrival = delay.arrive_in_order(departure, drawn);
            assert!(arrival >= before && arrival >= departure + constant && arrival <= departure + constant + most);
            before = arrival;
        }
    }

    #[test]
    fn jitter_has_the_mean_and_the_variance_of_a_uniform_number() {
        let config = PathConfig { jitter: Jitter::Uniform(Duration::from_millis(12)), ..PathConfig::default() };
        let mut delay = Delay::new(&config, Seed(2), "forward").unwrap();
        let n = 200_000;
        let draws: Vec<f64> = (0..n).map(|_| delay.draw().as_millis_f64()).collect();
        let mean = draws.iter().sum::<f64>() / f64::from(n);
        let variance = draws.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / f64::from(n - 1);
        // A uniform number on [0, 12]: mean 6, variance 12, fourth central moment 12^4 / 80 = 259.2.
        assert!((mean - 6.0).abs() < 4.5 * (12.0 / f64::from(n)).sqrt(), "{mean}");
        assert!((variance - 12.0).abs() < 4.5 * ((259.2 - 144.0) / f64::from(n)).sqrt(), "{variance}");
    }

    #[test]
    fn a_step_changes_the_delay_of_what_leaves_from_then_on_and_keeps_the_order() {
        let config = PathConfig { delay_steps: "0s:20ms,1s:60ms,2s:5ms".parse().unwrap(), ..PathConfig::default() };
        let mut delay = Delay::new(&config, Seed(1), "forward").unwrap();
        let mut arrive = |millis| {
            let drawn = delay.draw();
            delay.arrive_in_order(Instant::ZERO + Duration::from_millis(millis), drawn).as_nanos() / 1_000_000
        };
        // What leaves at 2 s would be there at 2005 ms; the packets of the route before are not overtaken.
        assert_eq!([0, 999, 1000, 1999, 2000, 2053, 2055, 3000].map(&mut arrive), [20, 1019, 1060, 2059, 2059, 2059, 2060, 3005]);
        assert_eq!(delay.at(Instant::ZERO + Duration::from_millis(1500)), Duration::from_millis(60));
    }

    #[test]
    fn aggregates_and_the_medium_come_before_the_delay() {
        let config = PathConfig {
            delay: Duration::from_millis(30),
            jitter: "wifi:2ms".parse().unwrap(),
            aggregate: Duration::from_millis(8),
            ..PathConfig::default()
        };
        let mut delay = Delay::new(&config, Seed(1), "forward").unwrap();
        let aggregate = Aggregate::new(config.aggregate, Seed(1), "forward");
        let mut medium = Medium::new(Duration::from_millis(2), Seed(1), "forward");
        for packet in 0..10_000u64 {
            let departure = Instant::from_nanos(packet * 700_000);
            let expected = medium.leaves(aggregate.leaves(departure)) + config.delay;
            assert_eq!(delay.arrive_in_order(departure, Duration::ZERO), expected);
        }
    }
}
