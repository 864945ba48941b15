//! The shared link, and the entry of each flow to it.
//!
//! Called by `channel` for each packet that a flow sends forward, and by [`crate::Shared`] for the queueing delay.
//!
//! A packet crosses the link and then the flow's own path, which it enters when its last bit has left the link. The clock of a flow
//! starts with the flow; its entry converts times.
//!
//! A queue that decides at dequeue returns the fate of a packet later; [`crate::Shared`] passes it to the flow of the packet.
//!
//! Invariant: packets enter in the order of time, because [`crate::Shared`] always runs the earliest event.

use super::queue_meter::QueueMeter;
use segstream_base::endpoint::Ecn;
use segstream_base::random::Seed;
use segstream_base::{Bytes, Duration, Instant};
use segstream_path::{
    DelaySteps, Fate, Jitter, Passage, PathConfig, PathCounters, PathPacket, Probability, ReorderSpec, ScheduledPath, SpecError,
};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A link that several flows share: a bottleneck with its queue.
#[derive(Clone, Debug)]
pub struct Link(Rc<RefCell<Inner>>);

#[derive(Debug)]
struct Inner {
    path: ScheduledPath,
    meter: QueueMeter,
    entries: u64,
    /// Undecided packets: from the identifier on the link to the entry, and the identifier there.
    waiting: BTreeMap<u64, (u64, u64)>,
    next_id: u64,
}

/// A packet that the link has decided.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decided {
    /// Its entry.
    pub(crate) entry: u64,
    /// Its identifier in its flow.
    pub(crate) id: u64,
    pub(crate) passage: Passage,
}

impl Link {
    /// An idle link. Of `config` bandwidth, traces, queue, queue management, marking, policing and loss are used; delay and
    /// its steps, jitter, aggregation, reordering, duplication and corruption belong to the flows' own paths and are left out.
    ///
    /// # Errors
    /// Says which value of the configuration is invalid.
    pub fn new(config: &PathConfig, seed: Seed) -> Result<Self, SpecError> {
        let config = PathConfig {
            delay: Duration::ZERO,
            delay_steps: DelaySteps::NONE,
            jitter: Jitter::None,
            aggregate: Duration::ZERO,
            reorder: ReorderSpec::None,
            duplicate: Probability::ZERO,
            corrupt: Probability::ZERO,
            ..config.clone()
        };
        let path = ScheduledPath::new(&config, seed, "shared")?;
        let inner = Inner { path, meter: QueueMeter::default(), entries: 0, waiting: BTreeMap::new(), next_id: 0 };
        Ok(Self(Rc::new(RefCell::new(inner))))
    }

    /// An entry for a flow that starts at `start`, to be handed to [`crate::Simulation::join`].
    pub fn enter(&self, start: Instant) -> Entry {
        let number = self.0.borrow().entries;
        self.0.borrow_mut().entries += 1;
        Entry { link: self.clone(), number, start, counts: EntryCounts::default() }
    }

    /// When the link dequeues the next packet; far future when the queue is empty or decides at once.
    pub(crate) fn due(&self) -> Instant {
        self.0.borrow().path.due()
    }

    /// Dequeues packets until `now`.
    pub(crate) fn advance(&self, now: Instant) {
        self.0.borrow_mut().path.advance(now);
    }

    /// The next decided packet.
    pub(crate) fn decided(&self) -> Option<Decided> {
        let inner = &mut *self.0.borrow_mut();
        let (id, passage) = inner.path.decided()?;
        let (entry, id) = inner.waiting.remove(&id)?;
        inner.measure(&passage);
        Some(Decided { entry, id, passage })
    }

    /// What has happened on the link so far.
    pub fn counters(&self) -> PathCounters {
        self.0.borrow().path.counters()
    }

    /// The queueing delay so far.
    pub fn queue(&self) -> QueueMeter {
        self.0.borrow().meter.clone()
    }

    /// Closes an interval of the series: the mean wait of the packets that entered since the last call, and the longest;
    /// `None` when none did.
    pub fn take_interval(&self) -> Option<(Duration, Duration)> {
        self.0.borrow_mut().meter.take_interval()
    }

    /// Restarts the statistics, except for the open interval of the series.
    pub fn restart_meter(&self) {
        self.0.borrow_mut().meter.restart();
    }

    /// Sends packet `id` of `entry`; `None` while it is queued.
    fn send(&self, entry: u64, id: u64, now: Instant, bytes: Bytes, ecn: Option<Ecn>) -> Option<Passage> {
        let inner = &mut *self.0.borrow_mut();
        if let Some(passage) = inner.path.offer(now, PathPacket { bytes, ecn, flow: entry }, inner.next_id) {
            inner.measure(&passage);
            return Some(passage);
        }
        inner.waiting.insert(inner.next_id, (entry, id));
        inner.next_id += 1;
        None
    }
}

impl Inner {
    fn measure(&mut self, passage: &Passage) {
        if matches!(passage.fate, Fate::Delivered { .. }) {
            self.meter.record(passage.queued);
        }
    }
}

/// The counters of an entry, in bytes of whole packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct EntryCounts {
    pub(crate) packets_sent: u64,
    pub(crate) bytes_sent: u64,
    pub(crate) packets_arrived: u64,
    pub(crate) bytes_arrived: u64,
    /// Dropped or lost on the shared link.
    pub(crate) packets_dropped: u64,
    pub(crate) bytes_dropped: u64,
    /// Dropped or lost on the flow's own path.
    pub(crate) packets_lost: u64,
    pub(crate) bytes_lost: u64,
    pub(crate) packets_marked: u64,
}

/// The entry of a flow to the shared link.
#[derive(Clone, Debug)]
pub struct Entry {
    link: Link,
    number: u64,
    start: Instant,
    pub(crate) counts: EntryCounts,
}

impl Entry {
    /// When the flow starts.
    pub const fn start(&self) -> Instant {
        self.start
    }

    /// Converts the flow's time to that of the run.
    pub(crate) fn global(&self, local: Instant) -> Instant {
        self.start + local.since(Instant::ZERO)
    }

    /// Converts the time of the run to the flow's.
    pub(crate) fn local(&self, global: Instant) -> Instant {
        Instant::ZERO + global.since(self.start)
    }

    /// When the shared link will have sent everything it has accepted, in the flow's time.
    pub(crate) fn free_at(&self) -> Instant {
        self.local(self.link.0.borrow().path.free_at())
    }

    /// Packets that the shared link dropped.
    pub(crate) const fn dropped(&self) -> u64 {
        self.counts.packets_dropped
    }

    /// A packet of the flow has arrived.
    pub(crate) const fn count_arrival(&mut self, bytes: usize) {
        self.counts.packets_arrived += 1;
        self.counts.bytes_arrived += bytes as u64;
    }

    /// Which entry it is, counted from 0.
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    /// Sends packet `id` over the shared link; `None` while it is queued there.
    pub(crate) fn cross(&mut self, id: u64, now: Instant, bytes: Bytes, ecn: Option<Ecn>) -> Option<Passage> {
        let counts = &mut self.counts;
        counts.packets_sent += 1;
        counts.bytes_sent += bytes.get();
        self.link.send(self.number, id, self.global(now), bytes, ecn)
    }

    /// When a packet that passed the shared link enters the flow's own path; `None` if it was dropped on the link.
    pub(crate) fn behind(&mut self, shared: &Passage, bytes: Bytes) -> Option<Instant> {
        let Fate::Delivered { at } = shared.fate else {
            self.counts.packets_dropped += 1;
            self.counts.bytes_dropped += bytes.get();
            return None;
        };
        Some(self.local(at))
    }

    /// The fate of a packet with the passages `shared` on the shared link and `own` on the flow's own path.
    pub(crate) fn through(&mut self, shared: &Passage, own: Passage, bytes: Bytes) -> Passage {
        let counts = &mut self.counts;
        if !matches!(own.fate, Fate::Delivered { .. }) {
            counts.packets_lost += 1;
            counts.bytes_lost += bytes.get();
            return own;
        }
        let marked = shared.marked || own.marked;
        counts.packets_marked += u64::from(marked);
        Passage { marked, queued: shared.queued + own.queued, ..own }
    }
}
