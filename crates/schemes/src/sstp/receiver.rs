//! The receiving half: it detects losses, judges segments and grants the window.
//!
//! Called through [`base::halves::Receiver`](segstream_base::halves::Receiver). Sources: EC 4.2 (receiver
//! operations), FC 3.4 (receiver window operations), FC 4.3.1 (buffer).
//!
//! Invariant: neither edge of the window retreats; what lies outside the window or the segment is ignored;
//! whether data are new is decided by the presence bitmap alone.

mod acknowledge;
mod buffer;
mod group;
mod judge;
mod slot;
mod throttle;
mod trigger;

use super::closing::Closing;
use super::packet::{Data, Feedback, Forward, Mark};
use super::{Acknowledgment, Config, ConfigError, Discard, FeedbackMode};
use acknowledge::Acknowledger;
use buffer::{Buffer, Place};
use judge::Ask;
use segstream_base::halves::{Deadline, Probe, ReceiverEvent, StreamId};
use segstream_base::sequence::expand;
use segstream_base::{Duration, Instant};
use segstream_blocks::{Arrival, Bitmap, Checker, LossDetector};
use slot::Slots;
use std::collections::VecDeque;
use throttle::Throttled;
use trigger::{Cause, Trigger, Triggers};

/// The only stream.
const STREAM: StreamId = StreamId(0);
/// The loss timer in segment transmission times: EC 4.2 says "several".
const LOSS_TIMER_SEGMENTS: u64 = 4;
/// The loss timer is never shorter.
const LOSS_TIMER_MIN: Duration = Duration::from_millis(5);
/// How often the loss timer doubles when nothing comes at all.
const LOSS_TIMER_DOUBLINGS: u32 = 6;

/// The receiving half.
#[derive(Clone, Debug)]
pub struct Receiver {
    config: Config,
    ideal: bool,
    literal: bool,
    slots: Slots,
    throttled: Throttled,
    closing: Closing,
    buffer: Buffer,
    checker: Checker,
    /// What the checker asks for; one for all segments.
    request: Bitmap,
    /// H + 1: segments seen, or announced by a mark.
    highest: u64,
    detector: LossDetector,
    triggers: Triggers,
    /// The segment of the packet with the highest shipment number.
    newest_segment: u64,
    acks: Acknowledger,
    loss_timer: Duration,
    /// When the loss timer is looked at next; it runs from `heard`.
    loss_at: Instant,
    heard: Instant,
    expired_in_a_row: u32,
    /// When the loss timer last expired.
    expired_at: Instant,
    /// Segments of the stream, once known.
    end: Option<u64>,
    ended: bool,
    /// Whether segment R_l - 1 was accepted with holes.
    below_holes: bool,
    events: VecDeque<ReceiverEvent>,
    dropped: u64,
}

impl Receiver {
    /// A receiver with an empty window from segment 0.
    ///
    /// # Errors
    /// When the configuration contradicts itself.
    pub fn new(config: Config, now: Instant) -> Result<Self, ConfigError> {
        config.check()?;
        let ideal = config.feedback == FeedbackMode::Ideal;
        // EC 5.2: an acknowledgment comes back t_a = RTD + 3 t_p after the last packet of the group.
        let overhead = if ideal { config.packet_time() * 3 } else { Duration::ZERO };
        Ok(Self {
            ideal,
            literal: config.accounting == segstream_blocks::Accounting::PaperLiteral,
            slots: Slots::new(config.window, config.segment_packets),
            throttled: Throttled::new(&config),
            closing: Closing::new(config.close_after),
            buffer: Buffer::new(config.acknowledgment, config.buffer, config.segment_packets),
            checker: Checker::new(config.accounting),
            request: Bitmap::new(),
            highest: 0,
            detector: LossDetector::new(config.reorder, false),
            triggers: Triggers::default(),
            newest_segment: 0,
            acks: Acknowledger::new(&config, overhead),
            loss_timer: (config.segment_time() * LOSS_TIMER_SEGMENTS).max(LOSS_TIMER_MIN),
            loss_at: Instant::FAR_FUTURE,
            heard: now,
            expired_in_a_row: 0,
            expired_at: now,
            end: None,
            ended: false,
            below_holes: false,
            events: VecDeque::new(),
            dropped: 0,
            config,
        })
    }

    /// Makes the window `segments`, between 1 and the one agreed on: FC 3.4, for a receiver that expects to
    /// be slow for several round trips. The upper edge stays until enough segments are accepted.
    pub fn resize_window(&mut self, segments: u32) {
        self.slots.resize(segments.clamp(1, self.config.window));
    }

    /// R_l and R_h + 1.
    const fn edges(&self) -> (u64, u64) {
        (self.slots.low(), self.slots.limit())
    }

    const fn is_over(&self) -> bool {
        self.ended
    }

    /// Nothing came for too long (EC 4.1): nothing more leaves.
    fn close(&mut self) {
        self.loss_at = Instant::FAR_FUTURE;
        self.acks.close();
        self.throttled.close();
    }

    fn end_if_over(&mut self) {
        if !self.ended && self.end == Some(self.slots.low()) {
            self.ended = true;
            self.loss_at = Instant::FAR_FUTURE;
            self.acks.repeat_at = Instant::FAR_FUTURE;
            self.closing.settle();
            self.events.push_back(ReceiverEvent::Ended { stream: STREAM, segments: self.slots.low() });
        }
    }

    /// Finds a place in the buffer for `segment`, which has none. `false` when there is none.
    #[cold]
    fn open(&mut self, now: Instant, segment: u64) -> bool {
        match self.buffer.place(&mut self.slots, segment) {
            Place::Held => true,
            Place::Displaced(old) => {
                self.on_discard(now, old);
                true
            }
            Place::Refused => false,
        }
    }

    /// A held segment has lost its place (FC 4.3.1).
    fn on_discard(&mut self, now: Instant, segment: u64) {
        let eager = self.config.acknowledgment == Acknowledgment::SoftEager;
        let slot = self.slots.get_mut(segment);
        slot.asked = false;
        let on_its_way = self.ideal && slot.outstanding;
        if eager && !on_its_way {
            self.check(now, segment, Ask::Again);
        }
    }

    /// Puts a data packet where it belongs. EC 4.2, step 2.
    #[inline]
    fn store(&mut self, now: Instant, data: &Data) -> Stored {
        let segment = u64::from(data.segment);
        if !self.slots.contains(segment) || (!self.slots.get(segment).held && !self.open(now, segment)) {
            self.dropped += 1;
            return Stored::No;
        }
        let packet = u32::from(data.packet);
        let literal = self.literal;
        let slot = self.slots.get_mut(segment);
        if packet >= slot.units || slot.accepted {
            return Stored::No;
        }
        if slot.present.set(packet) {
            slot.missing -= 1;
        } else if literal {
            // A packet whose loss was tolerated comes after all: one hole less.
            slot.tolerated.clear(packet);
        }
        if data.last && !slot.length_known {
            slot.learn_length(packet + 1);
        }
        if slot.asked && slot.requests == 1 {
            slot.requests = 2;
            let after = now.since(slot.requested_at);
            self.acks.on_answer(now, after);
            return Stored::of(self.slots.get(segment), packet);
        }
        Stored::of(slot, packet)
    }

    #[inline]
    fn on_data(&mut self, now: Instant, data: &Data) {
        if self.config.discard == Discard::Group {
            self.note_of_group(data);
            return;
        }
        let stored = self.store(now, data);
        if self.ideal {
            self.highest = self.highest.max(u64::from(data.segment) + 1);
            return;
        }
        let shipment = expand(u64::from(data.shipment), 32, self.detector.highest().map_or(0, |highest| highest + 1));
        let lost_before = self.detector.newly_lost();
        let arrival = self.detector.on_arrival(shipment);
        let segment = u64::from(data.segment);
        let quiet = arrival == Arrival::InOrder && stored == Stored::Fills && segment < self.highest && self.triggers.is_empty();
        if quiet {
            self.heard = now;
            self.newest_segment = segment;
            return;
        }
        self.on_news(now, data, Shipped { shipment, arrival, lost_before }, stored);
    }

    /// EC 4.2, step 3: whether the checker is called for this packet.
    fn on_news(&mut self, now: Instant, data: &Data, shipped: Shipped, stored: Stored) {
        let segment = u64::from(data.segment);
        let shipment = shipped.shipment;
        if stored == Stored::Completes {
            let slot = self.slots.get(segment);
            let holes = if self.literal { slot.tolerated.count_ones() } else { 0 };
            self.accept(now, segment, holes);
        } else if stored == Stored::LastExpected {
            self.triggers.push(Trigger { shipment, from: segment, to: segment + 1, cause: Cause::LastExpected });
        }
        if self.note_arrival(now, shipped.arrival) {
            if shipped.arrival == Arrival::Gap {
                let cause = Cause::Gap { lost_before: shipped.lost_before };
                self.triggers.push(Trigger { shipment, from: self.newest_segment, to: segment, cause });
            }
            self.newest_segment = segment;
        }
        if segment >= self.highest && self.slots.contains(segment) {
            // EC 3.2: a packet of segment i + 1 shows that all of segment i was sent. The range [n1, n2 - 1]
            // of EC 4.2 alone misses the end of a segment when the packet behind the gap is a repetition.
            self.triggers.push(Trigger { shipment, from: self.highest.saturating_sub(1), to: segment, cause: Cause::Passed });
            self.highest = segment + 1;
        }
        self.run_triggers(now);
    }

    /// EC 4.2, step 4: a late or repeated shipment number does not restart the loss timer, and that is all:
    /// the data it came with are judged by the presence bitmap. `true` for the highest number so far.
    fn note_arrival(&mut self, now: Instant, arrival: Arrival) -> bool {
        let newest = matches!(arrival, Arrival::InOrder | Arrival::Gap);
        if newest {
            self.heard = now;
            if self.loss_at == Instant::FAR_FUTURE && !self.ended {
                self.loss_at = now + self.loss_timer;
            }
        }
        newest
    }

    fn run_triggers(&mut self, now: Instant) {
        while let Some(trigger) = self.triggers.pop(&self.detector) {
            let ask = if trigger.cause == Cause::LastExpected { Ask::Again } else { Ask::Once };
            self.check_range(now, trigger.from, trigger.to, ask);
        }
    }

    /// A mark tells how far the data have gone, and how long the last segment is.
    fn take_mark(&mut self, mark: Mark) {
        let segments = u64::from(mark.segments);
        if let Some(last) = segments.checked_sub(1).filter(|last| self.slots.contains(*last)) {
            self.slots.get_mut(last).learn_length(u32::from(mark.packets));
        }
        self.highest = self.highest.max(segments.min(self.slots.limit()));
    }

    /// A keep-alive or end-of-stream packet (EC 4.2, step 3).
    fn on_mark(&mut self, now: Instant, mark: Mark, is_end: bool) {
        let segments = u64::from(mark.segments);
        let shipment = expand(u64::from(mark.shipment), 32, self.detector.highest().map_or(0, |highest| highest + 1));
        let arrival = self.detector.on_arrival(shipment);
        if self.note_arrival(now, arrival) {
            self.newest_segment = segments.saturating_sub(1);
        }
        self.take_mark(mark);
        if is_end {
            self.take_end(segments);
        }
        // EC 4.2 checks [H, n] for a keep-alive with n > H, which misses the lost end of segment H itself;
        // here as for the end of the stream, from the next expected in sequence.
        self.triggers.push(Trigger { shipment, from: self.slots.low(), to: segments, cause: Cause::Passed });
        self.run_triggers(now);
        // FC 3.1 speaks of special messages for the window, which FC 3.2 does not have. A sender at a pause
        // may be a sender before a closed window whose last PACK was lost: the edges are sent to it again.
        let below = self.slots.low().checked_sub(1);
        self.acks.pack(now, below, self.edges(), false, self.below_holes, self.ended);
    }

    fn take_end(&mut self, segments: u64) {
        if self.end.is_none() && segments >= self.highest {
            self.end = Some(segments);
            self.end_if_over();
        }
    }

    /// Ideal feedback: the fate of every packet of the group is known now (EC 5.2).
    fn on_group_end(&mut self, now: Instant, mark: Mark) {
        self.take_mark(mark);
        let Some(segment) = u64::from(mark.segments).checked_sub(1) else { return };
        if self.slots.contains(segment) {
            self.slots.get_mut(segment).outstanding = false;
            if self.config.discard == Discard::Group {
                self.keep_or_discard_group(now, segment);
            }
            self.check(now, segment, Ask::Again);
        }
    }

    /// EC 4.2, loss timer processing: [L, H + 1].
    fn on_loss_timer(&mut self, now: Instant) {
        if self.heard > self.expired_at {
            self.expired_in_a_row = 0;
        }
        // Why not at every packet: the deadline would move with each of them. It is looked at when it is due.
        let due = self.heard.max(self.expired_at) + self.loss_timer * (1 << self.expired_in_a_row);
        if now < due {
            self.loss_at = due;
            return;
        }
        self.expired_at = now;
        self.expired_in_a_row = (self.expired_in_a_row + 1).min(LOSS_TIMER_DOUBLINGS);
        self.loss_at = now + self.loss_timer * (1 << self.expired_in_a_row);
        self.check_range(now, self.slots.low(), self.highest, Ask::Once);
        let next = self.highest;
        if self.slots.contains(next) && self.end.is_none() {
            // H + 1 may have been lost as a whole. It is requested once an expiry and never judged; a sender
            // that has not sent it ignores that.
            let units = self.slots.get(next).units;
            self.request.reset(units);
            self.request.set_range(0, units);
            self.acks.snak(now, next, self.edges(), &self.request);
        }
    }
}

/// What a data packet did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stored {
    /// Nothing.
    No,
    /// It is one of its segment's packets.
    Fills,
    /// It is the last expected one, and others are missing.
    LastExpected,
    /// Nothing is missing any more.
    Completes,
}

impl Stored {
    #[inline]
    const fn of(slot: &slot::Slot, packet: u32) -> Self {
        if slot.missing == 0 {
            Self::Completes
        } else if packet == slot.expected_last {
            Self::LastExpected
        } else {
            Self::Fills
        }
    }
}

/// How a data packet came.
#[derive(Clone, Copy, Debug)]
struct Shipped {
    shipment: u64,
    arrival: Arrival,
    /// Numbers declared lost before it came.
    lost_before: u64,
}

impl segstream_base::halves::Receiver for Receiver {
    type Forward = Forward;
    type Feedback = Feedback;

    #[inline]
    fn handle_forward(&mut self, now: Instant, packet: &Forward) {
        if self.closing.is_closed() {
            return;
        }
        self.closing.restart(now);
        match packet {
            Forward::Data(data) if data.connection == self.config.connection => self.on_data(now, data),
            Forward::KeepAlive(mark) if mark.connection == self.config.connection && !self.ideal => self.on_mark(now, *mark, false),
            Forward::EndStream(mark) if mark.connection == self.config.connection => {
                if self.ideal {
                    self.take_mark(*mark);
                    self.take_end(u64::from(mark.segments));
                } else {
                    self.on_mark(now, *mark, true);
                }
            }
            Forward::GroupEnd(mark) if mark.connection == self.config.connection && self.ideal => self.on_group_end(now, *mark),
            _ => {}
        }
    }

    #[inline]
    fn poll_transmit(&mut self, now: Instant) -> Option<Feedback> {
        self.acks.pop(now)
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Deadline> {
        let mut next = Deadline { at: self.loss_at, timer: "loss" };
        if self.acks.repeat_at < next.at {
            next = Deadline { at: self.acks.repeat_at, timer: "request" };
        }
        let throttled = self.throttled_until();
        if throttled < next.at {
            next = Deadline { at: throttled, timer: "user" };
        }
        if self.closing.at() < next.at {
            next = Deadline { at: self.closing.at(), timer: "close" };
        }
        if let Some(at) = self.acks.next_at().filter(|at| *at < next.at) {
            next = Deadline { at, timer: "acknowledgment" };
        }
        (next.at != Instant::FAR_FUTURE).then_some(next)
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.closing.close_if_due(now) {
            self.close();
        }
        if now >= self.throttled_until() {
            self.on_throttle(now);
        }
        if now >= self.acks.repeat_at {
            self.repeat_requests(now);
        }
        if now >= self.loss_at {
            self.on_loss_timer(now);
        }
    }

    #[inline]
    fn poll_event(&mut self) -> Option<ReceiverEvent> {
        self.events.pop_front()
    }

    fn probe(&self, out: &mut dyn Probe) {
        let asked = (self.slots.low()..self.slots.limit()).filter(|segment| self.slots.get(*segment).asked).count();
        out.gauge("receive_window_low_segments", self.slots.low() as f64);
        out.gauge("receive_window_limit_segments", self.slots.limit() as f64);
        out.gauge("highest_segments", self.highest as f64);
        out.gauge("buffered_segments", self.buffer.held() as f64);
        out.gauge("requested_segments", asked as f64);
        out.gauge("lost_packets", self.detector.newly_lost() as f64);
        out.gauge("late_packets", self.detector.late_total() as f64);
        out.gauge("dropped_packets", self.dropped as f64);
        out.gauge("closed", f64::from(u8::from(self.closing.is_closed())));
        out.gauge("requests_sent_packets", self.acks.requests_sent as f64);
        out.gauge("acknowledgments_sent_packets", self.acks.packs_sent as f64);
    }
}
