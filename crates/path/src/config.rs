//! Everything a user can ask of one direction of a path.
//!
//! Called by command lines, scenarios and [`crate::Path`].
//!
//! Invariant: [`PathConfig::default`] is a perfect path: no delay, no limit, no impairment.

use crate::aqm::Aqm;
use crate::bottleneck::QueueLimit;
use crate::delay_steps::DelaySteps;
use crate::jitter::Jitter;
use crate::loss_spec::LossSpec;
use crate::opportunity_trace::OpportunityTrace;
use crate::policer::Policer;
use crate::probability::Probability;
use crate::rate_trace::RateTrace;
use crate::reorder::ReorderSpec;
use segstream_base::{Bandwidth, Bytes, Duration};

/// Where packets are lost on the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum LossPlace {
    /// Before the bottleneck: a lost packet does not load the link.
    #[default]
    Before,
    /// After the bottleneck: a lost packet has been queued and transmitted.
    After,
}

/// One direction of a path.
#[derive(Clone, Debug, PartialEq)]
pub struct PathConfig {
    /// The bandwidth of the bottleneck, counting whole packets; `None` is unlimited, and zero is refused.
    /// Default: unlimited.
    pub bandwidth: Option<Bandwidth>,
    /// How the bandwidth changes; unless it is [`RateTrace::NONE`] it takes the place of
    /// [`PathConfig::bandwidth`]. Default: not at all.
    pub trace: RateTrace,
    /// When the link may send, as it was recorded; unless it is [`OpportunityTrace::NONE`] it takes the place of
    /// [`PathConfig::bandwidth`] and of a trace. Default: always.
    pub opportunities: OpportunityTrace,
    /// The AQM of the queue. Default: drop-tail.
    pub aqm: Aqm,
    /// ECN-capable packets with a longer queueing delay are marked (RFC 3168). Default: none.
    pub mark_above: Option<Duration>,
    /// The queue does not know ECN: what it would mark it drops (`noecn` of tc-codel(8)). Default: it knows ECN.
    pub ecn_unaware: bool,
    /// The policer in front of the queue. Default: none.
    pub policer: Option<Policer>,
    /// The capacity of the queue. Default: [`PathConfig::QUEUE_MIN`]; see
    /// [`PathConfig::default_queue`].
    pub queue: QueueLimit,
    /// The delay behind the bottleneck, one way. Default: none.
    pub delay: Duration,
    /// How the delay changes; unless it is [`DelaySteps::NONE`] it takes the place of [`PathConfig::delay`]. Default: not at
    /// all.
    pub delay_steps: DelaySteps,
    /// The variation of the delay, without reordering. Default: none.
    pub jitter: Jitter,
    /// Packets that have left the bottleneck are released in bursts, this far apart; zero releases them at once. Default: zero.
    pub aggregate: Duration,
    /// Which packets are lost. Default: none.
    pub loss: LossSpec,
    /// Where they are lost. Default: before the bottleneck.
    pub loss_at: LossPlace,
    /// Which packets arrive out of order. Default: none.
    pub reorder: ReorderSpec,
    /// The share of packets that arrive twice. Default: none.
    pub duplicate: Probability,
    /// The share of packets in which one bit is flipped. Default: none.
    pub corrupt: Probability,
}

impl PathConfig {
    /// The smallest default queue: 64 KiB.
    pub const QUEUE_MIN: Bytes = Bytes::new(64 << 10);

    /// The queue of a path for which none was given: one bandwidth-delay product of the round trip, and at
    /// least [`PathConfig::QUEUE_MIN`].
    pub fn default_queue(bandwidth: Bandwidth, round_trip: Duration) -> QueueLimit {
        QueueLimit::Bytes(bandwidth.bytes_in(round_trip).max(Self::QUEUE_MIN))
    }

    /// The shortest delay that a packet may have.
    pub fn delay_least(&self) -> Duration {
        self.delay_steps.least().unwrap_or(self.delay)
    }
}

impl Default for PathConfig {
    fn default() -> Self {
        Self {
            bandwidth: None,
            trace: RateTrace::NONE,
            opportunities: OpportunityTrace::NONE,
            aqm: Aqm::DropTail,
            mark_above: None,
            ecn_unaware: false,
            policer: None,
            queue: QueueLimit::Bytes(Self::QUEUE_MIN),
            delay: Duration::ZERO,
            delay_steps: DelaySteps::NONE,
            jitter: Jitter::None,
            aggregate: Duration::ZERO,
            loss: LossSpec::None,
            loss_at: LossPlace::Before,
            reorder: ReorderSpec::None,
            duplicate: Probability::ZERO,
            corrupt: Probability::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_queue_is_one_round_trip_of_bytes_and_at_least_64_kib() {
        let queue = PathConfig::default_queue(Bandwidth::from_megabits_per_second(250), Duration::from_millis(60));
        assert_eq!(queue, QueueLimit::Bytes(Bytes::new(1_875_000)));
        let queue = PathConfig::default_queue(Bandwidth::from_megabits_per_second(1), Duration::from_millis(10));
        assert_eq!(queue, QueueLimit::Bytes(Bytes::new(65_536)));
    }
}
