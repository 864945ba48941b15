//! CoDel, controlled delay (RFC 8289), decided when a packet arrives.
//!
//! Called by [`crate::bottleneck`] for each packet that its queue has room for, and by `fq_codel` for each that it dequeues.
//!
//! CoDel decides when a packet is dequeued, from how long that packet has waited and from what it did to the packets in
//! front of it. Behind a first-in-first-out queue both are known when the packet arrives: its transmission begins when
//! the last packet in front of it that is not dropped has left (Lindley's recursion, in which a dropped packet takes no
//! time), and no packet behind it changes that. So the decisions are those of RFC 8289 5, packet for packet, taken in
//! the same order with the same instants. When the link finds its queue empty, RFC 8289 forgets that the wait was
//! above the target; so does a packet that finds the link idle, for it has waited for nothing, and nothing is decided
//! between the two instants.
//!
//! Limit: what waits *behind* a packet when it is dequeued is not known when it arrives. RFC 8289 asks for it in one
//! rule: no drop while not more than one packet of the greatest length is waiting. Instead the target is never
//! below the time of one packet of 1500 bytes, which is when RFC 8289 5.6 means that rule to take effect. `fq_codel` decides
//! at the dequeue and keeps to the rule itself.
//!
//! A markable packet is marked where another would be dropped; it is then sent, so that no further packet is judged at
//! that instant (RFC 8289 says nothing of it; this is what Linux does).
//!
//! Invariant: at most one decision for each packet; instants never go backward; the drops in a dropping state are
//! `interval / sqrt(count)` apart, each counted from when the one before it was due.

use segstream_base::{Duration, Instant};

/// The decision of an AQM about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// It is sent.
    Send,
    /// It is sent marked.
    Mark,
    /// It is dropped.
    Drop,
}

/// The state of RFC 8289 5.5 and 5.6, with the names used there.
#[derive(Clone, Debug)]
pub(crate) struct CoDel {
    target: Duration,
    interval: Duration,
    /// When the wait will have been above the target for an interval; `None` while it is below.
    first_above: Option<Instant>,
    drop_next: Instant,
    count: u64,
    last_count: u64,
    dropping: bool,
    /// The packet before was dropped in the dropping state: unless this one ends the state, the next drop is to be scheduled.
    to_schedule: bool,
}

impl CoDel {
    pub(crate) const fn new(target: Duration, interval: Duration) -> Self {
        Self { target, interval, first_above: None, drop_next: Instant::ZERO, count: 0, last_count: 0, dropping: false, to_schedule: false }
    }

    /// The fate of the next packet of the queue, which is dequeued at `now` after a wait of `sojourn`. `mtu_time` is
    /// what a packet of 1500 bytes takes at that instant.
    pub(crate) fn decide(&mut self, now: Instant, sojourn: Duration, mtu_time: Duration, markable: bool) -> Decision {
        let may_drop = self.may_drop(now, sojourn, mtu_time);
        if core::mem::take(&mut self.to_schedule) && may_drop {
            self.drop_next = self.control_law(self.drop_next);
        }
        if self.dropping {
            self.dropping = may_drop;
            if !may_drop || now < self.drop_next {
                return Decision::Send;
            }
            self.count += 1;
            if markable {
                self.drop_next = self.control_law(self.drop_next);
                return Decision::Mark;
            }
            self.to_schedule = true;
            Decision::Drop
        } else if may_drop {
            // Why the packet behind a first drop needs no rule: the next drop is an interval away, so it is sent as RFC 8289 says.
            self.enter(now);
            if markable { Decision::Mark } else { Decision::Drop }
        } else {
            Decision::Send
        }
    }

    /// `dodequeue` of RFC 8289 5.5: whether the wait has been above the target for an interval.
    fn may_drop(&mut self, now: Instant, sojourn: Duration, mtu_time: Duration) -> bool {
        if sojourn < self.target.max(mtu_time) {
            self.first_above = None;
            return false;
        }
        now >= *self.first_above.get_or_insert(now + self.interval)
    }

    /// Enters the dropping state. A state that was left recently continues with the drop rate that it had.
    fn enter(&mut self, now: Instant) {
        const NOT_LONG_INTERVALS: u64 = 16;
        let delta = self.count - self.last_count;
        let recent = now.since(self.drop_next) < self.interval * NOT_LONG_INTERVALS;
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.last_count = self.count;
        self.dropping = true;
        self.drop_next = self.control_law(now);
    }

    /// `t + interval / sqrt(count)`, to the nearest nanosecond. Why floating point: division and square root are rounded
    /// alike on every platform (IEEE 754).
    fn control_law(&self, t: Instant) -> Instant {
        let nanos = self.interval.as_nanos() as f64 / (self.count as f64).sqrt();
        t + Duration::from_nanos((nanos + 0.5) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aqm::Aqm;

    const LATE: Duration = Duration::from_millis(6);

    fn at(micros: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(micros)
    }

    fn codel() -> CoDel {
        CoDel::new(Aqm::TARGET, Aqm::INTERVAL)
    }

    /// Dequeues a packet each 10 us from `from` to `to` and returns when one was not simply sent.
    fn run(codel: &mut CoDel, from: u64, to: u64, sojourn: Duration, markable: bool) -> Vec<u64> {
        (from..to).step_by(10).filter(|now| codel.decide(at(*now), sojourn, Duration::ZERO, markable) != Decision::Send).collect()
    }

    /// 100 ms, then 100 ms / sqrt(n) for n = 1, 2, ..: sums in nanoseconds, found by hand:
    /// 100.000000, 200.000000, 270.710678, 328.445705, 378.445705, 423.167065, 463.991894, ...
    const DUE_NANOS: [u64; 7] = [100_000_000, 200_000_000, 270_710_678, 328_445_705, 378_445_705, 423_167_065, 463_991_894];

    #[test]
    fn drops_follow_the_inverse_square_root_of_their_count() {
        let due: Vec<u64> = DUE_NANOS.iter().map(|nanos| nanos.div_ceil(10_000) * 10).collect();
        assert_eq!(run(&mut codel(), 0, 470_000, LATE, false), due);
        assert_eq!(run(&mut codel(), 0, 470_000, LATE, true), due);
    }

    #[test]
    fn each_drop_is_due_from_when_the_one_before_was_due() {
        let mut codel = codel();
        run(&mut codel, 0, 470_000, LATE, false);
        assert_eq!((codel.count, codel.drop_next), (7, Instant::from_nanos(463_991_894 + 37_796_447)));
    }

    #[test]
    fn a_wait_below_the_target_once_in_an_interval_is_a_good_queue() {
        let mut codel = codel();
        for round in 0..20 {
            assert_eq!(run(&mut codel, round * 100_000, round * 100_000 + 99_990, LATE, false), [0; 0]);
            assert_eq!(codel.decide(at(round * 100_000 + 99_995), Duration::from_micros(4_999), Duration::ZERO, false), Decision::Send);
        }
    }

    #[test]
    fn a_slow_link_may_hold_one_packet_longer_than_the_target() {
        let mut codel = codel();
        let mtu_time = Duration::from_millis(12);
        assert!((0..10_000).all(|n| codel.decide(at(n * 1000), Duration::from_micros(11_999), mtu_time, false) == Decision::Send));
        assert!((10_000..10_200).any(|n| codel.decide(at(n * 1000), mtu_time, mtu_time, false) == Decision::Drop));
    }

    #[test]
    fn a_large_backlog_drops_several_packets_at_one_instant_but_one_after_the_first() {
        let mut codel = codel();
        run(&mut codel, 0, 470_000, LATE, false);
        // Drops 8, 9, .. are due at 501.788, 537.144, 570.477, 602.0998 ms. At 580 ms three are overdue.
        let decisions: Vec<Decision> = (0..5).map(|_| codel.decide(at(580_000), LATE, Duration::ZERO, false)).collect();
        assert_eq!(decisions, [Decision::Drop, Decision::Drop, Decision::Drop, Decision::Send, Decision::Send]);
        assert_eq!((codel.count, codel.drop_next.as_nanos() / 1000), (10, 602_099));
    }

    #[test]
    fn the_state_that_was_left_lately_goes_on_and_an_old_one_begins_anew() {
        for (pause, count) in [(1_000_000, 6), (3_000_000, 1)] {
            let mut codel = codel();
            run(&mut codel, 0, 470_000, LATE, false);
            codel.decide(at(470_000), Duration::ZERO, Duration::ZERO, false);
            assert!(!codel.dropping);
            let first = run(&mut codel, 470_000 + pause, 570_000 + pause + 10, LATE, false);
            assert_eq!(first, [570_000 + pause]);
            // Of seven drops the first was at count 1: the change is six.
            assert_eq!(codel.count, count);
        }
    }
}
