//! A recorded link as a list of delivery opportunities, in the format of Mahimahi.
//!
//! Called by command lines and scenarios; `transmitter` runs it.
//!
//! Each line of the file is a time in milliseconds from the start at which up to 1500 bytes may leave; a millisecond with
//! several opportunities is repeated. At its last line the trace starts again: that time is its period.
//!
//! Source: Netravali et al., Mahimahi, USENIX ATC 2015, and `mm-link(1)`: an opportunity that finds nothing to send is
//! lost, several small packets may share one, and a packet that does not fit goes on in the next. What arrives at the
//! instant of an opportunity has missed it, as there.
//!
//! Invariant: at most [`OpportunityTrace::MOST`] opportunities are kept, however long the text is; times never go backward
//! and end above zero, so something passes at last.

use crate::spec_error::SpecError;
use core::fmt;
use core::str::FromStr;
use segstream_base::{Bandwidth, Duration, Instant};
use std::sync::Arc;

/// What one opportunity carries.
pub(crate) const OPPORTUNITY_BYTES: u64 = 1500;

/// When a link may send, as it was recorded.
///
/// As text: `none`, or the milliseconds with how often each comes, such as `0,4,7*2,9`.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct OpportunityTrace(Option<Arc<Runs>>);

#[derive(Debug, PartialEq, Eq)]
struct Runs {
    runs: Vec<Run>,
    /// Opportunities in a period.
    all: u64,
    period: Duration,
}

/// Opportunities of one millisecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    millis: u32,
    /// How many come up to here, these included.
    until: u32,
}

impl OpportunityTrace {
    /// No trace: the bandwidth of the configuration holds.
    pub const NONE: Self = Self(None);

    /// The most opportunities of a trace: 100 Mbit/s for a quarter of an hour. They take at most 64 MB.
    pub const MOST: usize = 8_000_000;

    /// The most bytes of a file that are worth reading: no trace within [`OpportunityTrace::MOST`] is longer.
    pub const TEXT_MOST: u64 = 12 * Self::MOST as u64;

    /// Whether there is no trace.
    pub const fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// Reads the text of a file in Mahimahi's format.
    ///
    /// # Errors
    /// Says what is wrong in which line.
    pub fn read(text: &str) -> Result<Self, SpecError> {
        let mut building = Building::default();
        for (number, line) in (1u64..).zip(text.lines()) {
            let line = line.trim_end();
            let millis = line.parse().map_err(|_| SpecError::NotAnOpportunity { number, text: shortened(line) })?;
            building.add(number, millis, 1)?;
        }
        building.finish()
    }

    /// The mean bandwidth; zero without a trace.
    pub fn mean(&self) -> Bandwidth {
        let Some(runs) = &self.0 else { return Bandwidth::ZERO };
        let bits = u128::from(runs.all) * u128::from(OPPORTUNITY_BYTES) * 8 * 1_000_000_000;
        let mean = bits.checked_div(u128::from(runs.period.as_nanos())).unwrap_or(0);
        Bandwidth::from_bits_per_second(u64::try_from(mean).unwrap_or(u64::MAX))
    }

    /// When a period ends and the next begins; zero without a trace.
    pub fn period(&self) -> Duration {
        self.0.as_ref().map_or(Duration::ZERO, |runs| runs.period)
    }

    /// When opportunity `number` comes, counted from 0 over all periods.
    pub(crate) fn instant(&self, number: u64) -> Instant {
        let Some(runs) = &self.0 else { return Instant::FAR_FUTURE };
        let (period, within) = (number / runs.all, number % runs.all);
        let place = runs.runs.partition_point(|run| u64::from(run.until) <= within);
        let millis = runs.runs.get(place).map_or(0, |run| u64::from(run.millis));
        Instant::ZERO + runs.period * period + Duration::from_millis(millis)
    }

    /// The first opportunity behind `now`.
    pub(crate) fn first_after(&self, now: Instant) -> u64 {
        let Some(runs) = &self.0 else { return 0 };
        let (period, within) = (now.as_nanos() / runs.period.as_nanos(), now.as_nanos() % runs.period.as_nanos());
        let place = runs.runs.partition_point(|run| u64::from(run.millis) * 1_000_000 <= within);
        let before = place.checked_sub(1).and_then(|last| runs.runs.get(last)).map_or(0, |run| u64::from(run.until));
        period.saturating_mul(runs.all).saturating_add(before)
    }
}

/// A trace that grows line by line.
#[derive(Default)]
struct Building {
    runs: Vec<Run>,
}

impl Building {
    fn add(&mut self, number: u64, millis: u32, count: u32) -> Result<(), SpecError> {
        let last = self.runs.last().copied();
        if let Some(last) = last.filter(|last| last.millis > millis) {
            return Err(SpecError::OpportunityOutOfOrder { number, millis, before: last.millis });
        }
        let until = last.map_or(0, |last| last.until).saturating_add(count);
        if until as usize > OpportunityTrace::MOST {
            return Err(SpecError::TooManyOpportunities { number, most: OpportunityTrace::MOST });
        }
        match self.runs.last_mut() {
            Some(run) if run.millis == millis => run.until = until,
            _ => self.runs.push(Run { millis, until }),
        }
        Ok(())
    }

    fn finish(mut self) -> Result<OpportunityTrace, SpecError> {
        let last = self.runs.last().copied().filter(|last| last.millis > 0).ok_or(SpecError::NoOpportunity)?;
        self.runs.shrink_to_fit();
        let period = Duration::from_millis(u64::from(last.millis));
        Ok(OpportunityTrace(Some(Arc::new(Runs { runs: self.runs, all: u64::from(last.until), period }))))
    }
}

/// The beginning of a line. Why: a file that is no trace may be one line of any length.
fn shortened(line: &str) -> String {
    line.chars().take(40).collect()
}

impl FromStr for OpportunityTrace {
    type Err = SpecError;
    fn from_str(text: &str) -> Result<Self, SpecError> {
        if text == "none" {
            return Ok(Self::NONE);
        }
        let mut building = Building::default();
        for (number, item) in (1u64..).zip(text.split(',')) {
            let refused = || SpecError::NotAnOpportunity { number, text: shortened(item) };
            let (millis, count) = item.split_once('*').unwrap_or((item, "1"));
            let count = count.parse().ok().filter(|count| *count > 0).ok_or_else(refused)?;
            building.add(number, millis.parse().map_err(|_| refused())?, count)?;
        }
        building.finish()
    }
}

impl fmt::Display for OpportunityTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(runs) = &self.0 else { return f.write_str("none") };
        let mut before = 0;
        for run in &runs.runs {
            let comma = if before > 0 { "," } else { "" };
            match run.until - before {
                1 => write!(f, "{comma}{}", run.millis)?,
                count => write!(f, "{comma}{}*{count}", run.millis)?,
            }
            before = run.until;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(trace: &OpportunityTrace, numbers: core::ops::Range<u64>) -> Vec<u64> {
        numbers.map(|number| trace.instant(number).as_nanos() / 1_000_000).collect()
    }

    #[test]
    fn a_file_is_read_line_by_line_and_wraps_at_its_last_time() {
        let trace = OpportunityTrace::read("0\n4\n7\n7\n10\n").unwrap();
        assert_eq!(trace.to_string(), "0,4,7*2,10");
        assert_eq!(trace.to_string().parse(), Ok(trace.clone()));
        assert_eq!(millis(&trace, 0..11), [0, 4, 7, 7, 10, 10, 14, 17, 17, 20, 20]);
        assert_eq!((trace.period(), trace.mean()), (Duration::from_millis(10), Bandwidth::from_megabits_per_second(6)));
        assert_eq!(OpportunityTrace::read("5\r\n9").unwrap(), "5,9".parse().unwrap());
        assert_eq!("none".parse(), Ok(OpportunityTrace::NONE));
    }

    #[test]
    fn what_arrives_at_an_opportunity_has_missed_it() {
        let trace: OpportunityTrace = "0,4,7*2,10".parse().unwrap();
        let first = |micros| trace.first_after(Instant::ZERO + Duration::from_micros(micros));
        assert_eq!([0, 1, 3_999, 4_000, 6_999, 7_000, 9_999].map(first), [1, 1, 1, 2, 2, 4, 4]);
        // The one at 10 ms and the first of the next period come in the same instant.
        assert_eq!([10_000, 13_999, 14_000, 1_000_000_000].map(first), [6, 6, 7, 100_000 * 5 + 1]);
        assert_eq!(trace.instant(u64::MAX), Instant::FAR_FUTURE);
        assert!(trace.instant(trace.first_after(Instant::from_nanos(u64::MAX))) >= Instant::from_nanos(u64::MAX - 10_000_000));
    }

    #[test]
    fn every_fault_of_a_file_is_a_sentence_with_line_and_value() {
        for (text, values) in [
            ("", ["no delivery opportunity", ""]),
            ("0\n0\n", ["no delivery opportunity", ""]),
            ("1\n\n2\n", ["line 2", "\"\""]),
            ("1\nx\n", ["line 2", "\"x\""]),
            ("1\n-2\n", ["line 2", "\"-2\""]),
            ("1\n2.5\n", ["line 2", "\"2.5\""]),
            ("1\n4294967296\n", ["line 2", "\"4294967296\""]),
            ("5\n7\n6\n", ["line 3", "6"]),
        ] {
            let sentence = OpportunityTrace::read(text).expect_err(text).to_string();
            assert!(values.iter().all(|value| sentence.contains(value)), "{text:?}: {sentence}");
            assert!(sentence.split(' ').count() > 5, "{text}: {sentence}");
        }
        let long = OpportunityTrace::read(&"y".repeat(100_000)).unwrap_err().to_string();
        assert!(long.len() < 300, "{long}");
        for text in ["1*0", "1*x", "*2", "1,,2", "2,1", "1*9000000", "1*8000000,2*4294967295"] {
            assert!(text.parse::<OpportunityTrace>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_file_that_is_too_long_is_refused_where_it_becomes_so() {
        let text = "1\n".repeat(OpportunityTrace::MOST + 1);
        let sentence = OpportunityTrace::read(&text).unwrap_err().to_string();
        assert!(sentence.contains("line 8000001"), "{sentence}");
        assert!(OpportunityTrace::read(&text[2..]).is_ok());
    }
}
