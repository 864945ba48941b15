//! The sending half of SNR: a window in blocks, repetition of whole blocks before new ones, at a paced rate.
//!
//! Called by the laboratory under the contract of the halves. Source: EC 5 and Table 1 (loss is detected
//! by the sender with timers, selective repeat by block, highest sequence stated every `T_in`), HT 4.
//!
//! A block is new, leaving, or waiting for a state that shows it. When its counter ([`super::counter`])
//! has been used up and the state that did so still shows it missing, it is queued to leave again, as a
//! whole. A block that has begun to leave is finished before another begins.
//!
//! Invariant: only blocks from the first unaccepted one up to the window leave; at most two windows of
//! blocks are kept; each is in the queue of repetitions at most once, and never once it is accepted.
//!
//! Limit: 2^32 - 1 blocks a connection; then [`SubmitError::Finished`].

use super::counter::IntervalCounter;
use super::period::StatePeriod;
use super::{Config, ConfigError, Feedback, Forward, SenderState};
use crate::new_rate::new_rate;
use segstream_base::halves::{
    Deadline, Packet, Probe, Reconfigure, ReconfigureError, Segment, SegmentNumber, SenderCounters, SenderEvent, StreamId, SubmitError,
    Verdict,
};
use segstream_base::{Bytes, Duration, Instant};
use segstream_blocks::{Pacer, RateSpec};
use std::collections::VecDeque;

/// Where a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Not begun, leaving, or queued to leave again.
    ToSend,
    /// All packets have left; the counter is used up at this count.
    Waiting {
        used_up_at: u64,
    },
    Accepted,
}

/// A block that is not yet below the cumulative acknowledgment.
#[derive(Clone, Copy, Debug)]
struct Block {
    packets: u16,
    /// Payload of its last packet.
    last_bytes: u16,
    phase: Phase,
}

/// The block whose packets leave now.
#[derive(Clone, Copy, Debug)]
struct Leaving {
    number: u32,
    /// The packet to leave next.
    packet: u16,
    packets: u16,
    last_bytes: u16,
    again: bool,
}

/// The sending half.
#[derive(Clone, Debug)]
pub struct Sender {
    config: Config,
    stride: u16,
    packet_time: Duration,
    pacer: Pacer,
    period: StatePeriod,
    counter: IntervalCounter,
    /// The blocks from `base` on.
    blocks: VecDeque<Block>,
    /// The first block that is not known to be accepted.
    base: u32,
    /// The first block that has not been begun.
    fresh: u32,
    leaving: Option<Leaving>,
    /// Blocks to leave again, in the order in which their counters were used up.
    repeats: VecDeque<u32>,
    /// The highest sequence sent: packets of block `fresh - 1`.
    highest_sent: u16,
    highest_packets: u16,
    finished: bool,
    /// A submission was refused.
    blocked: bool,
    events: VecDeque<SenderEvent>,
    counters: SenderCounters,
}

impl Sender {
    /// A sender whose first packet may leave at `now`.
    ///
    /// # Errors
    /// When [`Config::check`] refuses `config`.
    pub fn new(config: Config, now: Instant) -> Result<Self, ConfigError> {
        config.check()?;
        let window = config.window as usize;
        Ok(Self {
            // `check` has bounded it.
            stride: config.payload_bytes() as u16,
            packet_time: config.packet_time(),
            pacer: Pacer::new(config.rate, now),
            period: StatePeriod::new(now, config.status_period),
            counter: IntervalCounter::new(&config, now),
            blocks: VecDeque::with_capacity(2 * window),
            base: 0,
            fresh: 0,
            leaving: None,
            repeats: VecDeque::with_capacity(window),
            highest_sent: 0,
            highest_packets: 0,
            finished: false,
            blocked: false,
            events: VecDeque::with_capacity(2 * window),
            counters: SenderCounters::default(),
            config,
        })
    }

    /// The first number that has not been given to a segment.
    #[inline]
    fn submitted(&self) -> u32 {
        self.base + self.blocks.len() as u32
    }

    /// Whether a packet of a block could leave if the rate allowed.
    #[inline]
    fn has_work(&self) -> bool {
        self.leaving.is_some() || !self.repeats.is_empty() || self.may_begin()
    }

    /// Whether the window lets a new block begin.
    #[inline]
    fn may_begin(&self) -> bool {
        self.fresh - self.base < self.config.window.min(self.blocks.len() as u32)
    }

    fn block(&mut self, number: u32) -> Option<&mut Block> {
        self.blocks.get_mut(number.checked_sub(self.base)? as usize)
    }

    /// Begins the block that leaves next: one to be repeated before a new one.
    fn begin(&mut self) -> Option<Leaving> {
        let (number, again) = match self.repeats.pop_front() {
            Some(number) => (number, true),
            None if self.may_begin() => (self.fresh, false),
            None => return None,
        };
        let Block { packets, last_bytes, .. } = *self.block(number)?;
        if !again {
            self.fresh += 1;
            (self.highest_sent, self.highest_packets) = (0, packets);
            self.events.push_back(SenderEvent::Started { stream: StreamId(0), segment: SegmentNumber(u64::from(number)) });
        }
        Some(Leaving { number, packet: 0, packets, last_bytes, again })
    }

    /// The next packet of `leaving`.
    #[inline]
    fn data(&mut self, now: Instant, mut leaving: Leaving) -> Forward {
        let packet = leaving.packet;
        leaving.packet += 1;
        let is_last = leaving.packet == leaving.packets;
        if is_last {
            self.leaving = None;
            let used_up_at = self.counter.used_up_at(now, now + self.packet_time);
            if let Some(block) = self.block(leaving.number) {
                block.phase = Phase::Waiting { used_up_at };
            }
        } else {
            self.leaving = Some(leaving);
        }
        if !leaving.again {
            self.highest_sent = leaving.packet;
        }
        self.counters.packets_sent += 1;
        self.counters.packets_retransmitted += u64::from(leaving.again);
        let bytes = if is_last { leaving.last_bytes } else { self.stride };
        self.pacer.on_sent(now, Bytes::new(u64::from(Forward::OVERHEAD_BYTES) + u64::from(bytes)));
        Forward::Data {
            connection: self.config.connection,
            block: leaving.number,
            packet,
            packets: leaving.packets,
            stride: self.stride,
            bytes,
        }
    }

    /// What has been sent so far.
    fn state(&mut self, now: Instant) -> Forward {
        let packet = Forward::State(SenderState {
            connection: self.config.connection,
            interval: self.period.take(now),
            blocks: self.fresh,
            sent: self.highest_sent,
            packets: self.highest_packets,
            end: self.finished && self.fresh == self.submitted(),
        });
        // Why charged: on a link as fast as the rate, states on top of it would make a queue that never ends.
        self.pacer.on_sent(now, Bytes::new(packet.encoded_len() as u64));
        packet
    }

    /// The receiver has accepted block `base + index`.
    fn accept(&mut self, index: u32) {
        let Some(block) = self.blocks.get_mut(index as usize) else { return };
        if block.phase == Phase::Accepted {
            return;
        }
        block.phase = Phase::Accepted;
        let number = self.base + index;
        // Why: a retransmission that turns out to be spurious is cut short.
        self.leaving = self.leaving.filter(|leaving| leaving.number != number);
        self.repeats.retain(|repeat| *repeat != number);
        // Why unknown: a state says that a block has been passed up, not what it lacked.
        let verdict = if self.config.reliable { Verdict::Complete } else { Verdict::Unknown };
        self.events.push_back(SenderEvent::Judged { stream: StreamId(0), segment: SegmentNumber(u64::from(number)), verdict });
    }

    /// Moves the window over everything below `cumulative`.
    fn advance(&mut self, cumulative: u32) {
        for index in 0..cumulative - self.base {
            self.accept(index);
        }
        while self.base < cumulative && self.blocks.pop_front().is_some() {
            self.base += 1;
        }
        if self.blocked && self.blocks.len() < 2 * self.config.window as usize {
            self.blocked = false;
            self.events.push_back(SenderEvent::WindowOpen(StreamId(0)));
        }
    }

    /// Queues every block whose counter is used up; those still waiting are missing in the newest state.
    fn queue_repeats(&mut self) {
        let begun = (self.fresh - self.base) as usize;
        for (number, block) in (self.base..).zip(self.blocks.iter_mut().take(begun)) {
            if let Phase::Waiting { used_up_at } = block.phase
                && self.counter.is_used_up(used_up_at)
            {
                block.phase = Phase::ToSend;
                self.repeats.push_back(number);
            }
        }
    }

    /// The packets of a segment of `bytes` and the payload of the last of them.
    fn packets_of(&self, bytes: u64) -> Result<(u16, u16), SubmitError> {
        let stride = u64::from(self.stride);
        let packets = bytes.div_ceil(stride).max(1);
        let limit = u64::from(self.config.segment_packets);
        match u16::try_from(packets) {
            // The rest is at most one stride.
            Ok(count) if packets <= limit => Ok((count, (bytes - (packets - 1) * stride) as u16)),
            _ => Err(SubmitError::TooLong { units: packets, window: limit }),
        }
    }
}

impl segstream_base::halves::Sender for Sender {
    type Forward = Forward;
    type Feedback = Feedback;

    /// Takes a segment of stream 0 as a block, while fewer than two windows are kept. A tolerance is not
    /// regarded: reliability is on or off for all blocks. An open segment is refused as
    /// [`SubmitError::Finished`], as is another stream.
    fn submit(&mut self, _now: Instant, segment: Segment) -> Result<SegmentNumber, SubmitError> {
        let number = self.submitted();
        let Some(bytes) = segment.bytes else { return Err(SubmitError::Finished) };
        if self.finished || segment.stream != StreamId(0) || number == u32::MAX {
            return Err(SubmitError::Finished);
        }
        let (packets, last_bytes) = self.packets_of(bytes)?;
        if self.blocks.len() >= 2 * self.config.window as usize {
            self.blocked = true;
            return Err(SubmitError::Blocked);
        }
        self.blocks.push_back(Block { packets, last_bytes, phase: Phase::ToSend });
        Ok(SegmentNumber(u64::from(number)))
    }

    fn finish(&mut self, _now: Instant) {
        self.finished = true;
    }

    fn reconfigure(&mut self, now: Instant, change: Reconfigure) -> Result<(), ReconfigureError> {
        let rate = new_rate(&mut self.pacer, now, change)?;
        self.config.rate = RateSpec::smooth(rate);
        self.packet_time = self.config.packet_time();
        self.events.push_back(SenderEvent::RateChanged(rate));
        Ok(())
    }

    fn handle_feedback(&mut self, now: Instant, packet: &Feedback) {
        let possible = (self.base..=self.fresh).contains(&packet.cumulative);
        if packet.connection != self.config.connection || !possible || !self.counter.on_state(now, packet.interval) {
            return;
        }
        self.advance(packet.cumulative);
        let begun = self.fresh - self.base;
        for index in (0..packet.received.count()).take(begun as usize) {
            if packet.received.contains(index) {
                self.accept(u32::from(index));
            }
        }
        if self.config.reliable {
            self.queue_repeats();
        }
        if self.finished && self.blocks.is_empty() && packet.ended {
            self.period.stop();
        }
    }

    #[inline]
    fn poll_transmit(&mut self, now: Instant) -> Option<Forward> {
        if now >= self.period.due() {
            return Some(self.state(now));
        }
        if !self.pacer.lets_leave(now, self.has_work()) {
            return None;
        }
        let leaving = match self.leaving {
            Some(leaving) => leaving,
            None => self.begin()?,
        };
        Some(self.data(now, leaving))
    }

    /// `state` for the next sender state, `pacing` for the next data packet; `None` once the receiver is
    /// known to have everything.
    #[inline]
    fn poll_timeout(&self) -> Option<Deadline> {
        let due = self.period.due();
        if self.has_work()
            && let Some(at) = self.pacer.next_departure()
            && at < due
        {
            return Some(Deadline { at, timer: "pacing" });
        }
        (due != Instant::FAR_FUTURE).then_some(Deadline { at: due, timer: "state" })
    }

    /// Does nothing: what has become due leaves with the next [`poll_transmit`](segstream_base::halves::Sender::poll_transmit).
    fn handle_timeout(&mut self, _now: Instant) {}

    #[inline]
    fn poll_event(&mut self) -> Option<SenderEvent> {
        self.events.pop_front()
    }

    fn counters(&self) -> SenderCounters {
        self.counters
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.gauge("window_blocks", f64::from(self.config.window));
        out.gauge("in_flight_blocks", f64::from(self.fresh - self.base));
        out.gauge("queued_blocks", f64::from(self.submitted() - self.fresh));
        out.gauge("repeats_blocks", self.repeats.len() as f64);
        out.gauge("rate_bps", self.config.rate.peak().bits_per_second() as f64);
    }
}
