//! The canonical text of a shared scenario: one line of JSON in base measures.
//!
//! Called through [`SharedScenario::canonical`] and [`SharedScenario::from_canonical`].
//!
//! The flows are called `parties` there. Why: the text addresses stored results, and each flow draws from streams of that name.
//!
//! Invariant: the text reads back as the same scenario, and equal scenarios have equal texts.

use super::scenario::{Application, SharedFlow, SharedScenario, SharedScenarioError};
use super::traffic::{Pace, Traffic};
use crate::scenario::Scenario;
use segstream_base::{Bandwidth, Bytes, Duration, Instant};
use segstream_blocks::congestion::{Algorithm, UnknownAlgorithm};
use segstream_path::{Jitter, OpportunityTrace};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    bandwidth_bps: u64,
    trace: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    opportunities: Option<String>,
    queue_bytes: u64,
    aqm: String,
    mark_above_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    ecn_unaware: bool,
    duration_ns: u64,
    warm_up_ns: u64,
    start_spread_ns: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    clock_spread_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    time_of_day_ns: Option<u64>,
    #[serde(rename = "parties")]
    flows: Vec<FlowRecord>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FlowRecord {
    name: String,
    traffic: TrafficRecord,
    rtt_ns: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    jitter_ns: Option<u64>,
    /// That of a wireless hop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    jitter: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    aggregate_ns: Option<u64>,
    loss: String,
    loss_back: String,
    policer: Option<String>,
    start_ns: u64,
    stop_ns: Option<u64>,
    application_bps: Option<u64>,
    idle_ns: Vec<(u64, u64)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lifetime_ns: Option<u64>,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum TrafficRecord {
    Cross(String),
    Scheme {
        scheme: serde_json::Value,
        rate_bps: Option<u64>,
        /// The controller, where there is no rate and it is not `auto`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        congestion: Option<String>,
    },
}

impl SharedScenario {
    /// The scenario as one line of JSON in base measures, the same for equal scenarios.
    pub fn canonical(&self) -> String {
        let record = Record {
            bandwidth_bps: self.bandwidth.bits_per_second(),
            trace: self.trace.to_string(),
            opportunities: (!self.opportunities.is_none()).then(|| self.opportunities.to_string()),
            queue_bytes: self.queue.get(),
            aqm: self.aqm.to_string(),
            mark_above_ns: self.mark_above.map(Duration::as_nanos),
            ecn_unaware: self.ecn_unaware,
            duration_ns: self.duration.as_nanos(),
            warm_up_ns: self.warm_up.as_nanos(),
            start_spread_ns: self.start_spread.as_nanos(),
            clock_spread_ns: (!self.clock_spread.is_zero()).then(|| self.clock_spread.as_nanos()),
            time_of_day_ns: (!self.time_of_day.is_zero()).then(|| self.time_of_day.as_nanos()),
            flows: self.flows.iter().map(FlowRecord::from).collect(),
        };
        // A record of numbers and short texts always has a JSON form.
        serde_json::to_string(&record).unwrap_or_default()
    }

    /// Reads what [`SharedScenario::canonical`] wrote.
    ///
    /// # Errors
    /// Says what cannot be read, or cannot be run.
    pub fn from_canonical(text: &str) -> Result<Self, SharedScenarioError> {
        let record: Record = serde_json::from_str(text).map_err(unreadable)?;
        let scenario = Self {
            bandwidth: Bandwidth::from_bits_per_second(record.bandwidth_bps),
            trace: record.trace.parse().map_err(unreadable)?,
            opportunities: record.opportunities.map_or(Ok(OpportunityTrace::NONE), |text| text.parse()).map_err(unreadable)?,
            queue: Bytes::new(record.queue_bytes),
            aqm: record.aqm.parse().map_err(unreadable)?,
            mark_above: record.mark_above_ns.map(Duration::from_nanos),
            ecn_unaware: record.ecn_unaware,
            duration: Duration::from_nanos(record.duration_ns),
            warm_up: Duration::from_nanos(record.warm_up_ns),
            start_spread: Duration::from_nanos(record.start_spread_ns),
            clock_spread: Duration::from_nanos(record.clock_spread_ns.unwrap_or(0)),
            time_of_day: Duration::from_nanos(record.time_of_day_ns.unwrap_or(0)),
            flows: record.flows.into_iter().map(SharedFlow::try_from).collect::<Result<_, _>>()?,
        };
        scenario.check()?;
        Ok(scenario)
    }
}

impl From<&SharedFlow> for FlowRecord {
    fn from(flow: &SharedFlow) -> Self {
        let traffic = match &flow.traffic {
            Traffic::Scheme { scenario, pace } => TrafficRecord::Scheme {
                scheme: serde_json::from_str(&scenario.canonical()).unwrap_or_default(),
                rate_bps: pace.fixed().map(Bandwidth::bits_per_second),
                congestion: match pace {
                    Pace::Controlled(congestion) if *pace != Pace::AUTO => Some(congestion.name.to_owned()),
                    _ => None,
                },
            },
            cross => TrafficRecord::Cross(cross.to_string()),
        };
        let (jitter_ns, jitter) = match flow.jitter {
            Jitter::None => (None, None),
            Jitter::Uniform(most) => ((!most.is_zero()).then(|| most.as_nanos()), None),
            wireless @ Jitter::Wifi(_) => (None, Some(wireless.to_string())),
        };
        Self {
            name: flow.name.clone(),
            traffic,
            rtt_ns: flow.rtt.as_nanos(),
            jitter_ns,
            jitter,
            aggregate_ns: (!flow.aggregate.is_zero()).then(|| flow.aggregate.as_nanos()),
            loss: flow.loss.to_string(),
            loss_back: flow.loss_back.to_string(),
            policer: flow.policer.map(|policer| policer.to_string()),
            start_ns: flow.start.as_nanos(),
            stop_ns: flow.stop.map(Instant::as_nanos),
            application_bps: flow.application.rate.map(Bandwidth::bits_per_second),
            idle_ns: flow.application.idle.iter().map(|(from, to)| (from.as_nanos(), to.as_nanos())).collect(),
            lifetime_ns: flow.application.lifetime.map(Duration::as_nanos),
        }
    }
}

impl TryFrom<FlowRecord> for SharedFlow {
    type Error = SharedScenarioError;

    fn try_from(record: FlowRecord) -> Result<Self, SharedScenarioError> {
        let traffic = match record.traffic {
            TrafficRecord::Cross(text) => Traffic::cross(&text)?,
            TrafficRecord::Scheme { scheme, rate_bps, congestion } => Traffic::Scheme {
                scenario: Box::new(Scenario::from_canonical(&scheme.to_string()).map_err(unreadable)?),
                pace: match (rate_bps, congestion) {
                    (Some(rate), _) => Pace::Fixed(Bandwidth::from_bits_per_second(rate)),
                    (None, None) => Pace::AUTO,
                    (None, Some(name)) => {
                        let found = Algorithm::named(&name).ok_or_else(|| UnknownAlgorithm(name.clone()));
                        Pace::Controlled(found.map_err(unreadable)?)
                    }
                },
            },
        };
        let span = |(from, to): (u64, u64)| (Instant::from_nanos(from), Instant::from_nanos(to));
        Ok(Self {
            name: record.name,
            traffic,
            rtt: Duration::from_nanos(record.rtt_ns),
            jitter: match (record.jitter, record.jitter_ns) {
                (Some(text), _) => text.parse().map_err(unreadable)?,
                (None, most) => most.map_or(Jitter::None, |most| Jitter::Uniform(Duration::from_nanos(most))),
            },
            aggregate: Duration::from_nanos(record.aggregate_ns.unwrap_or(0)),
            loss: record.loss.parse().map_err(unreadable)?,
            loss_back: record.loss_back.parse().map_err(unreadable)?,
            policer: record.policer.map(|policer| policer.parse().map_err(unreadable)).transpose()?,
            start: Instant::from_nanos(record.start_ns),
            stop: record.stop_ns.map(Instant::from_nanos),
            application: Application {
                rate: record.application_bps.map(Bandwidth::from_bits_per_second),
                idle: record.idle_ns.into_iter().map(span).collect(),
                lifetime: record.lifetime_ns.map(Duration::from_nanos),
            },
        })
    }
}

fn unreadable(error: impl std::fmt::Display) -> SharedScenarioError {
    SharedScenarioError::Unreadable(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use segstream_base::endpoint::Ecn;
    use segstream_blocks::congestion::{bbr1, cubic, reno};
    use segstream_path::{Aqm, Policer, RateTrace};

    #[test]
    fn the_canonical_text_reads_back_as_the_same_scenario() {
        let second = |count| Instant::ZERO + Duration::from_secs(count);
        let mbit = Bandwidth::from_megabits_per_second;
        let scheme = Traffic::Scheme { scenario: Box::default(), pace: Pace::Fixed(mbit(30)) };
        let flagship = Scenario { scheme: crate::flagship::Settings::default().into(), ..Scenario::default() };
        let controlled = Traffic::Scheme { scenario: Box::new(flagship), pace: Pace::Controlled(&cubic::LINUX) };
        let onoff = Traffic::OnOff { rate: mbit(20), on: Duration::from_millis(300), off: Duration::from_millis(700) };
        let scenario = SharedScenario {
            trace: "0s:100mbit,5s:50mbit,repeat=20s".parse().unwrap(),
            aqm: Aqm::CODEL,
            mark_above: Some(Duration::from_millis(5)),
            ecn_unaware: true,
            clock_spread: Duration::from_millis(900),
            time_of_day: Duration::from_millis(1200),
            flows: vec![
                SharedFlow {
                    policer: Some(Policer::new(mbit(40))),
                    loss: "random:0.001".parse().unwrap(),
                    application: Application::periodic(mbit(20)).idle_in(&[(second(2), second(4))]),
                    ..SharedFlow::new("ours", scheme)
                },
                SharedFlow {
                    start: second(3),
                    stop: Some(second(20)),
                    jitter: Jitter::Uniform(Duration::from_millis(7)),
                    ..SharedFlow::new("other", Traffic::Tcp { congestion: &cubic::LINUX, ecn: Some(Ecn::Ect0) })
                },
                SharedFlow {
                    jitter: Jitter::Wifi(Duration::from_millis(12)),
                    aggregate: Duration::from_millis(8),
                    ..SharedFlow::new("bursts", onoff)
                },
                SharedFlow::new("steady", Traffic::Constant { rate: mbit(7) }),
                SharedFlow::new("fifth", Traffic::tcp(&bbr1::ALGORITHM)),
                SharedFlow::new("sixth", Traffic::tcp(&reno::ALGORITHM)),
                SharedFlow {
                    application: Application::periodic(mbit(8)).live(Duration::from_millis(200)),
                    ..SharedFlow::new("seventh", controlled)
                },
                SharedFlow::new("eighth", Traffic::Tcp { congestion: &cubic::LINUX, ecn: Some(Ecn::Ect1) }),
            ],
            ..SharedScenario::default()
        };
        let recorded = SharedScenario { trace: RateTrace::default(), opportunities: "0,4,7*2,9".parse().unwrap(), ..scenario.clone() };
        for scenario in [scenario, recorded] {
            assert_eq!(SharedScenario::from_canonical(&scenario.canonical()).unwrap(), scenario);
        }
        assert!(SharedScenario::from_canonical("{}").unwrap_err().to_string().contains("cannot be read"));
        let message = Traffic::cross("vegas").unwrap_err().to_string();
        assert!(message.contains("\"vegas\" is no cross traffic"), "{message}");
        assert!(
            message.contains("bbr1, linux_cubic, linux_cubic-ecn, linux_cubic-ect1, reno, reno-ecn, reno-ect1, constant:BPS or"),
            "{message}"
        );
        assert!(Traffic::cross("auto").is_err() && Traffic::cross("bbr1-ecn").is_err() && Traffic::cross("bbr1-ect1").is_err());
    }
}
