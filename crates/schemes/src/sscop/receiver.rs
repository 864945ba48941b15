//! The receiving half of SSCOP: what has arrived, what is missing, and the answers.
//!
//! Called by the laboratory under the contract of the halves. Source: Q.2110 6 and 7.
//!
//! VR(H) is the end of what the receiver knows to have been sent. An SD beyond it shows a gap, which a USTAT names at
//! once and never again; a POLL moves it to the sender's VT(S), so that a lost tail is found too, and is answered with
//! the list of all gaps. A list too long for one STAT continues in the next, with the gap at which it was cut.
//!
//! An SD that is here already is not counted as an error: UDP doubles and overtakes, ATM does not.
//!
//! Invariant: the slots hold the SDs of the window behind VR(R), and nothing outside it changes anything but VR(H), which
//! never leaves the window; segments are delivered in order, whole, once.

use super::packet::{Feedback, Forward};
use super::pdu::{expand, truncated};
use super::{Config, ConfigError};
use segstream_base::Instant;
use segstream_base::halves::{Deadline, Probe, ReceiverEvent, SegmentNumber, StreamId, Verdict};
use std::collections::VecDeque;

/// This many answers are kept for a driver that does not take them; further ones are as good as lost.
const ANSWERS_MAX: usize = 4096;

/// The receiving half.
#[derive(Clone, Debug)]
pub struct Receiver {
    config: Config,
    /// Whether SD n is here: in slot n modulo the window.
    here: Vec<bool>,
    /// VR(SQ): N(SQ) of the newest BGN; `None` before the first.
    vr_sq: Option<u8>,
    /// VR(R): the first SD that is missing.
    vr_r: u64,
    /// VR(H): the first SD that is not known to have been sent.
    vr_h: u64,
    ended: bool,
    held: u32,
    received_again: u64,
    answers: VecDeque<Feedback>,
    events: VecDeque<ReceiverEvent>,
}

impl Receiver {
    /// A receiver; it says nothing until something arrives.
    ///
    /// # Errors
    /// When [`Config::check`] refuses `config`.
    pub fn new(config: Config, _now: Instant) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            here: vec![false; config.window as usize],
            vr_sq: None,
            vr_r: 0,
            vr_h: 0,
            ended: false,
            held: 0,
            received_again: 0,
            answers: VecDeque::new(),
            events: VecDeque::new(),
            config,
        })
    }

    /// The same receiver after `number` segments, for tests at the end of the numbers.
    #[cfg(test)]
    pub(super) fn numbered_from(self, number: u64) -> Self {
        Self { vr_r: number, vr_h: number, ..self }
    }

    /// VR(MR): the first SD that is not taken yet.
    #[inline]
    fn vr_mr(&self) -> u64 {
        self.vr_r + u64::from(self.config.window)
    }

    #[inline]
    fn n_mr(&self) -> u32 {
        truncated(self.vr_mr())
    }

    #[inline]
    fn slot(&self, number: u64) -> usize {
        (number % u64::from(self.config.window)) as usize
    }

    #[inline]
    fn is_here(&self, number: u64) -> bool {
        self.here.get(self.slot(number)).is_some_and(|here| *here)
    }

    #[inline]
    fn set_here(&mut self, number: u64, value: bool) {
        let slot = self.slot(number);
        if let Some(here) = self.here.get_mut(slot) {
            *here = value;
        }
    }

    fn answer(&mut self, answer: Feedback) {
        if self.answers.len() < ANSWERS_MAX {
            self.answers.push_back(answer);
        }
    }

    /// A BGN: one that was seen is answered again, a new one lets VR(H) go back to what has arrived. What is here stays.
    fn on_bgn(&mut self, n_sq: u8) {
        if self.ended {
            return;
        }
        if self.vr_sq.replace(n_sq) != Some(n_sq) {
            let newest = (self.vr_r..self.vr_h).rev().find(|number| self.is_here(*number));
            self.vr_h = newest.map_or(self.vr_r, |number| number + 1);
        }
        let n_mr = self.n_mr();
        self.answer(Feedback::Bgak { n_mr });
    }

    #[inline]
    fn on_sd(&mut self, n_s: u32) {
        let number = expand(n_s, self.vr_r);
        if number >= self.vr_mr() {
            // The sender does not know its credit; the receiver asks for what it may send.
            self.unsolicited(self.vr_mr());
            return;
        }
        if number < self.vr_r || self.is_here(number) {
            self.received_again += 1;
            return;
        }
        self.set_here(number, true);
        self.held += 1;
        self.unsolicited(number);
        self.vr_h = self.vr_h.max(number + 1);
        self.advance();
    }

    /// Names the gap from VR(H) to `number`, if there is one, and takes it for sent.
    #[inline]
    fn unsolicited(&mut self, number: u64) {
        if self.vr_h < number {
            let list = [truncated(self.vr_h), truncated(number)];
            let (n_mr, n_r) = (self.n_mr(), truncated(self.vr_r));
            self.answer(Feedback::Ustat { list, n_mr, n_r });
            self.vr_h = number;
        }
    }

    /// Delivers what is here in order.
    #[inline]
    fn advance(&mut self) {
        while self.is_here(self.vr_r) {
            self.set_here(self.vr_r, false);
            self.held -= 1;
            let segment = SegmentNumber(self.vr_r);
            self.events.push_back(ReceiverEvent::Delivered {
                stream: StreamId(0),
                segment,
                verdict: Verdict::Complete,
                units: 1,
                holes: 0,
            });
            self.vr_r += 1;
        }
    }

    /// The first SD from `from` on, below VR(H), that is or is not here; VR(H) when there is none.
    fn next(&self, from: u64, here: bool) -> u64 {
        (from..self.vr_h).find(|number| self.is_here(*number) == here).unwrap_or(self.vr_h)
    }

    /// Answers a POLL with all gaps below VR(H).
    fn on_poll(&mut self, n_ps: u32, n_s: u32) {
        // Why the larger: a POLL that was overtaken by SDs is answered too.
        self.vr_h = self.vr_h.max(expand(n_s, self.vr_h).min(self.vr_mr()));
        let mut list = Vec::new();
        let mut at = self.vr_r;
        while at < self.vr_h {
            at = self.next(at, false);
            list.push(truncated(at));
            if at == self.vr_h {
                break;
            }
            if list.len() >= self.config.list_max() {
                self.solicited(core::mem::replace(&mut list, vec![truncated(at)]), n_ps);
            }
            at = self.next(at, true);
            list.push(truncated(at));
        }
        self.solicited(list, n_ps);
    }

    fn solicited(&mut self, list: Vec<u32>, n_ps: u32) {
        let (n_mr, n_r) = (self.n_mr(), truncated(self.vr_r));
        self.answer(Feedback::Stat { list, n_ps, n_mr, n_r });
    }

    fn on_end(&mut self) {
        if self.vr_sq.is_some() && !self.ended {
            self.ended = true;
            self.events.push_back(ReceiverEvent::Ended { stream: StreamId(0), segments: self.vr_r });
        }
        self.answer(Feedback::Endak);
    }
}

impl segstream_base::halves::Receiver for Receiver {
    type Forward = Forward;
    type Feedback = Feedback;

    #[inline]
    fn handle_forward(&mut self, _now: Instant, packet: &Forward) {
        match *packet {
            Forward::Bgn { n_sq, .. } => self.on_bgn(n_sq),
            Forward::End { .. } => self.on_end(),
            // There is no connection, or none any more.
            _ if self.vr_sq.is_none() || self.ended => {}
            Forward::Sd { n_s, .. } => self.on_sd(n_s),
            Forward::Poll { n_ps, n_s } => self.on_poll(n_ps, n_s),
        }
    }

    #[inline]
    fn poll_transmit(&mut self, _now: Instant) -> Option<Feedback> {
        self.answers.pop_front()
    }

    /// `None`: an answer leaves at once.
    #[inline]
    fn poll_timeout(&self) -> Option<Deadline> {
        None
    }

    /// Does nothing.
    fn handle_timeout(&mut self, _now: Instant) {}

    #[inline]
    fn poll_event(&mut self) -> Option<ReceiverEvent> {
        self.events.pop_front()
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.gauge("next_packet", self.vr_r as f64);
        out.gauge("highest_packet", self.vr_h as f64);
        out.gauge("held_packets", f64::from(self.held));
        out.gauge("received_again_packets", self.received_again as f64);
    }
}
