//! The model of processors against what theory says of queues.

use super::*;
use segstream_base::random::{Random, Seed};

/// A stage of a test: makes numbers, hands numbers on, or keeps them.
enum Probe {
    Source { to: usize, left: u64, due: Instant, gaps: Option<(Random, Duration)> },
    Relay { to: usize },
    Sink { seen: Vec<(Instant, u64)> },
}

impl Probe {
    /// Makes `left` numbers, always ready to make the next.
    const fn always(to: usize, left: u64) -> Self {
        Self::Source { to, left, due: Instant::ZERO, gaps: None }
    }

    /// Makes `left` numbers at random times, `gap` apart on average.
    fn at_random(to: usize, left: u64, gap: Duration) -> Self {
        Self::Source { to, left, due: Instant::ZERO, gaps: Some((Seed(1).stream("arrivals"), gap)) }
    }

    const fn sink() -> Self {
        Self::Sink { seen: Vec::new() }
    }
}

impl Stage for Probe {
    type Message = u64;

    fn name(&self) -> &'static str {
        "probe"
    }

    fn handle(&mut self, now: Instant, message: u64, out: &mut Vec<(StageId, u64)>) {
        match self {
            Self::Relay { to } => out.push((StageId(*to), message)),
            Self::Sink { seen } => seen.push((now, message)),
            Self::Source { .. } => {}
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Source { left, due, .. } => (*left > 0).then_some(*due),
            _ => None,
        }
    }

    fn handle_timeout(&mut self, now: Instant, out: &mut Vec<(StageId, u64)>) {
        if let Self::Source { to, left, due, gaps } = self {
            if *due > now || *left == 0 {
                return;
            }
            out.push((StageId(*to), *left));
            *left -= 1;
            if let Some((random, gap)) = gaps {
                *due += random.exponential(*gap);
            }
        }
    }
}

const COSTS_US: [u64; 4] = [20, 50, 80, 30];

fn tandem(packets: u64, places: [usize; 4]) -> StageModel<Probe, impl Fn(StageId, Work<'_, u64>) -> Duration> {
    let stages = vec![Probe::always(1, packets), Probe::Relay { to: 2 }, Probe::Relay { to: 3 }, Probe::sink()];
    let cost = |stage: StageId, _: Work<'_, u64>| Duration::from_micros(COSTS_US[stage.0]);
    let mut model = StageModel::new(stages, places.map(Place::Processor).to_vec(), cost).unwrap();
    model.run(Instant::FAR_FUTURE, |_| true).unwrap();
    model
}

fn seen<C>(model: &StageModel<Probe, C>) -> &[(Instant, u64)]
where
    C: FnMut(StageId, Work<'_, u64>) -> Duration,
{
    match &model.stages[model.stages.len() - 1] {
        Probe::Sink { seen } => seen,
        _ => panic!("the last stage is the sink"),
    }
}

#[test]
fn a_tandem_carries_what_its_slowest_stage_carries() {
    let model = tandem(1_000, [0, 1, 2, 3]);
    let seen = seen(&model);
    assert_eq!(seen.len(), 1_000);
    assert!(seen.windows(2).all(|pair| pair[1].0.since(pair[0].0) == Duration::from_micros(80)));
    assert_eq!(seen[0].0, Instant::ZERO + Duration::from_micros(COSTS_US.iter().sum()));
    assert_eq!(model.processors_busy()[2], Duration::from_micros(80_000));
}

#[test]
fn one_processor_carries_what_all_stages_together_leave() {
    let model = tandem(1_000, [0; 4]);
    let sum = Duration::from_micros(COSTS_US.iter().sum());
    assert_eq!(model.now(), Instant::ZERO + sum * 1_000);
    assert_eq!(model.processors_busy(), [sum * 1_000]);
}

#[test]
fn two_processors_carry_what_the_fuller_one_carries() {
    // 20 + 80 against 50 + 30.
    let model = tandem(1_000, [0, 1, 0, 1]);
    let work = Duration::from_micros(100) * 1_000;
    assert_eq!(model.processors_busy(), [work, Duration::from_micros(80) * 1_000]);
    // The fuller one is never idle except for the first packet's way to it and the last one's way from it.
    assert!(model.now().since(Instant::ZERO + work) <= Duration::from_micros(80), "{}", model.now());
}

#[test]
fn random_arrivals_wait_as_long_as_theory_says() {
    // M/D/1: the mean wait is rho D / (2 (1 - rho)).
    for rho in [0.5, 0.8] {
        let service = Duration::from_micros(100);
        let gap = Duration::from_secs_f64(service.as_secs_f64() / rho);
        let stages = vec![Probe::at_random(1, 400_000, gap), Probe::sink()];
        let places = vec![Place::Link(Duration::ZERO), Place::Processor(0)];
        let mut model = StageModel::new(stages, places, |_, _: Work<'_, u64>| service).unwrap();
        model.run(Instant::FAR_FUTURE, |_| true).unwrap();
        let expected = rho * service.as_secs_f64() / (2.0 * (1.0 - rho));
        let waited = model.tallies()[1].waited_s_mean();
        assert!((waited / expected - 1.0).abs() < 0.03, "rho {rho}: {waited} s, expected {expected} s");
        let share = model.processors_busy()[0].as_secs_f64() / model.now().since(Instant::ZERO).as_secs_f64();
        assert!((share - rho).abs() < 0.01, "rho {rho}: busy {share}");
    }
}

#[test]
fn a_link_delays_everything_alike_and_occupies_nobody() {
    let delay = Duration::from_millis(5);
    let stages = vec![Probe::always(1, 100), Probe::Relay { to: 2 }, Probe::sink()];
    let places = vec![Place::Processor(0), Place::Link(delay), Place::Processor(1)];
    let service = Duration::from_micros(10);
    let mut model = StageModel::new(stages, places, |_, _: Work<'_, u64>| service).unwrap();
    model.run(Instant::FAR_FUTURE, |_| true).unwrap();
    let expected = (1..=100u64).map(|k| (Instant::ZERO + service * k + delay + service, 101 - k));
    assert!(seen(&model).iter().copied().eq(expected));
}

#[test]
fn what_is_ready_first_is_served_first_and_ties_go_by_their_making() {
    let service = Duration::from_micros(10);
    let mut model = StageModel::new(vec![Probe::sink()], vec![Place::Processor(0)], |_, _: Work<'_, u64>| service).unwrap();
    let at = |micros| Instant::ZERO + Duration::from_micros(micros);
    for (ready, number) in [(5, 3), (0, 1), (5, 4), (3, 2)] {
        model.send(at(ready), StageId(0), number).unwrap();
    }
    model.run(Instant::FAR_FUTURE, |_| true).unwrap();
    assert_eq!(seen(&model), [(at(10), 1), (at(20), 2), (at(30), 3), (at(40), 4)]);
}

#[test]
fn a_run_goes_on_where_it_was_left() {
    let whole = tandem(50, [0, 1, 1, 0]);
    let stages = vec![Probe::always(1, 50), Probe::Relay { to: 2 }, Probe::Relay { to: 3 }, Probe::sink()];
    let cost = |stage: StageId, _: Work<'_, u64>| Duration::from_micros(COSTS_US[stage.0]);
    let mut model = StageModel::new(stages, [0, 1, 1, 0].map(Place::Processor).to_vec(), cost).unwrap();
    for end in (0..20).map(|k| Instant::ZERO + Duration::from_micros(777) * k) {
        model.run(end, |_| true).unwrap();
        assert!(model.now() <= end);
    }
    assert_eq!(seen(&model), seen(&whole));
}

#[test]
fn places_that_do_not_fit_and_strangers_are_refused() {
    let cost = |_: StageId, _: Work<'_, u64>| Duration::ZERO;
    let refused = |places: Vec<Place>| StageModel::new(vec![Probe::sink()], places, cost).map(|_| ()).unwrap_err();
    assert_eq!(refused(Vec::new()), StageModelError::Places { places: 0, stages: 1 });
    assert_eq!(refused(vec![Place::Processor(1)]), StageModelError::Processor { processor: 1, stages: 1 });
    let mut model = StageModel::new(vec![Probe::Relay { to: 7 }], vec![Place::Processor(0)], cost).unwrap();
    assert_eq!(model.send(Instant::ZERO, StageId(1), 0), Err(StageModelError::NoSuchStage { from: "outside", to: 1 }));
    model.send(Instant::ZERO, StageId(0), 0).unwrap();
    assert_eq!(model.run(Instant::FAR_FUTURE, |_| true), Err(StageModelError::NoSuchStage { from: "probe", to: 7 }));
}
