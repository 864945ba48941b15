//! The rate of a source that is known in advance, as of a live stream: what the stream may hold beside others.
//!
//! Called by start-up, delay mode and competitive mode. A live stream has no seconds to lose. So where a queue would make delay mode send less
//! than the source has, or what was lost or queued at the beginning has left it a fraction of that, the stream competes at once and does not
//! wait for a drain to tell whose queue it is; and in competition it holds the source's rate, up to half of the bottleneck, as long as little
//! is lost. A stream that asks for less than its share takes nothing from others that a CUBIC flow in its place would leave them.
//! When much is lost it gives way as such a flow does, from the rate that it had.
//!
//! Limit: a source that has more than the link fills its queue until the next drain tells that nobody else is there.
//!
//! Invariant: a rate with which too much is lost is claimed again only after ten seconds, and after twice as long each time; one that the
//! path did not carry although nobody else was there is claimed no more.

use super::law;
use super::view::View;
use segstream_base::{Duration, Instant};

/// What headers and repairs add to what the source has: with less on the wire it is held back.
const OVERHEAD: f64 = 1.05;
/// What it may send of what it has, so that it catches up with what has waited for a drain or a repair.
const GAIN: f64 = 1.5;
/// The most that it holds of the bottleneck.
const SHARE_MOST: f64 = 0.5;
/// Less than this part of what the source has does not keep it going, whatever the reason.
const LACKING: f64 = 0.8;
/// The mean loss of so many seconds at which it gives way, for how long the first time, and how often that time doubles.
///
/// Why so many: a TCP flow that begins loses a tenth to a fifth of everything for half a second, and is no reason to give way for ten.
const LOSS_MOST: f64 = 0.05;
pub(super) const LOSS_SECONDS: f64 = 3.0;
const GIVES_WAY: Duration = Duration::from_secs(10);
const DOUBLINGS: u32 = 5;

/// What a source has.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SourceRate {
    /// Bytes a second; nothing if that is not known or not claimed any more.
    rate: Option<f64>,
    /// Until when it gives way, and how often it has.
    until: Option<Instant>,
    given_way: u32,
}

impl SourceRate {
    /// Of a source that has `rate` bytes a second.
    pub(super) const fn new(rate: Option<f64>) -> Self {
        Self { rate, until: None, given_way: 0 }
    }

    /// The rate that it may begin with.
    pub(super) fn first_rate(self) -> f64 {
        OVERHEAD * self.rate.unwrap_or(0.0)
    }

    /// Whether `rate` holds the source back: it lets a queue grow no longer that others fill, or it is much too low, as after loss or a queue
    /// that others made when the source began.
    pub(super) fn is_held_back(self, view: &View, rate: f64) -> bool {
        let stands = view.delay.saturated && view.delay.queue > law::target(rate, view.datagram);
        self.lacks(view, rate) && (stands || self.rate.is_some_and(|source| rate < LACKING * source))
    }

    /// Whether the source has more to send than `rate`, and claims it.
    ///
    /// Why not with noise: there a queue may be none, and the law does not send less because of it.
    pub(super) fn lacks(self, view: &View, rate: f64) -> bool {
        self.needs_more_than(rate) && !view.limited && view.delay.noise == 0.0 && !self.gives_way(view.now)
    }

    fn needs_more_than(self, rate: f64) -> bool {
        self.rate.is_some_and(|source| rate < OVERHEAD * source)
    }

    fn gives_way(self, now: Instant) -> bool {
        self.until.is_some_and(|until| now < until)
    }

    /// The rate that is held, of a bottleneck of which half is `half`, if that is known.
    pub(super) fn held(self, now: Instant, half: Option<f64>) -> f64 {
        let held = self.rate.filter(|_| !self.gives_way(now)).map_or(0.0, |source| GAIN * source);
        held.min(half.unwrap_or(f64::INFINITY))
    }

    /// In competition so much was lost in the last [`LOSS_SECONDS`]. Returns whether it gives way from now on.
    pub(super) fn on_loss(&mut self, now: Instant, loss: f64) -> bool {
        let begins = loss > LOSS_MOST && self.rate.is_some() && !self.gives_way(now);
        if begins {
            self.until = Some(now + GIVES_WAY * (1 << self.given_way.min(DOUBLINGS)));
            self.given_way += 1;
        }
        begins
    }

    /// Nobody else is there, and `rate` is delivered with a queue.
    pub(super) fn on_alone(&mut self, rate: f64) {
        if self.needs_more_than(rate) {
            self.rate = None;
        }
    }

    /// Half of a bottleneck of which `rate` is the part `share`.
    pub(super) fn half(rate: f64, share: f64) -> f64 {
        SHARE_MOST * rate / share
    }
}

#[cfg(test)]
mod tests {
    use super::super::view::Delay;
    use super::*;

    const NOW: Instant = Instant::from_nanos(1_000_000_000);

    /// A source of 1 MB/s.
    const SOURCE: SourceRate = SourceRate::new(Some(1e6));

    #[test]
    fn a_source_is_held_back_by_a_queue_that_takes_its_rate() {
        let delay = Delay { saturated: true, queue: 0.04, ..Delay::default() };
        let view = View { now: NOW, delay, datagram: 1228.0, ..View::default() };
        assert!(SOURCE.is_held_back(&view, 0.5e6));
        assert!(!SOURCE.is_held_back(&view, 1.1e6), "it has what it needs");
        assert!(!SOURCE.is_held_back(&View { limited: true, ..view }, 0.5e6), "it does not need more now");
        let nothing_stands = View { delay: Delay { queue: 0.0, ..delay }, ..view };
        assert!(!SOURCE.is_held_back(&nothing_stands, 0.9e6), "nothing stands: the rate still grows");
        assert!(SOURCE.is_held_back(&nothing_stands, 0.7e6), "it grows from much too little");
        assert!(!SOURCE.is_held_back(&View { delay: Delay { noise: 0.01, ..delay }, ..view }, 0.5e6), "it may be noise");
        assert!(!SourceRate::default().is_held_back(&view, 0.5e6), "nothing is known of the source");
    }

    #[test]
    fn it_holds_its_rate_up_to_half_of_the_bottleneck() {
        assert_eq!(SOURCE.held(NOW, None), 1.5e6);
        assert_eq!(SOURCE.held(NOW, Some(SourceRate::half(0.6e6, 0.4))), 0.75e6);
        assert_eq!(SourceRate::default().held(NOW, None), 0.0);
    }

    #[test]
    fn it_gives_way_to_much_loss_and_each_time_for_twice_as_long() {
        let (mut source, mut now) = (SOURCE, NOW);
        assert!(!source.on_loss(now, 0.04));
        assert_eq!(source.held(now, None), 1.5e6);
        for seconds in [10, 20, 40, 80, 160, 320, 320] {
            assert!(source.on_loss(now, 0.06));
            let until = now + Duration::from_secs(seconds);
            assert!(!source.on_loss(now + Duration::from_secs(1), 0.06), "it does already");
            assert_eq!([until - Duration::from_nanos(1), until].map(|at| source.held(at, None)), [0.0, 1.5e6], "{seconds}");
            now = until;
        }
    }

    #[test]
    fn what_the_path_does_not_carry_alone_is_claimed_no_more() {
        let mut source = SOURCE;
        source.on_alone(1.06e6);
        assert_eq!(source.held(NOW, None), 1.5e6);
        source.on_alone(1.04e6);
        assert_eq!(source.held(NOW, None), 0.0);
    }
}
