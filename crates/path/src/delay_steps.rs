//! A delay that changes at given times, as when a route changes.
//!
//! Called by command lines and configuration; [`crate::delay`] runs it. Written `none` or `0s:20ms,10s:60ms`: the delay one
//! way from these instants on, counted from the start of the run.
//!
//! Invariant: steps that can be built begin at zero and are in order.

use crate::probability::parse_span;
use crate::spec_error::SpecError;
use core::fmt;
use core::str::FromStr;
use segstream_base::{Duration, Instant};

/// The delay from each of its instants on.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct DelaySteps(Vec<(Duration, Duration)>);

impl DelaySteps {
    /// The delay of the configuration, always.
    pub const NONE: Self = Self(Vec::new());

    /// The delays `steps`, each from its instant on; the first instant is zero. None are [`DelaySteps::NONE`].
    ///
    /// # Errors
    /// Steps out of order, or nothing said of the beginning.
    pub fn new(steps: Vec<(Duration, Duration)>) -> Result<Self, SpecError> {
        if let Some((first, _)) = steps.first().filter(|(first, _)| !first.is_zero()) {
            return Err(SpecError::DelayStartsLate(*first));
        }
        match steps.iter().zip(steps.iter().skip(1)).find(|(before, after)| before.0 >= after.0) {
            Some((_, (after, _))) => Err(SpecError::DelayOutOfOrder(*after)),
            None => Ok(Self(steps)),
        }
    }

    /// Whether the delay does not change.
    pub const fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    /// The delay at `at`; `None` without steps.
    pub fn at(&self, at: Instant) -> Option<Duration> {
        let after = self.0.partition_point(|(from, _)| from.as_nanos() <= at.as_nanos());
        self.0.get(after.checked_sub(1)?).map(|(_, delay)| *delay)
    }

    /// The shortest; `None` without steps.
    pub fn least(&self) -> Option<Duration> {
        self.0.iter().map(|(_, delay)| *delay).min()
    }

    /// The longest; `None` without steps.
    pub fn most(&self) -> Option<Duration> {
        self.0.iter().map(|(_, delay)| *delay).max()
    }
}

impl FromStr for DelaySteps {
    type Err = SpecError;
    fn from_str(text: &str) -> Result<Self, SpecError> {
        if text.trim() == "none" {
            return Ok(Self::NONE);
        }
        let step = |item: &str| {
            let (from, delay) = item.split_once(':').ok_or_else(|| SpecError::NotDelaySteps(text.to_owned()))?;
            Ok((parse_span(from, "instant of a delay")?, parse_span(delay, "delay")?))
        };
        Self::new(text.split(',').map(step).collect::<Result<_, _>>()?)
    }
}

impl fmt::Display for DelaySteps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_none() {
            return f.write_str("none");
        }
        for (place, (from, delay)) in self.0.iter().enumerate() {
            let comma = if place > 0 { "," } else { "" };
            write!(f, "{comma}{from}:{delay}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_at_an_instant_is_that_of_its_step() {
        let steps: DelaySteps = "0s:20ms, 10s:60ms,12.5s:5ms".parse().unwrap();
        assert_eq!(steps.to_string(), "0ns:20ms,10s:60ms,12.5s:5ms");
        assert_eq!(steps.to_string().parse(), Ok(steps.clone()));
        let at = |millis| steps.at(Instant::ZERO + Duration::from_millis(millis)).map(Duration::as_millis);
        assert_eq!([0, 9_999, 10_000, 12_499, 12_500, 1 << 40].map(at), [20, 20, 60, 60, 5, 5].map(Some));
        assert_eq!((steps.least(), steps.most()), (Some(Duration::from_millis(5)), Some(Duration::from_millis(60))));
        assert_eq!(("none".parse(), DelaySteps::NONE.at(Instant::ZERO)), (Ok(DelaySteps::NONE), None));
    }

    #[test]
    fn every_parse_error_is_a_sentence_with_the_value() {
        for (text, value) in [
            ("", "\"\""),
            ("20ms", "\"20ms\""),
            ("1s:20ms", "1s"),
            ("0s:20", "\"20\""),
            ("0:20ms", "\"0\""),
            ("0s:20ms,5s:10ms,5s:20ms", "5s"),
        ] {
            let sentence = text.parse::<DelaySteps>().expect_err(text).to_string();
            assert!(sentence.contains(value), "{text}: {sentence}");
            assert!(sentence.split(' ').count() > 5, "{text}: {sentence}");
        }
    }
}
