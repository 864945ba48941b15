//! What one run over a tandem gave: counts and sums of slots.
//!
//! Made by [`super::run`], kept by [`crate::store`], joined over replications by [`super::TandemResult`].
//!
//! Invariant: nothing in an outcome depends on the machine; all is of the measured slots.

use segstream_sim::tandem::TandemOutcome as Simulated;
use serde::{Deserialize, Serialize};

/// The outcome of one run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct TandemOutcome {
    /// Why the run ended early, if it did.
    pub trouble: Option<String>,
    /// Whether it never reached a steady state: then its mean delay says how long it was, and nothing else.
    pub unstable: bool,
    /// Measured slots.
    pub slots: u64,
    /// Messages that arrived.
    pub messages_offered: u64,
    /// Messages that were delivered.
    pub messages_delivered: u64,
    /// Their delays, added up: from the arrival at XTP1 to the departure from XTP2 of the packet that completes them, in order.
    pub delay_slots_sum: u64,
    /// The longest of them.
    pub delay_slots_max: u64,
    /// Data packets that entered XTP1's server, new and again.
    pub packets_sent: u64,
    /// Retransmissions among them.
    pub packets_retransmitted: u64,
    /// Data packets that the link corrupted.
    pub packets_corrupted: u64,
    /// Control packets from sender to receiver.
    pub control_packets: u64,
    /// Packets from receiver to sender.
    pub feedback_packets: u64,
    /// Data packets that found no room at LINK1.
    pub link1_drops: u64,
    /// And at LINK2.
    pub link2_drops: u64,
    /// And at XTP2.
    pub xtp2_drops: u64,
    /// External packets that arrived at LINK1.
    pub external_packets: u64,
    /// Those of them that found no room there.
    pub external_drops: u64,
    /// Messages that had arrived and were not judged, added up over the slots.
    pub backlog_messages_sum: u64,
    /// How many there were at the end.
    pub backlog_messages_end: u64,
}

impl TandemOutcome {
    /// The mean delay of a message in slots; not a number without a steady state, or without a message.
    pub fn delay_slots_mean(&self) -> f64 {
        if self.unstable { f64::NAN } else { self.delay_slots_sum as f64 / self.messages_delivered as f64 }
    }

    /// Messages delivered in a slot.
    pub fn throughput_messages_per_slot(&self) -> f64 {
        self.messages_delivered as f64 / self.slots as f64
    }

    /// Data packets that found no room in a queue.
    pub const fn overflow_drops(&self) -> u64 {
        self.link1_drops + self.link2_drops + self.xtp2_drops
    }
}

impl From<&Simulated> for TandemOutcome {
    fn from(run: &Simulated) -> Self {
        Self {
            trouble: None,
            unstable: run.unstable(),
            slots: run.slots,
            messages_offered: run.messages_offered,
            messages_delivered: run.messages_delivered(),
            delay_slots_sum: run.delay.slots_sum,
            delay_slots_max: run.delay.slots_max,
            packets_sent: run.packets_sent,
            packets_retransmitted: run.packets_retransmitted,
            packets_corrupted: run.packets_corrupted,
            control_packets: run.control_packets,
            feedback_packets: run.feedback_packets,
            link1_drops: run.link1.dropped.user,
            link2_drops: run.link2.dropped.user,
            xtp2_drops: run.xtp2.dropped.user,
            external_packets: run.link1.arrived.external,
            external_drops: run.link1.dropped.external,
            backlog_messages_sum: run.batches.iter().map(|batch| batch.backlog_sum).sum(),
            backlog_messages_end: run.backlog_end,
        }
    }
}
