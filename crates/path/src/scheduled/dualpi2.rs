//! DualPI2 (RFC 9332): a shallow queue for L4S beside a classic one, coupled.
//!
//! Called by [`super::ScheduledPath`] for each packet that enters and each time the link is free.
//!
//! ECT(1) and CE go to the queue of L4S, all others to the classic one (RFC 9332 2.3, RFC 9331 5.1). An L4S packet is marked with
//! the greater of two probabilities: the native one, a ramp of its own wait, and the one that couples it to the classic queue. A
//! classic packet is marked or dropped with the square of the base probability (A.1). Under overload both kinds are dropped with
//! it (A.2).
//!
//! L4S has priority, but while packets wait in both queues the classic one gets a tenth of the bytes: a weighted round robin, as
//! RFC 9332 4.2.2 advises, with the weight and the credit of Linux (`c_protection` 10 % of `sch_dualpi2`). As there, the credit
//! changes only while both queues wait, and L4S is first again when the link was idle (A.1).
//!
//! Limit: A.1 tests its limit with room for a packet of 1500 bytes, however short the packet is. Here the packet's own length
//! counts, as with every other queue.
//!
//! Invariant: state is two queues, bounded together, and a few numbers. It draws nothing: decisions are spread evenly, as A.1
//! has them.

use super::pi2::Pi2;
use super::{Backlog, Decisions, Discipline, QueueDecision, QueuedPacket};
use crate::bottleneck::QueueLimit;
use segstream_base::endpoint::Ecn;
use segstream_base::{Duration, Instant};
use std::collections::VecDeque;

/// The classic queue's share of the bytes while both wait, and the other's, in parts of ten.
const WEIGHT_CLASSIC: i64 = 1;
const WEIGHT_L4S: i64 = 9;

/// The native marks of L4S: none up to a wait of `min_th`, all from `min_th + range` on (`laqm` of RFC 9332 A.1).
#[derive(Clone, Copy, Debug)]
pub(super) struct Ramp {
    pub(super) min_th: Duration,
    pub(super) range: Duration,
}

impl Ramp {
    fn probability(self, wait: Duration) -> f64 {
        let above = wait.saturating_sub(self.min_th);
        if wait < self.min_th {
            0.0
        } else if above < self.range {
            above.as_secs_f64() / self.range.as_secs_f64()
        } else {
            1.0
        }
    }
}

/// Both queues.
#[derive(Clone, Debug)]
pub(super) struct DualPi2 {
    pi2: Pi2,
    ramp: Ramp,
    limit: QueueLimit,
    l4s: Queue,
    classic: Queue,
    backlog: Backlog,
    /// Above zero it is the classic queue's turn.
    credit: i64,
}

/// One queue, and how far it is to its next decision against a packet.
#[derive(Clone, Debug, Default)]
struct Queue {
    packets: VecDeque<QueuedPacket>,
    count: f64,
}

impl Queue {
    /// `recur` of RFC 9332 A.1: true as often as `likelihood` says, evenly spread.
    fn recurs(&mut self, likelihood: f64) -> bool {
        self.count += likelihood;
        let recurs = self.count > 1.0;
        if recurs {
            self.count -= 1.0;
        }
        recurs
    }

    /// How long the packet at the head has waited.
    fn delay(&self, now: Instant) -> Duration {
        self.packets.front().map_or(Duration::ZERO, |packet| now.since(packet.arrived))
    }
}

impl DualPi2 {
    /// Two empty queues.
    pub(super) fn new(pi2: Pi2, ramp: Ramp, limit: QueueLimit) -> Self {
        Self { pi2, ramp, limit, l4s: Queue::default(), classic: Queue::default(), backlog: Backlog::default(), credit: 0 }
    }

    fn update_until(&mut self, now: Instant) {
        let Self { pi2, l4s, classic, .. } = self;
        pi2.update_until(now, |at| l4s.delay(at).max(classic.delay(at)));
    }

    /// Whether the next packet is one of L4S; keeps account of the bytes.
    fn serves_l4s(&mut self) -> bool {
        let (Some(l4s), Some(classic)) = (self.l4s.packets.front(), self.classic.packets.front()) else {
            return self.classic.packets.is_empty();
        };
        let bytes = |packet: &QueuedPacket| i64::try_from(packet.counted()).unwrap_or(i64::MAX);
        if self.credit <= 0 {
            self.credit = self.credit.saturating_add(WEIGHT_CLASSIC.saturating_mul(bytes(l4s)));
            true
        } else {
            self.credit = self.credit.saturating_sub(WEIGHT_L4S.saturating_mul(bytes(classic)));
            false
        }
    }

    /// The fate of an L4S packet that is taken at `now`.
    fn judge_l4s(&mut self, now: Instant, packet: &QueuedPacket) -> QueueDecision {
        if self.pi2.is_overloaded() {
            // RFC 9332 A.2: all packets that remain are marked.
            return if self.l4s.recurs(self.pi2.classic()) { QueueDecision::Dropped } else { QueueDecision::Sent { marked: true } };
        }
        // RFC 9332 A.2, Th_len: a queue of one packet has no native marks, because a slow link takes longer than the ramp for it.
        let native = if self.l4s.packets.is_empty() { 0.0 } else { self.ramp.probability(now.since(packet.arrived)) };
        let likelihood = native.max(self.pi2.coupled());
        // Why not counted: `recur` lets the first of packets pass that are all to be marked.
        QueueDecision::Sent { marked: likelihood >= 1.0 || self.l4s.recurs(likelihood) }
    }

    /// The fate of a classic packet.
    fn judge_classic(&mut self, packet: &QueuedPacket) -> QueueDecision {
        let hit = self.classic.recurs(self.pi2.classic());
        match (hit, packet.offered.ecn) {
            (false, _) => QueueDecision::Sent { marked: false },
            (true, Some(_)) if !self.pi2.is_overloaded() => QueueDecision::Sent { marked: true },
            (true, _) => QueueDecision::Dropped,
        }
    }
}

impl Discipline for DualPi2 {
    fn enqueue(&mut self, now: Instant, packet: QueuedPacket, decisions: &mut Decisions) {
        self.update_until(now);
        let mut with_it = self.backlog;
        with_it.add(&packet);
        if with_it.exceeds(self.limit) {
            decisions.push((packet, QueueDecision::Full));
            return;
        }
        // RFC 9332 A.1: the credit is reset in favour of L4S when the link is idle.
        if self.backlog.packets == 0 {
            self.credit = 0;
        }
        self.backlog = with_it;
        let scalable = matches!(packet.offered.ecn, Some(Ecn::Ect1 | Ecn::CongestionExperienced));
        let queue = if scalable { &mut self.l4s } else { &mut self.classic };
        queue.packets.push_back(packet);
    }

    fn dequeue(&mut self, now: Instant, decisions: &mut Decisions) {
        self.update_until(now);
        while self.backlog.packets > 0 {
            let from_l4s = self.serves_l4s();
            let queue = if from_l4s { &mut self.l4s } else { &mut self.classic };
            let Some(packet) = queue.packets.pop_front() else { return };
            self.backlog.remove(&packet);
            let decision = if from_l4s { self.judge_l4s(now, &packet) } else { self.judge_classic(&packet) };
            decisions.push((packet, decision));
            if matches!(decision, QueueDecision::Sent { .. }) {
                return;
            }
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passage::Drawn;
    use crate::scheduled::PathPacket;
    use segstream_base::Bytes;

    const MS: Duration = Duration::from_millis(1);

    fn packet(ecn: Option<Ecn>) -> QueuedPacket {
        let offered = PathPacket { bytes: Bytes::new(1000), ecn, flow: 0 };
        QueuedPacket { id: 0, offered, arrived: Instant::ZERO, lost_behind: false, drawn: Drawn::default() }
    }

    fn queue(p: f64) -> DualPi2 {
        coupled_queue(p, 2)
    }

    fn coupled_queue(p: f64, coupling: u32) -> DualPi2 {
        let ramp = Ramp { min_th: Duration::from_micros(800), range: Duration::from_micros(400) };
        let mut queue = DualPi2::new(Pi2::new(MS * 15, MS * 100, coupling), ramp, QueueLimit::UNLIMITED);
        queue.pi2.set(p);
        queue
    }

    /// Of 10,000 packets that have not waited: how many are marked and how many dropped.
    fn hits(queue: &mut DualPi2, ecn: Option<Ecn>) -> (usize, usize) {
        let judged = (0..10_000).map(|_| match ecn {
            Some(Ecn::Ect1) => queue.judge_l4s(Instant::ZERO, &packet(ecn)),
            _ => queue.judge_classic(&packet(ecn)),
        });
        judged.fold((0, 0), |(marked, dropped), decision| match decision {
            QueueDecision::Sent { marked: hit } => (marked + usize::from(hit), dropped),
            QueueDecision::Dropped | QueueDecision::Full => (marked, dropped + 1),
        })
    }

    #[test]
    fn l4s_is_marked_with_twice_the_root_of_what_classic_packets_meet() {
        // p' = 0.2: p_C = 0.04 and p_L = 0.4 (RFC 9332 2.1). Evenly spread, so to the packet, except for the first.
        for (ecn, marked, dropped) in [(Some(Ecn::Ect1), 4000, 0), (Some(Ecn::Ect0), 400, 0), (None, 0, 400)] {
            let hits = hits(&mut queue(0.2), ecn);
            assert!(hits.0.abs_diff(marked) <= 1 && hits.1.abs_diff(dropped) <= 1, "{ecn:?}: {hits:?}");
        }
    }

    #[test]
    fn the_overload_begins_where_coupled_marks_saturate_whatever_the_coupling() {
        // RFC 9332 A.1: p_Cmax = min(1/k^2, 1). Below it ECT is marked only, from it on dropped with p'^2.
        for (coupling, p) in [(1, 0.999), (2, 0.499), (4, 0.249)] {
            let all_marked = hits(&mut coupled_queue(p, coupling), Some(Ecn::Ect1));
            assert!(all_marked.0 >= 9950 && all_marked.1 == 0, "{coupling}: {all_marked:?}");
            assert_eq!(hits(&mut coupled_queue(p, coupling), Some(Ecn::Ect0)).1, 0);
        }
        for (coupling, p) in [(2, 0.5), (4, 0.25)] {
            for ecn in [Some(Ecn::Ect1), Some(Ecn::Ect0), None] {
                let dropped = hits(&mut coupled_queue(p, coupling), ecn).1;
                assert!(dropped.abs_diff((p * p * 10_000.0) as usize) <= 1, "{coupling}, {ecn:?}: {dropped}");
            }
        }
    }

    #[test]
    fn native_marks_follow_the_ramp() {
        let ramp = Ramp { min_th: MS, range: MS * 4 };
        for (wait, expected) in [(MS, 0.0), (MS * 2, 0.25), (MS * 4, 0.75), (MS * 5, 1.0), (MS * 50, 1.0)] {
            assert!((ramp.probability(wait) - expected).abs() < 1e-12, "{wait}");
        }
        let step = Ramp { min_th: MS, range: Duration::ZERO };
        assert_eq!((step.probability(Duration::from_micros(999)), step.probability(MS)), (0.0, 1.0));
        // A packet that has waited 1 ms, with another one behind it: half are marked.
        let mut queue = queue(0.0);
        queue.l4s.packets.push_back(packet(Some(Ecn::Ect1)));
        let judged = (0..1000).map(|_| queue.judge_l4s(Instant::ZERO + MS, &packet(Some(Ecn::Ect1))));
        let marked = judged.filter(|decision| matches!(decision, QueueDecision::Sent { marked: true })).count();
        assert!(marked.abs_diff(500) <= 1, "{marked}");
    }

    #[test]
    fn under_overload_both_kinds_are_dropped_alike() {
        // p' = 0.6: beyond a quarter both are dropped with p'^2 = 0.36, whatever they could be marked with; k p' is above 1.
        for (ecn, marked) in [(Some(Ecn::Ect1), 6400), (Some(Ecn::Ect0), 0), (None, 0)] {
            let hits = hits(&mut queue(0.6), ecn);
            assert!(hits.1.abs_diff(3600) <= 1 && hits.0.abs_diff(marked) <= 2, "{ecn:?}: {hits:?}");
        }
    }
}
