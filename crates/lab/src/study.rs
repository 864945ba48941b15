//! A study: one figure or table of a paper as points to run, pictures to draw and claims to judge.
//!
//! Written in the `studies` folders; run here, all together, so that figures share the points they share.
//!
//! Invariant: pictures, tables and claims are made from measured points and closed forms alone.

use crate::claim::Claim;
use crate::figure::{ClaimLine, Figure, Section, TextTable};
use crate::plan::{Plan, Preset};
use crate::point::PointResult;
use crate::runner::{Runner, RunnerError};
use crate::scenario::Scenario;
use crate::shared::{PartyOutcome, SharedResult, SharedScenario};
use crate::stages::{StageOutcome, StageScenario};
use std::fmt::Write as _;

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
    /// The pictures.
    pub figures: fn(&Measured) -> Vec<Figure>,
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
        figures: |_| Vec::new(),
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

    /// Each point that did not end well: curve, place and trouble.
    pub fn troubles(&self) -> Vec<(&str, f64, &str)> {
        let points = troubled(&self.points, PointResult::trouble);
        points.chain(troubled(&self.shared, SharedResult::trouble)).chain(troubled(&self.stages, StageOutcome::trouble)).collect()
    }

    /// The table that is compared with the expected one: all columns, six digits. Shared points follow behind an empty line
    /// in a table of their own, a row a party, and so do those on modelled processors.
    pub fn csv(&self) -> String {
        let mut tables = Vec::new();
        if !self.points.is_empty() || (self.shared.is_empty() && self.stages.is_empty()) {
            tables.push(self.points_csv());
        }
        if !self.shared.is_empty() {
            tables.push(self.shared_csv());
        }
        if !self.stages.is_empty() {
            tables.push(self.stages_csv());
        }
        tables.join("\n")
    }

    fn stages_csv(&self) -> String {
        let mut csv = String::from(STAGES_CSV_HEAD);
        for point in &self.stages {
            let outcome = &point.result;
            let trouble = if outcome.trouble.is_some() { "trouble" } else { "" };
            // A write to a string cannot fail.
            let _ = writeln!(
                csv,
                "\"{}\",{},{},{},{},{trouble}",
                point.curve,
                point.x,
                digits(outcome.packets_per_second()),
                digits(outcome.busiest_share()),
                outcome.spurious
            );
        }
        csv
    }

    fn shared_csv(&self) -> String {
        let mut csv = String::from(SHARED_CSV_HEAD);
        for point in &self.shared {
            let result = &point.result;
            for party in &result.scenario.parties {
                let of = |value: fn(&PartyOutcome) -> f64| digits(result.of_party(&party.name, value).mean);
                let throughput = result.throughput_bps(&party.name);
                // A write to a string cannot fail.
                let _ = writeln!(
                    csv,
                    "\"{}\",{},\"{}\",{},{},{},{},{},{},{},{},{},{},{},{}",
                    point.curve,
                    point.x,
                    party.name,
                    digits(throughput.mean),
                    digits(throughput.half_width.unwrap_or(f64::NAN)),
                    digits(result.share(&party.name).mean),
                    of(PartyOutcome::goodput_bps),
                    of(PartyOutcome::loss_share),
                    of(|party| party.packets_marked as f64),
                    of(|party| party.delays.mean_ns as f64 * 1e-6),
                    of(|party| party.delays.p95_ns as f64 * 1e-6),
                    digits(result.queue_ms_mean().mean),
                    digits(result.queue_ms_p95().mean),
                    digits(result.over_replications(|outcome| outcome.queue.max_ns as f64 * 1e-6).mean),
                    if result.trouble().is_some() { "trouble" } else { "" },
                );
            }
        }
        csv
    }

    fn points_csv(&self) -> String {
        let mut csv = String::from(CSV_HEAD);
        for point in &self.points {
            let result = &point.result;
            let (efficiency, delay, max) = (result.throughput_efficiency(), result.delay_ms_mean(), result.delay_ms_max());
            // A write to a string cannot fail.
            let _ = writeln!(
                csv,
                "\"{}\",{},{},{},{},{},{},{},{},{},{},{}",
                point.curve,
                point.x,
                digits(efficiency.mean),
                digits(efficiency.half_width.unwrap_or(f64::NAN)),
                digits(delay.mean),
                digits(delay.half_width.unwrap_or(f64::NAN)),
                digits(max.value),
                result.total(|outcome| outcome.packets_sent),
                result.total(|outcome| outcome.packets_retransmitted),
                result.total(|outcome| outcome.feedback_packets),
                result.total(|outcome| outcome.segments_delivered),
                if result.trouble().is_some() { "trouble" } else { "" },
            );
        }
        csv
    }
}

const CSV_HEAD: &str = "curve,x,throughput_efficiency,throughput_efficiency_ci95,delay_ms_mean,delay_ms_mean_ci95,delay_ms_max,\
packets_sent,packets_retransmitted,feedback_packets,segments_delivered,trouble\n";

const SHARED_CSV_HEAD: &str = "curve,x,party,throughput_bps,throughput_bps_ci95,share,goodput_bps,loss_share,packets_marked,\
delay_ms_mean,delay_ms_p95,queue_ms_mean,queue_ms_p95,queue_ms_max,trouble\n";

const STAGES_CSV_HEAD: &str = "curve,x,packets_per_second,busiest_share,packets_spurious,trouble\n";

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
    let points: Vec<Vec<StudyPoint>> = studies.iter().map(|study| (study.points)()).collect();
    let of_study = |(study, points): (&&Study, &Vec<StudyPoint>)| {
        let plan = study.plan(preset);
        points.iter().map(|point| (point.scenario.clone(), plan)).collect::<Vec<(Scenario, Plan)>>()
    };
    let flat: Vec<(Scenario, Plan)> = studies.iter().zip(&points).flat_map(of_study).collect();
    let shared: Vec<Vec<SharedPoint>> = studies.iter().map(|study| (study.shared)()).collect();
    let replications = preset.shared_replications();
    let shared_flat: Vec<_> = shared.iter().flatten().map(|point| (point.scenario.clone(), replications)).collect();
    let (results, shared_results) = runner.run_with_shared(&flat, &shared_flat)?;
    let (mut results, mut shared_results) = (results.into_iter(), shared_results.into_iter());
    let mut finished = Vec::with_capacity(studies.len());
    for (study, (points, shared)) in studies.iter().zip(points.into_iter().zip(shared)) {
        let points = points.into_iter().zip(results.by_ref()).map(measured).collect();
        let shared = shared.into_iter().zip(shared_results.by_ref()).map(measured).collect();
        let measured = Measured { preset, points, shared, stages: measured_stages(study, runner)? };
        let section = section(study, &measured);
        finished.push(Finished { study, measured, section });
    }
    Ok(finished)
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
