//! What every kind of link emulates with: two paths, what is on its way on them, and when it leaves.
//!
//! Called by the relay between UDP sockets and by the one between network namespaces, which read and write. An `N` is what
//! a relay must know of a packet besides its bytes to send it.
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
use super::store::Store;
use crate::clock::Clock;
use rustix::event::{PollFd, Timespec, poll};
use rustix::io::Errno;
use segstream_base::random::Seed;
use segstream_base::{Bytes, Duration, Instant};
use segstream_path::{Fate, Passage, Path, PathConfig};

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
    path: Path,
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

impl<N: Copy> Lane<N> {
    /// Keeps `packet` as often as `passage` delivers it; `flip` says which of its bits a flipped one of the path is.
    pub(super) fn keep(&mut self, store: &mut Store, passage: &Passage, packet: &[u8], notes: N, flip: impl Fn(u64) -> usize) {
        let Fate::Delivered { at } = passage.fate else { return };
        for due in std::iter::once(at).chain(passage.duplicate) {
            let Some(slot) = store.keep(packet) else {
                self.relayed.dropped_limit += 1;
                continue;
            };
            if let Some(bit) = passage.corrupt_bit {
                store.flip(slot, flip(bit));
            }
            self.departures.push(Departure { due, slot, notes });
        }
    }
}

impl<N> Lane<N> {
    fn new(config: &PathConfig, seed: Seed, direction: &'static str) -> Result<Self, LinkError> {
        let path = Path::new(config, seed, direction).map_err(|source| LinkError::Path { direction, source })?;
        Ok(Self { path, departures: Departures::new(), relayed: RelayCounters::default(), queueing: QueueingRecorder::new() })
    }

    /// When the next departure is due.
    pub(super) fn due(&self) -> Instant {
        self.departures.first().map_or(Instant::FAR_FUTURE, |departure| departure.due)
    }

    /// Sends a packet of `bytes` into the path at `now`. What is delivered is still to be kept.
    pub(super) fn enter(&mut self, now: Instant, bytes: u64, markable: bool) -> Passage {
        let bytes = Bytes::new(bytes);
        let passage = if markable { self.path.send_markable(now, bytes) } else { self.path.send(now, bytes) };
        if matches!(passage.fate, Fate::Delivered { .. }) {
            self.queueing.record(passage.queued);
        }
        passage
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
