//! Spin-then-block: for how long a driver that has nothing to do busy-polls its socket before it blocks.
//!
//! Called by the blocking driver. Blocking and being woken cost more than many datagrams, at the receiver and at the sender
//! that wakes it; busy-polling occupies a whole processor.
//!
//! Invariant: while datagrams arrive close together the driver does not block. When none arrive, each spin is half as long as the
//! one before, down to none. The time spun without result stays a small part of the time spent blocked.
//!
//! Source: Karlin, Li, Manasse and Owicki, "Empirical Studies of Competitive Spinning for a Shared-Memory Multiprocessor"
//! (SOSP 1991): a thread that spins for as long as a block would cost spends at most twice the optimum.

use segstream_base::Duration;

/// How a driver waits for datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Polling {
    /// It blocks as soon as there is nothing to do.
    Blocking,
    /// It busy-polls first, for at most the cost of a block and a wake-up (20 us), as long as recent spins have found datagrams.
    /// So it never spends more than about twice the optimum.
    #[default]
    Brief,
    /// It busy-polls first, for at most ten times that (200 us), as long as recent spins have found datagrams. For a driver that
    /// has a processor to itself.
    Adaptive,
}

impl Polling {
    /// The longest spin.
    const fn longest(self) -> Duration {
        match self {
            Self::Blocking => Duration::ZERO,
            // What blocking and a wake-up cost on a virtual machine (docs/COMPARE.md).
            Self::Brief => Duration::from_micros(20),
            Self::Adaptive => Duration::from_micros(200),
        }
    }
}

/// The shortest spin that is worth its cost.
const SPIN_MIN: Duration = Duration::from_micros(5);
/// The time that may be spun without result is the time blocked divided by this. Why a limit: where both ends share a
/// processor, the other end runs only when this one blocks. Then every block is short and no spin finds anything.
const BLOCKED_BY_WASTED: u64 = 8;

/// How long to spin before the next block.
#[derive(Clone, Copy, Debug)]
pub(super) struct SpinBudget {
    longest: Duration,
    time: Duration,
    /// The time spun without result since the last spin that found something.
    wasted: Duration,
    /// The time spent blocked since then.
    blocked: Duration,
}

impl SpinBudget {
    pub(super) const fn new(polling: Polling) -> Self {
        let longest = polling.longest();
        Self { longest, time: longest, wasted: Duration::ZERO, blocked: Duration::ZERO }
    }

    /// How long to spin before the next block; zero: not at all.
    pub(super) fn time(&self) -> Duration {
        let affordable = self.longest + self.blocked / BLOCKED_BY_WASTED;
        if self.wasted <= affordable { self.time } else { Duration::ZERO }
    }

    /// A datagram arrived during the spin.
    pub(super) const fn on_found(&mut self) {
        (self.time, self.wasted, self.blocked) = (self.longest, Duration::ZERO, Duration::ZERO);
    }

    /// No datagram arrived during the spin.
    pub(super) fn on_missed(&mut self) {
        self.wasted += self.time;
        let half = self.time / 2;
        self.time = if half < SPIN_MIN { Duration::ZERO } else { half };
    }

    /// A datagram has ended the block after the spin. The block lasted `blocked`; a spin of that length would have found it.
    pub(super) fn on_woken_after(&mut self, blocked: Duration) {
        self.blocked += blocked;
        if blocked <= self.longest {
            self.time = self.longest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spin_shortens_for_a_quiet_peer_and_is_whole_again_for_a_busy_one() {
        for polling in [Polling::Brief, Polling::Adaptive] {
            let (mut budget, longest) = (SpinBudget::new(polling), polling.longest());
            let mut spent = Duration::ZERO;
            for _ in 0..1000 {
                spent += budget.time();
                budget.on_missed();
                budget.on_woken_after(longest * 5);
            }
            assert!(budget.time().is_zero() && spent < longest * 2, "{spent}");
            budget.on_woken_after(longest / 2);
            assert_eq!(budget.time(), longest);
        }
    }

    #[test]
    fn where_every_block_is_short_and_no_spin_finds_anything_little_is_spent_on_spinning() {
        for polling in [Polling::Brief, Polling::Adaptive] {
            let (mut budget, longest) = (SpinBudget::new(polling), polling.longest());
            let (mut spent, mut blocked) = (Duration::ZERO, Duration::ZERO);
            for _ in 0..100_000 {
                spent += budget.time();
                if !budget.time().is_zero() {
                    budget.on_missed();
                }
                blocked += longest / 20;
                budget.on_woken_after(longest / 20);
            }
            assert!(spent <= blocked / BLOCKED_BY_WASTED + longest * 2, "{spent} of {blocked} for {polling:?}");
            budget.on_found();
            assert_eq!(budget.time(), longest);
        }
    }

    #[test]
    fn a_blocking_driver_never_spins() {
        let mut budget = SpinBudget::new(Polling::Blocking);
        budget.on_found();
        budget.on_woken_after(Duration::ZERO);
        assert!(budget.time().is_zero());
    }
}
