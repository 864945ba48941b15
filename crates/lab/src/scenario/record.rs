//! A scenario as text.
//!
//! Called by [`Scenario::canonical`] and [`Scenario::from_canonical`].
//!
//! Invariant: what is as usual and came to be after the first version is left out, so that a text once written goes on
//! to mean the same.

use super::{Scenario, ScenarioError, words};
use segstream_base::{Bandwidth, Duration};
use segstream_blocks::Tolerance;
use serde::{Deserialize, Serialize};

/// A scenario in base measures.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Record {
    scheme: String,
    rtt_ns: u64,
    bandwidth_bps: u64,
    packet_bytes: u32,
    segment_packets: u32,
    window_segments: u32,
    buffer_segments: Option<u32>,
    ack: String,
    tolerance: (u32, u32, u32),
    accounting: String,
    loss: String,
    loss_back: String,
    feedback: String,
    reorder: u32,
    status_period_ns: Option<u64>,
    packets: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    control_loss: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    queue_packets: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    offered_per_second: Option<u32>,
    /// Service, a slot, a timer operation, a timer passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    costs_ns: Option<[u64; 4]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    htpnet: Option<Htpnet>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tcp: Option<Tcp>,
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    snr_slips: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bandwidth_back_bps: Option<u64>,
    /// A packet, a byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    work_ns: Option<[u64; 2]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    adaptive_ack: Option<AdaptiveAck>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sscop: Option<Sscop>,
}

/// What HTPNET is told, unless it is all as usual.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Htpnet {
    sync_period_ns: Option<u64>,
    offset: u16,
    ranges: String,
    search: String,
    class: u8,
    ptif: String,
}

/// What TCP is told, unless it is all as usual.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Tcp {
    backoff: String,
    timer_tick_ns: u64,
}

/// What adaptive acknowledgment is told, unless it is all as usual.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AdaptiveAck {
    t_normal_ns: u64,
    t_error_ns: u64,
    tail_rule: bool,
}

/// What SSCOP is told, unless it is all as usual.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sscop {
    timer_poll_ns: u64,
    max_pd: Option<u32>,
}

fn htpnet(scenario: &Scenario) -> Option<Htpnet> {
    let told = |of: &Scenario| (of.sync_period, of.offset, of.ranges, of.search, of.class, of.ptif);
    (told(scenario) != told(&Scenario::default())).then(|| Htpnet {
        sync_period_ns: scenario.sync_period.map(Duration::as_nanos),
        offset: scenario.offset,
        ranges: words::of_ranges(scenario.ranges).to_owned(),
        search: words::of_search(scenario.search).to_owned(),
        class: scenario.class,
        ptif: scenario.ptif.name().to_owned(),
    })
}

fn tcp(scenario: &Scenario) -> Option<Tcp> {
    let told = |of: &Scenario| (of.backoff, of.timer_tick);
    (told(scenario) != told(&Scenario::default()))
        .then(|| Tcp { backoff: scenario.backoff.to_string(), timer_tick_ns: scenario.timer_tick.as_nanos() })
}

fn adaptive_ack(scenario: &Scenario) -> Option<AdaptiveAck> {
    let told = |of: &Scenario| (of.t_normal, of.t_error, of.tail_rule);
    (told(scenario) != told(&Scenario::default())).then(|| AdaptiveAck {
        t_normal_ns: scenario.t_normal.as_nanos(),
        t_error_ns: scenario.t_error.as_nanos(),
        tail_rule: scenario.tail_rule,
    })
}

fn sscop(scenario: &Scenario) -> Option<Sscop> {
    let told = |of: &Scenario| (of.timer_poll, of.max_pd);
    (told(scenario) != told(&Scenario::default())).then(|| Sscop { timer_poll_ns: scenario.timer_poll.as_nanos(), max_pd: scenario.max_pd })
}

fn costs(scenario: &Scenario) -> Option<[u64; 4]> {
    let costs = [scenario.service, scenario.search_cost, scenario.timer_cost.0, scenario.timer_cost.1].map(Duration::as_nanos);
    (costs != [0; 4]).then_some(costs)
}

impl From<&Scenario> for Record {
    fn from(scenario: &Scenario) -> Self {
        let tolerance = scenario.tolerance;
        Self {
            scheme: scenario.scheme.clone(),
            rtt_ns: scenario.rtt.as_nanos(),
            bandwidth_bps: scenario.bandwidth.bits_per_second(),
            packet_bytes: scenario.packet_bytes,
            segment_packets: scenario.segment_packets,
            window_segments: scenario.window,
            buffer_segments: scenario.buffer,
            ack: scenario.ack.to_string(),
            tolerance: (tolerance.window(), tolerance.errors(), tolerance.burst()),
            accounting: scenario.accounting.to_string(),
            loss: scenario.loss.to_string(),
            loss_back: scenario.loss_back.to_string(),
            feedback: scenario.feedback.to_string(),
            reorder: scenario.reorder,
            status_period_ns: scenario.status_period.map(Duration::as_nanos),
            packets: scenario.packets,
            control_loss: scenario.control_loss.as_ref().map(ToString::to_string),
            queue_packets: scenario.queue_packets,
            offered_per_second: scenario.offered,
            costs_ns: costs(scenario),
            htpnet: htpnet(scenario),
            tcp: tcp(scenario),
            snr_slips: scenario.slip,
            bandwidth_back_bps: scenario.bandwidth_back.map(Bandwidth::bits_per_second),
            work_ns: scenario.end_system().map(|system| [system.packet.as_nanos(), system.byte.as_nanos()]),
            adaptive_ack: adaptive_ack(scenario),
            sscop: sscop(scenario),
        }
    }
}

fn read<T: std::str::FromStr>(text: &str) -> Result<T, ScenarioError>
where
    T::Err: std::fmt::Display,
{
    text.parse().map_err(|error: T::Err| ScenarioError::Unreadable(error.to_string()))
}

impl TryFrom<Record> for Scenario {
    type Error = ScenarioError;

    fn try_from(record: Record) -> Result<Self, ScenarioError> {
        let (window, errors, burst) = record.tolerance;
        let [packet, byte] = record.work_ns.unwrap_or_default().map(Duration::from_nanos);
        let costs = record.costs_ns.unwrap_or_default().map(Duration::from_nanos);
        let mut scenario = Self {
            scheme: record.scheme,
            rtt: Duration::from_nanos(record.rtt_ns),
            bandwidth: Bandwidth::from_bits_per_second(record.bandwidth_bps),
            packet_bytes: record.packet_bytes,
            segment_packets: record.segment_packets,
            window: record.window_segments,
            buffer: record.buffer_segments,
            ack: read(&record.ack)?,
            tolerance: Tolerance::new(window, errors, burst).map_err(|error| ScenarioError::Unreadable(error.to_string()))?,
            accounting: read(&record.accounting)?,
            loss: read(&record.loss)?,
            loss_back: read(&record.loss_back)?,
            feedback: read(&record.feedback)?,
            reorder: record.reorder,
            status_period: record.status_period_ns.map(Duration::from_nanos),
            slip: record.snr_slips,
            control_loss: record.control_loss.as_deref().map(read).transpose()?,
            queue_packets: record.queue_packets,
            offered: record.offered_per_second,
            service: costs[0],
            search_cost: costs[1],
            timer_cost: (costs[2], costs[3]),
            bandwidth_back: record.bandwidth_back_bps.map(Bandwidth::from_bits_per_second),
            work: (packet, byte),
            packets: record.packets,
            ..Self::default()
        };
        if let Some(told) = record.htpnet {
            told.tell(&mut scenario)?;
        }
        if let Some(told) = record.tcp {
            scenario.backoff = read(&told.backoff)?;
            scenario.timer_tick = Duration::from_nanos(told.timer_tick_ns);
        }
        if let Some(told) = record.adaptive_ack {
            scenario.t_normal = Duration::from_nanos(told.t_normal_ns);
            scenario.t_error = Duration::from_nanos(told.t_error_ns);
            scenario.tail_rule = told.tail_rule;
        }
        if let Some(told) = record.sscop {
            (scenario.timer_poll, scenario.max_pd) = (Duration::from_nanos(told.timer_poll_ns), told.max_pd);
        }
        Ok(scenario)
    }
}

impl Htpnet {
    fn tell(self, scenario: &mut Scenario) -> Result<(), ScenarioError> {
        scenario.sync_period = self.sync_period_ns.map(Duration::from_nanos);
        scenario.offset = self.offset;
        scenario.ranges = words::ranges(&self.ranges).map_err(ScenarioError::Unreadable)?;
        scenario.search = words::search(&self.search).map_err(ScenarioError::Unreadable)?;
        scenario.ptif = words::ptif(&self.ptif).map_err(ScenarioError::Unreadable)?;
        scenario.class = self.class;
        Ok(())
    }
}
