//! A flow over a shared link.
//!
//! Driven by [`super::Shared`]; implemented by [`Simulation`], and so by every pair of halves, cross traffic too.
//!
//! Invariant: bytes are in one place: `bytes_sent = bytes_arrived + bytes_dropped + bytes_lost + bytes_in_flight`, where
//! no duplication and no corruption is configured.

use super::Entry;
use crate::end::End;
use crate::observer::Observer;
use crate::simulation::Simulation;
use segstream_base::Instant;
use segstream_base::halves::{Probe, Receiver, Sender};
use segstream_path::Passage;

/// The counters of a flow. Bytes are those of whole packets on the forward path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FlowCounters {
    /// Packets the flow sent.
    pub packets_sent: u64,
    /// Their bytes.
    pub bytes_sent: u64,
    /// Retransmitted packets.
    pub packets_retransmitted: u64,
    /// Packets that arrived.
    pub packets_arrived: u64,
    /// Their bytes.
    pub bytes_arrived: u64,
    /// Packets the shared link dropped.
    pub packets_dropped: u64,
    /// Their bytes.
    pub bytes_dropped: u64,
    /// Packets the flow's own path lost or dropped.
    pub packets_lost: u64,
    /// Their bytes.
    pub bytes_lost: u64,
    /// Packets that arrive marked.
    pub packets_marked: u64,
    /// The bytes that are in flight.
    pub bytes_in_flight: u64,
    /// Units that were delivered, each once, in segments whose promise was kept.
    pub units_delivered: u64,
}

/// A flow over a shared link.
pub trait Flow {
    /// When its next event comes; its start before it has started, [`Instant::FAR_FUTURE`] when nothing is pending.
    fn next_at(&self) -> Instant;
    /// Runs every event up to `to` and those at it.
    fn advance(&mut self, to: Instant);
    /// What it has done so far.
    fn counters(&self) -> FlowCounters;
    /// Why it has failed, if it has.
    fn failed(&self) -> Option<End>;
    /// Writes the gauges of its sending half.
    fn probe(&self, out: &mut dyn Probe);
    /// The number of its entry to the link.
    fn entry_number(&self) -> Option<u64>;
    /// The shared link has decided at `now` about the packet `id`.
    fn decided(&mut self, now: Instant, id: u64, passage: &Passage);
}

impl<S, R, O> Flow for Simulation<S, R, O>
where
    S: Sender,
    R: Receiver<Forward = S::Forward, Feedback = S::Feedback>,
    O: Observer,
{
    fn next_at(&self) -> Instant {
        let next = Self::next_at(self);
        match self.entry() {
            Some(entry) if next < Instant::FAR_FUTURE => entry.global(next),
            _ => next,
        }
    }

    fn advance(&mut self, to: Instant) {
        let local = self.entry().map_or(to, |entry| entry.local(to));
        self.advance_to(local);
    }

    fn counters(&self) -> FlowCounters {
        let counts = self.entry().map(|entry| entry.counts).unwrap_or_default();
        FlowCounters {
            packets_sent: counts.packets_sent,
            bytes_sent: counts.bytes_sent,
            packets_retransmitted: self.sender().counters().packets_retransmitted,
            packets_arrived: counts.packets_arrived,
            bytes_arrived: counts.bytes_arrived,
            packets_dropped: counts.packets_dropped,
            bytes_dropped: counts.bytes_dropped,
            packets_lost: counts.packets_lost,
            bytes_lost: counts.bytes_lost,
            packets_marked: counts.packets_marked,
            bytes_in_flight: self.bytes_in_flight(),
            units_delivered: self.units_delivered(),
        }
    }

    fn failed(&self) -> Option<End> {
        Self::failed(self)
    }

    fn probe(&self, out: &mut dyn Probe) {
        self.sender().probe(out);
    }

    fn entry_number(&self) -> Option<u64> {
        self.entry().map(Entry::number)
    }

    fn decided(&mut self, now: Instant, id: u64, passage: &Passage) {
        let local = self.entry().map_or(now, |entry| entry.local(now));
        self.decided_on_link(local, id, passage);
    }
}
