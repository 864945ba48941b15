//! A drain: sending at a fraction of the rate for a moment, so that everyone sees the base delay, and so that the answer
//! of the queue tells how much of the bottleneck senders of this kind have.
//!
//! Called by delay mode and competitive mode. With capacity C, the rate S of all senders that drain, and others' X,
//! `rho = (S + X) / C` while a queue stands (HT 3.5). When S falls to 0.3 S, rho falls by 0.7 S / C: so the share of this kind is the
//! fall of rho over 0.7, as long as others have not noticed, which takes them a round trip.
//!
//! Invariant: only exchanges that left within the drain and met a queue are counted.

use super::law;
use super::schedule;
use super::view::View;
use segstream_base::{Duration, Instant};

/// The fraction sent at: little enough to drain, enough for the spacing of states to mean something.
pub(super) const DRAIN_RATE: f64 = 0.3;
/// The greatest length of a drain in seconds: it costs 3 % of a slot.
pub(super) const SPAN_MOST: f64 = 0.12;
/// A queue shorter than this may be gone before the next state arrives.
const QUEUE_LEAST: f64 = 0.002;
/// Others keep a queue of at least this part of what senders of this kind never keep standing, of which this part remains in a drain.
const STANDING_PART: f64 = 0.5;
const REMAINING: f64 = 0.4;
/// The time of so many datagrams more, which is the queue of few senders at a low rate.
const DATAGRAMS: f64 = 4.0;
/// So many exchanges at least say that a queue remained.
const EXCHANGES: u32 = 3;
/// Where this kind has more than this part of the bottleneck, others are no reason to change anything.
const KIND_MOST: f64 = 0.64;
/// In so few datagrams of before the drain rho is a matter of one more or less.
const FEW_DATAGRAMS: f64 = 8.0;
/// So many datagrams more or less arrive in a drain by chance.
const CHANCE: f64 = 1.5;
/// A drain of one sender tells of others where so long a queue remains, in control times and at least, and it has less than this share of the
/// bottleneck. A drain of all tells of suspected others by that share alone.
///
/// Why so long: a crowd of this kind that begins at once keeps a queue for seconds too, but of less than a round trip.
const LONG_TAUS: f64 = 0.75;
const LONG_LEAST: f64 = 0.0225;
const LITTLE: f64 = 0.25;
/// From this traffic intensity on the queue grew because the bottleneck is slower: a flow in its usual growth adds less.
const GROWS_FAST: f64 = 1.1;
/// A queue of up to so many times the noise of the last while may be the path's, and when rho falls by less than this in a drain it is.
const PATH_NOISES: f64 = 2.0;
const FALL_OF_PATH: f64 = 0.1;

/// Others that fill the queue, and the share of this kind at the bottleneck if a drain has told of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Others {
    pub(super) kind: Option<f64>,
}

/// Why a drain began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// The schedule: all senders of this kind drain at this moment.
    Schedule,
    /// A queue that stands although this sender has made way.
    Suspicion,
    /// Another's drain, which it joins.
    Joined,
}

/// Whether a drain can tell of others, where the best service seen is `service`.
///
/// Why not on a slow path: where one datagram takes a control time, or a third of the longest drain, a drain is a datagram more or less,
/// and every queue remains. Nor where an answer takes longer than half a slot: the next drain is near then before this one is over.
pub(super) fn can_tell(view: &View, service: f64) -> bool {
    view.datagram <= service * view.tau.min(SPAN_MOST / 3.0) && view.tau + view.delay.queue < schedule::SLOT_SECONDS / 2.0
}

/// How long a queue must stand in a drain, in seconds, so that the drain tells the share.
///
/// Why half of the longest drain is enough: behind a queue that others keep the control time counts that queue, and may be longer than any
/// drain.
pub(super) const fn telling_time(view: &View) -> f64 {
    (view.tau / 4.0).min(SPAN_MOST / 2.0)
}

/// A drain that goes on, or is over and waits for its echoes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drain {
    since: Instant,
    until: Instant,
    cause: Cause,
    /// The queue, the traffic intensity, and what arrived a second before it.
    queue_before: f64,
    rho_before: f64,
    received_before: f64,
    /// Sums over the exchanges of the drain that met a queue.
    alpha: f64,
    beta: f64,
    arrived: f64,
    /// Exchanges that left within it or after, and the shortest queue seen since it began.
    exchanges: u32,
    least: f64,
    /// An overflow was seen in it, which others answer too.
    has_overflowed: bool,
}

impl Drain {
    /// A drain that begins now and lasts `span` seconds.
    pub(super) fn new(view: &View, span: f64, cause: Cause) -> Self {
        Self {
            since: view.now,
            until: view.now + Duration::from_secs_f64(span),
            cause,
            queue_before: view.delay.queue,
            rho_before: view.delivery.rho,
            received_before: view.delivery.received,
            alpha: 0.0,
            beta: 0.0,
            arrived: 0.0,
            exchanges: 0,
            least: view.delay.queue,
            has_overflowed: false,
        }
    }

    /// An overflow was seen in it.
    pub(super) const fn note_overflow(&mut self) {
        self.has_overflowed = true;
    }

    /// Whether an overflow was seen in it: then what it tells of this kind's share may be too much.
    pub(super) const fn has_overflowed(&self) -> bool {
        self.has_overflowed
    }

    /// Whether less is to be sent now.
    pub(super) fn is_sending_less(&self, now: Instant) -> bool {
        now < self.until
    }

    /// The queue before it.
    pub(super) const fn queue_before(&self) -> f64 {
        self.queue_before
    }

    /// What was delivered a second before it.
    pub(super) const fn received_before(&self) -> f64 {
        self.received_before
    }

    /// Whether all echoes of it have come.
    pub(super) fn is_over(&self, view: &View) -> bool {
        view.exchange.sent_at > self.until + Duration::from_secs_f64(view.tau / 4.0)
    }

    /// Takes an exchange in.
    pub(super) fn record(&mut self, view: &View) {
        let from = view.exchange.sent_at - Duration::from_secs_f64(view.exchange.alpha);
        self.least = self.least.min(view.delay.newest);
        if from < self.since {
            return;
        }
        self.exchanges += 1;
        if view.exchange.sent_at <= self.until && view.delay.newest > QUEUE_LEAST {
            self.alpha += view.exchange.alpha;
            self.beta += view.exchange.beta;
            self.arrived += view.exchange.arrived;
        }
    }

    /// By how much rho fell, if the queue stood long enough to tell.
    pub(super) fn fall(&self, view: &View) -> Option<f64> {
        (self.alpha >= telling_time(view)).then(|| self.rho_before - self.beta / self.alpha)
    }

    /// The share of senders of this kind at the bottleneck, if the queue stood long enough to tell.
    pub(super) fn kind(&self, view: &View) -> Option<f64> {
        self.fall(view).map(|fall| (fall / (1.0 - DRAIN_RATE)).clamp(0.0, 1.0))
    }

    /// Whether what looked like a queue did not answer the drain, so that it is the path's own.
    pub(super) fn met_no_queue(&self, view: &View) -> bool {
        self.fall(view).is_some_and(|fall| fall < FALL_OF_PATH)
    }

    /// Whether what looked like a queue may be what noise has left: it is as short, and has not answered the drain.
    ///
    /// Why: with jitter that keeps the order what is sent densely arrives later than what is sent sparsely, with no queue.
    pub(super) fn may_be_noise(&self, view: &View) -> bool {
        self.queue_before < PATH_NOISES * view.delay.noise_before && self.met_no_queue(view)
    }

    /// By how much the base delay is higher than it was thought, if what remained is noise and all senders of this kind have drained.
    pub(super) fn rise_of_base(&self) -> Option<f64> {
        (self.cause == Cause::Schedule && self.exchanges >= EXCHANGES).then_some(self.least)
    }

    /// Those who kept a queue through the drain. `service` is the best service seen; `suspected` says that a queue stood lately although this
    /// sender had made way.
    ///
    /// Why the queue need not remain where others are suspected: theirs is short for a moment after each of their decreases, and who does not
    /// know the base delay sees only what is above that. A small share of all of this kind tells of them as well.
    pub(super) fn others_keep_a_queue(&self, view: &View, service: f64, suspected: bool) -> Option<Others> {
        // Why it must be told: in a drain that is over so soon the bottleneck may just have become slower.
        let kind = self.kind(view).filter(|kind| *kind < KIND_MOST)?;
        if !can_tell(view, service) || self.has_grown() || self.is_served_alone(view, kind) {
            return None;
        }
        let long = STANDING_PART * law::standing(view.tau) + DATAGRAMS * self.datagram_time(view, kind) + view.delay.noise;
        // Why: what noise has left remains in every drain.
        let (before, least) = (self.queue_before - view.delay.noise_left, self.least - view.delay.noise_left);
        let remains = before > long && least > REMAINING * before;
        let is_small = suspected && self.cause == Cause::Schedule && kind < LITTLE && view.delay.noise_before == 0.0;
        let found = (remains || is_small) && self.exchanges >= EXCHANGES;
        (found && self.speaks_of_others(view, kind)).then_some(Others { kind: Some(kind) })
    }

    /// Whether this kind is alone although few datagrams left in the drain, of which one more or less moves rho by as much as others do.
    ///
    /// What is served while a queue stands tells it exactly: alone, it is the capacity in a drain as before it. With a share k of the
    /// bottleneck it falls to 0.3 / (1 - 0.7 k) of what it was.
    fn is_served_alone(&self, view: &View, kind: f64) -> bool {
        let datagrams = self.datagrams(view);
        let served = self.arrived / self.beta.max(1e-9) / self.received_before.max(1.0);
        let may_be_chance = kind >= 1.0 - CHANCE / ((1.0 - DRAIN_RATE) * datagrams);
        datagrams < FEW_DATAGRAMS && may_be_chance && served * (1.0 - (1.0 - DRAIN_RATE) * KIND_MOST) >= DRAIN_RATE
    }

    /// So many datagrams would have been delivered without the drain.
    fn datagrams(&self, view: &View) -> f64 {
        self.received_before * self.alpha / view.datagram
    }

    /// Whether the queue that remained is others', where those that have drained have the share `kind` of the bottleneck: all of this kind, or
    /// this sender alone.
    fn speaks_of_others(&self, view: &View, kind: f64) -> bool {
        match self.cause {
            Cause::Schedule => true,
            Cause::Suspicion => {
                let long = (LONG_TAUS * view.tau).max(LONG_LEAST);
                self.least > long && kind < LITTLE && self.datagrams(view) > FEW_DATAGRAMS
            }
            Cause::Joined => false,
        }
    }

    /// The time of a datagram at the bottleneck: whoever knows the part that they have of it knows what it serves.
    ///
    /// Why: a newcomer that has seen little service takes the path for slow, and others' queue for that of a few datagrams.
    fn datagram_time(&self, view: &View, kind: f64) -> f64 {
        view.datagram_time.min(view.datagram * kind / self.received_before.max(1.0))
    }

    /// Whether the queue grew fast although this kind sent less: the bottleneck has become slower, or others have just begun. What others
    /// keep the next drain tells.
    ///
    /// Why fast: beside one that has nearly all and grows, the queue of whoever has next to nothing grows slowly in every drain.
    fn has_grown(&self) -> bool {
        self.beta > GROWS_FAST * self.alpha
    }

    /// Whether the queue was gone in it: shorter than `short`, and than a quarter of what it was.
    pub(super) fn has_emptied(&self, short: f64) -> bool {
        self.least < short.min(self.queue_before / 4.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::view::{Covered, Delay, Delivery};
    use super::*;
    use segstream_base::Instant;

    const TAU: f64 = 0.04;
    /// 10 MB/s.
    const SERVICE: f64 = 1e7;

    /// What an exchange of 2 ms sees that left at `at` milliseconds.
    fn view(at: u64, queue: f64, beta: f64) -> View {
        let now = Instant::ZERO + Duration::from_millis(at);
        let (alpha, rho, received) = (0.002, 1.0, 1e6);
        View {
            now,
            exchange: Covered { sent_at: now, alpha, beta, ..Covered::default() },
            tau: TAU,
            delay: Delay { queue, newest: queue, ..Delay::default() },
            delivery: Delivery { rho, received, ..Delivery::default() },
            datagram: 1228.0,
            ..View::default()
        }
    }

    /// A drain of 30 ms from a queue of 20 ms in which this kind has `kind` of the bottleneck.
    fn drained(kind: f64, cause: Cause) -> (Drain, View) {
        let mut drain = Drain::new(&view(100, 0.02, 0.002), 0.03, cause);
        let rho = 1.0 - 0.7 * kind;
        let mut queue: f64 = 0.02;
        for step in 1..=15 {
            queue = (queue - 0.002 * (1.0 - rho)).max(0.0);
            drain.record(&view(100 + 2 * step, queue, 0.002 * rho));
        }
        (drain, view(150, queue, 0.002))
    }

    #[test]
    fn a_drain_tells_the_share_of_its_kind() {
        for kind in [0.1, 0.5, 0.9] {
            let (drain, view) = drained(kind, Cause::Schedule);
            let found = drain.kind(&view).expect("the queue stood for a quarter of the control time");
            assert!((found - kind).abs() < 0.01, "{kind}: {found}");
        }
    }

    #[test]
    fn others_are_found_in_a_drain_of_all_and_only_where_a_queue_remains() {
        let others = |kind, cause| {
            let (drain, view) = drained(kind, cause);
            drain.others_keep_a_queue(&view, SERVICE, false)
        };
        assert!(others(0.3, Cause::Schedule).and_then(|others| others.kind).is_some_and(|kind| (kind - 0.3).abs() < 0.01));
        assert!(others(1.0, Cause::Schedule).is_none(), "the queue was ours");
        assert!(others(0.3, Cause::Joined).is_none(), "nobody else of this kind need have drained");
        // A bottleneck that has a third of its rate left: 0.3 of what filled it fill nine tenths of it, and a tenth less overloads it.
        assert!(others(-0.2, Cause::Schedule).is_none(), "the queue grew in the drain");
        // On a path so slow that a datagram takes longer than the control time nothing can be told.
        let (drain, view) = drained(0.3, Cause::Schedule);
        assert!(drain.others_keep_a_queue(&view, 1228.0, false).is_none());
        assert!(drained(1.0, Cause::Schedule).0.has_emptied(0.005) && !drained(0.3, Cause::Schedule).0.has_emptied(0.005));
    }

    #[test]
    fn a_small_share_in_a_drain_of_all_tells_of_suspected_others_though_their_queue_is_short() {
        let others = |kind: f64, cause, suspected, noise_before| {
            let mut drain = Drain::new(&view(100, 0.004, 0.002), 0.03, cause);
            (1..=15).for_each(|step| drain.record(&view(100 + 2 * step, 0.004, 0.002 * (1.0 - 0.7 * kind))));
            let mut view = view(150, 0.004, 0.002);
            view.delay.noise_before = noise_before;
            drain.others_keep_a_queue(&view, SERVICE, suspected)
        };
        assert!(others(0.1, Cause::Schedule, true, 0.0).and_then(|others| others.kind).is_some_and(|kind| (kind - 0.1).abs() < 0.01));
        for (name, found) in [
            ("nobody is suspected", others(0.1, Cause::Schedule, false, 0.0)),
            ("a share of a third may be that of a few", others(0.33, Cause::Schedule, true, 0.0)),
            ("a drain of one tells what one has", others(0.1, Cause::Suspicion, true, 0.0)),
            ("in noise the share is off by a third", others(0.1, Cause::Schedule, true, 0.01)),
        ] {
            assert!(found.is_none(), "{name}");
        }
    }

    #[test]
    fn what_noise_may_have_left_is_no_queue_of_others() {
        // Of 20 ms 14 remain: seven tenths, but two fifths of what is not noise.
        let (drain, view) = drained(0.4, Cause::Schedule);
        let left = |noise_left| View { delay: Delay { noise_left, ..view.delay }, ..view };
        assert!(drain.others_keep_a_queue(&view, SERVICE, false).is_some());
        assert!(drain.others_keep_a_queue(&left(0.01), SERVICE, false).is_none());
        assert!(drain.others_keep_a_queue(&left(0.004), SERVICE, false).is_some());
    }

    #[test]
    fn a_drain_that_does_not_tell_the_share_tells_of_no_others() {
        let mut drain = Drain::new(&view(100, 0.02, 0.002), 0.006, Cause::Schedule);
        (1..=3).for_each(|step| drain.record(&view(100 + 2 * step, 0.02, 0.0014)));
        let view = view(120, 0.02, 0.002);
        assert!(drain.kind(&view).is_none() && drain.others_keep_a_queue(&view, SERVICE, false).is_none());
    }

    #[test]
    fn who_is_served_as_fast_in_a_drain_as_before_it_is_alone() {
        // Of the bottleneck the drain shows a third of before as this kind's, though it is alone: one datagram came in it, and should not.
        let (others, alone) = (drained(0.33, Cause::Schedule), drained(0.33, Cause::Schedule));
        let slow = |(drain, view): (Drain, View), arrived: f64| {
            let received_before = 3.0 * view.datagram / drain.alpha;
            (Drain { received_before, arrived: arrived * received_before * drain.beta, ..drain }, view)
        };
        let (others, view) = slow(others, 0.4);
        assert!(others.others_keep_a_queue(&view, SERVICE, false).is_some());
        let (alone, view) = slow(alone, 1.0);
        assert!(alone.others_keep_a_queue(&view, SERVICE, false).is_none());
        // Of many datagrams rho is told well.
        let many = Drain { received_before: alone.received_before * 10.0, arrived: alone.arrived * 10.0, ..alone };
        assert!(many.others_keep_a_queue(&view, SERVICE, false).is_some());
    }

    #[test]
    fn who_shows_less_than_chance_would_alone_is_not_alone_however_few_its_datagrams() {
        // Of five datagrams a drain leaves one and a half, one more or less; whoever has none of the bottleneck's does not move rho at all.
        let of = |kind: f64| {
            let (drain, view) = drained(kind, Cause::Schedule);
            let received_before = 5.0 * view.datagram / drain.alpha;
            let alone = Drain { received_before, arrived: received_before * drain.beta, ..drain };
            alone.others_keep_a_queue(&view, SERVICE, false)
        };
        assert!(of(0.02).is_some() && of(0.6).is_none());
    }

    #[test]
    fn a_drain_of_one_sender_tells_of_others_where_a_long_queue_remains_and_it_has_little() {
        let asked = |kind: f64, behind: f64, datagrams: f64| {
            let (drain, view) = drained(kind, Cause::Suspicion);
            let received_before = datagrams * view.datagram / drain.alpha;
            let drain = Drain { queue_before: drain.queue_before + behind, least: drain.least + behind, received_before, ..drain };
            drain.others_keep_a_queue(&view, SERVICE, false).is_some()
        };
        assert!(asked(0.1, 0.03, 20.0));
        assert!(!asked(0.1, 0.0, 20.0), "as long as a crowd of this kind keeps");
        assert!(!asked(0.3, 0.03, 20.0), "a share of one among few");
        assert!(!asked(0.1, 0.03, 6.0), "too few datagrams to tell");
    }

    #[test]
    fn what_does_not_answer_a_drain_is_the_paths_where_there_was_as_much_noise() {
        let (drain, quiet) = drained(0.0, Cause::Schedule);
        assert!(drain.met_no_queue(&quiet) && !drain.may_be_noise(&quiet));
        let after = |noise_before| View { delay: Delay { noise_before, ..quiet.delay }, ..quiet };
        assert!(drain.may_be_noise(&after(0.011)) && !drain.may_be_noise(&after(0.009)));
        assert!(drain.rise_of_base().is_some_and(|rise| (rise - 0.02).abs() < 1e-9));
        assert!(!drained(0.3, Cause::Schedule).0.may_be_noise(&after(0.011)), "the queue answered");
        assert!(drained(0.0, Cause::Joined).0.rise_of_base().is_none(), "others of this kind may not have drained");
    }

    #[test]
    fn a_newcomer_that_has_seen_little_service_knows_from_its_share_that_the_path_is_fast() {
        // Four datagrams at what it has been served are 20 ms, as long as the queue.
        let (drain, view) = drained(0.1, Cause::Schedule);
        assert!(drain.others_keep_a_queue(&View { datagram_time: 0.005, ..view }, SERVICE, false).is_some());
        let (alone, view) = drained(0.6, Cause::Schedule);
        let slow = View { datagram_time: 0.005, datagram: 12_280.0, ..view };
        assert!(alone.others_keep_a_queue(&slow, SERVICE, false).is_none(), "a path on which four datagrams take that long");
    }
}
