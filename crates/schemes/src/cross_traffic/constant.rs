//! A source with a constant rate, and its sink.
//!
//! Called by the driver of the halves.
//!
//! Invariant: there is no feedback, so the source never slows down.

use super::packet::{Ack, Data};
use super::receiver::delivered;
use super::supply::Supply;
use segstream_base::Instant;
use segstream_base::halves::{
    self, Deadline, Probe, ReceiverEvent, Reconfigure, ReconfigureError, Segment, SegmentNumber, SenderCounters, SenderEvent, SubmitError,
};

/// A sender without congestion control.
#[derive(Clone, Debug)]
pub struct Constant {
    supply: Supply,
    sent: u64,
    wake: Instant,
}

impl Constant {
    /// A sender of what `supply` has.
    ///
    /// A greedy supply never ends at one instant and is refused by the simulation as stuck; give it a rate.
    pub const fn new(supply: Supply) -> Self {
        Self { supply, sent: 0, wake: Instant::FAR_FUTURE }
    }
}

impl halves::Sender for Constant {
    type Forward = Data;
    type Feedback = Ack;

    fn submit(&mut self, _now: Instant, _segment: Segment) -> Result<SegmentNumber, SubmitError> {
        Err(SubmitError::Finished)
    }

    fn finish(&mut self, _now: Instant) {}

    fn reconfigure(&mut self, _now: Instant, _change: Reconfigure) -> Result<(), ReconfigureError> {
        Err(ReconfigureError::Unsupported)
    }

    fn handle_feedback(&mut self, _now: Instant, _packet: &Ack) {}

    fn poll_transmit(&mut self, now: Instant) -> Option<Data> {
        self.wake = self.supply.due(now);
        if self.wake > now {
            return None;
        }
        self.supply.take();
        let number = self.sent;
        self.sent += 1;
        Some(Data { transmission: number, sequence: number, ecn: None })
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        (self.wake < Instant::FAR_FUTURE).then_some(Deadline { at: self.wake, timer: "supply" })
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_event(&mut self) -> Option<SenderEvent> {
        None
    }

    fn counters(&self) -> SenderCounters {
        SenderCounters { packets_sent: self.sent, packets_retransmitted: 0 }
    }

    fn probe(&self, _out: &mut dyn Probe) {}
}

/// A receiver that counts and says nothing.
#[derive(Clone, Debug, Default)]
pub struct Sink {
    arrived: Option<u64>,
}

impl halves::Receiver for Sink {
    type Forward = Data;
    type Feedback = Ack;

    fn handle_forward(&mut self, _now: Instant, packet: &Data) {
        self.arrived = Some(packet.sequence);
    }

    fn poll_transmit(&mut self, _now: Instant) -> Option<Ack> {
        None
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        None
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_event(&mut self) -> Option<ReceiverEvent> {
        self.arrived.take().map(delivered)
    }

    fn probe(&self, _out: &mut dyn Probe) {}
}
