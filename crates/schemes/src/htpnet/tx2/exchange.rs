//! When the next state exchange is due, and the state of those in flight.
//!
//! Called by Tx2. Source: HT 3.3 (periodic, paced by the transmitter); what it does without answers is not stated there:
//!
//! - While anything is unacknowledged or waits, the full period: a tail that was lost is found like everything else.
//! - When all is acknowledged, eight times the period, and after some exchanges none until data leave again.
//! - When the receiver has not answered for a second, eight times the period too.
//!
//! Invariant: data that leave are followed by an exchange within a period, or within eight while the peer does not answer.

use segstream_base::{Duration, Instant};

/// By how much exchanges slow down in silence.
const SLOWER: u64 = 8;
/// Slow exchanges after which there are none.
const IDLE_EXCHANGES: u32 = 4;
/// How long nothing is answered until they slow down.
const SILENCE: Duration = Duration::from_secs(1);

/// An exchange that has begun.
#[derive(Clone, Copy, Debug)]
pub(super) struct Departure {
    pub(super) sync: u64,
    pub(super) left: Instant,
    /// The gap in force when it left.
    pub(super) gap: Duration,
    /// Data packets bound to it.
    pub(super) packets: u64,
    /// RATE as it left.
    pub(super) rate: u16,
}

/// The timer of the exchanges: the only one that data need (HT 2.3).
#[derive(Clone, Debug)]
pub(super) struct Clock {
    due: Instant,
    /// When the last answer came, or data began to leave.
    answered: Instant,
    idle: u32,
    stopped: bool,
}

impl Clock {
    /// Nothing is due until data leave.
    pub(super) const fn new() -> Self {
        Self { due: Instant::FAR_FUTURE, answered: Instant::ZERO, idle: 0, stopped: false }
    }

    #[inline]
    pub(super) const fn due(&self) -> Instant {
        self.due
    }

    /// An exchange begins; the next one is a period after it was due, or after it has left if that was late.
    pub(super) fn on_exchange(&mut self, now: Instant, period: Duration) {
        let next = self.due + period;
        self.due = if next > now { next } else { now + period };
    }

    /// What went before the exchange is known.
    pub(super) fn on_sent(&mut self, now: Instant, period: Duration, idle: bool) {
        if self.stopped {
            return;
        }
        self.idle = if idle { self.idle + 1 } else { 0 };
        if self.idle > IDLE_EXCHANGES {
            self.due = Instant::FAR_FUTURE;
        } else if idle || now.since(self.answered) > SILENCE {
            self.due = now + period * SLOWER;
        }
    }

    /// Data leave, the first ones since the last exchange.
    pub(super) fn on_busy(&mut self, now: Instant, period: Duration) {
        if self.idle > 0 || self.due == Instant::FAR_FUTURE {
            self.idle = 0;
            self.answered = now;
            self.due = self.due.min(now + period);
        }
    }

    /// The receiver has answered.
    pub(super) const fn on_answer(&mut self, now: Instant) {
        self.answered = now;
    }

    /// An exchange is due at once.
    pub(super) fn hurry(&mut self, now: Instant) {
        if !self.stopped {
            self.idle = 0;
            self.due = now;
        }
    }

    /// There will be no more.
    pub(super) const fn stop(&mut self) {
        self.stopped = true;
        self.due = Instant::FAR_FUTURE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn exchanges_slow_down_in_idle_times_stop_and_start_again_with_data() {
        let period = Duration::from_millis(5);
        let mut clock = Clock::new();
        clock.on_busy(at(0), period);
        let mut due = Vec::new();
        while clock.due() != Instant::FAR_FUTURE {
            let now = clock.due();
            due.push(now.as_nanos() / 1_000_000);
            clock.on_exchange(now, period);
            // Data are acknowledged from the third on.
            clock.on_sent(now, period, due.len() > 2);
        }
        assert_eq!(due, [5, 10, 15, 55, 95, 135, 175]);
        clock.on_busy(at(300), period);
        assert_eq!(clock.due(), at(305));
    }

    #[test]
    fn a_late_exchange_does_not_make_the_next_one_early_for_long() {
        let period = Duration::from_millis(5);
        let mut clock = Clock::new();
        clock.on_busy(at(0), period);
        clock.on_exchange(at(6), period);
        assert_eq!(clock.due(), at(10), "the period is kept");
        clock.on_exchange(at(40), period);
        assert_eq!(clock.due(), at(45), "what was missed is not made up for");
        clock.on_sent(at(1_001), period, false);
        assert_eq!(clock.due(), at(1_041), "nobody answers");
    }
}
