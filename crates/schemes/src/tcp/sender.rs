//! The sending half of TCP: a fixed window, packets sent again before new ones.
//!
//! Called by the laboratory under the contract of the halves. Source: HT 7.
//!
//! A packet is under way, its timer running, or waits to be sent again, its timer run out. Packets that arrived behind
//! a lost one are not acknowledged until that one is, so the timers of all the window run out after its: all of it is
//! sent again, as far as the acknowledgment does not come first.
//!
//! Karn: an acknowledgment gives a sample only when nothing that it is the first to acknowledge was ever sent twice.
//!
//! Invariant: no packet beyond the window leaves; at most two windows of packets and one segment are kept; each waits to be sent
//! again at most once, and never once it is acknowledged.
//!
//! Limit: 2^32 - 2 packets a connection, its end counted; then [`SubmitError::Finished`].

use super::delta_list::DeltaList;
use super::packet::{Feedback, Forward, Place};
use super::retransmission::Retransmission;
use super::{Backoff, Config, ConfigError};
use segstream_base::halves::{
    Deadline, Operations, Packet as _, Probe, Reconfigure, ReconfigureError, Segment, SegmentNumber, SenderCounters, SenderEvent, StreamId,
    SubmitError, Verdict,
};
use segstream_base::{Bytes, Duration, Instant};
use segstream_blocks::{Pacer, RateSpec};
use std::collections::VecDeque;

/// A segment of which packets are still to be sent for the first time.
#[derive(Clone, Copy, Debug)]
struct Fresh {
    packets: u16,
    /// Payload of its last packet.
    last_bytes: u16,
}

/// A packet that is under way or waits to be sent again.
#[derive(Clone, Copy, Debug)]
struct Sent {
    /// `None` for the end of the stream.
    place: Option<Place>,
    bytes: u16,
    /// When it left for the first time.
    at: Instant,
    /// What its timer was set to last.
    wait: Duration,
    again: bool,
    timed: bool,
}

/// The sending half.
#[derive(Clone, Debug)]
pub struct Sender {
    config: Config,
    stride: u16,
    pacer: Pacer,
    retransmission: Retransmission,
    timers: DeltaList,
    /// The packets from `base` on that have left.
    sent: VecDeque<Sent>,
    /// The first packet that is not acknowledged.
    base: u32,
    /// Packets to be sent again, in the order in which their timers ran out.
    repeats: VecDeque<u32>,
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
        // `check` has bounded it. RFC 6298 has one timer.
        let timers = if config.backoff == Backoff::Oldest { 1 } else { config.window };
        Ok(Self {
            stride: config.payload_bytes() as u16,
            pacer: Pacer::new(config.rate, now),
            retransmission: Retransmission::new(&config),
            timers: DeltaList::new(timers),
            sent: VecDeque::new(),
            base: 0,
            repeats: VecDeque::new(),
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
        !self.repeats.is_empty() || self.may_begin()
    }

    /// Whether the window lets a new packet leave, and there is one.
    #[inline]
    fn may_begin(&self) -> bool {
        self.sent.len() < self.config.window as usize && (self.unsent > 0 || self.end == End::Finished)
    }

    #[inline]
    fn sent(&mut self, sequence: u32) -> Option<&mut Sent> {
        self.sent.get_mut(sequence.checked_sub(self.base)? as usize)
    }

    /// The next packet that leaves for the first time.
    #[inline]
    fn begin(&mut self, now: Instant) -> Option<Forward> {
        let wait = self.retransmission.timeout();
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
        let sequence = self.base + self.sent.len() as u32;
        let sent = Sent { place, bytes, at: now, wait, again: false, timed: false };
        self.sent.push_back(sent);
        self.start_timer(now, sequence, wait);
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
        let waited = self.sent(sequence)?.wait;
        let wait = self.retransmission.again(waited);
        let sent = self.sent(sequence)?;
        (sent.wait, sent.again) = (wait, true);
        let sent = *sent;
        if sent.place.is_some() {
            self.counters.packets_sent += 1;
            self.counters.packets_retransmitted += 1;
        }
        self.start_timer(now, sequence, wait);
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

    /// The place of a packet's timer in the list.
    #[inline]
    fn timer_of(&self, sequence: u32) -> u32 {
        if self.config.backoff == Backoff::Oldest { 0 } else { sequence % self.config.window }
    }

    /// Lets the timer of a packet that leaves at `now` run.
    #[inline]
    fn start_timer(&mut self, now: Instant, sequence: u32, wait: Duration) {
        // RFC 6298 5.1: a timer that runs is left alone.
        if self.config.backoff == Backoff::Oldest && self.timers.running() > 0 {
            return;
        }
        self.timers.set(self.timer_of(sequence), self.retransmission.expiry(now, wait));
        if let Some(sent) = self.sent(sequence) {
            sent.timed = true;
        }
    }

    /// The first packet is acknowledged and forgotten.
    #[inline]
    fn acknowledge(&mut self) -> Option<Sent> {
        let sent = self.sent.pop_front()?;
        if sent.timed && self.config.backoff != Backoff::Oldest {
            self.timers.clear(self.timer_of(self.base));
        }
        self.base += 1;
        if let Some(place) = sent.place.filter(|place| place.is_last()) {
            let segment = SegmentNumber(u64::from(place.segment));
            self.events.push_back(SenderEvent::Judged { stream: StreamId(0), segment, verdict: Verdict::Complete });
        }
        Some(sent)
    }

    /// The timer in this place of the list has run out.
    fn expire(&mut self, timer: u32) {
        let first = self.timer_of(self.base);
        let sequence = match self.config.backoff {
            Backoff::Oldest => self.base,
            // The packets under way are fewer than the places.
            _ => self.base + (timer + self.config.window - first) % self.config.window,
        };
        let timeout = self.retransmission.timeout();
        let oldest = self.config.backoff == Backoff::Oldest;
        let Some(sent) = self.sent(sequence) else { return };
        sent.timed = false;
        let waited = if oldest { timeout } else { sent.wait };
        self.retransmission.on_expiry(waited);
        self.repeats.push_back(sequence);
    }

    /// RFC 6298 5.2 and 5.3: the one timer is started anew for what is now the oldest packet.
    fn restart(&mut self, now: Instant) {
        if self.timers.running() > 0 {
            self.timers.clear(0);
        }
        // One that waits to be sent again starts it when it leaves.
        if !self.sent.is_empty() && self.repeats.is_empty() {
            self.start_timer(now, self.base, self.retransmission.timeout());
        }
    }

    fn open_window(&mut self) {
        if self.blocked && !self.is_full() {
            self.blocked = false;
            self.events.push_back(SenderEvent::WindowOpen(StreamId(0)));
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
        let after = u64::from(self.base) + self.sent.len() as u64 + self.unsent + packets;
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
        let Some(acknowledged) = packet.next.checked_sub(self.base) else { return };
        if packet.connection != self.config.connection || acknowledged == 0 || acknowledged as usize > self.sent.len() {
            return;
        }
        let (mut newest, mut fresh) = (None, true);
        for _ in 0..acknowledged {
            let Some(sent) = self.acknowledge() else { break };
            fresh &= !sent.again;
            newest = Some(sent.at);
        }
        if let Some(at) = newest.filter(|_| fresh) {
            self.retransmission.on_sample(now.since(at));
        }
        if !self.repeats.is_empty() {
            let base = self.base;
            self.repeats.retain(|sequence| *sequence >= base);
        }
        if self.config.backoff == Backoff::Oldest {
            self.restart(now);
        }
        self.open_window();
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
        match self.repeats.pop_front() {
            Some(sequence) => self.repeat(now, sequence),
            None => self.begin(now),
        }
    }

    /// `retransmission` for the first timer to run out, `pacing` for the next packet; `None` when all is acknowledged.
    #[inline]
    fn poll_timeout(&self) -> Option<Deadline> {
        let timer = self.poll_control_timeout();
        if !self.has_work() {
            return timer;
        }
        let pacing = self.pacer.next_departure().map(|at| Deadline { at, timer: "pacing" });
        Deadline::earlier(timer, pacing)
    }

    /// `retransmission` alone: this half has no control but the end of the stream, which waits as data does.
    #[inline]
    fn poll_control_timeout(&self) -> Option<Deadline> {
        self.timers.next_at().map(|at| Deadline { at, timer: "retransmission" })
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(timer) = self.timers.pop_expired(now) {
            self.expire(timer);
        }
    }

    #[inline]
    fn poll_event(&mut self) -> Option<SenderEvent> {
        self.events.pop_front()
    }

    fn counters(&self) -> SenderCounters {
        self.counters
    }

    #[inline]
    fn operations(&self) -> Operations {
        self.timers.operations()
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.gauge("window_packets", f64::from(self.config.window));
        out.gauge("in_flight_packets", self.sent.len() as f64);
        out.gauge("queued_packets", self.unsent as f64);
        out.gauge("repeats_packets", self.repeats.len() as f64);
        out.gauge("timers", self.timers.running() as f64);
        out.gauge("timeout_ms", self.retransmission.timeout().as_secs_f64() * 1e3);
        if let Some(rtt) = self.retransmission.rtt() {
            out.gauge("rtt_ms", rtt.as_secs_f64() * 1e3);
        }
        out.gauge("rate_bps", self.config.rate.peak().bits_per_second() as f64);
    }
}
