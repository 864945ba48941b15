//! Start-up: the rate grows by 70 % a control time until a queue of ours grows or much is lost.
//!
//! A queue is ours when the load of the bottleneck, rho, is above one by what our growth adds. Where the delay varies by itself,
//! it falls again although the rate has grown: falls in turn are noise, which the readings then take out of the queue. With
//! noise start-up also ends when what is delivered has ceased to grow.
//!
//! Called first, and after an outage. A queue that begins is seen a round trip later; until then rate and queue grow on.
//! At a doubling the peak is a whole bandwidth-delay product, at 70 % it is three quarters of one. Loss ends it where it lasts
//! and cannot be ordinary: a policer that is met at such growth takes four packets of ten a round trip later.
//!
//! Invariant: the rate is never more than four times what was really sent.

use super::competitive::Competitive;
use super::delay_mode::DelayMode;
use super::memory::ORDINARY_MOST;
use super::policed::Policed;
use super::view::View;
use super::{Memory, Mode, law};
use segstream_base::{Duration, Instant};

/// Datagrams a round trip at the beginning (RFC 6928).
const FIRST_DATAGRAMS: f64 = 10.0;
/// Growth of an exchange that covers a whole control time; at sixteen exchanges 1.033^16 = 1.69.
const GROWTH: f64 = 0.53;
/// A queue that ends it, and what part of the control time it is at least.
const QUEUE_LEAST: f64 = 0.0015;
const QUEUE_PART: f64 = 1.0 / 32.0;

/// The first rate: ten datagrams a round trip, or each 20 ms when that is longer.
pub(super) fn first_rate(datagram: f64, rtt: f64) -> f64 {
    FIRST_DATAGRAMS * datagram / rtt.max(law::TAU_LEAST)
}

/// So many falls of the delay in turn are noise, each within so many round trips of the one before, and unless more than this is lost.
const FALLS: u32 = 3;
const FALLS_WITHIN: f64 = 4.0;
const LOSS_OF_QUEUE: f64 = 0.03;
/// Below this traffic intensity a queue that grows is not ours: alone, ours is above it by a tenth when the queue shows.
const OVERLOAD: f64 = 1.05;
/// In others' queue start-up goes on for so long. Why not longer: a path of a long round trip grows slowly, and would take its rate from
/// streams of our kind, which make way for the queue. Why not shorter: on a usual path the share of one among few is reached by then.
const OTHERS_QUEUE: Duration = Duration::from_millis(300);
/// Growth of what is delivered, and rounds without it, that tell a full path where noise hides the queue (draft-ietf-ccwg-bbr 5.3.1.2).
const FULL_GROWTH: f64 = 1.25;
const FULL_ROUNDS: f64 = 3.0;

/// Start-up: besides the rate what was delivered when that grew last.
#[derive(Clone, Copy, Debug)]
pub(super) struct StartUp {
    /// When an outage ended, if it began with one. What left before has waited for that, and its delay tells nothing.
    outage_end: Option<Instant>,
    /// Since when there is a queue without a pause.
    queued_since: Option<Instant>,
    /// The longest queue since the delay last fell.
    peak: f64,
    falls: Falls,
    full: f64,
    grew_at: Instant,
}

impl StartUp {
    pub(super) const fn new(now: Instant) -> Self {
        Self { outage_end: None, queued_since: None, peak: 0.0, falls: Falls::NONE, full: 0.0, grew_at: now }
    }

    /// An outage is over.
    pub(super) const fn after_outage(now: Instant) -> Self {
        Self { outage_end: Some(now), ..Self::new(now) }
    }

    /// It goes on: what ended it was no queue.
    pub(super) const fn again(now: Instant, falls: Falls) -> Self {
        Self { falls, ..Self::new(now) }
    }

    pub(super) fn step(&mut self, view: &View, memory: &mut Memory) -> (f64, Option<Mode>) {
        let limit = (view.tau * QUEUE_PART).max(QUEUE_LEAST) + 1.5 * view.datagram / view.rate;
        memory.fell = self.fall(view, limit);
        self.queued_since = (view.delay.newest > limit).then(|| self.queued_since.unwrap_or(view.now));
        let is_others = self.queued_since.is_none_or(|since| view.now.since(since) < OTHERS_QUEUE);
        // Why not of a limited one: who sends less than the rate makes no queue, and of the few packets of a set-up delay and service are
        // chance.
        let is_ours = !view.limited && (view.delivery.rho > OVERLOAD || view.delay.newest > limit + view.tau / 2.0 || !is_others);
        if view.delay.newest > limit && is_ours {
            let service = if view.delay.noise > 0.0 { view.delivery.best } else { view.delivery.service.unwrap_or(view.delivery.received) };
            let service = service.min(view.rate);
            let doubt = self.outage_end.is_none_or(|end| view.exchange.sent_at >= end).then_some(Doubt {
                rate: view.rate,
                queue: view.delay.newest,
                limit,
                falls: self.falls,
            });
            let mode = DelayMode::after_start_up(service, view.now, doubt);
            return Mode::from(mode).enter(view, memory);
        }
        if view.delay.noise > 0.0 && (self.is_full(view) || view.loss.lasting > ORDINARY_MOST) {
            return Mode::from(DelayMode::new(view.delivery.best, view.now)).enter(view, memory);
        }
        // A policer, or a queue of a few packets. Why lasting: of the first packets one lost is a tenth, and a burst is most. Why no
        // trial at less: a policer that is met at such growth soon takes more, and a trial costs a fifth of a second.
        if view.loss.lasting > ORDINARY_MOST {
            // Why: the first packets of a live source are few, and those who fill the queue take some of them. What it gets on trial would keep it
            // waiting for seconds, and a policer makes it give way.
            if memory.source.lacks(view, view.delivery.received) {
                return Mode::Competitive(Box::new(Competitive::begin(view, view.rate))).enter(view, memory);
            }
            return Mode::Policed(Policed::new(view)).enter(view, memory);
        }
        // Why no more than was paced: what arrives at once, as after a pause of the receiver, is no rate of service.
        memory.note_service(view.now, view.delivery.received.min(view.rate));
        if view.limited {
            self.grew_at = view.now;
            return (view.rate, None);
        }
        // Why: a rate that was not made use of must not grow (RFC 7661).
        let grown = view.rate * (1.0 + GROWTH * view.exchange.alpha.min(view.tau) / view.tau);
        (grown.min(view.rate.max(4.0 * view.delivery.sent)), None)
    }

    /// By how much the delay has fallen, if it was noise.
    fn fall(&mut self, view: &View, limit: f64) -> Option<f64> {
        self.peak = self.peak.max(view.delay.newest);
        if self.peak <= limit || view.delay.newest >= limit.max(self.peak / 2.0) {
            return None;
        }
        let fall = core::mem::take(&mut self.peak) - view.delay.newest;
        self.falls.are_noise(view, fall).then_some(fall)
    }

    /// Whether what is delivered has ceased to grow.
    fn is_full(&mut self, view: &View) -> bool {
        if view.delivery.best >= FULL_GROWTH * self.full {
            self.full = view.delivery.best;
            self.grew_at = view.now;
        }
        view.now.since(self.grew_at).as_secs_f64() > FULL_ROUNDS * view.delivery.round
    }
}

/// Falls of the delay while the rate grew, which a queue of ours does not do.
///
/// Why three, soon after each other: others' queue falls too, at their drains and as they begin, but not that often. Why without much loss:
/// that is how it falls. Why none of a round trip: so long is a queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Falls {
    last: Option<Instant>,
    /// How many in turn.
    count: u32,
}

impl Falls {
    const NONE: Self = Self { last: None, count: 0 };

    /// Another fall; returns whether they are noise.
    pub(super) fn are_noise(&mut self, view: &View, fall: f64) -> bool {
        let soon = Duration::from_secs_f64(FALLS_WITHIN * (view.tau + view.delay.queue));
        let last = if view.loss.fraction > LOSS_OF_QUEUE { None } else { self.last };
        self.last = Some(view.now);
        let follows = last.is_some_and(|last| view.now.since(last) < soon) && fall < view.tau;
        self.count = if follows { self.count + 1 } else { 1 };
        self.count >= FALLS
    }
}

/// Whether what ended start-up was a queue is not certain for a round trip.
///
/// Why: what left before the end left ever faster. A queue of ours grew under it, and all that follows is as late. A delay that falls below
/// the limit again was noise.
#[derive(Clone, Copy, Debug)]
pub(super) struct Doubt {
    /// The rate at the end.
    pub(super) rate: f64,
    /// The longest queue seen, and what is none.
    pub(super) queue: f64,
    pub(super) limit: f64,
    pub(super) falls: Falls,
}

impl Doubt {
    /// Looks at an exchange that left before the end; returns by how much the delay fell, if it was noise.
    pub(super) fn look(&mut self, view: &View) -> Option<f64> {
        self.queue = self.queue.max(view.delay.newest);
        let falls = view.delay.newest < self.limit.max(self.queue / 2.0) && view.loss.fraction <= LOSS_OF_QUEUE;
        falls.then_some(self.queue - view.delay.newest)
    }
}
