//! The receiving half of SNR: which packets of which blocks have arrived, reported every `T_in`.
//!
//! Called by the laboratory under the contract of the halves. Source: EC 5 and Table 1 (cumulative
//! acknowledgment and selective negative ones, periodic, independent of the data).
//!
//! A block is accepted when the union of everything that arrived of it, first time or again, is whole.
//! The original may well ask for one pass without loss; the union favours SNR in a comparison. Without
//! reliability a block is passed up as it is once a later block, or a state of the sender, has shown that
//! nothing more of it will come.
//!
//! Invariant: the slots hold the blocks of the window behind `cumulative`, and nothing outside it changes
//! anything. A state has a fixed size and needs no allocation.

use super::period::StatePeriod;
use super::{Config, ConfigError, Feedback, Forward, Received, SenderState};
use segstream_base::halves::{Deadline, Probe, ReceiverEvent, SegmentNumber, StreamId, Verdict};
use segstream_base::{Duration, Instant};
use segstream_blocks::Bitmap;
use std::collections::VecDeque;

/// A block of the window.
#[derive(Clone, Debug, Default)]
struct Slot {
    present: Bitmap,
    /// How many packets it has, 0 until one of them has arrived.
    packets: u16,
    accepted: bool,
}

/// The receiving half.
#[derive(Clone, Debug)]
pub struct Receiver {
    config: Config,
    period: StatePeriod,
    /// Block n is in slot n modulo the window.
    slots: Vec<Slot>,
    /// The first block that is not accepted.
    cumulative: u32,
    /// The total number of blocks, once the sender has announced it.
    end: Option<u32>,
    ended: bool,
    /// After the end: how long without hearing from the sender until states stop.
    linger: Duration,
    heard_at: Instant,
    events: VecDeque<ReceiverEvent>,
}

impl Receiver {
    /// State periods beyond a round trip for which an ended receiver stays without hearing anything.
    const LINGER_PERIODS: u64 = 8;

    /// A receiver whose first state is due one period after `now`.
    ///
    /// # Errors
    /// When [`Config::check`] refuses `config`.
    pub fn new(config: Config, now: Instant) -> Result<Self, ConfigError> {
        config.check()?;
        let mut slots = Vec::new();
        slots.resize_with(config.window as usize, Slot::default);
        Ok(Self {
            period: StatePeriod::new(now, config.status_period),
            slots,
            cumulative: 0,
            end: None,
            ended: false,
            linger: config.rtt + config.status_period * Self::LINGER_PERIODS,
            heard_at: now,
            events: VecDeque::with_capacity(config.window as usize + 1),
            config,
        })
    }

    #[inline]
    fn slot(&mut self, block: u32) -> Option<&mut Slot> {
        let index = block % self.config.window;
        self.slots.get_mut(index as usize)
    }

    /// Whether `block` lies in the window and before the end.
    #[inline]
    fn is_open(&self, block: u32) -> bool {
        // Why below the maximum: the number after the last block must exist.
        block.checked_sub(self.cumulative).is_some_and(|behind| behind < self.config.window) && block < self.end.unwrap_or(u32::MAX)
    }

    /// Takes one packet of a block.
    #[inline]
    fn on_data(&mut self, block: u32, packet: u16, packets: u16) {
        if !self.is_open(block) || u32::from(packets) > self.config.segment_packets || packet >= packets {
            return;
        }
        if !self.config.reliable {
            self.pass_before(block);
        }
        let Some(slot) = self.slot(block) else { return };
        if slot.packets == 0 {
            slot.packets = packets;
            slot.present.reset(u32::from(packets));
        }
        // Why: after acceptance nothing is new, and a block cannot change its length.
        if slot.packets == packets && !slot.accepted && slot.present.set(u32::from(packet)) && slot.present.is_full() {
            slot.accepted = true;
            self.deliver(block, Verdict::Complete, u32::from(packets), 0);
            self.advance();
        }
    }

    fn on_state(&mut self, state: &SenderState) {
        if state.end && self.end.is_none() && state.blocks >= self.cumulative {
            self.end = Some(state.blocks);
        }
        let reachable = state.blocks.checked_sub(self.cumulative).is_some_and(|ahead| ahead <= self.config.window);
        if !self.config.reliable && reachable && state.blocks > 0 {
            let highest = state.blocks - 1;
            self.pass_before(highest);
            if state.sent == state.packets && self.cumulative == highest {
                self.pass(u32::from(state.packets));
            }
        }
        self.end_if_over();
    }

    /// Passes up every block before `block` as it is.
    #[inline]
    fn pass_before(&mut self, block: u32) {
        while self.cumulative < block {
            self.pass(self.config.segment_packets);
        }
    }

    /// Passes up the first block that is not accepted, as it is; of `packets_if_unseen` packets when
    /// nothing of it has arrived.
    fn pass(&mut self, packets_if_unseen: u32) {
        let block = self.cumulative;
        let Some(slot) = self.slot(block) else { return };
        slot.accepted = true;
        let (units, present) = if slot.packets == 0 { (packets_if_unseen, 0) } else { (slot.present.len(), slot.present.count_ones()) };
        self.deliver(block, Verdict::WithinTolerance, units, units.saturating_sub(present));
        self.advance();
    }

    fn deliver(&mut self, block: u32, verdict: Verdict, units: u32, holes: u32) {
        let segment = SegmentNumber(u64::from(block));
        self.events.push_back(ReceiverEvent::Delivered { stream: StreamId(0), segment, verdict, units, holes });
    }

    /// Moves the window over the blocks accepted at its front.
    fn advance(&mut self) {
        while let Some(slot) = self.slot(self.cumulative)
            && slot.accepted
        {
            (slot.accepted, slot.packets) = (false, 0);
            self.cumulative += 1;
        }
        self.end_if_over();
    }

    fn end_if_over(&mut self) {
        if !self.ended && self.end.is_some_and(|end| self.cumulative >= end) {
            self.ended = true;
            self.events.push_back(ReceiverEvent::Ended { stream: StreamId(0), segments: u64::from(self.cumulative) });
        }
    }

    fn state(&mut self, now: Instant) -> Feedback {
        let interval = self.period.take(now);
        // `check` has bounded the window.
        let mut received = Received::new(self.config.window as u16);
        for index in 0..received.count() {
            let block = u64::from(self.cumulative) + u64::from(index);
            let slot = (block % u64::from(self.config.window)) as usize;
            if self.slots.get(slot).is_some_and(|slot| slot.accepted) {
                received.mark(index);
            }
        }
        Feedback { connection: self.config.connection, interval, cumulative: self.cumulative, ended: self.ended, received }
    }
}

impl segstream_base::halves::Receiver for Receiver {
    type Forward = Forward;
    type Feedback = Feedback;

    #[inline]
    fn handle_forward(&mut self, now: Instant, packet: &Forward) {
        let connection = match packet {
            Forward::Data { connection, .. } | Forward::State(SenderState { connection, .. }) => *connection,
        };
        if connection != self.config.connection {
            return;
        }
        self.heard_at = now;
        if self.period.due() == Instant::FAR_FUTURE {
            self.period.resume(now);
        }
        match packet {
            Forward::Data { block, packet, packets, .. } => self.on_data(*block, *packet, *packets),
            Forward::State(state) => self.on_state(state),
        }
    }

    #[inline]
    fn poll_transmit(&mut self, now: Instant) -> Option<Feedback> {
        if now < self.period.due() {
            return None;
        }
        if self.ended && now.since(self.heard_at) > self.linger {
            self.period.stop();
            return None;
        }
        Some(self.state(now))
    }

    /// `state` for the next receiver state; `None` once the stream has ended and the sender is silent.
    #[inline]
    fn poll_timeout(&self) -> Option<Deadline> {
        let at = self.period.due();
        (at != Instant::FAR_FUTURE).then_some(Deadline { at, timer: "state" })
    }

    /// Does nothing: a state that has become due leaves with the next [`poll_transmit`](segstream_base::halves::Receiver::poll_transmit).
    fn handle_timeout(&mut self, _now: Instant) {}

    #[inline]
    fn poll_event(&mut self) -> Option<ReceiverEvent> {
        self.events.pop_front()
    }

    fn probe(&self, out: &mut dyn Probe) {
        let held = self.slots.iter().filter(|slot| slot.packets > 0).count();
        out.gauge("cumulative_blocks", f64::from(self.cumulative));
        out.gauge("held_blocks", held as f64);
    }
}
