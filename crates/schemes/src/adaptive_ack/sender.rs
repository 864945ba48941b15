//! The sending half of adaptive acknowledgment: a transmission buffer, packets requested again before new ones.
//!
//! Called by the laboratory under the contract of the halves. Source: AA 2, transmitter operations.
//!
//! Its three tasks: new packets leave in the order of their numbers and are kept; packets gap-in to gap-out - 1 of an
//! acknowledgment are put into the retransmission queue; packets below the cumulative number are released. There is no
//! timer: what is lost, an acknowledgment included, comes to light by the receiver's next status.
//!
//! Invariant: each packet waits to be retransmitted at most once, and never once it is acknowledged. What leaves for the first
//! time and what is kept is bounded by [`TransmissionBuffer`].

use super::packet::{Feedback, Forward};
use super::retransmission::Retransmission;
use super::tail::TailRule;
use super::{Config, ConfigError};
use crate::new_rate::new_rate;
use crate::transmission_buffer::TransmissionBuffer;
use crate::unsent::Unsent;
use core::ops::Range;
use segstream_base::halves::{
    Deadline, Packet as _, Probe, Reconfigure, ReconfigureError, Segment, SegmentNumber, SenderCounters, SenderEvent, SubmitError,
};
use segstream_base::{Bytes, Instant};
use segstream_blocks::{Pacer, RateSpec};

/// What is known of a packet of the transmission buffer.
#[derive(Clone, Copy, Debug)]
struct Sent {
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
    pacer: Pacer,
    retransmission: Retransmission,
    tail: TailRule,
    buffer: TransmissionBuffer<Sent>,
}

impl Sender {
    /// A sender whose first packet may leave at `now`.
    ///
    /// # Errors
    /// When [`Config::check`] refuses `config`.
    pub fn new(config: Config, now: Instant) -> Result<Self, ConfigError> {
        config.check()?;
        // `check` has bounded it.
        let unsent = Unsent::new(config.payload_bytes() as u16, config.segment_packets);
        Ok(Self {
            pacer: Pacer::new(config.rate, now),
            retransmission: Retransmission::new(&config),
            tail: TailRule::new(config.tail_rule),
            buffer: TransmissionBuffer::new(config.connection, config.window, unsent),
            config,
        })
    }

    /// Whether a packet could leave if the rate allowed.
    #[inline]
    fn has_work(&self) -> bool {
        !self.retransmission.is_empty() || self.buffer.may_begin()
    }

    /// The next packet that leaves for the first time.
    #[inline]
    fn begin(&mut self, now: Instant) -> Option<Forward> {
        self.buffer.begin(Sent { at: now, again: false, queued: false })
    }

    /// A packet that leaves again.
    fn repeat(&mut self, now: Instant, sequence: u32) -> Option<Forward> {
        *self.buffer.note(sequence)? = Sent { at: now, again: true, queued: false };
        self.buffer.repeat(sequence)
    }

    /// Whether an acknowledgment speaks of what was sent, and is no older than one that came before.
    #[inline]
    fn is_credible(&self, packet: &Feedback) -> bool {
        let (cumulative, next) = (packet.cumulative, self.buffer.next());
        // The packet behind a gap has arrived, so it has left.
        let gap = cumulative <= packet.gap_in && packet.gap_in < packet.gap_out && packet.gap_out < next;
        packet.connection == self.config.connection
            && self.buffer.base() <= cumulative
            && cumulative <= next
            && (gap || !packet.names_gap())
    }

    /// Samples the round trip by the newest packet that an acknowledgment says has arrived.
    #[inline]
    fn sample(&mut self, now: Instant, packet: &Feedback) {
        let newest = if packet.names_gap() { Some(packet.gap_out) } else { packet.cumulative.checked_sub(1) };
        let left = newest.and_then(|sequence| self.buffer.note(sequence)).filter(|sent| !sent.again).map(|sent| sent.at);
        if let Some(left) = left {
            self.retransmission.on_sample(now.since(left));
        }
    }

    /// Releases the packets below `cumulative`.
    #[inline]
    fn release(&mut self, cumulative: u32) {
        if cumulative == self.buffer.base() {
            return;
        }
        while self.buffer.base() < cumulative && self.buffer.release().is_some() {}
        self.retransmission.release(cumulative);
        self.buffer.open();
    }

    /// Puts the packets of a gap into the retransmission queue, as far as the gap can speak of them.
    fn request(&mut self, now: Instant, gap: Range<u32>) {
        self.queue(gap, |retransmission, sent| !sent.again || retransmission.may_speak_of(now, sent.at));
    }

    /// Puts all packets from `from` on into the retransmission queue, as far as they may be declared lost.
    fn request_tail(&mut self, now: Instant, from: u32) {
        self.queue(from..self.buffer.next(), |retransmission, sent| retransmission.is_overdue(now, sent.at));
    }

    /// Puts those of `numbers` that are `due` and not yet in it into the retransmission queue.
    fn queue(&mut self, numbers: Range<u32>, due: impl Fn(&Retransmission, &Sent) -> bool) {
        for (sequence, sent) in self.buffer.notes(numbers) {
            if !sent.queued && due(&self.retransmission, sent) {
                sent.queued = true;
                self.retransmission.push(sequence);
            }
        }
    }
}

impl segstream_base::halves::Sender for Sender {
    type Forward = Forward;
    type Feedback = Feedback;

    /// Takes a segment of stream 0, while fewer than two windows of packets are kept. A tolerance is not regarded: all
    /// is delivered. An open segment is refused as [`SubmitError::Finished`], as is another stream.
    fn submit(&mut self, _now: Instant, segment: Segment) -> Result<SegmentNumber, SubmitError> {
        self.buffer.submit(segment)
    }

    fn finish(&mut self, _now: Instant) {
        self.buffer.finish();
    }

    fn reconfigure(&mut self, now: Instant, change: Reconfigure) -> Result<(), ReconfigureError> {
        let rate = new_rate(&mut self.pacer, now, change)?;
        self.config.rate = RateSpec::smooth(rate);
        self.buffer.tell(SenderEvent::RateChanged(rate));
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
        } else if self.tail.on_status(packet.cumulative, self.buffer.next()) {
            self.request_tail(now, packet.cumulative);
        }
    }

    #[inline]
    fn poll_transmit(&mut self, now: Instant) -> Option<Forward> {
        if !self.pacer.lets_leave(now, self.has_work()) {
            return None;
        }
        let packet = match self.retransmission.pop() {
            Some(sequence) => self.repeat(now, sequence),
            None => self.begin(now),
        }?;
        self.pacer.on_sent(now, Bytes::new(packet.encoded_len() as u64));
        Some(packet)
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
        self.buffer.poll_event()
    }

    fn counters(&self) -> SenderCounters {
        self.buffer.counters()
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.gauge("window_packets", f64::from(self.config.window));
        out.gauge("in_flight_packets", self.buffer.in_flight() as f64);
        out.gauge("queued_packets", self.buffer.unsent() as f64);
        out.gauge("repeats_packets", self.retransmission.len() as f64);
        if let Some(rtt) = self.retransmission.rtt() {
            out.gauge("rtt_ms", rtt.as_secs_f64() * 1e3);
        }
        out.gauge("rate_bps", self.config.rate.peak().bits_per_second() as f64);
    }
}
