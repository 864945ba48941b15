//! One direction of a path whose queue decides at dequeue.
//!
//! Called by the link emulator and by the simulator instead of a [`Path`], which returns the fate of a packet when it is
//! offered. A queue that serves flows in turn cannot do that: a packet that arrives later may be sent first.
//!
//! ```text
//! send ──► loss, policer ──► queue ── the link is free, at due() ──► transmission ──► delay .. corruption ──► decided
//! ```
//!
//! The driver offers packets, each with an identifier, calls [`ScheduledPath::advance`] no later than [`ScheduledPath::due`], and
//! takes decided packets from [`ScheduledPath::decided`]. A path with any other queue decides each packet when it is offered,
//! exactly as [`Path`] does.
//!
//! - `fq_codel`: a queue for each flow (RFC 8290). `dualpi2`: the dual queue of L4S (RFC 9332), with `pi2`, its controller.
//!
//! Limit: losses behind the bottleneck are decided when a packet is offered, so that they do not depend on the queue.
//!
//! Invariant: every packet is decided once. The backlog is bounded by the limit of the queue.

mod dualpi2;
mod fq_codel;
mod pi2;

use crate::aqm::Aqm;
use crate::bottleneck::{QueueLimit, check_management};
use crate::config::{LossPlace, PathConfig};
use crate::passage::{Drawn, Fate, Passage, Path, PathCounters};
use crate::spec_error::SpecError;
use crate::transmitter::Transmitter;
use dualpi2::{DualPi2, Ramp};
use fq_codel::FqCoDel;
use pi2::Pi2;
use segstream_base::endpoint::Ecn;
use segstream_base::random::Seed;
use segstream_base::{Bytes, Duration, Instant};
use std::collections::VecDeque;

/// A packet that is offered to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathPacket {
    /// Its length.
    pub bytes: Bytes,
    /// Its ECN codepoint; `None` is Not-ECT.
    pub ecn: Option<Ecn>,
    /// The flow it belongs to: a hash of its addresses, or a number.
    pub flow: u64,
}

/// A packet in a queue.
#[derive(Clone, Copy, Debug)]
struct QueuedPacket {
    id: u64,
    offered: PathPacket,
    arrived: Instant,
    lost_behind: bool,
    drawn: Drawn,
}

/// What a queue decides about a packet.
#[derive(Clone, Copy, Debug)]
enum QueueDecision {
    /// It is dequeued and sent.
    Sent { marked: bool },
    /// The queue was full.
    Full,
    /// The AQM drops it.
    Dropped,
}

/// A queueing discipline.
trait Discipline {
    /// Enqueues a packet at `now`. Appends to `decisions` the packets that are dropped for it, perhaps this one.
    fn enqueue(&mut self, now: Instant, packet: QueuedPacket, decisions: &mut Decisions);

    /// Dequeues packets at `now` and appends them to `decisions`, up to the first that is sent, or until the queue is empty.
    fn dequeue(&mut self, now: Instant, decisions: &mut Decisions);

    /// The packets and bytes in the queue.
    fn backlog(&self) -> Backlog;
}

/// Decided packets, in order.
type Decisions = Vec<(QueuedPacket, QueueDecision)>;

/// Packets and bytes in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
struct Backlog {
    packets: u64,
    bytes: u64,
}

impl Backlog {
    fn add(&mut self, packet: &QueuedPacket) {
        self.packets += 1;
        self.bytes += packet.counted();
    }

    fn remove(&mut self, packet: &QueuedPacket) {
        self.packets -= 1;
        self.bytes -= packet.counted();
    }

    const fn exceeds(self, limit: QueueLimit) -> bool {
        match limit {
            QueueLimit::Bytes(limit) => self.bytes > limit.get(),
            QueueLimit::Packets(limit) => self.packets > limit,
        }
    }
}

impl QueuedPacket {
    /// Its bytes as the limit counts them. Why not 0: empty packets would otherwise be queued without a limit.
    fn counted(&self) -> u64 {
        self.offered.bytes.get().max(1)
    }
}

/// The queue of a path and the transmitter behind it.
#[derive(Clone, Debug)]
struct Scheduler {
    transmitter: Transmitter,
    discipline: Queues,
    mark_above: Option<Duration>,
    decisions: Decisions,
}

/// One direction of a path with any queue.
#[derive(Clone, Debug)]
pub struct ScheduledPath {
    path: Path,
    scheduler: Option<Scheduler>,
    decided: VecDeque<(u64, Passage)>,
}

impl ScheduledPath {
    /// The path described by `config`. `direction` names its random streams, which are those of a [`Path`].
    ///
    /// # Errors
    /// Says which value of the configuration is invalid.
    pub fn new(config: &PathConfig, seed: Seed, direction: &str) -> Result<Self, SpecError> {
        if !config.aqm.is_scheduled() {
            return Ok(Self { path: Path::new(config, seed, direction)?, scheduler: None, decided: VecDeque::new() });
        }
        check_management(config)?;
        let transmitter = Transmitter::of(config)?.ok_or(SpecError::NothingToManage("management of the queue"))?;
        let hash_seed = seed.stream(&format!("flows.{direction}")).bits();
        let Some(discipline) = discipline(config.aqm, config.queue, hash_seed) else {
            return Err(SpecError::QueueDecidesLate(config.aqm.to_string()));
        };
        let unlimited = PathConfig {
            bandwidth: None,
            trace: Default::default(),
            opportunities: Default::default(),
            aqm: Aqm::DropTail,
            mark_above: None,
            ..config.clone()
        };
        let scheduler = Scheduler { transmitter, discipline, mark_above: config.mark_above, decisions: Vec::new() };
        Ok(Self { path: Path::new(&unlimited, seed, direction)?, scheduler: Some(scheduler), decided: VecDeque::new() })
    }

    /// Offers a packet at `now`; [`ScheduledPath::decided`] returns its fate under the name `id`.
    ///
    /// Time does not go backward: an instant before that of the last call counts as the last one.
    #[inline]
    pub fn send(&mut self, now: Instant, packet: PathPacket, id: u64) {
        if let Some(passage) = self.offer(now, packet, id) {
            self.decided.push_back((id, passage));
        }
    }

    /// As [`ScheduledPath::send`], but returns the fate of the packet if the queue decides at once. After `None`,
    /// [`ScheduledPath::decided`] returns it, now or later.
    #[inline]
    pub fn offer(&mut self, now: Instant, packet: PathPacket, id: u64) -> Option<Passage> {
        if self.scheduler.is_none() {
            return Some(self.path.pass(now, packet.bytes, packet.ecn.is_some()));
        }
        self.schedule(now, packet, id);
        None
    }

    /// Offers a packet to the queue that decides at dequeue.
    fn schedule(&mut self, now: Instant, packet: PathPacket, id: u64) {
        let Some(scheduler) = &mut self.scheduler else { return };
        let now = now.max(self.path.now());
        // The link dequeues what is due by now before this packet is there.
        scheduler.serve(now, &mut self.path, &mut self.decided);
        let (number, drawn) = self.path.enter(now, packet.bytes);
        let lost = self.path.loses(number);
        let before = self.path.loss_at() == LossPlace::Before;
        if lost && before {
            self.path.counters_mut().lost += 1;
            self.decided.push_back((id, Passage::ended(Fate::Lost, Duration::ZERO)));
        } else if self.path.polices(packet.bytes) {
            let ecn = packet.ecn.filter(|_| !self.path.is_ecn_unaware());
            let queued = QueuedPacket { id, offered: PathPacket { ecn, ..packet }, arrived: now, lost_behind: lost, drawn };
            scheduler.enqueue(now, queued);
            scheduler.decide(now, &mut self.path, &mut self.decided);
            scheduler.serve(now, &mut self.path, &mut self.decided);
        } else {
            self.decided.push_back((id, Passage::ended(Fate::Dropped, Duration::ZERO)));
        }
    }

    /// When the link dequeues the next packet; [`Instant::FAR_FUTURE`] when the queue is empty.
    pub fn due(&self) -> Instant {
        self.scheduler.as_ref().map_or(Instant::FAR_FUTURE, Scheduler::due)
    }

    /// Dequeues and sends what is due by `now`.
    pub fn advance(&mut self, now: Instant) {
        if let Some(scheduler) = &mut self.scheduler {
            scheduler.serve(now, &mut self.path, &mut self.decided);
        }
    }

    /// The next decided packet: its identifier and its fate.
    #[inline]
    pub fn decided(&mut self) -> Option<(u64, Passage)> {
        self.decided.pop_front()
    }

    /// What has happened so far.
    pub const fn counters(&self) -> PathCounters {
        self.path.counters()
    }

    /// The bytes in the queue at `now`, without the packet that is being transmitted.
    pub fn waiting_bytes(&mut self, now: Instant) -> Bytes {
        match &self.scheduler {
            None => self.path.waiting_bytes(now),
            Some(scheduler) => Bytes::new(scheduler.discipline.backlog().bytes),
        }
    }

    /// When the bottleneck will have sent everything it has dequeued.
    pub fn free_at(&self) -> Instant {
        self.scheduler.as_ref().map_or_else(|| self.path.free_at(), |scheduler| scheduler.transmitter.free_at())
    }

    /// The propagation delay, without jitter, of a packet that leaves the bottleneck at `at`.
    pub fn delay_at(&self, at: Instant) -> Duration {
        self.path.delay_at(at)
    }
}

/// The queues of a path.
#[derive(Clone, Debug)]
enum Queues {
    FqCoDel(Box<FqCoDel>),
    DualPi2(Box<DualPi2>),
}

impl Discipline for Queues {
    fn enqueue(&mut self, now: Instant, packet: QueuedPacket, decisions: &mut Decisions) {
        match self {
            Self::FqCoDel(queues) => queues.enqueue(now, packet, decisions),
            Self::DualPi2(queues) => queues.enqueue(now, packet, decisions),
        }
    }

    fn dequeue(&mut self, now: Instant, decisions: &mut Decisions) {
        match self {
            Self::FqCoDel(queues) => queues.dequeue(now, decisions),
            Self::DualPi2(queues) => queues.dequeue(now, decisions),
        }
    }

    fn backlog(&self) -> Backlog {
        match self {
            Self::FqCoDel(queues) => queues.backlog(),
            Self::DualPi2(queues) => queues.backlog(),
        }
    }
}

fn discipline(aqm: Aqm, limit: QueueLimit, hash_seed: u64) -> Option<Queues> {
    match aqm {
        Aqm::FqCoDel { target, interval, flows, quantum } => {
            Some(Queues::FqCoDel(Box::new(FqCoDel::new((target, interval), flows, quantum, limit, hash_seed))))
        }
        Aqm::DualPi2 { target, rtt, min_th, range, coupling } => {
            let pi2 = Pi2::new(target, rtt, coupling);
            Some(Queues::DualPi2(Box::new(DualPi2::new(pi2, Ramp { min_th, range }, limit))))
        }
        Aqm::DropTail | Aqm::CoDel { .. } | Aqm::Pie { .. } | Aqm::Red { .. } => None,
    }
}

impl Scheduler {
    /// When the link dequeues the next packet.
    fn due(&self) -> Instant {
        if self.discipline.backlog().packets == 0 { Instant::FAR_FUTURE } else { self.transmitter.free_at() }
    }

    /// Enqueues a packet at `now`.
    fn enqueue(&mut self, now: Instant, packet: QueuedPacket) {
        if self.discipline.backlog().packets == 0 {
            self.transmitter.start(now);
        }
        self.discipline.enqueue(now, packet, &mut self.decisions);
    }

    /// Dequeues packets until `now`.
    fn serve(&mut self, now: Instant, path: &mut Path, decided: &mut VecDeque<(u64, Passage)>) {
        while self.discipline.backlog().packets > 0 && self.transmitter.free_at() <= now {
            // Why not `now`: the link dequeues as soon as it is free, however late it is asked.
            let at = self.transmitter.free_at();
            self.discipline.dequeue(at, &mut self.decisions);
            self.decide(at, path, decided);
            // Why zero: the queued packets were there before the link became free.
            self.transmitter.start(Instant::ZERO);
        }
    }

    /// Computes the fate of the packets that the queue has decided at `at`.
    fn decide(&mut self, at: Instant, path: &mut Path, decided: &mut VecDeque<(u64, Passage)>) {
        for (packet, decision) in self.decisions.drain(..) {
            let queued = at.since(packet.arrived);
            let passage = match decision {
                QueueDecision::Full => {
                    path.counters_mut().dropped_queue += 1;
                    Passage::ended(Fate::Dropped, queued)
                }
                QueueDecision::Dropped => {
                    path.counters_mut().dropped_aqm += 1;
                    Passage::ended(Fate::Dropped, queued)
                }
                QueueDecision::Sent { marked } => {
                    let departure = self.transmitter.send(packet.offered.bytes);
                    if packet.lost_behind {
                        path.counters_mut().lost += 1;
                        Passage::ended(Fate::Lost, queued)
                    } else {
                        let above = packet.offered.ecn.is_some() && self.mark_above.is_some_and(|limit| queued > limit);
                        path.deliver(packet.drawn, departure, queued, marked || above)
                    }
                }
            };
            decided.push_back((packet.id, passage));
        }
    }
}
