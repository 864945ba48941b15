//! Tx2, the transmit state packet processor (HT 5): paces the exchange of states and decides what is lost.
//!
//! Called as a [`Stage`]. Periodically it has Tx1 put a state packet behind the data and tell what went before it, and
//! binds that to the packet's SYNC (HT 3.3). When the receiver's state comes back, what is bound to its ESYNC or to an
//! earlier number and has not arrived is lost (HT 3.3, HT 3.4), at once or `offset` exchanges later (HT 4). It also holds
//! the transmitter's end of the connection.
//!
//! Invariant: only a state with an ESYNC above all before is processed, or a continuation of the newest (HT 4); one that
//! speaks of what was not sent changes nothing.

mod exchange;
mod report;

use super::config::Config;
use super::connection::Connection;
use super::message::{ConnectionNews, Message, SentLog};
use super::packet::{Control, Feedback, Release, Terms, TransmitterState};
use super::pipeline::Routes;
use super::presence::Presence;
use super::ticks::gap_field;
use super::{Class, Ptif, SyncPeriod};
use exchange::{Clock, Departure};
use segstream_base::stage::{Stage, StageId};
use segstream_base::{Duration, Instant};
use segstream_blocks::{Rtt, SyncTable};
use std::collections::VecDeque;

/// Unanswered exchanges that are remembered.
const DEPARTURES_MAX: usize = 1024;

/// The transmit state packet processor.
#[derive(Clone, Debug)]
pub struct Tx2 {
    routes: Routes,
    id: u8,
    connection: Connection,
    terms: Option<Terms>,
    offset: u64,
    ptif: Ptif,
    period: SyncPeriod,
    rtt_guess: Duration,
    rtt: Rtt,
    clock: Clock,
    /// The SYNC of the next exchange.
    sync: u64,
    /// An exchange for which Tx1 has not yet reported what was sent before it.
    underway: bool,
    /// The number after the highest ESYNC that was processed.
    echoed: u64,
    /// Exchanges that are in flight, from `echoed` on, and the newest that was processed.
    departures: VecDeque<Departure>,
    table: SyncTable,
    presence: Presence,
    /// The last report, if it was cut short: its ESYNC, and the number after the last it reported.
    stopped: Option<(u64, u64)>,
    /// Packets sent, as reported by Tx1.
    sent: u64,
    /// Of them not known to have arrived.
    outstanding: u64,
    /// The class that is requested, and the first exchange that asks.
    wanted: Class,
    wanted_since: u64,
    /// Whether the receiver is known to have granted it, and whether it may wait for what is missing.
    granted: bool,
    may_wait: bool,
    /// The class in use, and the one from the next exchange on.
    class: Class,
    class_next: Class,
    /// Whether what was sent before the exchange in flight, and after it, is repeated.
    guarded: bool,
    guarded_next: bool,
    /// The gap this side wants, and the one that network or receiver have raised it to.
    gap: Option<Duration>,
    raised: Option<Duration>,
}

impl Tx2 {
    /// A processor that asks for its connection at `now`, if it has to.
    pub fn new(config: &Config, routes: Routes, now: Instant) -> Self {
        let guarded = config.class.has_error_control();
        Self {
            routes,
            id: config.connection,
            connection: Connection::initiator(config, now),
            terms: None,
            offset: u64::from(config.offset),
            ptif: config.ptif,
            period: config.sync_period,
            rtt_guess: config.rtt,
            rtt: Rtt::new(),
            clock: Clock::new(),
            sync: 0,
            underway: false,
            echoed: 0,
            departures: VecDeque::new(),
            table: SyncTable::new(config.search, config.window as usize),
            presence: Presence::new(),
            stopped: None,
            sent: 0,
            outstanding: 0,
            wanted: config.class,
            wanted_since: 0,
            granted: true,
            may_wait: guarded,
            class: config.class,
            class_next: config.class,
            guarded,
            guarded_next: guarded,
            gap: config.gap,
            raised: None,
        }
    }

    /// Entries of the table of sent packets that were looked at.
    pub const fn slots_searched(&self) -> u64 {
        self.table.searched()
    }

    /// The round trip that TIME and ETIME have measured, smoothed.
    pub fn rtt(&self) -> Option<Duration> {
        self.rtt.smoothed()
    }

    /// How often states are exchanged now.
    pub fn period(&self) -> Duration {
        self.period.at(self.rtt.smoothed().unwrap_or(self.rtt_guess))
    }

    /// Exchanges that were started.
    pub const fn exchanges(&self) -> u64 {
        self.sync
    }

    /// Whether the data of an interval are repeated: those of class 4 and above, and whatever the receiver may wait for,
    /// from the moment such a class is requested until another one is granted.
    const fn guards(&self) -> bool {
        self.class.has_error_control() || self.may_wait
    }

    /// Has Tx1 send the next state packet.
    fn exchange(&mut self, now: Instant, out: &mut Vec<(StageId, Message)>) {
        self.underway = true;
        self.clock.on_exchange(now, self.period());
        // HT 3.2: a class changes between two exchanges.
        self.class = self.class_next;
        self.guarded = self.guarded_next;
        self.guarded_next = self.guards();
        let rate = gap_field(self.gap);
        if self.departures.len() >= DEPARTURES_MAX {
            self.departures.pop_front();
        }
        self.departures.push_back(Departure { sync: self.sync, left: now, gap: Duration::ZERO, packets: 0, rate });
        let state = TransmitterState { connection: self.id, sync: self.sync as u16, time: 0, lseq: 0, class: self.wanted, rate };
        self.sync += 1;
        // Why the class with error control: the window holds for what is repeated.
        let class = if self.guarded_next && !self.class.has_error_control() { self.class.with_error_control() } else { self.class };
        let certain = self.granted && self.class.has_error_control() && self.wanted.has_error_control();
        out.push((self.routes.tx1, Message::Sync { state, class, certain }));
    }

    /// What Tx1 has sent before the newest exchange is bound to it.
    fn on_sent(&mut self, now: Instant, log: &SentLog) {
        self.underway = false;
        let Some(departure) = self.departures.back_mut() else { return };
        (departure.left, departure.gap, departure.packets) = (log.left, log.gap, log.packets.len() as u64);
        let sync = departure.sync;
        for (seq, again) in &log.packets {
            // HT 3.3: what is retransmitted is bound to the current exchange. HT 4: appended to the table.
            if self.guarded || *again {
                self.table.append(sync, *seq);
            }
        }
        self.outstanding += log.sent - self.sent;
        self.sent = log.sent;
        let idle = log.packets.is_empty() && self.outstanding == 0 && !log.waiting;
        self.clock.on_sent(now, self.period(), idle);
    }

    fn on_control(&mut self, now: Instant, control: &Control, out: &mut Vec<(StageId, Message)>) {
        let awaited = self.connection.handle(now, control, self.outstanding == 0);
        self.tell(out);
        if awaited && self.connection.is_open() {
            // The third part of the set-up is a state packet, or data if they come first.
            self.clock.hurry(now);
        }
    }

    /// Sends what the connection has to send, and tells what has become of it.
    fn tell(&mut self, out: &mut Vec<(StageId, Message)>) {
        while let Some(news) = self.connection.poll_news() {
            match news {
                ConnectionNews::Open(terms) => {
                    self.terms = Some(terms);
                    (self.class, self.class_next) = (terms.class, terms.class);
                    // A class that was requested meanwhile is still asked for.
                    self.wanted = if self.granted { terms.class } else { self.wanted };
                    self.may_wait = terms.class.has_error_control() || self.wanted.has_error_control();
                    self.guarded = self.may_wait;
                    self.guarded_next = self.guarded;
                    out.push((self.routes.tx1, Message::Open(terms)));
                    self.adopt(terms.rate, gap_field(self.gap), out);
                }
                ConnectionNews::Refused(_) | ConnectionNews::Released => self.clock.stop(),
            }
            out.push((self.routes.host, Message::Connection(news)));
        }
        while let Some(control) = self.connection.poll() {
            out.push((self.routes.network, Message::Forward { packet: super::Forward::Control(control), slot: 0 }));
        }
    }

    /// HT 3.2: the gap that was echoed is adopted. Where no higher gap was requested in the meantime, the present request holds.
    fn adopt(&mut self, echoed: u16, asked: u16, out: &mut Vec<(StageId, Message)>) {
        self.raised = (echoed > asked).then(|| super::ticks::gap_of_field(echoed));
        out.push((self.routes.tx1, Message::Gap(self.floor())));
    }

    /// The gap by RATE.
    fn floor(&self) -> Duration {
        self.gap.unwrap_or(Duration::ZERO).max(self.raised.unwrap_or(Duration::ZERO))
    }

    fn on_class(&mut self, class: Class) {
        self.may_wait |= class.has_error_control();
        (self.wanted, self.wanted_since, self.granted) = (class, self.sync, false);
    }

    fn on_drained(&mut self, now: Instant, packets: u64, segments: u32, out: &mut Vec<(StageId, Message)>) {
        self.clock.stop();
        self.connection.close(now, Release { lseq: (packets as u16).wrapping_sub(1), segments });
        self.tell(out);
    }

    fn on_feedback(&mut self, now: Instant, feedback: &Feedback, out: &mut Vec<(StageId, Message)>) {
        if feedback.connection() != self.id {
            return;
        }
        match feedback {
            Feedback::State(state) => self.on_report(now, state, out),
            Feedback::Control(control) => self.on_control(now, control, out),
        }
    }
}

impl Stage for Tx2 {
    type Message = Message;

    fn name(&self) -> &'static str {
        "Tx2"
    }

    fn handle(&mut self, now: Instant, message: Message, out: &mut Vec<(StageId, Message)>) {
        match message {
            Message::Feedback(feedback) => self.on_feedback(now, &feedback, out),
            Message::Sent(log) => self.on_sent(now, &log),
            Message::Busy => self.clock.on_busy(now, self.period()),
            Message::Drained { packets, segments } => self.on_drained(now, packets, segments, out),
            Message::Rate(gap) => {
                self.gap = gap;
                out.push((self.routes.tx1, Message::Gap(self.floor())));
            }
            Message::Class(class) => self.on_class(class),
            _ => {}
        }
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Instant> {
        let exchange = if self.underway || !self.connection.is_open() { Instant::FAR_FUTURE } else { self.clock.due() };
        let at = exchange.min(self.connection.due());
        (at != Instant::FAR_FUTURE).then_some(at)
    }

    fn handle_timeout(&mut self, now: Instant, out: &mut Vec<(StageId, Message)>) {
        self.connection.handle_timeout(now);
        self.tell(out);
        if !self.underway && self.connection.is_open() && now >= self.clock.due() {
            self.exchange(now, out);
        }
    }
}
