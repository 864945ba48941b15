//! Statistics while a transfer runs: a line of JSON a period (`--stats`).
//!
//! Called by `send` and `recv` as time passes. The lines go to standard error, because standard output carries
//! data or the result.
//!
//! Invariant: a line is one object with every field of the library's statistics.

use crate::json;
use anyhow::Result;
use segstream::Statistics;
use segstream_base::{Duration, Instant};
use serde::Serialize;

/// The lines of one connection.
#[derive(Debug)]
pub(crate) struct LiveStatistics {
    period: Option<Duration>,
    start: Instant,
    next: Instant,
}

#[derive(Serialize)]
struct Line<'a> {
    /// Where the other end is, which tells the lines of several connections apart.
    address: Option<&'a str>,
    /// The time of day, in milliseconds since 1970.
    unix_ms: f64,
    /// Since the transfer began.
    seconds: f64,
    /// Application bytes delivered so far.
    bytes: u64,
    #[serde(flatten)]
    statistics: &'a Statistics,
}

impl LiveStatistics {
    /// A line every `period` from `now` on; none without a period.
    pub(crate) fn new(period: Option<Duration>, now: Instant) -> Self {
        Self { period, start: now, next: period.map_or(Instant::FAR_FUTURE, |period| now + period) }
    }

    /// When the next line is due.
    pub(crate) const fn next(&self) -> Instant {
        self.next
    }

    /// Prints a line if one is due.
    pub(crate) fn tell(&mut self, now: Instant, address: Option<&str>, bytes: u64, statistics: &Statistics) -> Result<()> {
        let Some(period) = self.period.filter(|_| now >= self.next) else { return Ok(()) };
        while self.next <= now {
            self.next += period;
        }
        json::print_to_standard_error(&Line {
            address,
            unix_ms: json::unix_ms(),
            seconds: now.since(self.start).as_secs_f64(),
            bytes,
            statistics,
        })
    }
}
