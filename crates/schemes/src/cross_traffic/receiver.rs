//! The receiver of a model TCP: one acknowledgment for each packet, with the block around it.
//!
//! Called by the driver of the halves.
//!
//! Invariant: an acknowledgment tells of every packet before `next`, and of a run of packets around the one that caused it.
//! Source: RFC 9293 3.8.6, RFC 2018 4, RFC 3168 6.1.3.
//!
//! Limit: a single block, so acknowledgments lost between two blocks may cause a spurious retransmission. Acknowledgments are not
//! delayed.

use super::packet::{Ack, Data};
use segstream_base::Instant;
use segstream_base::halves::{self, Deadline, Probe, ReceiverEvent, SegmentNumber, StreamId, Verdict};
use std::collections::BTreeMap;

/// The receiver of a model TCP.
#[derive(Clone, Debug, Default)]
pub struct Receiver {
    next: u64,
    /// Runs of packets behind a gap: from the key up to before the value.
    runs: BTreeMap<u64, u64>,
    told: u64,
    marked: bool,
    pending: Option<Ack>,
}

impl Receiver {
    /// Keeps that `sequence` has arrived. Returns the run it now belongs to.
    fn note(&mut self, sequence: u64) -> (u64, u64) {
        if sequence < self.next {
            return (sequence, sequence + 1);
        }
        let before = self.runs.range(..=sequence).next_back().map(|(from, to)| (*from, *to));
        if let Some(run) = before.filter(|(_, to)| *to > sequence) {
            return run;
        }
        let from = match before {
            Some((from, to)) if to == sequence => from,
            _ => sequence,
        };
        let to = self.runs.remove(&(sequence + 1)).unwrap_or(sequence + 1);
        self.runs.insert(from, to);
        if from == self.next {
            self.runs.remove(&from);
            self.next = to;
        }
        (from, to)
    }
}

impl halves::Receiver for Receiver {
    type Forward = Data;
    type Feedback = Ack;

    fn handle_forward(&mut self, _now: Instant, packet: &Data) {
        let block = if packet.sequence == self.next && self.runs.is_empty() {
            self.next += 1;
            (packet.sequence, self.next)
        } else {
            self.note(packet.sequence)
        };
        let marked = std::mem::take(&mut self.marked);
        self.pending = Some(Ack { next: self.next, sequence: packet.sequence, transmission: packet.transmission, block, marked });
    }

    fn note_congestion_mark(&mut self, _now: Instant) {
        self.marked = true;
    }

    fn poll_transmit(&mut self, _now: Instant) -> Option<Ack> {
        self.pending.take()
    }

    fn poll_timeout(&self) -> Option<Deadline> {
        None
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_event(&mut self) -> Option<ReceiverEvent> {
        (self.told < self.next).then(|| {
            self.told += 1;
            delivered(self.told - 1)
        })
    }

    fn probe(&self, _out: &mut dyn Probe) {}
}

/// A packet is a segment of one unit.
pub(super) const fn delivered(packet: u64) -> ReceiverEvent {
    ReceiverEvent::Delivered { stream: StreamId(0), segment: SegmentNumber(packet), verdict: Verdict::Complete, units: 1, holes: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use segstream_base::halves::Receiver as _;

    fn acks(order: &[u64]) -> Vec<(u64, (u64, u64))> {
        let mut receiver = Receiver::default();
        order
            .iter()
            .map(|sequence| {
                receiver.handle_forward(Instant::ZERO, &Data { transmission: 0, sequence: *sequence, ecn: None });
                receiver.poll_transmit(Instant::ZERO).map(|ack| (ack.next, ack.block)).unwrap()
            })
            .collect()
    }

    #[test]
    fn blocks_grow_merge_and_are_swallowed() {
        let order = [0, 2, 3, 5, 4, 4, 1, 7, 6, 0];
        let expected = [
            (1, (0, 1)),
            (1, (2, 3)),
            (1, (2, 4)),
            (1, (5, 6)),
            (1, (2, 6)),
            (1, (2, 6)),
            (6, (1, 6)),
            (6, (7, 8)),
            (8, (6, 8)),
            (8, (0, 1)),
        ];
        assert_eq!(acks(&order), expected);
    }
}
