//! Runs halves over a tandem with one seed.
//!
//! Called by [`crate::runner`] through [`crate::experiment::Experiment`].
//!
//! Invariant: what draws is the tandem alone, from streams that do not depend on the halves.

use super::outcome::TandemOutcome;
use super::scenario::{TandemScenario, TandemScenarioError};
use segstream_base::Instant;
use segstream_base::halves::{Receiver, Sender};
use segstream_base::random::Seed;
use segstream_schemes::xtp;
use segstream_sim::tandem::{Tandem, TandemConfig};

/// Runs `scenario` with the random streams of `seed`. Returns what it gave, and the seconds of wall time it took.
///
/// # Errors
/// Says what is invalid.
pub fn run(scenario: &TandemScenario, seed: Seed) -> Result<(TandemOutcome, f64), TandemScenarioError> {
    scenario.check()?;
    if let Some(config) = scenario.xtp_config() {
        let (sender, receiver) = (xtp::Sender::new(config.clone(), Instant::ZERO)?, xtp::Receiver::new(config, Instant::ZERO)?);
        return drive(sender, receiver, &scenario.tandem, seed);
    }
    let (sender, receiver) = scenario.segstream_pair()?;
    drive(sender, receiver, &scenario.tandem, seed)
}

fn drive<S, R>(sender: S, receiver: R, config: &TandemConfig, seed: Seed) -> Result<(TandemOutcome, f64), TandemScenarioError>
where
    S: Sender,
    R: Receiver<Forward = S::Forward, Feedback = S::Feedback>,
{
    let mut tandem = Tandem::new(sender, receiver, config, seed)?;
    let began = std::time::Instant::now();
    let outcome = match tandem.run() {
        Ok(outcome) => TandemOutcome::from(outcome),
        Err(error) => TandemOutcome { trouble: Some(error.to_string()), ..TandemOutcome::default() },
    };
    Ok((outcome, began.elapsed().as_secs_f64()))
}
