//! Outage: nothing comes back.
//!
//! Called when states go unanswered for longer than the path's patience (three round trips, 100 ms at least, and the
//! queue). The rate halves each time that passes again; the first echo ends it and start-up begins at a quarter of the
//! rate before. Where that echo tells that all that was sent has arrived, only reports were lost, and the mode before goes on.
//!
//! Invariant: the rate does not grow while nothing comes back.

use super::start_up::{self, StartUp};
use super::view::View;
use super::{Memory, Mode};
use segstream_base::Instant;

/// What was sent in the silence has arrived if at most so much of it was lost beyond the ordinary, if it arrived in at most so many times the time
/// in which it left, and if the echo left at most so many control times ago.
///
/// Why a tenth: in bursts of 1 % a tenth of a second loses 4 % now and then, and an outage most of what is sent.
const LOSS_MOST: f64 = 0.1;
const SLOWER_MOST: f64 = 1.25;
const TAUS_MOST: f64 = 2.0;

/// A silence.
#[derive(Clone, Debug)]
pub(super) struct Outage {
    halved_at: Instant,
    rate_before: f64,
    before: Mode,
}

impl Outage {
    /// The mode `before`, at `rate`, hears nothing more.
    pub(super) const fn new(now: Instant, rate: f64, before: Mode) -> Self {
        Self { halved_at: now, rate_before: rate, before }
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
    pub(super) fn step(&self, view: &View, memory: &mut Memory) -> (f64, Option<Mode>) {
        if has_arrived(view, memory) {
            return self.before.clone().enter(view, memory);
        }
        let rate = start_up::first_rate(view.datagram, view.rtt).max(self.rate_before / 4.0);
        (rate, Some(Mode::StartUp(StartUp::after_outage(view.now))))
    }
}

/// Whether what left in the silence has arrived as it left, so that only its reports were lost.
fn has_arrived(view: &View, memory: &Memory) -> bool {
    let is_whole = view.loss.fraction <= memory.loss_beyond_ordinary(view.now, LOSS_MOST);
    is_whole && view.exchange.beta <= SLOWER_MOST * view.exchange.alpha && view.exchange.lag <= TAUS_MOST * view.tau
}

#[cfg(test)]
mod tests {
    use super::super::view::{Covered, Loss};
    use super::*;
    use crate::congestion::auto::delay_mode::DelayMode;

    const RATE: f64 = 5e6;

    /// Whether the mode before goes on after the echo.
    fn goes_on(view: View) -> bool {
        let outage = Outage::new(Instant::ZERO, RATE, DelayMode::new(RATE, Instant::ZERO).into());
        let (rate, next) = outage.step(&view, &mut Memory::default());
        assert!(rate >= RATE / 4.0, "{rate}");
        matches!(next, Some(Mode::Delay(_)))
    }

    #[test]
    fn when_only_reports_were_lost_the_mode_before_goes_on() {
        let exchange = Covered { alpha: 0.2, beta: 0.2, lag: 0.065, paced: RATE, ..Covered::default() };
        let view = View { exchange, rtt: 0.06, tau: 0.06, datagram: 1228.0, rate: RATE, ..View::default() };
        let with_loss = |fraction| View { loss: Loss { fraction, ..Loss::default() }, ..view };
        assert!(goes_on(view) && goes_on(with_loss(0.08)), "bursts on the way");
        assert!(!goes_on(with_loss(0.2)), "what was sent was lost");
        assert!(!goes_on(View { exchange: Covered { beta: 0.4, ..exchange }, ..view }), "the path stood still");
        assert!(!goes_on(View { exchange: Covered { lag: 0.5, ..exchange }, ..view }), "the echo tells of before the silence");
    }
}
