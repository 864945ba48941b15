//! One direction of a path, and what it does to each packet.
//!
//! Called by the simulator for every packet and by the link emulator for every datagram.
//!
//! A packet meets, in this order: loss when it is placed before the bottleneck, the queue, the bottleneck,
//! loss when it is placed after, delay and jitter, reordering, duplication, corruption.
//!
//! Invariant: every packet sent is accounted for once:
//! `sent = (delivered - duplicated) + lost + dropped_queue`.

use crate::bottleneck::Bottleneck;
use crate::config::{LossPlace, PathConfig};
use crate::corrupt::Corrupt;
use crate::delay::Delay;
use crate::duplicate::Duplicate;
use crate::loss::Loss;
use crate::reorder::Reorder;
use crate::spec_error::SpecError;
use segstream_base::random::Seed;
use segstream_base::{Bytes, Instant};

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The loss process took it.
    Lost,
    /// The queue was full.
    Dropped,
    /// It arrives.
    Delivered {
        /// When its last bit arrives.
        at: Instant,
    },
}

/// A packet's way through the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// What became of it.
    pub fate: Fate,
    /// When a second copy arrives; never before the first.
    pub duplicate: Option<Instant>,
    /// The bit that arrives flipped, in the packet and in its copy: counted from 0 at the first byte's most
    /// significant bit, below 8 times the packet's bytes.
    pub corrupt_bit: Option<u64>,
}

impl Passage {
    const fn ended(fate: Fate) -> Self {
        Self { fate, duplicate: None, corrupt_bit: None }
    }
}

/// How many packets met which fate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PathCounters {
    /// Packets that entered.
    pub sent: u64,
    /// Packets that arrive, copies counted.
    pub delivered: u64,
    /// Packets the loss process took.
    pub lost: u64,
    /// Packets the full queue dropped.
    pub dropped_queue: u64,
    /// Copies that arrive besides their originals.
    pub duplicated: u64,
    /// Packets that arrive with a flipped bit, copies not counted.
    pub corrupted: u64,
    /// Packets that were held back to be overtaken.
    pub reordered: u64,
}

/// One direction of a path.
#[derive(Clone, Debug)]
pub struct Path {
    now: Instant,
    loss: Loss,
    loss_at: LossPlace,
    bottleneck: Option<Bottleneck>,
    delay: Delay,
    reorder: Option<Reorder>,
    duplicate: Option<Duplicate>,
    corrupt: Option<Corrupt>,
    counters: PathCounters,
}

impl Path {
    /// The path described by `config`. `direction` names its random streams: two directions of one seed
    /// are independent of each other.
    ///
    /// # Errors
    /// Says which value of the configuration cannot be.
    pub fn new(config: &PathConfig, seed: Seed, direction: &str) -> Result<Self, SpecError> {
        Ok(Self {
            now: Instant::ZERO,
            loss: Loss::new(&config.loss, seed, direction)?,
            loss_at: config.loss_at,
            bottleneck: config.bandwidth.map(|bandwidth| Bottleneck::new(bandwidth, config.queue)).transpose()?,
            delay: Delay::new(config.delay, config.jitter, seed, direction),
            reorder: Reorder::new(config.reorder, seed, direction)?,
            duplicate: (!config.duplicate.is_zero()).then(|| Duplicate::new(config.duplicate, seed, direction)),
            corrupt: (!config.corrupt.is_zero()).then(|| Corrupt::new(config.corrupt, seed, direction)),
            counters: PathCounters::default(),
        })
    }

    /// Sends a packet of `bytes` bytes at `now` and tells at once what becomes of it.
    ///
    /// Time does not go backward: an instant before that of the last call counts as the last one.
    pub fn send(&mut self, now: Instant, bytes: Bytes) -> Passage {
        self.now = self.now.max(now);
        let number = self.counters.sent;
        self.counters.sent += 1;
        // Invariant: every impairment draws for every packet, whatever becomes of it.
        let delay = self.delay.draw();
        let held_back = self.reorder.as_mut().is_some_and(Reorder::picks);
        let twice = self.duplicate.as_mut().is_some_and(Duplicate::picks);
        let corrupt_bit = self.corrupt.as_mut().and_then(|corrupt| corrupt.picks(bytes));

        let departure = match self.cross(number, bytes) {
            Ok(departure) => departure,
            Err(fate) => return Passage::ended(fate),
        };
        let in_order = self.delay.arrive_in_order(departure, delay);
        let late = self.reorder.as_mut().and_then(|reorder| reorder.hold(held_back, departure, in_order, &mut self.delay));
        let at = late.unwrap_or(in_order);
        self.counters.delivered += 1;
        self.counters.reordered += u64::from(late.is_some());
        self.counters.corrupted += u64::from(corrupt_bit.is_some());
        let duplicate = twice.then(|| self.copy_behind(departure, at, late.is_some()));
        Passage { fate: Fate::Delivered { at }, duplicate, corrupt_bit }
    }

    /// What has happened so far.
    pub const fn counters(&self) -> PathCounters {
        self.counters
    }

    /// The bytes that wait for the bottleneck at `now`, the packet being transmitted not counted.
    pub fn waiting_bytes(&mut self, now: Instant) -> Bytes {
        let now = self.now.max(now);
        self.bottleneck.as_mut().map_or(Bytes::ZERO, |bottleneck| bottleneck.waiting_bytes(now))
    }

    /// When the bottleneck will have sent everything it has accepted; [`Instant::ZERO`] without one.
    pub fn free_at(&self) -> Instant {
        self.bottleneck.as_ref().map_or(Instant::ZERO, Bottleneck::free_at)
    }

    /// Through loss, queue and bottleneck: when the packet leaves, or what ended it.
    #[inline]
    fn cross(&mut self, number: u64, bytes: Bytes) -> Result<Instant, Fate> {
        if self.loss_at == LossPlace::Before && self.loss.takes(number, self.now) {
            self.counters.lost += 1;
            return Err(Fate::Lost);
        }
        let accepted = match &mut self.bottleneck {
            None => Some(self.now),
            Some(bottleneck) => bottleneck.accept(self.now, bytes),
        };
        // Why: the loss process counts a packet that the queue dropped as well, so that the fates of the
        // packets after it do not depend on the queue.
        let passes = accepted.unwrap_or_else(|| self.free_at());
        let lost = self.loss_at == LossPlace::After && self.loss.takes(number, passes);
        let Some(departure) = accepted else {
            self.counters.dropped_queue += 1;
            return Err(Fate::Dropped);
        };
        if lost {
            self.counters.lost += 1;
            return Err(Fate::Lost);
        }
        Ok(departure)
    }

    /// When the copy of a packet that arrives at `at` arrives. The copy of a late packet comes with it.
    fn copy_behind(&mut self, departure: Instant, at: Instant, late: bool) -> Instant {
        self.counters.delivered += 1;
        self.counters.duplicated += 1;
        let delay = self.delay.draw_of_copy();
        if late { at } else { self.delay.arrive_in_order(departure, delay) }
    }
}
