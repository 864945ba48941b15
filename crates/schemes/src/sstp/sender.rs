//! The sending half: rate control below the window; it retransmits only on request.
//!
//! Called through [`base::halves::Sender`](segstream_base::halves::Sender). Sources: EC 4.2 (sender
//! operations), FC 3.3 (rate control), FC 3.4 (sender window operations).
//!
//! Invariant: no timer of the sender repeats data (EC 4.2); every edge of the window only advances; a
//! segment is kept until it is acknowledged firmly.

mod control_block;
mod feedback;
mod idle;
mod queue;

use super::closing::Closing;
use super::packet::{Data, Feedback, Forward, Mark};
use super::{Config, ConfigError, FeedbackMode, KeepAlive, Repeats};
use control_block::{ControlBlocks, Status};
use idle::Idle;
use queue::{Next, TransmissionQueue};
use segstream_base::halves::{
    Deadline, Probe, Reconfigure, ReconfigureError, Segment, SegmentNumber, SenderCounters, SenderEvent, StreamId, SubmitError, Verdict,
};
use segstream_base::{Bandwidth, Bytes, Instant};
use segstream_blocks::{Pacer, RateSpec, Rtt};
use std::collections::VecDeque;

/// The only stream.
const STREAM: StreamId = StreamId(0);
/// How many windows of segments are kept, started or not.
const KEPT_WINDOWS: u64 = 2;

/// The sending half.
#[derive(Clone, Debug)]
pub struct Sender {
    config: Config,
    /// Bytes of data in a full packet.
    room: u16,
    size: Bytes,
    ideal: bool,
    queue: TransmissionQueue,
    blocks: ControlBlocks,
    pacer: Pacer,
    idle: Idle,
    closing: Closing,
    /// Ideal feedback: the mark that follows the packet that has just left.
    group_end: Option<Forward>,
    /// S_l: the lowest segment not acknowledged in sequence.
    low: u64,
    /// S_h + 1, as granted.
    limit: u64,
    /// Segments of the window that the sender uses itself (FC 3.4).
    share: u64,
    submitted: u64,
    refused: bool,
    finished: bool,
    /// The receiver is known to have everything; with ideal feedback: the end has been reported.
    over: bool,
    shipment: u64,
    /// Packets of the highest segment that was sent to its end.
    ended_with: u32,
    newest_control: u64,
    rtt: Rtt,
    events: VecDeque<SenderEvent>,
    counters: SenderCounters,
    requests_ignored: u64,
    idle_packets: u64,
}

impl Sender {
    /// A sender whose first packet may leave at `now`.
    ///
    /// # Errors
    /// When the configuration contradicts itself.
    pub fn new(config: Config, now: Instant) -> Result<Self, ConfigError> {
        config.check()?;
        let window = u64::from(config.window);
        let kept = (window * KEPT_WINDOWS) as usize;
        Ok(Self {
            room: config.payload_bytes() as u16,
            size: config.packet_size(),
            ideal: config.feedback == FeedbackMode::Ideal,
            queue: TransmissionQueue::new(kept),
            blocks: ControlBlocks::new(kept),
            pacer: Pacer::new(config.rate, now),
            idle: Idle::new(config.reorder),
            closing: Closing::new(config.close_after),
            group_end: None,
            low: 0,
            // FC 3.4: W_0 is agreed on at setup.
            limit: window,
            share: window,
            submitted: 0,
            refused: false,
            finished: false,
            over: false,
            shipment: 0,
            ended_with: 0,
            newest_control: 0,
            rtt: Rtt::new(),
            events: VecDeque::new(),
            counters: SenderCounters::default(),
            requests_ignored: 0,
            idle_packets: 0,
            config,
        })
    }

    /// Segments that are kept at most.
    fn kept_max(&self) -> u64 {
        u64::from(self.config.window) * KEPT_WINDOWS
    }

    fn take_shipment(&mut self) -> u32 {
        let shipment = self.shipment as u32;
        self.shipment += 1;
        shipment
    }

    /// Works out which segments may start: submitted, granted, and within the share.
    fn update_eligible(&mut self) {
        let allowed = self.submitted.min(self.limit).min(self.low + self.share);
        // A segment that has started continues, whatever its share is now.
        self.queue.eligible = allowed.max(self.queue.begun());
    }

    /// How far the data have gone: the highest packet sent (EC 4.2).
    fn mark(&self, shipment: u32) -> Mark {
        let begun = self.queue.begun();
        let packets = match (begun, self.queue.packet) {
            (0, _) => 0,
            (_, 0) => self.ended_with,
            (_, packet) => packet,
        };
        Mark { connection: self.config.connection, shipment, segments: begun as u32, packets: packets as u16 }
    }

    /// What a sender with an empty queue sends: a keep-alive, or an end of stream (EC 4.2).
    fn poll_idle(&mut self, now: Instant) -> Option<Forward> {
        self.pacer.on_idle(now);
        let at_end = self.finished && self.queue.segment >= self.submitted;
        if self.over || (!at_end && self.queue.begun() == 0) {
            return None;
        }
        if self.ideal {
            if !at_end {
                return None;
            }
            self.over = true;
            return Some(Forward::EndStream(self.mark(self.shipment as u32)));
        }
        let by_tick = self.config.keep_alive == KeepAlive::Tick;
        if (!by_tick && !self.idle.due(now)) || !self.pacer.ready(now) {
            return None;
        }
        self.idle.on_sent(now, self.rtt.min());
        self.idle_packets += 1;
        let shipment = self.take_shipment();
        let mark = self.mark(shipment);
        self.pacer.on_sent(now, Bytes::new(u64::from(super::packet::OVERHEAD_BYTES)));
        if by_tick {
            // FC 3.3, step 3: "transmit a keep-alive packet [...] and then return", until the next tick.
            self.pacer.end_burst();
        }
        Some(if at_end { Forward::EndStream(mark) } else { Forward::KeepAlive(mark) })
    }

    /// Makes the packet, and notes when the last of a group leaves.
    #[inline]
    fn ship(&mut self, now: Instant, next: Next) -> Forward {
        let shipment = self.take_shipment();
        let block = self.blocks.get_mut(next.segment);
        let last = next.packet + 1 == block.packets;
        let bytes = if last { block.last_bytes } else { self.room };
        if next.ends_group {
            // EC 4.2: the time of the last packet of the group, for the filter of premature requests.
            block.last_left = now;
            block.status = Status::Waiting;
            self.on_group_end(next.segment, shipment);
        }
        self.counters.packets_sent += 1;
        Forward::Data(Data {
            connection: self.config.connection,
            shipment,
            segment: next.segment as u32,
            packet: next.packet as u16,
            bytes,
            room: self.room,
            last,
        })
    }

    fn on_group_end(&mut self, segment: u64, shipment: u32) {
        let packets = self.blocks.get(segment).packets;
        self.ended_with = if segment + 1 == self.queue.begun() { packets } else { self.ended_with };
        if self.ideal {
            let mark = Mark { connection: self.config.connection, shipment, segments: segment as u32 + 1, packets: packets as u16 };
            self.group_end = Some(Forward::GroupEnd(mark));
        }
    }

    /// The segment of which requested packets leave now (EC 4.2: before newer data).
    #[inline]
    fn next_repeat(&self) -> Option<u64> {
        match self.config.repeats {
            Repeats::Preempt => self.queue.first_repeat(),
            Repeats::Wait => self.queue.first_repeat_between_groups(),
        }
    }

    #[inline]
    fn poll_data(&mut self, now: Instant) -> Option<Forward> {
        if !self.pacer.ready(now) {
            return None;
        }
        while let Some(segment) = self.next_repeat() {
            if let Some(next) = self.queue.take_repeat(&mut self.blocks, segment) {
                self.counters.packets_retransmitted += 1;
                self.blocks.get_mut(segment).answered = true;
                return Some(self.sent(now, next));
            }
        }
        if self.queue.segment >= self.queue.eligible {
            return None;
        }
        if self.queue.packet == 0 {
            self.events.push_back(SenderEvent::Started { stream: STREAM, segment: SegmentNumber(self.queue.segment) });
        }
        let next = self.queue.take_new(self.blocks.get(self.queue.segment).packets);
        Some(self.sent(now, next))
    }

    #[inline]
    fn sent(&mut self, now: Instant, next: Next) -> Forward {
        let packet = self.ship(now, next);
        self.pacer.on_sent(now, self.size);
        self.idle.on_data();
        self.closing.start(now);
        packet
    }

    /// When the next packet may leave, and which.
    #[inline]
    fn next_departure(&self) -> Option<Deadline> {
        let departure = self.pacer.next_departure()?;
        if !self.queue.is_empty() || self.group_end.is_some() {
            return Some(Deadline { at: departure, timer: "pace" });
        }
        let silent = self.over || self.ideal || (self.queue.begun() == 0 && !self.finished);
        let idle_at = if self.config.keep_alive == KeepAlive::Tick { departure } else { self.idle.at().max(departure) };
        (!silent).then_some(Deadline { at: idle_at, timer: "keep-alive" })
    }

    /// The receiver was not heard for too long: nothing more leaves, and what is not judged never will be.
    fn close(&mut self) {
        self.over = true;
        self.finished = true;
        for segment in self.low..self.submitted {
            if self.blocks.get(segment).status != Status::Released {
                let segment = SegmentNumber(segment);
                self.events.push_back(SenderEvent::Judged { stream: STREAM, segment, verdict: Verdict::Unknown });
            }
        }
    }

    /// R = (P, F, L) with another average: F is changed, P only if it would no longer carry the bursts.
    fn respecified(&self, rate: Bandwidth) -> RateSpec {
        let old = self.pacer.spec().unwrap_or(self.config.rate);
        if old.is_smooth() {
            return RateSpec::smooth(rate);
        }
        let burst_bits = u64::from(old.burst_shipments()) * self.size.get() * 8;
        let bursts = u32::try_from(rate.bits_per_second() / burst_bits.max(1)).unwrap_or(u32::MAX).max(1);
        let needed = Bandwidth::from_bits_per_second(u64::from(bursts).saturating_mul(burst_bits));
        RateSpec::new(old.peak().max(needed), bursts, old.burst_shipments()).unwrap_or(RateSpec::smooth(rate))
    }
}

impl segstream_base::halves::Sender for Sender {
    type Forward = Forward;
    type Feedback = Feedback;

    /// Takes a whole segment of stream 0, of at most `segment_packets` packets.
    ///
    /// A segment without a length is refused as [`SubmitError::Finished`]: EC 3.1 knows whole segments
    /// only, and waiting would not help. So is one beyond the 32-bit numbers of the wire. A tolerance of
    /// its own is [`SubmitError::BadTolerance`] unless it is the stream's.
    fn submit(&mut self, _now: Instant, segment: Segment) -> Result<SegmentNumber, SubmitError> {
        let Some(bytes) = segment.bytes else { return Err(SubmitError::Finished) };
        if self.finished || segment.stream != STREAM || self.submitted >= u64::from(u32::MAX - 1) {
            return Err(SubmitError::Finished);
        }
        let t = self.config.tolerance;
        if segment.tolerance.is_some_and(|own| own != t) {
            return Err(SubmitError::BadTolerance);
        }
        let room = u64::from(self.room);
        let packets = bytes.div_ceil(room).max(1);
        let most = u64::from(self.config.segment_packets);
        if packets > most {
            return Err(SubmitError::TooLong { units: packets, window: most });
        }
        if self.submitted - self.low >= self.kept_max() {
            self.refused = true;
            return Err(SubmitError::Blocked);
        }
        let number = self.submitted;
        self.blocks.begin(number, packets as u32, (bytes - (packets - 1) * room) as u16);
        self.submitted += 1;
        self.update_eligible();
        Ok(SegmentNumber(number))
    }

    fn finish(&mut self, now: Instant) {
        if !self.finished {
            self.finished = true;
            self.idle.hurry(now);
        }
    }

    /// A new average rate; the share of the window that is used follows it (FC 3.4).
    fn reconfigure(&mut self, now: Instant, change: Reconfigure) -> Result<(), ReconfigureError> {
        let Reconfigure::Rate(rate) = change else { return Err(ReconfigureError::Unsupported) };
        if rate.is_zero() {
            return Err(ReconfigureError::OutOfRange);
        }
        self.pacer.set_spec(now, self.respecified(rate));
        // FC 3.4: W_1 = (F_1 / F) W_0, here between one segment and the window granted at setup.
        let first = u128::from(self.config.rate.average_of(self.size).bits_per_second()).max(1);
        let scaled = u128::from(self.config.window) * u128::from(rate.bits_per_second()) / first;
        self.share = u64::try_from(scaled).unwrap_or(u64::MAX).clamp(1, u64::from(self.config.window));
        self.update_eligible();
        self.events.push_back(SenderEvent::RateChanged(rate));
        Ok(())
    }

    fn handle_feedback(&mut self, now: Instant, packet: &Feedback) {
        if self.closing.is_closed() {
            return;
        }
        self.closing.restart(now);
        self.on_feedback(now, packet);
        if self.over {
            self.closing.settle();
        }
    }

    #[inline]
    fn poll_transmit(&mut self, now: Instant) -> Option<Forward> {
        if self.group_end.is_some() {
            return self.group_end.take();
        }
        if self.closing.is_closed() {
            return None;
        }
        if self.queue.is_empty() { self.poll_idle(now) } else { self.poll_data(now) }
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Deadline> {
        if self.closing.is_closed() {
            return None;
        }
        let next = self.next_departure();
        let close = Deadline { at: self.closing.at(), timer: "close" };
        match next {
            Some(next) if next.at <= close.at => Some(next),
            _ => (close.at != Instant::FAR_FUTURE).then_some(close),
        }
    }

    /// Closes if it is time to; whatever else is due leaves by [`poll_transmit`](segstream_base::halves::Sender::poll_transmit).
    fn handle_timeout(&mut self, now: Instant) {
        if self.closing.close_if_due(now) {
            self.close();
        }
    }

    #[inline]
    fn poll_event(&mut self) -> Option<SenderEvent> {
        self.events.pop_front()
    }

    fn counters(&self) -> SenderCounters {
        self.counters
    }

    fn probe(&self, out: &mut dyn Probe) {
        let kept = (self.low..self.submitted).map(|segment| self.blocks.get(segment));
        let in_state = |status| kept.clone().filter(|block| block.status == status).count() as f64;
        out.gauge("send_window_low_segments", self.low as f64);
        out.gauge("send_window_limit_segments", self.limit as f64);
        out.gauge("send_window_share_segments", self.share as f64);
        out.gauge("next_segments", self.queue.segment as f64);
        out.gauge("submitted_segments", self.submitted as f64);
        out.gauge("waiting_segments", in_state(Status::Waiting));
        out.gauge("repeating_segments", self.queue.repeating() as f64);
        out.gauge("soft_segments", kept.clone().filter(|block| block.soft && block.status != Status::Released).count() as f64);
        out.gauge("in_flight_segments", self.queue.begun().saturating_sub(self.low) as f64);
        out.gauge("requests_ignored_packets", self.requests_ignored as f64);
        out.gauge("idle_packets", self.idle_packets as f64);
        out.gauge("closed", f64::from(u8::from(self.closing.is_closed())));
        out.gauge("rate_bps", self.pacer.average().map_or(f64::NAN, |rate| rate.bits_per_second() as f64));
        out.gauge("rtt_ms_min", self.rtt.min().map_or(f64::NAN, |rtt| rtt.as_millis_f64()));
    }
}
