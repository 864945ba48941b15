//! The link that all parties share, and a party's entry to it.
//!
//! Called by `carrier` for each packet a party sends forward, and by [`crate::Shared`] for what the queue was like.
//!
//! A packet crosses the link, then the party's own path: it enters that when its last bit has left the link. A party
//! that starts later lives in a time of its own, counted from its start; the entry translates.
//!
//! Invariant: packets enter in the order of time, because [`crate::Shared`] always lets the earliest event happen.

use super::queue_meter::QueueMeter;
use segstream_base::random::Seed;
use segstream_base::{Bytes, Duration, Instant};
use segstream_path::{Fate, Passage, Path, PathConfig, PathCounters, Probability, ReorderSpec, SpecError};
use std::cell::RefCell;
use std::rc::Rc;

/// A link that several parties share: a bottleneck with its queue.
#[derive(Clone, Debug)]
pub struct Link(Rc<RefCell<Inner>>);

#[derive(Debug)]
struct Inner {
    path: Path,
    meter: QueueMeter,
}

impl Link {
    /// An idle link. Of `config` bandwidth, trace, queue, queue management, marking, policing and loss are used; delay,
    /// jitter, reordering, duplication and corruption belong to the parties' own paths and are left out.
    ///
    /// # Errors
    /// Says which value of the configuration cannot be.
    pub fn new(config: &PathConfig, seed: Seed) -> Result<Self, SpecError> {
        let config = PathConfig {
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            reorder: ReorderSpec::None,
            duplicate: Probability::ZERO,
            corrupt: Probability::ZERO,
            ..config.clone()
        };
        Ok(Self(Rc::new(RefCell::new(Inner { path: Path::new(&config, seed, "shared")?, meter: QueueMeter::default() }))))
    }

    /// An entry for a party that starts at `start`, to be handed to [`crate::Simulation::join`].
    pub fn enter(&self, start: Instant) -> Entry {
        Entry { link: self.clone(), start, counts: EntryCounts::default() }
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

    fn send(&self, now: Instant, bytes: Bytes, markable: bool) -> Passage {
        let inner = &mut *self.0.borrow_mut();
        let passage = if markable { inner.path.send_markable(now, bytes) } else { inner.path.send(now, bytes) };
        if matches!(passage.fate, Fate::Delivered { .. }) {
            inner.meter.record(passage.queued);
        }
        passage
    }
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

    /// Sends a packet over the shared link and then over `own`.
    pub(crate) fn cross(&mut self, own: &mut Path, now: Instant, bytes: Bytes, markable: bool) -> Passage {
        let counts = &mut self.counts;
        counts.packets_sent += 1;
        counts.bytes_sent += bytes.get();
        let shared = self.link.send(self.start + now.since(Instant::ZERO), bytes, markable);
        let Fate::Delivered { at } = shared.fate else {
            counts.packets_dropped += 1;
            counts.bytes_dropped += bytes.get();
            return shared;
        };
        let at = self.local(at);
        let passage = if markable { own.send_markable(at, bytes) } else { own.send(at, bytes) };
        let counts = &mut self.counts;
        if !matches!(passage.fate, Fate::Delivered { .. }) {
            counts.packets_lost += 1;
            counts.bytes_lost += bytes.get();
            return passage;
        }
        let marked = shared.marked || passage.marked;
        counts.packets_marked += u64::from(marked);
        Passage { marked, queued: shared.queued + passage.queued, ..passage }
    }
}
