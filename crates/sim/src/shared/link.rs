//! The link that all parties share, and a party's entry to it.
//!
//! Called by `carrier` for each packet a party sends forward, and by [`crate::Shared`] for what the queue was like.
//!
//! A packet crosses the link, then the party's own path: it enters that when its last bit has left the link. A party
//! that starts later lives in a time of its own, counted from its start; the entry translates.
//!
//! A link whose queue serves flows in turn tells later what becomes of a packet; [`crate::Shared`] hands that to its party. Each
//! party is a flow.
//!
//! Invariant: packets enter in the order of time, because [`crate::Shared`] always lets the earliest event happen.

use super::queue_meter::QueueMeter;
use segstream_base::endpoint::Ecn;
use segstream_base::random::Seed;
use segstream_base::{Bytes, Duration, Instant};
use segstream_path::{
    DelaySteps, Entering, Fate, Jitter, Passage, PathConfig, PathCounters, Probability, ReorderSpec, ScheduledPath, SpecError,
};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A link that several parties share: a bottleneck with its queue.
#[derive(Clone, Debug)]
pub struct Link(Rc<RefCell<Inner>>);

#[derive(Debug)]
struct Inner {
    path: ScheduledPath,
    meter: QueueMeter,
    entries: u64,
    /// Packets that the queue has not decided: by their ticket on the link, the entry and the ticket there.
    waiting: BTreeMap<u64, (u64, u64)>,
    tickets: u64,
}

/// What the link has decided of a packet that waited.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decided {
    /// Whose packet.
    pub(crate) entry: u64,
    /// What its party calls it.
    pub(crate) ticket: u64,
    pub(crate) passage: Passage,
}

impl Link {
    /// An idle link. Of `config` bandwidth, traces, queue, queue management, marking, policing and loss are used; delay and
    /// its steps, jitter, aggregation, reordering, duplication and corruption belong to the parties' own paths and are left out.
    ///
    /// # Errors
    /// Says which value of the configuration cannot be.
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
        let inner = Inner { path, meter: QueueMeter::default(), entries: 0, waiting: BTreeMap::new(), tickets: 0 };
        Ok(Self(Rc::new(RefCell::new(inner))))
    }

    /// An entry for a party that starts at `start`, to be handed to [`crate::Simulation::join`].
    pub fn enter(&self, start: Instant) -> Entry {
        let number = self.0.borrow().entries;
        self.0.borrow_mut().entries += 1;
        Entry { link: self.clone(), number, start, counts: EntryCounts::default() }
    }

    /// When the link decides of the next packet that waits; far future when none does, or when it decides at once.
    pub(crate) fn due(&self) -> Instant {
        self.0.borrow().path.due()
    }

    /// Lets the link decide what it decides until `now`.
    pub(crate) fn advance(&self, now: Instant) {
        self.0.borrow_mut().path.advance(now);
    }

    /// The next packet that was decided.
    pub(crate) fn decided(&self) -> Option<Decided> {
        let inner = &mut *self.0.borrow_mut();
        let (ticket, passage) = inner.path.settled()?;
        let (entry, ticket) = inner.waiting.remove(&ticket)?;
        inner.measure(&passage);
        Some(Decided { entry, ticket, passage })
    }

    /// What has happened on the link so far.
    pub fn counters(&self) -> PathCounters {
        self.0.borrow().path.counters()
    }

    /// What waiting was like so far.
    pub fn queue(&self) -> QueueMeter {
        self.0.borrow().meter.clone()
    }

    /// Closes an interval of the series: the mean wait of the packets that entered since the last call, and the longest;
    /// `None` when none did.
    pub fn take_interval(&self) -> Option<(Duration, Duration)> {
        self.0.borrow_mut().meter.take_interval()
    }

    /// Forgets what waiting was like before now, but for the open interval of the series.
    pub fn restart_meter(&self) {
        self.0.borrow_mut().meter.restart();
    }

    /// Sends a packet of `entry` that is called `ticket` there; `None` while it waits.
    fn send(&self, entry: u64, ticket: u64, now: Instant, bytes: Bytes, markable: bool) -> Option<Passage> {
        let inner = &mut *self.0.borrow_mut();
        if let Some(passage) = inner.path.offer(now, entering(bytes, markable, entry), inner.tickets) {
            inner.measure(&passage);
            return Some(passage);
        }
        inner.waiting.insert(inner.tickets, (entry, ticket));
        inner.tickets += 1;
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

/// A packet of a flow. Limit: a packet that can be marked is ECT(0).
pub(crate) const fn entering(bytes: Bytes, markable: bool, flow: u64) -> Entering {
    Entering { bytes, ecn: if markable { Some(Ecn::Ect0) } else { None }, flow }
}

/// What a party has put through its entry, in bytes of whole packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct EntryCounts {
    pub(crate) packets_sent: u64,
    pub(crate) bytes_sent: u64,
    pub(crate) packets_arrived: u64,
    pub(crate) bytes_arrived: u64,
    /// Dropped or lost on the shared link.
    pub(crate) packets_dropped: u64,
    pub(crate) bytes_dropped: u64,
    /// Dropped or lost on the party's own path.
    pub(crate) packets_lost: u64,
    pub(crate) bytes_lost: u64,
    pub(crate) packets_marked: u64,
}

/// A party's way onto the shared link.
#[derive(Clone, Debug)]
pub struct Entry {
    link: Link,
    number: u64,
    start: Instant,
    pub(crate) counts: EntryCounts,
}

impl Entry {
    /// When the party starts.
    pub const fn start(&self) -> Instant {
        self.start
    }

    /// The instant of all that is `local` in the party's own time.
    pub(crate) fn global(&self, local: Instant) -> Instant {
        self.start + local.since(Instant::ZERO)
    }

    /// The party's own time at `global`.
    pub(crate) fn local(&self, global: Instant) -> Instant {
        Instant::ZERO + global.since(self.start)
    }

    /// When the shared link will have sent everything it has accepted, in the party's time.
    pub(crate) fn free_at(&self) -> Instant {
        self.local(self.link.0.borrow().path.free_at())
    }

    /// Packets that the shared link dropped.
    pub(crate) const fn dropped(&self) -> u64 {
        self.counts.packets_dropped
    }

    /// A packet of the party has arrived.
    pub(crate) const fn count_arrival(&mut self, bytes: usize) {
        self.counts.packets_arrived += 1;
        self.counts.bytes_arrived += bytes as u64;
    }

    /// Which entry it is, counted from 0.
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    /// Sends a packet over the shared link, which the party calls `ticket`; `None` while it waits there.
    pub(crate) fn cross(&mut self, ticket: u64, now: Instant, bytes: Bytes, markable: bool) -> Option<Passage> {
        let counts = &mut self.counts;
        counts.packets_sent += 1;
        counts.bytes_sent += bytes.get();
        self.link.send(self.number, ticket, self.global(now), bytes, markable)
    }

    /// When a packet enters the party's own path of which the shared link says `shared`; `None` if it was dropped there.
    pub(crate) fn behind(&mut self, shared: &Passage, bytes: Bytes) -> Option<Instant> {
        let Fate::Delivered { at } = shared.fate else {
            self.counts.packets_dropped += 1;
            self.counts.bytes_dropped += bytes.get();
            return None;
        };
        Some(self.local(at))
    }

    /// What becomes of a packet of which the shared link says `shared` and the party's own path `own`.
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
