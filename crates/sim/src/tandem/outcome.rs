//! What a run over a tandem brought: counts and sums, over the measured slots.
//!
//! Made by [`super::Tandem`]; read by laboratories and tests.
//!
//! Invariant: everything is an integer, so that runs compare byte by byte and merge without rounding.

use super::queue::QueueOutcome;
use super::steady_state;

/// Parts of a run of equal length, give or take a slot. A multiple of 4, for [`steady_state`].
pub const BATCHES: usize = 64;

/// Delays in slots, added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct DelaySums {
    /// How many.
    pub count: u64,
    /// Their sum.
    pub slots_sum: u64,
    /// The sum of their squares.
    pub slots_squared_sum: u128,
    /// The longest.
    pub slots_max: u64,
}

impl DelaySums {
    pub(super) fn add(&mut self, slots: u64) {
        self.count += 1;
        self.slots_sum += slots;
        self.slots_squared_sum += u128::from(slots) * u128::from(slots);
        self.slots_max = self.slots_max.max(slots);
    }

    /// Takes in the delays of another part of the run, or of another run.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.slots_sum += other.slots_sum;
        self.slots_squared_sum += other.slots_squared_sum;
        self.slots_max = self.slots_max.max(other.slots_max);
    }

    /// The mean in slots; not a number without any.
    pub fn slots_mean(&self) -> f64 {
        self.slots_sum as f64 / self.count as f64
    }

    /// The variance in slots squared, of these delays and no others; not a number without any.
    pub fn variance(&self) -> f64 {
        let mean = self.slots_mean();
        (self.slots_squared_sum as f64 / self.count as f64 - mean * mean).max(0.0)
    }
}

/// One of the [`BATCHES`] parts of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Batch {
    /// Its slots.
    pub slots: u64,
    /// Messages that arrived.
    pub messages_offered: u64,
    /// The delays of the messages that were delivered, by the slot of delivery.
    pub delay: DelaySums,
    /// Messages that had arrived and were not judged, added up over the slots.
    pub backlog_sum: u64,
    /// The most of them.
    pub backlog_max: u64,
    /// How many there were at its end.
    pub backlog_end: u64,
}

impl Batch {
    /// The mean number of messages that had arrived and were not judged; not a number without slots.
    pub fn backlog_mean(&self) -> f64 {
        self.backlog_sum as f64 / self.slots as f64
    }
}

/// What happened in the measured slots.
///
/// A message's delay runs from the slot of its arrival at XTP1 to the one in which the packet that completes it, in
/// order, leaves XTP2 (XT 4). It counts where it is delivered, whenever it arrived.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct TandemOutcome {
    /// Measured slots.
    pub slots: u64,
    /// Messages that arrived.
    pub messages_offered: u64,
    /// Packets of those messages.
    pub packets_offered: u64,
    /// Messages that were judged without their promise being kept; no message of a reliable scheme.
    pub messages_unmet: u64,
    /// The delays of the messages that were delivered.
    pub delay: DelaySums,
    /// The same in parts, in their order.
    pub batches: Vec<Batch>,
    /// Data packets that entered XTP1's server, new and again.
    pub packets_sent: u64,
    /// Retransmissions among them.
    pub packets_retransmitted: u64,
    /// Data packets that the link corrupted.
    pub packets_corrupted: u64,
    /// Data packets that left XTP2.
    pub packets_received: u64,
    /// Control packets from sender to receiver.
    pub control_packets: u64,
    /// Packets from receiver to sender.
    pub feedback_packets: u64,
    /// LINK1.
    pub link1: QueueOutcome,
    /// LINK2.
    pub link2: QueueOutcome,
    /// XTP2.
    pub xtp2: QueueOutcome,
    /// Messages that had arrived and were not judged when the measured slots began.
    pub backlog_start: u64,
    /// And when they ended.
    pub backlog_end: u64,
}

impl TandemOutcome {
    /// Messages that were delivered.
    pub const fn messages_delivered(&self) -> u64 {
        self.delay.count
    }

    /// The mean delay of a message in slots; not a number when none was delivered.
    pub fn delay_slots_mean(&self) -> f64 {
        self.delay.slots_mean()
    }

    /// Messages delivered in a slot.
    pub fn throughput_messages_per_slot(&self) -> f64 {
        self.messages_delivered() as f64 / self.slots as f64
    }

    /// Packets of the halves that found no room in a queue.
    pub const fn overflow_drops(&self) -> u64 {
        self.link1.dropped.user + self.link2.dropped.user + self.xtp2.dropped.user
    }

    /// The mean number of messages that had arrived and were not judged.
    pub fn backlog_messages_mean(&self) -> f64 {
        self.batches.iter().map(|batch| batch.backlog_sum).sum::<u64>() as f64 / self.slots as f64
    }

    /// Whether the run never reached a steady state, by the rule of [`steady_state`].
    pub fn unstable(&self) -> bool {
        steady_state::is_unstable(&self.batches)
    }
}
