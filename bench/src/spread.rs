//! Median, smallest and largest of the repetitions of one measurement.

use serde::Serialize;
use std::fmt;

/// The spread of repeated measurements.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// Of `samples`, in any order; not a number when there are none.
    pub(crate) fn of(mut samples: Vec<f64>) -> Self {
        samples.sort_by(f64::total_cmp);
        let at = |index: usize| samples.get(index).copied().unwrap_or(f64::NAN);
        Self { median: at(samples.len() / 2), min: at(0), max: at(samples.len().saturating_sub(1)) }
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} ({:.1} to {:.1})", self.median, self.min, self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_does_not_depend_on_the_order() {
        let spread = Spread::of(vec![3.0, 9.0, 1.0]);
        assert_eq!((spread.median, spread.min, spread.max), (3.0, 1.0, 9.0));
    }
}
