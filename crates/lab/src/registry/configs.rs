//! What a scenario means to each scheme: its configuration.
//!
//! Called by the registry.
//!
//! Invariant: equal scenarios give equal configurations; whether halves can be made of one is the scheme's to say.

use crate::scenario::{Scenario, ScenarioError};
use segstream_base::Duration;
use segstream_blocks::burst::RateSpec;
use segstream_schemes::{adaptive_ack, htpnet, snr, sscop, sstp, tcp, xtp};

const CONNECTION: u32 = 1;

pub(super) fn sstp_config(scenario: &Scenario) -> sstp::Config {
    sstp::Config {
        connection: CONNECTION,
        packet_bytes: scenario.packet_bytes,
        segment_packets: scenario.segment_packets,
        window: scenario.window,
        buffer: scenario.buffer_segments(),
        acknowledgment: scenario.ack,
        tolerance: scenario.tolerance,
        accounting: scenario.accounting,
        rate: RateSpec::smooth(scenario.bandwidth),
        reorder: scenario.reorder,
        feedback: scenario.feedback,
    }
}

pub(super) fn snr_config(scenario: &Scenario) -> snr::Config {
    snr::Config {
        connection: CONNECTION,
        packet_bytes: scenario.packet_bytes,
        segment_packets: scenario.segment_packets,
        window: scenario.window,
        rate: RateSpec::smooth(scenario.bandwidth),
        rtt: scenario.rtt,
        // EC 5: 5 ms at a round trip of 60 ms.
        status_period: scenario.status_period.unwrap_or(scenario.rtt / 12),
        reliable: !scenario.tolerance.is_any(),
        count_intervals: !scenario.slip,
    }
}

pub(super) fn htpnet_config(scenario: &Scenario) -> Result<htpnet::Config, ScenarioError> {
    // Not stated in HT; what the transmitter would find by itself, which keeps one value through a run.
    let period = scenario.sync_period.unwrap_or_else(|| htpnet::SyncPeriod::Adaptive.at(scenario.rtt));
    let class = htpnet::Class::new(scenario.class).ok_or(ScenarioError::Class(scenario.class))?;
    let config = htpnet::Config {
        packet_bytes: scenario.packet_bytes,
        segment_packets: scenario.segment_packets,
        window: scenario.window_packets(),
        sync_period: htpnet::SyncPeriod::Fixed(period),
        offset: scenario.offset,
        ranges: scenario.ranges,
        search: scenario.search,
        class,
        ptif: scenario.ptif,
        rtt: scenario.rtt,
        ..htpnet::Config::default()
    };
    // Where the processor sets the pace, as in HT 6, nothing else does. RATE tells whole microseconds.
    let paced = class.has_rate_control() && scenario.service.is_zero();
    let gap = Some(config.gap_of(scenario.bandwidth)).filter(|gap| paced && *gap >= Duration::from_micros(1));
    Ok(htpnet::Config { gap, ..config })
}

pub(super) fn tcp_config(scenario: &Scenario) -> tcp::Config {
    tcp::Config {
        connection: CONNECTION,
        packet_bytes: scenario.packet_bytes,
        segment_packets: scenario.segment_packets,
        window: scenario.window_packets(),
        rate: RateSpec::smooth(scenario.bandwidth),
        rtt: scenario.rtt,
        backoff: scenario.backoff,
        granularity: scenario.timer_tick,
    }
}

pub(super) fn adaptive_ack_config(scenario: &Scenario) -> adaptive_ack::Config {
    adaptive_ack::Config {
        connection: CONNECTION,
        packet_bytes: scenario.packet_bytes,
        segment_packets: scenario.segment_packets,
        window: scenario.window_packets(),
        rate: RateSpec::smooth(scenario.bandwidth),
        rtt: scenario.rtt,
        t_normal: scenario.t_normal,
        t_error: scenario.t_error,
        tail_rule: scenario.tail_rule,
    }
}

/// A segment is one packet; [`super::Scheme::segment_packets_max`] says so.
pub(super) fn sscop_config(scenario: &Scenario) -> sscop::Config {
    sscop::Config {
        packet_bytes: scenario.packet_bytes,
        window: scenario.window,
        rate: RateSpec::smooth(scenario.bandwidth),
        rtt: scenario.rtt,
        timer_poll: scenario.timer_poll,
        max_pd: scenario.max_pd,
        ..sscop::Config::default()
    }
}

/// How long the answer of XTP's receiver is waited for beyond two round trips: what queues and a busy machine may add.
const XTP_PATIENCE: Duration = Duration::from_millis(20);

/// XTP with the strategies that XT finds best (XT 5): selective repeat, and a receiver that stores and tells of a gap.
pub(super) fn xtp_config(scenario: &Scenario) -> xtp::Config {
    xtp::Config {
        key: u64::from(CONNECTION),
        packet_bytes: scenario.packet_bytes,
        segment_packets: scenario.segment_packets,
        window: scenario.window_packets(),
        sender: xtp::SenderStrategy::SelectiveRepeat,
        receiver: xtp::ReceiverStrategy::StoreAggressive,
        wtimer: scenario.rtt * 2 + XTP_PATIENCE,
        control_rtt: scenario.rtt,
        // As much may wait as is under way, so that the source never holds up a window that opens.
        asks_in_pauses: true,
        backlog_packets: Some(scenario.window_packets().max(scenario.segment_packets)),
        rate: Some(RateSpec::smooth(scenario.bandwidth)),
    }
}
