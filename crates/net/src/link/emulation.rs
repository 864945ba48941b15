//! What every kind of link emulates with: two paths, what is on its way on them, and when it leaves.
//!
//! Called by the relay between UDP sockets and by the one between network namespaces, which read and write. An `N` is what
//! a relay must know of a packet besides its bytes to send it.
//!
//! A packet is kept from when it enters. Most paths tell at once what becomes of it; one whose queue serves flows in turn tells
//! when the link takes it, and is asked by then, once all that has arrived before has entered.
//!
//! Invariant: everything a path delivers is kept until it is due, or counted as dropped.

use super::awake::Awake;
use super::config::LinkError;
use super::departures::{Departure, Departures};
use super::lateness::LatenessRecorder;
use super::pace::Pace;
use super::priority::Priority;
use super::queueing::QueueingRecorder;
use super::report::{LinkReport, RelayCounters};
use super::store::{Slot, Store};
use crate::clock::Clock;
use rustix::event::{PollFd, Timespec, poll};
use rustix::io::Errno;
use segstream_base::random::Seed;
use segstream_base::{Duration, Instant};
use segstream_path::{Entering, Fate, Passage, PathConfig, ScheduledPath};

/// What a relay knows of a packet besides its bytes, and how it changes them.
pub(super) trait Notes: Copy {
    /// Marks the packet as having met congestion.
    fn mark(&mut self, packet: &mut [u8]);

    /// Which bit of `packet` is the bit `bit` of the whole packet on the path.
    fn bit(&self, packet: &[u8], bit: u64) -> usize;
}

/// How long a decision of the queue may be late at most, so that several are taken together. Why so long: a packet that was
/// decided has its transmission and its delay still before it.
const DECIDED_TOGETHER: Duration = Duration::from_millis(1);

/// Two paths and their departures.
#[derive(Debug)]
pub(super) struct Emulation<N> {
    pub(super) clock: Clock,
    pub(super) pace: Pace,
    pub(super) forward: Lane<N>,
    pub(super) back: Lane<N>,
    pub(super) store: Store,
    pub(super) lateness: LatenessRecorder,
    awake: Awake,
    lateness_limit: Duration,
}

/// One direction.
#[derive(Debug)]
pub(super) struct Lane<N> {
    pub(super) departures: Departures<N>,
    pub(super) relayed: RelayCounters,
    path: ScheduledPath,
    /// What the path has not decided yet, by slot.
    entered: Vec<Option<(Slot, N)>>,
    /// How late a decision may be.
    slack: Duration,
    queueing: QueueingRecorder,
}

/// What the two directions are like, and how much it may cost to be on time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Emulated<'a> {
    pub(super) forward: &'a PathConfig,
    pub(super) back: &'a PathConfig,
    pub(super) seed: Seed,
    pub(super) keep_awake: bool,
    pub(super) lateness_limit: Duration,
}

impl<N> Emulation<N> {
    /// The paths of `emulated`, with a clock that starts now.
    ///
    /// # Errors
    /// A path that cannot be.
    pub(super) fn new(emulated: &Emulated<'_>, pace: Pace) -> Result<Self, LinkError> {
        Ok(Self {
            clock: Clock::start(),
            pace,
            forward: Lane::new(emulated.forward, emulated.seed, "forward")?,
            back: Lane::new(emulated.back, emulated.seed, "back")?,
            store: Store::default(),
            lateness: LatenessRecorder::new(),
            awake: Awake::new(emulated.keep_awake),
            lateness_limit: emulated.lateness_limit,
        })
    }

    /// When the next departure is due.
    pub(super) fn due(&self) -> Instant {
        self.forward.due().min(self.back.due())
    }

    /// When the next departure is due, or the queues are to be asked.
    pub(super) fn next(&self) -> Instant {
        self.due().min(self.decides_at())
    }

    /// When the queues are to be asked what they have decided; see [`Emulation::decide_until`].
    pub(super) fn decides_at(&self) -> Instant {
        self.forward.decides_at().min(self.back.decides_at())
    }

    /// Whether a departure is due by now.
    pub(super) fn is_due(&self) -> bool {
        self.due() <= self.clock.now()
    }

    /// So many packets were read just now.
    pub(super) fn note_read(&mut self, packets: usize) {
        let now = self.clock.now();
        self.pace.note_read(now, packets > 0);
        self.awake.note(now, self.store.len() > 0);
    }

    /// What the link did since `started`. The sockets' part of it is empty; [`LinkReport::judge`] is still to come, with the
    /// limit beside it.
    pub(super) fn report(mut self, started: Instant, priority: Priority) -> (LinkReport, Duration) {
        for lane in [&mut self.forward, &mut self.back] {
            lane.relayed.unsent = lane.departures.len() as u64;
        }
        let report = LinkReport {
            ran: self.clock.now().since(started),
            lateness: self.lateness.summary(),
            forward: self.forward.path.counters(),
            back: self.back.path.counters(),
            forward_relayed: self.forward.relayed,
            back_relayed: self.back.relayed,
            forward_queueing: self.forward.queueing.summary(),
            back_queueing: self.back.queueing.summary(),
            unroutable: 0,
            clients: 0,
            clients_evicted: 0,
            receive_buffer_drops: None,
            priority,
            kept_awake: self.awake.granted(),
            warnings: Vec::new(),
            kept_up: false,
        };
        (report, self.lateness_limit)
    }
}

impl<N: Notes> Emulation<N> {
    /// Lets the queues decide what they decide until `now`; all that arrived before has entered.
    pub(super) fn decide_until(&mut self, now: Instant) {
        for lane in [&mut self.forward, &mut self.back] {
            lane.path.advance(now);
            lane.settle(&mut self.store);
        }
    }
}

impl<N: Notes> Lane<N> {
    /// Sends a packet into the path at `now` and keeps it for as long as it is under way.
    pub(super) fn enter(&mut self, store: &mut Store, now: Instant, entering: Entering, packet: &[u8], notes: N) {
        let slot = store.keep(packet);
        let place = slot.map_or(usize::MAX, Slot::number);
        if let Some(slot) = slot {
            if self.entered.len() <= place {
                self.entered.resize(place + 1, None);
            }
            if let Some(entered) = self.entered.get_mut(place) {
                *entered = Some((slot, notes));
            }
        }
        self.path.enter(now, entering, place as u64);
        self.settle(store);
    }

    /// Puts what the path has decided among the departures, or forgets it.
    fn settle(&mut self, store: &mut Store) {
        while let Some((ticket, passage)) = self.path.settled() {
            if matches!(passage.fate, Fate::Delivered { .. }) {
                self.queueing.record(passage.queued);
            }
            let place = usize::try_from(ticket).unwrap_or(usize::MAX);
            match self.entered.get_mut(place).and_then(Option::take) {
                Some((slot, notes)) => self.depart(store, &passage, slot, notes),
                None => self.relayed.dropped_limit += passage.copies(),
            }
        }
    }

    /// Keeps the packet in `slot` as often as `passage` delivers it.
    fn depart(&mut self, store: &mut Store, passage: &Passage, slot: Slot, mut notes: N) {
        let Fate::Delivered { at } = passage.fate else {
            store.release(slot);
            return;
        };
        if passage.marked {
            notes.mark(store.datagram_mut(slot));
        }
        if let Some(bit) = passage.corrupt_bit {
            let bit = notes.bit(store.datagram(slot), bit);
            store.flip(slot, bit);
        }
        self.departures.push(Departure { due: at, slot, notes });
        if let Some(due) = passage.duplicate {
            match store.copy(slot) {
                Some(slot) => self.departures.push(Departure { due, slot, notes }),
                None => self.relayed.dropped_limit += 1,
            }
        }
    }
}

impl<N> Lane<N> {
    fn new(config: &PathConfig, seed: Seed, direction: &'static str) -> Result<Self, LinkError> {
        let path = ScheduledPath::new(config, seed, direction).map_err(|source| LinkError::Path { direction, source })?;
        Ok(Self {
            departures: Departures::new(),
            relayed: RelayCounters::default(),
            path,
            entered: Vec::new(),
            slack: (config.delay_least() / 2).min(DECIDED_TOGETHER),
            queueing: QueueingRecorder::new(),
        })
    }

    /// When the next departure is due.
    pub(super) fn due(&self) -> Instant {
        self.departures.first().map_or(Instant::FAR_FUTURE, |departure| departure.due)
    }

    /// When the path is to be asked what it has decided.
    fn decides_at(&self) -> Instant {
        self.path.due() + self.slack
    }
}

/// Sleeps until one of `polled` is ready or `asleep` is over. False when it was interrupted and nothing is known.
///
/// # Errors
/// What no later try would mend; `step` says what was asked of the system.
pub(super) fn await_any(polled: &mut [PollFd<'_>], asleep: Duration, step: &'static str) -> Result<bool, LinkError> {
    let timeout = Timespec { tv_sec: 0, tv_nsec: i64::try_from(asleep.as_nanos()).unwrap_or(0).min(999_999_999) };
    match poll(polled, Some(&timeout)) {
        Ok(_) => Ok(true),
        Err(Errno::INTR) => Ok(false),
        Err(refused) => Err(LinkError::System { step, source: refused.into() }),
    }
}
