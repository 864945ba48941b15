//! Runs a shared scenario with one seed.
//!
//! Called by [`crate::runner`] through [`crate::experiment::Experiment`].
//!
//! Invariant: a flow draws from streams of its name, so adding a flow does not change the losses of others.

use super::outcome::{FlowOutcome, QueueOutcome, SAMPLE, SharedOutcome};
use super::scenario::{SharedFlow, SharedScenario, SharedScenarioError};
use super::segment_times::SegmentTimes;
use super::traffic::{Pace, Traffic};
use crate::flagship;
use crate::scenario::{self, Scenario, ScenarioError, Visitor};
use segstream_base::endpoint::Ecn;
use segstream_base::halves::{Receiver, Sender};
use segstream_base::random::Seed;
use segstream_base::{Bytes, Duration, Instant};
use segstream_blocks::congestion::{Algorithm, Start};
use segstream_path::{LossPlace, PathConfig};
use segstream_schemes::cross_traffic::{self, Constant, Sink, Supply};
use segstream_sim::shared::{Flow, FlowCounters, Link};
use segstream_sim::{Observer, Setup, Shared, Simulation, Source};

/// Runs `scenario` with the random streams of `seed`. Returns what it gave, and the seconds of wall time it took.
///
/// # Errors
/// Says what is invalid.
pub fn run(scenario: &SharedScenario, seed: Seed) -> Result<(SharedOutcome, f64), SharedScenarioError> {
    scenario.check()?;
    let link = Link::new(&scenario.link(), seed.child("link")).map_err(SharedScenarioError::Link)?;
    let mut shared = Shared::new(link.clone());
    let mut watched = Vec::new();
    for flow in &scenario.flows {
        let setup = FlowSetup::new(scenario, flow, seed, &link);
        let joined = setup.join().map_err(|error| SharedScenarioError::Flow { flow: flow.name.clone(), error })?;
        shared.add(joined, flow.end(scenario.duration));
        watched.push(Watched { start: setup.start, end: flow.end(scenario.duration), times: setup.times, unit: setup.unit_bytes });
    }
    let began = std::time::Instant::now();
    let outcome = observe(scenario, &mut shared, &watched);
    Ok((outcome, began.elapsed().as_secs_f64()))
}

/// What the run keeps about a flow besides the simulation.
struct Watched {
    start: Instant,
    end: Instant,
    times: SegmentTimes,
    unit: u64,
}

/// Runs to the end and takes samples.
fn observe(scenario: &SharedScenario, shared: &mut Shared<'_>, watched: &[Watched]) -> SharedOutcome {
    let warm = Instant::ZERO + scenario.warm_up;
    let mut queue = QueueOutcome::default();
    let mut series: Vec<Vec<u64>> = vec![Vec::new(); watched.len()];
    let mut arrived = vec![0; watched.len()];
    let mut at_warm = vec![FlowCounters::default(); watched.len()];
    let ended = shared.run_sampled(Instant::ZERO + scenario.duration, SAMPLE, |shared| {
        for ((flow, series), before) in shared.flows().zip(&mut series).zip(&mut arrived) {
            let now = flow.counters().bytes_arrived;
            series.push(now - *before);
            *before = now;
        }
        let (mean, max) = shared.link().take_interval().unzip();
        queue.mean_ns_series.push(mean.map(Duration::as_nanos));
        queue.max_ns_series.push(max.map(Duration::as_nanos));
        if shared.now() == warm {
            at_warm = shared.flows().map(Flow::counters).collect();
            shared.link().restart_meter();
        }
    });
    let meter = shared.link().queue();
    let counters = shared.link().counters();
    let queue =
        QueueOutcome { mean_ns: meter.mean().as_nanos(), p95_ns: meter.quantile(0.95).as_nanos(), max_ns: meter.max().as_nanos(), ..queue };
    let told = shared.flows().zip(&scenario.flows).zip(watched).zip(at_warm.iter().zip(series));
    SharedOutcome {
        trouble: ended.err().map(|error| error.to_string()),
        link_packets_sent: counters.sent,
        link_dropped_queue: counters.dropped_queue,
        link_dropped_aqm: counters.dropped_aqm,
        link_marked: counters.marked,
        queue,
        flows: told
            .map(|(((flow, spec), watched), (before, series))| flow_outcome(&flow.counters(), before, spec, watched, warm, series))
            .collect(),
    }
}

fn flow_outcome(
    now: &FlowCounters,
    before: &FlowCounters,
    spec: &SharedFlow,
    watched: &Watched,
    warm: Instant,
    bytes_arrived_series: Vec<u64>,
) -> FlowOutcome {
    let (delays, latencies) = watched.times.times();
    let (segments_accepted, segments_expired) = watched.times.verdicts();
    FlowOutcome {
        name: spec.name.clone(),
        present_ns: watched.end.since(watched.start.max(warm)).as_nanos(),
        bytes_arrived: now.bytes_arrived - before.bytes_arrived,
        bytes_delivered: (now.units_delivered - before.units_delivered) * watched.unit,
        bytes_sent: now.bytes_sent - before.bytes_sent,
        packets_sent: now.packets_sent - before.packets_sent,
        packets_retransmitted: now.packets_retransmitted - before.packets_retransmitted,
        packets_dropped: now.packets_dropped - before.packets_dropped,
        packets_lost: now.packets_lost - before.packets_lost,
        packets_marked: now.packets_marked - before.packets_marked,
        bytes_arrived_series,
        delays,
        latencies,
        segments_accepted,
        segments_expired,
    }
}

/// Nothing of the simulation's own source: cross traffic has its supply.
const NO_SOURCE: Source = Source::Backlog { segments: 0, segment_bytes: 0 };

/// The setup of a flow before it joins.
struct FlowSetup<'a> {
    flow: &'a SharedFlow,
    scheme: Option<Scenario>,
    seed: Seed,
    link: &'a Link,
    start: Instant,
    /// What the hosts' time of day shows when the flow starts.
    epoch: Duration,
    end: Instant,
    setup: Setup,
    times: SegmentTimes,
    /// The application's bytes in a unit.
    unit_bytes: u64,
}

impl<'a> FlowSetup<'a> {
    fn new(scenario: &SharedScenario, flow: &'a SharedFlow, seed: Seed, link: &'a Link) -> Self {
        let seed = seed.child(&format!("party-{}", flow.name));
        let spread = Duration::from_nanos(seed.stream("start").below(scenario.start_spread.as_nanos()));
        let start = flow.start + spread;
        let ahead = Duration::from_nanos(seed.stream("clock").below(scenario.clock_spread.as_nanos()));
        let scheme = flow.scheme(scenario.bandwidth);
        let unit_bytes = match &scheme {
            Some(scheme) => scenario::segment_bytes(scheme) / u64::from(scheme.workload.segment_packets.max(1)),
            None => cross_traffic::PAYLOAD_BYTES as u64,
        };
        let delay = flow.rtt / 2;
        let plain = PathConfig { delay, jitter: flow.jitter, aggregate: flow.aggregate, ..PathConfig::default() };
        let forward = PathConfig { loss: flow.loss.clone(), loss_at: LossPlace::After, policer: flow.policer, ..plain.clone() };
        let back = PathConfig { loss: flow.loss_back.clone(), ..plain };
        Self {
            flow,
            scheme,
            seed,
            link,
            start,
            epoch: scenario.time_of_day + start.since(Instant::ZERO) + ahead,
            end: flow.end(scenario.duration),
            setup: Setup { forward, back, ..Setup::default() },
            times: SegmentTimes::new(Instant::ZERO + (Instant::ZERO + scenario.warm_up).since(start)),
            unit_bytes,
        }
    }

    fn join(&self) -> Result<Box<dyn Flow>, ScenarioError> {
        match &self.flow.traffic {
            Traffic::Scheme { pace, .. } => self.scheme(*pace),
            Traffic::Tcp { congestion, ecn } => self.tcp(congestion, *ecn),
            Traffic::Constant { rate } => self.constant(Supply::at_rate(*rate)),
            Traffic::OnOff { rate, on, off } => self.constant(Supply::at_rate(*rate).in_bursts(*on, *off, self.seed)),
        }
    }

    fn scheme(&self, pace: Pace) -> Result<Box<dyn Flow>, ScenarioError> {
        let Some(scenario) = &self.scheme else { return Err(ScenarioError::UnknownScheme(String::new())) };
        let source = self.source(scenario, scenario::segment_bytes(scenario));
        if let (Pace::Controlled(congestion), Some(flagship)) = (pace, scenario.scheme.settings_of::<flagship::Settings>()) {
            let application = &self.flow.application;
            let live = application.rate.zip(application.lifetime).map(|(rate, lifetime)| flagship::Live { rate, lifetime });
            let pair = flagship.controlled_pair(&scenario.transfer(), congestion, live, self.epoch);
            let (sender, receiver) = pair.map_err(|error| ScenarioError::Scheme(error.to_string()))?;
            return self.simulation(sender, receiver, source, self.times.clone());
        }
        scenario::visit(scenario, Join { setup: self, source })
    }

    fn tcp(&self, congestion: &Algorithm, ecn: Option<Ecn>) -> Result<Box<dyn Flow>, ScenarioError> {
        let start = Start { epoch: self.epoch, ..Start::new(Instant::ZERO, cross_traffic::BOUNDS, self.seed) };
        let supply = self.flow.application.rate.map_or_else(Supply::greedy, Supply::at_rate).idle_in(&self.idle());
        let sender = cross_traffic::Sender::new((congestion.start)(start), supply, ecn);
        self.simulation(sender, cross_traffic::Receiver::default(), NO_SOURCE, ())
    }

    fn constant(&self, supply: Supply) -> Result<Box<dyn Flow>, ScenarioError> {
        self.simulation(Constant::new(supply.idle_in(&self.idle())), Sink::default(), NO_SOURCE, ())
    }

    fn simulation<S, R, O>(&self, sender: S, receiver: R, source: Source, observer: O) -> Result<Box<dyn Flow>, ScenarioError>
    where
        S: Sender + 'static,
        R: Receiver<Forward = S::Forward, Feedback = S::Feedback> + 'static,
        O: Observer + 'static,
    {
        let mut simulation = Simulation::new(sender, receiver, source, &self.setup, self.seed, observer)?;
        simulation.join(self.link.enter(self.start));
        Ok(Box::new(simulation))
    }

    /// The pauses by the flow's own clock.
    fn idle(&self) -> Vec<(Instant, Instant)> {
        let local = |at: Instant| Instant::ZERO + at.since(self.start);
        let spans = self.flow.application.idle.iter().map(|(from, to)| (local(*from), local(*to)));
        spans.filter(|(from, to)| from < to).collect()
    }

    /// The segments of a scheme's application: one after the other, or each when as much has come together at its rate.
    fn source(&self, scenario: &Scenario, segment_bytes: u64) -> Source {
        let Some(rate) = self.flow.application.rate else { return Source::Backlog { segments: u64::MAX, segment_bytes } };
        let packets = Bytes::new(u64::from(scenario.workload.segment_packets) * u64::from(scenario.workload.packet_bytes));
        let idle = self.idle();
        let (mut due, mut at) = (Vec::new(), Instant::ZERO);
        let (mut remainder, mut pauses) = (Default::default(), idle.iter().peekable());
        while at < Instant::ZERO + self.end.since(self.start) {
            if let Some((_, to)) = pauses.next_if(|(from, _)| at >= *from) {
                at = at.max(*to);
                continue;
            }
            due.push(at);
            at += rate.transmit_time(packets, &mut remainder).max(Duration::from_nanos(1));
        }
        Source::Scheduled { due: due.into(), segment_bytes }
    }
}

/// Joins a scheme of the registry.
struct Join<'a> {
    setup: &'a FlowSetup<'a>,
    source: Source,
}

impl Visitor for Join<'_> {
    type Output = Box<dyn Flow>;

    fn visit<S, R>(self, make: impl Fn(&Scenario) -> Result<(S, R), ScenarioError>) -> Result<Self::Output, ScenarioError>
    where
        S: Sender + 'static,
        R: Receiver<Forward = S::Forward, Feedback = S::Feedback> + 'static,
    {
        let Some(scenario) = &self.setup.scheme else { return Err(ScenarioError::UnknownScheme(String::new())) };
        let (sender, receiver) = make(scenario)?;
        self.setup.simulation(sender, receiver, self.source, self.setup.times.clone())
    }
}
