//! Tx1, the transmit data packet processor (HT 5): sends data, retransmits what Tx2 says, releases what has arrived.
//!
//! Called as a [`Stage`]. It hears of units from the host, of terms, exchanges and verdicts from Tx2, of gaps from
//! congestion avoidance. One call of [`Stage::handle_timeout`] sends one packet; a deadline that lies in the past means that one can
//! leave at once.
//!
//! A state packet of Tx2 goes through here, so that it leaves behind the data that are bound to it, on whatever
//! processors the two run.
//!
//! Invariant: with error control at most W packets are unacknowledged, whatever they span; with flow control nothing
//! beyond CREDIT leaves; never do numbers in flight span half of their space.

use super::config::SPAN_MAX;
use super::message::{Message, SentLog, Unit, Verdicts};
use super::packet::{Data, Forward, Terms, TransmitterState};
use super::pipeline::Routes;
use super::ticks::time_field;
use super::{Class, Config};
use segstream_base::halves::SenderCounters;
use segstream_base::stage::{Stage, StageId};
use segstream_base::{Duration, Instant};
use std::collections::VecDeque;

/// By how much packets may lag behind their gap and be made up for.
const CATCH_UP: Duration = Duration::from_millis(10);

/// A unit that was sent and is not below CAACK.
#[derive(Clone, Copy, Debug)]
struct Held {
    unit: Unit,
    released: bool,
    /// Whether it arrives for certain.
    certain: bool,
}

/// The transmit data packet processor.
#[derive(Clone, Debug)]
pub struct Tx1 {
    routes: Routes,
    connection: u8,
    room: u16,
    window: u64,
    open: bool,
    class: Class,
    /// Whether the receiver knows that data have error control.
    certain: bool,
    credit: u16,
    /// Offered and not sent.
    queue: VecDeque<Unit>,
    /// Sent: the numbers from `base` on.
    held: VecDeque<Held>,
    base: u64,
    unacked: u64,
    resend: VecDeque<u64>,
    /// By RATE, and by congestion avoidance.
    gap: Duration,
    gap_avoiding: Duration,
    /// When the next packet may leave.
    due: Instant,
    log: Vec<(u64, bool)>,
    /// Segments, when nothing follows.
    finished: Option<u32>,
    drained: bool,
    counters: SenderCounters,
}

impl Tx1 {
    /// A processor without data.
    pub fn new(config: &Config, routes: Routes, now: Instant) -> Self {
        Self {
            routes,
            connection: config.connection,
            room: config.payload_bytes() as u16,
            window: u64::from(config.window),
            open: !config.connect,
            class: config.class,
            certain: config.class.has_error_control(),
            credit: config.credit,
            queue: VecDeque::new(),
            held: VecDeque::new(),
            base: 0,
            unacked: 0,
            resend: VecDeque::new(),
            gap: config.gap.unwrap_or(Duration::ZERO),
            gap_avoiding: Duration::ZERO,
            due: now,
            log: Vec::new(),
            finished: None,
            drained: false,
            counters: SenderCounters::default(),
        }
    }

    /// What has been sent.
    pub const fn counters(&self) -> SenderCounters {
        self.counters
    }

    /// Units that were offered and not sent.
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Packets that are sent and not acknowledged.
    pub const fn unacknowledged(&self) -> u64 {
        self.unacked
    }

    /// The class of the data that leave.
    pub const fn class(&self) -> Class {
        self.class
    }

    /// The gap between packets that is in force.
    pub fn gap(&self) -> Duration {
        if self.class.has_rate_control() { self.gap.max(self.gap_avoiding) } else { Duration::ZERO }
    }

    /// The number of the next new packet.
    fn next(&self) -> u64 {
        self.base + self.held.len() as u64
    }

    /// Whether a new packet may leave, not considering its gap.
    #[inline]
    fn may_send_new(&self) -> bool {
        let span = self.held.len() as u64;
        !self.queue.is_empty()
            && span < SPAN_MAX
            && (!self.class.has_error_control() || self.unacked < self.window)
            && (!self.class.has_flow_control() || span < u64::from(self.credit))
    }

    #[inline]
    fn may_send(&self) -> bool {
        self.open && (!self.resend.is_empty() || self.may_send_new())
    }

    /// The next packet to leave: one to be repeated before a new one.
    fn take(&mut self) -> Option<(u64, Unit, bool)> {
        while let Some(seq) = self.resend.pop_front() {
            let held = seq.checked_sub(self.base).and_then(|index| self.held.get(index as usize));
            if let Some(held) = held.filter(|held| !held.released) {
                return Some((seq, held.unit, true));
            }
        }
        if !self.may_send_new() {
            return None;
        }
        let unit = self.queue.pop_front()?;
        let seq = self.next();
        self.held.push_back(Held { unit, released: false, certain: self.certain });
        self.unacked += 1;
        Some((seq, unit, false))
    }

    fn send(&mut self, now: Instant, out: &mut Vec<(StageId, Message)>) {
        let Some((seq, unit, again)) = self.take() else { return };
        let gap = self.gap();
        self.due = self.due.max(now - CATCH_UP) + gap;
        self.counters.packets_sent += 1;
        self.counters.packets_retransmitted += u64::from(again);
        let Unit { segment, packet, last, bytes, slot } = unit;
        let data = Data { connection: self.connection, seq: seq as u16, segment, packet, last, room: self.room, bytes };
        out.push((self.routes.network, Message::Forward { packet: Forward::Data(data), slot }));
        if self.log.is_empty() {
            out.push((self.routes.tx2, Message::Busy));
        }
        self.log.push((seq, again));
    }

    fn on_sync(&mut self, now: Instant, mut state: TransmitterState, out: &mut Vec<(StageId, Message)>) {
        let sent = self.next();
        state.time = time_field(now);
        state.lseq = (sent as u16).wrapping_sub(1);
        out.push((self.routes.network, Message::Forward { packet: Forward::State(state), slot: 0 }));
        let waiting = !self.queue.is_empty() || !self.resend.is_empty();
        let log = SentLog { left: now, gap: self.gap(), packets: std::mem::take(&mut self.log), sent, waiting };
        out.push((self.routes.tx2, Message::Sent(Box::new(log))));
    }

    fn on_verdicts(&mut self, verdicts: &Verdicts, out: &mut Vec<(StageId, Message)>) {
        for seq in &verdicts.arrived {
            let Some(index) = seq.checked_sub(self.base) else { continue };
            if let Some(held) = self.held.get_mut(index as usize) {
                release(held, &mut self.unacked, self.routes.host, out);
            }
        }
        while self.base < verdicts.next
            && let Some(mut held) = self.held.pop_front()
        {
            release(&mut held, &mut self.unacked, self.routes.host, out);
            self.base += 1;
        }
        self.resend.extend(&verdicts.lost);
        self.credit = verdicts.credit;
    }

    fn on_open(&mut self, terms: Terms) {
        self.open = true;
        self.class = terms.class;
        self.certain = terms.class.has_error_control();
        self.credit = terms.credit;
    }

    /// Tells once that there is nothing left to do.
    fn drain(&mut self, out: &mut Vec<(StageId, Message)>) {
        if let Some(segments) = self.finished.filter(|_| !self.drained && self.queue.is_empty() && self.held.is_empty()) {
            self.drained = true;
            out.push((self.routes.tx2, Message::Drained { packets: self.base, segments }));
        }
    }
}

/// The unit has arrived, or is not waited for: its slot is free.
fn release(held: &mut Held, unacked: &mut u64, host: StageId, out: &mut Vec<(StageId, Message)>) {
    if !held.released {
        held.released = true;
        *unacked -= 1;
        out.push((host, Message::Release { segment: held.unit.segment, slot: held.unit.slot, arrived: held.certain }));
    }
}

impl Stage for Tx1 {
    type Message = Message;

    fn name(&self) -> &'static str {
        "Tx1"
    }

    fn handle(&mut self, now: Instant, message: Message, out: &mut Vec<(StageId, Message)>) {
        let could_send = self.may_send();
        match message {
            Message::Offer(unit) => self.queue.push_back(unit),
            Message::Finish(segments) => self.finished = Some(segments),
            Message::Open(terms) => self.on_open(terms),
            Message::Sync { state, class, certain } => {
                self.on_sync(now, state, out);
                (self.class, self.certain) = (class, certain);
            }
            Message::Verdicts(verdicts) => self.on_verdicts(&verdicts, out),
            Message::Gap(gap) => self.gap = gap,
            Message::AvoidingGap(gap) => self.gap_avoiding = gap,
            _ => {}
        }
        if !could_send && self.may_send() {
            // Why: time in which nothing could leave is no lag to be made up for.
            self.due = self.due.max(now);
        }
        self.drain(out);
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Instant> {
        self.may_send().then_some(self.due)
    }

    /// Sends one packet, if one may leave.
    #[inline]
    fn handle_timeout(&mut self, now: Instant, out: &mut Vec<(StageId, Message)>) {
        if now >= self.due && self.may_send() {
            self.send(now, out);
        }
    }
}
