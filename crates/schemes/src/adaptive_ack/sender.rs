//! The sending half of adaptive acknowledgment: a transmission buffer, packets asked for again before new ones.
//!
//! Called by the laboratory under the contract of the halves. Source: AA 2, transmitter operations.
//!
//! Its three tasks: new packets leave in the order of their numbers and are kept; packets gap-in to gap-out - 1 of an
//! acknowledgment are put into the retransmission queue; packets below the cumulative number are released. There is no
//! timer: what is lost, an acknowledgment included, comes to light by the receiver's next status.
//!
//! Invariant: no packet beyond the window leaves; at most two windows of packets and one segment are kept; each waits to be sent
//! again at most once, and never once it is acknowledged.
//!
//! Limit: 2^32 - 2 packets a connection, its end counted; then [`SubmitError::Finished`].

use super::packet::{Feedback, Forward, Place};
use super::retransmission::Retransmission;
use super::tail::TailRule;
use super::{Config, ConfigError};
use core::ops::Range;
use segstream_base::halves::{
    Deadline, Packet as _, Probe, Reconfigure, ReconfigureError, Segment, SegmentNumber, SenderCounters, SenderEvent, StreamId,
    SubmitError, Verdict,
};
use segstream_base::{Bytes, Instant};
use segstream_blocks::{Pacer, RateSpec};
use std::collections::VecDeque;

/// A segment of which packets are still to be sent for the first time.
#[derive(Clone, Copy, Debug)]
struct Fresh {
    packets: u16,
    /// Payload of its last packet.
    last_bytes: u16,
}

/// A packet of the transmission buffer.
#[derive(Clone, Copy, Debug)]
struct Sent {
    /// `None` for the end of the stream.
    place: Option<Place>,
    bytes: u16,
    /// When it left last.
    at: Instant,
    /// It left more than once.
    again: bool,
    /// It is in the retransmission queue.
    queued: bool,
}

/// The sending half.
#[derive(Clone, Debug)]
pub struct Sender {
    config: Config,
    stride: u16,
    pacer: Pacer,
    retransmission: Retransmission,
    tail: TailRule,
    /// The transmission buffer: the packets from `base` on that have left.
    sent: VecDeque<Sent>,
    /// The first packet that is not acknowledged.
    base: u32,
    /// Segments not wholly sent, the first of which is `segment`, and how many of its packets have left.
    fresh: VecDeque<Fresh>,
    segment: u32,
    begun: u16,
    /// Packets of `fresh` that have not left.
    unsent: u64,
    end: End,
    /// A submission was refused.
    blocked: bool,
    events: VecDeque<SenderEvent>,
    counters: SenderCounters,
}

/// How far the end of the stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Open,
    Finished,
    Sent,
}

impl Sender {
    /// A sender whose first packet may leave at `now`.
    ///
    /// # Errors
    /// When [`Config::check`] refuses `config`.
    pub fn new(config: Config, now: Instant) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            // `check` has bounded it.
            stride: config.payload_bytes() as u16,
            pacer: Pacer::new(config.rate, now),
            retransmission: Retransmission::new(&config),
            tail: TailRule::new(config.tail_rule),
            sent: VecDeque::new(),
            base: 0,
            fresh: VecDeque::new(),
            segment: 0,
            begun: 0,
            unsent: 0,
            end: End::Open,
            blocked: false,
            events: VecDeque::new(),
            counters: SenderCounters::default(),
            config,
        })
    }

    /// Whether a packet could leave if the rate allowed.
    #[inline]
    fn has_work(&self) -> bool {
        !self.retransmission.is_empty() || self.may_begin()
    }

    /// Whether the window lets a new packet leave, and there is one.
    #[inline]
    fn may_begin(&self) -> bool {
        self.sent.len() < self.config.window as usize && (self.unsent > 0 || self.end == End::Finished)
    }

    /// The number of the next new packet.
    #[inline]
    fn next(&self) -> u32 {
        self.base + self.sent.len() as u32
    }

    #[inline]
    fn sent(&mut self, sequence: u32) -> Option<&mut Sent> {
        self.sent.get_mut(sequence.checked_sub(self.base)? as usize)
    }

    /// The next packet that leaves for the first time.
    #[inline]
    fn begin(&mut self, now: Instant) -> Option<Forward> {
        if !self.may_begin() {
            return None;
        }
        let (place, bytes) = match self.fresh.front() {
            Some(Fresh { packets, last_bytes }) => {
                let place = Place { segment: self.segment, packet: self.begun, packets: *packets };
                (Some(place), if place.is_last() { *last_bytes } else { self.stride })
            }
            None => (None, 0),
        };
        match place {
            Some(place) => self.count_begun(place),
            None => self.end = End::Sent,
        }
        let sequence = self.next();
        let sent = Sent { place, bytes, at: now, again: false, queued: false };
        self.sent.push_back(sent);
        Some(self.packet(now, sequence, sent))
    }

    fn count_begun(&mut self, place: Place) {
        self.counters.packets_sent += 1;
        self.unsent -= 1;
        if place.packet == 0 {
            self.events.push_back(SenderEvent::Started { stream: StreamId(0), segment: SegmentNumber(u64::from(place.segment)) });
        }
        self.begun += 1;
        if place.is_last() {
            self.fresh.pop_front();
            self.segment += 1;
            self.begun = 0;
        }
    }

    /// A packet that leaves again.
    fn repeat(&mut self, now: Instant, sequence: u32) -> Option<Forward> {
        let sent = self.sent(sequence)?;
        (sent.at, sent.again, sent.queued) = (now, true, false);
        let sent = *sent;
        if sent.place.is_some() {
            self.counters.packets_sent += 1;
            self.counters.packets_retransmitted += 1;
        }
        Some(self.packet(now, sequence, sent))
    }

    fn packet(&mut self, now: Instant, sequence: u32, sent: Sent) -> Forward {
        let connection = self.config.connection;
        let packet = match sent.place {
            Some(place) => Forward::Data { connection, sequence, place, stride: self.stride, bytes: sent.bytes },
            None => Forward::End { connection, sequence },
        };
        self.pacer.on_sent(now, Bytes::new(packet.encoded_len() as u64));
        packet
    }

    /// Whether an acknowledgment speaks of what was sent, and is no older than one that came before.
    #[inline]
    fn is_credible(&self, packet: &Feedback) -> bool {
        let (cumulative, next) = (packet.cumulative, self.next());
        // The packet behind a gap has arrived, so it has left.
        let gap = cumulative <= packet.gap_in && packet.gap_in < packet.gap_out && packet.gap_out < next;
        packet.connection == self.config.connection && self.base <= cumulative && cumulative <= next && (gap || !packet.names_gap())
    }

    /// Samples the round trip by the newest packet that an acknowledgment says has arrived.
    #[inline]
    fn sample(&mut self, now: Instant, packet: &Feedback) {
        let newest = if packet.names_gap() { Some(packet.gap_out) } else { packet.cumulative.checked_sub(1) };
        let left = newest.and_then(|sequence| self.sent(sequence)).filter(|sent| !sent.again).map(|sent| sent.at);
        if let Some(left) = left {
            self.retransmission.on_sample(now.since(left));
        }
    }

    /// Releases the packets below `cumulative`.
    #[inline]
    fn release(&mut self, cumulative: u32) {
        if cumulative == self.base {
            return;
        }
        while self.base < cumulative
            && let Some(sent) = self.sent.pop_front()
        {
            self.base += 1;
            if let Some(place) = sent.place.filter(|place| place.is_last()) {
                let segment = SegmentNumber(u64::from(place.segment));
                self.events.push_back(SenderEvent::Judged { stream: StreamId(0), segment, verdict: Verdict::Complete });
            }
        }
        self.retransmission.release(self.base);
        if self.blocked && !self.is_full() {
            self.blocked = false;
            self.events.push_back(SenderEvent::WindowOpen(StreamId(0)));
        }
    }

    /// Puts the packets of a gap into the retransmission queue, as far as the gap can speak of them.
    fn request(&mut self, now: Instant, gap: Range<u32>) {
        self.queue(gap, |retransmission, sent| !sent.again || retransmission.may_speak_of(now, sent.at));
    }

    /// Puts all packets from `from` on into the retransmission queue, as far as they may be held lost.
    fn request_tail(&mut self, now: Instant, from: u32) {
        self.queue(from..self.next(), |retransmission, sent| retransmission.is_overdue(now, sent.at));
    }

    /// Puts those of `numbers` that are `due` and not yet in it into the retransmission queue.
    fn queue(&mut self, numbers: Range<u32>, due: impl Fn(&Retransmission, &Sent) -> bool) {
        let first = numbers.start.saturating_sub(self.base) as usize;
        for (sequence, sent) in numbers.zip(self.sent.iter_mut().skip(first)) {
            if !sent.queued && due(&self.retransmission, sent) {
                sent.queued = true;
                self.retransmission.push(sequence);
            }
        }
    }

    fn is_full(&self) -> bool {
        self.unsent + self.sent.len() as u64 >= 2 * u64::from(self.config.window)
    }

    /// The packets of a segment of `bytes` and the payload of the last of them.
    fn packets_of(&self, bytes: u64) -> Result<Fresh, SubmitError> {
        let stride = u64::from(self.stride);
        let packets = bytes.div_ceil(stride).max(1);
        let limit = u64::from(self.config.segment_packets);
        match u16::try_from(packets) {
            // The rest is at most one stride.
            Ok(count) if packets <= limit => Ok(Fresh { packets: count, last_bytes: (bytes - (packets - 1) * stride) as u16 }),
            _ => Err(SubmitError::TooLong { units: packets, window: limit }),
        }
    }
}

impl segstream_base::halves::Sender for Sender {
    type Forward = Forward;
    type Feedback = Feedback;

    /// Takes a segment of stream 0, while fewer than two windows of packets are kept. A tolerance is not regarded: all
    /// is delivered. An open segment is refused as [`SubmitError::Finished`], as is another stream.
    fn submit(&mut self, _now: Instant, segment: Segment) -> Result<SegmentNumber, SubmitError> {
        let Some(bytes) = segment.bytes else { return Err(SubmitError::Finished) };
        let fresh = self.packets_of(bytes)?;
        let packets = u64::from(fresh.packets);
        let after = u64::from(self.next()) + self.unsent + packets;
        // Why below the maximum: the end and the number after it must exist.
        if self.end != End::Open || segment.stream != StreamId(0) || after >= u64::from(u32::MAX) {
            return Err(SubmitError::Finished);
        }
        if self.is_full() {
            self.blocked = true;
            return Err(SubmitError::Blocked);
        }
        let number = self.segment + self.fresh.len() as u32;
        self.fresh.push_back(fresh);
        self.unsent += packets;
        Ok(SegmentNumber(u64::from(number)))
    }

    /// Always [`SubmitError::Finished`]: no segment is ever open.
    fn append(&mut self, _now: Instant, _stream: StreamId, _bytes: u64, _last: bool) -> Result<(), SubmitError> {
        Err(SubmitError::Finished)
    }

    fn finish(&mut self, _now: Instant) {
        if self.end == End::Open {
            self.end = End::Finished;
        }
    }

    fn reconfigure(&mut self, now: Instant, change: Reconfigure) -> Result<(), ReconfigureError> {
        let Reconfigure::Rate(rate) = change else { return Err(ReconfigureError::Unsupported) };
        if rate.is_zero() {
            return Err(ReconfigureError::OutOfRange);
        }
        self.config.rate = RateSpec::smooth(rate);
        self.pacer.set_spec(now, self.config.rate);
        self.events.push_back(SenderEvent::RateChanged(rate));
        Ok(())
    }

    fn handle_feedback(&mut self, now: Instant, packet: &Feedback) {
        if !self.is_credible(packet) {
            return;
        }
        self.sample(now, packet);
        self.release(packet.cumulative);
        if packet.names_gap() {
            self.tail.on_gap();
            self.request(now, packet.gap_in..packet.gap_out);
        } else if self.tail.on_status(packet.cumulative, self.next()) {
            self.request_tail(now, packet.cumulative);
        }
    }

    #[inline]
    fn poll_transmit(&mut self, now: Instant) -> Option<Forward> {
        if !self.has_work() {
            self.pacer.on_idle(now);
            return None;
        }
        if !self.pacer.ready(now) {
            return None;
        }
        match self.retransmission.pop() {
            Some(sequence) => self.repeat(now, sequence),
            None => self.begin(now),
        }
    }

    /// `pacing` for the next packet, or `None`: the timer of the scheme is the receiver's.
    #[inline]
    fn poll_timeout(&self) -> Option<Deadline> {
        let at = self.has_work().then(|| self.pacer.next_departure())??;
        Some(Deadline { at, timer: "pacing" })
    }

    /// Always `None`: this half has no control but the end of the stream, which waits as data does.
    #[inline]
    fn poll_control_timeout(&self) -> Option<Deadline> {
        None
    }

    /// Does nothing.
    fn handle_timeout(&mut self, _now: Instant) {}

    #[inline]
    fn poll_event(&mut self) -> Option<SenderEvent> {
        self.events.pop_front()
    }

    fn counters(&self) -> SenderCounters {
        self.counters
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.gauge("window_packets", f64::from(self.config.window));
        out.gauge("in_flight_packets", self.sent.len() as f64);
        out.gauge("queued_packets", self.unsent as f64);
        out.gauge("repeats_packets", self.retransmission.len() as f64);
        if let Some(rtt) = self.retransmission.rtt() {
            out.gauge("rtt_ms", rtt.as_secs_f64() * 1e3);
        }
        out.gauge("rate_bps", self.config.rate.peak().bits_per_second() as f64);
    }
}
