//! Policed mode: what is sent above some rate is lost, and no queue tells (a policer, or a queue of a few packets).
//!
//! Called by delay mode, and by start-up, when much is lost without a queue. First a trial, at a little less than what arrived: if loss
//! goes away it was the rate, which is kept and probed now and then; if it stays, or comes back, it is ordinary
//! (random), and no reason to send less. Loss in bursts stays away for a while by chance, so its trial is longer and ends with the next
//! bursts. Once the bucket has filled again, all of the policer's rate is used until something is lost.
//!
//! Invariant: a trial ends after the echoes of two and a half control times, or of ten where the loss came in bursts.

use super::delay_mode::DelayMode;
use super::view::View;
use super::{Memory, Mode, law};
use segstream_base::{Duration, Instant};

/// Loss without a queue, beyond one and a half times the ordinary, that is looked into.
const LOSS_MOST: f64 = 0.04;
/// What is sent of what arrived: room for the policer's bucket to fill.
const ADOPTED: f64 = 0.97;
/// After so long at that the bucket has filled by a twentieth of a second, and what arrived before may be sent again. Why not longer: a
/// bucket of the usual tenth of a second fills in 3.3 s, and what comes after that is nobody's.
const FILLED_AFTER: Duration = Duration::from_secs(2);
/// A trial lasts until the echoes of so many control times have come.
const TRIAL_TAUS: f64 = 2.5;
/// One of loss in bursts, which stay away for a while now and then, lasts so many; so many exchanges with loss end it: the rate is not the
/// cause.
const TRIAL_TAUS_OF_BURSTS: f64 = 10.0;
const LOSSES_OF_BURSTS: u32 = 2;
/// So many exchanges with loss below the rate that got through: no policer, but others' queue.
const LOSSES: u32 = 3;
/// When more is tried, and how often that time doubles while the policer is found where it was. What the trials lose is then 1 % of all.
const PROBE_AFTER: Duration = Duration::from_secs(4);
const DOUBLINGS: u32 = 2;
/// How long after that the policer is expected where it was.
const KNOWN: Duration = Duration::from_secs(2);

/// Whether so much is lost without a queue that it must be looked into.
///
/// Why without a break: whoever sends above a policer's rate loses all the time. Loss in bursts comes to as much now and then,
/// has gone down by the end of a trial, and would be taken for a policer whose rate falls from trial to trial. Where a policer
/// was found a moment ago half the time says enough, and half as much is lost to it.
pub(super) fn is_suspicious(view: &View, memory: &Memory) -> bool {
    let most = memory.loss_beyond_ordinary(view.now, LOSS_MOST);
    let is_known = memory.policer_at.is_some_and(|at| view.now.since(at) < KNOWN);
    let lasting = if is_known { view.loss.calm.least_of_two } else { view.loss.calm.least_of_four };
    // Why the best service: a share that others' queue has cut down, whose target is long, must not make that queue look short.
    let has_queue = view.delay.queue > law::target(memory.service_most, view.datagram);
    !view.limited && !has_queue && view.loss.calm.is_significant && view.loss.calm.fraction > most && lasting > most / 2.0
}

/// The rate that got through.
///
/// Why the most of the last rounds where the application pauses, or the loss comes in bursts: the mean over a pause or a burst is no rate that
/// the path had. Why else no more than was sent: what arrives at once, as after a pause of the receiver, is no rate either.
fn got_through(view: &View) -> f64 {
    let received = if view.delay.noise > 0.0 { view.delivery.best } else { view.delivery.received };
    if view.pauses || view.loss.calm.is_bursty { view.delivery.best } else { received.min(view.delivery.sent) }
}

/// A trial, or its outcome.
#[derive(Clone, Copy, Debug)]
pub(super) struct Policed {
    rate: f64,
    /// What got through before the trial, over long enough to be known well. It is too much where the bucket was not empty yet.
    all: f64,
    since: Instant,
    /// The trial has shown that the rate was the cause.
    settled: bool,
    /// What was sent a second, and the loss, before the trial.
    sent_before: f64,
    loss_before: f64,
    /// That came in bursts.
    bursty: bool,
    /// Since when less is sent than the policer lets through, so that the bucket fills.
    fills_since: Instant,
    /// Exchanges with loss that left in such times.
    losses: u32,
}

impl Policed {
    pub(super) fn new(view: &View) -> Self {
        let rate = got_through(view) * ADOPTED;
        let all = view.delivery.received_over_tau.min(view.delivery.sent).max(rate / ADOPTED);
        let loss_before = view.loss.calm.fraction.max(view.loss.lasting);
        Self {
            rate,
            since: view.now,
            all,
            settled: false,
            sent_before: view.delivery.sent.max(rate / ADOPTED),
            loss_before,
            bursty: view.loss.calm.is_bursty,
            fills_since: view.now,
            losses: 0,
        }
    }

    /// Whether all of the policer's rate is used at `now`.
    fn uses_all(&self, now: Instant) -> bool {
        self.settled && now.since(self.fills_since) >= FILLED_AFTER
    }

    /// Whether a trial of loss in bursts has met some: the rate is not the cause.
    fn bursts_go_on(&mut self, view: &View) -> bool {
        let is_tried = self.bursty && !self.settled && view.exchange.sent_at > self.since;
        self.losses += u32::from(is_tried && view.loss.has_lost);
        is_tried && self.losses >= LOSSES_OF_BURSTS
    }

    pub(super) fn step(&mut self, view: &View, memory: &mut Memory) -> (f64, Option<Mode>) {
        let to_delay = |rate| (rate, Some(DelayMode::new(rate, view.now).into()));
        if self.bursts_go_on(view) {
            memory.learn_ordinary_loss(view.now, view.loss.calm.fraction);
            return to_delay(self.sent_before);
        }
        let trial = if self.bursty { TRIAL_TAUS_OF_BURSTS } else { TRIAL_TAUS };
        if !self.settled && view.exchange.sent_at.since(self.since).as_secs_f64() > trial * view.tau {
            if view.loss.calm.fraction > self.loss_before / 2.0 {
                let is_ordinary = memory.learn_ordinary_loss(view.now, view.loss.calm.fraction.max(self.loss_before));
                return to_delay(if is_ordinary { self.sent_before } else { self.rate });
            }
            if view.loss.calm.fraction > LOSS_MOST / 2.0 {
                // Why: what got through before was too much to go by, as where noise or a burst has gone into it.
                let rate = got_through(view).min(self.rate) * ADOPTED;
                *self = Self {
                    rate,
                    all: rate / ADOPTED,
                    since: view.now,
                    fills_since: view.now,
                    loss_before: view.loss.calm.fraction,
                    ..*self
                };
                return (self.rate, None);
            }
            let is_known = memory.policer_at.is_some_and(|at| view.now.since(at) < KNOWN);
            memory.policer_found = if is_known { memory.policer_found + 1 } else { 0 };
            self.settled = true;
        }
        if self.settled {
            let emptied = view.loss.has_lost && self.uses_all(view.exchange.sent_at);
            if emptied {
                self.fills_since = view.now;
                // Why half: it was too much, if the bucket was not empty when it was measured, or it was right and the bucket is empty now.
                self.all -= (self.all - self.rate / ADOPTED) / 2.0;
            }
            self.losses += u32::from(view.loss.has_lost && !emptied && view.exchange.sent_at > self.fills_since);
            // Why: below a policer's rate nothing is lost. What was taken for noise may be others' queue.
            memory.distrusts_falls = self.losses == LOSSES;
            if view.delay.queue > law::target(memory.service_most, view.datagram) {
                return to_delay(self.rate);
            }
            memory.policer_at = Some(view.now);
            if is_suspicious(view, memory) {
                // Why ordinary and yet at this rate: below a policer's rate nothing is lost, so these are bursts; or the policer
                // has others to serve now, and then the rate before would be too much.
                memory.learn_ordinary_loss(view.now, view.loss.calm.fraction);
                return to_delay(self.rate);
            }
        }
        if view.now.since(self.since) >= PROBE_AFTER * (1 << memory.policer_found.min(DOUBLINGS)) {
            return to_delay(self.rate);
        }
        (if self.uses_all(view.now) { self.all } else { self.rate }, None)
    }
}

#[cfg(test)]
mod tests {
    use super::super::calm_loss::CalmLoss;
    use super::super::view::{Covered, Delivery, Loss};
    use super::*;

    fn view(at_ms: u64) -> View {
        let now = Instant::ZERO + Duration::from_millis(at_ms);
        View {
            now,
            exchange: Covered { sent_at: now, ..Covered::default() },
            tau: 0.06,
            delivery: Delivery { sent: 10e6, received: 9e6, received_over_tau: 9e6, ..Delivery::default() },
            datagram: 1228.0,
            ..View::default()
        }
    }

    /// The mode after each of `times` in milliseconds, at which there is loss or not.
    fn trial(bursty: bool, times: &[(u64, bool)]) -> Vec<Option<(f64, bool)>> {
        let calm = CalmLoss { is_bursty: bursty, fraction: 0.06, ..CalmLoss::default() };
        let mut policed = Policed::new(&View { loss: Loss { calm, ..Loss::default() }, ..view(0) });
        let mut memory = Memory::default();
        let step = |&(at, has_lost): &(u64, bool)| {
            let (rate, next) = policed.step(&View { loss: Loss { has_lost, ..Loss::default() }, ..view(at) }, &mut memory);
            next.map(|next| (rate, matches!(next, Mode::Delay(_))))
        };
        times.iter().map(step).collect()
    }

    #[test]
    fn bursts_that_go_on_at_a_lower_rate_end_their_trial_at_the_rate_before() {
        assert_eq!(trial(true, &[(100, true), (200, false), (300, true)]), [None, None, Some((10e6, true))]);
        // Nothing more is lost: it was the rate, which is kept until it is probed.
        assert_eq!(trial(true, &[(100, false), (601, false), (3_000, false)]), [None; 3]);
        // Loss that comes evenly and goes away is a policer's, and one exchange with some more does not change that.
        assert_eq!(trial(false, &[(100, true), (200, false), (300, true)]), [None; 3]);
    }
}
