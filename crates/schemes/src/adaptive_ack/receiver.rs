//! The receiving half of adaptive acknowledgment: what has arrived, and in-order delivery.
//!
//! Called by the laboratory under the contract of the halves. Source: AA 2, receiver operations.
//!
//! What arrives behind a gap is kept, up to the window, and delivered when the gap is filled. What is told, and when, is
//! the business of `status`. The timer runs from the start to the end of the half: only so does a sender whose acknowledgments
//! were lost learn of the end.
//!
//! Invariant: that of [`InOrder`]: segments are delivered in order, whole, once, and nothing outside the window counts.

use super::packet::{Feedback, Forward};
use super::status::Status;
use super::{Config, ConfigError};
use crate::in_order::InOrder;
use segstream_base::Instant;
use segstream_base::halves::{Deadline, Probe, ReceiverEvent};

/// The receiving half.
#[derive(Clone, Debug)]
pub struct Receiver {
    config: Config,
    status: Status,
    /// The first packet that is missing in it is the cumulative number.
    order: InOrder,
}

impl Receiver {
    /// A receiver whose first status is due T_normal after `now`.
    ///
    /// # Errors
    /// When [`Config::check`] refuses `config`.
    pub fn new(config: Config, now: Instant) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self { status: Status::new(&config, now), order: InOrder::new(config.window, config.segment_packets), config })
    }
}

impl segstream_base::halves::Receiver for Receiver {
    type Forward = Forward;
    type Feedback = Feedback;

    #[inline]
    fn handle_forward(&mut self, now: Instant, packet: &Forward) {
        if !packet.is_for(self.config.connection) || !self.order.keep(packet) {
            return;
        }
        self.status.on_arrival(now, packet.sequence(), self.order.next());
        let continues = self.order.advance();
        if self.order.has_ended() {
            self.status.on_end();
        }
        if !continues {
            self.status.on_refused(now, self.order.next());
        }
    }

    #[inline]
    fn poll_transmit(&mut self, _now: Instant) -> Option<Feedback> {
        self.status.pop()
    }

    /// `status`: T_normal or T_error after the timer was set last.
    #[inline]
    fn poll_timeout(&self) -> Option<Deadline> {
        Some(Deadline { at: self.status.due(), timer: "status" })
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.status.on_timeout(now, self.order.next());
    }

    #[inline]
    fn poll_event(&mut self) -> Option<ReceiverEvent> {
        self.order.poll_event()
    }

    fn probe(&self, out: &mut dyn Probe) {
        out.gauge("next_packet", f64::from(self.order.next()));
        out.gauge("held_packets", f64::from(self.order.held()));
        out.gauge("gaps", self.status.gaps() as f64);
        out.gauge("error_phase", if self.status.in_error() { 1.0 } else { 0.0 });
        out.gauge("received_again_packets", self.order.received_again() as f64);
    }
}
