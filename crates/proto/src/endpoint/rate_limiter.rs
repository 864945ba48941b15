//! So many a second: what strangers may make an endpoint do.
//!
//! Called by the endpoint. Invariant: in any span of time at most a second's worth more is granted than the rate gives.

use segstream_base::{Duration, Instant};

/// The shares of hosts.
const BUCKETS: usize = 256;

/// A rate of things that may happen for each host, kept in a fixed number of places.
///
/// Hosts share a place by chance. Which do depends on a key, so that nobody can choose whom to share with.
#[derive(Clone, Debug)]
pub(super) struct HostRateLimiter {
    places: Vec<RateLimiter>,
}

impl HostRateLimiter {
    pub(super) fn per_second(rate: u32) -> Self {
        Self { places: vec![RateLimiter::per_second(rate); BUCKETS] }
    }

    /// Whether one more may happen for the host with this code.
    pub(super) fn take(&mut self, now: Instant, code: [u8; 16]) -> bool {
        self.places.get_mut(usize::from(code[0])).is_some_and(|place| place.take(now))
    }
}

/// A rate of things that may happen, with bursts of at most a second's worth.
#[derive(Clone, Copy, Debug)]
pub(super) struct RateLimiter {
    /// The interval between two (GCRA: the emission interval).
    interval: Duration,
    /// Up to when everything granted is paid for; in the past when nothing was asked for lately.
    theoretical_arrival: Instant,
    /// How often it was not granted.
    pub(super) denied: u64,
}

impl RateLimiter {
    pub(super) fn per_second(rate: u32) -> Self {
        Self { interval: Duration::from_secs(1) / u64::from(rate.max(1)), theoretical_arrival: Instant::ZERO, denied: 0 }
    }

    /// Whether one more may happen now; it counts if so.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        let due = self.theoretical_arrival.max(now);
        if due.since(now) + self.interval > Duration::from_secs(1) {
            self.denied += 1;
            return false;
        }
        self.theoretical_arrival = due + self.interval;
        debug_assert!(self.theoretical_arrival.since(now) <= Duration::from_secs(1), "more than a second's worth is granted");
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_floods_leaves_room_for_others() {
        let mut shares = HostRateLimiter::per_second(50);
        let flood = (0..10_000).filter(|_| shares.take(Instant::ZERO, [7; 16])).count();
        assert!((49..=50).contains(&flood), "{flood}");
        assert!(shares.take(Instant::ZERO, [8; 16]));
    }

    #[test]
    fn a_flood_gets_a_burst_and_then_the_rate() {
        let mut allowance = RateLimiter::per_second(100);
        let mut granted = 0;
        for step in 0..40_000u64 {
            granted += u32::from(allowance.take(Instant::ZERO + Duration::from_micros(100 * step)));
        }
        assert!((495..=501).contains(&granted), "{granted} in 4 s");
        assert_eq!(allowance.denied, 40_000 - u64::from(granted));
        assert!(allowance.take(Instant::ZERO + Duration::from_secs(9)));
    }
}
