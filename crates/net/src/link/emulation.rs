//! The emulation that every kind of link shares: two paths, the packets on them, and when each departs.
//!
//! Called by the relay between UDP sockets and by the one between network namespaces, which read and write. `N` is the metadata of
//! a packet that a relay needs to send it.
//!
//! A packet is kept from when it enters. Most paths decide its fate at once. A path whose queue serves several flows in turn decides
//! when the link takes the packet; it is asked at that time, after all earlier arrivals have entered.
//!
//! Invariant: everything a path delivers is kept until it is due, or counted as dropped.

use super::config::LinkError;
use super::cpu_latency::CpuLatencyRequest;
use super::departure_queue::{Departure, DepartureQueue};
use super::lateness::LatenessRecorder;
use super::packet_buffers::{PacketBuffers, Slot};
use super::priority::Priority;
use super::queueing::QueueingRecorder;
use super::report::{LinkReport, RelayCounters};
use super::wait_policy::WaitPolicy;
use crate::clock::Clock;
use rustix::event::{PollFd, Timespec, poll};
use rustix::io::Errno;
use segstream_base::random::Seed;
use segstream_base::{Duration, Instant};
use segstream_path::{Fate, Passage, PathConfig, PathPacket, ScheduledPath};

/// The metadata of a packet, and how a relay changes its bytes.
pub(super) trait PacketMeta: Copy {
    /// Sets the packet's ECN field to CE.
    fn mark(&mut self, packet: &mut [u8]);

    /// The bit of `packet` that corresponds to bit `bit` of the whole packet on the path.
    fn bit(&self, packet: &[u8], bit: u64) -> usize;
}

/// How late a queue may be asked for its decisions, so that several are taken together. Why so long: after the decision a packet
/// still has its transmission and its delay before it.
const DECISION_DELAY_MAX: Duration = Duration::from_millis(1);

/// Two paths and their departure queues.
#[derive(Debug)]
pub(super) struct Emulation<N> {
    pub(super) clock: Clock,
    pub(super) wait_policy: WaitPolicy,
    pub(super) forward: OneWay<N>,
    pub(super) back: OneWay<N>,
    pub(super) store: PacketBuffers,
    pub(super) lateness: LatenessRecorder,
    cpu_latency: CpuLatencyRequest,
    lateness_limit: Duration,
}

/// One direction.
#[derive(Debug)]
pub(super) struct OneWay<N> {
    pub(super) departures: DepartureQueue<N>,
    pub(super) relayed: RelayCounters,
    path: ScheduledPath,
    /// Packets whose fate the path has not decided yet, by slot.
    entered: Vec<Option<(Slot, N)>>,
    /// How late the path may be asked for a decision.
    slack: Duration,
    queueing: QueueingRecorder,
}

/// The configuration that every kind of link has.
#[derive(Clone, Copy, Debug)]
pub(super) struct EmulationConfig<'a> {
    pub(super) forward: &'a PathConfig,
    pub(super) back: &'a PathConfig,
    pub(super) seed: Seed,
    pub(super) keep_awake: bool,
    pub(super) lateness_limit: Duration,
}

impl<N> Emulation<N> {
    /// The paths of `config`, with a clock that starts now.
    ///
    /// # Errors
    /// A path configuration that is not valid.
    pub(super) fn new(config: &EmulationConfig<'_>, wait_policy: WaitPolicy) -> Result<Self, LinkError> {
        Ok(Self {
            clock: Clock::start(),
            wait_policy,
            forward: OneWay::new(config.forward, config.seed, "forward")?,
            back: OneWay::new(config.back, config.seed, "back")?,
            store: PacketBuffers::default(),
            lateness: LatenessRecorder::new(),
            cpu_latency: CpuLatencyRequest::new(config.keep_awake),
            lateness_limit: config.lateness_limit,
        })
    }

    /// When the next departure is due.
    pub(super) fn due(&self) -> Instant {
        self.forward.due().min(self.back.due())
    }

    /// When the next departure is due, or the queues must be asked for decisions.
    pub(super) fn next(&self) -> Instant {
        self.due().min(self.decides_at())
    }

    /// When the queues must be asked for decisions; see [`Emulation::decide_until`].
    pub(super) fn decides_at(&self) -> Instant {
        self.forward.decides_at().min(self.back.decides_at())
    }

    /// Whether a departure is due by now.
    pub(super) fn is_due(&self) -> bool {
        self.due() <= self.clock.now()
    }

    /// Records that `packets` packets were read just now.
    pub(super) fn note_read(&mut self, packets: usize) {
        let now = self.clock.now();
        self.wait_policy.note_read(now, packets > 0);
        self.cpu_latency.note(now, self.store.len() > 0);
    }

    /// The report since `started`, and the limit of lateness. The caller fills in the sockets' part and then calls
    /// [`LinkReport::judge`] with the limit.
    pub(super) fn report(&self, started: Instant, priority: Priority) -> (LinkReport, Duration) {
        let relayed = |one_way: &OneWay<N>| RelayCounters { unsent: one_way.departures.len() as u64, ..one_way.relayed };
        let report = LinkReport {
            ran: self.clock.now().since(started),
            lateness: self.lateness.summary(),
            forward: self.forward.path.counters(),
            back: self.back.path.counters(),
            forward_relayed: relayed(&self.forward),
            back_relayed: relayed(&self.back),
            forward_queueing: self.forward.queueing.summary(),
            back_queueing: self.back.queueing.summary(),
            unroutable: 0,
            clients: 0,
            clients_evicted: 0,
            receive_buffer_drops: None,
            priority,
            kept_awake: self.cpu_latency.was_granted(),
            warnings: Vec::new(),
            kept_up: false,
        };
        (report, self.lateness_limit)
    }
}

impl<N: PacketMeta> Emulation<N> {
    /// Advances the queues to `now` and schedules what they have decided. All earlier arrivals must have entered.
    pub(super) fn decide_until(&mut self, now: Instant) {
        for one_way in [&mut self.forward, &mut self.back] {
            one_way.path.advance(now);
            one_way.schedule_decided(&mut self.store);
        }
    }
}

impl<N: PacketMeta> OneWay<N> {
    /// Lets a packet enter the path at `now` and keeps it while it is on its way.
    pub(super) fn enter(&mut self, store: &mut PacketBuffers, now: Instant, entering: PathPacket, packet: &[u8], meta: N) {
        let slot = store.keep(packet);
        let place = slot.map_or(usize::MAX, Slot::number);
        if let Some(slot) = slot {
            if self.entered.len() <= place {
                self.entered.resize(place + 1, None);
            }
            if let Some(entered) = self.entered.get_mut(place) {
                *entered = Some((slot, meta));
            }
        }
        self.path.send(now, entering, place as u64);
        self.schedule_decided(store);
    }

    /// Schedules the departures of packets whose fate is decided; frees those that are dropped.
    fn schedule_decided(&mut self, store: &mut PacketBuffers) {
        while let Some((id, passage)) = self.path.decided() {
            if matches!(passage.fate, Fate::Delivered { .. }) {
                self.queueing.record(passage.queued);
            }
            let place = usize::try_from(id).unwrap_or(usize::MAX);
            match self.entered.get_mut(place).and_then(Option::take) {
                Some((slot, meta)) => self.schedule(store, &passage, slot, meta),
                None => self.relayed.dropped_limit += passage.copies(),
            }
        }
    }

    /// Schedules the packet in `slot`, once for each copy that `passage` delivers.
    fn schedule(&mut self, store: &mut PacketBuffers, passage: &Passage, slot: Slot, mut meta: N) {
        let Fate::Delivered { at } = passage.fate else {
            store.release(slot);
            return;
        };
        if passage.marked {
            meta.mark(store.datagram_mut(slot));
        }
        if let Some(bit) = passage.corrupt_bit {
            let bit = meta.bit(store.datagram(slot), bit);
            store.flip(slot, bit);
        }
        self.departures.push(Departure { due: at, slot, meta });
        if let Some(due) = passage.duplicate {
            match store.copy(slot) {
                Some(slot) => self.departures.push(Departure { due, slot, meta }),
                None => self.relayed.dropped_limit += 1,
            }
        }
    }
}

impl<N> OneWay<N> {
    fn new(config: &PathConfig, seed: Seed, direction: &'static str) -> Result<Self, LinkError> {
        let path = ScheduledPath::new(config, seed, direction).map_err(|source| LinkError::Path { direction, source })?;
        Ok(Self {
            departures: DepartureQueue::new(),
            relayed: RelayCounters::default(),
            path,
            entered: Vec::new(),
            slack: (config.delay_least() / 2).min(DECISION_DELAY_MAX),
            queueing: QueueingRecorder::new(),
        })
    }

    /// When the next departure is due.
    pub(super) fn due(&self) -> Instant {
        self.departures.first().map_or(Instant::FAR_FUTURE, |departure| departure.due)
    }

    /// When the path must be asked for its decisions.
    fn decides_at(&self) -> Instant {
        self.path.due() + self.slack
    }
}

/// Sleeps until one of `polled` is ready or `asleep` is over. Returns false if a signal interrupted it, so that nothing is known.
///
/// # Errors
/// Failures that a retry cannot solve; `step` says what the system was asked to do.
pub(super) fn await_any(polled: &mut [PollFd<'_>], asleep: Duration, step: &'static str) -> Result<bool, LinkError> {
    let timeout = Timespec { tv_sec: 0, tv_nsec: i64::try_from(asleep.as_nanos()).unwrap_or(0).min(999_999_999) };
    match poll(polled, Some(&timeout)) {
        Ok(_) => Ok(true),
        Err(Errno::INTR) => Ok(false),
        Err(refused) => Err(LinkError::System { step, source: refused.into() }),
    }
}
