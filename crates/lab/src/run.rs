//! Runs one scenario with one seed in the simulator.
//!
//! Called by [`crate::runner`] for every replication of every point, and by the command line.
//!
//! Invariant: the outcome depends on the scenario and the seed alone; the wall time is told beside it.

use crate::experiment::Experiment;
use crate::meter::Meter;
use crate::outcome::Outcome;
use crate::scenario::{self, BlackBox, Scenario, ScenarioError, Visitor};
use segstream_base::Duration;
use segstream_base::halves::{Receiver, Sender};
use segstream_base::random::Seed;
use segstream_path::{LossPlace, PathConfig, QueueLimit};
use segstream_schemes::sstp::FeedbackMode;
use segstream_sim::{Control, End, Observer, SenderCost, Setup, Simulation, Source};

/// One run, and how long it took here.
#[derive(Clone, Debug)]
pub struct Run {
    /// What it gave.
    pub outcome: Outcome,
    /// Seconds of wall time on one core, from the first event to the last.
    pub wall_s: f64,
}

impl Run {
    /// Data packets sent per second of wall time.
    pub fn packets_per_second(&self) -> f64 {
        self.outcome.packets_sent as f64 / self.wall_s.max(1e-9)
    }
}

impl Experiment for Scenario {
    type Outcome = Outcome;
    type Error = ScenarioError;

    fn canonical(&self) -> String {
        Self::canonical(self)
    }

    fn check(&self) -> Result<(), ScenarioError> {
        Self::check(self)
    }

    fn run(&self, seed: Seed) -> Result<(Outcome, f64), ScenarioError> {
        run(self, seed).map(|run| (run.outcome, run.wall_s))
    }

    fn packets(&self, _outcome: &Outcome) -> u64 {
        self.workload.packets
    }
}

/// Runs `scenario` with the random streams of `seed`.
pub fn run(scenario: &Scenario, seed: Seed) -> Result<Run, ScenarioError> {
    run_observed(scenario, seed, false, ()).map(|(run, _)| run)
}

/// Runs `scenario` under the eyes of `observer`, or of none, which is `()`; with `check` every packet is encoded and decoded, which
/// must not change the outcome.
pub fn run_observed<O: Observer>(scenario: &Scenario, seed: Seed, check: bool, observer: O) -> Result<(Run, O), ScenarioError> {
    let segment_bytes = scenario::segment_bytes(scenario);
    let visitor = Simulate { scenario, seed, check, segment_bytes, observer };
    scenario::visit(scenario, visitor)
}

/// One direction of a black box.
pub fn path(black_box: &BlackBox, back: bool) -> PathConfig {
    let bandwidth = black_box.bandwidth_back.filter(|_| back).unwrap_or(black_box.bandwidth);
    let hop = if back { &black_box.hop_back } else { &black_box.hop };
    hop.of(PathConfig {
        bandwidth: Some(bandwidth),
        queue: match black_box.queue_packets.filter(|_| !back) {
            Some(packets) => QueueLimit::Packets(u64::from(packets)),
            None if hop.trace.is_none() => PathConfig::default_queue(bandwidth, black_box.rtt),
            None => PathConfig::default_queue(hop.trace.mean(), black_box.rtt),
        },
        delay: black_box.rtt / 2,
        loss: if back { black_box.loss_back.clone() } else { black_box.loss.clone() },
        // A lost packet has used the bandwidth, as in the papers.
        loss_at: LossPlace::After,
        ..PathConfig::default()
    })
}

/// How halves are joined by a black box.
pub fn setup(black_box: &BlackBox, check: bool) -> Setup {
    Setup {
        forward: path(black_box, false),
        back: path(black_box, true),
        control: match black_box.feedback {
            FeedbackMode::Ideal => Control::OutOfBand,
            FeedbackMode::Full => Control::InBand,
        },
        control_loss: black_box.control_loss.clone(),
        sender_cost: sender_cost(black_box),
        end_systems: black_box.end_system(),
        check,
        until: None,
    }
}

struct Simulate<'a, O> {
    scenario: &'a Scenario,
    seed: Seed,
    check: bool,
    segment_bytes: u64,
    observer: O,
}

impl<O: Observer> Visitor for Simulate<'_, O> {
    type Output = (Run, O);

    fn visit<S, R>(self, make: impl Fn(&Scenario) -> Result<(S, R), ScenarioError>) -> Result<Self::Output, ScenarioError>
    where
        S: Sender,
        R: Receiver<Forward = S::Forward, Feedback = S::Feedback>,
    {
        let scenario = self.scenario;
        let (sender, receiver) = make(scenario)?;
        let setup = setup(&scenario.black_box, self.check);
        let source = source(scenario, self.segment_bytes);
        let observer = (Meter::new(scenario.segments(), interval(scenario)), self.observer);
        let mut simulation = Simulation::new(sender, receiver, source, &setup, self.seed, observer)?;
        let began = std::time::Instant::now();
        let end = simulation.run();
        let wall_s = began.elapsed().as_secs_f64();
        let traffic = simulation.traffic();
        let counters = simulation.sender().counters();
        let simulated = simulation.now();
        let (mut meter, observer) = simulation.into_observer();
        let outcome = Outcome {
            trouble: trouble(end, scenario.segments(), meter.judged()),
            segments_delivered: meter.judged(),
            verdicts: meter.verdicts,
            packets_accepted: meter.packets_accepted,
            packets_delivered: meter.packets_delivered,
            packets_sent: counters.packets_sent,
            packets_retransmitted: counters.packets_retransmitted,
            packets_lost: traffic.forward.path.lost,
            packets_received_again: received_again(end, &meter, traffic.forward.data_arrived),
            control_packets: traffic.forward.control_packets,
            feedback_packets: traffic.feedback_packets(),
            span_ns: span(&meter, scenario.black_box.rtt).as_nanos(),
            simulated_ns: simulated.as_nanos(),
            delays: meter.delays(),
            from_due: meter.delays_from_due(),
            batches: std::mem::take(&mut meter.batches),
        };
        Ok((Run { outcome, wall_s }, observer))
    }
}

/// From the first transmission to the last acceptance, less half a round trip.
fn span(meter: &Meter, rtt: Duration) -> Duration {
    match (meter.first_start, meter.last_acceptance) {
        (Some(first), Some(last)) => last.since(first).saturating_sub(rtt / 2),
        _ => Duration::ZERO,
    }
}

/// Who submits: always, or this many packets a second.
fn source(scenario: &Scenario, segment_bytes: u64) -> Source {
    let segments = scenario.segments();
    match interval(scenario) {
        None => Source::Backlog { segments, segment_bytes },
        Some(interval) => Source::Periodic { segments, segment_bytes, interval },
    }
}

/// From one segment being due to the next; `None` where there is always one.
fn interval(scenario: &Scenario) -> Option<Duration> {
    let segment_packets = Duration::from_secs(u64::from(scenario.workload.segment_packets));
    scenario.workload.offered.map(|offered| segment_packets / u64::from(offered.max(1)))
}

/// The sender's processor, if its work takes any time.
fn sender_cost(black_box: &BlackBox) -> Option<SenderCost> {
    let (timer, timer_passed) = black_box.timer_cost;
    let cost = SenderCost { packet: black_box.service, slot: black_box.search_cost, timer, timer_passed };
    (cost != SenderCost::default()).then_some(cost)
}

/// Every packet of a complete segment has arrived once; the others are those.
fn received_again(end: End, meter: &Meter, data_arrived: u64) -> Option<u64> {
    (end.is_reached() && meter.verdicts.0 == meter.judged()).then(|| data_arrived.saturating_sub(meter.packets_delivered))
}

fn trouble(end: End, segments: u64, judged: u64) -> Option<String> {
    (end != End::Delivered).then(|| format!("the run ended before all was delivered: {judged} of {segments} segments, {end}"))
}
