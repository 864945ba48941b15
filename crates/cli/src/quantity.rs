//! Quantities with their measures as they are written on the command line: `60ms`, `500mbit`, `1MiB`.
//!
//! Called by the parser of every verb.
//!
//! Invariant: a quantity that is read is the one that was meant: without its measure it is refused, except
//! for bytes, where a bare number can mean nothing else.

use segstream::Bandwidth;
use segstream_base::{Bytes, Duration};

/// Spans end below a century, so that sums with any instant stay meaningful.
const SPAN_NANOS_MAX: f64 = 3e18;

/// A span of time: `60ms`, `1.5s`, `200us`, `2min`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let refused = || format!("\"{text}\" is not a duration; write a number with a suffix (ns, us, ms, s, min or h), such as 60ms");
    let (number, measure) = split(text).ok_or_else(refused)?;
    let nanos = match measure {
        "ns" => 1.0,
        "us" | "µs" | "μs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "min" => 60e9,
        "h" => 3600e9,
        _ => return Err(refused()),
    };
    let value = number * nanos;
    if value <= SPAN_NANOS_MAX { Ok(Duration::from_nanos(value.round() as u64)) } else { Err(refused()) }
}

/// A span of time that is not zero.
pub(crate) fn positive_duration(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err(format!("the duration \"{text}\" is zero; give one above 0, such as 1s")),
        span => Ok(span),
    }
}

/// A bandwidth in bits per second: `500mbit`, `2.5gbit`, `64kbit/s`; k is 1000.
pub(crate) fn bandwidth(text: &str) -> Result<Bandwidth, String> {
    let refused = || format!("\"{text}\" is not a bandwidth; write a number with a suffix (bit, kbit, mbit or gbit), such as 500mbit");
    let (number, measure) = split(text).ok_or_else(refused)?;
    let measure = measure.to_ascii_lowercase();
    let bits = match measure.strip_suffix("/s").unwrap_or(&measure) {
        "bit" => 1.0,
        "kbit" => 1e3,
        "mbit" => 1e6,
        "gbit" => 1e9,
        _ => return Err(refused()),
    };
    let value = (number * bits).round();
    if value > 1e15 {
        return Err(refused());
    }
    if value < 1.0 {
        return Err(format!("the bandwidth \"{text}\" is zero; give one above 0, such as 500mbit"));
    }
    Ok(Bandwidth::from_bits_per_second(value as u64))
}

/// A size in bytes: `1200`, `64KiB`, `1MiB`, `200MB`.
pub(crate) fn bytes(text: &str) -> Result<Bytes, String> {
    let refused =
        || format!("\"{text}\" is not a size; write a number of bytes, or a number with a suffix ({}), such as 1MiB", Bytes::UNITS);
    let (number, measure) = split(text).ok_or_else(refused)?;
    let value = number * Bytes::of_unit(measure).ok_or_else(refused)?.get() as f64;
    if value.fract() != 0.0 || value > 1e18 { Err(refused()) } else { Ok(Bytes::new(value as u64)) }
}

/// A number of threads; 0 leaves it to the machine.
pub(crate) fn threads(text: &str) -> Result<usize, String> {
    // Why a bound: each thread costs the system memory, and more than there are processors gain nothing.
    const THREADS_MAX: usize = 1024;
    match text.parse() {
        Ok(threads) if threads <= THREADS_MAX => Ok(threads),
        _ => Err(format!("\"{text}\" is not a number of threads; give 1 to {THREADS_MAX}, or leave it out for one a processor")),
    }
}

/// A size that is not zero.
pub(crate) fn positive_bytes(text: &str) -> Result<Bytes, String> {
    match bytes(text)? {
        Bytes::ZERO => Err(format!("the size \"{text}\" is zero; give one above 0, such as 16MiB")),
        size => Ok(size),
    }
}

/// A number, not negative and finite, and the letters behind it.
fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let letters = text.char_indices().find(|&(at, letter)| letter.is_alphabetic() && !is_exponent(text, at));
    let (number, measure) = text.split_at(letters.map_or(text.len(), |(at, _)| at));
    let number: f64 = number.trim_end().parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some((number, measure.trim()))
}

/// Whether the letter at `at` is the `e` of a number such as `1e-3`.
fn is_exponent(text: &str, at: usize) -> bool {
    let next = text[at..].chars().nth(1);
    text[at..].starts_with(['e', 'E']) && at > 0 && next.is_some_and(|next| next.is_ascii_digit() || next == '-' || next == '+')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_take_their_measures() {
        assert_eq!(duration("60ms"), Ok(Duration::from_millis(60)));
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("1e-3 s"), Ok(Duration::from_millis(1)));
        assert_eq!(duration("2min"), Ok(Duration::from_secs(120)));
        assert_eq!(bandwidth("500mbit"), Ok(Bandwidth::from_megabits_per_second(500)));
        assert_eq!(bandwidth("2.5 Gbit/s"), Ok(Bandwidth::from_megabits_per_second(2500)));
        assert_eq!(bytes("1MiB"), Ok(Bytes::new(1 << 20)));
        assert_eq!(bytes("2TiB"), Ok(Bytes::new(2 << 40)));
        assert_eq!(bytes("1200"), Ok(Bytes::new(1200)));
        assert_eq!(bytes("1.5kB"), Ok(Bytes::new(1500)));
    }

    #[test]
    fn what_is_no_quantity_is_refused_with_its_text_and_what_to_write() {
        for text in ["", "60", "ms", "-1ms", "1 000ms", "1parsec", "nans", "infs", "1e30s"] {
            let sentence = duration(text).expect_err(text);
            assert!(sentence.contains(&format!("\"{text}\"")) && sentence.contains("write"), "{sentence}");
        }
        for text in ["", "500", "mbit", "-1mbit", "1mbyte", "1e30gbit", "0mbit", "0.1bit"] {
            assert!(bandwidth(text).expect_err(text).contains(&format!("\"{text}\"")));
        }
        for text in ["", "MiB", "-1", "1.5", "1XB", "1e30GB", "nan"] {
            assert!(bytes(text).expect_err(text).contains(&format!("\"{text}\"")));
        }
        assert!(positive_bytes("0MiB").is_err() && positive_duration("0s").is_err());
    }
}
