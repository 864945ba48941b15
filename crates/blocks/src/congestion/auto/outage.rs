//! Outage: nothing comes back.
//!
//! Called when states go unanswered for longer than the path's patience (three round trips, 100 ms at least, and the
//! queue). The rate halves each time that passes again; the first echo ends it and start-up begins at a quarter of the
//! rate before.
//!
//! Invariant: the rate does not grow while nothing comes back.

use super::readings::View;
use super::start_up::{self, StartUp};
use super::{Memory, Mode};
use segstream_base::Instant;

/// A silence.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outage {
    halved_at: Instant,
    rate_before: f64,
}

impl Outage {
    pub(super) const fn new(now: Instant, rate: f64) -> Self {
        Self { halved_at: now, rate_before: rate }
    }

    /// Still nothing; returns the rate.
    pub(super) fn on_silence(&mut self, now: Instant, rate: f64, patience: f64, datagram: f64) -> f64 {
        if now.since(self.halved_at).as_secs_f64() < patience {
            return rate;
        }
        self.halved_at = now;
        (rate / 2.0).max(datagram / patience).min(rate)
    }

    /// The first echo after the silence.
    pub(super) fn step(self, view: &View, _: &mut Memory) -> (f64, Option<Mode>) {
        let rate = start_up::first_rate(view.datagram, view.rtt).max(self.rate_before / 4.0);
        (rate, Some(Mode::StartUp(StartUp::after_outage(view.now))))
    }
}
