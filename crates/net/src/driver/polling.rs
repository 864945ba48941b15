//! Whether a driver that has nothing to do looks again at once or sleeps.
//!
//! Called by the blocking driver. To sleep and to be woken costs more than many datagrams; to look again and again takes
//! a whole processor.
//!
//! Invariant: while datagrams come close together nobody sleeps; when they stay away, what is spent on looking halves
//! each time, down to nothing.

use segstream_base::Duration;

/// How a driver waits for datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Polling {
    /// It sleeps as soon as there is nothing to do.
    #[default]
    Blocking,
    /// It looks again for a while first, as long as that has been worth it lately. For a processor that is the
    /// driver's own.
    Adaptive,
}

/// The longest look: some wake-ups' worth.
const LOOK_MAX: Duration = Duration::from_micros(200);
/// Shorter ones are not worth it.
const LOOK_MIN: Duration = Duration::from_micros(5);

/// How long to look before the next sleep.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    polling: Polling,
    time: Duration,
}

impl Look {
    pub(super) const fn new(polling: Polling) -> Self {
        Self { polling, time: LOOK_MAX }
    }

    /// How long to look before the next sleep; zero: not at all.
    pub(super) fn time(&self) -> Duration {
        if self.polling == Polling::Adaptive { self.time } else { Duration::ZERO }
    }

    /// Something came while it looked.
    pub(super) const fn found(&mut self) {
        self.time = LOOK_MAX;
    }

    /// Nothing came.
    pub(super) fn missed(&mut self) {
        let half = self.time / 2;
        self.time = if half < LOOK_MIN { Duration::ZERO } else { half };
    }

    /// Something has ended the sleep that followed, after `slept`: had it looked for so long, it would have seen it.
    pub(super) fn woken_after(&mut self, slept: Duration) {
        if slept <= LOOK_MAX {
            self.time = LOOK_MAX;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quiet_peer_is_looked_for_less_and_less_and_a_busy_one_again() {
        let mut look = Look::new(Polling::Adaptive);
        let mut spent = Duration::ZERO;
        for _ in 0..1000 {
            spent += look.time();
            look.missed();
        }
        assert!(look.time().is_zero() && spent < LOOK_MAX * 2, "{spent}");
        look.woken_after(Duration::from_millis(1));
        assert!(look.time().is_zero());
        look.woken_after(Duration::from_micros(50));
        assert_eq!(look.time(), LOOK_MAX);
    }

    #[test]
    fn a_blocking_driver_never_looks() {
        let mut look = Look::new(Polling::Blocking);
        look.found();
        assert!(look.time().is_zero());
    }
}
