//! Fairness among flows: one number that says how equally they share.
//!
//! Called by the studies, by tests and by measurements.
//!
//! Source: R. Jain, D. Chiu and W. Hawe 1984, DEC-TR-301.

/// Jain's index of fairness: 1 for equal values, 1/n when one has all, 0 when none has anything, and not a number when a value is none.
/// Values are not negative.
pub fn jain(values: &[f64]) -> f64 {
    let (sum, squares) = values.iter().fold((0.0, 0.0), |(sum, squares), value| (sum + value, squares + value * value));
    if squares == 0.0 { 0.0 } else { sum * sum / (values.len() as f64 * squares) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jains_index_is_one_for_equal_shares_and_one_in_n_for_a_single_winner() {
        assert!((jain(&[3.0; 4]) - 1.0).abs() < 1e-12);
        assert!((jain(&[5.0, 0.0, 0.0, 0.0]) - 0.25).abs() < 1e-12);
    }

    #[test]
    fn jain_is_one_for_equals_and_a_half_when_one_of_two_has_all() {
        assert_eq!((jain(&[3.0, 3.0]), jain(&[3.0, 0.0]), jain(&[0.0, 0.0])), (1.0, 0.5, 0.0));
    }
}
