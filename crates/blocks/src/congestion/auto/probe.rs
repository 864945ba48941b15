//! Probes: on a noisy path, a little more than what was carried, to see whether it is carried too.
//!
//! Called by delay mode. Noise hides how long the queue is, and a delay that was taken for a queue would hold the rate down for good.
//! So now and then the rate is a quarter more than the largest delivery rate known (as BBR's, draft-ietf-ccwg-bbr 4.3.3). If that is
//! carried, the next probe follows soon; if not, the pause doubles.
//!
//! Invariant: no probe begins at a queue, or while much is lost.

use segstream_base::Instant;

/// The gain of a probe.
pub(super) const GAIN: f64 = 0.25;
/// A probe lasts so many rounds: one until its echoes come, and two in which they are counted.
const ROUNDS: f64 = 3.0;
/// Carried: by so much more than the best before.
const CARRIED: f64 = 1.1;
/// Rounds between probes: the first, after one that was carried, and after those that were not; and where the rate is held down.
const PAUSE_FIRST: f64 = 4.0;
const PAUSE_CARRIED: f64 = 2.0;
const PAUSE_LEAST: f64 = 8.0;
const PAUSE_MOST: f64 = 32.0;
const PAUSE_HELD: f64 = 5.0;

/// When to probe.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probing {
    /// When the last probe ended.
    ended_at: Instant,
    /// Rounds until the next.
    pause: f64,
    /// The best delivery rate known when the probe that goes on began.
    from: Option<f64>,
    /// The last probe was carried.
    carried: bool,
}

impl Probing {
    pub(super) const fn new(now: Instant) -> Self {
        Self { ended_at: now, pause: PAUSE_FIRST, from: None, carried: false }
    }

    /// Whether a probe has just ended that was carried.
    pub(super) fn take_carried(&mut self) -> bool {
        core::mem::take(&mut self.carried)
    }

    /// Whether a probe goes on, with rounds of `round` seconds; `best` was carried of late, and `best_ever` once. `held` says that the rate
    /// is below what was carried, `may_begin` that nothing speaks against a probe.
    pub(super) fn goes_on(&mut self, now: Instant, round: f64, best: f64, best_ever: f64, held: bool, may_begin: bool) -> bool {
        let pause = if held { self.pause.min(PAUSE_HELD) } else { self.pause };
        let rounds = now.since(self.ended_at).as_secs_f64() / round;
        if rounds <= pause || !may_begin {
            return false;
        }
        let from = *self.from.get_or_insert(best.max(best_ever));
        if rounds > pause + ROUNDS {
            self.carried = best > CARRIED * from;
            self.pause = if self.carried { PAUSE_CARRIED } else { (2.0 * self.pause).clamp(PAUSE_LEAST, PAUSE_MOST) };
            self.ended_at = now;
            self.from = None;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use segstream_base::Duration;

    #[test]
    fn a_probe_that_is_carried_is_followed_soon_and_one_that_is_not_late() {
        let mut probing = Probing::new(Instant::ZERO);
        // Rounds of 100 ms; what is carried doubles in the first probe and stays in the others.
        let probes: Vec<u64> = (1..=100)
            .filter(|round| {
                let best = if *round > 5 { 2.0 } else { 1.0 };
                let now = Instant::ZERO + Duration::from_millis(100) * *round;
                probing.goes_on(now, 0.1, best, 1.0, false, true)
            })
            .collect();
        let begins: Vec<u64> = probes.iter().copied().filter(|round| !probes.contains(&(round - 1))).collect();
        assert_eq!(begins, [5, 11, 23, 43, 79], "{probes:?}");
        assert!(!probing.goes_on(Instant::from_nanos(u64::MAX / 2), 0.1, 2.0, 1.0, true, false));
    }
}
