//! The pair of halves of a scenario.
//!
//! Called by whatever runs a scenario.
//!
//! Invariant: halves are made only of a scenario that was checked, and only with what the scheme can be told.

use super::{Scenario, ScenarioError};
use crate::registry;
use segstream_base::Instant;
use segstream_base::halves::{Receiver, Sender};
use segstream_schemes::sstp::FeedbackMode;
use segstream_schemes::transport::{Takes, Transport};

/// Takes pairs of halves of whatever types.
pub trait Visitor {
    /// What comes of it.
    type Output;
    /// Makes as many pairs as it needs, of one scenario or of several of the same scheme, and works with them.
    ///
    /// # Errors
    /// Says what cannot be made or run.
    fn visit<S, R>(self, make: impl Fn(&Scenario) -> Result<(S, R), ScenarioError>) -> Result<Self::Output, ScenarioError>
    where
        S: Sender + 'static,
        R: Receiver<Forward = S::Forward, Feedback = S::Feedback> + 'static;
}

/// Lends `visitor` what makes halves of the scenario's scheme, at the origin of time: of this scenario, and of any
/// other that asks for the same scheme.
///
/// # Errors
/// Those of the visitor, and what cannot be run.
pub fn visit<V: Visitor>(scenario: &Scenario, visitor: V) -> Result<V::Output, ScenarioError> {
    check(scenario)?;
    scenario.scheme.visit(OfScheme(visitor))
}

/// Makes a pair only to hear whether it can be made: what [`Scenario::check`] asks, and what the scheme does.
///
/// # Errors
/// Says what is invalid.
pub fn check_pair(scenario: &Scenario) -> Result<(), ScenarioError> {
    check(scenario)?;
    scenario.scheme.visit(Try(scenario))
}

/// The application bytes of one segment: the payload of its packets.
pub fn segment_bytes(scenario: &Scenario) -> u64 {
    struct Payload<'a>(&'a Scenario);
    impl registry::Visitor for Payload<'_> {
        type Output = u32;

        fn visit<T: Transport>(self, settings: &T) -> u32 {
            settings.payload_bytes(&self.0.transfer())
        }
    }
    u64::from(scenario.scheme.visit(Payload(scenario))) * u64::from(scenario.workload.segment_packets)
}

struct OfScheme<V>(V);

impl<V: Visitor> registry::Visitor for OfScheme<V> {
    type Output = Result<V::Output, ScenarioError>;

    fn visit<T: Transport>(self, _settings: &T) -> Self::Output {
        self.0.visit(|scenario: &Scenario| {
            check(scenario)?;
            let other = || ScenarioError::OtherScheme { asked: scenario.scheme.key(), here: T::KEY };
            pair(scenario, scenario.scheme.settings_of::<T>().ok_or_else(other)?)
        })
    }
}

struct Try<'a>(&'a Scenario);

impl registry::Visitor for Try<'_> {
    type Output = Result<(), ScenarioError>;

    fn visit<T: Transport>(self, settings: &T) -> Self::Output {
        pair(self.0, settings).map(|_| ())
    }
}

fn pair<T: Transport>(scenario: &Scenario, settings: &T) -> Result<(T::Sender, T::Receiver), ScenarioError> {
    settings.halves(&scenario.transfer(), Instant::ZERO).map_err(|error| ScenarioError::Scheme(error.to_string()))
}

/// Whether halves of its scheme can be made of the scenario.
fn check(scenario: &Scenario) -> Result<(), ScenarioError> {
    scenario.check()?;
    let (scheme, workload) = (scenario.scheme.scheme(), &scenario.workload);
    if workload.segment_packets > scheme.segment_packets_max {
        let (found, max) = (workload.segment_packets, scheme.segment_packets_max);
        return Err(ScenarioError::LongSegments { found, max, scheme: scheme.key });
    }
    check_taken(scenario, scheme)
}

/// Refuses what the scheme cannot be told of the black box and the workload.
fn check_taken(scenario: &Scenario, scheme: &registry::Scheme) -> Result<(), ScenarioError> {
    let (black_box, workload) = (&scenario.black_box, &scenario.workload);
    let default = super::BlackBox::default();
    let asked = [
        (Takes::IdealFeedback, "feedback ideal", black_box.feedback == FeedbackMode::Ideal),
        (Takes::PartialTolerance, "tolerance other than reliable or any", workload.tolerance.is_partial()),
        (Takes::Buffer, "buffer", workload.buffer_segments() != workload.window),
        (Takes::Bursts, "burst", workload.bursts.is_some()),
        (Takes::Slowdown, "slowdown", workload.slowdown.is_some()),
        (Takes::SenderCosts, "service-us", black_box.service != default.service),
        (Takes::SenderCosts, "search-us", black_box.search_cost != default.search_cost),
        (Takes::SenderCosts, "timer-us", black_box.timer_cost != default.timer_cost),
    ];
    match asked.iter().find(|(takes, _, asked)| *asked && !scheme.takes.contains(takes)) {
        Some((_, setting, _)) => Err(ScenarioError::NotApplicable { setting, scheme: scheme.key }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::SCHEMES;
    use segstream_schemes::{sscop, sstp};

    #[test]
    fn every_scheme_makes_halves_of_its_default_scenario() {
        for scheme in SCHEMES {
            check_pair(&Scenario::of(scheme)).unwrap_or_else(|error| panic!("{}: {error}", scheme.key));
        }
        let long = Scenario { scheme: sscop::Settings::default().into(), ..Scenario::default() };
        assert!(check_pair(&long).unwrap_err().to_string().contains("segments of 256 packets are not possible with sscop"));
    }

    #[test]
    fn what_a_scheme_cannot_be_told_is_refused() {
        let segstream = Scenario { scheme: SCHEMES[0].config(), ..Scenario::default() };
        let scenario = segstream.clone().with(|it| it.black_box.feedback = FeedbackMode::Ideal);
        struct Nothing;
        impl Visitor for Nothing {
            type Output = ();
            fn visit<S, R>(self, make: impl Fn(&Scenario) -> Result<(S, R), ScenarioError>) -> Result<(), ScenarioError>
            where
                S: Sender,
                R: Receiver<Forward = S::Forward, Feedback = S::Feedback>,
            {
                make(&Scenario { scheme: sstp::Settings::default().into(), ..Scenario::default() }).map(|_| ())
            }
        }
        let message = visit(&scenario, Nothing).unwrap_err().to_string();
        assert_eq!(message, "segstream does not use --feedback ideal; leave it out");
        let message = visit(&segstream, Nothing).unwrap_err().to_string();
        assert!(message.contains("\"sstp\" is asked for, but it is segstream here"), "{message}");
    }
}
