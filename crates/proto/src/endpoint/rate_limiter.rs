//! Rate limiters (GCRA) for what unknown peers can make an endpoint do.
//!
//! Called by the endpoint. Invariant: in any interval at most one second's worth more is granted than the rate allows.

use super::networks::NETWORKS;
use segstream_base::{Duration, Instant};

/// The shares of the networks of one length.
const BUCKETS: usize = 256;
/// What a network of each length may use of the whole, the narrowest first ([`super::networks`]).
// Why: a host must not use up the limit of all, nor may the owner of a site's 65,536 networks, or a provider's customers together.
const SHARES: [u32; NETWORKS] = [10, 5, 2];

/// Rate limiters for each host and for the networks that it is in, with a fixed number of buckets.
///
/// Several networks may share a bucket. A keyed hash assigns the buckets, so that a peer cannot choose whose bucket it shares.
#[derive(Clone, Debug)]
pub(super) struct NetworkRateLimiter {
    places: [Vec<RateLimiter>; NETWORKS],
}

impl NetworkRateLimiter {
    /// With shares of `rate`.
    pub(super) fn per_second(rate: u32) -> Self {
        Self { places: SHARES.map(|share| vec![RateLimiter::per_second((rate / share).max(1)); BUCKETS]) }
    }

    /// Whether one more may happen for the host whose networks have these codes, the narrowest first.
    // Why the narrowest first: what a wider one then denies has cost the host's own share only.
    pub(super) fn take(&mut self, now: Instant, codes: [[u8; 16]; NETWORKS]) -> bool {
        let mut places = self.places.iter_mut().zip(codes);
        places.all(|(places, code)| places.get_mut(usize::from(code[0])).is_some_and(|place| place.take(now)))
    }
}

/// A rate limiter, with bursts of at most one second's worth.
#[derive(Clone, Copy, Debug)]
pub(super) struct RateLimiter {
    /// The interval between two (GCRA: the emission interval).
    interval: Duration,
    /// The theoretical arrival time of GCRA; in the past if nothing was requested lately.
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
        let mut shares = NetworkRateLimiter::per_second(500);
        let flood = (0..10_000).filter(|_| shares.take(Instant::ZERO, [[7; 16]; 3])).count();
        assert!((49..=50).contains(&flood), "{flood}");
        assert!(shares.take(Instant::ZERO, [[8; 16]; 3]));
    }

    #[test]
    fn a_site_or_a_provider_full_of_hosts_that_flood_leaves_room_for_others() {
        let granted = |shares: &mut NetworkRateLimiter, hosts: u8, sites: u8| {
            let hosts = (0..sites).flat_map(|site| (0..hosts).map(move |host| (site, host)));
            let codes = hosts.map(|(site, host)| [[17 * site + host; 16], [site; 16], [1; 16]]);
            codes.map(|codes| (0..1000).filter(|_| shares.take(Instant::ZERO, codes)).count()).sum::<usize>()
        };
        let mut shares = NetworkRateLimiter::per_second(500);
        let of_a_site = granted(&mut shares, 10, 1);
        assert!((98..=100).contains(&of_a_site), "{of_a_site}");
        let mut shares = NetworkRateLimiter::per_second(500);
        let of_a_provider = granted(&mut shares, 10, 10);
        assert!((245..=250).contains(&of_a_provider), "{of_a_provider}");
        assert!(shares.take(Instant::ZERO, [[200; 16], [200; 16], [2; 16]]), "another provider's");
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
