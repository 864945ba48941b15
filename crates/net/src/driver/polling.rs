//! Whether a driver that has nothing to do looks again at once or sleeps.
//!
//! Called by the blocking driver. To sleep and to be woken costs more than many datagrams, and costs whoever sends them too; to
//! look again and again takes a whole processor.
//!
//! Invariant: while datagrams come close together nobody sleeps; when they stay away, what is spent on looking halves
//! each time, down to nothing. What is spent in vain stays a small part of what is slept meanwhile.

use segstream_base::Duration;

/// How a driver waits for datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Polling {
    /// It sleeps as soon as there is nothing to do.
    Blocking,
    /// It looks again first, for no longer than a sleep would cost, as long as that has been worth it lately: so it never
    /// spends more than about twice what whoever knew the future would.
    #[default]
    Brief,
    /// It looks again for some sleeps' worth first, as long as that has been worth it lately. For a processor that is the
    /// driver's own.
    Adaptive,
}

impl Polling {
    /// The longest look.
    const fn longest(self) -> Duration {
        match self {
            Self::Blocking => Duration::ZERO,
            // What falling asleep and being woken costs on a virtual machine (docs/COMPARE.md).
            Self::Brief => Duration::from_micros(20),
            Self::Adaptive => Duration::from_micros(200),
        }
    }
}

/// Shorter looks are not worth it.
const LOOK_MIN: Duration = Duration::from_micros(5);
/// What may be spent in vain is the sleep divided by this. Why a limit: where both ends share a processor every sleep is
/// short, because the other end had waited for it to begin, and no look finds anything.
const SLEPT_BY_VAIN: u64 = 8;

/// How long to look before the next sleep.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    longest: Duration,
    time: Duration,
    /// What has been spent on looking since something was found.
    in_vain: Duration,
    /// How long it slept since then until something came.
    slept: Duration,
}

impl Look {
    pub(super) const fn new(polling: Polling) -> Self {
        let longest = polling.longest();
        Self { longest, time: longest, in_vain: Duration::ZERO, slept: Duration::ZERO }
    }

    /// How long to look before the next sleep; zero: not at all.
    pub(super) fn time(&self) -> Duration {
        let affordable = self.longest + self.slept / SLEPT_BY_VAIN;
        if self.in_vain <= affordable { self.time } else { Duration::ZERO }
    }

    /// Something came while it looked.
    pub(super) const fn found(&mut self) {
        (self.time, self.in_vain, self.slept) = (self.longest, Duration::ZERO, Duration::ZERO);
    }

    /// Nothing came.
    pub(super) fn missed(&mut self) {
        self.in_vain += self.time;
        let half = self.time / 2;
        self.time = if half < LOOK_MIN { Duration::ZERO } else { half };
    }

    /// Something has ended the sleep that followed, after `slept`. Had it looked for so long, it might have seen it.
    pub(super) fn woken_after(&mut self, slept: Duration) {
        self.slept += slept;
        if slept <= self.longest {
            self.time = self.longest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quiet_peer_is_looked_for_less_and_less_and_a_busy_one_again() {
        for polling in [Polling::Brief, Polling::Adaptive] {
            let (mut look, longest) = (Look::new(polling), polling.longest());
            let mut spent = Duration::ZERO;
            for _ in 0..1000 {
                spent += look.time();
                look.missed();
                look.woken_after(longest * 5);
            }
            assert!(look.time().is_zero() && spent < longest * 2, "{spent}");
            look.woken_after(longest / 2);
            assert_eq!(look.time(), longest);
        }
    }

    #[test]
    fn where_every_sleep_is_short_and_no_look_finds_anything_little_is_spent_on_looking() {
        for polling in [Polling::Brief, Polling::Adaptive] {
            let (mut look, longest) = (Look::new(polling), polling.longest());
            let (mut spent, mut slept) = (Duration::ZERO, Duration::ZERO);
            for _ in 0..100_000 {
                spent += look.time();
                if !look.time().is_zero() {
                    look.missed();
                }
                slept += longest / 20;
                look.woken_after(longest / 20);
            }
            assert!(spent <= slept / SLEPT_BY_VAIN + longest * 2, "{spent} of {slept} for {polling:?}");
            look.found();
            assert_eq!(look.time(), longest);
        }
    }

    #[test]
    fn a_blocking_driver_never_looks() {
        let mut look = Look::new(Polling::Blocking);
        look.found();
        look.woken_after(Duration::ZERO);
        assert!(look.time().is_zero());
    }
}
