//! Ranks from the binomial distribution of the number of values on one side of a quantile.
//!
//! Called by [`super::quantile`] and [`super::Maximum`].
//!
//! Invariant: right to 1e-7 for any number of values up to 10^12: terms are added up outwards from the mode, over as many
//! standard deviations as a double can tell from zero. Library forms by continued fractions give up after a fixed number of steps,
//! too few for 10^7 values.

/// The distribution of a binomial count.
pub(super) struct Counts {
    /// The least count with a probability worth keeping.
    first: u64,
    /// P(count <= first + i).
    up_to: Vec<f64>,
    /// P(count >= first + i).
    from: Vec<f64>,
    /// The largest count there can be.
    samples: u64,
}

/// Terms below this share of the largest are left out.
const NEGLIGIBLE: f64 = 1e-25;

impl Counts {
    /// The count among `samples` values of which each counts with probability `p`, 0 < p < 1.
    pub(super) fn new(samples: u64, p: f64) -> Self {
        let (n, odds) = (samples as f64, p / (1.0 - p));
        let mode = (libm::floor((n + 1.0) * p) as u64).min(samples);
        // Terms relative to that of the mode: their sum makes the scale, so no factorial is needed.
        let mut down = Vec::new();
        let (mut term, mut count) = (1.0, mode);
        while count > 0 && term > NEGLIGIBLE {
            term *= count as f64 / ((n - count as f64 + 1.0) * odds);
            count -= 1;
            down.push(term);
        }
        let first = count;
        let mut terms: Vec<f64> = down.into_iter().rev().collect();
        terms.push(1.0);
        let (mut term, mut count) = (1.0, mode);
        while count < samples && term > NEGLIGIBLE {
            term *= (n - count as f64) * odds / (count as f64 + 1.0);
            count += 1;
            terms.push(term);
        }
        let running = |term: f64, sum: &mut f64| {
            *sum += term;
            *sum
        };
        let mut sum = 0.0;
        let mut up_to: Vec<f64> = terms.iter().map(|&term| running(term, &mut sum)).collect();
        let mut rest = 0.0;
        let mut from: Vec<f64> = terms.iter().rev().map(|&term| running(term, &mut rest)).collect();
        from.reverse();
        up_to.iter_mut().chain(&mut from).for_each(|share| *share /= sum);
        Self { first, up_to, from, samples }
    }

    /// P(count <= k).
    pub(super) fn at_most(&self, k: u64) -> f64 {
        if k < self.first {
            return 0.0;
        }
        self.up_to.get((k - self.first) as usize).copied().unwrap_or(1.0)
    }

    /// P(count >= k).
    pub(super) fn at_least(&self, k: u64) -> f64 {
        if k <= self.first {
            return 1.0;
        }
        self.from.get((k - self.first) as usize).copied().unwrap_or(0.0)
    }

    /// The largest rank r, counted from 1, with P(count < r) <= miss; `None` where rank 1 is too high already.
    pub(super) fn rank_below(&self, miss: f64) -> Option<u64> {
        let fitting = self.up_to.partition_point(|&share| share <= miss) as u64;
        // Counts up to first + fitting - 1 are rare enough, so the rank is one more.
        let rank = self.first + fitting;
        (rank >= 1).then_some(rank.min(self.samples))
    }

    /// The least rank r, counted from 1, with P(count >= r) <= miss; `None` where the last rank is too low.
    pub(super) fn rank_above(&self, miss: f64) -> Option<u64> {
        let too_low = self.from.partition_point(|&share| share > miss) as u64;
        let rank = (self.first + too_low).max(1);
        (rank <= self.samples).then_some(rank)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use statrs::distribution::{Binomial, DiscreteCDF};

    #[test]
    fn the_shares_are_those_of_the_binomial_distribution() {
        for (samples, p) in [(1, 0.5), (10, 0.3), (100, 0.99), (2000, 0.5), (1_000_000, 3e-6)] {
            let (counts, library) = (Counts::new(samples, p), Binomial::new(p, samples).unwrap());
            for k in [0, 1, 2, samples / 2, (samples as f64 * p) as u64, samples.saturating_sub(1), samples] {
                assert!((counts.at_most(k) - library.cdf(k)).abs() < 1e-9, "{samples} {p} {k}");
                let above = if k == 0 { 1.0 } else { 1.0 - library.cdf(k - 1) };
                assert!((counts.at_least(k) - above).abs() < 1e-9, "{samples} {p} {k}");
            }
        }
    }

    #[test]
    fn ten_million_values_have_the_ranks_of_the_normal_approximation() {
        let counts = Counts::new(10_000_000, 0.5);
        let distance = 1.959_964 * 2_500_000.0f64.sqrt();
        let (low, high) = (counts.rank_below(0.025).unwrap() as f64, counts.rank_above(0.025).unwrap() as f64);
        assert!((5e6 - low - distance).abs() < 2.0 && (high - 5e6 - distance).abs() < 3.0, "{low} {high}");
    }

    #[test]
    fn ranks_are_the_tightest_that_keep_the_miss() {
        for (samples, p) in [(10, 0.5), (59, 0.95), (200, 0.9)] {
            let counts = Counts::new(samples, p);
            if let Some(rank) = counts.rank_below(0.025) {
                assert!(counts.at_most(rank - 1) <= 0.025 && counts.at_most(rank) > 0.025);
            }
            if let Some(rank) = counts.rank_above(0.025) {
                assert!(counts.at_least(rank) <= 0.025 && counts.at_least(rank - 1) > 0.025);
            }
        }
        assert_eq!(Counts::new(5, 0.5).rank_below(0.025), None);
        assert_eq!(Counts::new(5, 0.5).rank_above(0.025), None);
        assert_eq!(Counts::new(6, 0.5).rank_below(0.025), Some(1));
        assert_eq!(Counts::new(6, 0.5).rank_above(0.025), Some(6));
    }
}
