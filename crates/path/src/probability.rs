//! A probability, and the pieces of text that every specification is made of.
//!
//! Called by the parsers of loss, reordering and configuration, and by the impairments to decide.
//!
//! Invariant: a [`Probability`] lies in [0, 1] and is never NaN.

use crate::spec_error::SpecError;
use core::fmt;
use core::str::FromStr;
use segstream_base::Duration;
use segstream_base::random::Random;

/// A number from 0 to 1.
#[derive(Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Probability(f64);

impl Probability {
    /// Never.
    pub const ZERO: Self = Self(0.0);

    /// The probability `value`.
    ///
    /// # Errors
    /// [`SpecError::NotAProbability`] outside 0 to 1 and for NaN.
    pub fn new(value: f64) -> Result<Self, SpecError> {
        if (0.0..=1.0).contains(&value) {
            Ok(Self(value))
        } else {
            Err(SpecError::NotAProbability { what: "value", text: value.to_string() })
        }
    }

    /// The value, 0 to 1.
    pub const fn get(self) -> f64 {
        self.0
    }

    /// Whether it is 0.
    pub const fn is_zero(self) -> bool {
        self.0 == 0.0
    }

    /// Draws one number from `random` and tells whether the event happens.
    #[inline]
    pub(crate) fn happens(self, random: &mut Random) -> bool {
        random.chance(self.0)
    }

    /// The probability written as `text`, or an error that calls it `what`.
    pub(crate) fn parse(text: &str, what: &'static str) -> Result<Self, SpecError> {
        let refused = || SpecError::NotAProbability { what, text: text.to_owned() };
        let trimmed = text.trim();
        let (number, scale) = match trimmed.strip_suffix('%') {
            Some(percent) => (percent.trim_end(), 100.0),
            None => (trimmed, 1.0),
        };
        let value = number.parse::<f64>().map_err(|_| refused())? / scale;
        Self::new(value).map_err(|_| refused())
    }
}

/// Accepts `1e-3`, `0.001` and `0.1%`.
impl FromStr for Probability {
    type Err = SpecError;
    fn from_str(text: &str) -> Result<Self, SpecError> {
        Self::parse(text, "value")
    }
}

impl fmt::Display for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Debug for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The span written as `text`: a number and one of `ns`, `us`, `ms`, `s`.
pub(crate) fn parse_span(text: &str, what: &'static str) -> Result<Duration, SpecError> {
    let refused = || SpecError::NotASpan { what, text: text.to_owned() };
    let trimmed = text.trim();
    let (number, unit) = trimmed.split_at(trimmed.find(|c: char| c.is_alphabetic() && c != 'e').unwrap_or(trimmed.len()));
    let nanos: u64 = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return Err(refused()),
    };
    let number = number.trim_end();
    let value = number.parse::<f64>().map_err(|_| refused())? * nanos as f64;
    // Limit: spans end below a century, so that sums with any instant of a run stay meaningful.
    if !(0.0..=3e18).contains(&value) {
        return Err(refused());
    }
    Ok(Duration::from_nanos(digits_times(number, nanos).unwrap_or_else(|| nearest(value))))
}

/// `number` in units of `nanos`; `None` unless it is digits, with or without a point among them.
///
/// Why: a float cannot hold every nanosecond above 2^53 of them, but a span must be read back as it was printed.
fn digits_times(number: &str, nanos: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if !fraction.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let below_one: f64 = format!("0.{fraction}").parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(nanos)?.checked_add(nearest(below_one * nanos as f64))
}

/// The nearest whole number. Adding one half and cutting is exact enough below 2^52 and portable.
fn nearest(value: f64) -> u64 {
    (value + 0.5) as u64
}

/// The `key=value` pairs of `text` in the order of `keys`; `None` where a key is absent.
pub(crate) fn parse_pairs<'a, const N: usize>(
    text: &'a str,
    of: &'static str,
    keys: [&'static str; N],
    listed: &'static str,
) -> Result<[Option<&'a str>; N], SpecError> {
    let mut values = [None; N];
    for pair in text.split(',').filter(|pair| !pair.trim().is_empty()) {
        let unknown = || SpecError::UnknownKey { of, text: pair.trim().to_owned(), keys: listed };
        let (key, value) = pair.split_once('=').ok_or_else(unknown)?;
        let place = keys.iter().position(|known| *known == key.trim()).ok_or_else(unknown)?;
        if let (Some(slot), Some(key)) = (values.get_mut(place), keys.get(place))
            && slot.replace(value.trim()).is_some()
        {
            return Err(SpecError::RepeatedKey { of, key });
        }
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_percentages_mean_the_same() {
        assert_eq!("0.1%".parse::<Probability>(), Probability::new(0.001));
        assert_eq!("1e-3".parse::<Probability>(), Probability::new(0.001));
        assert_eq!(" 100 % ".parse::<Probability>(), Probability::new(1.0));
    }

    #[test]
    fn what_is_not_a_probability_is_refused_with_its_value() {
        for text in ["", "x", "-0.1", "1.5", "101%", "nan", "inf", "1%%", "0x1"] {
            let error = text.parse::<Probability>().expect_err(text);
            assert!(error.to_string().contains(&format!("\"{text}\"")), "{error}");
        }
    }

    #[test]
    fn spans_take_their_unit_and_nothing_else() {
        assert_eq!(parse_span("1620ms", "dwell"), Ok(Duration::from_millis(1620)));
        assert_eq!(parse_span("1.5s", "dwell"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse_span("1e3us", "dwell"), Ok(Duration::from_millis(1)));
        assert_eq!(parse_span("250 ns", "dwell"), Ok(Duration::from_nanos(250)));
        assert_eq!(parse_span(".5us", "dwell"), Ok(Duration::from_nanos(500)));
        assert_eq!(parse_span("1.5e3us", "dwell"), Ok(Duration::from_micros(1500)));
        for text in ["", "5", "ms", "-1ms", "1h", "1e30s", "nans", "1 000ms"] {
            let error = parse_span(text, "dwell").expect_err(text);
            assert!(error.to_string().contains(&format!("the dwell \"{text}\"")), "{error}");
        }
    }

    #[test]
    fn a_span_printed_is_the_span_read() {
        for nanos in [1, 999, 1_500, 1_620_000_000, 180_000_000, 60_000_000_001, 2_222_222_222_222_221_000, 2_999_999_999_999_999_999] {
            let span = Duration::from_nanos(nanos);
            assert_eq!(parse_span(&span.to_string(), "dwell"), Ok(span));
        }
    }
}
