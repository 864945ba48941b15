//! A pair that only relays: the packets of every message leave once, in order, as soon as they are requested, and a
//! message is delivered with its last packet. Nothing is answered, and nothing is retransmitted.

#![allow(dead_code, unreachable_pub, reason = "every test binary uses its own part of the pair")]

use segstream_base::Instant;
use segstream_base::codec::{DecodeError, Reader, Writer};
use segstream_base::halves::{
    Deadline, Packet, PayloadSpan, Probe, Receiver, ReceiverEvent, Reconfigure, ReconfigureError, Segment, SegmentNumber, Sender,
    SenderCounters, SenderEvent, StreamId, SubmitError, Verdict,
};
use std::collections::VecDeque;

pub const PACKET_BYTES: u32 = 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    pub message: u64,
    pub left: u64,
}

impl Packet for Piece {
    fn encoded_len(&self) -> usize {
        PACKET_BYTES as usize
    }

    fn encode(&self, out: &mut Writer<'_>) {
        out.u64(self.message);
        out.u64(self.left);
        out.reserve(PACKET_BYTES as usize - 16);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let piece = Self { message: input.u64("message")?, left: input.u64("left")? };
        input.bytes(input.remaining(), "payload")?;
        Ok(piece)
    }

    fn is_data(&self) -> bool {
        true
    }

    fn payload(&self, _index: usize) -> Option<PayloadSpan> {
        None
    }
}

/// There is no feedback.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nothing;

impl Packet for Nothing {
    fn encoded_len(&self) -> usize {
        0
    }

    fn encode(&self, _out: &mut Writer<'_>) {}

    fn decode(_input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self)
    }

    fn is_data(&self) -> bool {
        false
    }

    fn payload(&self, _index: usize) -> Option<PayloadSpan> {
        None
    }
}

#[derive(Debug, Default)]
pub struct RelaySender {
    pub queued: VecDeque<Piece>,
    pub submitted: u64,
    pub counters: SenderCounters,
}

impl Sender for RelaySender {
    type Forward = Piece;
    type Feedback = Nothing;

    fn submit(&mut self, _now: Instant, segment: Segment) -> Result<SegmentNumber, SubmitError> {
        let packets = segment.bytes.unwrap_or(0) / u64::from(PACKET_BYTES);
        let message = self.submitted;
        self.queued.extend((0..packets).rev().map(|left| Piece { message, left }));
        self.submitted += 1;
        Ok(SegmentNumber(message))
    }

    fn finish(&mut self, _now: Instant) {}

    fn reconfigure(&mut self, _now: Instant, _change: Reconfigure) -> Result<(), ReconfigureError> {
        Err(ReconfigureError::Unsupported)
    }

    fn handle_feedback(&mut self, _now: Instant, _packet: &Nothing) {}

    fn poll_transmit(&mut self, _now: Instant) -> Option<Piece> {
        let piece = self.queued.pop_front();
        self.counters.packets_sent += u64::from(piece.is_some());
        piece
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        None
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_event(&mut self) -> Option<SenderEvent> {
        None
    }

    fn counters(&self) -> SenderCounters {
        self.counters
    }

    fn probe(&self, _out: &mut dyn Probe) {}
}

#[derive(Debug, Default)]
pub struct RelayReceiver {
    pub delivered: Option<u64>,
    /// The verdict on every message.
    pub expires: bool,
}

impl Receiver for RelayReceiver {
    type Forward = Piece;
    type Feedback = Nothing;

    fn handle_forward(&mut self, _now: Instant, packet: &Piece) {
        if packet.left == 0 {
            self.delivered = Some(packet.message);
        }
    }

    fn poll_transmit(&mut self, _now: Instant) -> Option<Nothing> {
        None
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        None
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_event(&mut self) -> Option<ReceiverEvent> {
        let segment = SegmentNumber(self.delivered.take()?);
        let verdict = if self.expires { Verdict::Expired } else { Verdict::Complete };
        Some(ReceiverEvent::Delivered { stream: StreamId(0), segment, verdict, units: 1, holes: 0 })
    }

    fn probe(&self, _out: &mut dyn Probe) {}
}
