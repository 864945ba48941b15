//! Delay mode: hold the queue at the target.
//!
//! Called while no traffic of another kind fills the queue. The law, with `share` the rate at which what we send is
//! served (HT 3.5, x / beta) and T the target at that rate:
//!
//! ```text
//! queue' = queue + lag * (paced / share - 1)        what a packet sent now will meet, if all others do as we did
//! rate   = share * (1 + 0.85 * (T - queue') / (tau + queue) - 0.2 * marks)
//! ```
//!
//! A queue tells the share at once, so overload is answered within a round trip by the rate that fits. The forecast
//! queue' takes the dead time out of the loop, which is then stable at any round trip. Share is averaged over one control
//! time: an unfiltered one would repeat every disturbance a round trip later for ever.
//!
//! All streams at one queue converge to the rate whose target it is. While no queue stands the share grows, slowly at
//! first and faster the longer that lasts. At each slot of the schedule all drain the queue together, so that newcomers learn the base
//! delay, and so that a queue that remains is known to be others'.
//!
//! Invariant: a limited stream neither grows nor loses its share.

use super::competing_flows::CompetingFlows;
use super::competitive::Competitive;
use super::drain::{Cause, DRAIN_RATE, Drain, Others, SPAN_MOST, telling_time};
use super::policed::{self, Policed};
use super::probe::{self, Probing};
use super::queue_loss::QueueLoss;
use super::start_up::{Doubt, Falls, StartUp};
use super::view::View;
use super::{Memory, Mode, law};
use segstream_base::{Duration, Instant};

/// The gain of the law. With the forecast a loop of gain below 1 does not ring.
pub(super) const GAIN: f64 = 0.85;
/// The push of marks when every packet is marked: below that of the target, or marks would hold the rate down for good.
const MARK_GAIN: f64 = 0.2;
/// The bounds of the push.
const PUSH_LEAST: f64 = -0.7;
const PUSH_MOST: f64 = 0.5;
/// A service below this part of the share is believed at once: the capacity has dropped.
const DROP: f64 = 0.75;
/// Unless so many targets stand and what we send is served: then it is we who have made way.
const LONG: f64 = 2.0;
/// Or unless less than this part of the share was sent, which is less than the law ever asks for: the in-flight cap held us back.
const HARDLY: f64 = 0.25;
/// Growth a control time while no queue stands: at first, at most, and its own growth.
const VELOCITY_LEAST: f64 = 0.02;
const VELOCITY_MOST: f64 = 0.5;
const VELOCITY_GROWTH: f64 = 0.7;
/// The most where noise can hide a queue: what a carried probe must have grown by.
const VELOCITY_IN_NOISE: f64 = 0.1;
/// On a noisy path a rate below this part of what was carried is held down, and more loss than this speaks against a probe.
const HELD: f64 = 0.9;
const LOSS_OF_PROBE: f64 = 0.02;
/// From this traffic intensity on the queue grows by more than newcomers make it: the capacity has dropped, also within a drain.
const SLOWER: f64 = 2.0;
/// How long after a drain another's is joined at the earliest.
const DRAIN_JOINED: Duration = Duration::from_secs(1);
/// A source that pauses has emptied the queue lately if it has within this time.
const EMPTIED_WITHIN: Duration = Duration::from_secs(1);
/// The queue falling below this part of its mean is another's drain.
const DRAIN_SEEN: f64 = 0.6;
/// The least length of a drain in seconds.
const DRAIN_LEAST: f64 = 0.01;
/// A drain of a queue that may be others' lasts so many times what it takes to tell the share, since the exchanges at its edges do not count.
const DRAIN_TELLS: f64 = 1.5;
/// Where there was noise a drain lasts so many control times at least, or it tells nothing of the queue.
const DRAIN_IN_NOISE: f64 = 0.5;
/// A queue is above the target from this part of it on: control leaves it within a tenth.
const ABOVE: f64 = 1.1;
/// Loss that comes with a queue means nothing in the mode's first second, whose start it is.
const SETTLED: Duration = Duration::from_secs(1);

/// Delay mode's state.
#[derive(Clone, Debug)]
pub(super) struct DelayMode {
    /// The rate of service, bytes a second.
    share: f64,
    velocity: f64,
    probing: Probing,
    /// The mean queue of ten control times.
    usual: f64,
    drain: Option<Drain>,
    drained_at: Instant,
    /// When the queue was short without a drain, a quarter of the target.
    emptied_at: Option<Instant>,
    /// The slot of the schedule at the last exchange.
    slot: Option<u64>,
    /// What left before this, within a drain, tells nothing of the share.
    frozen_until: Instant,
    competing_flows: CompetingFlows,
    since: Instant,
    queue_loss: QueueLoss,
    /// The slot in which loss first came with a queue.
    lost_in: Option<u64>,
    /// What ended start-up may have been noise.
    doubt: Option<Doubt>,
}

impl DelayMode {
    /// Begins at `share` bytes a second.
    pub(super) fn new(share: f64, now: Instant) -> Self {
        Self {
            share,
            velocity: VELOCITY_LEAST,
            probing: Probing::new(now),
            usual: 0.0,
            drain: None,
            drained_at: now,
            emptied_at: None,
            slot: None,
            frozen_until: now,
            competing_flows: CompetingFlows::new(now),
            since: now,
            queue_loss: QueueLoss::default(),
            lost_in: None,
            doubt: None,
        }
    }

    /// After start-up, which a queue has ended unless it was noise.
    pub(super) fn after_start_up(share: f64, now: Instant, doubt: Option<Doubt>) -> Self {
        Self { doubt, ..Self::new(share, now) }
    }

    /// Back from competition: if others are found again, it goes on at this share.
    pub(super) fn on_trial(share: f64, now: Instant) -> Self {
        Self { competing_flows: CompetingFlows::on_trial(share, now), ..Self::new(share, now) }
    }

    pub(super) const fn drain(&self) -> Option<&Drain> {
        self.drain.as_ref()
    }

    pub(super) fn step(&mut self, view: &View, memory: &mut Memory) -> (f64, Option<Mode>) {
        let target = memory.target(view.now, self.share, view.datagram) + view.delay.noise_left;
        if let Some((rate, falls)) = self.was_noise(view, memory) {
            return (rate, Some(Mode::StartUp(StartUp::again(view.now, falls))));
        }
        self.learn(view, memory);
        if self.competing_flows.look(view, self.share, target, self.drain.is_some()) {
            self.start_drain(view, memory, Cause::Suspicion);
        }
        // Why: what a probe of ours loses tells of no policer, and of no others.
        let probe_loses = self.probing.may_lose(view.exchange.sent_at - Duration::from_secs_f64(view.tau));
        if !probe_loses && policed::is_suspicious(view, memory) {
            return Mode::Policed(Policed::new(view)).enter(view, memory);
        }
        let others = self.drain_is_over(view, memory);
        let others = others.or_else(|| if probe_loses { None } else { self.loses_to_others(view, target) });
        if let Some(others) = others {
            let share = self.competing_flows.share_before(view.now, self.share);
            return Mode::Competitive(Box::new(Competitive::new(view, share, others, memory))).enter(view, memory);
        }
        if self.drains(view, target, memory) {
            return (self.share * DRAIN_RATE, None);
        }
        let queue = (view.delay.queue + view.exchange.lag * (view.exchange.paced / self.share - 1.0)).max(0.0);
        let push = GAIN * (target - queue) / (view.tau + view.delay.queue) - MARK_GAIN * view.loss.marks;
        let push = push.clamp(PUSH_LEAST, PUSH_MOST);
        let push = if view.delay.noise > 0.0 { self.push_in_noise(view, target, push, memory) } else { push };
        let rate = self.share * (1.0 + push);
        if memory.source.is_held_back(view, rate) {
            return Mode::Competitive(Box::new(Competitive::begin(view, rate))).enter(view, memory);
        }
        (rate, self.probing.take_carried().then(|| Mode::StartUp(StartUp::new(view.now))))
    }

    /// The rate at the end of start-up, if that was ended by noise.
    fn was_noise(&mut self, view: &View, memory: &mut Memory) -> Option<(f64, Falls)> {
        if view.exchange.sent_at > self.since {
            self.doubt = None;
        }
        let doubt = self.doubt.as_mut()?;
        let fall = doubt.look(view)?;
        memory.fell = doubt.falls.are_noise(view, fall).then_some(fall);
        Some((doubt.rate, doubt.falls))
    }

    /// The push of the law on a noisy path: a probe now and then, and growth while no queue stands.
    fn push_in_noise(&mut self, view: &View, target: f64, push: f64, memory: &Memory) -> f64 {
        let may_go_on =
            view.loss.lasting <= LOSS_OF_PROBE + 2.0 * memory.ordinary_loss(view.now) && view.delay.queue < 2.0 * target + view.tau / 4.0;
        let held = 1.0 + push < HELD;
        if self.probing.sends_more(view.now, view.delivery.round, view.delivery.best, memory.service_most, held, may_go_on) {
            return probe::GAIN;
        }
        if view.delay.saturated { push } else { push.max(self.velocity.min(VELOCITY_IN_NOISE)) }
    }

    fn learn(&mut self, view: &View, memory: &mut Memory) {
        if view.limited || (view.exchange.sent_at < self.frozen_until && view.delivery.rho < SLOWER) {
            return;
        }
        let time = (view.exchange.alpha / view.tau).min(1.0);
        if view.delay.noise > 0.0 {
            // Why: a rate of service over less than the noise is noise; the largest of some rounds is not.
            self.share = view.delivery.best.max(1.0);
            if view.delay.saturated {
                self.velocity = VELOCITY_LEAST;
                memory.note_service(view.now, self.share);
            } else {
                self.quicken(time);
            }
            return;
        }
        if let (true, Some(service)) = (view.delay.saturated, view.delivery.service) {
            let weight = if service < DROP * self.share && !self.is_ours(view, service) { 1.0 } else { time };
            self.share += (service - self.share) * weight;
            self.velocity = VELOCITY_LEAST;
            memory.note_service(view.now, self.share);
        } else if !view.delay.saturated && view.delivery.sent > 0.8 * self.share {
            self.share *= 1.0 + self.velocity * time;
            self.quicken(time);
        }
    }

    /// Growth grows while no queue stands.
    fn quicken(&mut self, time: f64) {
        self.velocity = (self.velocity * (1.0 + VELOCITY_GROWTH * time)).min(VELOCITY_MOST);
    }

    /// Whether service fell only because we sent less.
    ///
    /// Why: beside others a queue takes from each what it sends. Who makes way for a long queue of theirs, takes what is
    /// then served for the share and makes way from there again ends at nothing within a few round trips. And who must not send at all for a
    /// moment, since too much is in flight, is served next to nothing.
    fn is_ours(&self, view: &View, service: f64) -> bool {
        service > DROP * view.delivery.sent
            && (view.delivery.sent < HARDLY * self.share || view.delay.queue > LONG * law::target(self.share, view.datagram))
    }

    /// Once the echoes of a drain have come: those who keep a queue.
    fn drain_is_over(&mut self, view: &View, memory: &mut Memory) -> Option<Others> {
        let drain = self.drain.as_mut()?;
        drain.record(view);
        if drain.is_sending_less(view.now) || !drain.is_over(view) {
            return None;
        }
        let drain = self.drain.take()?;
        if drain.met_no_queue(view) && self.competing_flows.clear_if_path(memory) {
            memory.path_is_longer = true;
            return None;
        }
        if drain.may_be_noise(view) {
            memory.base_rises = drain.rise_of_base();
            return None;
        }
        drain.others_keep_a_queue(view, memory.service_most, self.competing_flows.suspects(view.now))
    }

    /// Those whose queue loss has come with, from one slot into the next.
    ///
    /// Why so long: of a newcomer that overshoots it comes for a moment, and the drain between the slots shows him the base delay. Why once
    /// more in the next: a burst that is lost anywhere on the path lasts some exchanges, and would else be taken for others if it met a short
    /// queue at the end of a slot.
    fn loses_to_others(&mut self, view: &View, target: f64) -> Option<Others> {
        if view.now.since(self.since) < SETTLED {
            return None;
        }
        // Why the newest: the queue is the least of a quarter of the control time, and a short one overflows for less than that.
        let comes_again = self.queue_loss.record(view, view.delay.newest > ABOVE * (target + view.delay.noise), view.loss.has_lost);
        if !self.queue_loss.is_significant() || view.limited {
            self.lost_in = None;
            return None;
        }
        (*self.lost_in.get_or_insert(view.slot) != view.slot && comes_again).then_some(Others { kind: None })
    }

    /// Whether the queue is being drained now.
    fn drains(&mut self, view: &View, target: f64, memory: &Memory) -> bool {
        if self.slot.replace(view.slot).is_some_and(|slot| slot != view.slot) && !self.empties_in_pauses(view) {
            self.begin_drain(view, view.delay.queue.max(target), 1.0, Cause::Schedule);
        }
        if let Some(drain) = &self.drain {
            return drain.is_sending_less(view.now);
        }
        if view.delay.queue < target / 4.0 {
            self.drained_at = view.now;
            self.emptied_at = Some(view.now);
        }
        self.usual += (view.delay.queue - self.usual) * (view.exchange.alpha / (10.0 * view.tau)).min(1.0);
        // Why by the noise at least: noise falls as well, and drains cost some per cent when they follow each other.
        let has_fallen = view.delay.newest < DRAIN_SEEN * self.usual && self.usual - view.delay.newest >= view.delay.noise;
        let joins = view.now.since(self.drained_at) >= DRAIN_JOINED && has_fallen;
        if joins {
            self.start_drain(view, memory, Cause::Joined);
        }
        joins
    }

    /// Whether the queue is empty again and again because the source pauses: then everyone sees the base delay without a drain, which would only
    /// hold the source up. Why not in noise: what is taken for an empty queue there may be none.
    fn empties_in_pauses(&self, view: &View) -> bool {
        view.pauses && view.delay.noise_before == 0.0 && self.emptied_at.is_some_and(|at| view.now.since(at) < EMPTIED_WITHIN)
    }

    /// A drain beside the schedule, if our part of the path is what it was at its best.
    fn start_drain(&mut self, view: &View, memory: &Memory, cause: Cause) {
        let part = (self.share / memory.service_most.max(1.0)).clamp(0.1, 1.0);
        self.begin_drain(view, view.delay.queue, part, cause);
    }

    /// A drain of one and a half times what `queue` needs when those who drain have `part` of the bottleneck.
    fn begin_drain(&mut self, view: &View, queue: f64, part: f64, cause: Cause) {
        let span = (1.5 * queue / ((1.0 - DRAIN_RATE) * part)).clamp(DRAIN_LEAST, SPAN_MOST);
        let least = if view.delay.noise_before > 0.0 {
            DRAIN_IN_NOISE * view.tau
        } else if queue > (ABOVE * law::target(self.share, view.datagram)).max(law::standing(view.tau) / 2.0) {
            DRAIN_TELLS * telling_time(view)
        } else {
            0.0
        };
        let span = span.max(least);
        self.probing.interrupt(view.now);
        self.drain = Some(Drain::new(view, span, cause));
        self.drained_at = view.now;
        self.frozen_until = view.now + Duration::from_secs_f64(span + view.tau / 2.0);
    }
}
