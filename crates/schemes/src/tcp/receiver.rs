//! The receiving half of TCP: what has arrived, and an acknowledgment for every packet.
//!
//! Called by the laboratory under the contract of the halves. Source: HT 7.
//!
//! What arrives out of order is kept, up to the window, and delivered when the gap before it is filled: HT does not
//! say, and RFC 9293 3.10.7.4 allows either. Every packet that arrives is answered, also one that was here or that does
//! not fit; the answer is always the first packet that is missing.
//!
//! Invariant: that of [`InOrder`]: segments are delivered in order, whole, once, and nothing outside the window counts.

use super::packet::{Feedback, Forward};
use super::{Config, ConfigError};
use crate::in_order::InOrder;
use segstream_base::Instant;
use segstream_base::halves::{Deadline, Probe, ReceiverEvent};

/// The receiving half.
#[derive(Clone, Debug)]
pub struct Receiver {
    config: Config,
    order: InOrder,
    /// Acknowledgments to be sent.
    owed: u32,
}

impl Receiver {
    /// A receiver; it says nothing until something arrives.
    ///
    /// # Errors
    /// When [`Config::check`] refuses `config`.
    pub fn new(config: Config, _now: Instant) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self { order: InOrder::new(config.window, config.segment_packets), owed: 0, config })
    }
}

impl segstream_base::halves::Receiver for Receiver {
    type Forward = Forward;
    type Feedback = Feedback;

    #[inline]
    fn handle_forward(&mut self, _now: Instant, packet: &Forward) {
        if !packet.is_for(self.config.connection) {
            return;
        }
        if self.order.keep(packet) {
            self.order.advance();
        }
        // Limit: one acknowledgment is one, however many are owed beyond four billion.
        self.owed = self.owed.saturating_add(1);
    }

    #[inline]
    fn poll_transmit(&mut self, _now: Instant) -> Option<Feedback> {
        self.owed = self.owed.checked_sub(1)?;
        Some(Feedback { connection: self.config.connection, next: self.order.next() })
    }

    /// `None`: an acknowledgment leaves at once.
    #[inline]
    fn poll_timeout(&self) -> Option<Deadline> {
        None
    }

    /// Does nothing.
    fn handle_timeout(&mut self, _now: Instant) {}

    #[inline]
    fn poll_event(&mut self) -> Option<ReceiverEvent> {
        self.order.poll_event()
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.gauge("next_packet", f64::from(self.order.next()));
        out.gauge("held_packets", f64::from(self.order.held()));
        out.gauge("received_again_packets", self.order.received_again() as f64);
    }
}
