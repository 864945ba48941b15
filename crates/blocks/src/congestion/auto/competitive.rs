//! Competitive mode: hold our own against traffic that keeps the queue full.
//!
//! Called when delay mode has found competing flows, and when start-up or delay mode holds a live source back. The rate is a window over the
//! round trip, `window / (rtt + queue)`. The window grows and shrinks as CUBIC's (RFC 9438), so that it gets what a CUBIC flow would get.
//! Congestive loss is loss while the queue is above 60 % of the longest seen of late; loss at a shorter queue is random, and nothing
//! happens. A mark is answered as CUBIC answers it, whatever the queue (RFC 9438 4.6, RFC 3168 5).
//!
//! At each slot of the schedule the queue is drained for a round trip, which tells the *kind's share*: what part of the bottleneck all
//! senders of this kind have. Each of them sees the same.
//!
//! - Below a half it catches up until the queue overflows for the first time, as slow start does.
//! - Below 0.36 it may defend itself: [`super::defence`].
//! - Above 0.7, nobody else is there: back to delay mode. So does a queue that two drains in turn have emptied, or that is gone by
//!   itself for two seconds. Who returns within ten seconds of that stays for twenty, whatever drains have emptied.
//!
//! A source whose rate is known in advance may hold more than the window ([`super::source_rate`]).
//!
//! Invariant: the window of a limited stream, or of one that pauses and sends less than the window gives, does not grow; a stream that sends
//! next to nothing does not find that others are gone.
//!
//! Limit: while the queue grows it is the longest of late, so a packet that the path loses then counts as an overflow and ends catching up.

use super::cubic_window::CubicWindow;
use super::defence::Defence;
use super::delay_mode::DelayMode;
use super::drain::{Cause, DRAIN_RATE, Drain, Others};
use super::longest_queue::LongestQueue;
use super::source_rate::{LOSS_SECONDS, SourceRate};
use super::view::View;
use super::{Memory, Mode, law};
use segstream_base::{Duration, Instant};

/// Loss is congestive above this part of the longest queue.
const CONGESTIVE: f64 = 0.6;
/// The most the window begins with, of the best service seen.
const SHARE_FIRST: f64 = 0.5;
/// The share of the kind where loss has told of others.
const KIND_UNKNOWN: f64 = 0.5;
/// No share of the kind counts as less.
const KIND_FLOOR: f64 = 0.02;

/// What it takes to believe that nobody else is there.
struct Proof {
    /// What part of a new measurement of the kind's share is believed.
    believed: f64,
    /// From this share of the kind on nobody else is there.
    alone: f64,
    /// So many drains in turn must empty the queue.
    emptied: u32,
}
const PROOF: Proof = Proof { believed: 0.6, alone: 0.7, emptied: 2 };
/// The share that a drain of one round trip tells in noise is off by a third of the bottleneck.
const PROOF_IN_NOISE: Proof = Proof { believed: 0.25, alone: 0.8, emptied: 4 };

/// A drain counts as one that emptied the queue by a share of the kind above this if it can be told. A queue below this part of the longest
/// is emptied by the absence of anyone, and such a drain does not count.
const EMPTIED_FROM: f64 = 0.5;
const KIND_EMPTIES: f64 = 0.6;
/// Control times, and seconds at least, without a queue after which there is no competition; a queue below this part of the longest
/// is none.
const GONE_TAUS: f64 = 8.0;
const GONE_LEAST: f64 = 2.0;
const GONE_PART: f64 = 1.0 / 3.0;
/// Until the queue overflows, a flow whose kind has less than a half grows beyond the law, as in start-up: by up to so much in a round trip,
/// and by less as its kind comes near the half.
const HALF: f64 = 0.5;
const CATCH_UP_GROWTH: f64 = 0.7;
/// The window of a source with pauses does not grow while less than this part of it is used (RFC 9438 5.8).
const USED: f64 = 0.8;
/// Who sends less than this part of the rate sends next to nothing.
const IDLE_PART: f64 = 0.1;
/// Who returns within this time has left too early, and stays for that time.
const RETURN_SOON: Duration = Duration::from_secs(10);
const STAY: Duration = Duration::from_secs(20);

/// Competitive mode's state.
#[derive(Clone, Debug)]
pub(super) struct Competitive {
    window: CubicWindow,
    /// When congestive loss was last answered.
    decreased_at: Instant,
    /// The mean loss of a second.
    loss: f64,
    /// The mean loss of three seconds.
    lasting_loss: f64,
    longest: LongestQueue,
    /// When a queue was last seen.
    stood_at: Instant,
    drain: Option<Drain>,
    slot: u64,
    /// How many drains in turn have emptied the queue.
    emptied: u32,
    /// Drains that empty the queue are no reason to leave before this.
    stay_until: Instant,
    /// The share of this kind at the last drain that told it, and the window then.
    kind: f64,
    window_then: f64,
    defence: Defence,
    /// Half of the bottleneck in bytes a second, once a drain has told.
    half: Option<f64>,
    /// The queue has overflowed since the mode began, or has marked.
    has_overflowed: bool,
    /// The queue has overflowed in the last drain.
    last_has_overflowed: bool,
}

impl Competitive {
    /// Begins at `share` bytes a second, which is what we had before `others` came.
    pub(super) fn new(view: &View, share: f64, others: Others, memory: &Memory) -> Self {
        let share = share.min((SHARE_FIRST * memory.service_most).max(view.delivery.received));
        let returned = memory.left_at.is_some_and(|at| view.now.since(at) < RETURN_SOON);
        let mut new = Self { loss: view.loss.fraction, ..Self::begin(view, share) };
        // Why: loss has told of them. They have answered it, and we have not. With noise it may be none of theirs.
        if others.kind.is_none() && view.delay.noise == 0.0 {
            new.decrease(view.now);
        }
        if returned {
            new.stay_until = view.now + STAY;
        }
        if let Some(kind) = others.kind {
            new.kind = kind.max(KIND_FLOOR);
            new.half = Some(half(view.delivery.received, new.kind, memory));
        }
        new.window_then = new.window.get();
        new
    }

    /// Begins at `rate` bytes a second, beside others of whom nothing is known. What was lost as they met is no mean of a second.
    pub(super) fn begin(view: &View, rate: f64) -> Self {
        let window = CubicWindow::new(view.now, window_of(rate, view));
        Self {
            window,
            decreased_at: view.now,
            loss: 0.0,
            lasting_loss: 0.0,
            longest: LongestQueue::new(view.delay.queue),
            stood_at: view.now,
            drain: None,
            slot: view.slot,
            emptied: 0,
            stay_until: view.now,
            kind: KIND_UNKNOWN,
            window_then: window.get(),
            defence: Defence::new(view.now),
            half: None,
            has_overflowed: false,
            last_has_overflowed: false,
        }
    }

    pub(super) const fn drain(&self) -> Option<&Drain> {
        self.drain.as_ref()
    }

    pub(super) fn step(&mut self, view: &View, memory: &mut Memory) -> (f64, Option<Mode>) {
        self.longest.record(view.delay.queue, view.exchange.alpha);
        let rtt = view.rtt + view.delay.queue;
        let rate = self.rate(view, memory);
        let on_trial = || DelayMode::on_trial(rate.min(view.delivery.best), view.now).into();
        if let Some(drain) = &mut self.drain {
            drain.record(view);
            let (is_sending_less, is_over) = (drain.is_sending_less(view.now), drain.is_over(view));
            self.answer_in_drain(view);
            let leaves = is_over && self.judge(view, rate, memory);
            return (if is_sending_less { DRAIN_RATE * rate } else { rate }, leaves.then(on_trial));
        }
        if self.queue_is_gone(view, rate) {
            return (rate, Some(on_trial()));
        }
        self.control(view, rtt, rate);
        self.source_may_give_way(view, memory);
        if std::mem::replace(&mut self.slot, view.slot) != view.slot && !view.limited {
            self.drain = Some(Drain::new(view, rtt, Cause::Schedule));
        }
        (self.rate(view, memory), None)
    }

    /// The source gives way when it loses much, as a flow with a window does: from what it had.
    ///
    /// Why not from the window: that was decreased at every loss while the source held its rate above it, and is next to nothing.
    fn source_may_give_way(&mut self, view: &View, memory: &mut Memory) {
        self.lasting_loss += (view.loss.fraction - self.lasting_loss) * (view.exchange.alpha / LOSS_SECONDS).min(1.0);
        let held = memory.source.held(view.now, self.half).min(view.delivery.sent);
        let held = window_of(held, view);
        if memory.source.on_loss(view.now, self.lasting_loss) && held > self.window.get() {
            self.window = CubicWindow::new(view.now, held);
            self.decrease(view.now);
        }
    }

    /// Answers an overflow.
    fn decrease(&mut self, now: Instant) {
        self.window.decrease(now);
        self.decreased_at = now;
        self.has_overflowed = true;
    }

    /// What the window gives, or the source may hold.
    fn rate(&self, view: &View, memory: &Memory) -> f64 {
        self.of_window(view).max(memory.source.held(view.now, self.half))
    }

    /// Bytes a second.
    fn of_window(&self, view: &View) -> f64 {
        self.window.get() * view.datagram / (view.rtt + view.delay.queue)
    }

    fn queue_is_gone(&mut self, view: &View, rate: f64) -> bool {
        // Why: who sends next to nothing sees the queue as it was.
        let is_idle = view.limited && view.delivery.sent < IDLE_PART * rate;
        if is_idle || view.delay.queue > (law::target(rate, view.datagram) / 2.0).min(GONE_PART * self.longest.get()) {
            self.stood_at = view.now;
        }
        view.now.since(self.stood_at).as_secs_f64() > (GONE_TAUS * view.tau).max(GONE_LEAST)
    }

    /// The window's answer to an exchange in a drain: it does not grow, and an overflow is answered as at other times.
    fn answer_in_drain(&mut self, view: &View) {
        if !self.overflows(view) {
            return;
        }
        self.drain.iter_mut().for_each(Drain::note_overflow);
        if view.exchange.sent_at <= self.decreased_at {
            return;
        }
        if !self.has_overflowed || self.defence.growth(view.now, self.kind, self.loss).is_none() {
            self.decrease(view.now);
        }
    }

    /// The window's answer to an exchange at `rate`.
    fn control(&mut self, view: &View, rtt: f64, rate: f64) {
        self.loss += (view.loss.fraction - self.loss) * view.exchange.alpha.min(1.0);
        // Why by the window: the kind's share is as old as the last drain, and grows with ours.
        let kind = self.kind * window_of(rate, view) / self.window_then;
        self.defence.record(view, self.kind);
        let overflows = self.overflows(view) && view.exchange.sent_at > self.decreased_at;
        // Why the first is always answered: it ends catching up as it ends slow start.
        let defends = if overflows && !self.has_overflowed { None } else { self.defence.growth(view.now, kind, self.loss) };
        self.has_overflowed |= overflows;
        let grows = defends.into_iter().chain(self.catch_up(rate)).reduce(f64::max);
        if overflows && grows.is_none() {
            self.decrease(view.now);
        } else if view.limited || view.pauses && view.delivery.sent < USED * self.of_window(view) {
            self.window.pause(Duration::from_secs_f64(view.exchange.alpha));
        } else {
            if let Some(growth) = grows {
                self.window.scale(1.0 + growth * (view.exchange.alpha / rtt).min(1.0));
            }
            self.window.grow(view.now, view.exchange.alpha, rtt);
        }
    }

    /// Whether the exchange has met a full queue, or was marked.
    fn overflows(&self, view: &View) -> bool {
        view.loss.has_marked || view.loss.has_lost && view.delay.queue > CONGESTIVE * self.longest.get()
    }

    /// By what part the window of a flow that sends at `rate` grows in a round trip beyond its law, while the queue has not overflowed and
    /// once a drain has told that this kind has less than a half of the bottleneck, and what that is.
    ///
    /// Why: others who fill the queue grow until it overflows. A window that fits the queue they found is a small share of the full one.
    /// Why by the rate: the window grows with others' queue too.
    fn catch_up(&self, rate: f64) -> Option<f64> {
        let half = self.half.filter(|half| !self.has_overflowed && self.kind < HALF && rate < *half)?;
        Some(CATCH_UP_GROWTH * (1.0 - rate / half))
    }

    /// The echoes of a drain have come; returns whether competition is over.
    fn judge(&mut self, view: &View, rate: f64, memory: &mut Memory) -> bool {
        let Some(drain) = self.drain.take() else { return false };
        self.stood_at = view.now;
        // Why: others answer an overflow too, and rho falls by what they send less. Why the second in turn counts: beside flows that do not
        // answer loss every drain is one of these.
        let last_has_overflowed = std::mem::replace(&mut self.last_has_overflowed, drain.has_overflowed());
        let is_doubtful = drain.has_overflowed() && !last_has_overflowed;
        let is_noisy = view.delay.noise > 0.0;
        let proof = if is_noisy { PROOF_IN_NOISE } else { PROOF };
        let kind = drain.kind(view);
        if let Some(kind) = kind {
            self.kind = (self.kind + proof.believed * (kind - self.kind)).max(KIND_FLOOR);
            self.window_then = window_of(rate, view);
            self.defence.on_share(view.now, self.kind, self.window.get());
            // Why not by the mean: it begins at a half, so a share of a fiftieth looks like a third, and the bottleneck many times too narrow.
            if !is_doubtful {
                self.half = Some(half(rate, kind, memory));
            }
        }
        if is_doubtful {
            return false;
        }
        // Why the share too: who does not know the base delay takes what it sees first of it for an empty queue.
        // In noise the share alone, if it is told: a queue no longer than the noise's margin is emptied by every drain.
        let is_kind = kind.is_none_or(|kind| kind > KIND_EMPTIES && !is_noisy);
        let has_emptied = drain.has_emptied(law::target(rate, view.datagram) / 2.0);
        if drain.queue_before() > EMPTIED_FROM * self.longest.get() {
            self.emptied = if has_emptied && is_kind { self.emptied + 1 } else { 0 };
        }
        let is_alone = kind.is_some() && self.kind > proof.alone;
        let over = is_alone || (self.emptied >= proof.emptied && view.now > self.stay_until);
        if over {
            memory.left_at = Some(view.now);
        }
        if is_alone {
            memory.source.on_alone(drain.received_before());
        }
        over
    }
}

/// Half of a bottleneck of which `rate` is the part `kind`, and which is at least the best service.
fn half(rate: f64, kind: f64, memory: &Memory) -> f64 {
    SourceRate::half(rate, kind.max(KIND_FLOOR)).max(SourceRate::half(memory.service_most, 1.0))
}

/// The window, in datagrams, that gives `rate`.
fn window_of(rate: f64, view: &View) -> f64 {
    rate * (view.rtt + view.delay.queue) / view.datagram
}

#[cfg(test)]
mod tests {
    use super::super::view::{Covered, Delay, Delivery, Loss};
    use super::*;

    fn at(ms: u64, queue: f64) -> View {
        let now = Instant::ZERO + Duration::from_millis(ms);
        let alpha = 0.0025;
        View {
            now,
            exchange: Covered { sent_at: now, alpha, beta: alpha, ..Covered::default() },
            tau: 0.04,
            rtt: 0.04,
            delay: Delay { queue, newest: queue, ..Delay::default() },
            delivery: Delivery { sent: 1e6, ..Delivery::default() },
            datagram: 1000.0,
            ..View::default()
        }
    }

    /// By what the window is multiplied by one exchange with a queue of `queue`, after a second in which the longest was 20 ms.
    fn answer(queue: f64, change: impl Fn(View) -> View) -> f64 {
        let mut memory = Memory::new(SourceRate::new(None));
        let mut mode = Competitive::begin(&at(0, 0.02), 1e6);
        (1..400).for_each(|exchange| drop(mode.step(&at(exchange * 5 / 2, 0.02), &mut memory)));
        let before = mode.window.get();
        drop(mode.step(&change(at(1000, queue)), &mut memory));
        mode.window.get() / before
    }

    #[test]
    fn a_mark_is_answered_at_any_queue_and_loss_at_a_long_one() {
        let with = |loss| move |view| View { loss, ..view };
        let (lost, marked) = (with(Loss { has_lost: true, ..Loss::default() }), with(Loss { has_marked: true, ..Loss::default() }));
        let of_law = answer(0.005, |view| view);
        for (queue, lost_at) in [(0.019, 0.7), (0.005, of_law)] {
            assert!((answer(queue, lost) - lost_at).abs() < 0.01, "{queue}: {}", answer(queue, lost));
            assert!((answer(queue, marked) - 0.7).abs() < 0.01, "{queue}: {}", answer(queue, marked));
        }
        assert!(answer(0.019, |view| view) >= 1.0);
    }

    #[test]
    fn a_small_share_catches_up_until_the_queue_overflows_which_is_answered_even_in_a_trial() {
        let mut memory = Memory::new(SourceRate::new(None));
        let mut mode = Competitive::begin(&at(0, 0.02), 1e6);
        (mode.kind, mode.half) = (0.2, Some(2.5e6));
        let mut now = 0;
        let mut grown_in_a_round_trip = |mode: &mut Competitive| {
            let before = mode.window.get();
            for _ in 0..24 {
                now += 5;
                drop(mode.step(&at(now / 2, 0.02), &mut memory));
            }
            mode.window.get() / before
        };
        let caught_up = grown_in_a_round_trip(&mut mode);
        assert!((1.3..1.45).contains(&caught_up), "{caught_up}");
        let lost = View { loss: Loss { has_lost: true, ..Loss::default() }, ..at(62, 0.02) };
        let before = mode.window.get();
        drop(mode.step(&lost, &mut Memory::new(SourceRate::new(None))));
        assert!((mode.window.get() / before - 0.7).abs() < 0.01, "{}", mode.window.get() / before);
        let in_the_trial = grown_in_a_round_trip(&mut mode);
        assert!((1.03..1.2).contains(&in_the_trial), "{in_the_trial}");
        drop(mode.step(&View { loss: lost.loss, ..at(130, 0.02) }, &mut Memory::new(SourceRate::new(None))));
        assert!(mode.window.get() > 0.95 * 0.7 * before * in_the_trial, "the second is not answered in the trial");
    }

    #[test]
    fn an_overflow_within_a_drain_is_answered_and_one_from_before_the_mode_is_not() {
        let mut memory = Memory::new(SourceRate::new(None));
        let lost_of = |ms: u64, sent_ms: u64| {
            let view = View { loss: Loss { has_lost: true, ..Loss::default() }, ..at(ms, 0.02) };
            View { exchange: Covered { sent_at: Instant::ZERO + Duration::from_millis(sent_ms), ..view.exchange }, ..view }
        };
        let mut mode = Competitive::begin(&at(100, 0.02), 1e6);
        let before = mode.window.get();
        drop(mode.step(&lost_of(110, 90), &mut memory));
        assert!(mode.window.get() >= before && !mode.has_overflowed, "what left before the mode began");
        drop(mode.step(&View { slot: 1, ..at(120, 0.02) }, &mut memory));
        assert!(mode.drain().is_some());
        let before = mode.window.get();
        for (ms, left) in [(130, 0.7), (140, 0.7)] {
            drop(mode.step(&View { slot: 1, ..lost_of(ms, 115 + (ms - 130) / 5) }, &mut memory));
            assert!((mode.window.get() / before - left).abs() < 1e-9, "{ms} ms: {}", mode.window.get() / before);
        }
    }

    #[test]
    fn a_window_that_is_not_used_does_not_grow_and_that_time_does_not_count() {
        let after = |seconds: u64, change: fn(View) -> View| {
            let mut memory = Memory::new(SourceRate::new(None));
            // Why a begin without a share told: the kind counts as a half, which is neither defended nor caught up with.
            let mut mode = Competitive::begin(&at(0, 0.02), 1e6);
            let times = (1..400 * seconds).map(|exchange| exchange * 5 / 2);
            times.clone().for_each(|ms| drop(mode.step(&change(at(ms, 0.02)), &mut memory)));
            let unused = mode.window.get();
            times.for_each(|ms| drop(mode.step(&at(1000 * seconds + ms, 0.02), &mut memory)));
            (unused / 60.0, mode.window.get() / 60.0)
        };
        let (used, grown_for_twice_as_long) = after(4, |view| view);
        assert!(used > 1.3, "{used}");
        for (name, change) in [
            ("limited", (|view| View { limited: true, ..view }) as fn(View) -> View),
            ("with pauses", |view| View { pauses: true, delivery: Delivery { sent: 0.5e6, ..view.delivery }, ..view }),
        ] {
            let (unused, then) = after(4, change);
            assert_eq!(unused, 1.0, "{name}");
            assert!((then - used).abs() < 0.02 && then < grown_for_twice_as_long, "{name}: {then} in place of {used}");
        }
        assert!(after(4, |view| View { pauses: true, ..view }).0 > 1.0, "what is used grows, with pauses too");
    }
}
