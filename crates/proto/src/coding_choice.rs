//! What a connection does with repair units, as users choose it: `off`, `hedged` or `auto:latency=80ms,budget=10%`.
//!
//! The endpoint's configuration has one, and so has the scenario of a simulation. Invariant: what is printed reads back as it was.

use crate::sender::CodingTarget;
use core::fmt;
use core::str::FromStr;
use segstream_base::Duration;

/// What a connection does with repair units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Coding {
    /// Neither end sends any: what is asked for is sent again.
    Off,
    /// What is asked for is answered by repair units, with more than was asked for where much is lost. The default.
    #[default]
    Hedged,
    /// The same, and repair units are sent ahead where a round of retransmission would miss the latency.
    Auto(CodingTarget),
}

/// Why a text is no choice.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no coding; give off, hedged, or auto:latency=80ms,budget=10% with a latency in us, ms or s and a budget of 0 to 100 %")]
pub struct ParseCodingError(String);

impl Coding {
    /// Whether repair units may be used at all.
    pub const fn is_on(self) -> bool {
        !matches!(self, Self::Off)
    }

    /// What is coded ahead.
    pub const fn target(self) -> Option<CodingTarget> {
        match self {
            Self::Auto(target) => Some(target),
            _ => None,
        }
    }
}

impl fmt::Display for Coding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::Hedged => f.write_str("hedged"),
            Self::Auto(CodingTarget { latency, budget_permille }) => {
                write!(f, "auto:latency={}us,budget={}", latency.as_micros(), *budget_permille / 10)?;
                if budget_permille % 10 > 0 {
                    write!(f, ".{}", budget_permille % 10)?;
                }
                f.write_str("%")
            }
        }
    }
}

impl FromStr for Coding {
    type Err = ParseCodingError;

    fn from_str(text: &str) -> Result<Self, ParseCodingError> {
        let wrong = || ParseCodingError(text.to_owned());
        match text {
            "off" => return Ok(Self::Off),
            "hedged" => return Ok(Self::Hedged),
            _ => {}
        }
        let (mut latency, mut budget) = (None, None);
        for field in text.strip_prefix("auto:").ok_or_else(wrong)?.split(',') {
            match field.split_once('=').ok_or_else(wrong)? {
                ("latency", value) if latency.is_none() => latency = Some(duration(value).ok_or_else(wrong)?),
                ("budget", value) if budget.is_none() => budget = Some(permille(value).ok_or_else(wrong)?),
                _ => return Err(wrong()),
            }
        }
        let latency = latency.ok_or_else(wrong)?;
        Ok(Self::Auto(CodingTarget { latency, budget_permille: budget.unwrap_or(CodingTarget::BUDGET_PERMILLE) }))
    }
}

/// A time such as `80ms`, `1.5s` or `500us`, up to an hour.
fn duration(text: &str) -> Option<Duration> {
    let (number, scale) =
        [("us", 1e-6), ("ms", 1e-3), ("s", 1.0)].into_iter().find_map(|(suffix, scale)| Some((text.strip_suffix(suffix)?, scale)))?;
    let seconds = number.parse::<f64>().ok()? * scale;
    (seconds > 0.0 && seconds <= 3600.0).then(|| Duration::from_micros((seconds * 1e6 + 0.5) as u64))
}

/// A share such as `10%` or `2.5%`, in thousandths.
fn permille(text: &str) -> Option<u16> {
    let percent = text.strip_suffix('%')?.parse::<f64>().ok()?;
    (0.0..=100.0).contains(&percent).then_some((percent * 10.0 + 0.5) as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_reads_back() {
        for (text, printed) in [
            ("off", "off"),
            ("hedged", "hedged"),
            ("auto:latency=80ms,budget=10%", "auto:latency=80000us,budget=10%"),
            ("auto:budget=2.5%,latency=1.5s", "auto:latency=1500000us,budget=2.5%"),
            ("auto:latency=500us", "auto:latency=500us,budget=10%"),
        ] {
            let coding: Coding = text.parse().unwrap();
            assert_eq!(coding.to_string(), printed);
            assert_eq!(printed.parse(), Ok(coding));
        }
    }

    #[test]
    fn nonsense_is_refused_with_what_to_give() {
        for text in [
            "",
            "on",
            "auto",
            "auto:",
            "auto:budget=10%",
            "auto:latency=80",
            "auto:latency=0ms",
            "auto:latency=80ms,budget=101%",
            "auto:latency=1ms,latency=2ms",
            "auto:latency=nans",
            "auto:latency=80ms,budget=-1%",
        ] {
            let error = text.parse::<Coding>().unwrap_err();
            assert!(error.to_string().contains("latency"), "{text}: {error}");
        }
    }
}
