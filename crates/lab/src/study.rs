//! A study: one figure or table of a paper as points to run, pictures to draw and claims to judge.
//!
//! Written in the `studies` folders; run here, all together, so that figures share the points they share.
//!
//! Invariant: pictures, tables and claims are made from measured points and closed forms alone.

mod csv;

use crate::claim::Claim;
use crate::figure::{ClaimLine, Figure, Section, TextTable};
use crate::heat_map::HeatMap;
use crate::plan::{Plan, Preset};
use crate::point::PointResult;
use crate::runner::{Runner, RunnerError, Wanted};
use crate::scenario::Scenario;
use crate::shared::{SharedResult, SharedScenario};
use crate::stages::{StageOutcome, StageScenario};
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
    /// The points with several parties over one link.
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
        shared: Vec::new,
        stages: Vec::new,
        tandem: Vec::new,
        figures: |_| Vec::new(),
        heat_maps: |_| Vec::new(),
        tables: |_| Vec::new(),
        claims: &[],
        expected: "",
    };

    /// How long and how often its points are run.
    pub fn plan(&self, preset: Preset) -> Plan {
        let plan = preset.plan();
        Plan { packets: plan.packets / self.shortened.max(1), ..plan }
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

/// The points of a study with their results.
pub struct Measured {
    /// How long they were run.
    pub preset: Preset,
    /// Each with its curve and place, in the order of the study.
    pub points: Vec<MeasuredPoint>,
    /// The shared ones, each with its curve and place, in the order of the study.
    pub shared: Vec<MeasuredShared>,
    /// Those on modelled processors, each with its curve and place, in the order of the study.
    pub stages: Vec<MeasuredStages>,
    /// Those over a tandem, each with its curve and place, in the order of the study.
    pub tandem: Vec<MeasuredTandem>,
}

/// What was run, with what it gave.
pub struct MeasuredOf<R> {
    /// Its curve.
    pub curve: String,
    /// Its place.
    pub x: f64,
    /// Its result.
    pub result: R,
}

/// One point with its result.
pub type MeasuredPoint = MeasuredOf<PointResult>;
/// One shared scenario with its result.
pub type MeasuredShared = MeasuredOf<SharedResult>;
/// One experiment on modelled processors with its outcome; nothing in it is random, so there is one.
pub type MeasuredStages = MeasuredOf<StageOutcome>;
/// One point over a tandem with its result.
pub type MeasuredTandem = MeasuredOf<TandemResult>;

impl Measured {
    /// The result at `x` of `curve`, when it was run and ended well.
    pub fn at(&self, curve: &str, x: f64) -> Option<&PointResult> {
        found(&self.points, curve, x, PointResult::trouble)
    }

    /// The shared result at `x` of `curve`, when it was run and ended well.
    pub fn shared_at(&self, curve: &str, x: f64) -> Option<&SharedResult> {
        found(&self.shared, curve, x, SharedResult::trouble)
    }

    /// The outcome on modelled processors at `x` of `curve`, when it was run and ended well.
    pub fn stages_at(&self, curve: &str, x: f64) -> Option<&StageOutcome> {
        found(&self.stages, curve, x, StageOutcome::trouble)
    }

    /// The result over a tandem at `x` of `curve`, when it was run and ended well. It may be unstable.
    pub fn tandem_at(&self, curve: &str, x: f64) -> Option<&TandemResult> {
        found(&self.tandem, curve, x, TandemResult::trouble)
    }

    /// The points of `curve` in the order of the study.
    pub fn curve(&self, curve: &str) -> impl Iterator<Item = &MeasuredPoint> {
        of_curve(&self.points, curve)
    }

    /// The shared points of `curve` in the order of the study.
    pub fn shared_curve(&self, curve: &str) -> impl Iterator<Item = &MeasuredShared> {
        of_curve(&self.shared, curve)
    }

    /// The points on modelled processors of `curve` in the order of the study.
    pub fn stages_curve(&self, curve: &str) -> impl Iterator<Item = &MeasuredStages> {
        of_curve(&self.stages, curve)
    }

    /// The points over a tandem of `curve` in the order of the study.
    pub fn tandem_curve(&self, curve: &str) -> impl Iterator<Item = &MeasuredTandem> {
        of_curve(&self.tandem, curve)
    }

    /// Each point that did not end well: curve, place and trouble.
    pub fn troubles(&self) -> Vec<(&str, f64, &str)> {
        let points = troubled(&self.points, PointResult::trouble).chain(troubled(&self.shared, SharedResult::trouble));
        let others = troubled(&self.stages, StageOutcome::trouble).chain(troubled(&self.tandem, TandemResult::trouble));
        points.chain(others).collect()
    }

    /// The table that is compared with the expected one: all columns, six digits. Points of each kind have a table of their
    /// own, with an empty line between two: shared ones with a row a party, those on modelled processors, those over a tandem.
    pub fn csv(&self) -> String {
        let mut tables = Vec::new();
        let others = self.shared.len() + self.stages.len() + self.tandem.len();
        if !self.points.is_empty() || others == 0 {
            tables.push(self.points_csv());
        }
        if !self.shared.is_empty() {
            tables.push(self.shared_csv());
        }
        if !self.stages.is_empty() {
            tables.push(self.stages_csv());
        }
        if !self.tandem.is_empty() {
            tables.push(self.tandem_csv());
        }
        tables.join("\n")
    }
}

/// The result at `x` of `curve` among points of one kind, when it was run and ended well.
fn found<'a, R>(points: &'a [MeasuredOf<R>], curve: &str, x: f64, trouble: fn(&R) -> Option<&str>) -> Option<&'a R> {
    let point = points.iter().find(|point| point.curve == curve && near(point.x, x))?;
    trouble(&point.result).is_none().then_some(&point.result)
}

/// Those of `curve` among points of one kind.
fn of_curve<'a, R>(points: &'a [MeasuredOf<R>], curve: &str) -> impl Iterator<Item = &'a MeasuredOf<R>> {
    points.iter().filter(move |point| point.curve == curve)
}

/// Those that did not end well among points of one kind.
fn troubled<R>(points: &[MeasuredOf<R>], trouble: fn(&R) -> Option<&str>) -> impl Iterator<Item = (&str, f64, &str)> {
    points.iter().filter_map(move |point| Some((point.curve.as_str(), point.x, trouble(&point.result)?)))
}

/// Whether two places on an axis are the same.
fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

/// Six significant digits, without trailing zeros; nothing for what is not known.
pub fn digits(value: f64) -> String {
    if !value.is_finite() {
        return String::new();
    }
    let rounded: f64 = format!("{value:.5e}").parse().unwrap_or(value);
    rounded.to_string()
}

/// A study that was run.
pub struct Finished {
    /// The study's identifier.
    pub study: &'static Study,
    /// Its points.
    pub measured: Measured,
    /// What a report says about it.
    pub section: Section,
}

/// Runs the studies together and judges their claims; results come in the order of the studies.
pub fn run(studies: &[&'static Study], preset: Preset, runner: &Runner<'_>) -> Result<Vec<Finished>, RunnerError> {
    let asked: Vec<Points> = studies.iter().map(|study| Points::of(study)).collect();
    let results = runner.run_together(&wanted(studies, &asked, preset))?;
    let (mut points, mut shared, mut tandem) = (results.points.into_iter(), results.shared.into_iter(), results.tandem.into_iter());
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
        finished.push(Finished { study, measured, section });
    }
    Ok(finished)
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

/// What the points of all studies want to be run, each as long and as often as the preset has it.
fn wanted(studies: &[&'static Study], asked: &[Points], preset: Preset) -> Wanted {
    let (slots, tandem_replications) = preset.tandem();
    let mut wanted = Wanted::default();
    for (study, asked) in studies.iter().zip(asked) {
        let plan = study.plan(preset);
        wanted.points.extend(asked.points.iter().map(|point| (point.scenario.clone(), plan)));
        wanted.shared.extend(asked.shared.iter().map(|point| (point.scenario.clone(), preset.shared_replications())));
        wanted.tandem.extend(asked.tandem.iter().map(|point| (point.scenario.with_slots(slots), tandem_replications)));
    }
    wanted
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
        parameters: study.parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
    }
}

fn line(claim: &Claim, measured: &Measured) -> ClaimLine {
    let (verdict, found, explanation) = match (claim.check)(measured) {
        Some(finding) => (finding.judgement.to_string(), finding.measured, finding.explanation),
        None => ("not judged".to_owned(), String::new(), "a point it needs did not end well".to_owned()),
    };
    ClaimLine { id: claim.id.to_owned(), claim: claim.text.to_owned(), verdict, measured: found, explanation }
}
