//! The list of congestion controllers by name.
//!
//! Called where a user or a scenario chooses: the configuration of a rate, the command, the laboratory's cross traffic.
//! A new controller is its file, its line in [`super`], and its entry in [`ALGORITHMS`].
//!
//! Invariant: no two entries have one name.

use super::{Bounds, Controller, auto, bbr, bbr1, cubic, prague, reno};
use core::fmt;
use segstream_base::random::Seed;
use segstream_base::{Bandwidth, Duration, Instant};

/// All controllers.
pub const ALGORITHMS: &[&Algorithm] =
    &[&auto::ALGORITHM, &bbr::ALGORITHM, &cubic::ALGORITHM, &prague::ALGORITHM, &bbr1::ALGORITHM, &cubic::LINUX, &reno::ALGORITHM];

/// A congestion control algorithm: a name, and how a controller that runs it begins.
///
/// Two are equal when their names are. A user's own controller is an `Algorithm` too, and is given where one of the list would be.
#[derive(Clone, Copy)]
pub struct Algorithm {
    /// Its name, the same in configurations, on the command line, in studies and statistics.
    pub name: &'static str,
    /// A description of one line.
    pub about: &'static str,
    /// Whether users can choose it by its name; the others are for experiments.
    pub offered: bool,
    /// Which inputs drive it.
    pub clock: Clock,
    /// Whether it responds to CE marks, so that its packets may be ECN-capable: ECT(0) (RFC 3168), or ECT(1) if the controller is scalable
    /// ([`Controller::is_scalable`]).
    pub responds_to_ecn: bool,
    /// Begins a controller.
    pub start: fn(Start) -> Box<dyn Controller>,
}

/// Which inputs drive a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// State exchanges only: reports are not passed to it, which saves the sender the samples.
    Exchanges,
    /// Reports, as acknowledgments drive TCP's (ACK clocking); exchanges are passed to it too, where there are any.
    Reports,
}

/// The arguments of a new controller.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// The time.
    pub now: Instant,
    /// Its bounds.
    pub bounds: Bounds,
    /// The seed of its random numbers.
    pub seed: Seed,
    /// A rate that is known in advance, where start-up begins; `None` when nothing is known.
    pub initial: Option<Bandwidth>,
    /// The rate of the source, headers not included, where the application has said so; `None` when nothing is known.
    pub source: Option<Bandwidth>,
    /// What a time that hosts share, as the time of day, shows at [`Instant::ZERO`]; zero where none is known. Senders that drain a queue
    /// do it at the same moments of that time.
    pub epoch: Duration,
}

/// A name that no user can choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownAlgorithm(pub String);

impl Start {
    /// At `now`, where neither a rate nor a time that hosts share is known.
    pub const fn new(now: Instant, bounds: Bounds, seed: Seed) -> Self {
        Self { now, bounds, seed, initial: None, source: None, epoch: Duration::ZERO }
    }
}

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
        let offered = || ALGORITHMS.iter().filter(|algorithm| algorithm.offered);
        let last = offered().count().saturating_sub(1);
        for (at, algorithm) in offered().enumerate() {
            if at > 0 {
                f.write_str(if at == last { " or " } else { ", " })?;
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
        let message = Algorithm::offered("reno").expect_err("it is for laboratories").to_string();
        assert_eq!(message, "\"reno\" is not a congestion control that can be chosen; give auto, bbr, cubic or prague");
    }
}
