//! FQ-CoDel (RFC 8290): a queue for each flow, served in turn, each with a CoDel of its own.
//!
//! Called by [`super::ScheduledPath`] for each packet that enters and each time the link is free.
//!
//! A flow whose queue was empty is *new* and has priority over *old* flows until it has sent a quantum, so a sparse flow does not
//! wait for flows that fill the link (RFC 8290 4.2). When the queue is full, the longest flow loses half of its
//! packets, 64 at most, from its head (4.1). Flows are hashed into a fixed number of queues; two that meet share one.
//!
//! Invariant: state is that of a fixed number of queues and of the packets that wait. A queue is in one of the two lists or, if
//! it is empty and has had its turn, in none.

use super::{Backlog, Decisions, Discipline, QueueDecision, QueuedPacket};
use crate::bottleneck::QueueLimit;
use crate::codel::{CoDel, Decision};
use segstream_base::random::mixed;
use segstream_base::{Duration, Instant};
use std::collections::VecDeque;

/// RFC 8290 4.1: how many packets a full queue drops at once, at most.
const DROPPED_TOGETHER: usize = 64;

/// While no more than this waits in a queue, CoDel drops nothing of it (RFC 8289 5.5).
const MTU_BYTES: u64 = 1514;

/// The queues and their lists.
#[derive(Clone, Debug)]
pub(super) struct FqCoDel {
    flows: Vec<Flow>,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    quantum: i64,
    limit: QueueLimit,
    hash_seed: u64,
    backlog: Backlog,
}

/// One queue.
#[derive(Clone, Debug)]
struct Flow {
    packets: VecDeque<QueuedPacket>,
    bytes: u64,
    /// The bytes that it may still send in its turn (its credits in RFC 8290).
    deficit: i64,
    listed: bool,
    codel: CoDel,
}

impl FqCoDel {
    /// This many empty queues, with CoDel's target and interval. `hash_seed` decides which flows meet.
    pub(super) fn new((target, interval): (Duration, Duration), flows: u32, quantum: u32, limit: QueueLimit, hash_seed: u64) -> Self {
        let flow = Flow { packets: VecDeque::new(), bytes: 0, deficit: 0, listed: false, codel: CoDel::new(target, interval) };
        Self {
            flows: vec![flow; flows.max(1) as usize],
            new: VecDeque::new(),
            old: VecDeque::new(),
            quantum: i64::from(quantum),
            limit,
            hash_seed,
            backlog: Backlog::default(),
        }
    }

    /// The queue that a flow is hashed to. Why mixed: flows may be numbered from 0.
    fn place(&self, flow: u64) -> usize {
        let hash = mixed(flow.wrapping_add(self.hash_seed).wrapping_add(0x9e37_79b9_7f4a_7c15));
        usize::try_from(hash % self.flows.len() as u64).unwrap_or(0)
    }

    /// Drops from the head of the longest queue.
    fn drop_from_longest(&mut self, decisions: &mut Decisions) {
        // Why the first of equals: the same seed gives the same fates.
        let longest = self.flows.iter_mut().rev().max_by_key(|flow| flow.bytes);
        let Some(longest) = longest else { return };
        let count = longest.packets.len().div_ceil(2).min(DROPPED_TOGETHER);
        for packet in longest.packets.drain(..count) {
            longest.bytes -= packet.counted();
            self.backlog.remove(&packet);
            decisions.push((packet, QueueDecision::Full));
        }
    }
}

impl Discipline for FqCoDel {
    fn enqueue(&mut self, _now: Instant, packet: QueuedPacket, decisions: &mut Decisions) {
        let place = self.place(packet.offered.flow);
        let Some(flow) = self.flows.get_mut(place) else { return };
        self.backlog.add(&packet);
        flow.bytes += packet.counted();
        flow.packets.push_back(packet);
        if !flow.listed {
            flow.listed = true;
            flow.deficit = self.quantum;
            self.new.push_back(place);
        }
        while self.backlog.exceeds(self.limit) && self.backlog.packets > 0 {
            self.drop_from_longest(decisions);
        }
    }

    /// RFC 8290 4.2.
    fn dequeue(&mut self, now: Instant, decisions: &mut Decisions) {
        while let Some(place) = self.new.front().or(self.old.front()).copied() {
            let is_new = !self.new.is_empty();
            let Some(flow) = self.flows.get_mut(place) else { return };
            let list = if is_new { &mut self.new } else { &mut self.old };
            if flow.deficit <= 0 {
                flow.deficit += self.quantum;
                list.pop_front();
                self.old.push_back(place);
                continue;
            }
            if flow.take(now, &mut self.backlog, decisions) {
                return;
            }
            list.pop_front();
            if is_new {
                self.old.push_back(place);
            } else {
                flow.listed = false;
            }
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }
}

impl Flow {
    /// Dequeues packets up to the first that CoDel does not drop. False when there is none.
    fn take(&mut self, now: Instant, backlog: &mut Backlog, decisions: &mut Decisions) -> bool {
        while let Some(packet) = self.packets.pop_front() {
            self.bytes -= packet.counted();
            backlog.remove(&packet);
            // RFC 8289 5.5: with so little behind it nothing is dropped, as if the wait were below the target.
            let spared = if self.bytes <= MTU_BYTES { Duration::MAX } else { Duration::ZERO };
            let decision = match self.codel.decide(now, now.since(packet.arrived), spared, packet.offered.ecn.is_some()) {
                Decision::Drop => QueueDecision::Dropped,
                Decision::Send => QueueDecision::Sent { marked: false },
                Decision::Mark => QueueDecision::Sent { marked: true },
            };
            decisions.push((packet, decision));
            if matches!(decision, QueueDecision::Sent { .. }) {
                self.deficit -= i64::try_from(packet.offered.bytes.get()).unwrap_or(i64::MAX);
                return true;
            }
        }
        false
    }
}
