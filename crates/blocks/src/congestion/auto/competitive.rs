//! Competitive mode: hold our own against traffic that keeps the queue full.
//!
//! Called when delay mode has found competing flows. The rate is a window over the round trip, `window / (rtt + queue)`; the
//! window grows as CUBIC's (RFC 9438) and yields to congestive loss, which is loss while the queue is above 60 % of the
//! longest seen. Loss at a shorter queue is random and nothing happens.
//!
//! - *Who does not yield*: after a decrease, others should yield too. If the queue is as long as before within eight
//!   round trips they do not (BBR does not); then the decrease is undone and loss is no reason to yield again for five
//!   seconds, up to a share of 40 % of the bottleneck. Below a third, or while the share is not known, the window
//!   furthermore grows by 3 % a round trip.
//! - *How much is ours*: every six seconds a drain of one round trip tells the capacity. More than 45 % of it is never
//!   taken. Streams of this kind join each other's drains.
//! - *The way back*: a drain that says we are alone, a drain that empties the queue, or a queue that is gone by itself.
//!   Delay mode is then on trial. Who returns within ten seconds stays for twenty.
//!
//! Invariant: a limited stream's window does not grow.

use super::cubic_window::CubicWindow;
use super::delay_mode::DelayMode;
use super::drain::{DRAIN_RATE, Drain};
use super::readings::View;
use super::{Memory, Mode, law};
use segstream_base::{Duration, Instant};

/// Loss is congestive above this part of the longest queue seen.
const CONGESTIVE: f64 = 0.6;
/// The most of a known capacity that is taken, and that is held against those who do not yield.
const SHARE_MOST: f64 = 0.45;
const SHARE_HELD: f64 = 0.4;
/// Below this share the window grows faster than CUBIC's; and the most it begins with, of the best service seen.
const SHARE_LEAST: f64 = 0.33;
/// Growth a round trip: until the first loss, and when faster than CUBIC's.
const GROWTH_FIRST: f64 = 0.3;
const GROWTH_SMALL: f64 = 0.03;
/// Round trips within which, and after which, a queue as long as before says that nobody has yielded.
const WEIGH_FROM: f64 = 2.0;
const WEIGH_UNTIL: f64 = 8.0;
/// As long as before.
const AS_LONG: f64 = 0.85;
/// How often those who do not yield are tested again.
const TEST_EVERY: Duration = Duration::from_secs(5);
/// With so much loss we yield to those who do not, too, by this factor.
const LOSS_MOST: f64 = 0.1;
const LOSS_DECREASE: f64 = 0.85;
/// With so much loss nothing is held: those who do not yield may be streams of this kind, who think the same of us.
const LOSS_HELD: f64 = 0.05;
/// The time between drains; while the capacity is unknown, and before another's is joined.
const DRAIN_EVERY: Duration = Duration::from_secs(6);
const DRAIN_SOON: Duration = Duration::from_secs(3);
/// The queue falling below this part of its mean may be another's drain.
const DRAIN_SEEN: f64 = 0.85;
/// Round trips without congestive loss before a drain: who yields to it at that time would be counted as ours.
const CALM: f64 = 4.0;
/// Control times without a queue after which there is no competition.
const GONE_TAUS: f64 = 8.0;
/// Who returns within this time has left too early, and stays for that time.
const RETURN_SOON: Duration = Duration::from_secs(10);
const STAY: Duration = Duration::from_secs(20);

/// Competitive mode's state.
#[derive(Clone, Debug)]
pub(super) struct Competitive {
    window: CubicWindow,
    /// No congestive loss has come yet.
    first: bool,
    /// When the last congestive loss came, and when we last yielded to one.
    loss_at: Instant,
    yielded_at: Instant,
    /// The decrease whose effect is being watched.
    watched: Option<Yielding>,
    others_yield: bool,
    /// The mean loss of a second.
    loss: f64,
    queue_most: f64,
    /// The mean queue of ten control times.
    usual: f64,
    stood_at: Instant,
    drain: Option<Drain>,
    drained_at: Instant,
    /// An empty queue is no reason to leave before this.
    stay_until: Instant,
    /// Bytes a second, when a drain could tell.
    capacity: Option<f64>,
}

/// A decrease, and how things were before it.
#[derive(Clone, Copy, Debug)]
struct Yielding {
    window: f64,
    queue: f64,
}

impl Competitive {
    /// Begins at `share` bytes a second, which is what we had before others came.
    pub(super) fn new(view: &View, share: f64, memory: &Memory) -> Self {
        let share = share.min((SHARE_LEAST * memory.service_most).max(view.received));
        let returned = memory.left_at.is_some_and(|at| view.now.since(at) < RETURN_SOON);
        Self {
            window: CubicWindow::new(view.now, share * (view.rtt + view.queue) / view.datagram),
            first: true,
            loss_at: view.now,
            yielded_at: view.now,
            watched: None,
            others_yield: true,
            loss: view.loss,
            queue_most: view.queue,
            usual: view.queue,
            stood_at: view.now,
            drain: None,
            drained_at: view.now - DRAIN_EVERY.saturating_sub(DRAIN_SOON),
            stay_until: view.now + if returned { STAY } else { DRAIN_SOON },
            capacity: None,
        }
    }

    pub(super) fn step(&mut self, view: &View, memory: &mut Memory) -> (f64, Option<Mode>) {
        self.queue_most = self.queue_most.max(view.queue);
        let rtt = view.rtt + view.queue;
        let rate = self.window.get() * view.datagram / rtt;
        if let Some(drain) = &mut self.drain {
            drain.record(view);
            if drain.is_sending_less(view.now) {
                return (DRAIN_RATE * rate, None);
            }
            let leaves = drain.is_over(view) && self.judge(view, rate, memory);
            return (rate, leaves.then(|| Mode::Delay(Box::new(DelayMode::on_trial(rate, view.now)))));
        }
        if self.queue_is_gone(view, rate) {
            return (rate, Some(Mode::Delay(Box::new(DelayMode::on_trial(rate, view.now)))));
        }
        self.loss += (view.loss - self.loss) * view.alpha.min(1.0);
        let may_hold = self.loss < LOSS_HELD && self.capacity.is_none_or(|capacity| rate < SHARE_HELD * capacity);
        self.weigh(view, rtt, may_hold);
        if view.has_lost && view.queue > CONGESTIVE * self.queue_most && view.sent_at > self.loss_at {
            self.on_congestive_loss(view, may_hold);
        } else if !view.limited {
            self.grow(view, rtt, may_hold);
        }
        if self.drain_is_due(view, rtt) {
            self.watched = None;
            self.drain = Some(Drain::new(view, rtt));
        }
        if let Some(capacity) = self.capacity {
            self.window.cap(SHARE_MOST * capacity * rtt / view.datagram);
        }
        (self.window.get() * view.datagram / rtt, None)
    }

    fn queue_is_gone(&mut self, view: &View, rate: f64) -> bool {
        if view.queue > law::target(rate, view.datagram) / 2.0 {
            self.stood_at = view.now;
        }
        view.now.since(self.stood_at).as_secs_f64() > GONE_TAUS * view.tau
    }

    /// After yielding: do others yield too, or is the queue as long as before?
    fn weigh(&mut self, view: &View, rtt: f64, may_hold: bool) {
        let Some(before) = self.watched else { return };
        let waited = view.now.since(self.yielded_at).as_secs_f64() / rtt;
        let as_long = waited > WEIGH_FROM && view.newest > AS_LONG * before.queue;
        if !as_long && waited <= WEIGH_UNTIL {
            return;
        }
        self.others_yield = !as_long;
        self.watched = None;
        if as_long && may_hold {
            self.window.undo(before.window);
        }
    }

    fn on_congestive_loss(&mut self, view: &View, may_hold: bool) {
        self.loss_at = view.now;
        if std::mem::take(&mut self.first) {
            // The growth until now has made the loss, so nothing can be told by it; but a drain is due once it is calm.
            self.drained_at = view.now - DRAIN_EVERY * 2;
            return self.window.decrease(view.now);
        }
        if !self.others_yield && may_hold && view.now.since(self.yielded_at) < TEST_EVERY {
            if view.loss > LOSS_MOST {
                self.window.scale(LOSS_DECREASE);
            }
            return;
        }
        self.watched = Some(Yielding { window: self.window.get(), queue: view.queue });
        self.yielded_at = view.now;
        self.window.decrease(view.now);
    }

    fn grow(&mut self, view: &View, rtt: f64, may_hold: bool) {
        let time = view.alpha.min(rtt) / rtt;
        if self.first && may_hold {
            return self.window.scale(1.0 + GROWTH_FIRST * time);
        }
        let served = self.window.get() * view.datagram / rtt;
        let small = self.loss < LOSS_HELD && self.capacity.is_none_or(|capacity| served < SHARE_LEAST * capacity);
        if small || (!self.others_yield && may_hold) {
            self.window.scale(1.0 + GROWTH_SMALL * time);
        }
        self.window.grow(view.now, rtt);
    }

    fn drain_is_due(&mut self, view: &View, rtt: f64) -> bool {
        self.usual += (view.queue - self.usual) * (view.alpha / (10.0 * view.tau)).min(1.0);
        if view.limited {
            return false;
        }
        let age = view.now.since(self.drained_at);
        let every = if self.capacity.is_none() { DRAIN_SOON } else { DRAIN_EVERY };
        let joins = age > DRAIN_SOON && view.newest < DRAIN_SEEN * self.usual;
        let calm = view.now.since(self.loss_at).as_secs_f64() > CALM * rtt;
        joins || (age > every && calm) || age > every * 3
    }

    /// The echoes of a drain have come: learns the capacity from them; returns whether competition is over.
    fn judge(&mut self, view: &View, rate: f64, memory: &mut Memory) -> bool {
        let Some(drain) = self.drain.take() else { return false };
        self.drained_at = view.now;
        self.stood_at = view.now;
        match (drain.capacity(view), drain.fall(view)) {
            (Some(new), _) => {
                let old = self.capacity.unwrap_or(new);
                self.capacity = Some(((old + new) / 2.0).max(memory.service_most));
            }
            // Our part is too small to tell.
            (None, Some(_)) => self.capacity = None,
            (None, None) => {}
        }
        let empty = view.now > self.stay_until && drain.least < law::target(rate, view.datagram) / 2.0;
        let over = empty || drain.is_alone(view);
        if over {
            memory.left_at = Some(view.now);
        }
        over
    }
}
