//! The loop between two TUN devices: read, let the path decide, wait, write.
//!
//! Called by the command and by tests, on a thread of their own: [`TunLink::run`] returns only when told to.
//!
//! The kernel does not stamp packets at a device, so each packet wakes the relay, which does not poll at intervals as it does
//! between sockets. Writing packets runs the kernel's receive path on this thread, up to the answer that it queues at the other
//! device; so few are written before the relay reads again.
//!
//! Invariant: no packet leaves before it is due, and only the loss of a device ends the relay.

use super::config::{TunConfig, TunError};
use super::congestion_mark;
use super::device::{Device, Written};
use super::flow;
use super::namespace::Namespace;
use super::offload::{ReadBuffers, WriteBatch};
use crate::clock::Clock;
use crate::link::config::LinkError;
use crate::link::emulation::{Emulation, EmulationConfig, OneWay, PacketMeta, await_any};
use crate::link::packet_buffers::PacketBuffers;
use crate::link::priority::{Priority, RaisedPriority};
use crate::link::report::LinkReport;
use crate::link::wait_policy::{Step, WaitPolicy};
use crate::link::watch::{LinkWatch, Watched};
use rustix::event::{PollFd, PollFlags};
use segstream_base::{Bytes, Duration, Instant};
use segstream_path::PathPacket;
use std::sync::atomic::{AtomicBool, Ordering};

/// How many packets are written before the relay reads again. Those of one flow cost the kernel little more than one.
const WRITE_BATCH: usize = 32;

/// How many packets of one device are read before the other device.
const READ_BATCH: usize = 256;

/// How many of them are read although a departure is due. Why: a sender that starts queues hundreds of packets at once. Reading them
/// all takes one or two milliseconds, in which nothing would leave.
const READ_BATCH_WHILE_DUE: usize = 16;

/// A link between two namespaces that is ready to run: its devices are up, its paths are made.
#[derive(Debug)]
pub struct TunLink {
    first: Device,
    second: Device,
    emulation: Emulation<RawPacket>,
    buffers: Buffers,
    watched: Watched,
}

/// Packets between the devices and the store.
struct Buffers {
    read: ReadBuffers,
    write: WriteBatch,
    dues: Vec<Instant>,
}

impl std::fmt::Debug for Buffers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Buffers").field("written", &self.write.len()).finish_non_exhaustive()
    }
}

/// An IP packet, which needs no metadata.
#[derive(Clone, Copy, Debug)]
struct RawPacket;

impl PacketMeta for RawPacket {
    fn mark(&mut self, packet: &mut [u8]) {
        congestion_mark::mark(packet);
    }

    fn bit(&self, _packet: &[u8], bit: u64) -> usize {
        usize::try_from(bit).unwrap_or(usize::MAX)
    }
}

/// Lets a packet enter the path of `one_way` at `now`.
fn enter(one_way: &mut OneWay<RawPacket>, store: &mut PacketBuffers, now: Instant, packet: &[u8]) {
    let bytes = Bytes::new(packet.len() as u64);
    let entering = PathPacket { bytes, ecn: congestion_mark::codepoint(packet), flow: flow::of(packet) };
    one_way.enter(store, now, entering, packet, RawPacket);
}

/// Reads packets of `device` into `one_way` and returns how many there were. The other direction's next departure is due at
/// `other_due`.
fn read(
    one_way: &mut OneWay<RawPacket>,
    device: &Device,
    store: &mut PacketBuffers,
    (clock, other_due): (Clock, Instant),
    buffers: &mut ReadBuffers,
) -> Result<usize, LinkError> {
    let mut read = 0;
    while read < READ_BATCH {
        if read >= READ_BATCH_WHILE_DUE && one_way.due().min(other_due) <= clock.now() {
            break;
        }
        // Why read here: packets that the kernel hands over together left their sender together.
        let mut now = None;
        let packets = device.read(buffers, |packet| enter(one_way, store, *now.get_or_insert_with(|| clock.now()), packet));
        match packets {
            Ok(Some(packets)) => read += packets,
            Ok(None) => break,
            Err(source) => return Err(LinkError::System { step: "read from its device", source }),
        }
    }
    Ok(read)
}

/// Writes the departures of `one_way` that are due by `now` to `device`, `most` at most, and notes when those were due that the kernel has
/// taken. Returns how many there were.
fn write(
    one_way: &mut OneWay<RawPacket>,
    device: &Device,
    store: &mut PacketBuffers,
    (now, most): (Instant, usize),
    Buffers { write, dues, .. }: &mut Buffers,
) -> usize {
    write.clear();
    dues.clear();
    while write.len() < most && one_way.due() <= now {
        let Some(next) = one_way.departures.pop() else { break };
        write.add(store.datagram(next.slot));
        store.release(next.slot);
        dues.push(next.due);
    }
    let written = write.len();
    match device.write(write) {
        Written::Taken => one_way.relayed.sent += written as u64,
        refused => {
            dues.clear();
            let counter =
                if refused == Written::NoRoom { &mut one_way.relayed.dropped_send_buffer } else { &mut one_way.relayed.dropped_refused };
            *counter += written as u64;
        }
    }
    written
}

impl TunLink {
    /// Makes the paths and the devices. Packets that are sent before [`TunLink::run`] wait at the devices.
    ///
    /// # Errors
    ///
    /// A path configuration that is not valid, a namespace that does not exist, or a missing privilege.
    pub fn open(config: &TunConfig) -> Result<Self, TunError> {
        let paths = EmulationConfig {
            forward: &config.forward,
            back: &config.back,
            seed: config.seed,
            keep_awake: config.keep_awake,
            lateness_limit: config.lateness_limit,
        };
        let emulation = Emulation::new(&paths, WaitPolicy::event_driven(config.grain, config.spin))?;
        let (here, there) = (Namespace::open(&config.first)?, Namespace::open(&config.second)?);
        if here.is(&there) {
            return Err(TunError::SameNamespace { first: config.first.clone(), second: config.second.clone() });
        }
        let prefix = config.addresses.prefix();
        Ok(Self {
            first: Device::open(&here, config.addresses.first(), prefix)?,
            second: Device::open(&there, config.addresses.second(), prefix)?,
            emulation,
            buffers: Buffers { read: ReadBuffers::new(), write: WriteBatch::new(), dues: Vec::new() },
            watched: Watched::by_nobody(),
        })
    }

    /// The names of the interfaces in the first and in the second namespace.
    pub fn interfaces(&self) -> [&str; 2] {
        [self.first.name(), self.second.name()]
    }

    /// What the link does can be read there while it runs.
    pub fn watch(&mut self) -> LinkWatch {
        self.watched.watch()
    }

    /// Relays on this thread until `stop` is set; then it returns within 20 ms. Packets that are still on their way are not written.
    ///
    /// # Errors
    ///
    /// Only failures that a retry cannot solve, such as a device that was removed.
    pub fn run(mut self, stop: &AtomicBool) -> Result<LinkReport, LinkError> {
        let priority = RaisedPriority::of_this_thread();
        let started = self.emulation.clock.now();
        while !stop.load(Ordering::Relaxed) {
            let now = self.emulation.clock.now();
            if self.emulation.decides_at() <= now {
                self.read_after(Duration::ZERO)?;
                self.emulation.decide_until(now);
            }
            if self.watched.is_due(now) {
                let report = self.report(started, priority.raised());
                self.watched.tell(now, report);
            }
            match self.emulation.wait_policy.next(now, self.emulation.next()) {
                Step::Send => self.write_due(),
                Step::Spin => std::hint::spin_loop(),
                Step::Sleep(asleep) => std::thread::sleep(asleep.into()),
                Step::Await(asleep) => self.read_after(asleep)?,
            }
        }
        Ok(self.report(started, priority.raised()))
    }

    /// Writes what is due, the direction with the earlier departure first.
    fn write_due(&mut self) {
        let emulation = &mut self.emulation;
        let mut written = 0;
        while written < WRITE_BATCH {
            let (forward, back) = (emulation.forward.due(), emulation.back.due());
            let now = emulation.clock.now();
            if forward.min(back) > now {
                return;
            }
            emulation.wait_policy.note_sent(now);
            let (one_way, device) =
                if forward <= back { (&mut emulation.forward, &self.second) } else { (&mut emulation.back, &self.first) };
            written += write(one_way, device, &mut emulation.store, (now, WRITE_BATCH - written), &mut self.buffers);
            let sent_at = emulation.clock.now();
            for due in &self.buffers.dues {
                emulation.lateness.record(sent_at.since(*due));
            }
        }
    }

    /// Sleeps until something arrives or `asleep` is over, then reads.
    fn read_after(&mut self, asleep: Duration) -> Result<(), LinkError> {
        let mut polled = [&self.first, &self.second].map(|device| PollFd::new(device, PollFlags::IN));
        if !await_any(&mut polled, asleep, "wait for packets")? {
            return Ok(());
        }
        let [first, second] = polled.map(|polled| !polled.revents().is_empty());
        let Emulation { forward, back, store, clock, .. } = &mut self.emulation;
        let mut packets = 0;
        if first {
            packets += read(forward, &self.first, store, (*clock, back.due()), &mut self.buffers.read)?;
        }
        if second {
            packets += read(back, &self.second, store, (*clock, forward.due()), &mut self.buffers.read)?;
        }
        self.emulation.note_read(packets);
        Ok(())
    }

    fn report(&self, started: Instant, priority: Priority) -> LinkReport {
        let receive_buffer_drops = self.first.dropped().zip(self.second.dropped()).map(|(first, second)| first + second);
        let (report, lateness_limit) = self.emulation.report(started, priority);
        LinkReport { receive_buffer_drops, ..report }.judge(lateness_limit)
    }
}
