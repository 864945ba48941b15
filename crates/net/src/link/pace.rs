//! When the relay sends, sleeps, waits for arrivals or keeps the processor busy.
//!
//! Called by the relay once a turn.
//!
//! Waking up is what an emulator pays most for, and a relay that keeps a processor busy takes it from the
//! programs it serves. Two rules keep the wake-ups few. Departures less than a grain apart leave together. And
//! while arrivals keep coming none of them wakes the relay: it looks for them every [`Pace::look_every`], because
//! the kernel has noted when each one came.
//!
//! Invariant: arrivals are read before the shorter of the two delays is half over, so that looking late makes
//! no datagram late.

use super::config::LinkConfig;
use segstream_base::{Duration, Instant};

/// How long the relay sleeps at most, so that it sees that it is told to stop.
const SLEEP_MAX: Duration = Duration::from_millis(10);

/// The relay looks for arrivals at least this often while they come, so that they do not pile up.
const LOOK_MAX: Duration = Duration::from_millis(1);

/// With less than this between two looks, waiting for each arrival costs no more.
const LOOK_MIN: Duration = Duration::from_micros(200);

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Send what is due.
    Send,
    /// Look again at once: a departure is near.
    Spin,
    /// Sleep for so long, whatever arrives.
    Sleep(Duration),
    /// Sleep for so long or until something arrives, and read it.
    Await(Duration),
}

/// The relay's sense of time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    grain: Duration,
    spin: Duration,
    look_every: Option<Duration>,
    sent_at: Instant,
    read_at: Instant,
    arrivals_come: bool,
}

impl Pace {
    pub(super) fn new(config: &LinkConfig) -> Self {
        let half = config.forward.delay_least().min(config.back.delay_least()) / 2;
        Self { look_every: (half >= LOOK_MIN).then_some(half.min(LOOK_MAX)), ..Self::waking_for_all(config.grain, config.spin) }
    }

    /// For arrivals that nobody but the relay notes: each wakes it, because what is read late has come late.
    pub(super) fn waking_for_all(grain: Duration, spin: Duration) -> Self {
        Self { grain, spin, look_every: None, sent_at: Instant::ZERO, read_at: Instant::ZERO, arrivals_come: false }
    }

    /// Notes that something was sent at `now`.
    pub(super) fn note_sent(&mut self, now: Instant) {
        self.sent_at = now;
    }

    /// Notes that arrivals were looked for at `now`, and whether there were any.
    pub(super) fn note_read(&mut self, now: Instant, any: bool) {
        self.read_at = now;
        self.arrivals_come = any;
    }

    /// What to do at `now`, when the next departure is due at `due`.
    pub(super) fn next(&self, now: Instant, due: Instant) -> Step {
        let send_at = due.max(self.sent_at + self.grain);
        // The next look at the arrivals; `None` when they are to wake the relay.
        let look_at = self.look_every.filter(|_| self.arrivals_come).map(|every| self.read_at + every);
        if look_at.is_some_and(|look_at| look_at <= now) || self.read_is_overdue(now) {
            return Step::Await(Duration::ZERO);
        }
        if send_at <= now {
            return Step::Send;
        }
        // Why four times: so that keeping the processor busy takes at most a quarter of it.
        let alone = send_at.since(self.sent_at).as_nanos() / 4 >= self.spin.as_nanos();
        let wake_at = if alone { send_at - self.spin } else { send_at };
        if wake_at <= now {
            // Why: what has a short way may arrive and be due before this departure.
            return if self.look_every.is_some() { Step::Spin } else { Step::Await(Duration::ZERO) };
        }
        match look_at {
            Some(look_at) => Step::Sleep(wake_at.min(look_at).since(now)),
            None => Step::Await(wake_at.since(now).min(SLEEP_MAX)),
        }
    }

    /// Whether sending has kept the relay from looking for arrivals at all.
    fn read_is_overdue(&self, now: Instant) -> bool {
        now.since(self.read_at) > self.look_every.unwrap_or(LOOK_MIN)
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
    fn pace(delay: Duration) -> Pace {
        let any = SocketAddr::from(([127, 0, 0, 1], 1));
        let mut config = LinkConfig::new(any, any);
        config.forward.delay = delay;
        config.back.delay = delay;
        Pace::new(&config)
    }

    #[test]
    fn nothing_is_sent_before_it_is_due() {
        for delay in [0, 30] {
            let mut pace = pace(Duration::from_millis(delay));
            pace.note_read(micros(10_000), true);
            pace.note_sent(micros(9_000));
            for now in 10_000..10_200 {
                assert_ne!(pace.next(micros(now), micros(10_200)), Step::Send, "{now}");
            }
            pace.note_read(micros(10_200), true);
            assert_eq!(pace.next(micros(10_200), micros(10_200)), Step::Send);
        }
    }

    #[test]
    fn a_departure_that_stands_alone_is_waited_for_awake() {
        let mut pace = pace(Duration::from_millis(30));
        pace.note_read(micros(10_000), true);
        pace.note_sent(micros(10_000));
        assert_eq!(pace.next(micros(10_000), micros(10_500)), Step::Sleep(Duration::from_micros(450)));
        assert_eq!(pace.next(micros(10_450), micros(10_500)), Step::Spin);
    }

    #[test]
    fn departures_within_a_grain_leave_together_without_keeping_the_processor_busy() {
        let mut pace = pace(Duration::from_millis(30));
        pace.note_read(micros(10_000), true);
        pace.note_sent(micros(10_000));
        assert_eq!(pace.next(micros(10_010), micros(10_036)), Step::Sleep(Duration::from_micros(90)));
        assert_eq!(pace.next(micros(10_100), micros(10_036)), Step::Send);
    }

    #[test]
    fn arrivals_that_keep_coming_do_not_wake_the_relay_but_are_looked_for() {
        let mut pace = pace(Duration::from_millis(30));
        pace.note_read(micros(10_000), true);
        pace.note_sent(micros(10_000));
        assert_eq!(pace.next(micros(10_000), Instant::FAR_FUTURE), Step::Sleep(LOOK_MAX));
        assert_eq!(pace.next(micros(11_000), Instant::FAR_FUTURE), Step::Await(Duration::ZERO));
        // None came: the next one wakes the relay.
        pace.note_read(micros(11_000), false);
        assert_eq!(pace.next(micros(11_000), Instant::FAR_FUTURE), Step::Await(SLEEP_MAX));
    }

    #[test]
    fn a_short_path_is_looked_at_before_half_its_delay_and_a_shorter_one_at_every_arrival() {
        let mut short = pace(Duration::from_micros(500));
        short.note_read(micros(10_000), true);
        assert_eq!(short.next(micros(10_000), Instant::FAR_FUTURE), Step::Sleep(Duration::from_micros(250)));
        let mut pace = pace(Duration::from_micros(100));
        pace.note_read(micros(10_000), true);
        assert_eq!(pace.next(micros(10_000), Instant::FAR_FUTURE), Step::Await(SLEEP_MAX));
        pace.note_sent(micros(9_000));
        assert_eq!(pace.next(micros(10_000), micros(10_020)), Step::Await(Duration::ZERO));
    }

    #[test]
    fn arrivals_that_only_the_relay_notes_always_wake_it() {
        let mut pace = Pace::waking_for_all(Duration::from_micros(100), Duration::from_micros(50));
        pace.note_read(micros(10_000), true);
        pace.note_sent(micros(10_000));
        assert_eq!(pace.next(micros(10_000), micros(10_500)), Step::Await(Duration::from_micros(450)));
        assert_eq!(pace.next(micros(10_000), Instant::FAR_FUTURE), Step::Await(SLEEP_MAX));
        assert_eq!(pace.next(micros(10_460), micros(10_500)), Step::Await(Duration::ZERO));
    }

    #[test]
    fn departures_cannot_keep_the_relay_from_reading() {
        let mut pace = pace(Duration::from_millis(30));
        pace.note_read(micros(10_000), true);
        assert_eq!(pace.next(micros(10_999), micros(5_000)), Step::Send);
        assert_eq!(pace.next(micros(11_000), micros(5_000)), Step::Await(Duration::ZERO));
    }
}
