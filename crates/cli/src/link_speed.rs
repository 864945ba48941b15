//! The bandwidth of an emulated link as it is written on the command line: one, or a trace of several.
//!
//! Called by [`crate::link`].
//!
//! Invariant: a speed that is read lets something pass.

use crate::quantity;
use segstream::Bandwidth;
use segstream_path::{PathConfig, RateTrace};
use std::fmt;

/// How fast a link is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Speed {
    /// Always the same: `10mbit`.
    Constant(Bandwidth),
    /// By time: `0s:10mbit,5s:5mbit`.
    Trace(RateTrace),
}

impl Speed {
    /// Reads a bandwidth, or a trace if there is an instant in it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.contains(':') {
            text.parse().map(Self::Trace).map_err(|error: segstream_path::SpecError| error.to_string())
        } else {
            quantity::bandwidth(text).map(Self::Constant)
        }
    }

    /// The highest it ever is.
    pub(crate) fn peak(&self) -> Bandwidth {
        match self {
            Self::Constant(bandwidth) => *bandwidth,
            Self::Trace(trace) => trace.peak(),
        }
    }

    /// `path` at this speed.
    pub(crate) fn of(&self, path: PathConfig) -> PathConfig {
        match self {
            Self::Constant(bandwidth) => PathConfig { bandwidth: Some(*bandwidth), ..path },
            Self::Trace(trace) => PathConfig { trace: trace.clone(), ..path },
        }
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant(bandwidth) => bandwidth.fmt(f),
            Self::Trace(trace) => trace.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bandwidth_and_a_trace_are_told_apart_and_what_is_neither_is_refused_with_its_text() {
        let megabits = Bandwidth::from_megabits_per_second;
        assert_eq!(Speed::parse("10mbit"), Ok(Speed::Constant(megabits(10))));
        let trace = Speed::parse("0s:10mbit,5s:20mbit,8s:5mbit").unwrap();
        assert_eq!((trace.peak(), trace.to_string().as_str()), (megabits(20), "0ns:10mbit,5s:20mbit,8s:5mbit"));
        assert!(!trace.of(PathConfig::default()).trace.is_none());
        for text in ["10", "0mbit", "0s:10", "5s:10mbit", "0s:10mbit,5s:0bit"] {
            assert!(Speed::parse(text).is_err(), "{text}");
        }
        assert!(Speed::parse("0s:10").unwrap_err().contains("\"10\""));
    }
}
