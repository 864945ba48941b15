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
//! first and faster the longer that lasts. Every five seconds, or with others that do so, the queue is drained, so that
//! newcomers learn the base delay.
//!
//! Invariant: a limited stream neither grows nor loses its share.

use super::competing_flows::{CompetingFlows, Finding};
use super::competitive::Competitive;
use super::drain::{DRAIN_RATE, Drain};
use super::policed::{self, Policed};
use super::probe::{self, Probing};
use super::readings::View;
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
/// Growth a control time while no queue stands: at first, at most, and its own growth.
const VELOCITY_LEAST: f64 = 0.02;
const VELOCITY_MOST: f64 = 0.5;
const VELOCITY_GROWTH: f64 = 0.7;
/// On a noisy path a rate below this part of what was carried is held down, and more loss than this speaks against a probe.
const HELD: f64 = 0.9;
const LOSS_OF_PROBE: f64 = 0.02;
/// How long after the last sight of the base delay the queue is drained; how long if the share has fallen, which means
/// newcomers; how long at least before joining another's drain.
const DRAIN_EVERY: Duration = Duration::from_secs(5);
const DRAIN_CROWDED: Duration = Duration::from_secs(2);
const DRAIN_JOINED: Duration = Duration::from_secs(1);
/// The queue falling below this part of its mean is another's drain.
const DRAIN_SEEN: f64 = 0.6;
/// The bounds of a drain's length in seconds: the longer costs 1.7 % of five.
const DRAIN_LEAST: f64 = 0.01;
const DRAIN_MOST: f64 = 0.12;
/// When all of a full share is drained and rho falls by less than this, the delay is the path's.
const FALL_OF_PATH: f64 = 0.1;

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
    /// When the base delay was last seen, or drained for; the share then.
    drained_at: Option<Instant>,
    share_then: f64,
    /// What left before this, within a drain, tells nothing of the share.
    frozen_until: Instant,
    competing_flows: CompetingFlows,
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
            drained_at: None,
            share_then: share,
            frozen_until: now,
            competing_flows: CompetingFlows::new(now),
        }
    }

    /// Back from competition on trial: a queue that stands again ends it soon.
    pub(super) fn on_trial(share: f64, now: Instant) -> Self {
        Self { competing_flows: CompetingFlows::on_trial(share, now), ..Self::new(share, now) }
    }

    pub(super) fn step(&mut self, view: &View, memory: &mut Memory) -> (f64, Option<Mode>) {
        let target = law::target(self.share, view.datagram);
        self.learn(view, memory);
        match self.competing_flows.look(view, self.share, target, self.drain.is_some(), memory) {
            Finding::Competition(share) => {
                let mut mode = Competitive::new(view, share, memory);
                let (rate, next) = mode.step(view, memory);
                return (rate, next.or(Some(Mode::Competitive(Box::new(mode)))));
            }
            Finding::Suspicion => self.start_drain(view, memory),
            Finding::Nothing => {}
        }
        if policed::is_suspicious(view, memory) {
            let mut mode = Policed::new(view);
            let (rate, next) = mode.step(view, memory);
            return (rate, next.or(Some(Mode::Policed(mode))));
        }
        if self.drains(view, target, memory) {
            return (self.share * DRAIN_RATE, None);
        }
        let queue = (view.queue + view.lag * (view.paced / self.share - 1.0)).max(0.0);
        let push = GAIN * (target - queue) / (view.tau + view.queue) - MARK_GAIN * view.marks;
        let push = push.clamp(PUSH_LEAST, PUSH_MOST);
        let push = if view.noise > 0.0 { self.push_in_noise(view, target, push, memory) } else { push };
        (self.share * (1.0 + push), None)
    }

    /// The push of the law on a noisy path: a probe now and then, and growth while no queue stands.
    fn push_in_noise(&mut self, view: &View, target: f64, push: f64, memory: &Memory) -> f64 {
        let may_begin = view.loss <= LOSS_OF_PROBE + 2.0 * memory.ordinary_loss(view.now) && view.queue < 2.0 * target + view.tau / 4.0;
        let held = 1.0 + push < HELD;
        if self.probing.goes_on(view.now, view.round, view.best, memory.service_most, held, may_begin) {
            return probe::GAIN;
        }
        if view.saturated { push } else { push.max(self.velocity) }
    }

    fn learn(&mut self, view: &View, memory: &mut Memory) {
        if view.limited || view.sent_at < self.frozen_until {
            return;
        }
        let time = (view.alpha / view.tau).min(1.0);
        if view.noise > 0.0 {
            // Why: a rate of service over less than the noise is noise; the largest of some rounds is not.
            self.share = view.best.max(1.0);
            if view.saturated {
                self.velocity = VELOCITY_LEAST;
                memory.note_service(view.now, self.share);
            } else {
                self.quicken(time);
            }
            return;
        }
        if let (true, Some(service)) = (view.saturated, view.service) {
            let weight = if service < DROP * self.share && !self.is_ours(view, service) { 1.0 } else { time };
            self.share += (service - self.share) * weight;
            self.velocity = VELOCITY_LEAST;
            memory.note_service(view.now, self.share);
        } else if !view.saturated && view.sent > 0.8 * self.share {
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
    /// then served for the share and makes way from there again ends at nothing within a few round trips.
    fn is_ours(&self, view: &View, service: f64) -> bool {
        service > DROP * view.sent && view.queue > LONG * law::target(self.share, view.datagram)
    }

    /// Whether the queue is being drained now.
    fn drains(&mut self, view: &View, target: f64, memory: &mut Memory) -> bool {
        if let Some(drain) = &mut self.drain {
            drain.record(view);
            if drain.is_sending_less(view.now) {
                return true;
            }
            if drain.is_over(view) {
                let fall = drain.fall(view);
                self.drain = None;
                if fall.is_some_and(|fall| fall < FALL_OF_PATH) && self.competing_flows.clear_if_path(memory) {
                    memory.path_is_longer = true;
                }
            }
            return false;
        }
        let Some(at) = self.drained_at else {
            self.drained_at = Some(view.now);
            return false;
        };
        if view.queue < target / 4.0 {
            self.drained_at = Some(view.now);
        }
        self.usual += (view.queue - self.usual) * (view.alpha / (10.0 * view.tau)).min(1.0);
        let age = view.now.since(at);
        let joins = age >= DRAIN_JOINED && view.newest < DRAIN_SEEN * self.usual;
        let every = if self.share < 0.8 * self.share_then { DRAIN_CROWDED } else { DRAIN_EVERY };
        let starts = joins || age >= every;
        if starts {
            self.start_drain(view, memory);
        }
        starts
    }

    /// A drain of one and a half times what the queue needs, if our part of the path is what it was at its best.
    fn start_drain(&mut self, view: &View, memory: &Memory) {
        let part = (self.share / memory.service_most.max(1.0)).clamp(0.1, 1.0);
        let span = (1.5 * view.queue / ((1.0 - DRAIN_RATE) * part)).clamp(DRAIN_LEAST, DRAIN_MOST);
        self.drain = Some(Drain::new(view, span));
        self.drained_at = Some(view.now);
        self.share_then = self.share;
        self.frozen_until = view.now + Duration::from_secs_f64(span + view.tau / 2.0);
    }
}
