//! The round trip: the latest sample, smoothed, its variance, and the minimum of the last ten seconds.
//!
//! Called by the side that sees its own numbers echoed. Smoothing is that of RFC 9002 5.3 (without an
//! acknowledgment delay to subtract); the windowed minimum is Kathleen Nichols' filter of three samples,
//! as in the Linux kernel (`lib/minmax.c`). Whoever must not wait less than a round trip needs the
//! minimum: with a smoothed value, above the true one for long after a queue has drained, a rightful
//! request would be taken for a premature one (EC 3.3).
//!
//! Invariant: the minimum is a sample of the last ten seconds before the latest one, and no sample after
//! it was smaller.

use segstream_base::{Duration, Instant};

/// How long a minimum is believed.
const WINDOW: Duration = Duration::from_secs(10);

/// A sample and when it was taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Sample {
    at: Instant,
    rtt: Duration,
}

/// Estimates of the round trip.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rtt {
    latest: Option<Duration>,
    smoothed: Duration,
    variance: Duration,
    /// The smallest of the window, the smallest after it, and the smallest after that.
    best: [Sample; 3],
}

impl Rtt {
    /// No sample yet.
    pub const fn new() -> Self {
        const NONE: Sample = Sample { at: Instant::ZERO, rtt: Duration::ZERO };
        Self { latest: None, smoothed: Duration::ZERO, variance: Duration::ZERO, best: [NONE; 3] }
    }

    /// A round trip that ended at `now` took `sample`.
    pub fn on_sample(&mut self, now: Instant, sample: Duration) {
        let new = Sample { at: now, rtt: sample };
        if self.latest.replace(sample).is_none() {
            self.smoothed = sample;
            self.variance = sample / 2;
            self.best = [new; 3];
            return;
        }
        let off = sample.saturating_sub(self.smoothed).max(self.smoothed.saturating_sub(sample));
        self.variance = weighted(self.variance, 3, off, 4);
        self.smoothed = weighted(self.smoothed, 7, sample, 8);
        self.update_minimum(new);
        let [best, second, third] = self.best;
        debug_assert!(best.rtt <= second.rtt && second.rtt <= third.rtt, "the minimum is not the smallest of {:?}", self.best);
        debug_assert!(best.rtt <= sample, "a sample below the minimum");
    }

    /// The smallest sample of the last ten seconds before the latest sample.
    #[inline]
    pub fn min(&self) -> Option<Duration> {
        self.latest.map(|_| self.best[0].rtt)
    }

    /// The smoothed round trip.
    #[inline]
    pub fn smoothed(&self) -> Option<Duration> {
        self.latest.map(|_| self.smoothed)
    }

    /// The smoothed mean deviation, which RFC 9002 calls the variance.
    #[inline]
    pub fn variance(&self) -> Option<Duration> {
        self.latest.map(|_| self.variance)
    }

    /// The latest sample.
    #[inline]
    pub const fn latest(&self) -> Option<Duration> {
        self.latest
    }

    /// Nichols' filter: three samples, each the smallest after the one before, at best a quarter and a half
    /// of the window apart, so that when the first grows too old its successor is known.
    fn update_minimum(&mut self, new: Sample) {
        let age = |sample: Sample| new.at.since(sample.at);
        if new.rtt <= self.best[0].rtt || age(self.best[2]) > WINDOW {
            self.best = [new; 3];
            return;
        }
        if new.rtt <= self.best[1].rtt {
            self.best[1] = new;
            self.best[2] = new;
        } else if new.rtt <= self.best[2].rtt {
            self.best[2] = new;
        }
        if age(self.best[0]) > WINDOW {
            self.best = [self.best[1], self.best[2], new];
            if age(self.best[0]) > WINDOW {
                self.best = [self.best[1], self.best[2], new];
            }
        } else if self.best[1].at == self.best[0].at && age(self.best[0]) > WINDOW / 4 {
            self.best[1] = new;
            self.best[2] = new;
        } else if self.best[2].at == self.best[1].at && age(self.best[0]) > WINDOW / 2 {
            self.best[2] = new;
        }
    }
}

/// (`weight` * `old` + `new`) / `parts`, without overflow.
fn weighted(old: Duration, weight: u64, new: Duration, parts: u64) -> Duration {
    let sum = u128::from(old.as_nanos()) * u128::from(weight) + u128::from(new.as_nanos());
    Duration::from_nanos(u64::try_from(sum / u128::from(parts)).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn at(millis: u64) -> Instant {
        Instant::ZERO + ms(millis)
    }

    #[test]
    fn nothing_is_known_before_the_first_sample() {
        let rtt = Rtt::new();
        assert_eq!((rtt.min(), rtt.smoothed(), rtt.variance(), rtt.latest()), (None, None, None, None));
        assert_eq!(rtt, Rtt::default());
    }

    #[test]
    fn smoothing_is_that_of_rfc_9002() {
        let mut rtt = Rtt::new();
        rtt.on_sample(at(0), ms(80));
        assert_eq!((rtt.smoothed(), rtt.variance()), (Some(ms(80)), Some(ms(40))));
        rtt.on_sample(at(1), ms(160));
        assert_eq!((rtt.smoothed(), rtt.variance(), rtt.latest()), (Some(ms(90)), Some(ms(50)), Some(ms(160))));
        rtt.on_sample(at(2), Duration::MAX);
        rtt.on_sample(at(3), Duration::ZERO);
        assert_eq!((rtt.min(), rtt.latest()), (Some(Duration::ZERO), Some(Duration::ZERO)));
    }

    #[test]
    fn a_longer_path_is_believed_after_ten_seconds() {
        let mut rtt = Rtt::new();
        rtt.on_sample(at(0), ms(20));
        for tick in 1..=100 {
            rtt.on_sample(at(tick * 100), ms(60));
            assert_eq!(rtt.min(), Some(ms(20)), "at {tick}00 ms");
        }
        rtt.on_sample(at(10_001), ms(60));
        assert_eq!(rtt.min(), Some(ms(60)));
    }

    #[test]
    fn when_the_minimum_grows_too_old_its_successors_are_known() {
        let mut rtt = Rtt::new();
        for (millis, sample) in [(0, 20), (1000, 50), (3000, 60), (6000, 70), (10_001, 80)] {
            rtt.on_sample(at(millis), ms(sample));
        }
        assert_eq!(rtt.min(), Some(ms(60)));
        rtt.on_sample(at(13_001), ms(90));
        assert_eq!(rtt.min(), Some(ms(70)));
    }

    #[test]
    fn after_a_silence_longer_than_the_window_only_the_new_sample_counts() {
        let mut rtt = Rtt::new();
        rtt.on_sample(at(0), ms(20));
        rtt.on_sample(at(30_000), ms(70));
        assert_eq!(rtt.min(), Some(ms(70)));
    }

    proptest! {
        #[test]
        fn the_minimum_is_a_recent_sample_that_nothing_later_undercuts(steps in prop::collection::vec((0u64..4000, 1u64..200), 1..200)) {
            let mut rtt = Rtt::new();
            let mut samples: Vec<(u64, u64)> = Vec::new();
            let mut now = 0;
            for (wait, sample) in steps {
                now += wait;
                samples.push((now, sample));
                rtt.on_sample(at(now), ms(sample));
                let min = rtt.min().unwrap();
                let recent: Vec<_> = samples.iter().filter(|(taken, _)| now - taken <= 10_000).collect();
                let exact = recent.iter().map(|(_, sample)| ms(*sample)).min().unwrap();
                prop_assert!(min >= exact && min <= ms(sample), "{min} is not between {exact} and the latest");
                let last = recent.iter().rposition(|(_, sample)| ms(*sample) == min);
                prop_assert!(last.is_some_and(|last| recent[last..].iter().all(|(_, sample)| ms(*sample) >= min)));
            }
        }
    }
}
