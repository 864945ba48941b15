//! When the relay sends, sleeps, waits for arrivals or spins.
//!
//! Called by the relay once a turn.
//!
//! Wake-ups are the greatest cost of an emulator, and a relay that spins takes the processor from the programs it serves. Two rules
//! keep the wake-ups few. Departures less than a grain apart are coalesced. And while datagrams keep arriving, arrivals do not wake
//! the relay: it polls for them every [`WaitPolicy::poll_interval`], because the kernel has a timestamp of each (as interrupt
//! moderation does).
//!
//! Invariant: arrivals are read within half of the shorter of the two delays, so that polling makes no datagram late.

use super::config::LinkConfig;
use segstream_base::{Duration, Instant};

/// The longest sleep, after which the relay checks whether it must stop.
const SLEEP_MAX: Duration = Duration::from_millis(10);

/// The longest interval between two polls for arrivals, so that they do not pile up in the socket.
const POLL_INTERVAL_MAX: Duration = Duration::from_millis(1);

/// The shortest interval between two polls. With less, a wake-up for each arrival costs no more.
const POLL_INTERVAL_MIN: Duration = Duration::from_micros(200);

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Send what is due.
    Send,
    /// Spin: a departure is near.
    Spin,
    /// Sleep for this time; arrivals do not end it.
    Sleep(Duration),
    /// Sleep for this time or until something arrives, and read it.
    Await(Duration),
}

/// Decides what the relay does next.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitPolicy {
    grain: Duration,
    spin: Duration,
    poll_interval: Option<Duration>,
    sent_at: Instant,
    read_at: Instant,
    arrivals_continue: bool,
}

impl WaitPolicy {
    pub(super) fn new(config: &LinkConfig) -> Self {
        let half = config.forward.delay_least().min(config.back.delay_least()) / 2;
        Self {
            poll_interval: (half >= POLL_INTERVAL_MIN).then_some(half.min(POLL_INTERVAL_MAX)),
            ..Self::event_driven(config.grain, config.spin)
        }
    }

    /// For arrivals without a kernel timestamp: each wakes the relay, because it enters the path when it is read.
    pub(super) fn event_driven(grain: Duration, spin: Duration) -> Self {
        Self { grain, spin, poll_interval: None, sent_at: Instant::ZERO, read_at: Instant::ZERO, arrivals_continue: false }
    }

    /// Records that something was sent at `now`.
    pub(super) fn note_sent(&mut self, now: Instant) {
        self.sent_at = now;
    }

    /// Records a poll for arrivals at `now`, and whether there were any.
    pub(super) fn note_read(&mut self, now: Instant, any: bool) {
        self.read_at = now;
        self.arrivals_continue = any;
    }

    /// What to do at `now`, when the next departure is due at `due`.
    pub(super) fn next(&self, now: Instant, due: Instant) -> Step {
        // Why never a grain after it was due: what one batch could not take would wait for the next grain, and the rate would have a limit.
        let send_at = due.max((self.sent_at + self.grain).min(due + self.grain));
        // The next poll for arrivals; `None` if arrivals wake the relay.
        let poll_at = self.poll_interval.filter(|_| self.arrivals_continue).map(|every| self.read_at + every);
        if poll_at.is_some_and(|poll_at| poll_at <= now) || self.read_is_overdue(now) {
            return Step::Await(Duration::ZERO);
        }
        if send_at <= now {
            return Step::Send;
        }
        // Why a quarter: so that spinning takes at most a quarter of the processor.
        let alone = send_at.since(self.sent_at).as_nanos() / 4 >= self.spin.as_nanos();
        let wake_at = if alone { send_at - self.spin } else { send_at };
        if wake_at <= now {
            // Why not spin on a short path: a datagram may arrive and be due before this departure.
            return if self.poll_interval.is_some() { Step::Spin } else { Step::Await(Duration::ZERO) };
        }
        match poll_at {
            Some(poll_at) => Step::Sleep(wake_at.min(poll_at).since(now)),
            None => Step::Await(wake_at.since(now).min(SLEEP_MAX)),
        }
    }

    /// Whether sending has kept the relay from polling for arrivals for too long.
    fn read_is_overdue(&self, now: Instant) -> bool {
        now.since(self.read_at) > self.poll_interval.unwrap_or(POLL_INTERVAL_MIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    fn micros(micros: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(micros)
    }

    /// Grain 100 us, spin 50 us, and a delay both ways.
    fn wait_policy(delay: Duration) -> WaitPolicy {
        let any = SocketAddr::from(([127, 0, 0, 1], 1));
        let mut config = LinkConfig::new(any, any);
        config.forward.delay = delay;
        config.back.delay = delay;
        WaitPolicy::new(&config)
    }

    #[test]
    fn nothing_is_sent_before_it_is_due() {
        for delay in [0, 30] {
            let mut wait_policy = wait_policy(Duration::from_millis(delay));
            wait_policy.note_read(micros(10_000), true);
            wait_policy.note_sent(micros(9_000));
            for now in 10_000..10_200 {
                assert_ne!(wait_policy.next(micros(now), micros(10_200)), Step::Send, "{now}");
            }
            wait_policy.note_read(micros(10_200), true);
            assert_eq!(wait_policy.next(micros(10_200), micros(10_200)), Step::Send);
        }
    }

    #[test]
    fn a_departure_that_stands_alone_is_waited_for_awake() {
        let mut wait_policy = wait_policy(Duration::from_millis(30));
        wait_policy.note_read(micros(10_000), true);
        wait_policy.note_sent(micros(10_000));
        assert_eq!(wait_policy.next(micros(10_000), micros(10_500)), Step::Sleep(Duration::from_micros(450)));
        assert_eq!(wait_policy.next(micros(10_450), micros(10_500)), Step::Spin);
    }

    #[test]
    fn departures_within_a_grain_leave_together_without_keeping_the_processor_busy() {
        let mut wait_policy = wait_policy(Duration::from_millis(30));
        wait_policy.note_read(micros(10_000), true);
        wait_policy.note_sent(micros(10_000));
        assert_eq!(wait_policy.next(micros(10_010), micros(10_036)), Step::Sleep(Duration::from_micros(90)));
        assert_eq!(wait_policy.next(micros(10_100), micros(10_036)), Step::Send);
    }

    #[test]
    fn a_departure_that_is_a_grain_late_does_not_wait_for_the_next_grain() {
        let mut wait_policy = wait_policy(Duration::from_millis(30));
        wait_policy.note_read(micros(10_000), true);
        wait_policy.note_sent(micros(10_000));
        assert_eq!(wait_policy.next(micros(10_000), micros(9_900)), Step::Send);
        assert_eq!(wait_policy.next(micros(10_000), micros(9_950)), Step::Sleep(Duration::from_micros(50)));
    }

    #[test]
    fn arrivals_that_keep_coming_do_not_wake_the_relay_but_are_looked_for() {
        let mut wait_policy = wait_policy(Duration::from_millis(30));
        wait_policy.note_read(micros(10_000), true);
        wait_policy.note_sent(micros(10_000));
        assert_eq!(wait_policy.next(micros(10_000), Instant::FAR_FUTURE), Step::Sleep(POLL_INTERVAL_MAX));
        assert_eq!(wait_policy.next(micros(11_000), Instant::FAR_FUTURE), Step::Await(Duration::ZERO));
        // None came: the next one wakes the relay.
        wait_policy.note_read(micros(11_000), false);
        assert_eq!(wait_policy.next(micros(11_000), Instant::FAR_FUTURE), Step::Await(SLEEP_MAX));
    }

    #[test]
    fn a_short_path_is_looked_at_before_half_its_delay_and_a_shorter_one_at_every_arrival() {
        let mut short = wait_policy(Duration::from_micros(500));
        short.note_read(micros(10_000), true);
        assert_eq!(short.next(micros(10_000), Instant::FAR_FUTURE), Step::Sleep(Duration::from_micros(250)));
        let mut wait_policy = wait_policy(Duration::from_micros(100));
        wait_policy.note_read(micros(10_000), true);
        assert_eq!(wait_policy.next(micros(10_000), Instant::FAR_FUTURE), Step::Await(SLEEP_MAX));
        wait_policy.note_sent(micros(9_000));
        assert_eq!(wait_policy.next(micros(10_000), micros(10_020)), Step::Await(Duration::ZERO));
    }

    #[test]
    fn arrivals_that_only_the_relay_notes_always_wake_it() {
        let mut wait_policy = WaitPolicy::event_driven(Duration::from_micros(100), Duration::from_micros(50));
        wait_policy.note_read(micros(10_000), true);
        wait_policy.note_sent(micros(10_000));
        assert_eq!(wait_policy.next(micros(10_000), micros(10_500)), Step::Await(Duration::from_micros(450)));
        assert_eq!(wait_policy.next(micros(10_000), Instant::FAR_FUTURE), Step::Await(SLEEP_MAX));
        assert_eq!(wait_policy.next(micros(10_460), micros(10_500)), Step::Await(Duration::ZERO));
    }

    #[test]
    fn departures_cannot_keep_the_relay_from_reading() {
        let mut wait_policy = wait_policy(Duration::from_millis(30));
        wait_policy.note_read(micros(10_000), true);
        assert_eq!(wait_policy.next(micros(10_999), micros(5_000)), Step::Send);
        assert_eq!(wait_policy.next(micros(11_000), micros(5_000)), Step::Await(Duration::ZERO));
    }
}
