//! A policer: a token bucket that drops what exceeds a rate.
//!
//! Called by [`crate::Path`] for each packet that is not lost before the bottleneck, in front of the queue.
//!
//! A token is 10^-9 bit, of which R bit/s bring R in a nanosecond: whole numbers all the way. A packet passes if the
//! bucket holds its bits, and takes them; one that does not pass takes none (RFC 2475 2.3.3.3 calls it policing).
//!
//! Invariant: nothing is delayed. In any span of time t at most `burst + rate x t` passes, and of packets that keep to
//! that none is dropped, exactly.

use crate::rate_text::{Rate, Size, parse_bandwidth, parse_bytes};
use crate::spec_error::SpecError;
use core::fmt;
use core::str::FromStr;
use segstream_base::{Bandwidth, Bytes, Duration, Instant};

/// A token bucket in front of the queue: `10mbit` or, with what the bucket holds, `10mbit,64KiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policer {
    /// The rate at which the bucket fills, whole packets counted; not zero.
    pub rate: Bandwidth,
    /// What the bucket holds, not zero; it starts full. A longer packet never passes.
    pub burst: Bytes,
}

impl Policer {
    /// A policer with a burst of what passes in 100 ms, and of at least ten packets of 1500 bytes.
    pub fn new(rate: Bandwidth) -> Self {
        Self { rate, burst: rate.bytes_in(Duration::from_millis(100)).max(Bytes::new(15_000)) }
    }

    /// Checks a policer that was built by hand; parsed ones have passed.
    ///
    /// # Errors
    /// A rate or a burst of zero.
    pub fn check(&self) -> Result<(), SpecError> {
        if self.rate.is_zero() || self.burst == Bytes::ZERO { Err(SpecError::PolicerPassesNothing(self.to_string())) } else { Ok(()) }
    }
}

impl FromStr for Policer {
    type Err = SpecError;
    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (rate, burst) = text.split_once(',').map_or((text, None), |(rate, burst)| (rate, Some(burst)));
        let policer = Self::new(parse_bandwidth(rate, "rate of a policer")?);
        let burst = burst.map_or(Ok(policer.burst), |burst| parse_bytes(burst, "burst of a policer"))?;
        let policer = Self { burst, ..policer };
        policer.check()?;
        Ok(policer)
    }
}

impl fmt::Display for Policer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", Rate(self.rate), Size(self.burst))
    }
}

/// The bucket of a running policer.
#[derive(Clone, Debug)]
pub(crate) struct TokenBucket {
    rate: u128,
    most: u128,
    tokens: u128,
    filled_at: Instant,
}

const TOKENS_A_BYTE: u128 = 8_000_000_000;

impl TokenBucket {
    /// A full bucket.
    ///
    /// # Errors
    /// As [`Policer::check`].
    pub(crate) fn new(policer: Policer) -> Result<Self, SpecError> {
        policer.check()?;
        let most = u128::from(policer.burst.get()) * TOKENS_A_BYTE;
        Ok(Self { rate: u128::from(policer.rate.bits_per_second()), most, tokens: most, filled_at: Instant::ZERO })
    }

    /// Whether a packet passes at `now`, which must not go backward.
    pub(crate) fn passes(&mut self, now: Instant, bytes: Bytes) -> bool {
        let came = self.rate * u128::from(now.since(self.filled_at).as_nanos());
        self.filled_at = now;
        self.tokens = self.most.min(self.tokens + came);
        let rest = self.tokens.checked_sub(u128::from(bytes.get()) * TOKENS_A_BYTE);
        self.tokens = rest.unwrap_or(self.tokens);
        rest.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bucket(text: &str) -> TokenBucket {
        TokenBucket::new(text.parse().unwrap()).unwrap()
    }

    #[test]
    fn a_full_bucket_passes_its_burst_and_then_a_packet_each_time_its_bits_have_come() {
        let mut bucket = bucket("8mbit,3000B");
        let passes = |bucket: &mut TokenBucket, micros: u64| bucket.passes(Instant::from_nanos(micros * 1000), Bytes::new(1000));
        assert_eq!([0; 4].map(|at| passes(&mut bucket, at)), [true, true, true, false]);
        assert_eq!([999, 1000, 1000, 2000].map(|at| passes(&mut bucket, at)), [false, true, false, true]);
        // However long it is silent, no more than the burst is saved.
        assert_eq!([9_000_000; 4].map(|at| passes(&mut bucket, at)), [true, true, true, false]);
        assert!(!bucket.passes(Instant::from_nanos(u64::MAX), Bytes::new(3001)));
    }

    #[test]
    fn in_the_long_run_exactly_the_rate_passes() {
        // 333,333,333 bit/s: no packet's tokens come in a whole number of nanoseconds.
        let mut bucket = bucket("333333333bit,10000B");
        let n = 1_000_000;
        let passed = (0..n).filter(|k| bucket.passes(Instant::from_nanos(k * 5_000), Bytes::new(1000))).count() as u128;
        let tokens = 10_000 * TOKENS_A_BYTE + 333_333_333 * u128::from((n - 1) * 5_000);
        assert_eq!(passed, tokens / (1000 * TOKENS_A_BYTE));
    }

    #[test]
    fn every_form_is_read_and_prints_as_what_it_is() {
        let ten = Bandwidth::from_megabits_per_second(10);
        assert_eq!("10mbit".parse(), Ok(Policer { rate: ten, burst: Bytes::new(125_000) }));
        assert_eq!("64kbit".parse(), Ok(Policer { rate: Bandwidth::from_bits_per_second(64_000), burst: Bytes::new(15_000) }));
        assert_eq!("10mbit, 64KiB".parse(), Ok(Policer { rate: ten, burst: Bytes::new(65_536) }));
        assert_eq!("10mbit,64KiB".parse::<Policer>().unwrap().to_string(), "10mbit,64KiB");
        for (text, value) in [("", "\"\""), ("10", "\"10\""), ("10mbit,x", "\"x\""), ("10mbit,0B", "10mbit,0"), ("0bit,5B", "0bit,5")] {
            let sentence = text.parse::<Policer>().expect_err(text).to_string();
            assert!(sentence.contains(value), "{text}: {sentence}");
        }
    }

    proptest! {
        #[test]
        fn between_any_two_packets_no_more_than_the_burst_and_the_rate_passes(
            rate in 1u64..1_000_000_000,
            burst in 1u64..20_000,
            packets in proptest::collection::vec((0u64..1_000_000, 0u64..3000), 1..100),
        ) {
            let policer = Policer { rate: Bandwidth::from_bits_per_second(rate), burst: Bytes::new(burst) };
            let mut bucket = TokenBucket::new(policer).unwrap();
            let mut now = 0;
            let mut passed: Vec<(u64, u64)> = Vec::new();
            for (gap, bytes) in packets {
                now += gap;
                // The most that could have been sent since any instant at which a packet passed, were this one to pass.
                let sum_since = |from: usize| passed[from..].iter().map(|(_, bytes)| u128::from(*bytes)).sum::<u128>() + u128::from(bytes);
                let allowed = |since: u64| u128::from(burst) * TOKENS_A_BYTE + u128::from(rate) * u128::from(now - since);
                let conforms = (0..=passed.len()).all(|from| {
                    let since = passed.get(from).map_or(now, |(at, _)| *at);
                    sum_since(from) * TOKENS_A_BYTE <= allowed(since)
                });
                prop_assert_eq!(bucket.passes(Instant::from_nanos(now), Bytes::new(bytes)), conforms);
                if conforms {
                    passed.push((now, bytes));
                }
            }
        }
    }
}
