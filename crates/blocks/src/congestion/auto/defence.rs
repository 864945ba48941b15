//! Defence of a share of the bottleneck where CUBIC's law would not get one.
//!
//! Called by competitive mode for every exchange, and after every drain that tells the kind's share. Beside flows that answer loss as
//! CUBIC does, CUBIC's window gets its share, however many they are. Beside flows that do not (BBR version 1) it would get next to
//! nothing, and a newcomer to a full queue would take minutes. A flow that defends itself grows faster than CUBIC, and does not answer
//! congestive loss.
//!
//! A *trial* tells who is there. It begins with the competition, and lasts until this kind has a good third of the bottleneck (0.36) or three drains
//! in turn find that the window has not grown. Whoever answers loss makes way while little is lost, and from then on CUBIC's law holds.
//! If more than 2 % is lost meanwhile, others are *unresponsive*, and the flow defends as much.
//!
//! Invariant: nobody defends 0.36 or more, nor while more than 5 % is lost.

use super::view::View;
use segstream_base::{Duration, Instant};

/// The share of the kind that is defended, and the most that may be lost meanwhile in the mean of a second.
const KIND_LEAST: f64 = 0.36;
const LOSS_MOST: f64 = 0.05;
/// Growth a round trip beyond CUBIC's: always, and so much more the less the kind has.
const GROWTH: f64 = 0.03;
const GROWTH_SMALL: f64 = 0.2;
/// A trial ends after so many drains in turn since which the window has not grown by this factor.
const STALLS: u32 = 3;
const GROWN: f64 = 1.1;
/// Whoever has less than this share tries again after that time.
const KIND_RETRIED: f64 = 0.25;
const RETRY: Duration = Duration::from_secs(30);
/// Others do not answer loss where so much is lost of what a flow sends that defends itself, in the mean of so many seconds. It is believed
/// for that time.
const LOSS_LEAST: f64 = 0.02;
const SECONDS: f64 = 4.0;
const BELIEVED: Duration = Duration::from_secs(30);

/// How far a trial has come.
#[derive(Clone, Copy, Debug, Default)]
struct Trial {
    /// The largest window so far, and how many drains in turn have not exceeded it by [`GROWN`].
    best: f64,
    stalls: u32,
}

/// Who is there, as far as trials have told.
#[derive(Clone, Copy, Debug)]
pub(super) struct Defence {
    /// The mean loss of some seconds.
    loss: f64,
    trial: Option<Trial>,
    /// When the last trial ended, and until when others count as unresponsive.
    ended_at: Instant,
    unresponsive_until: Instant,
}

impl Defence {
    /// Begins with a trial.
    pub(super) fn new(now: Instant) -> Self {
        Self { loss: 0.0, trial: Some(Trial::default()), ended_at: now, unresponsive_until: now }
    }

    /// Takes an exchange in. `kind` is the share that the last drain told.
    pub(super) fn record(&mut self, view: &View, kind: f64) {
        self.loss += (view.loss.fraction - self.loss) * (view.exchange.alpha / SECONDS).min(1.0);
        if !self.is_due(view.now) && view.now.since(self.ended_at) > RETRY && kind < KIND_RETRIED {
            self.trial = Some(Trial::default());
        }
    }

    /// By what part the window grows in a round trip beyond CUBIC's, while this kind has the share `kind` and the mean `loss` of a second.
    /// `None`: CUBIC's law holds, and congestive loss is answered.
    pub(super) fn growth(&self, now: Instant, kind: f64, loss: f64) -> Option<f64> {
        let defends = kind < KIND_LEAST && loss < LOSS_MOST && self.is_due(now);
        defends.then(|| GROWTH + GROWTH_SMALL * (1.0 - kind / KIND_LEAST))
    }

    /// A drain has told the share of this kind; the window is so many datagrams.
    pub(super) fn on_share(&mut self, now: Instant, kind: f64, window: f64) {
        // Why only while it defends: by CUBIC's law little is lost beside anyone.
        if self.is_due(now) && self.loss > LOSS_LEAST {
            self.unresponsive_until = now + BELIEVED;
        }
        let Some(trial) = &mut self.trial else { return };
        trial.stalls = if window > GROWN * trial.best { 0 } else { trial.stalls + 1 };
        trial.best = trial.best.max(window);
        if kind >= KIND_LEAST || trial.stalls >= STALLS {
            self.trial = None;
            self.ended_at = now;
        }
    }

    fn is_due(&self, now: Instant) -> bool {
        self.trial.is_some() || now < self.unresponsive_until
    }
}

#[cfg(test)]
mod tests {
    use super::super::view::{Covered, Loss};
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    /// Three seconds of `loss`, and then a drain that tells `kind`.
    fn slot(defence: &mut Defence, number: u64, loss: f64, kind: f64, window: f64) {
        for step in 0..300 {
            let now = at(3 * number) + Duration::from_millis(10 * step);
            let view = View {
                now,
                exchange: Covered { alpha: 0.01, ..Covered::default() },
                loss: Loss { fraction: loss, ..Loss::default() },
                ..View::default()
            };
            defence.record(&view, kind);
        }
        defence.on_share(at(3 * number + 3), kind, window);
    }

    #[test]
    fn whoever_has_got_a_good_third_at_little_loss_goes_on_by_cubics_law_and_tries_again_much_later() {
        let mut defence = Defence::new(at(0));
        assert_eq!(defence.growth(at(0), 0.0, 0.0), Some(GROWTH + GROWTH_SMALL));
        slot(&mut defence, 0, 0.004, 0.1, 20.0);
        slot(&mut defence, 1, 0.004, 0.2, 40.0);
        assert!(defence.growth(at(6), 0.2, 0.004).is_some());
        assert!(defence.growth(at(6), 0.2, LOSS_MOST).is_none() && defence.growth(at(6), KIND_LEAST, 0.004).is_none());
        slot(&mut defence, 2, 0.004, 0.42, 70.0);
        for number in 3..12 {
            slot(&mut defence, number, 0.004, 0.11, 20.0);
            assert!(defence.growth(at(3 * number + 3), 0.11, 0.004).is_none(), "slot {number}");
        }
        slot(&mut defence, 13, 0.004, 0.11, 20.0);
        assert!(defence.growth(at(43), 0.11, 0.004).is_some(), "30 s after the first trial");
    }

    #[test]
    fn a_window_that_grows_no_more_ends_a_trial() {
        let mut defence = Defence::new(at(0));
        for (number, window) in [5.0, 8.0, 8.1, 6.0, 8.0].into_iter().enumerate() {
            assert!(defence.growth(at(3 * number as u64), 0.08, 0.01).is_some(), "slot {number}");
            slot(&mut defence, number as u64, 0.015, 0.08, window);
        }
        assert!(defence.growth(at(15), 0.08, 0.01).is_none());
    }

    #[test]
    fn a_good_third_is_defended_where_nobody_answers_loss() {
        let mut defence = Defence::new(at(0));
        for (number, kind) in [0.1, 0.25, 0.42].into_iter().enumerate() {
            slot(&mut defence, number as u64, 0.03, kind, 200.0 * kind);
        }
        // The trial is over.
        assert!(defence.growth(at(9), 0.42, 0.03).is_none() && defence.growth(at(20), 0.2, 0.005).is_some());
        assert!(defence.growth(at(38), 0.2, 0.005).is_some() && defence.growth(at(40), 0.3, 0.005).is_none(), "believed for 30 s");
    }
}
