//! One direction of a run: its path and the packets in flight.
//!
//! Called by [`crate::Simulation`] for every packet that is sent and for every one that arrives.
//!
//! Most paths decide at once when a packet will arrive, so the packets in flight are a ring in the order of arrival. A packet is
//! appended, or inserted in order if it overtakes others. While a packet is in a queue that decides at dequeue, it is kept beside
//! the ring.
//!
//! Invariant: packets arrive in the order of (time, sending order), and a copy behind its original.

use crate::control_loss::ApartLoss;
use crate::encoding_check::EncodingCheck;
use crate::end::EncodingFault;
use crate::observer::{Direction, Moment, Observer, PacketEvent, PacketFate};
use crate::setup::{Control, Setup};
use crate::shared::Entry;
use crate::traffic::DirectionTraffic;
use segstream_base::endpoint::Ecn;
use segstream_base::halves::Packet;
use segstream_base::random::Seed;
use segstream_base::{Bytes, Instant};
use segstream_path::{Fate, LossSpec, Passage, PathConfig, PathPacket, ScheduledPath, SpecError};
use std::collections::{BTreeMap, VecDeque};

/// A packet on a path that carries one flow.
const fn entering(bytes: Bytes, ecn: Option<Ecn>) -> PathPacket {
    PathPacket { bytes, ecn, flow: 0 }
}

/// What is known of a packet once it was offered to the paths.
enum Crossed {
    /// Its fate.
    Decided(Passage),
    /// It is in a queue that decides at dequeue: with `None` in that of the shared link or of a path without one; else in that
    /// of its own path, with the passage of the shared link.
    Waits(Option<Passage>),
}

/// Offers the packet `number` to the shared link and then to the path.
fn cross_both(link: &mut Entry, path: &mut ScheduledPath, number: u64, now: Instant, packet: PathPacket) -> Crossed {
    let Some(shared) = link.cross(number, now, packet.bytes, packet.ecn) else { return Crossed::Waits(None) };
    let Some(at) = link.behind(&shared, packet.bytes) else { return Crossed::Decided(shared) };
    match path.offer(at, packet, number) {
        Some(own) => Crossed::Decided(link.through(&shared, own, packet.bytes)),
        None => Crossed::Waits(Some(shared)),
    }
}

/// A packet in flight.
#[derive(Clone, Debug)]
pub(crate) struct Flight<P> {
    pub(crate) at: Instant,
    pub(crate) number: u64,
    /// It is CE-marked.
    pub(crate) marked: bool,
    pub(crate) packet: P,
}

/// Packets in flight in the order of their arrival.
#[derive(Clone, Debug)]
pub(crate) struct Ring<P>(VecDeque<Flight<P>>);

impl<P> Ring<P> {
    const fn new() -> Self {
        Self(VecDeque::new())
    }

    /// When the next packet arrives.
    #[inline]
    pub(crate) fn next_at(&self) -> Instant {
        self.0.front().map_or(Instant::FAR_FUTURE, |flight| flight.at)
    }

    /// The packet that arrives next.
    #[inline]
    pub(crate) fn front(&self) -> Option<&Flight<P>> {
        self.0.front()
    }

    /// Takes the packet that arrived.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Flight<P>> {
        self.0.pop_front()
    }

    #[inline]
    fn put(&mut self, flight: Flight<P>) {
        match self.0.back() {
            Some(last) if last.at > flight.at => self.put_in_order(flight),
            _ => self.0.push_back(flight),
        }
    }

    #[cold]
    fn put_in_order(&mut self, flight: Flight<P>) {
        let place = self.0.partition_point(|other| other.at <= flight.at);
        self.0.insert(place, flight);
    }

    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn iter(&self) -> impl Iterator<Item = &P> {
        self.0.iter().map(|flight| &flight.packet)
    }
}

/// A packet in a queue that has not decided about it.
#[derive(Clone, Debug)]
struct Waiting<P> {
    packet: P,
    /// The passage of the shared link, once it is decided.
    shared: Option<Passage>,
}

/// One direction of a run.
#[derive(Clone, Debug)]
pub(crate) struct Channel<P> {
    direction: Direction,
    path: ScheduledPath,
    /// The loss processes, when data and control have losses of their own; the path then loses nothing.
    apart_loss: Option<ApartLoss>,
    out_of_band: bool,
    /// The latest arrival of data that was not held back; kept only where jitter makes it differ from what
    /// the bottleneck says.
    data_arrival: Instant,
    jitters: bool,
    /// Packets held back so far.
    held_back: u64,
    encoding_check: Option<EncodingCheck>,
    traffic: DirectionTraffic,
    /// Packets in a queue that decides at dequeue, by number.
    waiting: BTreeMap<u64, Waiting<P>>,
    /// The shared link in front of the path.
    pub(crate) shared: Option<Entry>,
    /// Packets in flight on the path.
    pub(crate) in_band: Ring<P>,
    /// Packets in flight beside it: control out of band.
    pub(crate) apart: Ring<P>,
}

impl<P: Packet> Channel<P> {
    pub(crate) fn new(direction: Direction, setup: &Setup, seed: Seed) -> Result<Self, SpecError> {
        let (name, config) = match direction {
            Direction::Forward => ("forward", &setup.forward),
            Direction::Back => ("back", &setup.back),
        };
        let seed = seed.child("path");
        let apart_loss = setup.control_loss.as_ref().map(|control| ApartLoss::new(config, control, seed, name)).transpose()?;
        let path = match apart_loss {
            None => ScheduledPath::new(config, seed, name)?,
            Some(_) => ScheduledPath::new(&PathConfig { loss: LossSpec::None, ..config.clone() }, seed, name)?,
        };
        Ok(Self {
            direction,
            path,
            apart_loss,
            out_of_band: setup.control == Control::OutOfBand,
            data_arrival: Instant::ZERO,
            jitters: !config.jitter.is_none() || !config.aggregate.is_zero() || !config.delay_steps.is_none(),
            held_back: 0,
            encoding_check: setup.check.then(EncodingCheck::default),
            traffic: DirectionTraffic::default(),
            waiting: BTreeMap::new(),
            shared: None,
            in_band: Ring::new(),
            apart: Ring::new(),
        })
    }

    /// The counters so far.
    pub(crate) fn traffic(&self) -> DirectionTraffic {
        let dropped_shared = self.shared.as_ref().map_or(0, Entry::dropped);
        let counters = self.path.counters();
        let path = self.apart_loss.as_ref().map_or(counters, |loss| loss.counted(counters));
        DirectionTraffic {
            in_flight: self.in_band.len() + self.apart.len() + self.waiting.len() as u64,
            path,
            dropped_shared,
            ..self.traffic
        }
    }

    /// Counts the packet that arrived.
    #[inline]
    pub(crate) const fn count_arrival(&mut self, is_data: bool) {
        self.traffic.arrived += 1;
        self.traffic.data_arrived += is_data as u64;
    }

    /// The bytes in flight, copies included.
    pub(crate) fn bytes_in_flight(&self) -> u64 {
        let waiting = self.waiting.values().map(|waiting| &waiting.packet);
        self.in_band.iter().chain(self.apart.iter()).chain(waiting).map(|packet| packet.encoded_len() as u64).sum()
    }

    /// The packets that were sent.
    pub(crate) const fn sent(&self) -> u64 {
        self.traffic.packets()
    }

    /// When the bottleneck, shared or the path's own, will have sent everything it has accepted.
    pub(crate) fn free_at(&self) -> Instant {
        self.shared.as_ref().map_or_else(|| self.path.free_at(), Entry::free_at)
    }

    /// Sends a packet.
    ///
    /// # Errors
    /// In check mode, what is wrong with its encoding; the packet is gone then.
    #[inline]
    pub(crate) fn send<O: Observer>(&mut self, now: Instant, mut packet: P, observer: &mut O) -> Result<(), EncodingFault> {
        if self.encoding_check.is_some() {
            self.recode(&mut packet)?;
        }
        let number = self.traffic.packets();
        let bytes = packet.encoded_len() as u64;
        if packet.is_data() {
            self.traffic.data_packets += 1;
            self.traffic.data_bytes += bytes;
        } else {
            self.traffic.control_packets += 1;
            self.traffic.control_bytes += bytes;
            if self.out_of_band {
                self.send_apart(now, number, packet, observer);
                return Ok(());
            }
        }
        let crossed = match self.apart_loss {
            None => self.cross(number, now, Bytes::new(bytes), packet.ecn()),
            Some(_) => self.lose_apart(number, now, Bytes::new(bytes), &packet),
        };
        let passage = match crossed {
            Crossed::Decided(passage) => passage,
            Crossed::Waits(shared) => {
                self.wait(now, number, Waiting { packet, shared }, observer);
                return Ok(());
            }
        };
        if O::PACKETS {
            let moment = Moment::Sent(fate(passage));
            observer.packet(PacketEvent { now, direction: self.direction, number, moment, packet: &packet });
        }
        self.carry(number, packet, passage);
        Ok(())
    }

    /// Puts a delivered packet in flight, and its copy.
    #[inline]
    fn carry(&mut self, number: u64, packet: P, passage: Passage) {
        let Fate::Delivered { at } = passage.fate else { return };
        if self.out_of_band && self.jitters {
            self.note_arrival(at);
        }
        if let Some(bit) = passage.corrupt_bit {
            self.discard(bit, passage);
            return;
        }
        let marked = passage.marked;
        match passage.duplicate {
            None => self.in_band.put(Flight { at, number, marked, packet }),
            Some(copy_at) => {
                self.in_band.put(Flight { at, number, marked, packet: packet.clone() });
                self.in_band.put(Flight { at: copy_at, number, marked, packet });
            }
        }
    }

    /// When the queue of this path decides about the next packet.
    pub(crate) fn decides_at(&self) -> Instant {
        self.path.due()
    }

    /// A packet is in a queue that decides at dequeue.
    #[cold]
    fn wait<O: Observer>(&mut self, now: Instant, number: u64, waiting: Waiting<P>, observer: &mut O) {
        if O::PACKETS {
            let moment = Moment::Sent(PacketFate::Waits);
            observer.packet(PacketEvent { now, direction: self.direction, number, moment, packet: &waiting.packet });
        }
        self.waiting.insert(number, waiting);
        self.decide(now, observer);
    }

    /// Processes the packets that the queue of the path has decided by `now`.
    #[cold]
    pub(crate) fn decide<O: Observer>(&mut self, now: Instant, observer: &mut O) {
        self.path.advance(now);
        while let Some((number, passage)) = self.path.decided() {
            let Some(waiting) = self.waiting.remove(&number) else { continue };
            let passage = match (&mut self.shared, waiting.shared) {
                (Some(entry), Some(shared)) => entry.through(&shared, passage, Bytes::new(waiting.packet.encoded_len() as u64)),
                _ => passage,
            };
            self.end_wait(now, number, waiting.packet, passage, observer);
        }
    }

    /// The shared link has decided at `now` about the packet `number`.
    #[cold]
    pub(crate) fn decided_on_link<O: Observer>(&mut self, now: Instant, number: u64, shared: &Passage, observer: &mut O) {
        let Some(mut waiting) = self.waiting.remove(&number) else { return };
        let bytes = Bytes::new(waiting.packet.encoded_len() as u64);
        let Some(entry) = &mut self.shared else { return };
        let Some(at) = entry.behind(shared, bytes) else {
            self.end_wait(now, number, waiting.packet, *shared, observer);
            return;
        };
        match self.path.offer(at, entering(bytes, waiting.packet.ecn()), number) {
            Some(own) => {
                let passage = entry.through(shared, own, bytes);
                self.end_wait(now, number, waiting.packet, passage, observer);
            }
            None => {
                waiting.shared = Some(*shared);
                self.waiting.insert(number, waiting);
                self.decide(now, observer);
            }
        }
    }

    /// A packet from a queue that decides at dequeue is decided.
    fn end_wait<O: Observer>(&mut self, now: Instant, number: u64, packet: P, passage: Passage, observer: &mut O) {
        let passage = self.lose_behind(now, packet.is_data(), passage);
        if O::PACKETS {
            let moment = Moment::Decided(fate(passage));
            observer.packet(PacketEvent { now, direction: self.direction, number, moment, packet: &packet });
        }
        self.carry(number, packet, passage);
    }

    /// Offers a packet to the shared link, if there is one, and then to the path.
    // Why always: mostly it is the path's decision handed on, and a call would copy that once more.
    #[inline(always)]
    fn cross(&mut self, number: u64, now: Instant, bytes: Bytes, ecn: Option<Ecn>) -> Crossed {
        match &mut self.shared {
            None => self.path.offer(now, entering(bytes, ecn), number).map_or(Crossed::Waits(None), Crossed::Decided),
            Some(link) => cross_both(link, &mut self.path, number, now, entering(bytes, ecn)),
        }
    }

    /// The same, where data and control have losses of their own.
    fn lose_apart(&mut self, number: u64, now: Instant, bytes: Bytes, packet: &P) -> Crossed {
        if let Some(loss) = &mut self.apart_loss
            && let Some(lost) = loss.before(now, packet.is_data())
        {
            return Crossed::Decided(lost);
        }
        match self.cross(number, now, bytes, packet.ecn()) {
            Crossed::Decided(passage) => Crossed::Decided(self.lose_behind(now, packet.is_data(), passage)),
            waits @ Crossed::Waits(_) => waits,
        }
    }

    /// The fate of a packet after losses behind the path, where data and control have losses of their own.
    fn lose_behind(&mut self, now: Instant, is_data: bool, passage: Passage) -> Passage {
        let passes = self.path.free_at().max(now);
        self.apart_loss.as_mut().map_or(passage, |loss| loss.behind(passes, is_data, passage))
    }

    /// Check mode: replaces the packet by its decoded encoding.
    #[cold]
    fn recode(&mut self, packet: &mut P) -> Result<(), EncodingFault> {
        if let Some(encoding_check) = &mut self.encoding_check {
            *packet = encoding_check.recode(packet)?;
        }
        Ok(())
    }

    /// Sends control out of band: it arrives right after the data that was sent before it.
    fn send_apart<O: Observer>(&mut self, now: Instant, number: u64, packet: P, observer: &mut O) {
        let shared = self.shared.as_ref().map_or(Instant::ZERO, Entry::free_at);
        let leaves = now.max(shared).max(self.path.free_at());
        let at = (leaves + self.path.delay_at(leaves)).max(self.data_arrival);
        if O::PACKETS {
            let moment = Moment::Sent(PacketFate::Arrives { at, copy_at: None });
            observer.packet(PacketEvent { now, direction: self.direction, number, moment, packet: &packet });
        }
        self.apart.put(Flight { at, number, marked: false, packet });
    }

    /// Keeps the latest arrival of data. A packet that was held back to be overtaken is not waited for.
    fn note_arrival(&mut self, at: Instant) {
        let held_back = self.path.counters().reordered;
        if held_back == self.held_back {
            self.data_arrival = self.data_arrival.max(at);
        }
        self.held_back = held_back;
    }

    /// Discards a packet with a flipped bit, which a checksum finds (EC 4), and its copy.
    #[cold]
    fn discard(&mut self, bit: u64, passage: Passage) {
        self.traffic.discarded += 1 + u64::from(passage.duplicate.is_some());
        if let Some(encoding_check) = &mut self.encoding_check {
            encoding_check.decode_flipped::<P>(bit);
        }
    }
}

const fn fate(passage: Passage) -> PacketFate {
    match (passage.fate, passage.corrupt_bit) {
        (Fate::Lost, _) => PacketFate::Lost,
        (Fate::Dropped, _) => PacketFate::Dropped,
        (Fate::Delivered { .. }, Some(_)) => PacketFate::Corrupted,
        (Fate::Delivered { at }, None) => PacketFate::Arrives { at, copy_at: passage.duplicate },
    }
}
