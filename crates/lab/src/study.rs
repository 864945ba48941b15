//! A study: one figure or table of a paper as points to run, pictures to draw and claims to judge.
//!
//! Written in the `studies` folders; run here, all together, so that figures share the points they share.
//!
//! Invariant: pictures, tables and claims are made from measured points and closed forms alone.

use crate::claim::Claim;
use crate::figure::{Figure, TextTable};
use crate::heat_map::HeatMap;
use crate::measured::{Measured, MeasuredOf, MeasuredStages};
use crate::plan::{Plan, Preset, TandemPlan};
use crate::report::{ClaimLine, Section};
use crate::runner::{Runner, RunnerError};
use crate::scenario::Scenario;
use crate::shard::{Dealer, Shard};
use crate::shared::SharedScenario;
use crate::stages::StageScenario;
use crate::standing::Standing;
use crate::tandem::{TandemResult, TandemScenario};

/// One figure or table of a paper.
pub struct Study {
    /// `ec/fig11`; also its folder.
    pub id: &'static str,
    /// Its title.
    pub title: &'static str,
    /// Where the text stands: paper, section, figure.
    pub source: &'static str,
    /// What was run and what is seen, in a few sentences.
    pub summary: &'static str,
    /// Parameters beside those of the scenarios: what the paper states and what was chosen.
    pub parameters: &'static [(&'static str, &'static str)],
    /// The points.
    pub points: fn() -> Vec<StudyPoint>,
    /// By how many times its runs are shorter than the preset's: 1 but where packets take long.
    pub shortened: u64,
    /// Whether its points are run at their whole length whatever a trial says. For what a mean does not settle: largest delays, and what
    /// stays as it is once it has happened.
    pub at_whole_length: bool,
    /// The points with several flows over one link.
    pub shared: fn() -> Vec<SharedPoint>,
    /// The points on modelled processors.
    pub stages: fn() -> Vec<StagePoint>,
    /// The points over a tandem of queues. Their length is the preset's.
    pub tandem: fn() -> Vec<TandemPoint>,
    /// The pictures.
    pub figures: fn(&Measured) -> Vec<Figure>,
    /// The pictures of what depends on two parameters at once.
    pub heat_maps: fn(&Measured) -> Vec<HeatMap>,
    /// The tables.
    pub tables: fn(&Measured) -> Vec<TextTable>,
    /// The claims it bears on.
    pub claims: &'static [Claim],
    /// Where the flagship stands beside the paper's scheme, at every point at which both are.
    pub standings: fn(&Measured) -> Vec<Standing>,
    /// The table continuous integration compares: the quick preset with seed 1.
    pub expected: &'static str,
}

impl Study {
    /// A study of nothing: for `..Study::NONE` behind what a study has.
    pub const NONE: Self = Self {
        id: "",
        title: "",
        source: "",
        summary: "",
        parameters: &[],
        points: Vec::new,
        shortened: 1,
        at_whole_length: false,
        shared: Vec::new,
        stages: Vec::new,
        tandem: Vec::new,
        figures: |_| Vec::new(),
        heat_maps: |_| Vec::new(),
        tables: |_| Vec::new(),
        claims: &[],
        standings: |_| Vec::new(),
        expected: "",
    };

    /// How long and how often its points are run.
    pub fn plan(&self, preset: Preset) -> Plan {
        let plan = preset.plan().shortened(self.shortened);
        Plan { trial: plan.trial.filter(|_| !self.at_whole_length), ..plan }
    }
}

/// What is run, and where it stands.
#[derive(Clone, Debug)]
pub struct PointOf<E> {
    /// The curve it belongs to, unique among those of its kind in the study: `sstp-full 256,1,1`.
    pub curve: String,
    /// Where on the horizontal axis.
    pub x: f64,
    /// What is run.
    pub scenario: E,
}

/// One point to run.
pub type StudyPoint = PointOf<Scenario>;
/// One shared scenario to run.
pub type SharedPoint = PointOf<SharedScenario>;
/// One experiment on modelled processors.
pub type StagePoint = PointOf<StageScenario>;
/// One point over a tandem of queues.
pub type TandemPoint = PointOf<TandemScenario>;

/// A study that was run.
pub struct Finished {
    /// The study's identifier.
    pub study: &'static Study,
    /// Its points.
    pub measured: Measured,
    /// What a report says about it.
    pub section: Section,
    /// Seconds of one processor that the runs made here took; runs that other studies share count in each, stored ones in none.
    pub processor_s: f64,
}

/// Runs the studies together and judges their claims; results come in the order of the studies.
pub fn run(studies: &[&'static Study], preset: Preset, runner: &Runner<'_>) -> Result<Vec<Finished>, RunnerError> {
    let asked: Vec<Points> = studies.iter().map(|study| Points::of(study)).collect();
    let job = Job::of(studies, &asked, preset);
    let (points, shared, tandem) = runner
        .sweep(|sweep| Ok((sweep.points(&job.points)?, sweep.repeated(&job.shared)?, sweep.until(&job.tandem, tandem_runs_wanted)?)))?;
    let (mut points, mut shared, mut tandem) = (points.into_iter(), shared.into_iter(), tandem.into_iter());
    let mut finished = Vec::with_capacity(studies.len());
    for (study, asked) in studies.iter().zip(asked) {
        let measured = Measured {
            preset,
            points: asked.points.into_iter().zip(points.by_ref()).map(measured).collect(),
            shared: asked.shared.into_iter().zip(shared.by_ref()).map(measured).collect(),
            stages: measured_stages(study, runner)?,
            tandem: asked.tandem.into_iter().zip(tandem.by_ref()).map(measured).collect(),
        };
        let section = section(study, &measured);
        let processor_s = measured.processor_s();
        finished.push(Finished { study, measured, section, processor_s });
    }
    Ok(finished)
}

/// Runs one shard's part of what [`run`] would run, into the runner's store. Returns how many experiments it has, of how many.
///
/// # Errors
/// As [`run`].
pub fn run_shard(studies: &[&'static Study], preset: Preset, runner: &Runner<'_>, shard: Shard) -> Result<(usize, usize), RunnerError> {
    let asked: Vec<Points> = studies.iter().map(|study| Points::of(study)).collect();
    let whole = Job::of(studies, &asked, preset);
    let mut stages: Vec<StageScenario> = studies.iter().flat_map(|study| (study.stages)()).map(|point| point.scenario).collect();
    let of = whole.len() + stages.len();
    let mut dealer = Dealer::new(shard);
    let job = whole.part(&mut dealer);
    stages.retain(|scenario| dealer.is_ours(format!("stages {}", scenario.canonical())));
    runner.sweep(|sweep| {
        sweep.points(&job.points)?;
        sweep.repeated(&job.shared)?;
        sweep.until(&job.tandem, tandem_runs_wanted).map(|_| ())
    })?;
    stages.iter().try_for_each(|scenario| runner.run_once(scenario).map(|_| ()))?;
    Ok((job.len() + stages.len(), of))
}

/// The points of a study that are run together with those of others.
struct Points {
    points: Vec<StudyPoint>,
    shared: Vec<SharedPoint>,
    tandem: Vec<TandemPoint>,
}

impl Points {
    fn of(study: &Study) -> Self {
        Self { points: (study.points)(), shared: (study.shared)(), tandem: (study.tandem)() }
    }
}

/// The points of all studies, each as long and as often as the preset has it.
#[derive(Default)]
struct Job {
    points: Vec<(Scenario, Plan)>,
    shared: Vec<(SharedScenario, u32)>,
    tandem: Vec<(TandemScenario, TandemPlan)>,
}

impl Job {
    fn of(studies: &[&'static Study], asked: &[Points], preset: Preset) -> Self {
        let tandem = preset.tandem();
        let mut job = Self::default();
        for (study, asked) in studies.iter().zip(asked) {
            let plan = study.plan(preset);
            job.points.extend(asked.points.iter().map(|point| (point.scenario.clone(), plan)));
            job.shared.extend(asked.shared.iter().map(|point| (point.scenario.clone(), preset.shared_replications())));
            job.tandem.extend(asked.tandem.iter().map(|point| (point.scenario.with_slots(tandem.slots), tandem)));
        }
        job
    }

    fn len(&self) -> usize {
        self.points.len() + self.shared.len() + self.tandem.len()
    }

    /// What of it a dealer gives to its shard.
    fn part(mut self, dealer: &mut Dealer) -> Self {
        self.points.retain(|(scenario, plan)| dealer.is_ours(format!("{} {plan:?}", scenario.canonical())));
        self.shared.retain(|(scenario, times)| dealer.is_ours(format!("shared {} {times}", scenario.canonical())));
        self.tandem.retain(|(scenario, plan)| dealer.is_ours(format!("tandem {} {plan:?}", scenario.canonical())));
        self
    }
}

/// How many more runs a point over a tandem wants.
fn tandem_runs_wanted(plan: TandemPlan, made: &TandemResult) -> u32 {
    plan.runs_wanted(made.outcomes.len() as u32, (!made.is_unstable()).then(|| made.delay_slots_mean()))
}

/// The study's points on modelled processors, run.
fn measured_stages(study: &Study, runner: &Runner<'_>) -> Result<Vec<MeasuredStages>, RunnerError> {
    let run = |point: StagePoint| runner.run_once(&point.scenario).map(|outcome| measured((point, outcome)));
    (study.stages)().into_iter().map(run).collect()
}

/// A point with its result.
fn measured<E, R>((point, result): (PointOf<E>, R)) -> MeasuredOf<R> {
    MeasuredOf { curve: point.curve, x: point.x, result }
}

fn section(study: &Study, measured: &Measured) -> Section {
    Section {
        id: study.id.to_owned(),
        title: study.title.to_owned(),
        source: study.source.to_owned(),
        summary: study.summary.to_owned(),
        figures: (study.figures)(measured),
        heat_maps: (study.heat_maps)(measured),
        tables: (study.tables)(measured),
        claims: study.claims.iter().map(|claim| line(claim, measured)).collect(),
        standings: (study.standings)(measured),
        parameters: study.parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
    }
}

fn line(claim: &Claim, measured: &Measured) -> ClaimLine {
    let (verdict, found, explanation) = match (claim.check)(measured) {
        Some(finding) => (finding.judgement().to_string(), finding.measured, finding.explanation),
        None => ("not judged".to_owned(), String::new(), "a point it needs did not end well".to_owned()),
    };
    ClaimLine { id: claim.id.to_owned(), claim: claim.text.to_owned(), verdict, measured: found, explanation }
}
