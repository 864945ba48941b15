//! The list of congestion controllers by name.
//!
//! Called by whoever lets a user or a scenario choose: the configuration of a rate, the command, the laboratory's cross traffic.
//! A new controller is its file, its line in [`super`], and its entry in [`ALGORITHMS`].
//!
//! Invariant: no two entries have one name.

use super::{Bounds, Controller, auto, bbr, cubic, reno};
use core::fmt;
use segstream_base::Instant;
use segstream_base::random::Seed;

/// All controllers there are.
pub const ALGORITHMS: &[&Algorithm] = &[&auto::ALGORITHM, &bbr::ALGORITHM, &cubic::ALGORITHM, &reno::ALGORITHM];

/// A congestion control algorithm: a name, and how a controller that runs it begins.
///
/// Two are equal when their names are. Whoever brings their own makes one and hands it on where one of the list would stand.
#[derive(Clone, Copy)]
pub struct Algorithm {
    /// Its name, the same in configurations, on the command line, in studies and statistics.
    pub name: &'static str,
    /// What it does, in a line.
    pub about: &'static str,
    /// Whether users can choose it by its name; the others are for laboratories.
    pub offered: bool,
    /// What it must be told of to work.
    pub clock: Clock,
    /// Whether it heeds marks (RFC 3168), so that its packets may carry ECT(0).
    pub heeds_marks: bool,
    /// Begins a controller.
    pub start: fn(Start) -> Box<dyn Controller>,
}

/// What moves a controller on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// State exchanges alone: it is never told of reports, which saves the sender the samples.
    Exchanges,
    /// Reports, as acknowledgments move TCP's; it is told of exchanges too where there are any.
    Reports,
}

/// What a controller begins with.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// The time.
    pub now: Instant,
    /// What bounds it.
    pub bounds: Bounds,
    /// What it may draw random numbers from.
    pub seed: Seed,
}

/// A name that no user can choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownAlgorithm(pub String);

impl Algorithm {
    /// The algorithm of the list with this name, offered or not.
    pub fn named(name: &str) -> Option<&'static Self> {
        ALGORITHMS.iter().copied().find(|algorithm| algorithm.name == name)
    }

    /// The algorithm with this name that users can choose.
    ///
    /// # Errors
    /// When there is none; the sentence says which there are.
    pub fn offered(name: &str) -> Result<&'static Self, UnknownAlgorithm> {
        Self::named(name).filter(|algorithm| algorithm.offered).ok_or_else(|| UnknownAlgorithm(name.to_owned()))
    }
}

impl PartialEq for Algorithm {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Algorithm {}

impl fmt::Debug for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl fmt::Display for UnknownAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\" is not a congestion control that can be chosen; give ", self.0)?;
        let offered = ALGORITHMS.iter().filter(|algorithm| algorithm.offered);
        for (at, algorithm) in offered.enumerate() {
            if at > 0 {
                f.write_str(" or ")?;
            }
            f.write_str(algorithm.name)?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownAlgorithm {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_a_refusal_says_which_exist() {
        let names: BTreeSet<&str> = ALGORITHMS.iter().map(|algorithm| algorithm.name).collect();
        assert_eq!(names.len(), ALGORITHMS.len());
        assert_eq!(Algorithm::offered("auto"), Ok(&auto::ALGORITHM));
        let told = Algorithm::offered("reno").expect_err("it is for laboratories").to_string();
        assert_eq!(told, "\"reno\" is not a congestion control that can be chosen; give auto");
    }
}
