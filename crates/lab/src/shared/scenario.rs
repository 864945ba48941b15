//! A shared scenario: parties over one link, as a value.
//!
//! Made by studies; run by [`super::run`]; its canonical text ([`super::record`]) is what the result store addresses.
//!
//! Invariant: a scenario that passes [`SharedScenario::check`] can be run; equal canonical texts mean equal runs.

use super::outcome::SAMPLE;
use super::traffic::{Pace, Traffic, cross_names};
use crate::scenario::{self, Scenario, ScenarioError};
use segstream_base::{Bandwidth, Bytes, Duration, Instant};
use segstream_path::{Aqm, LossSpec, PathConfig, Policer, QueueLimit, RateTrace, SpecError};
use segstream_schemes::sstp::FeedbackMode;
use std::collections::BTreeSet;

/// Parties over one link.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedScenario {
    /// The bandwidth of the link, whole packets counted. Default 100 Mbit/s.
    pub bandwidth: Bandwidth,
    /// How it changes. Default: not at all.
    pub trace: RateTrace,
    /// What may wait for it. Default 750,000 bytes: 60 ms of 100 Mbit/s.
    pub queue: Bytes,
    /// What manages the queue. Default: it drops when it is full.
    pub aqm: Aqm,
    /// Markable packets that wait longer are marked. Default: none is.
    pub mark_above: Option<Duration>,
    /// How long is run. Default 30 s.
    pub duration: Duration,
    /// From when on totals are taken; series show all. Default 5 s.
    pub warm_up: Duration,
    /// Each party starts up to so much later than it says, drawn by party and replication, so that replications of parties
    /// without randomness differ. Default 100 ms.
    pub start_spread: Duration,
    /// The parties.
    pub parties: Vec<SharedParty>,
}

/// A party to the link.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedParty {
    /// Its name, unique in the scenario. Its random streams are found by it.
    pub name: String,
    /// What it sends.
    pub traffic: Traffic,
    /// The round trip of its own path, half of it each way, without the link. Default 60 ms.
    pub rtt: Duration,
    /// The most that its own path adds to the delay of a packet, uniformly and in order. Default none.
    pub jitter: Duration,
    /// What its own path loses behind the link. Default none.
    pub loss: LossSpec,
    /// What its way back loses. Default none.
    pub loss_back: LossSpec,
    /// What drops its packets at the entry of its own path. Default none.
    pub policer: Option<Policer>,
    /// When it starts. Default at once.
    pub start: Instant,
    /// When it is gone. Default never.
    pub stop: Option<Instant>,
    /// What its application has to send. Default: always something.
    pub application: Application,
}

/// What an application has to send, and when.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Application {
    /// At which rate, whole packets counted; `None` for always something.
    pub rate: Option<Bandwidth>,
    /// When it has nothing: spans from the first instant to before the second, in order, by the clock of the run.
    pub idle: Vec<(Instant, Instant)>,
}

impl Application {
    /// Always has something.
    pub const fn backlog() -> Self {
        Self { rate: None, idle: Vec::new() }
    }

    /// Has something at a rate.
    pub const fn periodic(rate: Bandwidth) -> Self {
        Self { rate: Some(rate), idle: Vec::new() }
    }

    /// The same with pauses.
    pub fn idle_in(mut self, spans: &[(Instant, Instant)]) -> Self {
        self.idle = spans.to_vec();
        self
    }
}

impl SharedParty {
    /// A party with all defaults.
    pub fn new(name: &str, traffic: Traffic) -> Self {
        Self {
            name: name.to_owned(),
            traffic,
            rtt: Duration::from_millis(60),
            jitter: Duration::ZERO,
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

    /// When it is gone at the latest.
    pub fn end(&self, duration: Duration) -> Instant {
        self.stop.unwrap_or(Instant::FAR_FUTURE).min(Instant::ZERO + duration)
    }
}

impl Default for SharedScenario {
    fn default() -> Self {
        Self {
            bandwidth: Bandwidth::from_megabits_per_second(100),
            trace: RateTrace::NONE,
            queue: Bytes::new(750_000),
            aqm: Aqm::DropTail,
            mark_above: None,
            duration: Duration::from_secs(30),
            warm_up: Duration::from_secs(5),
            start_spread: Duration::from_millis(100),
            parties: Vec::new(),
        }
    }
}

/// Why a shared scenario cannot be run: a fault of whoever wrote it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SharedScenarioError {
    /// See the message.
    #[error("a shared link without parties carries nothing; add one")]
    NoParties,
    /// See the message.
    #[error("{0} parties are too many; give at most {PARTIES_MAX}")]
    TooManyParties(usize),
    /// See the message.
    #[error("two parties are called \"{0}\"; give each a name of its own")]
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
    #[error("party \"{0}\" stops before it starts; give a later stop")]
    StopsEarly(String),
    /// See the message.
    #[error("the pauses of party \"{0}\" overlap, end before they begin or are out of order; give them in the order of time")]
    Idle(String),
    /// See the message.
    #[error("party \"{0}\" has {1}")]
    Application(String, &'static str),
    /// See the message.
    #[error("a scheme with ideal feedback cannot share a link (party \"{0}\"): its control never meets the queue; use full feedback")]
    IdealFeedback(String),
    /// See the message.
    #[error("scheme {scheme} of party \"{party}\" has no automatic rate; give it a fixed one")]
    NoAutomaticRate {
        /// The scheme.
        scheme: &'static str,
        /// The party.
        party: String,
    },
    /// See the message.
    #[error("\"{0}\" is no cross traffic; give {names}", names = cross_names())]
    Traffic(String),
    /// See the message.
    #[error("the rate of party \"{0}\" is zero; give one above it")]
    NoRate(String),
    /// See the message.
    #[error("the link: {0}")]
    Link(SpecError),
    /// See the message.
    #[error("party \"{party}\": {error}")]
    Party {
        /// The party.
        party: String,
        /// What is wrong with it.
        error: ScenarioError,
    },
    /// See the message.
    #[error("the shared scenario cannot be read: {0}")]
    Unreadable(String),
}

/// The most parties of a scenario.
pub const PARTIES_MAX: usize = 64;
/// The longest run.
const DURATION_MAX: Duration = Duration::from_secs(3600);

impl SharedScenario {
    /// Whether it can be run.
    ///
    /// # Errors
    /// Says what cannot be.
    pub fn check(&self) -> Result<(), SharedScenarioError> {
        self.check_times()?;
        segstream_path::Path::new(&self.link(), segstream_base::random::Seed(0), "shared").map_err(SharedScenarioError::Link)?;
        if self.parties.is_empty() {
            return Err(SharedScenarioError::NoParties);
        }
        if self.parties.len() > PARTIES_MAX {
            return Err(SharedScenarioError::TooManyParties(self.parties.len()));
        }
        let mut names = BTreeSet::new();
        for party in &self.parties {
            if !names.insert(&party.name) {
                return Err(SharedScenarioError::SameName(party.name.clone()));
            }
            self.check_party(party)?;
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

    fn check_party(&self, party: &SharedParty) -> Result<(), SharedScenarioError> {
        let name = || party.name.clone();
        let wrong = |error: ScenarioError| SharedScenarioError::Party { party: party.name.clone(), error };
        if party.end(self.duration) <= party.start {
            return Err(SharedScenarioError::StopsEarly(name()));
        }
        let idle = &party.application.idle;
        if idle.iter().any(|(from, to)| from >= to) || idle.windows(2).any(|pair| pair[0].1 > pair[1].0) {
            return Err(SharedScenarioError::Idle(name()));
        }
        if party.rtt > scenario::RTT_MAX {
            return Err(wrong(ScenarioError::Rtt(party.rtt)));
        }
        for loss in [&party.loss, &party.loss_back] {
            loss.check().map_err(|error| wrong(error.into()))?;
        }
        if let Some(policer) = &party.policer {
            policer.check().map_err(|error| wrong(error.into()))?;
        }
        check_rates(party)?;
        let Some(scenario) = party.scheme(self.bandwidth) else { return Ok(()) };
        if scenario.black_box.feedback == FeedbackMode::Ideal {
            return Err(SharedScenarioError::IdealFeedback(name()));
        }
        let automatic = matches!(party.traffic, Traffic::Scheme { pace: Pace::Controlled(_), .. });
        if automatic && !scenario.scheme.scheme().has_automatic_rate {
            return Err(SharedScenarioError::NoAutomaticRate { scheme: scenario.scheme.key(), party: name() });
        }
        scenario::check_pair(&scenario).map_err(wrong)
    }

    /// The link as the simulator takes it.
    pub(super) fn link(&self) -> PathConfig {
        PathConfig {
            bandwidth: Some(self.bandwidth),
            trace: self.trace.clone(),
            queue: QueueLimit::Bytes(self.queue),
            aqm: self.aqm,
            mark_above: self.mark_above,
            ..PathConfig::default()
        }
    }
}

fn check_rates(party: &SharedParty) -> Result<(), SharedScenarioError> {
    let application = &party.application;
    let own = match &party.traffic {
        Traffic::Constant { rate } | Traffic::OnOff { rate, .. } | Traffic::Scheme { pace: Pace::Fixed(rate), .. } => Some(*rate),
        _ => None,
    };
    if [own, application.rate].into_iter().flatten().any(Bandwidth::is_zero) {
        return Err(SharedScenarioError::NoRate(party.name.clone()));
    }
    if application.rate.is_some() && party.traffic.has_own_rate() {
        let told = "two rates, of its traffic and of its application; leave out the application's";
        return Err(SharedScenarioError::Application(party.name.clone(), told));
    }
    if matches!(party.traffic, Traffic::Scheme { .. }) && application.rate.is_none() && !application.idle.is_empty() {
        let told = "pauses, but a scheme with always something to send has none; give the application a rate";
        return Err(SharedScenarioError::Application(party.name.clone(), told));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::Traffic;
    use segstream_blocks::congestion::cubic;

    fn good() -> SharedScenario {
        SharedScenario {
            parties: vec![party("a"), SharedParty::new("b", Traffic::Tcp { congestion: &cubic::ALGORITHM, ecn: true })],
            ..SharedScenario::default()
        }
    }

    fn party(name: &str) -> SharedParty {
        SharedParty::new(name, Traffic::Scheme { scenario: Box::default(), pace: Pace::Fixed(Bandwidth::from_megabits_per_second(10)) })
    }

    fn with(party: SharedParty) -> SharedScenario {
        SharedScenario { parties: vec![party], ..good() }
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
            (SharedScenario { parties: Vec::new(), ..good() }, "without parties"),
            (SharedScenario { parties: vec![party("a"), party("a")], ..good() }, "two parties are called \"a\""),
            (SharedScenario { bandwidth: Bandwidth::ZERO, ..good() }, "the link: "),
            (SharedScenario { duration: Duration::from_millis(150), ..good() }, "a duration of 150ms"),
            (SharedScenario { warm_up: Duration::from_secs(30), ..good() }, "a warm-up of 30s"),
            (with(SharedParty { stop: Some(Instant::ZERO), ..party("a") }), "stops before it starts"),
            (with(SharedParty { start: second(40), ..party("a") }), "stops before it starts"),
            (with(SharedParty { application: rate.clone().idle_in(&[(second(3), second(2))]), ..party("a") }), "the pauses of party"),
            (with(SharedParty { application: Application::backlog().idle_in(&[(second(1), second(2))]), ..party("a") }), "has pauses"),
            (with(SharedParty { application: rate, ..SharedParty::new("c", constant) }), "two rates"),
            (with(SharedParty::new("c", automatic)), "scheme sstp of party \"c\" has no automatic rate"),
            (with(SharedParty::new("c", zero)), "the rate of party \"c\" is zero"),
            (with(SharedParty::new("c", ideal)), "ideal feedback cannot share"),
            (with(SharedParty::new("c", no_window)), "party \"c\": a window of 0 segments"),
        ];
        for (scenario, sentence) in cases {
            let told = scenario.check().expect_err(sentence).to_string();
            assert!(told.contains(sentence), "{told:?} does not say {sentence:?}");
        }
        good().check().unwrap();
    }
}
