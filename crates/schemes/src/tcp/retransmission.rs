//! The retransmission timeout.
//!
//! Called by the sender for every packet it sends, every acknowledgment and every timer that has expired.
//! Source: HT 7: RTT = 0.9 RTT + 0.1 sample, timeout = 2 RTT, backoff factor 2, and Karn's algorithm (Karn and
//! Partridge 1987); what happens to a timeout that was backed off is [`Backoff`].
//!
//! Invariant: a timeout is never zero and never above [`TIMEOUT_MAX`].

use super::config::{Backoff, Config};
use segstream_base::{Duration, Instant};

/// The longest timeout, that of the BSD systems; RFC 6298 2.5 allows any from 60 s on.
pub(super) const TIMEOUT_MAX: Duration = Duration::from_secs(64);
/// The first timeout, in configured round trips.
const FIRST_ROUND_TRIPS: u64 = 3;

/// The round trip and the timeout of a connection.
#[derive(Clone, Debug)]
pub(super) struct Retransmission {
    backoff: Backoff,
    granularity: Duration,
    rtt: Option<Duration>,
    /// What a packet waits that is sent now for the first time.
    timeout: Duration,
}

impl Retransmission {
    pub(super) fn new(config: &Config) -> Self {
        let timeout = (config.rtt * FIRST_ROUND_TRIPS).min(TIMEOUT_MAX);
        Self { backoff: config.backoff, granularity: config.granularity, rtt: None, timeout }
    }

    /// The smoothed round trip, once there is a sample.
    pub(super) const fn rtt(&self) -> Option<Duration> {
        self.rtt
    }

    /// What a packet waits that is sent now for the first time.
    #[inline]
    pub(super) const fn timeout(&self) -> Duration {
        self.timeout
    }

    /// The timeout of a retransmitted packet whose previous timeout was `waited` (exponential back-off).
    pub(super) fn again(&self, waited: Duration) -> Duration {
        match self.backoff {
            Backoff::Own => doubled(waited),
            Backoff::Retain | Backoff::Oldest => self.timeout,
        }
    }

    /// A packet that was not retransmitted (Karn) was acknowledged `sample` after it left.
    #[inline]
    pub(super) fn on_sample(&mut self, sample: Duration) {
        // The first sample is the round trip (RFC 6298 2.2): HT does not say what its smoothing starts from.
        let rtt = self.rtt.map_or(sample, |rtt| (rtt * 9 + sample) / 10);
        self.rtt = Some(rtt);
        self.timeout = (rtt * 2).clamp(Duration::from_nanos(1), TIMEOUT_MAX);
    }

    /// The timer of a packet that has waited `waited` has run out.
    pub(super) fn on_expiry(&mut self, waited: Duration) {
        match self.backoff {
            Backoff::Own => {}
            Backoff::Retain | Backoff::Oldest => self.timeout = self.timeout.max(doubled(waited)),
        }
    }

    /// When a timer set at `now` to `wait` runs out: at a tick, if there are ticks.
    #[inline]
    pub(super) fn expiry(&self, now: Instant, wait: Duration) -> Instant {
        let at = now + wait;
        match self.granularity.as_nanos() {
            0 => at,
            tick => Instant::from_nanos(at.as_nanos().div_ceil(tick).saturating_mul(tick)),
        }
    }
}

fn doubled(wait: Duration) -> Duration {
    (wait * 2).min(TIMEOUT_MAX)
}
