//! Round-trip samples of a model TCP, and its retransmission timeout.
//!
//! Called by [`super::Sender`].
//!
//! Invariant: the timeout is at least [`TIMEOUT_MIN`] and doubles with every expiry in a row.
//! Source: RFC 6298 2, with Linux's minimum instead of one second.

use segstream_base::Duration;

/// The least timeout, Linux's.
const TIMEOUT_MIN: Duration = Duration::from_millis(200);
/// The timeout before the first round trip is known (RFC 6298 2.1).
const TIMEOUT_FIRST: Duration = Duration::from_secs(1);
/// The longest timeout (RFC 6298 2.5).
const TIMEOUT_MAX: Duration = Duration::from_secs(60);

/// Round trips so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundTrip {
    smooth: Option<Duration>,
    deviation: Duration,
    min: Option<Duration>,
    expiries: u32,
}

impl RoundTrip {
    /// A packet was acknowledged after `rtt`.
    pub(super) fn sample(&mut self, rtt: Duration) {
        self.min = Some(self.min.map_or(rtt, |min| min.min(rtt)));
        self.smooth = Some(match self.smooth {
            None => {
                self.deviation = rtt / 2;
                rtt
            }
            Some(smooth) => {
                let apart = smooth.max(rtt).saturating_sub(smooth.min(rtt));
                self.deviation = (self.deviation * 3 + apart) / 4;
                (smooth * 7 + rtt) / 8
            }
        });
    }

    /// The shortest; zero before the first.
    pub(super) fn min(&self) -> Duration {
        self.min.unwrap_or(Duration::ZERO)
    }

    /// Something new was acknowledged.
    pub(super) const fn answered(&mut self) {
        self.expiries = 0;
    }

    /// The timeout has expired. Returns how often it has since the last answer.
    pub(super) const fn expired(&mut self) -> u32 {
        self.expiries += 1;
        self.expiries
    }

    /// How long to wait for an acknowledgment.
    pub(super) fn timeout(&self) -> Duration {
        let once = self.smooth.map_or(TIMEOUT_FIRST, |smooth| smooth + (self.deviation * 4).max(TIMEOUT_MIN));
        (once * (1 << self.expiries.min(16))).min(TIMEOUT_MAX)
    }
}
