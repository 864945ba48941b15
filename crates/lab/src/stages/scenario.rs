//! An experiment on modelled processors as a value, and what comes of it.
//!
//! Made by the study of HT Fig 8; run by [`super::run`]; its canonical text addresses the result.
//!
//! Invariant: equal canonical texts mean equal outcomes.

use super::StagesError;
use super::costs::StageCosts;
use super::process::STAGES;
use super::spread::{self, PROCESSORS_MAX};
use segstream_base::Duration;
use segstream_schemes::htpnet::{Config, SyncPeriod};
use serde::{Deserialize, Serialize};

/// The fewest packets that an experiment is measured by.
pub const PACKETS_MIN: u32 = 100;

/// HTPNET's stages on this many processors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageScenario {
    /// Processors, 1 to [`PROCESSORS_MAX`]. Default 1.
    pub processors: usize,
    /// What each stage costs a packet. Default [`StageCosts::paper`].
    pub costs: StageCosts,
    /// The window in packets. Not stated in HT. Default 1024, more than is ever in flight.
    pub window: u32,
    /// How often states are exchanged. Not stated in HT. Default 5 ms.
    pub sync_period: Duration,
    /// The delay of the network, one way. Default none.
    pub delay: Duration,
    /// Packets to deliver, the first fifth of which is not measured. Default 20,000.
    pub packets: u32,
}

impl Default for StageScenario {
    fn default() -> Self {
        Self {
            processors: 1,
            costs: StageCosts::paper(),
            window: 1024,
            sync_period: Duration::from_millis(5),
            delay: Duration::ZERO,
            packets: 20_000,
        }
    }
}

impl StageScenario {
    /// Whether it can be run.
    ///
    /// # Errors
    ///
    /// Says which value is invalid.
    pub fn check(&self) -> Result<(), StagesError> {
        if self.processors == 0 || self.processors > PROCESSORS_MAX {
            return Err(StagesError::Processors(self.processors));
        }
        if self.packets < PACKETS_MIN {
            return Err(StagesError::Packets(self.packets));
        }
        Ok(self.config().check()?)
    }

    /// The processor of each stage, by the number of the stage.
    pub fn placement(&self) -> [usize; STAGES] {
        spread::balanced(&self.costs, self.processors)
    }

    /// The scenario as one line of JSON in base measures, the same for equal scenarios.
    pub fn canonical(&self) -> String {
        // A record of numbers always has a JSON form.
        serde_json::to_string(&Record::from(self)).unwrap_or_default()
    }

    /// Reads what [`StageScenario::canonical`] wrote.
    ///
    /// # Errors
    ///
    /// When it cannot be read, or what it says cannot be run.
    pub fn from_canonical(text: &str) -> Result<Self, StagesError> {
        let record: Record = serde_json::from_str(text).map_err(|error| StagesError::Unreadable(error.to_string()))?;
        let scenario = Self::from(record);
        scenario.check()?;
        Ok(scenario)
    }

    /// Packets that are not measured.
    pub(super) const fn warm(&self) -> u32 {
        self.packets / 5
    }

    /// The protocol's configuration. Packets are short: the model knows no bytes.
    pub(super) fn config(&self) -> Config {
        Config {
            packet_bytes: 64,
            window: self.window,
            sync_period: SyncPeriod::Fixed(self.sync_period),
            rtt: self.delay * 2,
            ..Config::default()
        }
    }
}

/// A scenario in base measures.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    stages: String,
    processors: usize,
    cost_ns: [u64; STAGES],
    window_packets: u32,
    sync_period_ns: u64,
    delay_ns: u64,
    packets: u32,
}

impl From<&StageScenario> for Record {
    fn from(scenario: &StageScenario) -> Self {
        Self {
            stages: "htpnet".to_owned(),
            processors: scenario.processors,
            cost_ns: scenario.costs.0.map(Duration::as_nanos),
            window_packets: scenario.window,
            sync_period_ns: scenario.sync_period.as_nanos(),
            delay_ns: scenario.delay.as_nanos(),
            packets: scenario.packets,
        }
    }
}

impl From<Record> for StageScenario {
    fn from(record: Record) -> Self {
        Self {
            processors: record.processors,
            costs: StageCosts(record.cost_ns.map(Duration::from_nanos)),
            window: record.window_packets,
            sync_period: Duration::from_nanos(record.sync_period_ns),
            delay: Duration::from_nanos(record.delay_ns),
            packets: record.packets,
        }
    }
}

/// What came of it: sums of integers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageOutcome {
    /// How the run ended, when it was not by delivering everything.
    pub trouble: Option<String>,
    /// The processor of each stage, by the number of the stage.
    pub placement: [usize; STAGES],
    /// Packets that are measured.
    pub packets: u32,
    /// The time in which the receiving host took them.
    pub span_ns: u64,
    /// The whole run.
    pub simulated_ns: u64,
    /// How long each processor was occupied in it.
    pub busy_ns: Vec<u64>,
    /// Data packets that left although they had arrived, or were not lost.
    pub spurious: u64,
}

impl StageOutcome {
    /// How the run ended, when it was not by delivering everything.
    pub fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// Packets delivered a second, in the steady state.
    pub fn packets_per_second(&self) -> f64 {
        f64::from(self.packets) * 1e9 / self.span_ns as f64
    }

    /// The share of the run in which each processor was occupied.
    pub fn busy_shares(&self) -> Vec<f64> {
        self.busy_ns.iter().map(|busy| *busy as f64 / self.simulated_ns as f64).collect()
    }

    /// The share of the run in which the busiest processor was occupied.
    pub fn busiest_share(&self) -> f64 {
        self.busy_shares().into_iter().fold(0.0, f64::max)
    }
}
