//! Where the flagship stands beside a paper's scheme, point by point: ahead, level or behind.
//!
//! Made by the studies from the points of a figure; counted and listed by the command line.
//!
//! Invariant: the limits stand here and are the same for every figure.

use crate::figure::digits;
use serde::Serialize;

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Quality {
    /// More is better; within half a per cent is level.
    Throughput,
    /// Less is better; within 5 % is level.
    Delay,
    /// Packets of feedback: less is better; within 5 % is level.
    Feedback,
}

impl Quality {
    /// All of them, in the order of the tables.
    pub const ALL: [Self; 3] = [Self::Throughput, Self::Delay, Self::Feedback];

    /// Its name in a table.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Delay => "delay",
            Self::Feedback => "feedback",
        }
    }

    /// By what share two values may differ and be level.
    const fn level(self) -> f64 {
        match self {
            Self::Throughput => 0.005,
            Self::Delay | Self::Feedback => 0.05,
        }
    }
}

/// Where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Place {
    /// Better by more than what is level.
    Ahead,
    /// As good.
    Level,
    /// Worse by more than that.
    Behind,
}

/// One point of a figure at which both stand.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Standing {
    /// Whom it is compared with.
    pub with: String,
    /// What is compared.
    pub quality: Quality,
    /// The curve, in words: `B = 4`.
    pub curve: String,
    /// Where on the horizontal axis.
    pub x: f64,
    /// The flagship's value.
    pub ours: f64,
    /// The other's.
    pub theirs: f64,
}

impl Standing {
    /// How much better the flagship is, as a share of the other; below zero where it is worse.
    pub fn better_by(&self) -> f64 {
        match self.quality {
            Quality::Throughput => self.ours / self.theirs - 1.0,
            Quality::Delay | Quality::Feedback => 1.0 - self.ours / self.theirs,
        }
    }

    /// Where it stands.
    pub fn place(&self) -> Place {
        let level = self.quality.level();
        match self.better_by() {
            // An infinite delay of both, or nothing of both.
            equal if equal.is_nan() => Place::Level,
            better if better > level => Place::Ahead,
            better if better < -level => Place::Behind,
            _ => Place::Level,
        }
    }

    /// The point in a few words, with both values.
    pub fn told(&self) -> String {
        let curve = if self.curve.is_empty() { String::new() } else { format!("{}, ", self.curve) };
        format!("{curve}{}: {} against {}", digits(self.x), short(self.ours), short(self.theirs))
    }
}

/// Four digits of a value.
fn short(value: f64) -> String {
    match value.abs() {
        large if large >= 1000.0 => format!("{value:.0}"),
        large if large >= 100.0 => format!("{value:.1}"),
        large if large >= 10.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(quality: Quality, ours: f64, theirs: f64) -> Place {
        Standing { with: String::new(), quality, curve: String::new(), x: 0.0, ours, theirs }.place()
    }

    #[test]
    fn the_limits_are_half_a_per_cent_of_throughput_and_five_of_delay_and_feedback() {
        assert_eq!(
            [0.994, 0.996, 1.004, 1.006].map(|ours| at(Quality::Throughput, ours, 1.0)),
            [Place::Behind, Place::Level, Place::Level, Place::Ahead]
        );
        for quality in [Quality::Delay, Quality::Feedback] {
            let places = [94.0, 96.0, 104.0, 106.0].map(|ours| at(quality, ours, 100.0));
            assert_eq!(places, [Place::Ahead, Place::Level, Place::Level, Place::Behind]);
        }
    }

    #[test]
    fn a_point_without_a_steady_state_is_behind_one_that_has_it() {
        assert_eq!(at(Quality::Delay, f64::INFINITY, 20.0), Place::Behind);
        assert_eq!(at(Quality::Delay, 20.0, f64::INFINITY), Place::Ahead);
        assert_eq!(at(Quality::Delay, f64::INFINITY, f64::INFINITY), Place::Level);
        assert_eq!(at(Quality::Feedback, 0.0, 0.0), Place::Level);
    }
}
