//! Traffic intensity: how fast data enter the bottleneck against how fast they leave it (HT 3.5).
//!
//! Called by HTPNET's congestion avoidance, and by senders of periodic marks that learn when they arrived.
//!
//! `x` packets between two marks enter a queue in the time `alpha` and leave it in `beta`. Arrival rate over service
//! rate, `(x / alpha) / (x / beta)`, is `rho = beta / alpha`: `x` cancels, so nothing needs to be counted. Above 1 a
//! queue grows, below 1 it shrinks.
//!
//! Invariant: neither value is ever negative or NaN.
//!
//! Limit: a queue that is full and stays full shows 1, as does an idle one.

use segstream_base::Duration;

/// The traffic intensity, latest and smoothed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrafficIntensity {
    gain: f64,
    smoothed: f64,
}

impl TrafficIntensity {
    /// An intensity of 1, into which each sample goes with the weight `gain`, 0 to 1; what is outside, or NaN, becomes 1:
    /// no smoothing.
    pub fn new(gain: f64) -> Self {
        let gain = if (0.0..=1.0).contains(&gain) { gain } else { 1.0 };
        Self { gain, smoothed: 1.0 }
    }

    /// One exchange: marks leave with the period `alpha`, and `beta` has passed between the arrivals of two whose numbers
    /// are `exchanges` apart, more than one when marks were lost. Returns the instantaneous intensity, which is
    /// `beta / (exchanges * alpha)`; without time or exchanges nothing is learned and the smoothed one is returned.
    pub fn on_exchange(&mut self, alpha: Duration, beta: Duration, exchanges: u64) -> f64 {
        if alpha.is_zero() || exchanges == 0 {
            return self.smoothed;
        }
        let rho = beta.as_nanos() as f64 / (alpha.as_nanos() as f64 * exchanges as f64);
        self.smoothed += self.gain * (rho - self.smoothed);
        rho
    }

    /// The smoothed intensity, 1 before the first exchange.
    pub const fn smoothed(&self) -> f64 {
        self.smoothed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn the_intensity_is_the_gap_at_arrival_over_the_gap_at_departure() {
        let mut intensity = TrafficIntensity::new(0.25);
        assert_eq!(intensity.smoothed(), 1.0);
        assert_eq!(intensity.on_exchange(ms(5), ms(10), 1), 2.0);
        assert_eq!(intensity.smoothed(), 1.25);
        assert_eq!(intensity.on_exchange(ms(5), ms(0), 1), 0.0);
        assert_eq!(intensity.smoothed(), 0.9375);
    }

    #[test]
    fn a_lost_mark_does_not_look_like_congestion() {
        let mut intensity = TrafficIntensity::new(1.0);
        assert_eq!(intensity.on_exchange(ms(5), ms(15), 3), 1.0);
    }

    #[test]
    fn nothing_is_learned_without_time_or_exchanges() {
        let mut intensity = TrafficIntensity::new(f64::NAN);
        assert_eq!(intensity.on_exchange(ms(5), ms(8), 1), 1.6, "no smoothing");
        assert_eq!(intensity.on_exchange(ms(0), ms(5), 1), 1.6);
        assert_eq!(intensity.on_exchange(ms(5), ms(5), 0), 1.6);
    }
}
