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
use super::flow;
use super::namespace::Namespace;
use crate::clock::Clock;
use crate::link::config::LinkError;
use crate::link::emulation::{Emulated, Emulation, Lane, Notes, await_any};
use crate::link::pace::{Pace, Step};
use crate::link::priority::{Priority, RaisedPriority};
use crate::link::report::LinkReport;
use crate::link::store::Store;
use rustix::event::{PollFd, PollFlags};
use segstream_base::{Bytes, Duration, Instant};
use segstream_path::Entering;
use std::sync::atomic::{AtomicBool, Ordering};

/// How many packets are written before arrivals are looked for again.
const WRITTEN_TOGETHER: usize = 8;

/// How many packets of one device are read before the other has its turn.
const READ_TOGETHER: usize = 256;

/// How many of them are read although a departure is due. Why: a sender that starts puts hundreds of packets on its device at
/// once, and to read them all takes the relay one or two milliseconds in which nothing leaves.
const READ_WHILE_DUE: usize = 16;

/// Longer than any IP packet.
const BUFFER_BYTES: usize = 64 << 10;

/// A link between two namespaces that is ready to run: its devices are up, its paths are made.
#[derive(Debug)]
pub struct TunLink {
    first: Device,
    second: Device,
    emulation: Emulation<Whole>,
    buffer: Vec<u8>,
}

/// A packet is all that is known of it.
#[derive(Clone, Copy, Debug)]
struct Whole;

impl Notes for Whole {
    fn mark(&mut self, packet: &mut [u8]) {
        congestion_mark::mark(packet);
    }

    fn bit(&self, _packet: &[u8], bit: u64) -> usize {
        usize::try_from(bit).unwrap_or(usize::MAX)
    }
}

/// Sends a packet into the path of `lane` at `now`.
fn enter(lane: &mut Lane<Whole>, store: &mut Store, now: Instant, packet: &[u8]) {
    let bytes = Bytes::new(packet.len() as u64);
    let entering = Entering { bytes, ecn: congestion_mark::codepoint(packet), flow: flow::of(packet) };
    lane.enter(store, now, entering, packet, Whole);
}

/// Reads what has come to `device` for `lane`, and returns how many packets; the other direction's next departure is due at
/// `other_due`.
fn read(
    lane: &mut Lane<Whole>,
    device: &Device,
    store: &mut Store,
    (clock, other_due): (Clock, Instant),
    buffer: &mut [u8],
) -> Result<usize, LinkError> {
    for read in 0..READ_TOGETHER {
        let now = clock.now();
        if read >= READ_WHILE_DUE && lane.due().min(other_due) <= now {
            return Ok(read);
        }
        match device.read(buffer) {
            Ok(Some(packet)) => enter(lane, store, clock.now(), packet),
            Ok(None) => return Ok(read),
            Err(source) => return Err(LinkError::System { step: "read from its device", source }),
        }
    }
    Ok(READ_TOGETHER)
}

/// Writes the first departure of `lane` to `device`; returns when it was due unless it was not taken.
fn write(lane: &mut Lane<Whole>, device: &Device, store: &mut Store) -> Option<Instant> {
    let first = lane.departures.pop()?;
    let written = device.write(store.datagram(first.slot));
    store.release(first.slot);
    match written {
        Written::Taken => lane.relayed.sent += 1,
        Written::NoRoom => lane.relayed.dropped_send_buffer += 1,
        Written::Refused => lane.relayed.dropped_refused += 1,
    }
    (written == Written::Taken).then_some(first.due)
}

impl TunLink {
    /// Makes the paths and the devices. What is sent from now on waits for [`TunLink::run`].
    ///
    /// # Errors
    ///
    /// A path that cannot be, a namespace that is not there, or a missing right.
    pub fn open(config: &TunConfig) -> Result<Self, TunError> {
        let emulated = Emulated {
            forward: &config.forward,
            back: &config.back,
            seed: config.seed,
            keep_awake: config.keep_awake,
            lateness_limit: config.lateness_limit,
        };
        let emulation = Emulation::new(&emulated, Pace::waking_for_all(config.grain, config.spin))?;
        let (here, there) = (Namespace::open(&config.first)?, Namespace::open(&config.second)?);
        if here.is(&there) {
            return Err(TunError::SameNamespace { first: config.first.clone(), second: config.second.clone() });
        }
        let prefix = config.addresses.prefix();
        Ok(Self {
            first: Device::open(&here, config.addresses.first(), prefix)?,
            second: Device::open(&there, config.addresses.second(), prefix)?,
            emulation,
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
        let started = self.emulation.clock.now();
        while !stop.load(Ordering::Relaxed) {
            let now = self.emulation.clock.now();
            if self.emulation.decides_at() <= now {
                self.read_after(Duration::ZERO)?;
                self.emulation.decide_until(now);
            }
            match self.emulation.pace.next(now, self.emulation.next()) {
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
        let emulation = &mut self.emulation;
        let mut now = emulation.clock.now();
        for _ in 0..WRITTEN_TOGETHER {
            let (forward, back) = (emulation.forward.due(), emulation.back.due());
            if forward.min(back) > now {
                return;
            }
            emulation.pace.note_sent(now);
            let due = if forward <= back {
                write(&mut emulation.forward, &self.second, &mut emulation.store)
            } else {
                write(&mut emulation.back, &self.first, &mut emulation.store)
            };
            now = emulation.clock.now();
            if let Some(due) = due {
                emulation.lateness.record(now.since(due));
            }
        }
    }

    /// Sleeps until something arrives or `asleep` is over, and reads what is there.
    fn read_after(&mut self, asleep: Duration) -> Result<(), LinkError> {
        let mut polled = [&self.first, &self.second].map(|device| PollFd::new(device, PollFlags::IN));
        if !await_any(&mut polled, asleep, "wait for packets")? {
            return Ok(());
        }
        let [first, second] = polled.map(|polled| !polled.revents().is_empty());
        let Emulation { forward, back, store, clock, .. } = &mut self.emulation;
        let mut packets = 0;
        if first {
            packets += read(forward, &self.first, store, (*clock, back.due()), &mut self.buffer)?;
        }
        if second {
            packets += read(back, &self.second, store, (*clock, forward.due()), &mut self.buffer)?;
        }
        self.emulation.note_read(packets);
        Ok(())
    }

    fn report(self, started: Instant, priority: Priority) -> LinkReport {
        let receive_buffer_drops = self.first.dropped().zip(self.second.dropped()).map(|(first, second)| first + second);
        let (report, lateness_limit) = self.emulation.report(started, priority);
        LinkReport { receive_buffer_drops, ..report }.judge(lateness_limit)
    }
}
