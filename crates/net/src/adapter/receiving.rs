//! The receiving end: it waits for a sender, builds a [`Receiver`] half from the sender's parameters, and delivers the segments that
//! the half has judged.
//!
//! Called by a driver as an [`Endpoint`], and by [`super::receive_blocking`] or any application that takes deliveries.
//!
//! Invariant: one sender at a time. No state is kept before a sender with valid parameters comes. A packet whose payload does not
//! fit the buffer is not passed to the half, so the bytes of every accepted segment are there.

use super::failure::Failure;
use super::gso_batch::{GsoBatches, append_packet};
use super::header::{AdapterHeader, INCOMPLETE, Kind, PARAMETERS_BYTES_MAX, REASON_BYTES_MAX};
use super::peer::{AdapterCounters, Peer, Timing};
use super::receive_payloads::{ReceivePayloads, StoreLimits};
use super::{HEADER_BYTES, INCOMPLETE_TRIES};
use segstream_base::Instant;
use segstream_base::codec::Reader;
use segstream_base::endpoint::{Arrival, Deadline, Endpoint, Local, Transmit};
use segstream_base::halves::{Packet as _, Receiver, ReceiverEvent, SegmentNumber, Verdict};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::ops::Range;

/// For how many intervals of CLOSE the receiver stays in the closing phase, to answer repetitions after a lost answer.
const CLOSING_REPLIES: u64 = 3;

/// How a receiving end delivers, and its limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceivingConfig {
    /// The limits of its buffer.
    pub limits: StoreLimits,
    /// Whether segments are delivered in the order of their numbers; otherwise as accepted, the default.
    pub in_order: bool,
    /// Retransmission intervals and timeouts.
    pub timing: Timing,
}

/// A judged segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Its number, counted from 0.
    pub segment: SegmentNumber,
    /// The verdict.
    pub verdict: Verdict,
    /// Its units.
    pub units: u32,
    /// How many of them are missing, according to the half.
    pub holes: u32,
    /// Its length in bytes. Exact if any part of it arrived.
    pub length: u64,
    /// Its bytes up to the last one that arrived, with zeros in the holes.
    pub bytes: Vec<u8>,
    /// The byte ranges that are missing, up to `length`.
    pub missing: Vec<Range<u64>>,
    /// When the half accepted it, in time since the connection was opened.
    pub accepted: Instant,
}

impl Delivery {
    /// How many bytes are missing.
    pub fn missing_bytes(&self) -> u64 {
        self.missing.iter().map(|hole| hole.end - hole.start).sum()
    }

    /// All its bytes, with zeros in the holes. Allocates the bytes that are missing at its end.
    pub fn zero_filled(self) -> Vec<u8> {
        let mut bytes = self.bytes;
        bytes.resize(usize::try_from(self.length).unwrap_or(usize::MAX), 0);
        bytes
    }

    /// The bytes that arrived, concatenated.
    pub fn without_holes(self) -> Vec<u8> {
        let mut bytes = self.bytes;
        for hole in self.missing.iter().rev() {
            let at = |place: u64| usize::try_from(place).unwrap_or(usize::MAX).min(bytes.len());
            drop(bytes.drain(at(hole.start)..at(hole.end)));
        }
        bytes
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Listening,
    Open,
    /// This end has aborted the transfer and sends CLOSE.
    Closing {
        tries_left: u32,
    },
    /// Closing: the transfer is over, and repetitions of CLOSE are answered.
    Lingering {
        until: Instant,
    },
    Ended,
}

/// A [`Receiver`] half as an [`Endpoint`]. `B` builds the half when a sender connects.
#[derive(Debug)]
pub struct ReceivingEndpoint<R: Receiver, B> {
    build: B,
    config: ReceivingConfig,
    phase: Phase,
    half: Option<(R, Peer)>,
    parameters: Option<String>,
    again: Instant,
    store: ReceivePayloads,
    batches: GsoBatches<R::Feedback>,
    /// Judged segments that wait for earlier ones, with their cost to the buffer.
    early: BTreeMap<u64, (Delivery, u64)>,
    deliveries: VecDeque<(Delivery, u64)>,
    /// The pending answer.
    answer: Option<(SocketAddr, Local, Vec<u8>)>,
    first_data: Option<Instant>,
    failure: Option<Failure>,
    counters: AdapterCounters,
}

impl<R: Receiver, B: FnMut(&str) -> Result<R, String>> ReceivingEndpoint<R, B> {
    /// A receiver that listens. `build` makes a half from the sender's parameters; the half's time begins at [`Instant::ZERO`] with
    /// the connection. An error is a human-readable reason, which is sent to the sender; then the receiver goes on listening.
    pub fn new(build: B, config: ReceivingConfig) -> Self {
        Self {
            build,
            config,
            phase: Phase::Listening,
            half: None,
            parameters: None,
            again: Instant::ZERO,
            store: ReceivePayloads::new(config.limits),
            batches: GsoBatches::new(),
            early: BTreeMap::new(),
            deliveries: VecDeque::new(),
            answer: None,
            first_data: None,
            failure: None,
            counters: AdapterCounters::default(),
        }
    }

    /// The next judged segment. Take them after every turn: until then they count against the limit of the buffer.
    pub fn poll_delivery(&mut self) -> Option<Delivery> {
        let (delivery, cost) = self.deliveries.pop_front()?;
        self.store.release(cost);
        Some(delivery)
    }

    /// Aborts the transfer because of `failure`; the sender is notified.
    pub fn abort(&mut self, now: Instant, failure: Failure) {
        match self.phase {
            Phase::Listening => self.end(failure),
            Phase::Open => {
                self.failure.get_or_insert(failure);
                self.phase = Phase::Closing { tries_left: INCOMPLETE_TRIES };
                self.again = now;
            }
            // A finished transfer cannot be aborted, but the closing phase can be cut short.
            Phase::Lingering { .. } => self.phase = Phase::Ended,
            Phase::Closing { .. } | Phase::Ended => {}
        }
    }

    /// Whether a sender has connected.
    pub fn is_connected(&self) -> bool {
        self.half.is_some()
    }

    /// Whether the transfer is over; the endpoint may still be in the closing phase.
    pub fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Lingering { .. } | Phase::Ended)
    }

    /// Whether the closing phase is over too.
    pub fn has_ended(&self) -> bool {
        self.phase == Phase::Ended && self.answer.is_none()
    }

    /// Why the transfer failed.
    pub fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    /// The sender's address.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.half.as_ref().map(|(_, peer)| peer.address)
    }

    /// The parameters that the half was built from.
    pub fn parameters(&self) -> Option<&str> {
        self.parameters.as_deref()
    }

    /// When the first data packet arrived, in the driver's time.
    pub fn first_data(&self) -> Option<Instant> {
        self.first_data
    }

    /// Segments of which a part arrived and that were not judged.
    pub fn unfinished_segments(&self) -> u64 {
        self.store.unfinished()
    }

    /// The counters.
    pub fn counters(&self) -> AdapterCounters {
        self.counters
    }

    /// The half, for its gauges; `None` before a sender has connected.
    pub fn half(&self) -> Option<&R> {
        self.half.as_ref().map(|(half, _)| half)
    }

    fn end(&mut self, failure: Failure) {
        self.failure.get_or_insert(failure);
        self.phase = Phase::Ended;
    }

    fn answer(&mut self, to: SocketAddr, from: Local, header: AdapterHeader, body: &[u8]) {
        let mut datagram = Vec::with_capacity(HEADER_BYTES + body.len());
        header.append(&mut datagram);
        datagram.extend_from_slice(body);
        self.answer = Some((to, from, datagram));
    }

    /// A request while no sender is connected.
    fn on_request(&mut self, now: Instant, from: SocketAddr, to: Local, header: AdapterHeader, body: &[u8]) {
        let parameters = std::str::from_utf8(body).ok().filter(|text| text.len() <= PARAMETERS_BYTES_MAX);
        let built = match parameters {
            Some(text) => (self.build)(text).map(|half| (half, text)),
            None => Err(format!("parameters are text of at most {PARAMETERS_BYTES_MAX} bytes")),
        };
        match built {
            Ok((half, text)) => {
                let mut peer = Peer::new(now, from, to, header.connection);
                peer.start_time(now);
                self.counters.note_received(HEADER_BYTES + body.len());
                self.parameters = Some(text.to_owned());
                self.half = Some((half, peer));
                self.phase = Phase::Open;
                self.answer(from, to, AdapterHeader { kind: Kind::Opened, ..header }, &[]);
            }
            Err(reason) => {
                self.counters.requests_refused += 1;
                let shown = reason.as_bytes().get(..REASON_BYTES_MAX).unwrap_or(reason.as_bytes());
                self.answer(from, to, AdapterHeader { kind: Kind::Refused, detail: 0, ..header }, shown);
            }
        }
    }

    fn on_packet(&mut self, now: Instant, detail: u16, body: &[u8]) {
        let Some((half, peer)) = &mut self.half else { return };
        let Ok(packet) = R::Forward::decode(&mut Reader::new(body)) else {
            self.counters.malformed += 1;
            return;
        };
        let spans = || (0..).map_while(|index| packet.payload(index));
        let piece = |at: usize, bytes: usize| at.checked_add(bytes).and_then(|end| body.get(at..end));
        if spans().any(|span| piece(span.at, span.bytes).is_none()) {
            self.counters.malformed += 1;
            return;
        }
        if !self.store.admits(spans()) {
            self.counters.refused_by_store += 1;
            return;
        }
        for span in spans() {
            self.store.write(&span, piece(span.at, span.bytes).unwrap_or_default(), detail);
        }
        if packet.is_data() {
            self.first_data.get_or_insert(now);
        }
        self.counters.note_packet_received(packet.is_data());
        half.handle_forward(peer.half_time(now), &packet);
        self.process_half_events(now);
    }

    /// Processes the verdicts of the half.
    fn process_half_events(&mut self, now: Instant) {
        let Some((half, peer)) = &mut self.half else { return };
        let accepted = peer.half_time(now);
        while let Some(event) = half.poll_event() {
            let ReceiverEvent::Delivered { stream, segment, verdict, units, holes } = event else { continue };
            // Limit: one stream; the schemes have no more.
            let Some(payload) = (stream.0 == 0).then(|| self.store.take(segment.0, units)).flatten() else { continue };
            let (bytes, length, missing) = (payload.bytes, payload.length, payload.missing);
            let delivery = Delivery { segment, verdict, units, holes, length, bytes, missing, accepted };
            if self.config.in_order {
                self.early.insert(segment.0, (delivery, payload.cost));
            } else {
                self.deliveries.push_back((delivery, payload.cost));
            }
        }
        while self.early.first_key_value().is_some_and(|(number, _)| *number < self.store.base()) {
            self.deliveries.extend(self.early.pop_first().map(|(_, delivery)| delivery));
        }
    }

    fn on_close(&mut self, now: Instant, from: SocketAddr, to: Local, header: AdapterHeader) {
        self.answer(from, to, AdapterHeader { kind: Kind::Closed, detail: 0, ..header }, &[]);
        if matches!(self.phase, Phase::Open | Phase::Closing { .. }) {
            if header.detail == INCOMPLETE {
                self.failure.get_or_insert(Failure::EndedByPeer { peer: from });
            }
            // Delivers the segments that wait for earlier ones, which will not come any more.
            self.deliveries.extend(std::mem::take(&mut self.early).into_values());
            self.phase = Phase::Lingering { until: now + self.config.timing.repeat * CLOSING_REPLIES };
        }
    }

    fn send_packets(&mut self, now: Instant, max_datagrams: usize, out: &mut Vec<u8>) -> Option<Transmit> {
        let (half, peer) = self.half.as_mut()?;
        let (half_now, to, from) = (peer.half_time(now), peer.address, peer.local);
        let counters = &mut self.counters;
        let appended = self.batches.append(
            max_datagrams,
            out,
            || half.poll_transmit(half_now),
            |packet, out| {
                append_packet(packet, peer.header(Kind::Packet, 0), out)?;
                counters.note_sent(packet.encoded_len() + HEADER_BYTES);
                counters.note_packet_sent(packet.is_data());
                Ok(())
            },
        );
        self.process_half_events(now);
        match appended {
            Ok(size) => size.map(|datagram_bytes| Transmit { to, from, datagram_bytes, ecn: None }),
            Err(unfit) => {
                self.abort(now, Failure::UnfitPacket { bytes: unfit.0 });
                None
            }
        }
    }
}

impl<R: Receiver, B: FnMut(&str) -> Result<R, String>> Endpoint for ReceivingEndpoint<R, B> {
    fn handle_datagram(&mut self, now: Instant, arrival: Arrival, datagram: &mut [u8]) {
        let Some((header, body)) = self.counters.open(datagram) else { return };
        let (from, to) = (arrival.from, arrival.to);
        let Some((_, peer)) = &mut self.half else {
            match (header.kind, self.phase) {
                (Kind::Open, Phase::Listening) => self.on_request(now, from, to, header, body),
                _ => self.counters.stray += 1,
            }
            return;
        };
        if !peer.is(from, header) {
            self.counters.stray += 1;
            return;
        }
        self.counters.note_received(datagram.len());
        peer.heard = now;
        match (header.kind, self.phase) {
            (Kind::Open, Phase::Open) => self.answer(from, to, AdapterHeader { kind: Kind::Opened, ..header }, &[]),
            (Kind::Packet, Phase::Open) => self.on_packet(now, header.detail, body),
            (Kind::Close, _) => self.on_close(now, from, to, header),
            (Kind::Closed, Phase::Closing { .. }) => self.phase = Phase::Ended,
            // A repeated CLOSE: our answer was lost.
            (Kind::Packet | Kind::Open, Phase::Closing { .. } | Phase::Lingering { .. }) => {}
            _ => self.counters.unexpected += 1,
        }
    }

    fn poll_transmit(&mut self, now: Instant, max_datagrams: usize, out: &mut Vec<u8>) -> Option<Transmit> {
        if let Some((to, from, datagram)) = self.answer.take() {
            self.counters.note_sent(datagram.len());
            out.extend_from_slice(&datagram);
            return Some(Transmit { to, from, datagram_bytes: datagram.len(), ecn: None });
        }
        match self.phase {
            Phase::Open => self.send_packets(now, max_datagrams, out),
            Phase::Closing { tries_left: tries_left @ 1.. } if now >= self.again => {
                self.phase = Phase::Closing { tries_left: tries_left - 1 };
                self.again = now + self.config.timing.repeat;
                let (_, peer) = self.half.as_ref()?;
                peer.header(Kind::Close, INCOMPLETE).append(out);
                self.counters.note_sent(HEADER_BYTES);
                Some(Transmit { to: peer.address, from: peer.local, datagram_bytes: HEADER_BYTES, ecn: None })
            }
            _ => None,
        }
    }

    fn poll_deadline(&self) -> Option<Deadline> {
        let own = |at, timer| Some(Deadline { at, timer });
        match self.phase {
            Phase::Open => {
                let (half, peer) = self.half.as_ref()?;
                let half = half.poll_timeout().map(|deadline| peer.driver_deadline(deadline));
                Deadline::earlier(half, own(peer.heard + self.config.timing.idle_timeout, "silence"))
            }
            Phase::Closing { .. } => own(self.again, "close"),
            Phase::Lingering { until } => own(until, "linger"),
            Phase::Listening | Phase::Ended => None,
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        let idle_timeout = self.config.timing.idle_timeout;
        match (self.phase, &mut self.half) {
            (Phase::Open, Some((_, peer))) if now >= peer.heard + idle_timeout => {
                let peer = peer.address;
                self.deliveries.extend(std::mem::take(&mut self.early).into_values());
                self.end(Failure::Silent { peer, waited: idle_timeout });
            }
            (Phase::Open, Some((half, peer))) => {
                let half_now = peer.half_time(now);
                if half.poll_timeout().is_some_and(|deadline| deadline.at <= half_now) {
                    half.handle_timeout(half_now);
                    self.process_half_events(now);
                }
            }
            (Phase::Closing { tries_left: 0 }, _) if now >= self.again => self.phase = Phase::Ended,
            (Phase::Lingering { until }, _) if now >= until => self.phase = Phase::Ended,
            _ => {}
        }
    }
}
