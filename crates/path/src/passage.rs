//! One direction of a path, and the fate of each packet on it.
//!
//! Called by the simulator for every packet and by the link emulator for every datagram.
//!
//! A packet meets, in this order: loss when it is placed before the bottleneck, the policer, the queue and its
//! management, the bottleneck, loss when it is placed after, delay and jitter, reordering, duplication, corruption.
//!
//! Invariant: every packet sent is accounted for once, as soon as it is decided:
//! `sent = (delivered - duplicated) + lost + dropped_queue + dropped_aqm + dropped_policer`. A mark is not a fate:
//! `marked` counts packets among those delivered.

use crate::bottleneck::{Bottleneck, Crossing};
use crate::config::{LossPlace, PathConfig};
use crate::corrupt::Corrupt;
use crate::delay::Delay;
use crate::duplicate::Duplicate;
use crate::loss::Loss;
use crate::policer::TokenBucket;
use crate::reorder::Reorder;
use crate::spec_error::SpecError;
use segstream_base::random::Seed;
use segstream_base::{Bytes, Duration, Instant};

/// The fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It was lost by the loss process.
    Lost,
    /// The queue was full, or its management or the policer dropped it; [`PathCounters`] tells which.
    Dropped,
    /// It arrives.
    Delivered {
        /// When its last bit arrives.
        at: Instant,
    },
}

/// What a path does to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// Its fate.
    pub fate: Fate,
    /// When a second copy arrives; never before the first.
    pub duplicate: Option<Instant>,
    /// The bit that arrives flipped, in the packet and in its copy: counted from 0 at the first byte's most
    /// significant bit, below 8 times the packet's bytes.
    pub corrupt_bit: Option<u64>,
    /// Whether it arrives marked as having met congestion (RFC 3168), and its copy too.
    pub marked: bool,
    /// How long it waited in the queue: from its arrival there to the start of its transmission, or until an active
    /// queue dropped it. Zero for a packet that did not enter the queue.
    pub queued: Duration,
}

impl Passage {
    /// How often it arrives.
    pub const fn copies(&self) -> u64 {
        match self.fate {
            Fate::Delivered { .. } => 1 + self.duplicate.is_some() as u64,
            Fate::Lost | Fate::Dropped => 0,
        }
    }

    pub(crate) const fn ended(fate: Fate, queued: Duration) -> Self {
        Self { fate, duplicate: None, corrupt_bit: None, marked: false, queued }
    }
}

/// What was drawn for a packet when it entered.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Drawn {
    jitter: Duration,
    held_back: bool,
    twice: bool,
    corrupt_bit: Option<u64>,
}

/// How many packets met which fate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PathCounters {
    /// Packets that entered.
    pub sent: u64,
    /// Packets that arrive, copies counted.
    pub delivered: u64,
    /// Packets that the loss process lost.
    pub lost: u64,
    /// Packets the full queue dropped.
    pub dropped_queue: u64,
    /// Packets the active queue management dropped.
    pub dropped_aqm: u64,
    /// Packets the policer dropped.
    pub dropped_policer: u64,
    /// Packets that arrive marked, copies not counted.
    pub marked: u64,
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
    ecn_unaware: bool,
    policer: Option<Box<TokenBucket>>,
    bottleneck: Option<Bottleneck>,
    delay: Delay,
    // Why boxed: most paths have none of them, and each packet asks.
    impairments: Option<Box<Impairments>>,
    counters: PathCounters,
}

/// What happens to single packets beyond loss and delay.
#[derive(Clone, Debug)]
struct Impairments {
    reorder: Option<Reorder>,
    duplicate: Option<Duplicate>,
    corrupt: Option<Corrupt>,
}

impl Impairments {
    /// Those of `config`; `None` if it has none.
    fn new(config: &PathConfig, seed: Seed, direction: &str) -> Result<Option<Box<Self>>, SpecError> {
        let reorder = Reorder::new(config.reorder, seed, direction)?;
        let duplicate = (!config.duplicate.is_zero()).then(|| Duplicate::new(config.duplicate, seed, direction));
        let corrupt = (!config.corrupt.is_zero()).then(|| Corrupt::new(config.corrupt, seed, direction));
        let any = reorder.is_some() || duplicate.is_some() || corrupt.is_some();
        Ok(any.then(|| Box::new(Self { reorder, duplicate, corrupt })))
    }

    /// What they draw for a packet of `bytes` bytes with this jitter.
    fn draw(&mut self, jitter: Duration, bytes: Bytes) -> Drawn {
        Drawn {
            jitter,
            held_back: self.reorder.as_mut().is_some_and(Reorder::picks),
            twice: self.duplicate.as_mut().is_some_and(Duplicate::picks),
            corrupt_bit: self.corrupt.as_mut().and_then(|corrupt| corrupt.picks(bytes)),
        }
    }
}

impl Path {
    /// The path described by `config`. `direction` names its random streams: two directions of one seed
    /// are independent of each other.
    ///
    /// # Errors
    /// Says which value of the configuration is invalid.
    pub fn new(config: &PathConfig, seed: Seed, direction: &str) -> Result<Self, SpecError> {
        Ok(Self {
            now: Instant::ZERO,
            loss: Loss::new(&config.loss, seed, direction)?,
            loss_at: config.loss_at,
            ecn_unaware: config.ecn_unaware,
            policer: config.policer.map(TokenBucket::new).transpose()?.map(Box::new),
            bottleneck: Bottleneck::new(config, seed, direction)?,
            delay: Delay::new(config, seed, direction)?,
            impairments: Impairments::new(config, seed, direction)?,
            counters: PathCounters::default(),
        })
    }

    /// Sends a packet of `bytes` bytes at `now` and returns its fate.
    ///
    /// Time does not go backward: an instant before that of the last call counts as the last one.
    #[inline]
    pub fn send(&mut self, now: Instant, bytes: Bytes) -> Passage {
        self.pass(now, bytes, false)
    }

    /// As [`Path::send`] for a packet that may be marked instead of dropped (ECN-capable, RFC 3168).
    #[inline]
    pub fn send_markable(&mut self, now: Instant, bytes: Bytes) -> Passage {
        self.pass(now, bytes, true)
    }

    /// Either of them.
    #[inline]
    pub(crate) fn pass(&mut self, now: Instant, bytes: Bytes, markable: bool) -> Passage {
        let (number, drawn) = self.enter(now, bytes);
        match self.cross(number, bytes, markable && !self.ecn_unaware) {
            Ok((departure, queued, marked)) => self.deliver(drawn, departure, queued, marked),
            Err(ended) => ended,
        }
    }

    /// A packet enters at `now`: its number, and what is drawn for it.
    #[inline]
    pub(crate) fn enter(&mut self, now: Instant, bytes: Bytes) -> (u64, Drawn) {
        self.now = self.now.max(now);
        let number = self.counters.sent;
        self.counters.sent += 1;
        // Invariant: every impairment draws for every packet, regardless of what happens to it.
        let jitter = self.delay.draw();
        let drawn = match &mut self.impairments {
            None => Drawn { jitter, ..Drawn::default() },
            Some(impairments) => impairments.draw(jitter, bytes),
        };
        (number, drawn)
    }

    /// The fate of a packet for which `drawn` was drawn and that leaves the bottleneck at `departure`.
    #[inline]
    pub(crate) fn deliver(&mut self, drawn: Drawn, departure: Instant, queued: Duration, marked: bool) -> Passage {
        let in_order = self.delay.arrive_in_order(departure, drawn.jitter);
        self.counters.delivered += 1;
        self.counters.marked += u64::from(marked);
        let (late, duplicate) = if self.impairments.is_none() { (None, None) } else { self.impair(&drawn, departure, in_order) };
        let fate = Fate::Delivered { at: late.unwrap_or(in_order) };
        Passage { fate, duplicate, corrupt_bit: drawn.corrupt_bit, marked, queued }
    }

    /// What the impairments do to a packet that would arrive at `in_order`: when it arrives if it is held back, and when its copy does.
    fn impair(&mut self, drawn: &Drawn, departure: Instant, in_order: Instant) -> (Option<Instant>, Option<Instant>) {
        let Drawn { held_back, twice, corrupt_bit, .. } = *drawn;
        let reorder = self.impairments.as_mut().and_then(|impairments| impairments.reorder.as_mut());
        let late = reorder.and_then(|reorder| reorder.hold(held_back, departure, in_order, &mut self.delay));
        let at = late.unwrap_or(in_order);
        self.counters.reordered += u64::from(late.is_some());
        self.counters.corrupted += u64::from(corrupt_bit.is_some());
        (late, twice.then(|| self.copy_behind(departure, at, late.is_some())))
    }

    /// What has happened so far.
    pub const fn counters(&self) -> PathCounters {
        self.counters
    }

    /// The same, for the scheduler of this path.
    pub(crate) const fn counters_mut(&mut self) -> &mut PathCounters {
        &mut self.counters
    }

    /// The time of the last call.
    pub(crate) const fn now(&self) -> Instant {
        self.now
    }

    /// The delay, without jitter, of what leaves the bottleneck at `at`.
    pub fn delay_at(&self, at: Instant) -> Duration {
        self.delay.at(at)
    }

    /// Whether the loss process takes the packet `number`, which it meets now.
    #[inline]
    pub(crate) fn loses(&mut self, number: u64) -> bool {
        self.loss.takes(number, self.now)
    }

    /// Where packets are lost on the path.
    pub(crate) const fn loss_at(&self) -> LossPlace {
        self.loss_at
    }

    /// Whether the queue drops what it would mark.
    pub(crate) const fn is_ecn_unaware(&self) -> bool {
        self.ecn_unaware
    }

    /// Whether the policer lets a packet pass now; counts one that it drops.
    #[inline]
    pub(crate) fn polices(&mut self, bytes: Bytes) -> bool {
        let passes = self.policer.as_mut().is_none_or(|policer| policer.passes(self.now, bytes));
        self.counters.dropped_policer += u64::from(!passes);
        passes
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

    /// Through loss, policer, queue and bottleneck: when the packet leaves, how long it waited and whether it is
    /// marked; or what ended it.
    #[inline]
    fn cross(&mut self, number: u64, bytes: Bytes, markable: bool) -> Result<(Instant, Duration, bool), Passage> {
        if self.loss_at == LossPlace::Before && self.loses(number) {
            self.counters.lost += 1;
            return Err(Passage::ended(Fate::Lost, Duration::ZERO));
        }
        let crossing = self.police_and_queue(bytes, markable);
        // Why: the loss process counts a packet that was dropped as well, so that the fates of the packets after
        // it do not depend on the queue.
        let passes = if let Crossing::Sent { departure, .. } = crossing { departure } else { self.free_at().max(self.now) };
        let lost = self.loss_at == LossPlace::After && self.loss.takes(number, passes);
        match crossing {
            Crossing::Sent { queued, .. } if lost => {
                self.counters.lost += 1;
                Err(Passage::ended(Fate::Lost, queued))
            }
            Crossing::Sent { departure, queued, marked } => Ok((departure, queued, marked)),
            Crossing::Dropped { queued } => Err(Passage::ended(Fate::Dropped, queued)),
            Crossing::Full => Err(Passage::ended(Fate::Dropped, Duration::ZERO)),
        }
    }

    /// Through policer, queue and bottleneck; counts what they drop.
    #[inline]
    fn police_and_queue(&mut self, bytes: Bytes, markable: bool) -> Crossing {
        if !self.polices(bytes) {
            return Crossing::Full;
        }
        let Some(bottleneck) = &mut self.bottleneck else {
            return Crossing::Sent { departure: self.now, queued: Duration::ZERO, marked: false };
        };
        let crossing = bottleneck.accept(self.now, bytes, markable);
        match crossing {
            Crossing::Sent { .. } => {}
            Crossing::Full => self.counters.dropped_queue += 1,
            Crossing::Dropped { .. } => self.counters.dropped_aqm += 1,
        }
        crossing
    }

    /// When the copy of a packet that arrives at `at` arrives. The copy of a late packet comes with it.
    fn copy_behind(&mut self, departure: Instant, at: Instant, late: bool) -> Instant {
        self.counters.delivered += 1;
        self.counters.duplicated += 1;
        let delay = self.delay.draw_of_copy();
        if late { at } else { self.delay.arrive_in_order(departure, delay) }
    }
}
