//! The sending half of TCP: a fixed window, retransmitted packets before new ones.
//!
//! Called by the laboratory under the contract of the halves. Source: HT 7.
//!
//! A packet is in flight, its timer running, or waits to be retransmitted, its timer run out. Packets that arrived behind
//! a lost one are not acknowledged until that one is, so the timers of all the window run out after its: all of it is
//! sent again, as far as the acknowledgment does not come first.
//!
//! Karn: an acknowledgment gives a sample only when nothing that it is the first to acknowledge was ever sent twice.
//!
//! Invariant: each packet waits to be retransmitted at most once, and never once it is acknowledged. What leaves for the first
//! time and what is kept is bounded by [`TransmissionBuffer`].

use super::delta_list::DeltaList;
use super::packet::{Feedback, Forward};
use super::retransmission::Retransmission;
use super::{Backoff, Config, ConfigError};
use crate::new_rate::new_rate;
use crate::transmission_buffer::TransmissionBuffer;
use crate::unsent::Unsent;
use segstream_base::halves::{
    Deadline, Operations, Packet as _, Probe, Reconfigure, ReconfigureError, Segment, SegmentNumber, SenderCounters, SenderEvent,
    SubmitError,
};
use segstream_base::{Bytes, Duration, Instant};
use segstream_blocks::{Pacer, RateSpec};
use std::collections::VecDeque;

/// What is known of a packet that is in flight or waits to be retransmitted.
#[derive(Clone, Copy, Debug)]
struct Sent {
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
    pacer: Pacer,
    retransmission: Retransmission,
    timers: DeltaList,
    buffer: TransmissionBuffer<Sent>,
    /// Packets to be retransmitted, in the order in which their timers ran out.
    repeats: VecDeque<u32>,
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
        // RFC 6298 has one timer.
        let timers = if config.backoff == Backoff::Oldest { 1 } else { config.window };
        Ok(Self {
            pacer: Pacer::new(config.rate, now),
            retransmission: Retransmission::new(&config),
            timers: DeltaList::new(timers),
            buffer: TransmissionBuffer::new(config.connection, config.window, unsent),
            repeats: VecDeque::new(),
            config,
        })
    }

    /// Whether a packet could leave if the rate allowed.
    #[inline]
    fn has_work(&self) -> bool {
        !self.repeats.is_empty() || self.buffer.may_begin()
    }

    /// The next packet that leaves for the first time.
    #[inline]
    fn begin(&mut self, now: Instant) -> Option<Forward> {
        let wait = self.retransmission.timeout();
        let packet = self.buffer.begin(Sent { at: now, wait, again: false, timed: false })?;
        self.start_timer(now, packet.sequence(), wait);
        Some(packet)
    }

    /// A packet that leaves again.
    fn repeat(&mut self, now: Instant, sequence: u32) -> Option<Forward> {
        let packet = self.buffer.repeat(sequence)?;
        let sent = self.buffer.note(sequence)?;
        let wait = self.retransmission.again(sent.wait);
        (sent.wait, sent.again) = (wait, true);
        self.start_timer(now, sequence, wait);
        Some(packet)
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
        if let Some(sent) = self.buffer.note(sequence) {
            sent.timed = true;
        }
    }

    /// The first packet is acknowledged and forgotten.
    #[inline]
    fn acknowledge(&mut self) -> Option<Sent> {
        let timer = self.timer_of(self.buffer.base());
        let sent = self.buffer.release()?;
        if sent.timed && self.config.backoff != Backoff::Oldest {
            self.timers.clear(timer);
        }
        Some(sent)
    }

    /// The timer in this place of the list has run out.
    fn expire(&mut self, timer: u32) {
        let base = self.buffer.base();
        let sequence = match self.config.backoff {
            Backoff::Oldest => base,
            // The packets in flight are fewer than the places.
            _ => base + (timer + self.config.window - self.timer_of(base)) % self.config.window,
        };
        let timeout = self.retransmission.timeout();
        let oldest = self.config.backoff == Backoff::Oldest;
        let Some(sent) = self.buffer.note(sequence) else { return };
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
        // One that waits to be retransmitted starts it when it leaves.
        if self.buffer.in_flight() > 0 && self.repeats.is_empty() {
            self.start_timer(now, self.buffer.base(), self.retransmission.timeout());
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
        let Some(acknowledged) = packet.next.checked_sub(self.buffer.base()) else { return };
        if packet.connection != self.config.connection || acknowledged == 0 || acknowledged as usize > self.buffer.in_flight() {
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
            let base = self.buffer.base();
            self.repeats.retain(|sequence| *sequence >= base);
        }
        if self.config.backoff == Backoff::Oldest {
            self.restart(now);
        }
        self.buffer.open();
    }

    #[inline]
    fn poll_transmit(&mut self, now: Instant) -> Option<Forward> {
        if !self.pacer.lets_leave(now, self.has_work()) {
            return None;
        }
        let packet = match self.repeats.pop_front() {
            Some(sequence) => self.repeat(now, sequence),
            None => self.begin(now),
        }?;
        self.pacer.on_sent(now, Bytes::new(packet.encoded_len() as u64));
        Some(packet)
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
        self.buffer.poll_event()
    }

    fn counters(&self) -> SenderCounters {
        self.buffer.counters()
    }

    #[inline]
    fn operations(&self) -> Operations {
        self.timers.operations()
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.gauge("window_packets", f64::from(self.config.window));
        out.gauge("in_flight_packets", self.buffer.in_flight() as f64);
        out.gauge("queued_packets", self.buffer.unsent() as f64);
        out.gauge("repeats_packets", self.repeats.len() as f64);
        out.gauge("timers", self.timers.running() as f64);
        out.gauge("timeout_ms", self.retransmission.timeout().as_secs_f64() * 1e3);
        if let Some(rtt) = self.retransmission.rtt() {
            out.gauge("rtt_ms", rtt.as_secs_f64() * 1e3);
        }
        out.gauge("rate_bps", self.config.rate.peak().bits_per_second() as f64);
    }
}
