//! The delay exit of HyStart, as Linux's `tcp_cubic` has it: slow start ends when the first round trips of a round are longer than
//! the shortest ever.
//!
//! Called by [`super::cubic`] for the CUBIC of cross traffic. Invariant: once a round at most.
//! Source: HyStart, Ha and Rhee 2011, 4.3. [`super::hystart`] is what the IETF has made of it.

use super::Report;
use segstream_base::Duration;

/// What the round that goes on has seen.
#[derive(Clone, Copy, Debug)]
pub(super) struct DelayExit {
    /// The round ends when a packet is acknowledged that was sent after this many bytes had been delivered.
    round_end: u64,
    samples: u32,
    shortest: Duration,
}

impl Default for DelayExit {
    fn default() -> Self {
        Self { round_end: 0, samples: 0, shortest: Duration::MAX }
    }
}

impl DelayExit {
    /// Below this window nothing is concluded.
    const WINDOW_MIN: f64 = 16.0;
    /// Round trips that are looked at in a round.
    const SAMPLES: u32 = 8;

    /// Whether slow start, in which the window has `window` packets, ends with this report.
    pub(super) fn shall_leave(&mut self, report: &Report, window: f64) -> bool {
        if report.sample.map_or(0, |sample| sample.prior_delivered) >= self.round_end {
            *self = Self { round_end: report.delivered_total, ..Self::default() };
        }
        let Some(rtt) = report.rtt.filter(|_| self.samples < Self::SAMPLES) else { return false };
        self.samples += 1;
        self.shortest = self.shortest.min(rtt);
        let margin = (report.rtt_min / 8).clamp(Duration::from_millis(4), Duration::from_millis(16));
        self.samples == Self::SAMPLES && window >= Self::WINDOW_MIN && self.shortest >= report.rtt_min + margin
    }
}
