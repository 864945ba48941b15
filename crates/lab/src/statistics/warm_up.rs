//! How much of the beginning of a run to leave out: the MSER-5 rule with a floor.
//!
//! Called on the batches of one long run before its interval is taken.
//!
//! Invariant: what is left out is a prefix, never less than the floor, and the report says how long it was.
//!
//! Source: K. P. White, "An effective truncation heuristic for bias reduction in simulation output", 1997; the batches of
//! five from White, Cobb and Spratt, 2000.

use super::estimate::{StatisticsError, finite};
use serde::{Deserialize, Serialize};

/// Values of one batch of the rule.
pub const BATCH: usize = 5;

/// What to leave out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarmUp {
    /// Values to leave out at the beginning.
    pub truncated: usize,
    /// The rule found its least value at the end of the first half, or had fewer than ten batches to look at:
    /// the run has not settled, or is too short to tell.
    pub suspect: bool,
}

impl WarmUp {
    /// The values that stay.
    pub fn kept<'a>(&self, values: &'a [f64]) -> &'a [f64] {
        values.get(self.truncated..).unwrap_or_default()
    }
}

/// Finds the truncation that makes the mean of the rest most precise.
///
/// With the k batch means behind the first d, MSER(d) is the sum of their squared distances from their mean over
/// (k - d)^2. The d in the first half with the least MSER is taken, the earliest among equals; then the floor:
/// at least `floor` values go, whatever the rule says (20 round-trip times are a good floor). A floor beyond the run
/// leaves nothing and is suspect.
///
/// # Errors
/// [`StatisticsError::NotFinite`] for a value that is no number.
pub fn mser5(values: &[f64], floor: usize) -> Result<WarmUp, StatisticsError> {
    finite(values)?;
    let means: Vec<f64> = values.chunks_exact(BATCH).map(|batch| batch.iter().sum::<f64>() / BATCH as f64).collect();
    let half = means.len() / 2;
    let (mut best, mut least) = (0, f64::INFINITY);
    let (mut count, mut mean, mut squares) = (0.0, 0.0, 0.0);
    // From the end backwards, so that each step adds one batch to the rest.
    for (index, &value) in means.iter().enumerate().rev() {
        count += 1.0;
        let distance = value - mean;
        mean += distance / count;
        squares += distance * (value - mean);
        let mser = squares / (count * count);
        if index <= half && mser <= least {
            (best, least) = (index, mser);
        }
    }
    let suspect = means.len() < 10 || best == half || floor >= values.len();
    Ok(WarmUp { truncated: (best * BATCH).max(floor).min(values.len()), suspect })
}

#[cfg(test)]
mod tests {
    use super::super::drawn::{autoregressive, normal, stream};
    use super::*;

    #[test]
    fn a_run_that_begins_high_loses_its_beginning() {
        let mut random = stream("mser");
        let values: Vec<f64> = (0..2000).map(|i| if i < 200 { 50.0 } else { 10.0 } + normal(&mut random)).collect();
        let warm_up = mser5(&values, 0).unwrap();
        assert!((200..=260).contains(&warm_up.truncated) && !warm_up.suspect, "{warm_up:?}");
        let mean = warm_up.kept(&values).iter().sum::<f64>() / warm_up.kept(&values).len() as f64;
        assert!((mean - 10.0).abs() < 0.15, "{mean}");
    }

    #[test]
    fn a_decaying_beginning_is_cut_where_it_drowns_in_the_noise() {
        let noise = autoregressive(&mut stream("mser decay"), 0.5, 0.0, 5000);
        let values: Vec<f64> = noise.iter().enumerate().map(|(i, x)| x + 100.0 * libm::exp(-(i as f64) / 100.0)).collect();
        let warm_up = mser5(&values, 0).unwrap();
        // 100 exp(-i / 100) falls to the size of the noise at about i = 450.
        assert!((300..=1000).contains(&warm_up.truncated) && !warm_up.suspect, "{warm_up:?}");
    }

    #[test]
    fn a_steady_run_loses_little_but_always_the_floor() {
        let values = autoregressive(&mut stream("mser steady"), 0.5, 3.0, 5000);
        assert!(mser5(&values, 0).unwrap().truncated < 1250);
        assert!(mser5(&values, 1300).unwrap().truncated >= 1300);
        assert_eq!(mser5(&[4.0; 100], 0).unwrap(), WarmUp { truncated: 0, suspect: false });
        assert_eq!(mser5(&[4.0; 100], 17).unwrap().truncated, 17);
    }

    #[test]
    fn a_run_that_never_settles_is_suspect() {
        let growing: Vec<f64> = (0..1000).map(f64::from).collect();
        assert!(mser5(&growing, 0).unwrap().suspect);
        assert!(mser5(&[1.0, 2.0, 3.0], 0).unwrap().suspect);
        let short = mser5(&[1.0; 100], 200).unwrap();
        assert_eq!((short.truncated, short.suspect, short.kept(&[1.0; 100]).len()), (100, true, 0));
        assert!(mser5(&[f64::NAN], 0).is_err());
    }
}
