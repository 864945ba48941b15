//! Named random streams: one root seed, one independent stream for each name.
//!
//! Called by the path model, the simulator and tests. A consumer asks for its stream by name
//! (`"loss.forward"`), so adding a consumer never shifts the numbers another one sees.
//!
//! Invariant: the numbers of a stream depend on the root seed and the name alone, on every platform.

use crate::time::Duration;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The root of all random streams of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed(pub u64);

impl Seed {
    /// The stream called `name`.
    pub fn stream(self, name: &str) -> Random {
        Random(Xoshiro256PlusPlus::seed_from_u64(self.child(name).0))
    }

    /// A root seed of its own for the part called `name`: a direction, a replication, a scheme.
    pub fn child(self, name: &str) -> Self {
        // FNV-1a over the name, then the finaliser of SplitMix64, so that near names and near seeds
        // lie far apart.
        let mut hash = 0xcbf2_9ce4_8422_2325u64;
        for byte in name.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        Self(mixed(self.0 ^ hash.rotate_left(32) ^ hash))
    }
}

/// Bits of which each depends on each bit of `bits`: the finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
#[inline]
pub const fn mixed(bits: u64) -> u64 {
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// One random stream.
#[derive(Clone, Debug)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number in [0, 1) with 53 random bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// True with probability `p`; always draws one number, whatever `p` is.
    #[inline]
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    /// A number in `0..bound`; zero when `bound` is zero.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        // Limit: the multiply-shift method is biased by at most bound / 2^64.
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// An exponentially distributed span with the given mean.
    pub fn exponential(&mut self, mean: Duration) -> Duration {
        Duration::from_secs_f64(-mean.as_secs_f64() * libm::log(1.0 - self.unit()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_depends_on_seed_and_name_alone() {
        let first: Vec<u64> = {
            let mut s = Seed(7).stream("loss.forward");
            (0..4).map(|_| s.bits()).collect()
        };
        let _other = Seed(7).stream("jitter.forward").bits();
        let again: Vec<u64> = {
            let mut s = Seed(7).stream("loss.forward");
            (0..4).map(|_| s.bits()).collect()
        };
        assert_eq!(first, again);
        assert_ne!(first[0], Seed(8).stream("loss.forward").bits());
        assert_ne!(first[0], Seed(7).stream("loss.back").bits());
    }

    #[test]
    fn the_stream_is_the_same_on_every_platform() {
        // A golden value: it changes only when every seeded result changes.
        assert_eq!(Seed(1).stream("golden").bits(), 1_569_992_368_345_726_361);
    }

    #[test]
    fn chances_and_spans_have_their_means() {
        let mut random = Seed(3).stream("means");
        let hits = (0..100_000).filter(|_| random.chance(0.1)).count() as f64;
        // Five standard deviations of a binomial with n = 1e5, p = 0.1.
        assert!((hits - 10_000.0).abs() < 5.0 * 94.9, "{hits}");
        let mean = Duration::from_millis(10);
        let sum: f64 = (0..100_000).map(|_| random.exponential(mean).as_secs_f64()).sum();
        assert!((sum / 100_000.0 - 0.010).abs() < 5.0 * 0.010 / 316.2, "{sum}");
        assert!((0..1000).all(|_| random.below(7) < 7));
    }
}
