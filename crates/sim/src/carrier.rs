//! One direction: the path, and the packets under way on it.
//!
//! Called by [`crate::Simulation`] for every packet that is sent and for every one that arrives.
//!
//! Most paths say at once when a packet will arrive, so what is under way is a ring in the order of arrival. A
//! packet is put at its end, but for one that is overtaken, which is put where it belongs. Where a queue decides later, a
//! packet is kept beside the ring until then.
//!
//! Invariant: packets arrive in the order of (time, sending order), and a copy behind its original.

use crate::control_loss::ApartLoss;
use crate::end::EncodingFault;
use crate::observer::{Direction, Moment, Observer, PacketEvent, PacketFate};
use crate::recoder::Recoder;
use crate::setup::{Control, Setup};
use crate::shared::{Entry, entering};
use crate::traffic::DirectionTraffic;
use segstream_base::halves::Packet;
use segstream_base::random::Seed;
use segstream_base::{Bytes, Instant};
use segstream_path::{Fate, LossSpec, Passage, PathConfig, ScheduledPath, SpecError};
use std::collections::{BTreeMap, VecDeque};

/// A path of its own has no other flow.
const ONLY_FLOW: u64 = 0;

/// A packet under way.
#[derive(Clone, Debug)]
pub(crate) struct Flight<P> {
    pub(crate) at: Instant,
    pub(crate) number: u64,
    /// A congested path has marked it.
    pub(crate) marked: bool,
    pub(crate) packet: P,
}

/// Packets under way in the order of their arrival.
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

/// A packet in a queue that has not decided.
#[derive(Clone, Debug)]
struct Waiting<P> {
    packet: P,
    /// What the shared link has said, once it has.
    shared: Option<Passage>,
}

/// One direction of a run.
#[derive(Clone, Debug)]
pub(crate) struct Carrier<P> {
    direction: Direction,
    path: ScheduledPath,
    /// Takes what is lost, when data and control have losses of their own; the path then loses nothing.
    apart_loss: Option<ApartLoss>,
    out_of_band: bool,
    /// The latest arrival of data that was not held back; kept only where jitter makes it differ from what
    /// the bottleneck says.
    data_arrival: Instant,
    jitters: bool,
    /// Packets held back so far.
    held_back: u64,
    recoder: Option<Recoder>,
    traffic: DirectionTraffic,
    /// What waits in a queue that decides later, by number.
    waiting: BTreeMap<u64, Waiting<P>>,
    /// The link in front of the path that others share.
    pub(crate) shared: Option<Entry>,
    /// What goes through the path.
    pub(crate) in_band: Ring<P>,
    /// What does not.
    pub(crate) apart: Ring<P>,
}

impl<P: Packet> Carrier<P> {
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
            recoder: setup.check.then(Recoder::default),
            traffic: DirectionTraffic::default(),
            waiting: BTreeMap::new(),
            shared: None,
            in_band: Ring::new(),
            apart: Ring::new(),
        })
    }

    /// What has travelled so far.
    pub(crate) fn traffic(&self) -> DirectionTraffic {
        let dropped_shared = self.shared.as_ref().map_or(0, Entry::dropped);
        let counters = self.path.counters();
        let path = self.apart_loss.as_ref().map_or(counters, |loss| loss.counted(counters));
        DirectionTraffic {
            under_way: self.in_band.len() + self.apart.len() + self.waiting.len() as u64,
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

    /// The bytes that are under way, copies counted.
    pub(crate) fn bytes_under_way(&self) -> u64 {
        let waiting = self.waiting.values().map(|waiting| &waiting.packet);
        self.in_band.iter().chain(self.apart.iter()).chain(waiting).map(|packet| packet.encoded_len() as u64).sum()
    }

    /// The packets that were sent.
    pub(crate) const fn sent(&self) -> u64 {
        self.traffic.packets()
    }

    /// When the link in front, shared or the path's own, will have sent everything it has accepted.
    pub(crate) fn free_at(&self) -> Instant {
        self.shared.as_ref().map_or_else(|| self.path.free_at(), Entry::free_at)
    }

    /// Sends a packet.
    ///
    /// # Errors
    /// In check mode, what is wrong with its encoding; the packet is gone then.
    #[inline]
    pub(crate) fn send<O: Observer>(&mut self, now: Instant, packet: P, observer: &mut O) -> Result<(), EncodingFault> {
        // Why: a packet is worth a copy, so check mode changes it in place and out of the way.
        let mut packet = packet;
        if self.recoder.is_some() {
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
        let passage = match self.apart_loss {
            None => self.cross(number, now, Bytes::new(bytes), packet.is_markable()),
            Some(_) => self.lose_apart(number, now, Bytes::new(bytes), &packet),
        };
        let Some(passage) = passage else {
            self.wait(now, number, packet, observer);
            return Ok(());
        };
        if O::PACKETS {
            let moment = Moment::Sent(fate(passage));
            observer.packet(PacketEvent { now, direction: self.direction, number, moment, packet: &packet });
        }
        self.carry(number, packet, passage);
        Ok(())
    }

    /// Puts a packet under way that `passage` delivers.
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

    /// When a queue decides of the next packet that waits on this path.
    pub(crate) fn decides_at(&self) -> Instant {
        self.path.due()
    }

    /// A packet waits in a queue that decides later.
    #[cold]
    fn wait<O: Observer>(&mut self, now: Instant, number: u64, packet: P, observer: &mut O) {
        if O::PACKETS {
            let moment = Moment::Sent(PacketFate::Waits);
            observer.packet(PacketEvent { now, direction: self.direction, number, moment, packet: &packet });
        }
        self.waiting.insert(number, Waiting { packet, shared: None });
        self.decide(now, observer);
    }

    /// Takes what the queue of the path has decided by `now`.
    #[cold]
    pub(crate) fn decide<O: Observer>(&mut self, now: Instant, observer: &mut O) {
        self.path.advance(now);
        while let Some((number, passage)) = self.path.settled() {
            let Some(waiting) = self.waiting.remove(&number) else { continue };
            let passage = match (&mut self.shared, waiting.shared) {
                (Some(entry), Some(shared)) => entry.through(&shared, passage, Bytes::new(waiting.packet.encoded_len() as u64)),
                _ => passage,
            };
            self.end_wait(now, number, waiting.packet, passage, observer);
        }
    }

    /// The shared link has decided at `now` of the packet `number`.
    #[cold]
    pub(crate) fn decided_on_link<O: Observer>(&mut self, now: Instant, number: u64, shared: &Passage, observer: &mut O) {
        let Some(mut waiting) = self.waiting.remove(&number) else { return };
        let bytes = Bytes::new(waiting.packet.encoded_len() as u64);
        let Some(entry) = &mut self.shared else { return };
        let Some(at) = entry.behind(shared, bytes) else {
            self.end_wait(now, number, waiting.packet, *shared, observer);
            return;
        };
        let markable = waiting.packet.is_markable();
        match self.path.offer(at, entering(bytes, markable, ONLY_FLOW), number) {
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

    /// A packet that waited is decided.
    fn end_wait<O: Observer>(&mut self, now: Instant, number: u64, packet: P, passage: Passage, observer: &mut O) {
        let passes = self.path.free_at().max(now);
        let passage = self.apart_loss.as_mut().map_or(passage, |loss| loss.behind(passes, packet.is_data(), passage));
        if O::PACKETS {
            let moment = Moment::Decided(fate(passage));
            observer.packet(PacketEvent { now, direction: self.direction, number, moment, packet: &packet });
        }
        self.carry(number, packet, passage);
    }

    /// Through the link that others share, if there is one, and the path; `None` while the packet waits.
    #[inline]
    fn cross(&mut self, number: u64, now: Instant, bytes: Bytes, markable: bool) -> Option<Passage> {
        let Some(link) = &mut self.shared else { return self.path.offer(now, entering(bytes, markable, ONLY_FLOW), number) };
        let shared = link.cross(number, now, bytes, markable)?;
        let Some(at) = link.behind(&shared, bytes) else { return Some(shared) };
        let own = self.path.offer(at, entering(bytes, markable, ONLY_FLOW), number)?;
        Some(link.through(&shared, own, bytes))
    }

    /// The same, where data and control have losses of their own.
    fn lose_apart(&mut self, number: u64, now: Instant, bytes: Bytes, packet: &P) -> Option<Passage> {
        if let Some(loss) = &mut self.apart_loss
            && let Some(lost) = loss.before(now, packet.is_data())
        {
            return Some(lost);
        }
        let passage = self.cross(number, now, bytes, packet.is_markable())?;
        let passes = self.path.free_at().max(now);
        Some(self.apart_loss.as_mut().map_or(passage, |loss| loss.behind(passes, packet.is_data(), passage)))
    }

    /// Check mode: the packet becomes what its encoding says.
    #[cold]
    fn recode(&mut self, packet: &mut P) -> Result<(), EncodingFault> {
        if let Some(recoder) = &mut self.recoder {
            *packet = recoder.recode(packet)?;
        }
        Ok(())
    }

    /// Sends control beside the path: right behind the data in front of it.
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

    /// A packet with a flipped bit, found by a checksum (EC 4), and its copy.
    #[cold]
    fn discard(&mut self, bit: u64, passage: Passage) {
        self.traffic.discarded += 1 + u64::from(passage.duplicate.is_some());
        if let Some(recoder) = &mut self.recoder {
            recoder.decode_flipped::<P>(bit);
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
