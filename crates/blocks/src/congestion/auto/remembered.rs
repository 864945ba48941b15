//! A number that is believed for some time after it was learned.
//!
//! Called by the readings and by the memory of the path.
//!
//! Invariant: the number is zero as long as nothing was learned.

use segstream_base::{Duration, Instant};

/// The number, and when it was learned.
// Why not one `Option` of both: an optimised build then compares the number before it asks whether there is one. No result depends on that,
// but valgrind reports it to everyone who links the library.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Remembered {
    number: f64,
    learned_at: Option<Instant>,
}

impl Remembered {
    /// Learns `number`.
    pub(super) const fn learn(&mut self, now: Instant, number: f64) {
        *self = Self { number, learned_at: Some(now) };
    }

    /// Forgets what was learned.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// The number, if it was learned less than `believed` ago; zero otherwise.
    pub(super) fn get(&self, now: Instant, believed: Duration) -> f64 {
        if self.learned_at.is_some_and(|at| now.since(at) < believed) { self.number } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_believed_for_its_time_and_until_it_is_forgotten() {
        let (second, at) = (Duration::from_secs(1), |seconds| Instant::ZERO + Duration::from_secs(seconds));
        let mut remembered = Remembered::default();
        assert_eq!(remembered.get(at(0), second), 0.0);
        remembered.learn(at(1), 0.5);
        assert_eq!((remembered.get(at(1), second), remembered.get(at(2), second)), (0.5, 0.0));
        remembered.learn(at(3), 0.25);
        remembered.forget();
        assert_eq!(remembered.get(at(3), second), 0.0);
    }
}
