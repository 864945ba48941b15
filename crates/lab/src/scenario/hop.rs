//! Properties of one direction of a black box besides bandwidth, delay and loss.
//!
//! Part of a [`super::BlackBox`]; made into a path by [`crate::run`]. What each can be is in `segstream_path`.
//!
//! Invariant: a hop that passes [`Hop::check`] can be simulated, and the default one is none.

use super::ScenarioError;
use segstream_base::Duration;
use segstream_path::{Aqm, DelaySteps, Jitter, OpportunityTrace, PathConfig, ReorderSpec};
use serde::{Deserialize, Serialize};

/// Further properties of one direction.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Hop {
    /// The recorded link instead of the bandwidth; a sender is still paced by the bandwidth. Default: none.
    pub trace: OpportunityTrace,
    /// The AQM of the queue. Default: drop-tail.
    pub aqm: Aqm,
    /// Whether the queue drops what it would mark. Default: no.
    pub ecn_unaware: bool,
    /// The jitter. Default: none.
    pub jitter: Jitter,
    /// The period of frame aggregation; zero for none. Default zero.
    pub aggregate: Duration,
    /// The delays of a route that changes, instead of half the round trip. Default: none.
    pub delay_steps: DelaySteps,
    /// Which packets arrive out of order. Default: none.
    pub reorder: ReorderSpec,
}

impl Hop {
    /// Whether it can be simulated.
    pub(super) fn check(&self) -> Result<(), ScenarioError> {
        self.aqm.check()?;
        self.jitter.check()?;
        self.reorder.check()?;
        Ok(())
    }

    /// `path` with it.
    pub fn of(&self, path: PathConfig) -> PathConfig {
        PathConfig {
            opportunities: self.trace.clone(),
            aqm: self.aqm,
            ecn_unaware: self.ecn_unaware,
            jitter: self.jitter,
            aggregate: self.aggregate,
            delay_steps: self.delay_steps.clone(),
            reorder: self.reorder,
            ..path
        }
    }
}

/// A hop in base measures; what is as by default is left out.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HopRecord {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trace: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    aqm: Option<String>,
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    ecn_unaware: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    jitter: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    aggregate_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    delay_steps: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reorder: Option<String>,
}

impl HopRecord {
    /// That of `hop`; `None` for none.
    pub(super) fn of(hop: &Hop) -> Option<Self> {
        let none = Hop::default();
        (*hop != none).then(|| Self {
            trace: (hop.trace != none.trace).then(|| hop.trace.to_string()),
            aqm: (hop.aqm != none.aqm).then(|| hop.aqm.to_string()),
            ecn_unaware: hop.ecn_unaware,
            jitter: (hop.jitter != none.jitter).then(|| hop.jitter.to_string()),
            aggregate_ns: (hop.aggregate != none.aggregate).then(|| hop.aggregate.as_nanos()),
            delay_steps: (hop.delay_steps != none.delay_steps).then(|| hop.delay_steps.to_string()),
            reorder: (hop.reorder != none.reorder).then(|| hop.reorder.to_string()),
        })
    }

    /// The hop it tells of.
    pub(super) fn hop(self) -> Result<Hop, ScenarioError> {
        let none = Hop::default();
        Ok(Hop {
            trace: parsed(self.trace, none.trace)?,
            aqm: parsed(self.aqm, none.aqm)?,
            ecn_unaware: self.ecn_unaware,
            jitter: parsed(self.jitter, none.jitter)?,
            aggregate: self.aggregate_ns.map_or(none.aggregate, Duration::from_nanos),
            delay_steps: parsed(self.delay_steps, none.delay_steps)?,
            reorder: parsed(self.reorder, none.reorder)?,
        })
    }
}

fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(text: Option<String>, default: T) -> Result<T, ScenarioError> {
    text.map_or(Ok(default), |text| text.parse().map_err(|error: T::Err| ScenarioError::Unreadable(error.to_string())))
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Hop, Scenario};
    use segstream_base::Duration;
    use segstream_schemes::sstp::FeedbackMode;

    fn hop() -> Hop {
        Hop {
            trace: "0,4,7*2,10".parse().unwrap(),
            aqm: "fq-codel".parse().unwrap(),
            ecn_unaware: true,
            jitter: "wifi:12ms".parse().unwrap(),
            aggregate: Duration::from_millis(8),
            delay_steps: "0s:20ms,10s:60ms".parse().unwrap(),
            reorder: "0.01:delay=5ms".parse().unwrap(),
        }
    }

    #[test]
    fn a_hop_stands_in_the_text_and_none_leaves_the_text_as_it_was() {
        let plain = Scenario::default().canonical();
        assert!(!plain.contains("hop") && !plain.contains("jitter"), "{plain}");
        for (there, back) in [(hop(), Hop::default()), (Hop::default(), hop()), (Hop { trace: Default::default(), ..hop() }, hop())] {
            let scenario = Scenario::default().with(|it| (it.black_box.hop, it.black_box.hop_back) = (there.clone(), back.clone()));
            let text = scenario.canonical();
            assert_ne!(text, plain);
            assert_eq!(Scenario::from_canonical(&text).unwrap(), scenario, "{text}");
        }
        let message =
            Scenario::from_canonical(&format!("{},\"hop\":{{\"jitter\":\"often\"}}}}", &plain[..plain.len() - 1])).unwrap_err().to_string();
        assert!(message.contains("\"often\""), "{message}");
    }

    #[test]
    fn ideal_feedback_cannot_follow_data_through_a_queue_that_changes_its_order() {
        let scenario = Scenario::default().with(|it| {
            it.black_box.feedback = FeedbackMode::Ideal;
            it.black_box.hop.aqm = "dualpi2".parse().unwrap();
        });
        let message = scenario.check().unwrap_err().to_string();
        assert!(message.contains("full feedback"), "{message}");
        assert!(scenario.with(|it| it.black_box.hop.aqm = "pie".parse().unwrap()).check().is_ok());
    }
}
