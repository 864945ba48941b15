//! The results of the points of a study: found by curve and place, and written as the table that is compared.
//!
//! Made by [`crate::study`]; read by claims, pictures and tables.
//!
//! Invariant: a failed run is not found.

mod csv;

use crate::plan::Preset;
use crate::point::PointResult;
use crate::shared::SharedResult;
use crate::stages::StageOutcome;
use crate::tandem::TandemResult;

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

/// An experiment with its result.
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
    /// Seconds of one processor that the runs made here took; those on modelled processors are not timed.
    pub fn processor_s(&self) -> f64 {
        let points: f64 = self.points.iter().map(|point| point.result.wall_s).sum();
        let shared: f64 = self.shared.iter().map(|point| point.result.wall_s).sum();
        points + shared + self.tandem.iter().map(|point| point.result.wall_s).sum::<f64>()
    }

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
    /// own, with an empty line between two: shared ones with a row a flow, those on modelled processors, those over a tandem.
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
