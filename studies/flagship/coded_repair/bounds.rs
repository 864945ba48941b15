//! What a code costs at least: for a segment of any length, and for one of the study's length.
//!
//! Called by the study beside it.
//!
//! Invariant: the distribution of losses is calculated, never drawn. A code is as good as one can be (MDS): any n of the units of a
//! segment of n, with its repair units, restore the segment. Why nothing of the sender's own calculation is called: it is what is judged.

/// A process that loses units one after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Losses {
    rate: f64,
    /// The probability that a unit is lost behind one that was not.
    begins: f64,
    /// The same behind one that was.
    continues: f64,
}

impl Losses {
    /// Each unit by itself.
    pub(super) const fn random(rate: f64) -> Self {
        Self { rate, begins: rate, continues: rate }
    }

    /// In runs of `burst` units in the mean, and `rate` of all: what `gilbert:rate=RATE,burst=BURST` loses.
    pub(super) fn bursts(rate: f64, burst: f64) -> Self {
        Self { rate, begins: rate / (burst * (1.0 - rate)), continues: 1.0 - 1.0 / burst }
    }

    /// The probability that of `units` in a row more than `most` are lost.
    fn more_than(self, units: u32, most: u32) -> f64 {
        // The probabilities that so many are lost, the last unit kept or lost; what exceeds `most` is dropped.
        let mut kept = vec![0.0; most as usize + 1];
        let mut lost = kept.clone();
        kept[0] = 1.0 - self.rate;
        if let Some(one) = lost.get_mut(1) {
            *one = self.rate;
        }
        for _ in 1..units {
            for count in (0..kept.len()).rev() {
                let before = count.checked_sub(1).map_or(0.0, |fewer| self.begins * kept[fewer] + self.continues * lost[fewer]);
                kept[count] = (1.0 - self.begins) * kept[count] + (1.0 - self.continues) * lost[count];
                lost[count] = before;
            }
        }
        1.0 - kept.iter().chain(&lost).sum::<f64>()
    }

    /// The fewest repair units with which a segment of `units` fails with at most this probability; repair units are lost alike.
    pub(super) fn least_repair_units(self, units: u32, target: f64) -> u32 {
        (0..=units).find(|repair| self.more_than(units + repair, *repair) <= target).unwrap_or(units)
    }
}

/// What is sent more for each unit that arrives, in segments without end: p / (1 - p).
pub(super) fn asymptotic(rate: f64) -> f64 {
    rate / (1.0 - rate)
}

/// The rate that may be measured where it is `rate`, of so many units: two standard deviations more.
pub(super) fn measured_high(rate: f64, units: f64) -> f64 {
    rate + 2.0 * (rate * (1.0 - rate) / units).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_distributed_as_the_process_says() {
        // Two units: both lost 0.01, one 0.18.
        let random = Losses::random(0.1);
        assert!((random.more_than(2, 1) - 0.01).abs() < 1e-12 && (random.more_than(2, 0) - 0.19).abs() < 1e-12);
        // In runs of two one loss follows another with a half.
        let bursts = Losses::bursts(0.1, 2.0);
        assert!((bursts.more_than(2, 1) - 0.05).abs() < 1e-12 && (bursts.more_than(2, 0) - 0.15).abs() < 1e-12);
    }

    #[test]
    fn the_fewest_repair_units_are_enough_and_one_fewer_is_not() {
        for losses in [Losses::random(1e-3), Losses::random(1e-2), Losses::random(1e-1), Losses::bursts(1e-2, 8.0)] {
            let least = losses.least_repair_units(256, 5e-3);
            assert!(losses.more_than(256 + least, least) <= 5e-3, "{losses:?}");
            assert!(losses.more_than(256 + least - 1, least - 1) > 5e-3, "{losses:?}");
        }
        // P(Bin(264, 0.01) > 8) is 0.0015, P(Bin(263, 0.01) > 7) is 0.0054.
        assert_eq!(Losses::random(1e-2).least_repair_units(256, 5e-3), 8);
        assert_eq!(Losses::random(0.0).least_repair_units(256, 5e-3), 0);
    }
}
