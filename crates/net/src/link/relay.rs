//! The loop of the emulator: receive, let the path decide, wait, send.
//!
//! Called by the command and by tests, on a thread of their own: [`Link::run`] returns only when told to.
//!
//! An emulator is exact if it leaves the processor free for the programs it serves. So it sleeps until something is due, and while
//! datagrams keep coming it does not wake for each of them: the kernel stamps their arrival, and reading them before the shortest
//! delay is over is early enough. The rules are in `wait_policy`.
//!
//! Invariant: no datagram leaves before it is due, and no error of the network ends the relay.

use super::client_table::{ClientId, ClientTable};
use super::config::{LinkConfig, LinkError};
use super::departure_queue::Departure;
use super::emulation::{self, Emulation, EmulationConfig, OneWay, await_any};
use super::packet_buffers::PacketBuffers;
use super::priority::{Priority, RaisedPriority};
use super::report::{LinkReport, RelayCounters};
use super::socket_drops;
use super::wait_policy::{Step, WaitPolicy};
use super::watch::{LinkWatch, Watched};
use crate::bind::SocketConfig;
use crate::receive::ReceiveBatch;
use crate::socket::{DropReason, SEND_BYTES_MAX, SendOutcome, Socket};
use rustix::event::{PollFd, PollFlags};
use segstream_base::endpoint::{Arrival, Ecn, Local, Transmit};
use segstream_base::{Bytes, Duration, Instant};
use segstream_path::PathPacket;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

/// How many GSO batches are sent before the relay polls for arrivals again.
const BATCHES_BETWEEN_READS: usize = 32;

/// How many datagrams of one socket are read before the next socket. A departure that is due comes first.
const READ_BATCH: usize = 256;

/// The requested receive buffers: 16 MiB, so that the system drops nothing while the loop sends.
const BUFFER_BYTES: usize = 16 << 20;

/// A link that is ready to run: its socket is bound, its paths are made.
#[derive(Debug)]
pub struct Link {
    listen: Socket,
    to: SocketAddr,
    emulation: Emulation<PacketMeta>,
    clients: ClientTable,
    unroutable: u64,
    batch: GsoBatch,
    watched: Watched,
}

/// A direction of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Forward,
    Back,
}

/// The client of a datagram and its ECN field; datagrams of one GSO batch have both in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PacketMeta {
    client: ClientId,
    ecn: Option<Ecn>,
    /// The bytes of its IP and UDP headers.
    header_bytes: u64,
}

impl emulation::PacketMeta for PacketMeta {
    fn mark(&mut self, _datagram: &mut [u8]) {
        self.ecn = Some(Ecn::CongestionExperienced);
    }

    fn bit(&self, datagram: &[u8], bit: u64) -> usize {
        bit_of_payload(bit, datagram.len() as u64 + self.header_bytes, datagram.len())
    }
}

/// Datagrams that leave in one system call.
#[derive(Debug, Default)]
struct GsoBatch {
    bytes: Vec<u8>,
    dues: Vec<Instant>,
}

/// Lets a datagram enter the path of `one_way`.
fn enter(one_way: &mut OneWay<PacketMeta>, store: &mut PacketBuffers, client: ClientId, arrival: &Arrival, datagram: &[u8]) {
    let header_bytes = header_bytes(arrival.from);
    let bytes = Bytes::new(datagram.len() as u64 + header_bytes);
    // Why the client is the flow: all its datagrams have the same addresses and ports.
    let entering = PathPacket { bytes, ecn: arrival.ecn, flow: client.0 };
    one_way.enter(store, arrival.received, entering, datagram, PacketMeta { client, ecn: arrival.ecn, header_bytes });
}

impl Link {
    /// Binds the socket for the clients and makes the paths. Datagrams that arrive before [`Link::run`] wait in the socket.
    ///
    /// # Errors
    ///
    /// An address that cannot be used, or a path configuration that is not valid.
    pub fn bind(config: &LinkConfig) -> Result<Self, LinkError> {
        let to = SocketAddr::new(config.to.ip().to_canonical(), config.to.port());
        let to = if to.is_ipv4() { to } else { config.to };
        if to.ip().is_unspecified() || to.port() == 0 {
            return Err(LinkError::UnusableDestination { to });
        }
        let paths = EmulationConfig {
            forward: &config.forward,
            back: &config.back,
            seed: config.seed,
            keep_awake: config.keep_awake,
            lateness_limit: config.lateness_limit,
        };
        let emulation = Emulation::new(&paths, WaitPolicy::new(config))?;
        let sockets = SocketConfig {
            receive_buffer_bytes: BUFFER_BYTES,
            // Why: a pending "port unreachable" would only make the send call of later datagrams fail.
            count_network_errors: false,
            ..SocketConfig::default()
        };
        let listen = Socket::bind(config.listen, &sockets)?;
        if listen.local_addr() == to {
            return Err(LinkError::RelaysToItself { to });
        }
        let (clients, batch) = (ClientTable::new(sockets), GsoBatch::default());
        Ok(Self { listen, to, emulation, clients, unroutable: 0, batch, watched: Watched::by_nobody() })
    }

    /// Where clients send to, with the port the system chose.
    pub fn local_addr(&self) -> SocketAddr {
        self.listen.local_addr()
    }

    /// What the link does can be read there while it runs.
    pub fn watch(&mut self) -> LinkWatch {
        self.watched.watch()
    }

    /// Relays on this thread until `stop` is set; then it returns within 20 ms. Datagrams that are still on their way are not sent.
    ///
    /// # Errors
    ///
    /// Only failures that a retry cannot solve, such as a system without memory.
    pub fn run(mut self, stop: &AtomicBool) -> Result<LinkReport, LinkError> {
        let priority = RaisedPriority::of_this_thread();
        let started = self.emulation.clock.now();
        let mut batch = ReceiveBatch::new(self.emulation.clock);
        while !stop.load(Ordering::Relaxed) {
            let now = self.emulation.clock.now();
            if self.emulation.decides_at() <= now {
                self.read_after(Duration::ZERO, &mut batch)?;
                self.emulation.decide_until(now);
            }
            if self.watched.is_due(now) {
                let report = self.report(started, priority.raised());
                self.watched.tell(now, report);
            }
            match self.emulation.wait_policy.next(now, self.emulation.next()) {
                Step::Send => self.send_due(),
                Step::Spin => std::hint::spin_loop(),
                Step::Sleep(asleep) => std::thread::sleep(asleep.into()),
                Step::Await(asleep) => self.read_after(asleep, &mut batch)?,
            }
        }
        Ok(self.report(started, priority.raised()))
    }

    /// Sends what is due, the direction with the earlier departure first.
    fn send_due(&mut self) {
        for _ in 0..BATCHES_BETWEEN_READS {
            let (forward, back) = (self.emulation.forward.due(), self.emulation.back.due());
            let now = self.emulation.clock.now();
            if forward.min(back) > now {
                return;
            }
            self.emulation.wait_policy.note_sent(now);
            self.send_batch(if forward <= back { Direction::Forward } else { Direction::Back }, now);
        }
    }

    /// Sends the first departure of a direction, with those after it that are due by `now` and fit the same GSO batch.
    fn send_batch(&mut self, direction: Direction, now: Instant) {
        let emulation = &mut self.emulation;
        let one_way = match direction {
            Direction::Forward => &mut emulation.forward,
            Direction::Back => &mut emulation.back,
        };
        let Some(first) = one_way.departures.pop() else { return };
        let Some(client) = self.clients.get(first.meta.client) else {
            one_way.relayed.dropped_client_gone += 1;
            emulation.store.release(first.slot);
            return;
        };
        let (socket, to, from) = match direction {
            Direction::Forward => (&client.upstream, self.to, Local::ANY),
            Direction::Back => (&self.listen, client.address, client.local),
        };
        let size = self.batch.start(&first, &mut emulation.store);
        while let Some(next) = one_way.departures.first().copied()
            && next.due <= now
            && next.meta == first.meta
            && self.batch.takes(emulation.store.datagram(next.slot).len(), size, socket.datagrams_per_send())
        {
            one_way.departures.pop();
            self.batch.add(&next, &mut emulation.store);
        }
        let outcome = socket.send(&Transmit { to, from, datagram_bytes: size, ecn: first.meta.ecn }, &self.batch.bytes);
        let sent_at = emulation.clock.now();
        let sent = one_way.relayed.count(outcome, self.batch.dues.len(), size);
        for due in self.batch.dues.iter().take(sent) {
            emulation.lateness.record(sent_at.since(*due));
        }
    }

    /// Sleeps until something arrives or `asleep` is over, then reads.
    fn read_after(&mut self, asleep: Duration, batch: &mut ReceiveBatch) -> Result<(), LinkError> {
        let upstreams = self.clients.all().iter().map(|client| &client.upstream);
        let mut polled: Vec<PollFd<'_>> =
            std::iter::once(&self.listen).chain(upstreams).map(|socket| PollFd::new(socket, PollFlags::IN)).collect();
        if !await_any(&mut polled, asleep, "wait for datagrams")? {
            return Ok(());
        }
        let ready: Vec<bool> = polled.iter().map(|polled| !polled.revents().is_empty()).collect();
        let mut read = 0;
        // Why `back` is read first: reading from the clients may evict one, which changes the indices of the others.
        for place in ready.iter().skip(1).enumerate().filter(|(_, ready)| **ready).map(|(place, _)| place) {
            read += self.read_back(place, batch)?;
        }
        if ready.first() == Some(&true) {
            read += self.read_forward(batch)?;
        }
        self.emulation.note_read(read);
        Ok(())
    }

    fn read_forward(&mut self, batch: &mut ReceiveBatch) -> Result<usize, LinkError> {
        let mut read = 0;
        while read < READ_BATCH {
            read += self.listen.receive(batch).map_err(|source| LinkError::System { step: "receive", source })?;
            for (datagram, arrival) in batch.datagrams() {
                match self.clients.at(arrival.from, arrival.to, self.to, arrival.received) {
                    Ok(client) => enter(&mut self.emulation.forward, &mut self.emulation.store, client, &arrival, datagram),
                    // Why no error: the system may have sockets again when the next datagram arrives.
                    Err(_) => self.unroutable += 1,
                }
            }
            if !batch.is_full() || self.emulation.is_due() {
                break;
            }
        }
        Ok(read)
    }

    fn read_back(&mut self, place: usize, batch: &mut ReceiveBatch) -> Result<usize, LinkError> {
        let Some(client) = self.clients.all().get(place) else { return Ok(0) };
        let mut read = 0;
        while read < READ_BATCH {
            read += client.upstream.receive(batch).map_err(|source| LinkError::System { step: "receive", source })?;
            for (datagram, arrival) in batch.datagrams() {
                if (arrival.from.ip(), arrival.from.port()) == (self.to.ip(), self.to.port()) {
                    enter(&mut self.emulation.back, &mut self.emulation.store, client.id, &arrival, datagram);
                } else {
                    self.unroutable += 1;
                }
            }
            if !batch.is_full() || self.emulation.is_due() {
                break;
            }
        }
        Ok(read)
    }

    fn report(&self, started: Instant, priority: Priority) -> LinkReport {
        let drops = socket_drops::dropped(&self.listen).zip(self.clients.receive_buffer_drops()).map(|(listen, clients)| listen + clients);
        let (report, lateness_limit) = self.emulation.report(started, priority);
        LinkReport {
            unroutable: self.unroutable,
            clients: self.clients.seen(),
            clients_evicted: self.clients.evicted(),
            receive_buffer_drops: drops,
            warnings: self.listen.warnings().to_vec(),
            ..report
        }
        .judge(lateness_limit)
    }
}

impl GsoBatch {
    /// Begins a batch with `first`. All others but the last must have its size, which is returned.
    fn start(&mut self, first: &Departure<PacketMeta>, store: &mut PacketBuffers) -> usize {
        self.bytes.clear();
        self.dues.clear();
        self.add(first, store);
        self.bytes.len()
    }

    /// Whether a datagram of `bytes` bytes fits into the batch.
    fn takes(&self, bytes: usize, size: usize, most: usize) -> bool {
        let whole = self.bytes.len() == self.dues.len() * size;
        whole && bytes <= size && self.dues.len() < most && self.bytes.len() + bytes <= SEND_BYTES_MAX
    }

    fn add(&mut self, departure: &Departure<PacketMeta>, store: &mut PacketBuffers) {
        self.bytes.extend_from_slice(store.datagram(departure.slot));
        self.dues.push(departure.due);
        store.release(departure.slot);
    }
}

impl RelayCounters {
    /// Counts the outcome of a GSO batch of `datagrams`, each of `size` bytes; returns how many were sent.
    fn count(&mut self, outcome: SendOutcome, datagrams: usize, size: usize) -> usize {
        let sent = match outcome {
            SendOutcome::Sent => datagrams,
            SendOutcome::WouldBlock { taken_bytes } => {
                let sent = (taken_bytes / size.max(1)).min(datagrams);
                self.dropped_send_buffer += (datagrams - sent) as u64;
                sent
            }
            SendOutcome::Dropped { datagrams: dropped, reason } => {
                let dropped = dropped.min(datagrams);
                match reason {
                    DropReason::QueueFull => self.dropped_send_buffer += dropped as u64,
                    _ => self.dropped_refused += dropped as u64,
                }
                datagrams - dropped
            }
        };
        self.sent += sent as u64;
        sent
    }
}

/// The bytes of the IP and UDP headers of a datagram.
fn header_bytes(address: SocketAddr) -> u64 {
    if address.is_ipv4() { 28 } else { 48 }
}

/// The bit of the payload to flip for bit `bit` of the whole packet. The headers are left intact, because the system would drop a
/// packet with a damaged header.
fn bit_of_payload(bit: u64, packet_bytes: u64, payload_bytes: usize) -> usize {
    let scaled = u128::from(bit) * payload_bytes as u128 / u128::from(packet_bytes.max(1));
    usize::try_from(scaled).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_is_charged_as_the_packet_it_is() {
        assert_eq!(header_bytes("127.0.0.1:1".parse().unwrap()), 28);
        assert_eq!(header_bytes("[::1]:1".parse().unwrap()), 48);
    }

    #[test]
    fn a_flipped_bit_falls_into_the_payload() {
        assert_eq!(bit_of_payload(0, 1128, 1100), 0);
        assert_eq!(bit_of_payload(1128 * 8 - 1, 1128, 1100), 1100 * 8 - 1);
        assert!((0..29 * 8).all(|bit| bit_of_payload(bit, 29, 1) < 8));
    }

    #[test]
    fn a_batch_ends_with_its_first_shorter_datagram() {
        let mut store = PacketBuffers::default();
        let mut departure = |bytes: &[u8]| {
            let meta = PacketMeta { client: ClientId(0), ecn: None, header_bytes: 28 };
            Departure { due: Instant::ZERO, slot: store.keep(bytes).unwrap(), meta }
        };
        let (first, short) = (departure(&[1, 2, 3]), departure(&[4]));
        let mut batch = GsoBatch::default();
        let size = batch.start(&first, &mut store);
        assert!(batch.takes(3, size, 64) && batch.takes(1, size, 64) && !batch.takes(4, size, 64) && !batch.takes(3, size, 1));
        batch.add(&short, &mut store);
        assert!(!batch.takes(3, size, 64) && !batch.takes(1, size, 64));
        assert_eq!(batch.bytes, [1, 2, 3, 4]);
        assert_eq!(store.len(), 0);
    }

    #[test]
    fn what_the_system_did_with_a_batch_is_accounted_for() {
        let mut counters = RelayCounters::default();
        assert_eq!(counters.count(SendOutcome::Sent, 5, 100), 5);
        assert_eq!(counters.count(SendOutcome::WouldBlock { taken_bytes: 200 }, 5, 100), 2);
        assert_eq!(counters.count(SendOutcome::Dropped { datagrams: 4, reason: DropReason::TooBig }, 5, 100), 1);
        assert_eq!(counters.count(SendOutcome::Dropped { datagrams: 1, reason: DropReason::QueueFull }, 1, 100), 0);
        let expected = RelayCounters { sent: 8, dropped_send_buffer: 4, dropped_refused: 4, ..RelayCounters::default() };
        assert_eq!(counters, expected);
    }
}
