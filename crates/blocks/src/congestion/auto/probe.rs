//! Probes: on a noisy path, a little more than what was carried, to see whether it is carried too.
//!
//! Called by delay mode. Noise hides how long the queue is, and a delay that was taken for a queue would hold the rate down for good.
//! So now and then the rate is a quarter more than the largest delivery rate known, for a round (as BBR's, draft-ietf-ccwg-bbr 4.3.3). If
//! that was carried, when its echoes have come, the next probe follows soon; if not, the pause doubles.
//!
//! Invariant: no probe begins at a queue, or while much is lost, and one that meets either is over.

use segstream_base::Instant;

/// The gain of a probe.
pub(super) const GAIN: f64 = 0.25;
/// More is sent for so many rounds. Why not for one: a delivery rate is counted over one, which noise must not spoil. Why no longer: where the
/// path is full, the queue grows by a quarter of that.
const ROUNDS: f64 = 1.25;
/// A probe is over after so many rounds: after one more its echoes have begun to come, and are then counted for one.
const ROUNDS_OF_ECHOES: f64 = 3.0;
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
    /// Since when there is no probe, and for how many rounds there is none.
    pauses_since: Instant,
    pause: f64,
    /// The probe that goes on, or waits for its echoes.
    going: Option<Probe>,
    /// When the last was over, and whether it was carried.
    over_at: Option<Instant>,
    carried: bool,
}

/// A probe.
#[derive(Clone, Copy, Debug)]
struct Probe {
    since: Instant,
    /// The best delivery rate known when it began.
    from: f64,
}

impl Probing {
    pub(super) const fn new(now: Instant) -> Self {
        Self { pauses_since: now, pause: PAUSE_FIRST, going: None, over_at: None, carried: false }
    }

    /// Whether a probe has just ended that was carried.
    pub(super) fn take_carried(&mut self) -> bool {
        core::mem::take(&mut self.carried)
    }

    /// Whether what left at `from` or later may have been lost to a probe.
    pub(super) fn may_lose(&self, from: Instant) -> bool {
        self.going.is_some() || self.over_at.is_some_and(|at| from < at)
    }

    /// Less is sent for another reason: a probe that goes on tells nothing, and is made again soon.
    pub(super) fn interrupt(&mut self, now: Instant) {
        if self.going.is_some() {
            self.end(now, PAUSE_CARRIED);
        }
    }

    /// Whether more is sent now, with rounds of `round` seconds; `best` was carried of late, and `best_ever` once. `held` says that the rate
    /// is below what was carried, `may_go_on` that nothing speaks against a probe.
    pub(super) fn sends_more(&mut self, now: Instant, round: f64, best: f64, best_ever: f64, held: bool, may_go_on: bool) -> bool {
        let rounds = |since: Instant| now.since(since).as_secs_f64() / round;
        let Some(probe) = self.going else {
            let pause = if held { self.pause.min(PAUSE_HELD) } else { self.pause };
            let begins = rounds(self.pauses_since) > pause && may_go_on;
            self.going = begins.then_some(Probe { since: now, from: best.max(best_ever) });
            return begins;
        };
        if may_go_on && rounds(probe.since) <= ROUNDS_OF_ECHOES {
            return rounds(probe.since) <= ROUNDS;
        }
        self.carried = best > CARRIED * probe.from;
        self.end(now, if self.carried { PAUSE_CARRIED } else { (2.0 * self.pause).clamp(PAUSE_LEAST, PAUSE_MOST) });
        false
    }

    fn end(&mut self, now: Instant, pause: f64) {
        *self = Self { pauses_since: now, pause, going: None, over_at: Some(now), carried: self.carried };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use segstream_base::Duration;

    /// A hundred milliseconds, of which rounds are here, times `rounds`.
    fn at(rounds: f64) -> Instant {
        Instant::ZERO + Duration::from_secs_f64(0.1 * rounds)
    }

    /// In which of the quarters of a round up to `until` more is sent; `best` tells what is carried in a round.
    fn sends_more(probing: &mut Probing, until: u32, best: impl Fn(f64) -> f64) -> Vec<f64> {
        let quarters = (1..=4 * until).map(|quarter| f64::from(quarter) / 4.0);
        quarters.filter(|round| probing.sends_more(at(*round), 0.1, best(*round), 1.0, false, true)).collect()
    }

    #[test]
    fn a_probe_that_is_carried_is_followed_soon_and_one_that_is_not_late() {
        // What is carried doubles in the first probe and stays in the others.
        let mut probing = Probing::new(Instant::ZERO);
        let sent = sends_more(&mut probing, 100, |round| if round > 5.0 { 2.0 } else { 1.0 });
        let begins: Vec<f64> = sent.iter().copied().filter(|round| !sent.contains(&(round - 0.25))).collect();
        assert_eq!(begins, [4.25, 9.75, 21.25, 40.75, 76.25], "{sent:?}");
        assert_eq!(sent[..6], [4.25, 4.5, 4.75, 5.0, 5.25, 5.5]);
    }

    #[test]
    fn a_probe_that_meets_a_queue_is_over_and_was_not_carried() {
        let mut probing = Probing::new(Instant::ZERO);
        assert!(probing.sends_more(at(4.5), 0.1, 1.0, 1.0, false, true));
        assert!(!probing.sends_more(at(5.0), 0.1, 1.05, 1.0, false, false) && !probing.take_carried());
        assert!(sends_more(&mut probing, 12, |_| 1.0).is_empty(), "eight rounds are paused");
        assert!(!Probing::new(Instant::ZERO).sends_more(at(1e6), 0.1, 2.0, 1.0, true, false), "none begins at a queue");
    }

    #[test]
    fn a_probe_that_is_interrupted_is_made_again_soon() {
        let mut probing = Probing::new(Instant::ZERO);
        probing.interrupt(at(3.0));
        assert!(!probing.may_lose(Instant::ZERO), "there was none");
        assert!(probing.sends_more(at(4.5), 0.1, 1.0, 1.0, false, true) && probing.may_lose(at(100.0)));
        probing.interrupt(at(5.0));
        assert!(!probing.sends_more(at(6.9), 0.1, 1.0, 1.0, false, true) && probing.may_lose(at(4.9)) && !probing.may_lose(at(5.0)));
        assert!(probing.sends_more(at(7.1), 0.1, 1.0, 1.0, false, true));
    }
}
