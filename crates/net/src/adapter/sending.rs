//! The sending end: a [`Sender`] half, the bytes of its segments, and a receiver's address.
//!
//! Called by a driver as an [`Endpoint`], and by [`super::send_blocking`] or any application that submits.
//!
//! OPEN is repeated until it is answered. Then the half runs, in a time that starts at zero. When the half is finished and every
//! segment is judged, CLOSE is repeated until it is answered or the maximum number of attempts is reached.
//!
//! Invariant: it ends, whatever the network does: by CLOSED, after the last attempt, or by the idle timeout. Every accepted segment
//! is judged once, as *unknown* if the transfer ends first.

use super::failure::Failure;
use super::gso_batch::{GsoBatches, append_packet};
use super::header::{INCOMPLETE, Kind, PARAMETERS_BYTES_MAX, printable};
use super::peer::{AdapterCounters, Peer, Timing};
use super::send_payloads::SendPayloads;
use super::{AdapterError, INCOMPLETE_TRIES};
use segstream_base::codec::Reader;
use segstream_base::endpoint::{Arrival, Deadline, Endpoint, Local, Transmit};
use segstream_base::halves::{
    Packet as _, Reconfigure, ReconfigureError, Segment, SegmentNumber, Sender, SenderEvent, StreamId, SubmitError, Verdict,
};
use segstream_base::{Duration, Instant, Tolerance};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// How many send times of OPEN are kept, to measure the RTT.
const OPEN_TIMES_MAX: usize = 32;

/// The events of a sending end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendingEvent {
    /// The receiver has built its half.
    Opened,
    /// A segment that was refused with [`SubmitError::Blocked`] may be accepted now.
    WindowOpen,
    /// The verdict on a segment.
    Judged {
        /// The segment, counted from 0.
        segment: SegmentNumber,
        /// The verdict; [`Verdict::Unknown`] when the transfer ended first.
        verdict: Verdict,
        /// The length of the segment.
        bytes: u64,
    },
}

/// A segment that was not accepted, returned to the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotTaken {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Why not.
    pub cause: SubmitError,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Opening { since: Instant },
    Open,
    Closing { tries_left: u32, detail: u16 },
    Ended { confirmed: bool },
}

/// A [`Sender`] half as an [`Endpoint`].
#[derive(Debug)]
pub struct SendingEndpoint<S: Sender> {
    half: S,
    peer: Peer,
    parameters: String,
    timing: Timing,
    phase: Phase,
    /// When OPEN or CLOSE is repeated.
    again: Instant,
    /// The number of the last OPEN, and the send times of the latest ones.
    tries: u16,
    asked: VecDeque<(u16, Instant)>,
    rtt_min: Option<Duration>,
    store: SendPayloads,
    batches: GsoBatches<S::Forward>,
    events: VecDeque<SendingEvent>,
    finished: bool,
    /// Whether a CLOSED is pending.
    answer: bool,
    failure: Option<Failure>,
    counters: AdapterCounters,
}

impl<S: Sender> SendingEndpoint<S> {
    /// A sender to `remote` that requests a receiving half with `parameters`, a text that only the receiver's builder interprets.
    /// The time of `half` begins at [`Instant::ZERO`] when the connection opens. `connection` distinguishes transfers between
    /// the same addresses.
    ///
    /// # Errors
    ///
    /// [`AdapterError::LongParameters`] above [`PARAMETERS_BYTES_MAX`] bytes.
    pub fn new(
        now: Instant,
        half: S,
        remote: SocketAddr,
        connection: u32,
        parameters: impl Into<String>,
        timing: Timing,
    ) -> Result<Self, AdapterError> {
        let parameters = parameters.into();
        if parameters.len() > PARAMETERS_BYTES_MAX {
            return Err(AdapterError::LongParameters { bytes: parameters.len() });
        }
        Ok(Self {
            half,
            peer: Peer::new(now, remote, Local::ANY, connection),
            parameters,
            timing,
            phase: Phase::Opening { since: now },
            again: now,
            tries: 0,
            asked: VecDeque::new(),
            rtt_min: None,
            store: SendPayloads::default(),
            batches: GsoBatches::new(),
            events: VecDeque::new(),
            finished: false,
            answer: false,
            failure: None,
            counters: AdapterCounters::default(),
        })
    }

    /// Submits a whole segment of stream 0.
    ///
    /// # Errors
    ///
    /// The error of the half, with the bytes; [`SubmitError::Finished`] also when the transfer is ending.
    pub fn submit(&mut self, now: Instant, bytes: Vec<u8>, tolerance: Option<Tolerance>) -> Result<SegmentNumber, NotTaken> {
        if self.finished || !matches!(self.phase, Phase::Opening { .. } | Phase::Open) {
            return Err(NotTaken { bytes, cause: SubmitError::Finished });
        }
        let now = self.peer.half_time(now);
        let segment = Segment { stream: StreamId(0), bytes: Some(bytes.len() as u64), source_time: now, tolerance };
        match self.half.submit(now, segment) {
            Ok(number) => {
                self.store.insert(StreamId(0), number, bytes);
                Ok(number)
            }
            Err(cause) => Err(NotTaken { bytes, cause }),
        }
    }

    /// Ends the stream: no more segments will be submitted. The transfer closes when all are judged.
    pub fn finish(&mut self, now: Instant) {
        if !self.finished {
            self.finished = true;
            self.half.finish(self.peer.half_time(now));
            self.process_half_events(now);
        }
    }

    /// Changes rate or class while data flows.
    ///
    /// # Errors
    ///
    /// The error of the half.
    pub fn reconfigure(&mut self, now: Instant, change: Reconfigure) -> Result<(), ReconfigureError> {
        self.half.reconfigure(self.peer.half_time(now), change)
    }

    /// Aborts the transfer because of `failure`; the receiver is notified.
    pub fn abort(&mut self, now: Instant, failure: Failure) {
        match self.phase {
            Phase::Opening { .. } => self.end(Some(failure)),
            Phase::Open => {
                self.failure.get_or_insert(failure);
                self.judge_remaining_unknown();
                self.phase = Phase::Closing { tries_left: INCOMPLETE_TRIES, detail: INCOMPLETE };
                self.again = now;
            }
            // Every segment is judged, or CLOSE is being sent already.
            Phase::Closing { .. } | Phase::Ended { .. } => {}
        }
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<SendingEvent> {
        self.events.pop_front()
    }

    /// Whether the connection is open.
    pub fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }

    /// Whether the transfer has ended.
    pub fn has_ended(&self) -> bool {
        matches!(self.phase, Phase::Ended { .. }) && !self.answer
    }

    /// Whether the receiver has confirmed the end.
    pub fn is_confirmed(&self) -> bool {
        self.phase == Phase::Ended { confirmed: true }
    }

    /// Why the transfer failed.
    pub fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    /// The counters.
    pub fn counters(&self) -> AdapterCounters {
        self.counters
    }

    /// The minimum RTT measured with OPEN: once at the beginning, and with every keep-alive.
    pub fn rtt_min(&self) -> Option<Duration> {
        self.rtt_min
    }

    /// The receiver's address.
    pub fn remote(&self) -> SocketAddr {
        self.peer.address
    }

    /// Bytes of segments without a verdict.
    pub fn unjudged_bytes(&self) -> u64 {
        self.store.bytes()
    }

    /// The half, for its counters and gauges.
    pub fn half(&self) -> &S {
        &self.half
    }

    /// Processes the events of the half, and starts closing when it has finished.
    fn process_half_events(&mut self, now: Instant) {
        while let Some(event) = self.half.poll_event() {
            match event {
                SenderEvent::Judged { stream, segment, verdict } => {
                    if let Some(bytes) = self.store.remove(stream, segment) {
                        self.events.push_back(SendingEvent::Judged { segment, verdict, bytes });
                    }
                }
                SenderEvent::WindowOpen(_) => self.events.push_back(SendingEvent::WindowOpen),
                _ => {}
            }
        }
        if self.phase == Phase::Open && self.finished && self.store.is_empty() {
            self.phase = Phase::Closing { tries_left: self.timing.close_tries.max(1), detail: 0 };
            self.again = now;
        }
    }

    fn judge_remaining_unknown(&mut self) {
        while let Some((_, segment, bytes)) = self.store.pop() {
            self.events.push_back(SendingEvent::Judged { segment, verdict: Verdict::Unknown, bytes });
        }
    }

    fn end(&mut self, failure: Option<Failure>) {
        self.judge_remaining_unknown();
        self.phase = Phase::Ended { confirmed: failure.is_none() };
        if let Some(failure) = failure {
            self.failure.get_or_insert(failure);
        }
    }

    fn on_opened(&mut self, now: Instant, number: u16) {
        if let Some((_, at)) = self.asked.iter().find(|(asked, _)| *asked == number) {
            let sample = now.since(*at);
            self.rtt_min = Some(self.rtt_min.map_or(sample, |min| min.min(sample)));
        }
        if matches!(self.phase, Phase::Opening { .. }) {
            self.peer.start_time(now);
            self.phase = Phase::Open;
            self.events.push_back(SendingEvent::Opened);
            self.process_half_events(now);
        }
    }

    fn on_packet(&mut self, now: Instant, body: &[u8]) {
        let Ok(packet) = S::Feedback::decode(&mut Reader::new(body)) else {
            self.counters.malformed += 1;
            return;
        };
        self.counters.note_packet_received(packet.is_data());
        self.half.handle_feedback(self.peer.half_time(now), &packet);
        self.process_half_events(now);
    }

    fn on_close(&mut self) {
        self.answer = true;
        if !matches!(self.phase, Phase::Ended { .. }) {
            self.end(Some(Failure::EndedByPeer { peer: self.peer.address }));
        }
    }

    /// When a keep-alive is due.
    fn keep_alive_at(&self) -> Instant {
        self.again.max(self.peer.heard + self.timing.idle_timeout / 4)
    }

    fn send_control(&mut self, kind: Kind, detail: u16, body: &[u8], out: &mut Vec<u8>) -> Transmit {
        let start = out.len();
        self.peer.header(kind, detail).append(out);
        out.extend_from_slice(body);
        let bytes = out.len() - start;
        self.counters.note_sent(bytes);
        Transmit { to: self.peer.address, from: self.peer.local, datagram_bytes: bytes, ecn: None }
    }

    fn send_open(&mut self, now: Instant, again: Instant, out: &mut Vec<u8>) -> Transmit {
        self.again = again;
        self.tries = self.tries.wrapping_add(1);
        if self.asked.len() == OPEN_TIMES_MAX {
            self.asked.pop_front();
        }
        self.asked.push_back((self.tries, now));
        let parameters = std::mem::take(&mut self.parameters);
        let transmit = self.send_control(Kind::Open, self.tries, parameters.as_bytes(), out);
        self.parameters = parameters;
        transmit
    }

    fn send_packets(&mut self, now: Instant, max_datagrams: usize, out: &mut Vec<u8>) -> Option<Transmit> {
        let half_now = self.peer.half_time(now);
        let Self { half, batches, store, peer, counters, .. } = self;
        let appended = batches.append(
            max_datagrams,
            out,
            || half.poll_transmit(half_now),
            |packet, out| {
                let at = append_packet(packet, peer.header(Kind::Packet, store.length_detail(packet)), out)?;
                store.fill(packet, out.get_mut(at..).unwrap_or_default());
                counters.note_sent(packet.encoded_len() + super::HEADER_BYTES);
                counters.note_packet_sent(packet.is_data());
                Ok(())
            },
        );
        let sent = match appended {
            Ok(size) => size.map(|datagram_bytes| Transmit { to: self.peer.address, from: self.peer.local, datagram_bytes, ecn: None }),
            Err(unfit) => {
                self.abort(now, Failure::UnfitPacket { bytes: unfit.0 });
                None
            }
        };
        self.process_half_events(now);
        sent
    }
}

impl<S: Sender> Endpoint for SendingEndpoint<S> {
    fn handle_datagram(&mut self, now: Instant, arrival: Arrival, datagram: &mut [u8]) {
        let Some((header, body)) = self.counters.open(datagram) else { return };
        if !self.peer.is(arrival.from, header) {
            self.counters.stray += 1;
            return;
        }
        self.counters.note_received(datagram.len());
        self.peer.heard = now;
        match (header.kind, self.phase) {
            (Kind::Opened, _) => self.on_opened(now, header.detail),
            (Kind::Refused, Phase::Opening { .. }) => self.end(Some(Failure::Refused { reason: printable(body) })),
            (Kind::Packet, Phase::Open) => self.on_packet(now, body),
            (Kind::Close, _) => self.on_close(),
            (Kind::Closed, Phase::Closing { .. }) => {
                self.phase = Phase::Ended { confirmed: true };
            }
            // A packet that was still on its way when the transfer ended.
            (Kind::Packet, Phase::Closing { .. }) => {}
            _ => self.counters.unexpected += 1,
        }
    }

    fn poll_transmit(&mut self, now: Instant, max_datagrams: usize, out: &mut Vec<u8>) -> Option<Transmit> {
        if std::mem::take(&mut self.answer) {
            return Some(self.send_control(Kind::Closed, 0, &[], out));
        }
        match self.phase {
            Phase::Opening { .. } if now >= self.again => Some(self.send_open(now, now + self.timing.repeat, out)),
            Phase::Open if now >= self.keep_alive_at() => Some(self.send_open(now, now + self.timing.idle_timeout / 8, out)),
            Phase::Open => {
                let sent = self.send_packets(now, max_datagrams, out);
                // Why again: the last verdict has started the close.
                if sent.is_none() && !self.is_open() { self.poll_transmit(now, max_datagrams, out) } else { sent }
            }
            Phase::Closing { tries_left: 1.., detail } if now >= self.again => {
                if let Phase::Closing { tries_left, .. } = &mut self.phase {
                    *tries_left -= 1;
                }
                self.again = now + self.timing.repeat;
                Some(self.send_control(Kind::Close, detail, &[], out))
            }
            _ => None,
        }
    }

    fn poll_deadline(&self) -> Option<Deadline> {
        let own = |at, timer| Some(Deadline { at, timer });
        match self.phase {
            Phase::Opening { since } => own(self.again.min(since + self.timing.open_timeout), "open"),
            Phase::Open => {
                let half = self.half.poll_timeout().map(|deadline| self.peer.driver_deadline(deadline));
                let life = own(self.keep_alive_at().min(self.peer.heard + self.timing.idle_timeout), "silence");
                Deadline::earlier(half, life)
            }
            Phase::Closing { .. } => own(self.again, "close"),
            Phase::Ended { .. } => None,
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        let peer = self.peer.address;
        match self.phase {
            Phase::Opening { since } if now >= since + self.timing.open_timeout => {
                self.end(Some(Failure::NotAnswered { peer, waited: self.timing.open_timeout }));
            }
            Phase::Open if now >= self.peer.heard + self.timing.idle_timeout => {
                self.end(Some(Failure::Silent { peer, waited: self.timing.idle_timeout }));
            }
            Phase::Open => {
                let half_now = self.peer.half_time(now);
                if self.half.poll_timeout().is_some_and(|deadline| deadline.at <= half_now) {
                    self.half.handle_timeout(half_now);
                    self.process_half_events(now);
                }
            }
            Phase::Closing { tries_left: 0, .. } if now >= self.again => self.phase = Phase::Ended { confirmed: false },
            _ => {}
        }
    }
}
