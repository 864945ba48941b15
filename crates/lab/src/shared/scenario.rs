//! A shared scenario: flows over one link, as a value.
//!
//! Made by studies; run by [`super::run`]; its canonical text ([`super::record`]) is what the result store addresses.
//!
//! Invariant: a scenario that passes [`SharedScenario::check`] can be run; equal canonical texts mean equal runs.

use super::outcome::SAMPLE;
use super::traffic::{Pace, Traffic, cross_names};
use crate::flagship;
use crate::scenario::{self, Scenario, ScenarioError};
use segstream_base::{Bandwidth, Bytes, Duration, Instant};
use segstream_path::{Aqm, Jitter, LossSpec, OpportunityTrace, PathConfig, Policer, QueueLimit, RateTrace, ScheduledPath, SpecError};
use segstream_schemes::sstp::FeedbackMode;
use std::collections::BTreeSet;

/// Flows over one link.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedScenario {
    /// The bandwidth of the link, whole packets counted. Default 100 Mbit/s.
    pub bandwidth: Bandwidth,
    /// How it changes. Default: not at all.
    pub trace: RateTrace,
    /// When it may send, as it was recorded, in the place of bandwidth and trace. Default: always.
    pub opportunities: OpportunityTrace,
    /// The capacity of its queue. Default 750,000 bytes: 60 ms of 100 Mbit/s.
    pub queue: Bytes,
    /// The AQM of its queue. Default: drop-tail.
    pub aqm: Aqm,
    /// ECN-capable packets with a longer queueing delay are marked. Default: none.
    pub mark_above: Option<Duration>,
    /// What it would mark it drops. Default: it marks.
    pub ecn_unaware: bool,
    /// The duration of the run. Default 30 s.
    pub duration: Duration,
    /// The warm-up, which totals leave out and series do not. Default 5 s.
    pub warm_up: Duration,
    /// Each flow starts later by a random time up to this, drawn by flow and replication, so that replications of flows without
    /// randomness differ. Default 100 ms.
    pub start_spread: Duration,
    /// The clock of each flow's hosts is ahead by a random time up to this, drawn by flow and replication. Senders that drain a queue
    /// together do it by the time of day. Default none.
    pub clock_spread: Duration,
    /// The time of day at the start, to which each flow's clock adds what it is ahead. Senders that drain a queue together do it at
    /// moments of it. Default zero, where a slot of their schedule begins.
    pub time_of_day: Duration,
    /// The flows.
    pub flows: Vec<SharedFlow>,
}

/// A flow over the link.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedFlow {
    /// Its name, unique in the scenario. It names its random streams.
    pub name: String,
    /// Its traffic.
    pub traffic: Traffic,
    /// The round trip of its own path, half of it each way, without the link. Default 60 ms.
    pub rtt: Duration,
    /// What its own path adds to the delay of packets, either way and in order. Default none.
    pub jitter: Jitter,
    /// Its own path releases packets in bursts, so far apart, either way. Default: at once.
    pub aggregate: Duration,
    /// The losses of its own path, behind the link. Default none.
    pub loss: LossSpec,
    /// The losses of its return path. Default none.
    pub loss_back: LossSpec,
    /// The policer at the entry of its own path. Default none.
    pub policer: Option<Policer>,
    /// When it starts. Default at once.
    pub start: Instant,
    /// When it stops. Default never.
    pub stop: Option<Instant>,
    /// What its application has to send. Default: a backlog without end.
    pub application: Application,
}

/// What an application has to send, and when.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Application {
    /// Its rate, whole packets counted; `None` for a backlog without end.
    pub rate: Option<Bandwidth>,
    /// Its pauses: spans from the first instant to before the second, in order, by the clock of the run.
    pub idle: Vec<(Instant, Instant)>,
    /// Of a live source, whose rate the transport knows in advance: how old a segment may become before the transport abandons it. Default
    /// none: every segment is wanted, however late.
    pub lifetime: Option<Duration>,
}

impl Application {
    /// A backlog without end.
    pub const fn backlog() -> Self {
        Self { rate: None, idle: Vec::new(), lifetime: None }
    }

    /// Data at a rate.
    pub const fn periodic(rate: Bandwidth) -> Self {
        Self { rate: Some(rate), idle: Vec::new(), lifetime: None }
    }

    /// The same with pauses.
    pub fn idle_in(mut self, spans: &[(Instant, Instant)]) -> Self {
        self.idle = spans.to_vec();
        self
    }

    /// The same as a live source, whose segments are worth something for so long.
    pub const fn live(mut self, lifetime: Duration) -> Self {
        self.lifetime = Some(lifetime);
        self
    }
}

impl SharedFlow {
    /// A flow with all defaults.
    pub fn new(name: &str, traffic: Traffic) -> Self {
        Self {
            name: name.to_owned(),
            traffic,
            rtt: Duration::from_millis(60),
            jitter: Jitter::None,
            aggregate: Duration::ZERO,
            loss: LossSpec::None,
            loss_back: LossSpec::None,
            policer: None,
            start: Instant::ZERO,
            stop: None,
            application: Application::backlog(),
        }
    }

    /// The scenario its halves are made of; `None` for cross traffic.
    pub(super) fn scheme(&self, link: Bandwidth) -> Option<Scenario> {
        let Traffic::Scheme { scenario, pace } = &self.traffic else { return None };
        Some(scenario.as_ref().clone().with(|it| {
            it.black_box.bandwidth = pace.fixed().unwrap_or(link);
            it.black_box.rtt = self.rtt;
            it.black_box.loss = self.loss.clone();
            it.black_box.loss_back = self.loss_back.clone();
        }))
    }

    /// When it stops at the latest.
    pub fn end(&self, duration: Duration) -> Instant {
        self.stop.unwrap_or(Instant::FAR_FUTURE).min(Instant::ZERO + duration)
    }
}

impl Default for SharedScenario {
    fn default() -> Self {
        Self {
            bandwidth: Bandwidth::from_megabits_per_second(100),
            trace: RateTrace::NONE,
            opportunities: OpportunityTrace::NONE,
            queue: Bytes::new(750_000),
            aqm: Aqm::DropTail,
            mark_above: None,
            ecn_unaware: false,
            duration: Duration::from_secs(30),
            warm_up: Duration::from_secs(5),
            start_spread: Duration::from_millis(100),
            clock_spread: Duration::ZERO,
            time_of_day: Duration::ZERO,
            flows: Vec::new(),
        }
    }
}

/// Why a shared scenario cannot be run: an error in its definition.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SharedScenarioError {
    /// See the message.
    #[error("a shared link without flows carries nothing; add one")]
    NoFlows,
    /// See the message.
    #[error("{0} flows are too many; give at most {FLOWS_MAX}")]
    TooManyFlows(usize),
    /// See the message.
    #[error("two flows are called \"{0}\"; give each a name of its own")]
    SameName(String),
    /// See the message.
    #[error("{what} of {found} is not possible; give a multiple of {SAMPLE}, {hint}")]
    Time {
        /// Which time.
        what: &'static str,
        /// As given.
        found: Duration,
        /// What is possible.
        hint: &'static str,
    },
    /// See the message.
    #[error("flow \"{0}\" stops before it starts; give a later stop")]
    StopsEarly(String),
    /// See the message.
    #[error("the pauses of flow \"{0}\" overlap, end before they begin or are out of order; give them in the order of time")]
    Idle(String),
    /// See the message.
    #[error("flow \"{0}\" has {1}")]
    Application(String, &'static str),
    /// See the message.
    #[error("a scheme with ideal feedback cannot share a link (flow \"{0}\"): its control never meets the queue; use full feedback")]
    IdealFeedback(String),
    /// See the message.
    #[error("scheme {scheme} of flow \"{flow}\" has no automatic rate; give it a fixed one")]
    NoAutomaticRate {
        /// The scheme.
        scheme: &'static str,
        /// The flow.
        flow: String,
    },
    /// See the message.
    #[error("\"{0}\" is no cross traffic; give {names}", names = cross_names())]
    Traffic(String),
    /// See the message.
    #[error("the rate of flow \"{0}\" is zero; give one above it")]
    NoRate(String),
    /// See the message.
    #[error("the link: {0}")]
    Link(SpecError),
    /// See the message.
    #[error("flow \"{flow}\": {error}")]
    Flow {
        /// The flow.
        flow: String,
        /// What is wrong with it.
        error: ScenarioError,
    },
    /// See the message.
    #[error("the shared scenario cannot be read: {0}")]
    Unreadable(String),
}

/// The most flows of a scenario.
pub const FLOWS_MAX: usize = 128;
/// The longest run.
const DURATION_MAX: Duration = Duration::from_secs(3600);

impl SharedScenario {
    /// Whether it can be run.
    ///
    /// # Errors
    /// Says what is invalid.
    pub fn check(&self) -> Result<(), SharedScenarioError> {
        self.check_times()?;
        ScheduledPath::new(&self.link(), segstream_base::random::Seed(0), "shared").map_err(SharedScenarioError::Link)?;
        if self.flows.is_empty() {
            return Err(SharedScenarioError::NoFlows);
        }
        if self.flows.len() > FLOWS_MAX {
            return Err(SharedScenarioError::TooManyFlows(self.flows.len()));
        }
        let mut names = BTreeSet::new();
        for flow in &self.flows {
            if !names.insert(&flow.name) {
                return Err(SharedScenarioError::SameName(flow.name.clone()));
            }
            self.check_flow(flow)?;
        }
        Ok(())
    }

    fn check_times(&self) -> Result<(), SharedScenarioError> {
        let whole = |span: Duration| span.as_nanos().is_multiple_of(SAMPLE.as_nanos());
        if !whole(self.duration) || self.duration.is_zero() || self.duration > DURATION_MAX {
            return Err(SharedScenarioError::Time { what: "a duration", found: self.duration, hint: "at most an hour" });
        }
        if !whole(self.warm_up) || self.warm_up >= self.duration {
            return Err(SharedScenarioError::Time { what: "a warm-up", found: self.warm_up, hint: "below the duration" });
        }
        Ok(())
    }

    fn check_flow(&self, flow: &SharedFlow) -> Result<(), SharedScenarioError> {
        let name = || flow.name.clone();
        let wrong = |error: ScenarioError| SharedScenarioError::Flow { flow: flow.name.clone(), error };
        if flow.end(self.duration) <= flow.start {
            return Err(SharedScenarioError::StopsEarly(name()));
        }
        let idle = &flow.application.idle;
        if idle.iter().any(|(from, to)| from >= to) || idle.windows(2).any(|pair| pair[0].1 > pair[1].0) {
            return Err(SharedScenarioError::Idle(name()));
        }
        if flow.rtt > scenario::RTT_MAX {
            return Err(wrong(ScenarioError::Rtt(flow.rtt)));
        }
        for loss in [&flow.loss, &flow.loss_back] {
            loss.check().map_err(|error| wrong(error.into()))?;
        }
        flow.jitter.check().map_err(|error| wrong(error.into()))?;
        if let Some(policer) = &flow.policer {
            policer.check().map_err(|error| wrong(error.into()))?;
        }
        check_rates(flow)?;
        let Some(scenario) = flow.scheme(self.bandwidth) else { return Ok(()) };
        if scenario.black_box.feedback == FeedbackMode::Ideal {
            return Err(SharedScenarioError::IdealFeedback(name()));
        }
        let automatic = matches!(flow.traffic, Traffic::Scheme { pace: Pace::Controlled(_), .. });
        if automatic && !scenario.scheme.scheme().has_automatic_rate {
            return Err(SharedScenarioError::NoAutomaticRate { scheme: scenario.scheme.key(), flow: name() });
        }
        scenario::check_pair(&scenario).map_err(wrong)
    }

    /// The link as the simulator takes it.
    pub(super) fn link(&self) -> PathConfig {
        PathConfig {
            bandwidth: Some(self.bandwidth),
            trace: self.trace.clone(),
            opportunities: self.opportunities.clone(),
            queue: QueueLimit::Bytes(self.queue),
            aqm: self.aqm,
            mark_above: self.mark_above,
            ecn_unaware: self.ecn_unaware,
            ..PathConfig::default()
        }
    }
}

fn check_rates(flow: &SharedFlow) -> Result<(), SharedScenarioError> {
    let application = &flow.application;
    let own = match &flow.traffic {
        Traffic::Constant { rate } | Traffic::OnOff { rate, .. } | Traffic::Scheme { pace: Pace::Fixed(rate), .. } => Some(*rate),
        _ => None,
    };
    if [own, application.rate].into_iter().flatten().any(Bandwidth::is_zero) {
        return Err(SharedScenarioError::NoRate(flow.name.clone()));
    }
    if application.rate.is_some() && flow.traffic.has_own_rate() {
        let message = "two rates, of its traffic and of its application; leave out the application's";
        return Err(SharedScenarioError::Application(flow.name.clone(), message));
    }
    if matches!(flow.traffic, Traffic::Scheme { .. }) && application.rate.is_none() && !application.idle.is_empty() {
        let message = "pauses, but a scheme with always something to send has none; give the application a rate";
        return Err(SharedScenarioError::Application(flow.name.clone(), message));
    }
    let takes_lifetime = |scenario: &Scenario| application.rate.is_some() && scenario.scheme.settings_of::<flagship::Settings>().is_some();
    let may_be_live = matches!(&flow.traffic, Traffic::Scheme { scenario, pace: Pace::Controlled(_) } if takes_lifetime(scenario));
    if application.lifetime.is_some() && !may_be_live {
        let message = "a lifetime, which a source has that Segstream sends at an automatic rate; give it a rate, or leave the lifetime out";
        return Err(SharedScenarioError::Application(flow.name.clone(), message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::Traffic;
    use segstream_base::endpoint::Ecn;
    use segstream_blocks::congestion::cubic;

    fn good() -> SharedScenario {
        SharedScenario {
            flows: vec![flow("a"), SharedFlow::new("b", Traffic::Tcp { congestion: &cubic::LINUX, ecn: Some(Ecn::Ect0) })],
            ..SharedScenario::default()
        }
    }

    fn flow(name: &str) -> SharedFlow {
        SharedFlow::new(name, Traffic::Scheme { scenario: Box::default(), pace: Pace::Fixed(Bandwidth::from_megabits_per_second(10)) })
    }

    fn with(flow: SharedFlow) -> SharedScenario {
        SharedScenario { flows: vec![flow], ..good() }
    }

    #[test]
    fn nonsense_is_refused_with_a_sentence() {
        let second = |count| Instant::ZERO + Duration::from_secs(count);
        let automatic = Traffic::Scheme { scenario: Box::default(), pace: Pace::AUTO };
        let zero = Traffic::Constant { rate: Bandwidth::ZERO };
        let ideal = Scenario::default().with(|it| it.black_box.feedback = FeedbackMode::Ideal);
        let ideal = Traffic::Scheme { scenario: Box::new(ideal), pace: Pace::Fixed(Bandwidth::from_megabits_per_second(10)) };
        let rate = Application::periodic(Bandwidth::from_megabits_per_second(1));
        let constant = Traffic::Constant { rate: Bandwidth::from_megabits_per_second(1) };
        let no_window = Scenario::default().with(|it| it.workload.window = 0);
        let no_window = Traffic::Scheme { scenario: Box::new(no_window), pace: Pace::Fixed(Bandwidth::from_megabits_per_second(10)) };
        let cases: Vec<(SharedScenario, &str)> = vec![
            (SharedScenario { flows: Vec::new(), ..good() }, "without flows"),
            (SharedScenario { flows: vec![flow("a"), flow("a")], ..good() }, "two flows are called \"a\""),
            (SharedScenario { bandwidth: Bandwidth::ZERO, ..good() }, "the link: "),
            (SharedScenario { duration: Duration::from_millis(150), ..good() }, "a duration of 150ms"),
            (SharedScenario { warm_up: Duration::from_secs(30), ..good() }, "a warm-up of 30s"),
            (with(SharedFlow { stop: Some(Instant::ZERO), ..flow("a") }), "stops before it starts"),
            (with(SharedFlow { start: second(40), ..flow("a") }), "stops before it starts"),
            (with(SharedFlow { application: rate.clone().idle_in(&[(second(3), second(2))]), ..flow("a") }), "the pauses of flow"),
            (with(SharedFlow { application: Application::backlog().idle_in(&[(second(1), second(2))]), ..flow("a") }), "has pauses"),
            (
                with(SharedFlow { application: rate.clone().live(Duration::from_millis(200)), ..flow("a") }),
                "a lifetime, which a source has",
            ),
            (
                with(SharedFlow {
                    application: rate.clone().live(Duration::from_millis(200)),
                    ..SharedFlow::new("c", Traffic::tcp(&cubic::LINUX))
                }),
                "a lifetime, which a source has",
            ),
            (with(SharedFlow { application: rate, ..SharedFlow::new("c", constant) }), "two rates"),
            (with(SharedFlow::new("c", automatic)), "scheme sstp of flow \"c\" has no automatic rate"),
            (with(SharedFlow::new("c", zero)), "the rate of flow \"c\" is zero"),
            (with(SharedFlow::new("c", ideal)), "ideal feedback cannot share"),
            (with(SharedFlow::new("c", no_window)), "flow \"c\": a window of 0 segments"),
        ];
        for (scenario, sentence) in cases {
            let message = scenario.check().expect_err(sentence).to_string();
            assert!(message.contains(sentence), "{message:?} does not say {sentence:?}");
        }
        good().check().unwrap();
    }

    #[test]
    fn a_link_may_have_a_queue_that_decides_later() {
        for aqm in [Aqm::FQ_CODEL, Aqm::DUALPI2] {
            SharedScenario { aqm, ..good() }.check().unwrap();
        }
    }
}
