//! What a run of the demonstration was worth: picture quality, delay, and the share of slices usable at a latency.
//!
//! Called by the verb after each run. Squared errors are summed as integers, so a score depends on the bytes alone and
//! not on the order of summation.
//!
//! Invariant: what is not known, or has no finite value, is `None`, printed as null.

use super::picture::Slice;
use segstream_base::Duration;
use segstream_base::halves::Verdict;
use std::collections::BTreeMap;

/// The playout latencies, in milliseconds, at which usable slices are counted.
pub(crate) const PLAYOUT_LATENCIES_MS: [u32; 7] = [60, 80, 100, 150, 200, 300, 400];

/// Sums the squared errors of the slices shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct PictureScore {
    squared_errors: u128,
    pixels: u64,
    /// The largest mean squared error of a slice, as its squared errors and its pixels.
    worst: Option<(u64, u64)>,
}

impl PictureScore {
    /// Compares one slice as it was shown with the same slice as it was sent. Pixels that only one of them has count as
    /// wrong by 255.
    pub(crate) fn add(&mut self, sent: &Slice, shown: &Slice) {
        let common = sent.bytes.len().min(shown.bytes.len());
        let pixels = sent.bytes.len().max(shown.bytes.len());
        let pairs = sent.bytes.iter().zip(&shown.bytes);
        let errors: u64 = pairs.map(|(a, b)| u64::from(a.abs_diff(*b)).pow(2)).sum::<u64>() + (pixels - common) as u64 * 255 * 255;
        let pixels = pixels as u64;
        self.squared_errors += u128::from(errors);
        self.pixels += pixels;
        let worse = |(most, of): (u64, u64)| u128::from(errors) * u128::from(of) > u128::from(most) * u128::from(pixels);
        if self.worst.is_none_or(worse) {
            self.worst = Some((errors, pixels));
        }
    }

    /// The peak signal-to-noise ratio in dB, from the mean squared error over all slices. `None` when no pixel differs
    /// (the ratio is infinite) or nothing was added.
    pub(crate) fn mean_db(&self) -> Option<f64> {
        psnr_db(self.squared_errors, self.pixels)
    }

    /// The peak signal-to-noise ratio in dB of the worst slice. `None` when no pixel of any slice differs or nothing was
    /// added.
    pub(crate) fn worst_db(&self) -> Option<f64> {
        self.worst.and_then(|(errors, pixels)| psnr_db(u128::from(errors), pixels))
    }
}

/// 10 log10(255^2 / mean squared error), `None` when the error is zero.
fn psnr_db(squared_errors: u128, pixels: u64) -> Option<f64> {
    (squared_errors > 0 && pixels > 0).then(|| 10.0 * (255.0 * 255.0 * pixels as f64 / squared_errors as f64).log10())
}

/// Mean, 99th percentile and maximum of a set of delays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct DelaySummary {
    /// The arithmetic mean.
    pub mean: Duration,
    /// The smallest delay that at least 99 % of all delays do not exceed (nearest rank).
    pub p99: Duration,
    /// The longest delay.
    pub max: Duration,
}

impl DelaySummary {
    /// The summary of `delays`, in any order; `None` when there are none.
    pub(crate) fn of(delays: &[Duration]) -> Option<Self> {
        let mut sorted = delays.to_vec();
        sorted.sort_unstable();
        let sum: u128 = sorted.iter().map(|delay| u128::from(delay.as_nanos())).sum();
        let mean = Duration::from_nanos(u64::try_from(sum / sorted.len().max(1) as u128).unwrap_or(u64::MAX));
        Some(Self { mean, p99: percentile(&sorted, 990)?, max: *sorted.last()? })
    }
}

/// The smallest of the `sorted` spans that at least `per_mille` thousandths of them do not exceed (nearest rank); `None`
/// when there are none.
pub(crate) fn percentile(sorted: &[Duration], per_mille: usize) -> Option<Duration> {
    let rank = (sorted.len() * per_mille).div_ceil(1000).max(1);
    sorted.get(rank - 1).copied()
}

/// How one slice ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Outcome {
    /// The receiver's verdict.
    pub verdict: Verdict,
    /// From the moment the slice was due to its delivery; `None` when it was not delivered.
    pub latency: Option<Duration>,
}

impl Outcome {
    /// Whether a viewer that shows every slice `playout` after it was due can show this one: its promise was met, and it
    /// was delivered in time.
    pub(crate) fn is_usable(&self, playout: Duration) -> bool {
        self.verdict.is_met() && self.latency.is_some_and(|latency| latency <= playout)
    }
}

/// The share of slices usable at each of [`PLAYOUT_LATENCIES_MS`], by that latency; zero when there are no slices.
pub(crate) fn usable_share(outcomes: &[Outcome]) -> BTreeMap<u32, f64> {
    let share = |latency_ms: u32| {
        let playout = Duration::from_millis(u64::from(latency_ms));
        let usable = outcomes.iter().filter(|outcome| outcome.is_usable(playout)).count();
        (latency_ms, usable as f64 / outcomes.len().max(1) as f64)
    };
    PLAYOUT_LATENCIES_MS.into_iter().map(share).collect()
}

/// The mean number of holes a slice, and the longest run of consecutive missing lines in any slice. The holes of a slice
/// are in ascending order.
pub(crate) fn holes<'a>(slices: impl IntoIterator<Item = &'a [usize]>) -> (f64, usize) {
    let (mut total, mut count, mut longest) = (0, 0, 0);
    for holes in slices {
        total += holes.len();
        count += 1;
        let consecutive = |pair: &[usize]| pair[0].checked_add(1) == Some(pair[1]);
        let runs = holes.chunk_by(|a, b| consecutive(&[*a, *b]));
        longest = longest.max(runs.map(<[usize]>::len).max().unwrap_or(0));
    }
    (total as f64 / f64::from(count.max(1)), longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flat(byte: u8, pixels: usize) -> Slice {
        Slice { width: pixels, height: 1, bytes: vec![byte; pixels] }
    }

    #[test]
    fn an_error_of_one_everywhere_is_48_13_db() {
        let mut score = PictureScore::default();
        score.add(&flat(100, 1000), &flat(101, 1000));
        // 20 log10(255).
        assert!((score.mean_db().unwrap() - 48.130_803_608_679).abs() < 1e-9);
        assert_eq!(score.mean_db(), score.worst_db());
    }

    #[test]
    fn the_mean_is_over_squared_errors_and_the_worst_slice_stands_alone() {
        let mut score = PictureScore::default();
        score.add(&flat(0, 100), &flat(255, 100));
        (0..9).for_each(|_| score.add(&flat(7, 100), &flat(7, 100)));
        assert!((score.mean_db().unwrap() - 10.0).abs() < 1e-12, "one slice in ten is wrong by the full range");
        assert!(score.worst_db().unwrap().abs() < 1e-12);
    }

    #[test]
    fn no_error_has_no_finite_ratio() {
        let mut score = PictureScore::default();
        assert_eq!((score.mean_db(), score.worst_db()), (None, None));
        score.add(&flat(7, 10), &flat(7, 10));
        assert_eq!((score.mean_db(), score.worst_db()), (None, None));
        score.add(&flat(7, 10), &flat(7, 9));
        assert!((score.worst_db().unwrap() - 10.0).abs() < 1e-12, "a pixel in ten is missing");
    }

    #[test]
    fn delays_are_summed_up_by_nearest_rank() {
        let delays: Vec<Duration> = (1..=200).rev().map(Duration::from_millis).collect();
        let summary = DelaySummary::of(&delays).unwrap();
        assert_eq!(summary.mean, Duration::from_micros(100_500));
        assert_eq!((summary.p99, summary.max), (Duration::from_millis(198), Duration::from_millis(200)));
        let single = DelaySummary::of(&[Duration::from_millis(5)]).unwrap();
        assert_eq!((single.mean, single.p99, single.max), (single.max, single.max, Duration::from_millis(5)));
        assert_eq!(DelaySummary::of(&[]), None);
    }

    #[test]
    fn a_slice_is_usable_when_its_promise_was_met_in_time() {
        let outcome = |verdict, latency: Option<u64>| Outcome { verdict, latency: latency.map(Duration::from_millis) };
        let outcomes = [
            outcome(Verdict::Complete, Some(60)),
            outcome(Verdict::WithinTolerance, Some(61)),
            outcome(Verdict::Expired, Some(10)),
            outcome(Verdict::Complete, None),
        ];
        let share = usable_share(&outcomes);
        assert_eq!((share[&60], share[&80], share[&400]), (0.25, 0.5, 0.5));
        assert!(share.keys().copied().eq(PLAYOUT_LATENCIES_MS));
        assert!(usable_share(&[]).values().all(|&share| share == 0.0));
    }

    #[test]
    fn holes_are_counted_and_their_longest_run_found() {
        let slices: [&[usize]; 3] = [&[3, 4, 5, 9], &[], &[0, 1]];
        assert_eq!(holes(slices), (2.0, 3));
        assert_eq!(holes([]), (0.0, 0));
    }
}
