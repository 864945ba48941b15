//! DualPI2 (RFC 9332): a shallow queue for L4S beside a classic one, coupled.
//!
//! Called by [`super::ScheduledPath`] for each packet that enters and each time the link is free.
//!
//! ECT(1) and CE go to the queue of L4S, all others to the classic one (RFC 9332 2.3, RFC 9331 5.1). An L4S packet is marked by
//! the greater of two probabilities: 1 if it has waited longer than the step, and that which couples it to the classic queue.
//! A classic one is marked or dropped with the square (A.1). Under overload both kinds are dropped alike (A.2).
//!
//! L4S goes first, but while both queues wait the classic one gets at least a tenth of the bytes: RFC 9332 4.2.2 leaves the
//! conditional priority open, this is the credit of Linux (`c_protection` 10 % of `sch_dualpi2`).
//!
//! Limit: of the two laws for the native marks, ramp and step, the step (RFC 9332 4.1, and Linux).
//!
//! Invariant: state is two queues, bounded together, and a few numbers. It draws nothing: decisions are spread evenly, as A.1
//! has them.

use super::pi2::Pi2;
use super::{Backlog, Discipline, Verdict, Verdicts, Waiting};
use crate::bottleneck::QueueLimit;
use segstream_base::endpoint::Ecn;
use segstream_base::{Duration, Instant};
use std::collections::VecDeque;

/// The classic queue's share of the bytes while both wait, and the other's, in parts of ten.
const WEIGHT_CLASSIC: i64 = 1;
const WEIGHT_L4S: i64 = 9;

/// Both queues.
#[derive(Clone, Debug)]
pub(super) struct DualPi2 {
    pi2: Pi2,
    step: Duration,
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
    packets: VecDeque<Waiting>,
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
    pub(super) fn new(target: Duration, rtt: Duration, step: Duration, coupling: u32, limit: QueueLimit) -> Self {
        Self {
            pi2: Pi2::new(target, rtt, coupling),
            step,
            limit,
            l4s: Queue::default(),
            classic: Queue::default(),
            backlog: Backlog::default(),
            credit: 0,
        }
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
        let bytes = |packet: &Waiting| i64::try_from(packet.counted()).unwrap_or(i64::MAX);
        if self.credit <= 0 {
            self.credit = self.credit.saturating_add(WEIGHT_CLASSIC.saturating_mul(bytes(l4s)));
            true
        } else {
            self.credit = self.credit.saturating_sub(WEIGHT_L4S.saturating_mul(bytes(classic)));
            false
        }
    }

    /// What becomes of an L4S packet that is taken at `now`.
    fn judge_l4s(&mut self, now: Instant, packet: &Waiting) -> Verdict {
        if self.pi2.is_overloaded() {
            if self.l4s.recurs(self.pi2.classic()) {
                return Verdict::Dropped;
            }
            // Why not counted: what is certain would count for the drops, which share the sum.
            let coupled = self.pi2.coupled();
            return Verdict::Sent { marked: coupled >= 1.0 || self.l4s.recurs(coupled) };
        }
        // RFC 9332 A.1, Th_len: one packet alone has not made its wait.
        let native = now.since(packet.arrived) > self.step && !self.l4s.packets.is_empty();
        Verdict::Sent { marked: native || self.l4s.recurs(self.pi2.coupled()) }
    }

    /// What becomes of a classic packet.
    fn judge_classic(&mut self, packet: &Waiting) -> Verdict {
        let hit = self.classic.recurs(self.pi2.classic());
        match (hit, packet.entering.ecn) {
            (false, _) => Verdict::Sent { marked: false },
            (true, Some(_)) if self.pi2.classic() < Pi2::CLASSIC_MOST => Verdict::Sent { marked: true },
            (true, _) => Verdict::Dropped,
        }
    }
}

impl Discipline for DualPi2 {
    fn enqueue(&mut self, now: Instant, packet: Waiting, verdicts: &mut Verdicts) {
        self.update_until(now);
        let mut with_it = self.backlog;
        with_it.add(&packet);
        if with_it.exceeds(self.limit) {
            verdicts.push((packet, Verdict::Full));
            return;
        }
        self.backlog = with_it;
        let scalable = matches!(packet.entering.ecn, Some(Ecn::Ect1 | Ecn::CongestionExperienced));
        let queue = if scalable { &mut self.l4s } else { &mut self.classic };
        queue.packets.push_back(packet);
    }

    fn dequeue(&mut self, now: Instant, verdicts: &mut Verdicts) {
        self.update_until(now);
        while self.backlog.packets > 0 {
            let from_l4s = self.serves_l4s();
            let queue = if from_l4s { &mut self.l4s } else { &mut self.classic };
            let Some(packet) = queue.packets.pop_front() else { return };
            self.backlog.remove(&packet);
            let verdict = if from_l4s { self.judge_l4s(now, &packet) } else { self.judge_classic(&packet) };
            verdicts.push((packet, verdict));
            if matches!(verdict, Verdict::Sent { .. }) {
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
    use crate::scheduled::Entering;
    use segstream_base::Bytes;

    const MS: Duration = Duration::from_millis(1);

    fn packet(ecn: Option<Ecn>) -> Waiting {
        let entering = Entering { bytes: Bytes::new(1000), ecn, flow: 0 };
        Waiting { ticket: 0, entering, arrived: Instant::ZERO, lost_behind: false, drawn: Drawn::default() }
    }

    fn queue(p: f64) -> DualPi2 {
        let mut queue = DualPi2::new(MS * 15, MS * 100, MS, 2, QueueLimit::UNLIMITED);
        queue.pi2.set(p);
        queue
    }

    /// Of 10,000 packets that have not waited: how many are marked and how many dropped.
    fn hits(queue: &mut DualPi2, ecn: Option<Ecn>) -> (usize, usize) {
        let judged = (0..10_000).map(|_| match ecn {
            Some(Ecn::Ect1) => queue.judge_l4s(Instant::ZERO, &packet(ecn)),
            _ => queue.judge_classic(&packet(ecn)),
        });
        judged.fold((0, 0), |(marked, dropped), verdict| match verdict {
            Verdict::Sent { marked: hit } => (marked + usize::from(hit), dropped),
            Verdict::Dropped | Verdict::Full => (marked, dropped + 1),
        })
    }

    #[test]
    fn l4s_is_marked_with_twice_the_root_of_what_classic_packets_meet() {
        // p' = 0.2: p_C = 0.04 and p_L = 0.4 (RFC 9332 2.1). Evenly spread, so to the packet, but for the first.
        for (ecn, marked, dropped) in [(Some(Ecn::Ect1), 4000, 0), (Some(Ecn::Ect0), 400, 0), (None, 0, 400)] {
            let hits = hits(&mut queue(0.2), ecn);
            assert!(hits.0.abs_diff(marked) <= 1 && hits.1.abs_diff(dropped) <= 1, "{ecn:?}: {hits:?}");
        }
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
