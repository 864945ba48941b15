//! Bandwidth that changes over time, as a user writes it.
//!
//! Called by command lines, scenarios and configuration; `transmitter` runs it.
//!
//! ```text
//! none                                       the bandwidth of the configuration, always
//! 0s:10mbit,5s:5mbit,8s:10mbit               from these instants on; the last holds forever
//! 0s:10mbit,5s:5mbit,8s:10mbit,repeat=20s    and again from the start every 20 s
//! 0s:10mbit,5s:0bit,6s:10mbit                an outage of a second: nothing leaves, the queue fills
//! ```
//!
//! Instants count from the start of the run. Every change is known ahead, so the departure of a packet is known when it
//! arrives.
//!
//! Invariant: a trace that can be built covers all time, lets something pass at last, and what it prints parses to itself.

use crate::probability::parse_span;
use crate::rate_text::{Rate, parse_bandwidth};
use crate::spec_error::SpecError;
use core::fmt;
use core::str::FromStr;
use segstream_base::{Bandwidth, Bytes, Duration, Instant};

/// The work a link does: bits times 10^9, so that at R bit/s a nanosecond does R of it. Whole numbers all the way.
pub(crate) type Work = u128;

/// The work of sending `bytes`.
pub(crate) fn work(bytes: Bytes) -> Work {
    Work::from(bytes.get()) * 8_000_000_000
}

/// A bandwidth that is piecewise constant over time, repeating or not.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct RateTrace {
    pieces: Vec<Piece>,
    repeat: Option<Duration>,
}

/// From `start` on, counted from the start of the run or of the period, the bandwidth is `rate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) start: Duration,
    pub(crate) rate: Bandwidth,
}

impl RateTrace {
    /// No trace: the bandwidth does not change.
    pub const NONE: Self = Self { pieces: Vec::new(), repeat: None };

    /// The bandwidths `pieces` from their instants on, the first of which is zero; with `repeat`, the period, again and
    /// again. A bandwidth of zero is an outage. No pieces are [`RateTrace::NONE`].
    ///
    /// # Errors
    /// Pieces out of order, a period that ends before the last begins, or nothing that ever passes.
    pub fn new(pieces: &[(Duration, Bandwidth)], repeat: Option<Duration>) -> Result<Self, SpecError> {
        let Some(((first, _), (last, last_rate))) = pieces.first().zip(pieces.last()) else {
            return if repeat.is_none() { Ok(Self::NONE) } else { Err(SpecError::EmptyTrace) };
        };
        if !first.is_zero() {
            return Err(SpecError::TraceStartsLate(*first));
        }
        if let Some(((_, _), (after, _))) = pieces.iter().zip(pieces.iter().skip(1)).find(|(before, after)| before.0 >= after.0) {
            return Err(SpecError::TraceOutOfOrder(*after));
        }
        if let Some(period) = repeat.filter(|period| period <= last) {
            return Err(SpecError::TraceRepeatsEarly { period, last: *last });
        }
        let closed = if repeat.is_some() { pieces.iter().all(|(_, rate)| rate.is_zero()) } else { last_rate.is_zero() };
        if closed {
            return Err(SpecError::TraceEndsClosed);
        }
        Ok(Self { pieces: pieces.iter().map(|(start, rate)| Piece { start: *start, rate: *rate }).collect(), repeat })
    }

    /// Reads a trace such as `0s:10mbit,5s:5mbit,8s:10mbit,repeat=20s`, or `none`.
    ///
    /// # Errors
    /// Says what is wrong with which value.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        if text.trim() == "none" {
            return Ok(Self::NONE);
        }
        let (mut pieces, mut repeat) = (Vec::new(), None);
        for item in text.split(',').map(str::trim) {
            if let Some(period) = item.strip_prefix("repeat=") {
                if repeat.replace(parse_span(period, "period of a trace")?).is_some() {
                    return Err(SpecError::RepeatedKey { of: "a trace", key: "repeat" });
                }
                continue;
            }
            let (start, rate) = item.split_once(':').ok_or_else(|| SpecError::NotATrace(text.to_owned()))?;
            pieces.push((parse_span(start, "instant of a trace")?, parse_bandwidth(rate, "bandwidth of a trace")?));
        }
        if pieces.is_empty() { Err(SpecError::EmptyTrace) } else { Self::new(&pieces, repeat) }
    }

    /// Whether there is no trace.
    pub const fn is_none(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The greatest bandwidth there ever is; zero without a trace.
    pub fn peak(&self) -> Bandwidth {
        self.pieces.iter().map(|piece| piece.rate).max().unwrap_or(Bandwidth::ZERO)
    }

    /// The bandwidth at `at`; zero without a trace.
    pub fn rate_at(&self, at: Instant) -> Bandwidth {
        self.piece(self.place(at)).rate
    }

    /// What a link that is never idle sends from `from` to `to`, rounded down to the byte; zero without a trace.
    pub fn bytes_between(&self, from: Instant, to: Instant) -> Bytes {
        let work = self.work_until(to).saturating_sub(self.work_until(from));
        Bytes::new(u64::try_from(work / 8_000_000_000).unwrap_or(u64::MAX))
    }

    /// The period and the work done in each.
    pub(crate) fn period(&self) -> Option<(Duration, Work)> {
        let period = self.repeat?;
        Some((period, self.work_in_first(period)))
    }

    /// The period and the piece in force at `at`, both counted from zero.
    pub(crate) fn place(&self, at: Instant) -> (u64, usize) {
        let at = at.as_nanos();
        let (period, within) = self.repeat.map_or((0, at), |repeat| (at / repeat.as_nanos(), at % repeat.as_nanos()));
        let after = self.pieces.partition_point(|piece| piece.start.as_nanos() <= within);
        (period, after.saturating_sub(1))
    }

    /// The piece at a place.
    pub(crate) fn piece(&self, (_, place): (u64, usize)) -> Piece {
        self.pieces.get(place).copied().unwrap_or(Piece { start: Duration::ZERO, rate: Bandwidth::ZERO })
    }

    /// The place behind another and when it begins; `None` when the bandwidth does not change any more.
    pub(crate) fn next(&self, (period, place): (u64, usize)) -> Option<((u64, usize), Instant)> {
        let base = self.repeat.unwrap_or_default() * period;
        match (self.pieces.get(place + 1), self.repeat) {
            (Some(piece), _) => Some(((period, place + 1), Instant::ZERO + base + piece.start)),
            (None, Some(repeat)) => Some(((period.saturating_add(1), 0), Instant::ZERO + base + repeat)),
            (None, None) => None,
        }
    }

    fn work_until(&self, at: Instant) -> Work {
        let at = Duration::from_nanos(at.as_nanos());
        match self.repeat {
            None => self.work_in_first(at),
            Some(repeat) => {
                let (periods, rest) = (at.as_nanos() / repeat.as_nanos(), at.as_nanos() % repeat.as_nanos());
                Work::from(periods).saturating_mul(self.work_in_first(repeat)) + self.work_in_first(Duration::from_nanos(rest))
            }
        }
    }

    /// The work from the start to `end`, without repetition.
    fn work_in_first(&self, end: Duration) -> Work {
        let ends = self.pieces.iter().skip(1).map(|piece| piece.start).chain([Duration::MAX]);
        let span = |piece: &Piece, until: Duration| until.min(end).saturating_sub(piece.start).as_nanos();
        self.pieces.iter().zip(ends).map(|(piece, until)| Work::from(piece.rate.bits_per_second()) * Work::from(span(piece, until))).sum()
    }
}

impl FromStr for RateTrace {
    type Err = SpecError;
    fn from_str(text: &str) -> Result<Self, SpecError> {
        Self::parse(text)
    }
}

impl fmt::Display for RateTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_none() {
            return f.write_str("none");
        }
        for (place, piece) in self.pieces.iter().enumerate() {
            let comma = if place > 0 { "," } else { "" };
            write!(f, "{comma}{}:{}", piece.start, Rate(piece.rate))?;
        }
        self.repeat.map_or(Ok(()), |repeat| write!(f, ",repeat={repeat}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(text: &str) -> RateTrace {
        RateTrace::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn every_form_is_read_and_prints_as_what_it_is() {
        let (ten, five) = (Bandwidth::from_megabits_per_second(10), Bandwidth::from_megabits_per_second(5));
        let pieces = [(Duration::ZERO, ten), (Duration::from_secs(5), five), (Duration::from_secs(8), ten)];
        assert_eq!(Ok(trace("0s:10mbit,5s:5mbit,8s:10mbit")), RateTrace::new(&pieces, None));
        assert_eq!(Ok(trace("0ns:10Mbit/s, 5s:5mbit, 8s:10mbit, repeat=20s")), RateTrace::new(&pieces, Some(Duration::from_secs(20))));
        for text in ["none", "0ns:10mbit", "0ns:10mbit,5s:0bit,8.5s:333333333bit", "0ns:0bit,1ms:1500kbit,repeat=2.5s"] {
            assert_eq!(trace(text).to_string(), text);
            assert_eq!(trace(&trace(text).to_string()), trace(text));
        }
    }

    #[test]
    fn every_parse_error_is_a_sentence_with_the_value() {
        for (text, value) in [
            ("", "\"\""),
            ("10mbit", "\"10mbit\""),
            ("1s:10mbit", "1s"),
            ("0s:10", "\"10\""),
            ("0:10mbit", "\"0\""),
            ("0s:10mbit,5s:5mbit,5s:6mbit", "5s"),
            ("0s:10mbit,5s:5mbit,repeat=5s", "5s"),
            ("0s:10mbit,repeat=20s,repeat=30s", "repeat twice"),
            ("0s:10mbit,5s:0bit", "last"),
            ("0s:0bit,5s:0bit,repeat=6s", "last"),
            ("repeat=6s", "no bandwidth"),
        ] {
            let sentence = RateTrace::parse(text).expect_err(text).to_string();
            assert!(sentence.contains(value), "{text}: {sentence}");
            assert!(sentence.split(' ').count() > 5, "{text}: {sentence}");
        }
    }

    #[test]
    fn the_rate_at_an_instant_is_that_of_its_piece_and_the_bytes_are_their_integral() {
        let trace = trace("0s:10mbit,5s:5mbit,8s:10mbit,repeat=20s");
        let at = |secs| Instant::ZERO + Duration::from_secs(secs);
        let megabits = [(0, 10), (4, 10), (5, 5), (7, 5), (8, 10), (19, 10), (20, 10), (25, 5), (20_000_005, 5)];
        for (secs, megabits) in megabits {
            assert_eq!(trace.rate_at(at(secs)), Bandwidth::from_megabits_per_second(megabits), "{secs} s");
        }
        // 10 x 5 + 5 x 3 + 10 x 12 = 185 Mbit in each period.
        assert_eq!(trace.bytes_between(at(0), at(20)), Bytes::new(185_000_000 / 8));
        assert_eq!(trace.bytes_between(at(4), at(26)), Bytes::new((185_000_000 - 40_000_000 + 55_000_000) / 8));
        assert_eq!(trace.bytes_between(at(6), at(6)), Bytes::ZERO);
        assert_eq!(trace.peak(), Bandwidth::from_megabits_per_second(10));
    }
}
