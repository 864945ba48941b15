//! Every connection ends and says why, everything accepted is judged, and time advances.
//!
//! One of the checkers. Source: spec 6.4 (after a graceful close no accepted segment is without a verdict), 6.6 (how
//! long silence is borne), 9.1.
//!
//! Invariant: what excuses an end other than the graceful one is a fault of the plan; in a peaceful run there is none but that no answer to a
//! request for a connection arrived.

use super::{Checker, must};
use crate::event::{Event, Fate, Place, SegmentName, StreamName};
use segstream_base::halves::Verdict;
use segstream_base::{Duration, Instant};
use segstream_proto::connection::Role;
use segstream_proto::error::CloseReason;
use std::collections::{BTreeMap, BTreeSet};

/// So often may the swarm come to the same instant.
const STEPS_MAX: u32 = 20_000;
/// How much later than its timer a connection may end: the driver's own gathering and rounding.
const LATE_MAX: Duration = Duration::from_millis(500);
/// The shortest idle timeout (spec 6.5).
const IDLE_MIN: Duration = Duration::from_secs(1);

#[derive(Debug)]
struct Side {
    host: usize,
    peer: Place,
    role: Role,
    appeared: Instant,
    connect_timeout: Duration,
    idle_timeout: Duration,
    established: bool,
    /// Its segments without a verdict.
    unjudged: BTreeSet<SegmentName>,
    /// Segments whose verdict was *unknown*.
    unknown: Vec<SegmentName>,
    refused: BTreeSet<StreamName>,
    closed: bool,
    crashed: bool,
}

/// Datagrams of a host to another: how many have arrived or will, and how many were lost.
type Carried = BTreeMap<(usize, Place), (u32, u32)>;

/// Whether every answer to a request of `side` that arrived was lost, so that no answer at all came.
fn no_answer_arrived(carried: &Carried, side: &Side) -> bool {
    let Place::Host(peer) = side.peer else { return false };
    let of = |from: usize, to| carried.get(&(from, to)).copied().unwrap_or_default();
    let ((asked, _), (answered, lost)) = (of(side.host, side.peer), of(peer, Place::Host(side.host)));
    answered == 0 && lost >= asked
}

/// What each side still owes.
#[derive(Debug)]
pub(super) struct Progress {
    peaceful: bool,
    at: Instant,
    steps: u32,
    sides: BTreeMap<u32, Side>,
    /// When anything came, by host and address.
    heard: BTreeMap<(usize, Place), Instant>,
    /// When a host that was not driven was driven again.
    resumed: BTreeMap<usize, Instant>,
    carried: Carried,
}

impl Progress {
    pub(super) const fn new(peaceful: bool) -> Self {
        Self {
            peaceful,
            at: Instant::ZERO,
            steps: 0,
            sides: BTreeMap::new(),
            heard: BTreeMap::new(),
            resumed: BTreeMap::new(),
            carried: BTreeMap::new(),
        }
    }

    fn side(&mut self, side: u32) -> Result<&mut Side, String> {
        self.sides.get_mut(&side).ok_or_else(|| format!("side {side} was never heard of"))
    }

    fn on_step(&mut self, now: Instant) -> Result<(), String> {
        must!(now >= self.at, "time has gone back from {}", self.at);
        self.steps = if now > self.at { 0 } else { self.steps + 1 };
        self.at = now;
        must!(self.steps < STEPS_MAX, "time stands still: {STEPS_MAX} steps at the same instant");
        Ok(())
    }

    fn on_told(&mut self, name: SegmentName, verdict: Verdict) -> Result<(), String> {
        let side = self.side(name.stream.side)?;
        must!(!side.closed, "the verdict on {name} was told after the end of its connection");
        must!(side.unjudged.remove(&name), "{name} was judged though it was not accepted, or twice");
        if verdict == Verdict::Unknown {
            side.unknown.push(name);
        }
        Ok(())
    }

    fn on_closed(&mut self, now: Instant, number: u32, reason: &CloseReason) -> Result<(), String> {
        let (peaceful, resumed) = (self.peaceful, &self.resumed);
        let Some(side) = self.sides.get_mut(&number) else { return Err(format!("side {number} was never heard of")) };
        let heard = |from| self.heard.get(&(side.host, from)).copied();
        let last = [Some(side.appeared), heard(side.peer), heard(Place::Elsewhere(0)), resumed.get(&side.host).copied()];
        must!(!side.closed, "the end of side {number} was told twice");
        side.closed = true;
        if let Some(name) = side.unjudged.first() {
            return Err(format!("side {number} has ended ({reason}), but {name} and {} others have no verdict", side.unjudged.len() - 1));
        }
        must!(!matches!(reason, CloseReason::ProtocolViolation(_)), "side {number} takes a correct peer for a wrong one: {reason}");
        let graceful = matches!(reason, CloseReason::ClosedHere | CloseReason::ClosedByPeer { .. });
        let unknown = side.unknown.iter().find(|name| !side.refused.contains(&name.stream));
        if let Some(name) = unknown.filter(|_| graceful) {
            return Err(format!("side {number} was closed gracefully ({reason}), but the verdict on {name} is unknown"));
        }
        let borne = if side.established { side.idle_timeout.max(IDLE_MIN) } else { side.connect_timeout } + LATE_MAX;
        let silent = now.since(last.into_iter().flatten().max().unwrap_or_default());
        must!(silent <= borne, "side {number} has ended ({reason}) after a silence of {silent}, of {borne} that it may bear");
        // A replayed request makes a connection of which its peer knows nothing: it is never established.
        let unlucky = side.role == Role::Responder || no_answer_arrived(&self.carried, side);
        let excused = !peaceful || !side.established && matches!(reason, CloseReason::NoAnswer(_)) && unlucky;
        must!(graceful || excused, "nothing was wrong, but side {number} has ended so: {reason}");
        Ok(())
    }

    fn on_over(&self) -> Result<(), String> {
        for (number, side) in &self.sides {
            let open = !side.closed && !side.crashed;
            let unjudged = side.unjudged.len();
            must!(
                !open,
                "side {number} (h{} to {}) has not ended long after all faults have; {unjudged} of its segments have no verdict",
                side.host,
                side.peer
            );
        }
        Ok(())
    }
}

impl Checker for Progress {
    fn name(&self) -> &'static str {
        "progress"
    }

    fn observe(&mut self, now: Instant, event: &Event) -> Result<(), String> {
        match event {
            Event::Step => self.on_step(now)?,
            Event::Sent { host, to, fate, .. } => {
                let (arrived, lost) = self.carried.entry((*host, *to)).or_default();
                *(if matches!(fate, Fate::Lost) { lost } else { arrived }) += 1;
            }
            Event::Arrived { host, from, .. } => {
                // A sealed shipment that someone sends on from elsewhere is the peer's still.
                let from = if matches!(from, Place::Elsewhere(_)) { Place::Elsewhere(0) } else { *from };
                self.heard.insert((*host, from), now);
            }
            Event::Resumed(host) => _ = self.resumed.insert(*host, now),
            Event::Appeared { side, host, peer, role, connect_timeout, idle_timeout } => {
                let fresh = Side {
                    host: *host,
                    peer: *peer,
                    role: *role,
                    appeared: now,
                    connect_timeout: *connect_timeout,
                    idle_timeout: *idle_timeout,
                    established: false,
                    unjudged: BTreeSet::new(),
                    unknown: Vec::new(),
                    refused: BTreeSet::new(),
                    closed: false,
                    crashed: false,
                };
                must!(self.sides.insert(*side, fresh).is_none(), "side {side} has appeared twice");
            }
            Event::Established { side, .. } => self.side(*side)?.established = true,
            Event::Refused(name) => _ = self.side(name.side)?.refused.insert(*name),
            Event::Submitted { name, .. } => _ = self.side(name.stream.side)?.unjudged.insert(*name),
            Event::Told { name, verdict, .. } => self.on_told(*name, *verdict)?,
            Event::Closed { side, reason } => self.on_closed(now, *side, reason)?,
            Event::Crashed(host) => {
                self.sides.values_mut().filter(|side| side.host == *host).for_each(|side| side.crashed = true);
            }
            Event::Over(_) => self.on_over()?,
            _ => {}
        }
        Ok(())
    }
}
