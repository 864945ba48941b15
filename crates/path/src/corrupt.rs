//! Corruption: one flipped bit.
//!
//! Called by [`crate::Path`] once for each packet sent. The path holds no bytes; it names the bit and
//! whoever holds the packet flips it.
//!
//! Invariant: one number is drawn for each packet, so which packets are picked depends on the seed, the
//! direction and the packet's number alone, and a larger share picks a superset.

use crate::probability::Probability;
use segstream_base::Bytes;
use segstream_base::random::{Random, Seed};

/// Decides which packets are corrupted and where.
#[derive(Clone, Debug)]
pub struct Corrupt {
    share: Probability,
    random: Random,
}

impl Corrupt {
    /// Corrupts `share` of the packets, drawn from the stream `corrupt.<direction>`.
    pub fn new(share: Probability, seed: Seed, direction: &str) -> Self {
        Self { share, random: seed.stream(&format!("corrupt.{direction}")) }
    }

    /// The bit to flip in the next packet, counted from 0 at its first byte's most significant bit; `None`
    /// when it is spared. Below `8 * bytes`, each as likely as another. An empty packet has nothing to flip.
    #[inline]
    pub fn picks(&mut self, bytes: Bytes) -> Option<u64> {
        let drawn = self.random.unit();
        let share = self.share.get();
        if drawn >= share || bytes == Bytes::ZERO {
            return None;
        }
        // Why: given that the packet is picked, drawn / share is uniform in [0, 1) and needs no second draw.
        let bits = bytes.get().saturating_mul(8);
        Some(((drawn / share * bits as f64) as u64).min(bits - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_is_as_likely_as_another() {
        let mut corrupt = Corrupt::new(Probability::new(0.25).unwrap(), Seed(4), "forward");
        let mut hits = [0u32; 80];
        let n = 800_000;
        for _ in 0..n {
            if let Some(bit) = corrupt.picks(Bytes::new(10)) {
                hits[bit as usize] += 1;
            }
        }
        let expected = f64::from(n) * 0.25 / 80.0;
        // Chi-square with 79 degrees of freedom: mean 79, standard deviation sqrt(158) = 12.6. The total is
        // random too, which adds nothing to the mean.
        let chi: f64 = hits.iter().map(|hit| (f64::from(*hit) - expected).powi(2) / expected).sum();
        assert!((chi - 80.0).abs() < 5.0 * 12.7, "{chi}");
    }

    #[test]
    fn a_larger_share_picks_a_superset() {
        let picks = |share: f64| -> Vec<bool> {
            let mut corrupt = Corrupt::new(Probability::new(share).unwrap(), Seed(5), "forward");
            (0..10_000).map(|_| corrupt.picks(Bytes::new(100)).is_some()).collect()
        };
        let (few, many) = (picks(0.01), picks(0.02));
        assert!(few.iter().any(|hit| *hit));
        assert!(few.iter().zip(&many).all(|(few, many)| !few || *many));
        assert!(many.iter().filter(|hit| **hit).count() > few.iter().filter(|hit| **hit).count());
    }

    #[test]
    fn an_empty_packet_has_no_bit_to_flip() {
        let mut corrupt = Corrupt::new(Probability::new(1.0).unwrap(), Seed(6), "forward");
        assert_eq!(corrupt.picks(Bytes::ZERO), None);
        assert!(corrupt.picks(Bytes::new(1)).is_some_and(|bit| bit < 8));
    }
}
