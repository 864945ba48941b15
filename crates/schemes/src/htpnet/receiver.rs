//! The receiving half: Rx1 and Rx2 in one place, their messages passed on at once.
//!
//! Called through [`base::halves::Receiver`](segstream_base::halves::Receiver). It stands for the host too: it puts units
//! together to segments, and frees their slots at once.
//!
//! Invariant: a segment is judged once, complete with error control; without, complete or with holes when nothing more of
//! it will come.

mod assembly;

use super::message::{ConnectionNews, Message};
use super::packet::{Feedback, Forward};
use super::pipeline::Routes;
use super::{Config, ConfigError, Rx1, Rx2};
use assembly::Assembly;
use segstream_base::Instant;
use segstream_base::halves::{Deadline, Probe, ReceiverEvent};
use segstream_base::stage::{Stage, StageId};
use std::collections::VecDeque;

/// The receiving half.
#[derive(Clone, Debug)]
pub struct Receiver {
    config: Config,
    rx1: Rx1,
    rx2: Rx2,
    assembly: Assembly,
    inbox: VecDeque<(StageId, Message)>,
    scratch: Vec<(StageId, Message)>,
    packets: VecDeque<Feedback>,
    released: bool,
}

impl Receiver {
    /// A receiver that waits for its connection, or has one.
    ///
    /// # Errors
    /// When [`Config::check`] refuses `config`.
    pub fn new(config: Config, now: Instant) -> Result<Self, ConfigError> {
        config.check()?;
        let mut receiver = Self {
            rx1: Rx1::new(&config, Routes::HALF),
            rx2: Rx2::new(&config, Routes::HALF),
            assembly: Assembly::new(config.segment_packets),
            inbox: VecDeque::new(),
            scratch: Vec::new(),
            packets: VecDeque::new(),
            released: false,
            config,
        };
        receiver.turn_rx2(now);
        Ok(receiver)
    }

    /// Data packets that came although they were there already: repeated without need, or duplicated by the network.
    pub const fn duplicates(&self) -> u64 {
        self.rx1.duplicates()
    }

    /// Whether the connection has been released.
    pub const fn is_released(&self) -> bool {
        self.released
    }

    fn pass_on(&mut self, now: Instant) {
        let mut consumed = 0;
        loop {
            self.inbox.extend(self.scratch.drain(..));
            let Some((to, message)) = self.inbox.pop_front() else { break };
            if to == Routes::HALF.network {
                if let Message::Feedback(packet) = message {
                    self.packets.push_back(packet);
                }
            } else if to == Routes::HALF.rx1 {
                self.rx1.handle(now, message, &mut self.scratch);
            } else if to == Routes::HALF.rx2 {
                self.rx2.handle(now, message, &mut self.scratch);
            } else {
                match message {
                    Message::Deliver { unit, seq } => {
                        consumed += 1;
                        self.assembly.deliver(&unit, seq);
                    }
                    Message::Passed(next) => self.assembly.pass(next),
                    Message::Ended(segments) => self.assembly.end(segments),
                    Message::Connection(news) => self.released |= news == ConnectionNews::Released,
                    _ => {}
                }
            }
        }
        if consumed > 0 {
            self.rx1.handle(now, Message::Consumed(consumed), &mut self.scratch);
        }
    }

    fn turn_rx2(&mut self, now: Instant) {
        if self.rx2.poll_timeout().is_some_and(|at| at <= now) {
            self.rx2.handle_timeout(now, &mut self.scratch);
            self.pass_on(now);
        }
    }
}

impl segstream_base::halves::Receiver for Receiver {
    type Forward = Forward;
    type Feedback = Feedback;

    #[inline]
    fn handle_forward(&mut self, now: Instant, packet: &Forward) {
        self.rx1.handle(now, Message::Forward { packet: *packet, slot: 0 }, &mut self.scratch);
        self.pass_on(now);
    }

    #[inline]
    fn poll_transmit(&mut self, now: Instant) -> Option<Feedback> {
        self.turn_rx2(now);
        self.packets.pop_front()
    }

    /// `connection` for what set-up or release repeats; everything else is an answer.
    #[inline]
    fn poll_timeout(&self) -> Option<Deadline> {
        if !self.packets.is_empty() {
            return Some(Deadline { at: Instant::ZERO, timer: "transmit" });
        }
        self.rx2.poll_timeout().map(|at| Deadline { at, timer: "connection" })
    }

    /// Nothing: whatever is due leaves by [`poll_transmit`](segstream_base::halves::Receiver::poll_transmit).
    fn handle_timeout(&mut self, _now: Instant) {}

    #[inline]
    fn poll_event(&mut self) -> Option<ReceiverEvent> {
        self.assembly.poll()
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.gauge("received_packets", self.rx1.next() as f64);
        out.gauge("credit_packets", f64::from(self.config.credit));
        out.gauge("held_packets", self.rx1.held() as f64);
        out.gauge("spurious_retransmissions", self.rx1.duplicates() as f64);
        out.gauge("late_packets", self.rx1.late() as f64);
        out.gauge("refused_packets", self.rx1.refused() as f64);
    }
}
