//! One direction of a path whose queue decides when the link takes a packet.
//!
//! Called by the link emulator and by the simulator in the place of a [`Path`], which answers when a packet enters. A queue that
//! serves flows in turn cannot do that: a packet that comes later may go first.
//!
//! ```text
//! enter ──► loss, policer ──► queue ── the link is free, at due() ──► transmission ──► delay .. corruption ──► settled
//! ```
//!
//! Whoever drives it hands over packets with a ticket, calls [`ScheduledPath::advance`] no later than
//! [`ScheduledPath::due`], and takes what is decided from [`ScheduledPath::settled`]. A path whose queue decides at once
//! settles a packet in the call that hands it over, exactly as [`Path`] does.
//!
//! - `fq_codel`: a queue for each flow (RFC 8290). `dualpi2`: the dual queue of L4S (RFC 9332), with `pi2`, its controller.
//!
//! Limit: losses behind the bottleneck are decided when a packet enters, so that they do not depend on the queue.
//!
//! Invariant: every packet is settled once. What waits is bounded by the limit of the queue.

mod dualpi2;
mod fq_codel;
mod pi2;

use crate::aqm::Aqm;
use crate::bottleneck::{QueueLimit, check_management};
use crate::config::{LossPlace, PathConfig};
use crate::passage::{Drawn, Fate, Passage, Path, PathCounters};
use crate::spec_error::SpecError;
use crate::transmitter::Transmitter;
use dualpi2::DualPi2;
use fq_codel::FqCoDel;
use segstream_base::endpoint::Ecn;
use segstream_base::random::Seed;
use segstream_base::{Bytes, Duration, Instant};
use std::collections::VecDeque;

/// A packet that enters a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entering {
    /// Its length.
    pub bytes: Bytes,
    /// Its ECN codepoint; `None` is Not-ECT.
    pub ecn: Option<Ecn>,
    /// The flow it belongs to: a hash of its addresses, or a number.
    pub flow: u64,
}

/// A packet in a queue.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    ticket: u64,
    entering: Entering,
    arrived: Instant,
    lost_behind: bool,
    drawn: Drawn,
}

/// What a queue says of a packet.
#[derive(Clone, Copy, Debug)]
enum Verdict {
    /// The link takes it.
    Sent { marked: bool },
    /// The queue was full.
    Full,
    /// Its management drops it.
    Dropped,
}

/// A queue with its management.
trait Discipline {
    /// Puts a packet into the queue at `now`. Tells `verdicts` which packets, this one perhaps among them, had to make room.
    fn enqueue(&mut self, now: Instant, packet: Waiting, verdicts: &mut Verdicts);

    /// Takes packets out at `now` and tells `verdicts` of them, up to one that is sent or until there is none.
    fn dequeue(&mut self, now: Instant, verdicts: &mut Verdicts);

    /// What waits.
    fn backlog(&self) -> Backlog;
}

/// The packets that were decided, in their order.
type Verdicts = Vec<(Waiting, Verdict)>;

/// How much waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
struct Backlog {
    packets: u64,
    bytes: u64,
}

impl Backlog {
    fn add(&mut self, packet: &Waiting) {
        self.packets += 1;
        self.bytes += packet.counted();
    }

    fn remove(&mut self, packet: &Waiting) {
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

impl Waiting {
    /// Its bytes against the limit. Why not 0: a packet of no bytes would otherwise wait without a limit.
    fn counted(&self) -> u64 {
        self.entering.bytes.get().max(1)
    }
}

/// The queue of a path, and the link behind it.
#[derive(Clone, Debug)]
struct Scheduler {
    transmitter: Transmitter,
    discipline: Queues,
    mark_above: Option<Duration>,
    verdicts: Verdicts,
}

/// One direction of a path with any queue.
#[derive(Clone, Debug)]
pub struct ScheduledPath {
    path: Path,
    scheduler: Option<Scheduler>,
    settled: VecDeque<(u64, Passage)>,
}

impl ScheduledPath {
    /// The path described by `config`. `direction` names its random streams, which are those of a [`Path`].
    ///
    /// # Errors
    /// Says which value of the configuration cannot be.
    pub fn new(config: &PathConfig, seed: Seed, direction: &str) -> Result<Self, SpecError> {
        if !config.aqm.is_scheduled() {
            return Ok(Self { path: Path::new(config, seed, direction)?, scheduler: None, settled: VecDeque::new() });
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
        let scheduler = Scheduler { transmitter, discipline, mark_above: config.mark_above, verdicts: Vec::new() };
        Ok(Self { path: Path::new(&unlimited, seed, direction)?, scheduler: Some(scheduler), settled: VecDeque::new() })
    }

    /// Hands over a packet at `now`, which is called `ticket` when it is settled.
    ///
    /// Time does not go backward: an instant before that of the last call counts as the last one.
    #[inline]
    pub fn enter(&mut self, now: Instant, entering: Entering, ticket: u64) {
        if let Some(passage) = self.offer(now, entering, ticket) {
            self.settled.push_back((ticket, passage));
        }
    }

    /// As [`ScheduledPath::enter`], but returns what becomes of the packet where the queue decides at once; `None` when it is
    /// settled, now or later.
    #[inline]
    pub fn offer(&mut self, now: Instant, entering: Entering, ticket: u64) -> Option<Passage> {
        if self.scheduler.is_none() {
            return Some(self.path.pass(now, entering.bytes, entering.ecn.is_some()));
        }
        self.schedule(now, entering, ticket);
        None
    }

    /// Hands a packet to the queue that decides later.
    fn schedule(&mut self, now: Instant, entering: Entering, ticket: u64) {
        let Some(scheduler) = &mut self.scheduler else { return };
        let now = now.max(self.path.now());
        // What the link has taken by now, it has taken without this packet.
        scheduler.serve(now, &mut self.path, &mut self.settled);
        let (number, drawn) = self.path.enter(now, entering.bytes);
        let lost = self.path.loses(number);
        let before = self.path.loss_at() == LossPlace::Before;
        if lost && before {
            self.path.counters_mut().lost += 1;
            self.settled.push_back((ticket, Passage::ended(Fate::Lost, Duration::ZERO)));
        } else if self.path.polices(entering.bytes) {
            let packet = Waiting { ticket, entering, arrived: now, lost_behind: lost, drawn };
            scheduler.enqueue(now, packet);
            scheduler.settle(now, &mut self.path, &mut self.settled);
            scheduler.serve(now, &mut self.path, &mut self.settled);
        } else {
            self.settled.push_back((ticket, Passage::ended(Fate::Dropped, Duration::ZERO)));
        }
    }

    /// When the link takes the next packet that waits; [`Instant::FAR_FUTURE`] when none does.
    pub fn due(&self) -> Instant {
        self.scheduler.as_ref().map_or(Instant::FAR_FUTURE, Scheduler::due)
    }

    /// Lets the link take what it takes until `now`.
    pub fn advance(&mut self, now: Instant) {
        if let Some(scheduler) = &mut self.scheduler {
            scheduler.serve(now, &mut self.path, &mut self.settled);
        }
    }

    /// The next packet that is decided: its ticket, and what becomes of it.
    #[inline]
    pub fn settled(&mut self) -> Option<(u64, Passage)> {
        self.settled.pop_front()
    }

    /// What has happened so far.
    pub const fn counters(&self) -> PathCounters {
        self.path.counters()
    }

    /// The bytes that wait for the bottleneck at `now`, the packet being transmitted not counted.
    pub fn waiting_bytes(&mut self, now: Instant) -> Bytes {
        match &self.scheduler {
            None => self.path.waiting_bytes(now),
            Some(scheduler) => Bytes::new(scheduler.discipline.backlog().bytes),
        }
    }

    /// When the bottleneck will have sent everything it has taken.
    pub fn free_at(&self) -> Instant {
        self.scheduler.as_ref().map_or_else(|| self.path.free_at(), |scheduler| scheduler.transmitter.free_at())
    }

    /// The delay, without jitter, of what leaves the bottleneck at `at`.
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
    fn enqueue(&mut self, now: Instant, packet: Waiting, verdicts: &mut Verdicts) {
        match self {
            Self::FqCoDel(queues) => queues.enqueue(now, packet, verdicts),
            Self::DualPi2(queues) => queues.enqueue(now, packet, verdicts),
        }
    }

    fn dequeue(&mut self, now: Instant, verdicts: &mut Verdicts) {
        match self {
            Self::FqCoDel(queues) => queues.dequeue(now, verdicts),
            Self::DualPi2(queues) => queues.dequeue(now, verdicts),
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
        Aqm::DualPi2 { target, rtt, step, coupling } => Some(Queues::DualPi2(Box::new(DualPi2::new(target, rtt, step, coupling, limit)))),
        Aqm::DropTail | Aqm::CoDel { .. } | Aqm::Pie { .. } => None,
    }
}

impl Scheduler {
    /// When the link takes the next packet.
    fn due(&self) -> Instant {
        if self.discipline.backlog().packets == 0 { Instant::FAR_FUTURE } else { self.transmitter.free_at() }
    }

    /// Puts a packet into the queue at `now`.
    fn enqueue(&mut self, now: Instant, packet: Waiting) {
        if self.discipline.backlog().packets == 0 {
            self.transmitter.start(now);
        }
        self.discipline.enqueue(now, packet, &mut self.verdicts);
    }

    /// Lets the link take packets until `now`.
    fn serve(&mut self, now: Instant, path: &mut Path, settled: &mut VecDeque<(u64, Passage)>) {
        while self.discipline.backlog().packets > 0 && self.transmitter.free_at() <= now {
            // Why not `now`: the link takes a packet as soon as it is free, however late it is asked.
            let at = self.transmitter.free_at();
            self.discipline.dequeue(at, &mut self.verdicts);
            self.settle(at, path, settled);
            // Why zero: what waits now was there before the link is free.
            self.transmitter.start(Instant::ZERO);
        }
    }

    /// Makes passages of what the queue has decided at `at`.
    fn settle(&mut self, at: Instant, path: &mut Path, settled: &mut VecDeque<(u64, Passage)>) {
        for (packet, verdict) in self.verdicts.drain(..) {
            let queued = at.since(packet.arrived);
            let passage = match verdict {
                Verdict::Full => {
                    path.counters_mut().dropped_queue += 1;
                    Passage::ended(Fate::Dropped, queued)
                }
                Verdict::Dropped => {
                    path.counters_mut().dropped_aqm += 1;
                    Passage::ended(Fate::Dropped, queued)
                }
                Verdict::Sent { marked } => {
                    let departure = self.transmitter.send(packet.entering.bytes);
                    if packet.lost_behind {
                        path.counters_mut().lost += 1;
                        Passage::ended(Fate::Lost, queued)
                    } else {
                        let above = packet.entering.ecn.is_some() && self.mark_above.is_some_and(|limit| queued > limit);
                        path.deliver(packet.drawn, departure, queued, marked || above)
                    }
                }
            };
            settled.push_back((packet.ticket, passage));
        }
    }
}
