//! The messages of a run: drawn, waiting for the half to take them, and on their way.
//!
//! Called by [`super::Tandem`].
//!
//! A message is a segment. A half may refuse it for now; then it waits in front of the half, in the unlimited queue of
//! XTP1, and its delay runs.
//!
//! Invariant: the number of a segment is the place of its message in the order of arrival.

use super::config::TandemConfig;
use segstream_base::Instant;
use segstream_base::halves::{Segment, SegmentNumber, Sender, StreamId, SubmitError};
use segstream_base::random::Random;
use std::collections::VecDeque;

/// Stands for the arrival of a message that is judged.
const JUDGED: u64 = u64::MAX;

#[derive(Clone, Debug)]
pub(super) struct Messages {
    lengths: Random,
    goes_on: f64,
    packets_max: u32,
    payload_bytes: u64,
    /// Packets of each message that the half has not taken.
    waiting: VecDeque<u32>,
    /// Whether the half has refused the first of them and not said since that it would take it.
    refused: bool,
    /// When each message from `first` on has arrived.
    arrived_at: VecDeque<u64>,
    first: u64,
    /// Messages that have arrived and are not judged.
    pub(super) backlog: u64,
}

impl Messages {
    pub(super) fn new(config: &TandemConfig, lengths: Random) -> Self {
        Self {
            lengths,
            goes_on: config.message_continue,
            packets_max: config.message_packets_max,
            payload_bytes: u64::from(config.packet_payload_bytes),
            waiting: VecDeque::with_capacity(64),
            refused: false,
            arrived_at: VecDeque::with_capacity(1024),
            first: 0,
            backlog: 0,
        }
    }

    /// A message arrives in `slot`. Returns its packets.
    pub(super) fn arrive(&mut self, slot: u64) -> u32 {
        let mut packets = 1;
        while packets < self.packets_max && self.lengths.chance(self.goes_on) {
            packets += 1;
        }
        self.arrived_at.push_back(slot);
        self.waiting.push_back(packets);
        self.backlog += 1;
        packets
    }

    /// The half would take a message now.
    pub(super) const fn unblock(&mut self) {
        self.refused = false;
    }

    /// Hands the half what it takes. Returns whether it took anything.
    pub(super) fn submit<S: Sender>(&mut self, now: Instant, sender: &mut S) -> Result<bool, SubmitError> {
        let mut taken = false;
        while let (false, Some(&packets)) = (self.refused, self.waiting.front()) {
            let bytes = Some(u64::from(packets) * self.payload_bytes);
            match sender.submit(now, Segment { stream: StreamId(0), bytes, source_time: now, tolerance: None }) {
                Ok(_) => {
                    self.waiting.pop_front();
                    taken = true;
                }
                Err(SubmitError::Blocked) => self.refused = true,
                Err(error) => return Err(error),
            }
        }
        Ok(taken)
    }

    /// The number of the first message that the half has not taken.
    pub(super) fn next(&self) -> u64 {
        self.first + (self.arrived_at.len() - self.waiting.len()) as u64
    }

    /// A message is judged. Returns when it arrived; `None` when it was judged before or never submitted.
    pub(super) fn judge(&mut self, segment: SegmentNumber) -> Option<u64> {
        let place = usize::try_from(segment.0.checked_sub(self.first)?).ok()?;
        let arrived_at = self.arrived_at.get_mut(place).filter(|at| **at != JUDGED)?;
        let at = std::mem::replace(arrived_at, JUDGED);
        self.backlog -= 1;
        while self.arrived_at.front() == Some(&JUDGED) {
            self.arrived_at.pop_front();
            self.first += 1;
        }
        Some(at)
    }
}
