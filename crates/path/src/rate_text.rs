//! Bandwidths and sizes as a user writes them: `10mbit`, `1.5gbit/s`, `64KiB`.
//!
//! Called by the parsers of [`crate::RateTrace`] and [`crate::Policer`].
//!
//! Invariant: what is printed here is exact and is read back as the same value, unlike the rounded form for people that
//! [`Bandwidth`] and [`Bytes`] print themselves.

use crate::spec_error::SpecError;
use core::fmt;
use segstream_base::{Bandwidth, Bytes};

/// Largest first: the first that divides the number without a rest is printed.
const RATES: [(&str, u64); 4] = [("gbit", 1_000_000_000), ("mbit", 1_000_000), ("kbit", 1_000), ("bit", 1)];

/// A larger bandwidth or size is taken for a typing error.
const MOST: f64 = 1e15;

/// The bandwidth written as `text`: a number and one of `bit`, `kbit`, `mbit`, `gbit`, with or without `/s`; k is 1000.
pub(crate) fn parse_bandwidth(text: &str, what: &'static str) -> Result<Bandwidth, SpecError> {
    let refused = || SpecError::NotABandwidth { what, text: text.to_owned() };
    let (number, measure) = split(text).ok_or_else(refused)?;
    let measure = measure.to_ascii_lowercase();
    let measure = measure.strip_suffix("/s").unwrap_or(&measure);
    let scale = RATES.iter().find(|(name, _)| *name == measure).map(|(_, scale)| *scale).ok_or_else(refused)?;
    let bits = number * scale as f64;
    if bits > MOST || (bits > 0.0 && bits < 1.0) {
        return Err(refused());
    }
    Ok(Bandwidth::from_bits_per_second((bits + 0.5) as u64))
}

/// The size written as `text`: a number of bytes, or one with a unit ([`Bytes::UNITS`]).
pub(crate) fn parse_bytes(text: &str, what: &'static str) -> Result<Bytes, SpecError> {
    let refused = || SpecError::NotASize { what, text: text.to_owned() };
    let (number, measure) = split(text).ok_or_else(refused)?;
    let bytes = number * Bytes::of_unit(measure).ok_or_else(refused)?.get() as f64;
    if bytes > MOST || bytes.fract() != 0.0 { Err(refused()) } else { Ok(Bytes::new(bytes as u64)) }
}

/// A number, finite and not negative, and what is behind it.
fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let (number, measure) = text.split_at(text.find(|c: char| c.is_alphabetic() && c != 'e').unwrap_or(text.len()));
    let number: f64 = number.trim_end().parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some((number, measure.trim()))
}

/// Prints a bandwidth exactly.
pub(crate) struct Rate(pub(crate) Bandwidth);

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = self.0.bits_per_second();
        let (name, scale) = RATES.into_iter().find(|(_, scale)| bits != 0 && bits.is_multiple_of(*scale)).unwrap_or(("bit", 1));
        write!(f, "{}{name}", bits / scale)
    }
}

/// Prints a size exactly.
pub(crate) struct Size(pub(crate) Bytes);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0.get();
        let binary = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
        let (name, scale) = binary.into_iter().find(|(_, scale)| bytes != 0 && bytes.is_multiple_of(*scale)).unwrap_or(("", 1));
        write!(f, "{}{name}", bytes / scale)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_what_is_read() {
        for bits in [1, 999, 1_000, 1_500, 333_333_333, 10_000_000, 2_500_000_000, 4_000_000_000] {
            let rate = Bandwidth::from_bits_per_second(bits);
            assert_eq!(parse_bandwidth(&Rate(rate).to_string(), "rate"), Ok(rate));
        }
        for bytes in [0, 1, 1500, 1536, 65_536, 3 << 20, (1 << 30) + 1] {
            let size = Bytes::new(bytes);
            assert_eq!(parse_bytes(&Size(size).to_string(), "burst"), Ok(size));
        }
        assert_eq!(Rate(Bandwidth::from_megabits_per_second(10)).to_string(), "10mbit");
        assert_eq!(Size(Bytes::new(65_536)).to_string(), "64KiB");
    }

    #[test]
    fn what_is_no_quantity_is_refused_with_its_text() {
        assert_eq!(parse_bandwidth("1.5 Gbit/s", "rate"), Ok(Bandwidth::from_megabits_per_second(1500)));
        assert_eq!(parse_bandwidth("0bit", "rate"), Ok(Bandwidth::ZERO));
        assert_eq!(parse_bytes("1.5kB", "burst"), Ok(Bytes::new(1500)));
        for text in ["", "5", "mbit", "-1mbit", "1mbyte", "1e30gbit", "0.1bit", "nanbit"] {
            let sentence = parse_bandwidth(text, "rate").expect_err(text).to_string();
            assert!(sentence.contains(&format!("the rate \"{text}\"")), "{sentence}");
        }
        for text in ["", "KiB", "-1", "1.5", "1XB", "1e30", "infkb"] {
            let sentence = parse_bytes(text, "burst").expect_err(text).to_string();
            assert!(sentence.contains(&format!("the burst \"{text}\"")), "{sentence}");
        }
    }
}
