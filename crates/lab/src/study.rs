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
    /// The pictures.
    pub figures: fn(&Measured) -> Vec<Figure>,
    /// The tables.
    pub tables: fn(&Measured) -> Vec<TextTable>,
    /// The claims it bears on.
    pub claims: &'static [Claim],
    /// The table continuous integration compares: the quick preset with seed 1.
    pub expected: &'static str,
}

/// One point to run.
#[derive(Clone, Debug)]
pub struct StudyPoint {
    /// The curve it belongs to, unique in the study: `sstp-full 256,1,1`.
    pub curve: String,
    /// Where on the horizontal axis.
    pub x: f64,
    /// What is run.
    pub scenario: Scenario,
}

/// The points of a study with their results.
pub struct Measured {
    /// How long they were run.
    pub preset: Preset,
    /// Each with its curve and place, in the order of the study.
    pub points: Vec<MeasuredPoint>,
}

/// One point with its result.
pub struct MeasuredPoint {
    /// Its curve.
    pub curve: String,
    /// Its place.
    pub x: f64,
    /// Its result.
    pub result: PointResult,
}

impl Measured {
    /// The result at `x` of `curve`, when it was run and ended well.
    pub fn at(&self, curve: &str, x: f64) -> Option<&PointResult> {
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-9 * a.abs().max(b.abs());
        let point = self.points.iter().find(|point| point.curve == curve && near(point.x, x))?;
        point.result.trouble().is_none().then_some(&point.result)
    }

    /// The points of `curve` in the order of the study.
    pub fn curve(&self, curve: &str) -> impl Iterator<Item = &MeasuredPoint> {
        self.points.iter().filter(move |point| point.curve == curve)
    }

    /// The table that is compared with the expected one: all columns, six digits.
    pub fn csv(&self) -> String {
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
    let plan = preset.plan();
    let points: Vec<Vec<StudyPoint>> = studies.iter().map(|study| (study.points)()).collect();
    let flat: Vec<(Scenario, Plan)> = points.iter().flatten().map(|point| (point.scenario.clone(), plan)).collect();
    let mut results = runner.run(&flat)?.into_iter();
    let mut finished = Vec::with_capacity(studies.len());
    for (study, points) in studies.iter().zip(points) {
        let points = points
            .into_iter()
            .zip(results.by_ref())
            .map(|(point, result)| MeasuredPoint { curve: point.curve, x: point.x, result })
            .collect();
        let measured = Measured { preset, points };
        let section = section(study, &measured);
        finished.push(Finished { study, measured, section });
    }
    Ok(finished)
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
