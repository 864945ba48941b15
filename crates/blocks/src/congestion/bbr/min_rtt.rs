//! The shortest round trip of ten seconds, and when it is to be looked for again (5.3.4.3: UpdateMinRTT).
//!
//! Called by BBR for each report. Invariant: it is never shorter than a round trip that was seen.

use super::RateSample;
use segstream_base::{Duration, Instant};

/// BBR.MinRTTFilterLen.
const FILTER_LEN: Duration = Duration::from_secs(10);
/// BBR.ProbeRTTInterval.
const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug)]
pub(super) struct MinRtt {
    /// BBR.min_rtt, and BBR.min_rtt_stamp.
    min: Option<Duration>,
    stamp: Instant,
    /// BBR.probe_rtt_min_delay, and BBR.probe_rtt_min_stamp.
    probe_min: Option<Duration>,
    probe_stamp: Instant,
    /// BBR.probe_rtt_expired.
    pub(super) probe_expired: bool,
}

impl MinRtt {
    pub(super) const fn new(now: Instant) -> Self {
        Self { min: None, stamp: now, probe_min: None, probe_stamp: now, probe_expired: false }
    }

    /// A round trip of set-up.
    pub(super) fn begin(&mut self, now: Instant, rtt: Duration) {
        if self.min.is_none_or(|min| rtt < min) {
            *self = Self { min: Some(rtt), stamp: now, probe_min: Some(rtt), probe_stamp: now, ..*self };
        }
    }

    pub(super) const fn get(&self) -> Option<Duration> {
        self.min
    }

    pub(super) fn update(&mut self, rs: &RateSample) {
        self.probe_expired = rs.now.since(self.probe_stamp) > PROBE_RTT_INTERVAL;
        if let Some(rtt) = rs.rtt
            && (self.probe_expired || self.probe_min.is_none_or(|min| rtt < min))
        {
            self.probe_min = Some(rtt);
            self.probe_stamp = rs.now;
        }
        let expired = rs.now.since(self.stamp) > FILTER_LEN;
        if let Some(probe) = self.probe_min
            && (expired || self.min.is_none_or(|min| probe < min))
        {
            self.min = Some(probe);
            self.stamp = self.probe_stamp;
        }
    }

    /// ProbeRTT is over: the next one is an interval away.
    pub(super) const fn schedule_next(&mut self, now: Instant) {
        self.probe_stamp = now;
    }
}
