//! The sending half: Tx1, Tx2 and congestion avoidance in one place, their messages passed on at once.
//!
//! Called through [`base::halves::Sender`](segstream_base::halves::Sender). It stands for the host too: it cuts segments
//! into units, and judges a segment when all its units are released.
//!
//! A state packet that is due leaves before data, a packet to be repeated before a new one.
//!
//! Invariant: at most two windows of units are kept, or one segment.

use super::message::{ConnectionNews, Message, Unit};
use super::packet::{Feedback, Forward, Reason};
use super::pipeline::Routes;
use super::ptif::CongestionAvoidance;
use super::{Class, Config, ConfigError, Tx1, Tx2};
use segstream_base::halves::{
    Deadline, Operations, Probe, Reconfigure, ReconfigureError, Segment, SegmentNumber, SenderCounters, SenderEvent, StreamId, SubmitError,
    Verdict,
};
use segstream_base::stage::{Stage, StageId};
use segstream_base::{Bandwidth, Duration, Instant};
use std::collections::VecDeque;

/// The only stream.
const STREAM: StreamId = StreamId(0);

/// A segment whose units are not all released.
#[derive(Clone, Copy, Debug)]
struct Unreleased {
    units: u32,
    arrived: bool,
}

/// The sending half.
#[derive(Clone, Debug)]
pub struct Sender {
    config: Config,
    tx1: Tx1,
    tx2: Tx2,
    ptif: CongestionAvoidance,
    inbox: VecDeque<(StageId, Message)>,
    scratch: Vec<(StageId, Message)>,
    packets: VecDeque<Forward>,
    /// Segments from `judged` on.
    segments: VecDeque<Unreleased>,
    judged: u32,
    started: u32,
    finished: bool,
    /// Units of a segment that was refused.
    refused: Option<u64>,
    failure: Option<Reason>,
    is_open: bool,
    released: bool,
    gap: Duration,
    events: VecDeque<SenderEvent>,
}

impl Sender {
    /// A sender whose first packet may leave at `now`.
    ///
    /// # Errors
    /// When [`Config::check`] refuses `config`.
    pub fn new(config: Config, now: Instant) -> Result<Self, ConfigError> {
        config.check()?;
        let routes = Routes::HALF;
        let mut sender = Self {
            tx1: Tx1::new(&config, routes, now),
            tx2: Tx2::new(&config, routes, now),
            ptif: CongestionAvoidance::new(config.ptif, routes),
            inbox: VecDeque::new(),
            scratch: Vec::new(),
            packets: VecDeque::new(),
            segments: VecDeque::new(),
            judged: 0,
            started: 0,
            finished: false,
            refused: None,
            failure: None,
            is_open: false,
            released: false,
            gap: Duration::ZERO,
            events: VecDeque::new(),
            config,
        };
        sender.turn_tx2(now);
        sender.gap = sender.tx1.gap();
        sender.events.clear();
        Ok(sender)
    }

    /// Why there is no connection.
    pub const fn failure(&self) -> Option<Reason> {
        self.failure
    }

    /// Whether data can leave.
    pub const fn is_open(&self) -> bool {
        self.is_open
    }

    /// Whether the connection has been released.
    pub const fn is_released(&self) -> bool {
        self.released
    }

    /// The class of the data that leave.
    pub const fn class(&self) -> Class {
        self.tx1.class()
    }

    /// The gap between data packets that is in force, 0 for none.
    pub fn gap(&self) -> Duration {
        self.tx1.gap()
    }

    /// Units that are kept and count against the limit.
    fn kept(&self) -> u64 {
        let unacked = if self.tx1.class().has_error_control() { self.tx1.unacknowledged() } else { 0 };
        self.tx1.queued() as u64 + unacked
    }

    fn has_room(&self, units: u64) -> bool {
        let kept = self.kept();
        kept == 0 || kept + units <= 2 * u64::from(self.config.window)
    }

    /// Lets the processes hear what they say to each other, until all is said.
    fn pass_on(&mut self, now: Instant) {
        loop {
            self.inbox.extend(self.scratch.drain(..));
            let Some((to, message)) = self.inbox.pop_front() else { break };
            let routes = Routes::HALF;
            if to == routes.network {
                if let Message::Forward { packet, .. } = message {
                    self.packets.push_back(packet);
                }
            } else if to == routes.tx1 {
                self.tx1.handle(now, message, &mut self.scratch);
            } else if to == routes.tx2 {
                self.tx2.handle(now, message, &mut self.scratch);
            } else if to == routes.ptif {
                self.ptif.handle(now, message, &mut self.scratch);
            } else {
                self.on_host(&message);
            }
        }
        let gap = self.tx1.gap();
        if gap != self.gap {
            self.gap = gap;
            self.events.push_back(SenderEvent::RateChanged(self.rate()));
        }
        if self.refused.is_some_and(|units| self.has_room(units)) {
            self.refused = None;
            self.events.push_back(SenderEvent::WindowOpen(STREAM));
        }
    }

    /// The rate of full packets at the gap in force.
    fn rate(&self) -> Bandwidth {
        let bits = u128::from(self.config.packet_bytes) * 8 * 1_000_000_000;
        let rate = bits.checked_div(u128::from(self.gap.as_nanos())).unwrap_or(u128::MAX);
        Bandwidth::from_bits_per_second(u64::try_from(rate).unwrap_or(u64::MAX))
    }

    fn on_host(&mut self, message: &Message) {
        match message {
            Message::Release { segment, arrived, .. } => self.on_release(*segment, *arrived),
            Message::Connection(ConnectionNews::Open(_)) => self.is_open = true,
            Message::Connection(ConnectionNews::Released) => self.released = true,
            Message::Connection(ConnectionNews::Refused(reason)) => {
                self.failure = Some(*reason);
                for index in 0..self.segments.len() {
                    self.judge(self.judged + index as u32, Verdict::Unknown);
                }
                self.judged += self.segments.len() as u32;
                self.segments.clear();
            }
            _ => {}
        }
    }

    #[inline]
    fn on_release(&mut self, segment: u32, arrived: bool) {
        let index = segment.wrapping_sub(self.judged) as usize;
        let Some(kept) = self.segments.get_mut(index) else { return };
        kept.units -= 1;
        kept.arrived &= arrived;
        if kept.units == 0 {
            // Without error control the transmitter gets no acknowledgments.
            let verdict = if kept.arrived { Verdict::Complete } else { Verdict::Unknown };
            self.judge(segment, verdict);
        }
        while self.segments.front().is_some_and(|kept| kept.units == 0) {
            self.segments.pop_front();
            self.judged += 1;
        }
    }

    fn judge(&mut self, segment: u32, verdict: Verdict) {
        self.events.push_back(SenderEvent::Judged { stream: STREAM, segment: SegmentNumber(u64::from(segment)), verdict });
    }

    fn turn_tx2(&mut self, now: Instant) {
        if self.tx2.poll_timeout().is_some_and(|at| at <= now) {
            self.tx2.handle_timeout(now, &mut self.scratch);
            self.pass_on(now);
        }
    }

    fn next_control(&mut self, now: Instant) -> Option<Forward> {
        if self.packets.is_empty() {
            self.turn_tx2(now);
        }
        self.packets.pop_front()
    }

    fn control_deadline(&self) -> Option<Deadline> {
        if !self.packets.is_empty() {
            return Some(Deadline { at: Instant::ZERO, timer: "transmit" });
        }
        self.tx2.poll_timeout().map(|at| Deadline { at, timer: "sync" })
    }

    /// Offers the units of a segment to Tx1.
    fn offer(&mut self, now: Instant, segment: u32, units: u32, bytes: u64) {
        let room = u64::from(self.config.payload_bytes());
        for packet in 0..units {
            let last = packet + 1 == units;
            let bytes = if last { bytes - u64::from(packet) * room } else { room };
            let unit = Unit { segment, packet: packet as u16, last, bytes: bytes as u16, slot: packet };
            self.tx1.handle(now, Message::Offer(unit), &mut self.scratch);
        }
        self.pass_on(now);
    }
}

impl segstream_base::halves::Sender for Sender {
    type Forward = Forward;
    type Feedback = Feedback;

    /// Takes a whole segment of stream 0, of at most `segment_packets` packets.
    ///
    /// A segment without a length is refused as [`SubmitError::Finished`], as is one after the connection has failed: waiting
    /// would not help. A tolerance is not regarded: error control is on or off for the connection.
    fn submit(&mut self, now: Instant, segment: Segment) -> Result<SegmentNumber, SubmitError> {
        let number = self.judged + self.segments.len() as u32;
        let Some(bytes) = segment.bytes else { return Err(SubmitError::Finished) };
        if self.finished || self.failure.is_some() || segment.stream != STREAM || number == u32::MAX {
            return Err(SubmitError::Finished);
        }
        let units = bytes.div_ceil(u64::from(self.config.payload_bytes())).max(1);
        let most = u64::from(self.config.segment_packets);
        if units > most {
            return Err(SubmitError::TooLong { units, window: most });
        }
        if !self.has_room(units) {
            self.refused = Some(units);
            return Err(SubmitError::Blocked);
        }
        self.segments.push_back(Unreleased { units: units as u32, arrived: true });
        self.offer(now, number, units as u32, bytes);
        Ok(SegmentNumber(u64::from(number)))
    }

    /// The connection is released when all is acknowledged.
    fn finish(&mut self, now: Instant) {
        if !self.finished {
            self.finished = true;
            let segments = self.judged + self.segments.len() as u32;
            self.inbox.push_back((Routes::HALF.tx1, Message::Finish(segments)));
            self.pass_on(now);
        }
    }

    /// A rate becomes the gap that spaces full packets; it is out of range when RATE cannot say it, and unsupported in a
    /// class without rate control. A class holds once the receiver has granted it.
    fn reconfigure(&mut self, now: Instant, change: Reconfigure) -> Result<(), ReconfigureError> {
        let message = match change {
            Reconfigure::Rate(_) if !self.tx1.class().has_rate_control() => return Err(ReconfigureError::Unsupported),
            Reconfigure::Rate(rate) => {
                let gap = self.config.gap_of(rate);
                if rate.is_zero() || self.config.gap_of(Bandwidth::from_bits_per_second(1)) <= gap {
                    return Err(ReconfigureError::OutOfRange);
                }
                Message::Rate((!gap.is_zero()).then_some(gap))
            }
            Reconfigure::Class(number) => Message::Class(Class::new(number).ok_or(ReconfigureError::OutOfRange)?),
            _ => return Err(ReconfigureError::Unsupported),
        };
        self.inbox.push_back((Routes::HALF.tx2, message));
        self.pass_on(now);
        Ok(())
    }

    fn handle_feedback(&mut self, now: Instant, packet: &Feedback) {
        self.tx2.handle(now, Message::Feedback(*packet), &mut self.scratch);
        self.pass_on(now);
    }

    #[inline]
    fn poll_transmit(&mut self, now: Instant) -> Option<Forward> {
        if let Some(control) = self.next_control(now) {
            return Some(control);
        }
        if self.tx1.poll_timeout().is_some_and(|at| at <= now) {
            self.tx1.handle_timeout(now, &mut self.scratch);
            self.pass_on(now);
        }
        let packet = self.packets.pop_front()?;
        if let Forward::Data(data) = &packet
            && data.segment >= self.started
        {
            self.started = data.segment + 1;
            self.events.push_back(SenderEvent::Started { stream: STREAM, segment: SegmentNumber(u64::from(data.segment)) });
        }
        Some(packet)
    }

    fn poll_control(&mut self, now: Instant) -> Option<Forward> {
        self.next_control(now)
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Deadline> {
        let data = self.tx1.poll_timeout().map(|at| Deadline { at, timer: "gap" });
        Deadline::earlier(self.control_deadline(), data)
    }

    fn poll_control_timeout(&self) -> Option<Deadline> {
        self.control_deadline()
    }

    /// Nothing: whatever is due leaves by [`poll_transmit`](segstream_base::halves::Sender::poll_transmit).
    fn handle_timeout(&mut self, _now: Instant) {}

    #[inline]
    fn poll_event(&mut self) -> Option<SenderEvent> {
        self.events.pop_front()
    }

    fn counters(&self) -> SenderCounters {
        self.tx1.counters()
    }

    fn operations(&self) -> Operations {
        Operations { slots_searched: self.tx2.slots_searched(), ..Operations::default() }
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.gauge("window_packets", f64::from(self.config.window));
        out.gauge("in_flight_packets", self.tx1.unacknowledged() as f64);
        out.gauge("queued_packets", self.tx1.queued() as f64);
        out.gauge("exchanges", self.tx2.exchanges() as f64);
        out.gauge("slots_searched", self.tx2.slots_searched() as f64);
        out.gauge("class", f64::from(self.tx1.class().number()));
        out.gauge("rho", self.ptif.rho());
        out.gauge("gap_us", self.tx1.gap().as_nanos() as f64 / 1e3);
        out.gauge("sync_period_ms", self.tx2.period().as_millis_f64());
        out.gauge("rtt_ms", self.tx2.rtt().map_or(f64::NAN, |rtt| rtt.as_millis_f64()));
    }
}
