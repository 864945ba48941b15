//! The sending half of XTP: a window in bytes that the receiver moves, and one question when it is used up.
//!
//! Called by the laboratory under the contract of the halves. Sources: XT 2, XT Table 1, XT 3.2.
//!
//! A DATA packet asks (SREQ) when it has byte ALLOC - 1, or when no full packet fits behind it, and when the stream ends with
//! it; also when it leaves again. A sender that is stuck without having asked, because a repetition was lost, a CNTL that
//! nobody asked for has moved ALLOC, or the user has nothing more to send, asks after WTIMER by a CNTL. Without that
//! it would wait for good.
//!
//! Invariant: nothing from ALLOC on leaves, and ALLOC never falls; repetitions leave before new packets, in the order of their
//! numbers; while something is not acknowledged, a packet may leave or WTIMER runs.
//!
//! Limit: 2^32 - 1 segments a connection; then [`SubmitError::Finished`].

use super::options::Options;
use super::packet::{Feedback, Forward};
use super::repetition::Repetition;
use super::requests::{Heard, Requests};
use super::segments::Segments;
use super::unacknowledged::{Sent, Unacknowledged};
use super::{Config, ConfigError, Question};
use crate::new_rate::new_rate;
use segstream_base::halves::{
    Deadline, Packet as _, Probe, Reconfigure, ReconfigureError, Segment, SegmentNumber, SenderCounters, SenderEvent, StreamId,
    SubmitError, Verdict,
};
use segstream_base::{Bytes, Instant};
use segstream_blocks::{Pacer, RateSpec};
use std::collections::VecDeque;

/// The sending half.
#[derive(Clone, Debug)]
pub struct Sender {
    config: Config,
    /// The sequence numbers of a full packet, and of the window.
    full: u64,
    window: u64,
    pacer: Pacer,
    segments: Segments,
    sent: Unacknowledged,
    repetition: Repetition,
    requests: Requests,
    /// The sequence number behind all that has been sent.
    next: u64,
    /// RSEQ and ALLOC of the receiver, as far as is known.
    rseq: u64,
    alloc: u64,
    finished: bool,
    /// The receiver has said that it has everything and the end.
    closed: bool,
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
        Ok(Self {
            full: u64::from(Forward::sequence_bytes(config.payload_bytes())),
            window: config.window_bytes(),
            pacer: config.rate.map_or_else(Pacer::unlimited, |rate| Pacer::new(rate, now)),
            // `check` has bounded it.
            segments: Segments::new(config.payload_bytes() as u16),
            sent: Unacknowledged::default(),
            repetition: Repetition::new(config.control_rtt),
            requests: Requests::new(config.wtimer),
            next: 0,
            rseq: 0,
            alloc: config.window_bytes(),
            finished: false,
            closed: false,
            blocked: false,
            events: VecDeque::new(),
            counters: SenderCounters::default(),
            config,
        })
    }

    /// Whether the window lets the next new packet leave, and there is one.
    #[inline]
    fn may_begin(&self) -> bool {
        self.segments.peek().is_some_and(|fresh| self.next + u64::from(Forward::sequence_bytes(u32::from(fresh.bytes))) <= self.alloc)
    }

    /// Whether data could leave if the rate allowed.
    #[inline]
    fn has_data(&self) -> bool {
        !self.repetition.is_empty() || self.may_begin()
    }

    /// Whether all that will ever be sent has been.
    #[inline]
    fn is_all_sent(&self) -> bool {
        self.finished && self.segments.packets() == 0
    }

    /// Whether no full packet fits the window any more.
    #[inline]
    fn is_closed(&self) -> bool {
        self.next + self.full > self.alloc
    }

    /// Lets WTIMER run while something is not acknowledged, nothing can leave and nothing was asked.
    #[inline]
    fn watch(&mut self, now: Instant) {
        // The window may be closed by what the other user has not read, though nothing is missing there.
        let shut_out = self.segments.packets() > 0 && !self.may_begin();
        let waits = !self.sent.is_empty() || (self.is_all_sent() && !self.closed) || shut_out;
        let pauses = !self.is_closed() && !self.is_all_sent();
        let stuck = waits && !self.has_data() && (self.config.asks_in_pauses || !pauses);
        self.requests.note_stuck(now, stuck);
    }

    /// The next packet that leaves for the first time.
    fn begin(&mut self, now: Instant) -> Option<Forward> {
        let fresh = self.segments.pop()?;
        let sent = Sent { start: self.next, place: fresh.place, bytes: fresh.bytes, is_last: fresh.is_last, at: now };
        self.next = sent.end();
        self.sent.push(sent);
        self.counters.packets_sent += 1;
        if fresh.place.offset == 0 {
            let segment = SegmentNumber(u64::from(fresh.place.segment));
            self.events.push_back(SenderEvent::Started { stream: StreamId(0), segment });
        }
        Some(self.packet(now, sent))
    }

    /// The first packet that is to leave again.
    fn repeat(&mut self, now: Instant) -> Option<Forward> {
        let number = self.repetition.pop()?;
        let sent = self.sent.get_mut(number)?;
        sent.at = now;
        let sent = *sent;
        self.counters.packets_sent += 1;
        self.counters.packets_retransmitted += 1;
        Some(self.packet(now, sent))
    }

    fn packet(&mut self, now: Instant, sent: Sent) -> Forward {
        let ends_stream = sent.end() == self.next && self.is_all_sent();
        // The packet has byte ALLOC - 1, or no full packet fits behind it.
        let asks = ends_stream || sent.end() + self.full > self.alloc;
        let sync = if asks { self.requests.ask(now, self.next) } else { self.requests.last() };
        let question = match self.config.asks {
            Question::Status => Options::SREQ,
            Question::Delivery => Options::DREQ,
        };
        let options = Options::NONE.with_if(question, asks).with_if(Options::EOM, sent.is_last).with_if(Options::WCLOSE, ends_stream);
        Forward::Data { key: self.config.key, options, sync, sequence: sent.start, place: sent.place, bytes: sent.bytes }
    }

    /// Whether `state` can have been said by a receiver of what was sent, and is not older than what is known.
    fn is_news(&self, state: &Feedback) -> bool {
        state.key == self.config.key
            && state.rseq >= self.rseq
            && state.hseq() <= self.next
            && state.echo <= self.requests.last()
            && state.alloc <= state.rseq.saturating_add(self.window)
            && state.is_consistent()
    }

    /// Forgets what lies below RSEQ.
    fn release(&mut self, rseq: u64) {
        self.rseq = rseq;
        while let Some(sent) = self.sent.release(rseq) {
            if sent.is_last {
                let segment = SegmentNumber(u64::from(sent.place.segment));
                self.events.push_back(SenderEvent::Judged { stream: StreamId(0), segment, verdict: Verdict::Complete });
            }
        }
        self.repetition.release(self.sent.first());
    }

    /// What `state` says is missing leaves again, as the strategy has it (XT Table 1).
    fn mend(&mut self, now: Instant, state: &Feedback, heard: Heard) {
        if self.config.sender.waits_for_handshake() && !heard.ends_handshake {
            return;
        }
        let tells_of_loss = !state.spans.is_empty() || state.options.has(Options::FASTNAK) || state.rseq < heard.asked;
        if !tells_of_loss || self.sent.is_empty() {
            return;
        }
        // Why: nothing is kept behind RSEQ, so all of it is missing, and what is in flight a discarding receiver
        // will not keep either.
        if self.config.sender.goes_back() || state.spans.is_empty() {
            self.repetition.go_back(now, state.rseq, &self.sent);
            return;
        }
        // A list that is full may have been cut short: what lies behind it is not known to be missing.
        let is_whole = state.spans.len() < self.config.spans_max();
        self.repetition.select(now, state, if is_whole { heard.asked } else { 0 }, &self.sent);
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.config.backlog_packets.is_some_and(|most| self.segments.packets() >= u64::from(most))
    }

    #[inline]
    fn open_window(&mut self) {
        if self.blocked && !self.is_full() {
            self.blocked = false;
            self.events.push_back(SenderEvent::WindowOpen(StreamId(0)));
        }
    }
}

impl segstream_base::halves::Sender for Sender {
    type Forward = Forward;
    type Feedback = Feedback;

    /// Takes a segment of stream 0, while fewer packets wait than the backlog allows. A tolerance is not regarded: all
    /// is delivered. An open segment is refused as [`SubmitError::Finished`], as is another stream.
    fn submit(&mut self, now: Instant, segment: Segment) -> Result<SegmentNumber, SubmitError> {
        let Some(bytes) = segment.bytes else { return Err(SubmitError::Finished) };
        let (packets, most) = (self.segments.packets_of(bytes), u64::from(self.config.segment_packets));
        let too_long = SubmitError::TooLong { units: packets, window: most };
        let bytes = u32::try_from(bytes).ok().filter(|_| packets <= most).ok_or(too_long)?;
        let number = self.segments.next_number().ok_or(SubmitError::Finished)?;
        if self.finished || segment.stream != StreamId(0) {
            return Err(SubmitError::Finished);
        }
        if self.is_full() {
            self.blocked = true;
            return Err(SubmitError::Blocked);
        }
        self.segments.push(bytes);
        self.watch(now);
        Ok(SegmentNumber(u64::from(number)))
    }

    /// The last packet tells of the end; when it has left already, a CNTL does.
    fn finish(&mut self, _now: Instant) {
        if !self.finished {
            self.finished = true;
            if self.is_all_sent() {
                self.requests.want();
            }
        }
    }

    fn reconfigure(&mut self, now: Instant, change: Reconfigure) -> Result<(), ReconfigureError> {
        let rate = new_rate(&mut self.pacer, now, change)?;
        self.config.rate = Some(RateSpec::smooth(rate));
        self.events.push_back(SenderEvent::RateChanged(rate));
        Ok(())
    }

    fn handle_feedback(&mut self, now: Instant, packet: &Feedback) {
        if !self.is_news(packet) {
            return;
        }
        self.alloc = self.alloc.max(packet.alloc);
        let heard = self.requests.on_echo(packet.echo);
        self.release(packet.rseq);
        self.closed |= packet.options.has(Options::RCLOSE) && self.is_all_sent() && self.sent.is_empty();
        self.mend(now, packet, heard);
        self.watch(now);
    }

    #[inline]
    fn poll_transmit(&mut self, now: Instant) -> Option<Forward> {
        if let Some(control) = self.poll_control(now) {
            return Some(control);
        }
        if !self.pacer.lets_leave(now, self.has_data()) {
            return None;
        }
        let packet = if self.repetition.is_empty() { self.begin(now) } else { self.repeat(now) }?;
        self.pacer.on_sent(now, Bytes::new(packet.encoded_len() as u64));
        self.open_window();
        self.watch(now);
        Some(packet)
    }

    /// The CNTL of a handshake, which waits for no data.
    #[inline]
    fn poll_control(&mut self, now: Instant) -> Option<Forward> {
        if !self.requests.is_due() {
            return None;
        }
        let sync = self.requests.ask_by_control(now, self.next);
        let options = Options::SREQ.with_if(Options::WCLOSE, self.is_all_sent());
        let packet = Forward::Control { key: self.config.key, options, sync, sequence: self.next };
        self.pacer.on_sent(now, Bytes::new(packet.encoded_len() as u64));
        Some(packet)
    }

    /// `wtimer` for a question, `pacing` for the next packet; `None` when all is acknowledged.
    #[inline]
    fn poll_timeout(&self) -> Option<Deadline> {
        let timer = self.poll_control_timeout();
        if !self.has_data() {
            return timer;
        }
        Deadline::earlier(timer, self.pacer.next_departure().map(|at| Deadline { at, timer: "pacing" }))
    }

    /// `wtimer` alone.
    #[inline]
    fn poll_control_timeout(&self) -> Option<Deadline> {
        self.requests.wtimer().map(|at| Deadline { at, timer: "wtimer" })
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.requests.on_time(now);
    }

    #[inline]
    fn poll_event(&mut self) -> Option<SenderEvent> {
        self.events.pop_front()
    }

    fn counters(&self) -> SenderCounters {
        self.counters
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.gauge("in_flight_packets", self.sent.len() as f64);
        out.gauge("queued_packets", self.segments.packets() as f64);
        out.gauge("repeats_packets", self.repetition.len() as f64);
        out.gauge("window_left_bytes", self.alloc.saturating_sub(self.next) as f64);
        out.gauge("questions", f64::from(self.requests.last()));
        out.gauge("handshakes", self.requests.handshakes() as f64);
        out.gauge("times_back", self.repetition.times_back() as f64);
        if let Some(rate) = self.config.rate {
            out.gauge("rate_bps", rate.peak().bits_per_second() as f64);
        }
    }
}
