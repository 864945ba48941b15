//! The black box of a scenario: the path between two ends, and what their processors take.
//!
//! Part of a [`super::Scenario`]; made into the simulator's paths by [`crate::run`].
//!
//! Invariant: a black box that passes [`BlackBox::check`] can be simulated.

use super::{Hop, ScenarioError};
use segstream_base::{Bandwidth, Duration};
use segstream_path::LossSpec;
use segstream_schemes::sstp::FeedbackMode;
use segstream_sim::EndSystem;

/// The longest round trip.
pub const RTT_MAX: Duration = Duration::from_secs(3600);
/// The longest that a packet may occupy the processor, or a byte, a slot or a timer.
pub const SERVICE_MAX: Duration = Duration::from_secs(60);
/// How many packets an end that works may put in front of its link. Why so few: AA's end systems have queues in the lower
/// layer, of a length it does not state; a few keep the link busy, and many would only make feedback older.
const LOWER_QUEUE: u32 = 4;

/// The path between two ends, and what their processors take.
#[derive(Clone, Debug, PartialEq)]
pub struct BlackBox {
    /// The round trip, half of it each way. Default 60 ms (EC 5).
    pub rtt: Duration,
    /// The bandwidth, bare packets counted. Default 500 Mbit/s.
    pub bandwidth: Bandwidth,
    /// The bandwidth on the return path; `None` is the same. Default `None`.
    pub bandwidth_back: Option<Bandwidth>,
    /// Which packets are lost on their way to the receiver. Default none.
    pub loss: LossSpec,
    /// Which packets are lost on their way back. Default none.
    pub loss_back: LossSpec,
    /// Which packets without units are lost, in both directions; then the other losses concern data alone. `None`: they
    /// are lost as data is. Default `None`.
    pub control_loss: Option<LossSpec>,
    /// The forward queue in packets; `None` is a bandwidth-delay product. Default `None`.
    pub queue_packets: Option<u32>,
    /// Further properties of the forward path. Default: none.
    pub hop: Hop,
    /// Further properties of the return path. Default: none.
    pub hop_back: Hop,
    /// Whether the sender is told the fate of each packet group out of band, or finds out. Default full: it finds out.
    pub feedback: FeedbackMode,
    /// What each data packet costs the sender's processor, zero for nothing (HT 6). Default zero.
    pub service: Duration,
    /// What each slot costs it that is searched in the table of sent packets. Default zero.
    pub search_cost: Duration,
    /// What each operation on its list of timers costs it, and each timer passed there. Default zero.
    pub timer_cost: (Duration, Duration),
    /// What each packet costs the processor of either end, data or control, and each of its bytes; zero for nothing (AA
    /// Table 1). Default zero.
    pub work: (Duration, Duration),
}

impl Default for BlackBox {
    fn default() -> Self {
        Self {
            rtt: Duration::from_millis(60),
            bandwidth: Bandwidth::from_megabits_per_second(500),
            bandwidth_back: None,
            loss: LossSpec::None,
            loss_back: LossSpec::None,
            control_loss: None,
            queue_packets: None,
            hop: Hop::default(),
            hop_back: Hop::default(),
            feedback: FeedbackMode::Full,
            service: Duration::ZERO,
            search_cost: Duration::ZERO,
            timer_cost: (Duration::ZERO, Duration::ZERO),
            work: (Duration::ZERO, Duration::ZERO),
        }
    }
}

impl BlackBox {
    /// Whether packets of `packet_bytes` can pass it.
    pub(super) fn check(&self, packet_bytes: u32) -> Result<(), ScenarioError> {
        if self.bandwidth.is_zero() || self.bandwidth_back.is_some_and(Bandwidth::is_zero) {
            return Err(ScenarioError::NoBandwidth);
        }
        if self.packet_time_s(packet_bytes) < 1e-9 {
            return Err(ScenarioError::NoPacketTime { bandwidth: self.bandwidth, packet_bytes });
        }
        if self.rtt > RTT_MAX {
            return Err(ScenarioError::Rtt(self.rtt));
        }
        self.loss.check()?;
        self.loss_back.check()?;
        self.control_loss.as_ref().map_or(Ok(()), LossSpec::check)?;
        if self.queue_packets == Some(0) {
            return Err(ScenarioError::Nothing);
        }
        self.hop.check()?;
        self.hop_back.check()?;
        let scheduled = [&self.hop, &self.hop_back].into_iter().find(|hop| hop.aqm.is_scheduled());
        if let (FeedbackMode::Ideal, Some(hop)) = (self.feedback, scheduled) {
            return Err(ScenarioError::IdealBehindSchedule(hop.aqm));
        }
        self.check_costs()
    }

    fn check_costs(&self) -> Result<(), ScenarioError> {
        let of_sender = [self.service, self.search_cost, self.timer_cost.0, self.timer_cost.1];
        let of_both = [self.work.0, self.work.1];
        if let Some(cost) = of_sender.into_iter().chain(of_both).find(|cost| *cost > SERVICE_MAX) {
            return Err(ScenarioError::Service(cost));
        }
        let any = |costs: &[Duration]| costs.iter().any(|cost| !cost.is_zero());
        if any(&of_sender) && any(&of_both) { Err(ScenarioError::TwoCosts) } else { Ok(()) }
    }

    /// The time a packet takes at the bandwidth, in seconds.
    pub(super) fn packet_time_s(&self, packet_bytes: u32) -> f64 {
        f64::from(packet_bytes) * 8.0 / self.bandwidth.bits_per_second() as f64
    }

    /// What the work of both ends costs, if it costs anything.
    pub fn end_system(&self) -> Option<EndSystem> {
        let (packet, byte) = self.work;
        (!packet.is_zero() || !byte.is_zero()).then_some(EndSystem { packet, byte, lower_queue: LOWER_QUEUE })
    }

    /// The path alone, as a network has it for a scheme: what a sender knows of it, without losses, queue and processors.
    #[must_use]
    pub fn known(&self) -> Self {
        Self { rtt: self.rtt, bandwidth: self.bandwidth, feedback: self.feedback, ..Self::default() }
    }
}
