//! Segments that are due at fixed times: what their first bytes say, and what is known of those that have arrived.
//!
//! Called by [`crate::byte_stream`] and [`crate::quic`]. The programs in the folder `c` do the same.
//!
//! ```text
//! bytes 0..8    when it was due, in ns of CLOCK_MONOTONIC    little endian
//! bytes 8..16   its number, from 0
//! ```
//!
//! Invariant: delays count from when a segment was due, so that a sender which is late is late.

use crate::options::Options;
use crate::outcome::{Meter, Outcome, now_ns};
use anyhow::Result;
use std::time::{Duration, Instant};

/// How long segments that were due are waited for.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of a segment that are taken for its head.
pub(crate) const HEAD_BYTES: usize = 16;

/// When segments are due.
#[derive(Debug)]
pub(crate) struct Schedule {
    began: Instant,
    began_ns: u64,
    interval: Duration,
}

impl Schedule {
    /// Begins now.
    pub(crate) fn start(options: &Options) -> Result<Self> {
        Ok(Self { began: Instant::now(), began_ns: now_ns()?, interval: options.interval()? })
    }

    /// When segment `number` is due.
    pub(crate) fn due(&self, number: u64) -> Instant {
        self.began + self.after(number)
    }

    /// Writes its head into a segment.
    pub(crate) fn stamp(&self, number: u64, segment: &mut [u8]) {
        let due_ns = self.began_ns + self.after(number).as_nanos() as u64;
        segment[..8].copy_from_slice(&due_ns.to_le_bytes());
        segment[8..HEAD_BYTES].copy_from_slice(&number.to_le_bytes());
    }

    fn after(&self, number: u64) -> Duration {
        Duration::from_nanos((self.interval.as_nanos() as u64).saturating_mul(number))
    }
}

/// What has arrived.
#[derive(Debug)]
pub(crate) struct Arrivals {
    warm_up: u64,
    count: u64,
    interval: Duration,
    bytes: u64,
    complete: u64,
    delays_ms: Vec<f64>,
    /// When it is given up: known when one has arrived.
    end: Option<Instant>,
    meter: Option<Meter>,
    /// As of the last complete one: what is waited for behind it does not count.
    outcome: Outcome,
}

impl Arrivals {
    /// Nothing yet.
    pub(crate) fn new(options: &Options) -> Result<Self> {
        Ok(Self {
            warm_up: options.warm_up,
            count: options.segments()?,
            interval: options.interval()?,
            bytes: 0,
            complete: 0,
            delays_ms: Vec::new(),
            end: None,
            meter: None,
            outcome: Outcome::default(),
        })
    }

    /// Something has arrived: from now on is measured.
    pub(crate) fn begin(&mut self) -> Result<()> {
        if self.meter.is_none() {
            self.meter = Some(Meter::start()?);
        }
        Ok(())
    }

    /// A segment of `length` bytes with this head is complete now.
    pub(crate) fn complete(&mut self, head: [u8; HEAD_BYTES], length: usize, options: &Options) -> Result<()> {
        let word = |from: usize| u64::from_le_bytes(std::array::from_fn(|at| head[from + at]));
        let (due_ns, number, now_ns) = (word(0), word(8), now_ns()?);
        let after = now_ns.saturating_sub(due_ns);
        self.bytes += length as u64;
        self.complete += 1;
        if number >= self.warm_up {
            self.delays_ms.push(after as f64 / 1e6);
        }
        let due = Instant::now().checked_sub(Duration::from_nanos(after));
        let left = self.interval.saturating_mul(u32::try_from(self.count.saturating_sub(number + 1)).unwrap_or(u32::MAX));
        self.end = self.end.or(due.map(|due| due + left + TIMEOUT));
        if let Some(meter) = &self.meter {
            self.outcome = meter.outcome(self.bytes, options)?;
        }
        Ok(())
    }

    /// Whether all have arrived.
    pub(crate) const fn are_all(&self) -> bool {
        self.complete >= self.count
    }

    /// When it is given up: [`TIMEOUT`] after the last is due.
    pub(crate) fn end(&self) -> Instant {
        let all = self.interval.saturating_mul(u32::try_from(self.count).unwrap_or(u32::MAX));
        self.end.unwrap_or_else(|| Instant::now() + all + TIMEOUT)
    }

    /// What is known in the end. Segments that warm up count as complete or incomplete, but their delays are not told.
    pub(crate) fn outcome(self) -> Outcome {
        let (complete, incomplete) = (self.complete, self.count.saturating_sub(self.complete));
        Outcome { delays_ms: Some(self.delays_ms), complete, incomplete, ..self.outcome }
    }
}
