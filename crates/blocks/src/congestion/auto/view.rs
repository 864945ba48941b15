//! What a mode sees at one exchange.
//!
//! Made by the readings, and read by every mode.
//!
//! Invariant: all numbers are of the path as it was at this exchange; nothing of a mode is in it. Times are in seconds, rates in bytes a
//! second.

use super::calm_loss::CalmLoss;
use segstream_base::Instant;

/// The numbers of one exchange.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(test, derive(Default))]
pub(super) struct View {
    pub(super) now: Instant,
    /// The slot of the schedule of drains.
    pub(super) slot: u64,
    pub(super) exchange: Covered,
    /// The round trip without a queue; control time, which is that but not below [`super::law::TAU_LEAST`].
    pub(super) rtt: f64,
    pub(super) tau: f64,
    pub(super) delay: Delay,
    pub(super) delivery: Delivery,
    pub(super) loss: Loss,
    /// The application, not the path, was the limit; it was in some exchange of the last two tau.
    pub(super) limited: bool,
    pub(super) pauses: bool,
    /// The rate paced at now.
    pub(super) rate: f64,
    /// The size of a full packet, and its time at the highest rate of service seen.
    pub(super) datagram: f64,
    pub(super) datagram_time: f64,
}

/// What the exchange covers.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(test, derive(Default))]
pub(super) struct Covered {
    /// When the state packet left, how long ago that is, and the mean rate paced at since.
    pub(super) sent_at: Instant,
    pub(super) lag: f64,
    pub(super) paced: f64,
    /// The time at either end.
    pub(super) alpha: f64,
    pub(super) beta: f64,
    /// The shipments sent and the bytes received in it.
    pub(super) shipments: f64,
    pub(super) arrived: f64,
}

/// The one-way delay above the base.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(test, derive(Default))]
pub(super) struct Delay {
    /// The queue: the least of a quarter of tau, and of the last two exchanges.
    pub(super) queue: f64,
    pub(super) newest: f64,
    /// The longer of the queues at both ends of the newest exchange.
    pub(super) longer: f64,
    /// Whether a queue stands.
    pub(super) saturated: bool,
    /// How far the delay varies by itself, and the most that it did of late.
    pub(super) noise: f64,
    pub(super) noise_before: f64,
    /// How much of the queue may be what noise has left that is not seen any more.
    pub(super) noise_left: f64,
}

/// How fast the path delivers.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(test, derive(Default))]
pub(super) struct Delivery {
    /// The largest delivery rate of the last ten rounds, and how long a round is.
    pub(super) best: f64,
    pub(super) round: f64,
    /// The rate at which what we send is served while a queue stands: our share of the bottleneck.
    pub(super) service: Option<f64>,
    /// beta / alpha, sent and received a second, over half of tau.
    pub(super) rho: f64,
    pub(super) sent: f64,
    pub(super) received: f64,
    /// Received a second over tau.
    pub(super) received_over_tau: f64,
}

/// What was lost and marked.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(test, derive(Default))]
pub(super) struct Loss {
    /// Whether something was lost in this exchange, and whether something was marked.
    pub(super) has_lost: bool,
    pub(super) has_marked: bool,
    /// The fractions lost and marked over tau.
    pub(super) fraction: f64,
    pub(super) marks: f64,
    /// What is lost without a break at the least.
    pub(super) lasting: f64,
    /// What was lost while the queue was short.
    pub(super) calm: CalmLoss,
}
