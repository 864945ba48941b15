//! Runs a shared scenario with one seed.
//!
//! Called by [`crate::runner`] through [`crate::experiment::Experiment`].
//!
//! Invariant: a party draws from streams of its name, so adding another party changes nobody's losses.

use super::outcome::{PartyOutcome, QueueOutcome, SAMPLE, SharedOutcome};
use super::scenario::{SharedParty, SharedScenario, SharedScenarioError};
use super::segment_times::SegmentTimes;
use super::traffic::{Pace, Traffic};
use crate::flagship;
use crate::scenario::{self, Scenario, ScenarioError, Visitor};
use segstream_base::halves::{Receiver, Sender};
use segstream_base::random::Seed;
use segstream_base::{Bytes, Duration, Instant};
use segstream_blocks::congestion::{Algorithm, Start};
use segstream_path::{Jitter, LossPlace, PathConfig};
use segstream_schemes::cross_traffic::{self, Constant, Sink, Supply};
use segstream_sim::shared::{Link, Party, Tally};
use segstream_sim::{Observer, Setup, Shared, Simulation, Source};

/// Runs `scenario` with the random streams of `seed`. Returns what it gave, and the seconds of wall time it took.
///
/// # Errors
/// Says what cannot be.
pub fn run(scenario: &SharedScenario, seed: Seed) -> Result<(SharedOutcome, f64), SharedScenarioError> {
    scenario.check()?;
    let link = Link::new(&scenario.link(), seed.child("link")).map_err(SharedScenarioError::Link)?;
    let mut shared = Shared::new(link.clone());
    let mut watched = Vec::new();
    for party in &scenario.parties {
        let entrant = Entrant::new(scenario, party, seed, &link);
        let joined = entrant.join().map_err(|error| SharedScenarioError::Party { party: party.name.clone(), error })?;
        shared.add(joined, party.end(scenario.duration));
        watched.push(Watched { start: entrant.start, end: party.end(scenario.duration), times: entrant.times, unit: entrant.unit_bytes });
    }
    let began = std::time::Instant::now();
    let outcome = observe(scenario, &mut shared, &watched);
    Ok((outcome, began.elapsed().as_secs_f64()))
}

/// What is known of a party beside the simulation.
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
    let mut at_warm = vec![Tally::default(); watched.len()];
    let ended = shared.run_sampled(Instant::ZERO + scenario.duration, SAMPLE, |shared| {
        for ((party, series), before) in shared.parties().zip(&mut series).zip(&mut arrived) {
            let now = party.tally().bytes_arrived;
            series.push(now - *before);
            *before = now;
        }
        let (mean, max) = shared.link().take_interval().unzip();
        queue.mean_ns_series.push(mean.map(Duration::as_nanos));
        queue.max_ns_series.push(max.map(Duration::as_nanos));
        if shared.now() == warm {
            at_warm = shared.parties().map(Party::tally).collect();
            shared.link().restart_meter();
        }
    });
    let meter = shared.link().queue();
    let counters = shared.link().counters();
    let queue =
        QueueOutcome { mean_ns: meter.mean().as_nanos(), p95_ns: meter.quantile(0.95).as_nanos(), max_ns: meter.max().as_nanos(), ..queue };
    let told = shared.parties().zip(&scenario.parties).zip(watched).zip(at_warm.iter().zip(series));
    SharedOutcome {
        trouble: ended.err().map(|error| error.to_string()),
        link_packets_sent: counters.sent,
        link_dropped_queue: counters.dropped_queue,
        link_dropped_aqm: counters.dropped_aqm,
        link_marked: counters.marked,
        queue,
        parties: told
            .map(|(((party, spec), watched), (before, series))| party_outcome(&party.tally(), before, spec, watched, warm, series))
            .collect(),
    }
}

fn party_outcome(
    now: &Tally,
    before: &Tally,
    spec: &SharedParty,
    watched: &Watched,
    warm: Instant,
    bytes_arrived_series: Vec<u64>,
) -> PartyOutcome {
    let (delays, latencies) = watched.times.times();
    PartyOutcome {
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
    }
}

/// Nothing of the simulation's own source: cross traffic has its supply.
const NO_SOURCE: Source = Source::Backlog { segments: 0, segment_bytes: 0 };

/// A party that is about to join.
struct Entrant<'a> {
    party: &'a SharedParty,
    scheme: Option<Scenario>,
    seed: Seed,
    link: &'a Link,
    start: Instant,
    end: Instant,
    setup: Setup,
    times: SegmentTimes,
    /// The application's bytes in a unit.
    unit_bytes: u64,
}

impl<'a> Entrant<'a> {
    fn new(scenario: &SharedScenario, party: &'a SharedParty, seed: Seed, link: &'a Link) -> Self {
        let seed = seed.child(&format!("party-{}", party.name));
        let spread = Duration::from_nanos(seed.stream("start").below(scenario.start_spread.as_nanos()));
        let start = party.start + spread;
        let scheme = party.scheme(scenario.bandwidth);
        let unit_bytes = match &scheme {
            Some(scheme) => scenario::segment_bytes(scheme) / u64::from(scheme.workload.segment_packets.max(1)),
            None => cross_traffic::PAYLOAD_BYTES as u64,
        };
        let delay = party.rtt / 2;
        let plain = PathConfig { delay, jitter: Jitter::Uniform(party.jitter), ..PathConfig::default() };
        let forward = PathConfig { loss: party.loss.clone(), loss_at: LossPlace::After, policer: party.policer, ..plain.clone() };
        let back = PathConfig { loss: party.loss_back.clone(), ..plain };
        Self {
            party,
            scheme,
            seed,
            link,
            start,
            end: party.end(scenario.duration),
            setup: Setup { forward, back, ..Setup::default() },
            times: SegmentTimes::new(Instant::ZERO + (Instant::ZERO + scenario.warm_up).since(start)),
            unit_bytes,
        }
    }

    fn join(&self) -> Result<Box<dyn Party>, ScenarioError> {
        match &self.party.traffic {
            Traffic::Scheme { pace, .. } => self.scheme(*pace),
            Traffic::Tcp { congestion, ecn } => self.tcp(congestion, *ecn),
            Traffic::Constant { rate } => self.constant(Supply::at_rate(*rate)),
            Traffic::OnOff { rate, on, off } => self.constant(Supply::at_rate(*rate).in_bursts(*on, *off, self.seed)),
        }
    }

    fn scheme(&self, pace: Pace) -> Result<Box<dyn Party>, ScenarioError> {
        let Some(scenario) = &self.scheme else { return Err(ScenarioError::UnknownScheme(String::new())) };
        let source = self.source(scenario, scenario::segment_bytes(scenario));
        if let (Pace::Controlled(congestion), Some(flagship)) = (pace, scenario.scheme.settings_of::<flagship::Settings>()) {
            let pair = flagship.controlled_pair(&scenario.transfer(), congestion, Instant::ZERO);
            let (sender, receiver) = pair.map_err(|error| ScenarioError::Scheme(error.to_string()))?;
            return self.simulation(sender, receiver, source, self.times.clone());
        }
        scenario::visit(scenario, Join { entrant: self, source })
    }

    fn tcp(&self, congestion: &Algorithm, markable: bool) -> Result<Box<dyn Party>, ScenarioError> {
        let start = Start { now: Instant::ZERO, bounds: cross_traffic::BOUNDS, seed: self.seed };
        let supply = self.party.application.rate.map_or_else(Supply::greedy, Supply::at_rate).idle_in(&self.idle());
        let sender = cross_traffic::Sender::new((congestion.start)(start), supply, markable);
        self.simulation(sender, cross_traffic::Receiver::default(), NO_SOURCE, ())
    }

    fn constant(&self, supply: Supply) -> Result<Box<dyn Party>, ScenarioError> {
        self.simulation(Constant::new(supply.idle_in(&self.idle())), Sink::default(), NO_SOURCE, ())
    }

    fn simulation<S, R, O>(&self, sender: S, receiver: R, source: Source, observer: O) -> Result<Box<dyn Party>, ScenarioError>
    where
        S: Sender + 'static,
        R: Receiver<Forward = S::Forward, Feedback = S::Feedback> + 'static,
        O: Observer + 'static,
    {
        let mut simulation = Simulation::new(sender, receiver, source, &self.setup, self.seed, observer)?;
        simulation.join(self.link.enter(self.start));
        Ok(Box::new(simulation))
    }

    /// The pauses by the party's own clock.
    fn idle(&self) -> Vec<(Instant, Instant)> {
        let local = |at: Instant| Instant::ZERO + at.since(self.start);
        let spans = self.party.application.idle.iter().map(|(from, to)| (local(*from), local(*to)));
        spans.filter(|(from, to)| from < to).collect()
    }

    /// The segments of a scheme's application: one after the other, or each when as much has come together at its rate.
    fn source(&self, scenario: &Scenario, segment_bytes: u64) -> Source {
        let Some(rate) = self.party.application.rate else { return Source::Backlog { segments: u64::MAX, segment_bytes } };
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
    entrant: &'a Entrant<'a>,
    source: Source,
}

impl Visitor for Join<'_> {
    type Output = Box<dyn Party>;

    fn visit<S, R>(self, make: impl Fn(&Scenario) -> Result<(S, R), ScenarioError>) -> Result<Self::Output, ScenarioError>
    where
        S: Sender + 'static,
        R: Receiver<Forward = S::Forward, Feedback = S::Feedback> + 'static,
    {
        let Some(scenario) = &self.entrant.scheme else { return Err(ScenarioError::UnknownScheme(String::new())) };
        let (sender, receiver) = make(scenario)?;
        self.entrant.simulation(sender, receiver, self.source, self.entrant.times.clone())
    }
}
