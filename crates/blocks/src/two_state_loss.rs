//! A loss process of two states, fitted to what was lost, and how many units to send so that enough arrive.
//!
//! Called by a sender that answers requests with repair units. In the good state nothing is lost, in the bad one everything is
//! (Gilbert, Bell Syst. Tech. J. 39, 1960). Two counts fit it: how many shipments were lost, and in how many runs. With losses that do not
//! depend on each other the fit is the Bernoulli process of the same rate, up to the noise of the counts.
//!
//! Invariant: every result is a function of the counts alone; arithmetic is that of IEEE 754 without transcendental functions, so it is
//! the same on every platform.

/// What is counted of the shipments of a path in a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LossCounts {
    /// Shipments whose fate is known.
    pub passed: u64,
    /// Of them, those that were lost.
    pub lost: u64,
    /// In how many runs of consecutive numbers they were lost.
    pub runs: u64,
}

/// The square of how many standard deviations two counts of one process may be apart.
const DEVIATIONS_SQUARED: f64 = 4.0;

impl LossCounts {
    /// What was counted since `earlier`; a count that has gone back counts as zero.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self {
            passed: self.passed.saturating_sub(earlier.passed),
            lost: self.lost.saturating_sub(earlier.lost),
            runs: self.runs.saturating_sub(earlier.runs),
        }
    }

    /// Whether these counts and those of another time may be of one process: the number of runs and their mean length differ by at most two
    /// standard deviations.
    ///
    /// Runs are rare, so of all of them each lies in this time with the probability of its share of the shipments; the lengths of runs are
    /// geometric.
    pub fn may_be_of_one_process_with(self, other: Self) -> bool {
        let (runs_here, runs_there) = (self.runs as f64, other.runs as f64);
        let (lost_here, lost_there) = (self.lost as f64, other.lost as f64);
        let runs = runs_here + runs_there;
        let share = self.passed as f64 / (self.passed as f64 + other.passed as f64).max(1.0);
        let off = runs_here - runs * share;
        if off * off > DEVIATIONS_SQUARED * runs * share * (1.0 - share) {
            return false;
        }
        if self.runs == 0 || other.runs == 0 {
            return true;
        }
        let mean = (lost_here + lost_there) / runs;
        let off = lost_here / runs_here - lost_there / runs_there;
        off * off <= DEVIATIONS_SQUARED * mean * (mean - 1.0) * (1.0 / runs_here + 1.0 / runs_there)
    }
}

/// The loss process of two states.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TwoStateLoss {
    /// The probability that a shipment is lost if the one before it arrived.
    begins: f64,
    /// The probability that a shipment arrives if the one before it was lost.
    ends: f64,
}

/// A rate above this is taken for this: whatever is sent then, little arrives.
const RATE_MAX: f64 = 0.5;

impl TwoStateLoss {
    /// Nothing is ever lost.
    pub const NONE: Self = Self { begins: 0.0, ends: 1.0 };

    /// A process of loss rate `rate` (0 to a half) in runs of `mean_run` shipments (at least 1) on average. A mean run shorter than that
    /// of independent losses is possible, down to 1.
    pub fn new(rate: f64, mean_run: f64) -> Self {
        if rate <= 0.0 {
            return Self::NONE;
        }
        let (rate, ends) = (rate.min(RATE_MAX), 1.0 / mean_run.max(1.0));
        Self { begins: (ends * rate / (1.0 - rate)).min(1.0), ends }
    }

    /// The process of independent losses.
    pub fn independent(rate: f64) -> Self {
        let rate = rate.clamp(0.0, RATE_MAX);
        Self { begins: rate, ends: 1.0 - rate }
    }

    /// The process that has most likely made these counts.
    pub fn fit(counts: LossCounts) -> Self {
        if counts.lost == 0 || counts.passed == 0 {
            return Self::NONE;
        }
        let lost = counts.lost.min(counts.passed) as f64;
        let runs = counts.runs.clamp(1, counts.lost) as f64;
        Self::new(lost / counts.passed as f64, lost / runs)
    }

    /// The share of shipments that are lost.
    pub fn rate(self) -> f64 {
        self.begins / (self.begins + self.ends)
    }

    /// How many shipments are lost one after the other, on average.
    pub fn mean_run(self) -> f64 {
        1.0 / self.ends
    }

    /// The process of every `each`-th shipment (at least 1): runs are shorter there, and just as much is lost.
    #[must_use]
    pub fn spaced(self, each: u32) -> Self {
        // What remains after `each` steps of how a state differs from the long run: the second eigenvalue of the chain.
        let kept = (0..each).fold(1.0, |kept, _| kept * (1.0 - self.begins - self.ends));
        let rate = self.rate();
        Self { begins: rate * (1.0 - kept), ends: (1.0 - rate) * (1.0 - kept) }
    }

    /// One shipment after those whose last was lost with probability `bad` and arrived with `good`: the parts that are lost and arrive.
    fn step(self, good: f64, bad: f64) -> (f64, f64) {
        let lost = good * self.begins + bad * (1.0 - self.ends);
        (good * (1.0 - self.begins) + bad * self.ends, lost)
    }

    /// How many units to send in consecutive shipments of `per_shipment` units (at least 1), so that fewer than `asked` of them arrive with
    /// a probability of at most `risk`; `most` if it takes that many or more. If any are added, the last shipment is full too.
    ///
    /// With one unit a shipment and independent losses that is the smallest m + x with P(Bin(m + x, p) > x) <= risk. Takes about
    /// `most * (most - asked)` steps, in shipments.
    pub fn units_for(self, asked: u32, per_shipment: u32, risk: f64, most: u32) -> u32 {
        if asked >= most || self.begins <= 0.0 {
            return asked.min(most);
        }
        let shipments = asked.div_ceil(per_shipment);
        let spare_max = most.div_ceil(per_shipment) - shipments;
        let mut lost = LostCount::new(self, spare_max as usize);
        for _ in 0..shipments {
            lost.step(1);
        }
        for spare in 0..spare_max {
            if lost.above(spare as usize) <= risk {
                return if spare == 0 { asked } else { most.min((shipments + spare) * per_shipment) };
            }
            lost.step(1);
        }
        most
    }
}

/// How many of the units in successive shipments are lost: the distribution, up to a number above which it does not matter.
#[derive(Clone, Debug)]
pub struct LostCount {
    process: TwoStateLoss,
    /// By count, the probability of it and that the last shipment arrived, or was lost.
    by_count: Vec<(f64, f64)>,
    /// The probability of more than are told apart.
    beyond: f64,
}

impl LostCount {
    /// Before any shipment, of a process that has gone on for long; counts up to `most` are told apart.
    pub fn new(process: TwoStateLoss, most: usize) -> Self {
        let mut by_count = vec![(0.0, 0.0); most + 1];
        by_count[0] = (1.0 - process.rate(), process.rate());
        Self { process, by_count, beyond: 0.0 }
    }

    /// One shipment more, with so many units that count.
    pub fn step(&mut self, units: usize) {
        let most = self.by_count.len() - 1;
        // Why from the end: a loss moves a count up by `units`, to a place that has been read.
        for count in (0..=most).rev() {
            let (good, bad) = self.by_count[count];
            let (arrives, lost) = self.process.step(good, bad);
            self.by_count[count] = (arrives, 0.0);
            if count + units <= most {
                self.by_count[count + units].1 += lost;
            } else {
                self.beyond += lost;
            }
        }
    }

    /// The probability that more than `count` units are lost; `count` is at most the number that is told apart.
    pub fn above(&self, count: usize) -> f64 {
        self.beyond + self.by_count.iter().skip(count + 1).map(|(good, bad)| good + bad).sum::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use segstream_base::random::Seed;

    /// P(Bin(n, p) > x), by its definition.
    fn binomial_above(n: u32, p: f64, x: u32) -> f64 {
        let term = |k: u32| {
            (0..k).fold(1.0, |product, i| product * f64::from(n - i) / f64::from(k - i)) * p.powi(k as i32) * (1.0 - p).powi((n - k) as i32)
        };
        (x + 1..=n).map(term).sum()
    }

    /// The smallest x by the sum, for independent losses.
    #[test]
    fn independent_losses_need_what_the_binomial_distribution_says() {
        for rate in [1e-4, 1e-3, 1e-2, 0.05, 0.1, 0.3] {
            for asked in [1u32, 2, 3, 5, 8, 13, 26, 60] {
                let needed = TwoStateLoss::independent(rate).units_for(asked, 1, 1e-3, 400);
                let spare = needed - asked;
                assert!(binomial_above(needed, rate, spare) <= 1e-3 + 1e-12, "{asked} at {rate}: {needed} are too few");
                assert!(spare == 0 || binomial_above(needed - 1, rate, spare - 1) > 1e-3, "{asked} at {rate}: {needed} are too many");
            }
        }
        assert_eq!([1, 2, 5, 26].map(|asked| TwoStateLoss::independent(0.01).units_for(asked, 1, 1e-3, 400)), [2, 3, 7, 29]);
        assert_eq!([1, 2, 5, 26].map(|asked| TwoStateLoss::independent(0.1).units_for(asked, 1, 1e-3, 400)), [3, 5, 9, 36]);
    }

    /// Units that share a shipment are lost together: what is counted are shipments, and a spare one is a full one.
    #[test]
    fn units_that_share_a_shipment_need_as_many_shipments_as_single_ones() {
        for rate in [1e-3, 1e-2, 0.1] {
            let process = TwoStateLoss::independent(rate);
            for asked in 1u32..60 {
                let shipments = process.units_for(asked.div_ceil(4), 1, 1e-3, 100);
                let expected = if shipments == asked.div_ceil(4) { asked } else { shipments * 4 };
                assert_eq!(process.units_for(asked, 4, 1e-3, 400), expected, "{asked} at {rate}");
            }
        }
        assert_eq!([1, 4, 5, 9].map(|asked| TwoStateLoss::independent(0.01).units_for(asked, 4, 1e-3, 400)), [8, 8, 12, 16]);
    }

    #[test]
    fn counts_of_one_process_differ_by_two_standard_deviations_at_most() {
        let counts = |passed, lost, runs| LossCounts { passed, lost, runs };
        // (of one time, of another, whether one process may have made both)
        let table = [
            (counts(8000, 80, 10), counts(8000, 80, 10), true),
            (counts(8000, 120, 15), counts(8000, 56, 7), true),
            (counts(8000, 160, 20), counts(8000, 40, 5), false),
            (counts(8000, 80, 80), counts(8000, 80, 10), false),
            (counts(8000, 60, 10), counts(8000, 100, 10), true),
            (counts(8000, 8, 8), counts(8000, 800, 720), false),
            (counts(8000, 0, 0), counts(8000, 0, 0), true),
            (counts(8000, 0, 0), counts(8000, 3, 3), true),
            (counts(8000, 0, 0), counts(8000, 5, 5), false),
            // A time twice as long has twice as many.
            (counts(4000, 40, 40), counts(8000, 80, 80), true),
            (counts(4000, 80, 80), counts(8000, 80, 80), false),
            (LossCounts::default(), LossCounts::default(), true),
        ];
        for (here, there, expected) in table {
            assert_eq!(here.may_be_of_one_process_with(there), expected, "{here:?} {there:?}");
            assert_eq!(there.may_be_of_one_process_with(here), expected, "{there:?} {here:?}");
        }
    }

    #[test]
    fn bursts_need_more_than_the_same_rate_of_single_losses() {
        let (single, bursts) = (TwoStateLoss::independent(0.01), TwoStateLoss::new(0.01, 8.0));
        assert!((bursts.rate() - 0.01).abs() < 1e-12 && (bursts.mean_run() - 8.0).abs() < 1e-9);
        assert!(bursts.units_for(8, 1, 1e-3, 200) > single.units_for(8, 1, 1e-3, 200) + 8);
    }

    #[test]
    fn the_fit_finds_rate_and_runs_of_what_was_drawn() {
        let mut random = Seed(7).stream("fit");
        for (rate, run) in [(0.01, 1.0 / 0.99), (0.01, 8.0), (0.1, 3.0)] {
            let process = TwoStateLoss::new(rate, run);
            let (mut counts, mut bad) = (LossCounts::default(), false);
            for _ in 0..2_000_000 {
                let lost = random.chance(if bad { 1.0 - process.ends } else { process.begins });
                counts.passed += 1;
                counts.lost += u64::from(lost);
                counts.runs += u64::from(lost && !bad);
                bad = lost;
            }
            let fitted = TwoStateLoss::fit(counts);
            // Five standard deviations of a rate of 1e-2 in runs of 8: 5 * sqrt(0.01 * 15 / 2e6) = 1.4e-3.
            assert!((fitted.rate() - rate).abs() < 1.4e-3, "{fitted:?}");
            assert!((fitted.mean_run() / run - 1.0).abs() < 0.1, "{fitted:?}");
        }
    }

    /// The process of every k-th shipment against k steps of the process, from either state.
    #[test]
    fn every_other_shipment_loses_as_much_in_shorter_runs() {
        for (rate, run) in [(0.01, 8.0), (0.1, 3.0), (0.3, 1.2), (0.5, 1.0)] {
            let process = TwoStateLoss::new(rate, run);
            for each in 1..5 {
                let spaced = process.spaced(each);
                for state in [(1.0, 0.0), (0.0, 1.0)] {
                    let (_, lost) = (0..each).fold(state, |(good, bad), _| process.step(good, bad));
                    assert!((spaced.step(state.0, state.1).1 - lost).abs() < 1e-12, "{rate} in runs of {run}, every {each}: {spaced:?}");
                }
            }
            assert!((process.spaced(3).rate() - process.rate()).abs() < 1e-12);
        }
        assert_eq!(TwoStateLoss::NONE.spaced(2), TwoStateLoss::NONE);
    }

    #[test]
    fn without_losses_nothing_is_added() {
        let none = TwoStateLoss::fit(LossCounts { passed: 1000, lost: 0, runs: 0 });
        assert_eq!((none, none.units_for(5, 1, 1e-3, 100)), (TwoStateLoss::NONE, 5));
    }

    proptest! {
        #[test]
        fn any_counts_fit_a_process(passed: u64, lost: u64, runs: u64, asked in 0u32..40, per_shipment in 1u32..9) {
            let process = TwoStateLoss::fit(LossCounts { passed, lost, runs });
            prop_assert!((0.0..=RATE_MAX + 1e-9).contains(&process.rate()) && process.mean_run() >= 1.0);
            let needed = process.units_for(asked, per_shipment, 1e-3, 64);
            prop_assert!(needed >= asked.min(64) && needed <= 64);
        }

        #[test]
        fn probabilities_add_up(rate in 0.0f64..0.5, run in 1.0f64..20.0, units in proptest::collection::vec(0usize..3, 1..60)) {
            let mut lost = LostCount::new(TwoStateLoss::new(rate, run), 10);
            units.iter().for_each(|&units| lost.step(units));
            let all = lost.beyond + lost.by_count.iter().map(|(good, bad)| good + bad).sum::<f64>();
            prop_assert!((all - 1.0).abs() < 1e-9);
        }
    }
}
