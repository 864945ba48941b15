//! The loop between two TUN devices: read, let the path decide, wait, write.
//!
//! Called by the command and by tests, on a thread of their own: [`TunLink::run`] returns only when told to.
//!
//! The kernel does not note when a packet came to a device, so the relay is woken for each and reads what is there,
//! instead of looking from time to time as between sockets. Writing a packet makes the kernel work for its receiver on this
//! thread, up to the answer that it puts on the other device; so few are written before arrivals are looked for again.
//!
//! Invariant: no packet leaves before it is due, and what is written or read ends nothing but the loss of a device.

use super::config::{TunConfig, TunError};
use super::congestion_mark;
use super::device::{Device, Written};
use super::namespace::Namespace;
use crate::clock::Clock;
use crate::link::awake::Awake;
use crate::link::config::LinkError;
use crate::link::departures::{Departure, Departures};
use crate::link::lateness::LatenessRecorder;
use crate::link::pace::{Pace, Step};
use crate::link::priority::{Priority, RaisedPriority};
use crate::link::queueing::QueueingRecorder;
use crate::link::report::{LinkReport, RelayCounters};
use crate::link::store::Store;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use segstream_base::random::Seed;
use segstream_base::{Bytes, Duration, Instant};
use segstream_path::{Fate, Path, PathConfig};
use std::sync::atomic::{AtomicBool, Ordering};

/// How many packets are written before arrivals are looked for again.
const WRITTEN_TOGETHER: usize = 8;

/// How many packets of one device are read before the other and the departures have their turn.
const READ_TOGETHER: usize = 256;

/// Longer than any IP packet.
const BUFFER_BYTES: usize = 64 << 10;

/// A link between two namespaces that is ready to run: its devices are up, its paths are made.
#[derive(Debug)]
pub struct TunLink {
    first: Device,
    second: Device,
    clock: Clock,
    pace: Pace,
    awake: Awake,
    lateness_limit: Duration,
    forward: Lane,
    back: Lane,
    store: Store,
    lateness: LatenessRecorder,
    buffer: Vec<u8>,
}

/// One direction.
#[derive(Debug)]
struct Lane {
    path: Path,
    departures: Departures<()>,
    relayed: RelayCounters,
    queueing: QueueingRecorder,
}

impl Lane {
    fn new(config: &PathConfig, seed: Seed, direction: &'static str) -> Result<Self, LinkError> {
        let path = Path::new(config, seed, direction).map_err(|source| LinkError::Path { direction, source })?;
        Ok(Self { path, departures: Departures::new(), relayed: RelayCounters::default(), queueing: QueueingRecorder::new() })
    }

    fn due(&self) -> Instant {
        self.departures.first().map_or(Instant::FAR_FUTURE, |departure| departure.due)
    }

    /// Sends a packet into the path at `now` and keeps what the path will deliver.
    fn enter(&mut self, store: &mut Store, now: Instant, packet: &mut [u8]) {
        let bytes = Bytes::new(packet.len() as u64);
        let markable = congestion_mark::is_markable(packet);
        let passage = if markable { self.path.send_markable(now, bytes) } else { self.path.send(now, bytes) };
        let Fate::Delivered { at } = passage.fate else { return };
        self.queueing.record(passage.queued);
        if passage.marked {
            congestion_mark::mark(packet);
        }
        for due in std::iter::once(at).chain(passage.duplicate) {
            let Some(slot) = store.keep(packet) else {
                self.relayed.dropped_limit += 1;
                continue;
            };
            if let Some(bit) = passage.corrupt_bit {
                store.flip(slot, usize::try_from(bit).unwrap_or(usize::MAX));
            }
            self.departures.push(Departure { due, slot, notes: () });
        }
    }

    /// Reads what has come to `device`, and returns how many packets.
    fn read(&mut self, device: &Device, store: &mut Store, clock: Clock, buffer: &mut [u8]) -> Result<usize, LinkError> {
        for read in 0..READ_TOGETHER {
            match device.read(buffer) {
                Ok(Some(packet)) => self.enter(store, clock.now(), packet),
                Ok(None) => return Ok(read),
                Err(source) => return Err(LinkError::System { step: "read from its device", source }),
            }
        }
        Ok(READ_TOGETHER)
    }

    /// Writes the first departure to `device`; returns when it was due unless it was not taken.
    fn write(&mut self, device: &Device, store: &mut Store) -> Option<Instant> {
        let first = self.departures.pop()?;
        let written = device.write(store.datagram(first.slot));
        store.release(first.slot);
        match written {
            Written::Taken => self.relayed.sent += 1,
            Written::NoRoom => self.relayed.dropped_send_buffer += 1,
            Written::Refused => self.relayed.dropped_refused += 1,
        }
        (written == Written::Taken).then_some(first.due)
    }
}

impl TunLink {
    /// Makes the paths and the devices. What is sent from now on waits for [`TunLink::run`].
    ///
    /// # Errors
    ///
    /// A path that cannot be, a namespace that is not there, or a missing right.
    pub fn open(config: &TunConfig) -> Result<Self, TunError> {
        let forward = Lane::new(&config.forward, config.seed, "forward")?;
        let back = Lane::new(&config.back, config.seed, "back")?;
        let (here, there) = (Namespace::open(&config.first)?, Namespace::open(&config.second)?);
        if here.is(&there) {
            return Err(TunError::SameNamespace { first: config.first.clone(), second: config.second.clone() });
        }
        let prefix = config.addresses.prefix();
        Ok(Self {
            first: Device::open(&here, config.addresses.first(), prefix)?,
            second: Device::open(&there, config.addresses.second(), prefix)?,
            clock: Clock::start(),
            pace: Pace::waking_for_all(config.grain, config.spin),
            awake: Awake::new(config.keep_awake),
            lateness_limit: config.lateness_limit,
            forward,
            back,
            store: Store::default(),
            lateness: LatenessRecorder::new(),
            buffer: vec![0; BUFFER_BYTES],
        })
    }

    /// What the interfaces are called in the first and in the second namespace.
    pub fn interfaces(&self) -> [&str; 2] {
        [self.first.name(), self.second.name()]
    }

    /// Relays on this thread until `stop` is set; then ends within 20 ms. What is still on its way is not written.
    ///
    /// # Errors
    ///
    /// Only what no later try would mend, such as a device that was taken away.
    pub fn run(mut self, stop: &AtomicBool) -> Result<LinkReport, LinkError> {
        let priority = RaisedPriority::of_this_thread();
        let started = self.clock.now();
        while !stop.load(Ordering::Relaxed) {
            let due = self.forward.due().min(self.back.due());
            match self.pace.next(self.clock.now(), due) {
                Step::Send => self.write_due(),
                Step::Spin => std::hint::spin_loop(),
                Step::Sleep(asleep) => std::thread::sleep(asleep.into()),
                Step::Await(asleep) => self.read_after(asleep)?,
            }
        }
        Ok(self.report(started, priority.raised()))
    }

    /// Writes what is due, the earlier of the two directions first.
    fn write_due(&mut self) {
        let mut now = self.clock.now();
        for _ in 0..WRITTEN_TOGETHER {
            let (forward, back) = (self.forward.due(), self.back.due());
            if forward.min(back) > now {
                return;
            }
            self.pace.note_sent(now);
            let due = if forward <= back {
                self.forward.write(&self.second, &mut self.store)
            } else {
                self.back.write(&self.first, &mut self.store)
            };
            now = self.clock.now();
            if let Some(due) = due {
                self.lateness.record(now.since(due));
            }
        }
    }

    /// Sleeps until something arrives or `asleep` is over, and reads what is there.
    fn read_after(&mut self, asleep: Duration) -> Result<(), LinkError> {
        let mut polled = [&self.first, &self.second].map(|device| PollFd::new(device, PollFlags::IN));
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::try_from(asleep.as_nanos()).unwrap_or(0).min(999_999_999) };
        let [first, second] = match poll(&mut polled, Some(&timeout)) {
            Ok(_) => polled.map(|polled| !polled.revents().is_empty()),
            Err(Errno::INTR) => return Ok(()),
            Err(refused) => return Err(LinkError::System { step: "wait for packets", source: refused.into() }),
        };
        let mut read = 0;
        if first {
            read += self.forward.read(&self.first, &mut self.store, self.clock, &mut self.buffer)?;
        }
        if second {
            read += self.back.read(&self.second, &mut self.store, self.clock, &mut self.buffer)?;
        }
        let now = self.clock.now();
        self.pace.note_read(now, read > 0);
        self.awake.note(now, self.store.len() > 0);
        Ok(())
    }

    fn report(mut self, started: Instant, priority: Priority) -> LinkReport {
        for lane in [&mut self.forward, &mut self.back] {
            lane.relayed.unsent = lane.departures.len() as u64;
        }
        LinkReport {
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
            receive_buffer_drops: self.first.dropped().zip(self.second.dropped()).map(|(first, second)| first + second),
            priority,
            kept_awake: self.awake.granted(),
            warnings: Vec::new(),
            kept_up: false,
        }
        .judge(self.lateness_limit)
    }
}
