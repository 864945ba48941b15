//! The sending half of SSCOP: numbers, credit, and retransmitted SDs before new ones.
//!
//! Called by the laboratory under the contract of the halves. Source: Q.2110 6 and 7.
//!
//! Each SD in flight remembers the number of the newest POLL when it left last. A STAT lists it as missing only because
//! it was lost if it left before the POLL that is answered: so it leaves again when its number is below N(PS), and not
//! when it was sent (again) after that POLL. A USTAT names an SD for the first time, and it leaves again at once. Either
//! way it is queued at most once.
//!
//! After a protocol error, and when polls stay unanswered, the connection is set up anew: nothing waits to be retransmitted
//! any more, a BGN with the next N(SQ) leaves, and on its BGAK a POLL asks what is missing. Numbers continue, at both ends,
//! so that no datagram of before can be taken for another segment, and what was delivered stays so.
//!
//! Invariant: no SD from VT(MS) on leaves; at most two windows of segments are kept; each waits to be retransmitted at most
//! once, and never once it is acknowledged.
//!
//! Limit: 2^24 segments a connection, since an SD says by N(S) alone whose payload it carries; then
//! [`SubmitError::Finished`].

use super::connection::Connection;
use super::packet::{Feedback, Forward};
use super::pdu::{expand, truncated};
use super::poll::Polls;
use super::status::{Known, ProtocolError, Status};
use super::{Config, ConfigError};
use crate::new_rate::new_rate;
use core::ops::Range;
use segstream_base::halves::{
    Deadline, Packet as _, Probe, Reconfigure, ReconfigureError, Segment, SegmentNumber, SenderCounters, SenderEvent, StreamId,
    SubmitError, Verdict,
};
use segstream_base::{Bytes, Instant};
use segstream_blocks::{Pacer, RateSpec};
use std::collections::VecDeque;

/// Segments that a connection can number.
const SEGMENTS_MAX: u64 = 1 << 24;

/// An SD that is in flight or waits to be retransmitted.
#[derive(Clone, Copy, Debug)]
struct Sent {
    bytes: u16,
    /// VT(PS) when it left last.
    poll: u64,
    /// Whether it is in the retransmission queue.
    queued: bool,
}

/// The sending half.
#[derive(Clone, Debug)]
pub struct Sender {
    config: Config,
    pacer: Pacer,
    connection: Connection,
    polls: Polls,
    /// The SDs from VT(A) on that have left, up to VT(S).
    sent: VecDeque<Sent>,
    /// VT(A): the first SD that is not acknowledged.
    vt_a: u64,
    /// VT(MS): the first SD that may not be sent yet.
    vt_ms: u64,
    /// The retransmission queue.
    repeats: VecDeque<u64>,
    /// Payload bytes of the segments from VT(S) on.
    fresh: VecDeque<u16>,
    finished: bool,
    /// A submission was refused.
    blocked: bool,
    recoveries: u64,
    events: VecDeque<SenderEvent>,
    counters: SenderCounters,
}

impl Sender {
    /// A sender that asks for its connection with the first segment.
    ///
    /// # Errors
    /// When [`Config::check`] refuses `config`.
    pub fn new(config: Config, now: Instant) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            pacer: Pacer::new(config.rate, now),
            connection: Connection::new(),
            polls: Polls::new(),
            sent: VecDeque::new(),
            vt_a: 0,
            vt_ms: 0,
            repeats: VecDeque::new(),
            fresh: VecDeque::new(),
            finished: false,
            blocked: false,
            recoveries: 0,
            events: VecDeque::new(),
            counters: SenderCounters::default(),
            config,
        })
    }

    /// The same sender after `number` segments, for tests at the end of the numbers.
    #[cfg(test)]
    pub(super) fn numbered_from(self, number: u64) -> Self {
        Self { vt_a: number, vt_ms: number, ..self }
    }

    /// VT(S): the next SD that leaves for the first time.
    #[inline]
    fn vt_s(&self) -> u64 {
        self.vt_a + self.sent.len() as u64
    }

    /// Whether data is in flight or waits: the active phase.
    fn is_pending(&self) -> bool {
        !self.sent.is_empty() || !self.fresh.is_empty()
    }

    /// Whether an SD could leave if the rate allowed.
    #[inline]
    fn has_work(&self) -> bool {
        self.connection.is_ready() && (!self.repeats.is_empty() || self.may_begin())
    }

    /// Whether the credit lets a new SD leave, and there is one.
    #[inline]
    fn may_begin(&self) -> bool {
        !self.fresh.is_empty() && self.vt_s() < self.vt_ms
    }

    #[inline]
    fn sent(&mut self, number: u64) -> Option<&mut Sent> {
        self.sent.get_mut(usize::try_from(number.checked_sub(self.vt_a)?).ok()?)
    }

    /// The BGN, END or POLL that is to leave: neither waits for the rate, and both are charged to it.
    #[inline]
    fn control(&mut self, now: Instant) -> Option<Forward> {
        if let Some(packet) = self.connection.poll(now, &self.config) {
            return Some(packet);
        }
        let n_ps = self.polls.take(now, &self.config, self.is_pending())?;
        Some(Forward::Poll { n_ps: truncated(n_ps), n_s: truncated(self.vt_s()) })
    }

    /// The next SD that leaves for the first time.
    #[inline]
    fn begin(&mut self, now: Instant) -> Option<Forward> {
        if !self.may_begin() {
            return None;
        }
        let bytes = self.fresh.pop_front()?;
        let number = self.vt_s();
        self.sent.push_back(Sent { bytes, poll: self.polls.vt_ps(), queued: false });
        self.events.push_back(SenderEvent::Started { stream: StreamId(0), segment: SegmentNumber(number) });
        Some(self.data(now, number, bytes))
    }

    /// An SD that leaves again.
    fn repeat(&mut self, now: Instant, number: u64) -> Option<Forward> {
        let poll = self.polls.vt_ps();
        let sent = self.sent(number)?;
        (sent.poll, sent.queued) = (poll, false);
        let bytes = sent.bytes;
        self.counters.packets_retransmitted += 1;
        Some(self.data(now, number, bytes))
    }

    #[inline]
    fn data(&mut self, now: Instant, number: u64, bytes: u16) -> Forward {
        self.counters.packets_sent += 1;
        self.polls.on_sd(now, &self.config);
        Forward::Sd { n_s: truncated(number), bytes }
    }

    #[inline]
    fn charge(&mut self, now: Instant, packet: Forward) -> Forward {
        self.pacer.on_sent(now, Bytes::new(packet.encoded_len() as u64));
        packet
    }

    fn known(&self) -> Known {
        Known { vt_a: self.vt_a, vt_s: self.vt_s(), vt_pa: self.polls.vt_pa(), vt_ps: self.polls.vt_ps() }
    }

    fn on_stat(&mut self, now: Instant, list: &[u32], n_ps: u32, n_mr: u32, n_r: u32) -> Result<(), ProtocolError> {
        let known = self.known();
        let Some(n_ps) = known.poll(n_ps)? else { return Ok(()) };
        let status = known.status(list, n_mr, n_r, known.vt_s)?;
        self.polls.on_stat(now, &self.config, n_ps);
        self.acknowledge(status);
        for gap in self.known().gaps(list) {
            self.ask_again(gap, n_ps);
        }
        Ok(())
    }

    fn on_ustat(&mut self, list: [u32; 2], n_mr: u32, n_r: u32) -> Result<(), ProtocolError> {
        let known = self.known();
        // It is an SD behind the gap that shows the gap: so that SD was sent.
        let status = known.status(&list, n_mr, n_r, known.vt_s.saturating_sub(1))?;
        self.acknowledge(status);
        for gap in self.known().gaps(&list) {
            self.ask_again(gap, u64::MAX);
        }
        Ok(())
    }

    /// Queues the SDs of a gap whose last POLL is before `n_ps`.
    fn ask_again(&mut self, gap: Range<u64>, n_ps: u64) {
        for number in gap {
            let Some(sent) = self.sent(number) else { return };
            if !sent.queued && sent.poll < n_ps {
                sent.queued = true;
                self.repeats.push_back(number);
            }
        }
    }

    /// Takes N(R) and N(MR). The credit never retreats, and never exceeds what both ends agreed on.
    fn acknowledge(&mut self, status: Status) {
        while self.vt_a < status.n_r && self.sent.pop_front().is_some() {
            let segment = SegmentNumber(self.vt_a);
            self.events.push_back(SenderEvent::Judged { stream: StreamId(0), segment, verdict: Verdict::Complete });
            self.vt_a += 1;
        }
        let vt_a = self.vt_a;
        self.repeats.retain(|number| *number >= vt_a);
        self.vt_ms = self.vt_ms.max(status.n_mr).min(self.vt_a + u64::from(self.config.window));
        if self.blocked && !self.is_full() {
            self.blocked = false;
            self.events.push_back(SenderEvent::WindowOpen(StreamId(0)));
        }
    }

    /// The connection is ready. What is in flight may have been lost or not: a POLL asks.
    fn connected(&mut self, now: Instant, n_mr: u32) {
        self.acknowledge(Status { n_r: self.vt_a, n_mr: expand(n_mr, self.vt_a) });
        self.polls.start(now, &self.config, self.is_pending());
        if !self.sent.is_empty() {
            self.polls.ask(now);
        }
        self.release_if_done(now);
    }

    /// Sets the connection up anew.
    fn recover(&mut self, now: Instant) {
        self.recoveries += 1;
        while let Some(number) = self.repeats.pop_front() {
            self.sent(number).into_iter().for_each(|sent| sent.queued = false);
        }
        self.polls.stop();
        self.connection.establish(now);
    }

    /// Releases the connection once all is acknowledged and no more will come.
    fn release_if_done(&mut self, now: Instant) {
        if self.finished && self.connection.is_ready() && !self.is_pending() {
            self.polls.stop();
            self.connection.release(now);
        }
    }

    fn is_full(&self) -> bool {
        self.fresh.len() + self.sent.len() >= 2 * self.config.window as usize
    }
}

impl segstream_base::halves::Sender for Sender {
    type Forward = Forward;
    type Feedback = Feedback;

    /// Takes a segment of stream 0, while fewer than two windows are kept. A tolerance is not regarded: all is delivered.
    /// An open segment is refused as [`SubmitError::Finished`], as is another stream.
    fn submit(&mut self, now: Instant, segment: Segment) -> Result<SegmentNumber, SubmitError> {
        let number = self.vt_s() + self.fresh.len() as u64;
        let Some(bytes) = segment.bytes else { return Err(SubmitError::Finished) };
        let room = u64::from(self.config.payload_bytes());
        let Some(bytes) = u16::try_from(bytes).ok().filter(|_| bytes <= room) else {
            return Err(SubmitError::TooLong { units: bytes.div_ceil(room), window: 1 });
        };
        if self.finished || segment.stream != StreamId(0) || number >= SEGMENTS_MAX {
            return Err(SubmitError::Finished);
        }
        if self.is_full() {
            self.blocked = true;
            return Err(SubmitError::Blocked);
        }
        self.fresh.push_back(bytes);
        if self.connection.is_idle() {
            self.connection.establish(now);
        }
        Ok(SegmentNumber(number))
    }

    fn finish(&mut self, now: Instant) {
        self.finished = true;
        if self.connection.is_idle() {
            self.connection.establish(now);
        }
        self.release_if_done(now);
    }

    fn reconfigure(&mut self, now: Instant, change: Reconfigure) -> Result<(), ReconfigureError> {
        let rate = new_rate(&mut self.pacer, now, change)?;
        self.config.rate = RateSpec::smooth(rate);
        self.events.push_back(SenderEvent::RateChanged(rate));
        Ok(())
    }

    fn handle_feedback(&mut self, now: Instant, packet: &Feedback) {
        let possible = match packet {
            Feedback::Bgak { n_mr } => {
                if self.connection.on_bgak() {
                    self.connected(now, *n_mr);
                }
                return;
            }
            Feedback::Endak => return self.connection.on_endak(),
            // What was answered before the connection is set up anew is asked again then.
            _ if !self.connection.is_ready() => return,
            Feedback::Stat { list, n_ps, n_mr, n_r } => self.on_stat(now, list, *n_ps, *n_mr, *n_r),
            Feedback::Ustat { list, n_mr, n_r } => self.on_ustat(*list, *n_mr, *n_r),
        };
        match possible {
            Ok(()) => self.release_if_done(now),
            Err(_) => self.recover(now),
        }
    }

    #[inline]
    fn poll_transmit(&mut self, now: Instant) -> Option<Forward> {
        if let Some(packet) = self.control(now) {
            return Some(self.charge(now, packet));
        }
        if !self.pacer.lets_leave(now, self.has_work()) {
            return None;
        }
        let packet = match self.repeats.pop_front() {
            Some(number) => self.repeat(now, number),
            None => self.begin(now),
        }?;
        Some(self.charge(now, packet))
    }

    /// `connection` for Timer_CC; `poll`, `keep-alive`, `idle` and `no-response` for the timers of those names; `pacing`
    /// for the next SD. `None` before the first segment and after the release.
    #[inline]
    fn poll_timeout(&self) -> Option<Deadline> {
        let control = Deadline::earlier(self.connection.waits(), self.polls.waits());
        let known = Deadline::earlier(control, self.poll_control_timeout());
        if !self.has_work() {
            return known;
        }
        let pacing = self.pacer.next_departure().map(|at| Deadline { at, timer: "pacing" });
        Deadline::earlier(known, pacing)
    }

    /// The timers alone: BGN, POLL and END are the work of the processor that makes SDs.
    #[inline]
    fn poll_control_timeout(&self) -> Option<Deadline> {
        Deadline::earlier(self.connection.timer(), self.polls.timer())
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.connection.on_time(now, &self.config);
        if self.polls.on_time(now) {
            self.recover(now);
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
        out.gauge("window_packets", f64::from(self.config.window));
        out.gauge("credit_packets", self.vt_ms.saturating_sub(self.vt_s()) as f64);
        out.gauge("in_flight_packets", self.sent.len() as f64);
        out.gauge("queued_packets", self.fresh.len() as f64);
        out.gauge("repeats_packets", self.repeats.len() as f64);
        out.gauge("polls", self.polls.vt_ps() as f64);
        out.gauge("recoveries", self.recoveries as f64);
        out.gauge("rate_bps", self.config.rate.peak().bits_per_second() as f64);
    }
}
