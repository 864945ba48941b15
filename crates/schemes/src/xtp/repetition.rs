//! Which packets leave again: all from RSEQ on, or those that are missing; and what a request that comes twice does.
//!
//! Called by the sender, which lets these packets leave before new ones (XT 3.2). Sources: XT Table 1; the filters are ours,
//! for the study does not say how a request that was already served is recognised.
//!
//! A sender that goes back does so once within the round trip of control for the same RSEQ, and then resends all
//! from RSEQ on, whenever each packet left: a filter for each packet would leave out some that a discarding receiver
//! needs again. A selective sender filters each packet, by its last transmission.
//!
//! Invariant: only packets that have left and are not acknowledged are in the set, each once.

use super::packet::Feedback;
use super::unacknowledged::Unacknowledged;
use core::ops::Range;
use segstream_base::{Duration, Instant};
use segstream_blocks::RangeSet;

/// The packets to be retransmitted, by number.
#[derive(Clone, Debug)]
pub(super) struct Repetition {
    again: RangeSet,
    /// The round trip of control.
    filter: Duration,
    /// For which RSEQ the sender went back last, and when.
    went_back: Option<(u64, Instant)>,
    times: u64,
}

impl Repetition {
    pub(super) fn new(filter: Duration) -> Self {
        Self { again: RangeSet::new(), filter, went_back: None, times: 0 }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.again.is_empty()
    }

    /// How many packets wait.
    pub(super) fn len(&self) -> u64 {
        self.again.len()
    }

    /// How often the sender went back.
    pub(super) const fn times_back(&self) -> u64 {
        self.times
    }

    /// The lowest packet, which leaves now.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<u64> {
        let number = self.again.first()?.start;
        self.again.remove(number..number + 1);
        Some(number)
    }

    /// Packets below `first` are acknowledged.
    #[inline]
    pub(super) fn release(&mut self, first: u64) {
        if !self.again.is_empty() {
            self.again.remove(0..first);
        }
    }

    /// Everything from RSEQ on leaves again (XT Table 1, 2.2), unless that was just done for the same RSEQ.
    pub(super) fn go_back(&mut self, now: Instant, rseq: u64, sent: &Unacknowledged) {
        if self.went_back.is_some_and(|(before, at)| before == rseq && now.since(at) < self.filter) {
            return;
        }
        self.went_back = Some((rseq, now));
        self.times += 1;
        self.again.insert(sent.first()..sent.end());
    }

    /// What `state` says is missing leaves again (XT Table 1, 2.1): the gaps below its last span, and what lies from
    /// there up to `asked`, below which everything had left before the question was asked. What has come need not.
    pub(super) fn select(&mut self, now: Instant, state: &Feedback, asked: u64, sent: &Unacknowledged) {
        let mut gap = state.rseq;
        for span in &state.spans {
            self.insert(now, sent.overlapping(gap..span.start), sent);
            let came = sent.overlapping(span.clone());
            self.again.remove(came);
            gap = span.end;
        }
        if gap < asked {
            self.insert(now, sent.overlapping(gap..asked), sent);
        }
    }

    fn insert(&mut self, now: Instant, packets: Range<u64>, sent: &Unacknowledged) {
        for number in packets {
            if sent.get(number).is_some_and(|packet| now.since(packet.at) >= self.filter) {
                self.again.insert(number..number + 1);
            }
        }
    }
}
