//! The output of an end on standard output, and the clocks that it measures with.
//!
//! Called by every transport. The programs in the folder `c` say the same.
//!
//! Invariant: the processor time is that of the whole process, all threads and the system's work for it included.

use crate::options::Options;
use anyhow::{Context as _, Result};
use nix::sys::resource::{UsageWho, getrusage};
use nix::time::{ClockId, clock_gettime};
use serde::Serialize;
use std::io::Write as _;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// The last line of an end.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Outcome {
    /// Payload handed to the application.
    pub(crate) bytes: u64,
    /// From the first byte to the last.
    pub(crate) seconds: f64,
    /// Processor time of that time.
    pub(crate) cpu_seconds: f64,
    pub(crate) round_trips_us: Option<Vec<f64>>,
    /// Of the segments of `schedule` that are complete and not left out.
    pub(crate) delays_ms: Option<Vec<f64>>,
    pub(crate) complete: u64,
    pub(crate) incomplete: u64,
    /// What the transport says it sent in UDP datagrams, if it says.
    pub(crate) wire_bytes: Option<u64>,
    pub(crate) note: String,
}

/// Measures from when it is made.
#[derive(Debug)]
pub(crate) struct Meter {
    began: Instant,
    cpu: Duration,
}

impl Meter {
    /// Begins now.
    pub(crate) fn start() -> Result<Self> {
        Ok(Self { began: Instant::now(), cpu: processor_time()? })
    }

    /// How long it has measured.
    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// What it has measured of a transfer of `bytes` in segments of `options`.
    pub(crate) fn outcome(&self, bytes: u64, options: &Options) -> Result<Outcome> {
        Ok(Outcome {
            bytes,
            seconds: self.elapsed().as_secs_f64(),
            cpu_seconds: (processor_time()? - self.cpu).as_secs_f64(),
            complete: bytes / options.segment_bytes,
            ..Outcome::default()
        })
    }
}

impl Outcome {
    /// Prints the last line.
    pub(crate) fn print(&self) -> Result<()> {
        print_line(self)
    }
}

/// Prints the first line of the serving side.
pub(crate) fn listening(address: SocketAddr, trust: &str) -> Result<()> {
    #[derive(Serialize)]
    struct Listening<'a> {
        listening: SocketAddr,
        trust: &'a str,
    }
    print_line(&Listening { listening: address, trust })
}

/// Prints the last line of an end that has failed.
pub(crate) fn failed(error: &anyhow::Error) {
    #[derive(Serialize)]
    struct Failed {
        error: String,
    }
    let error = format!("{error:#}");
    eprintln!("segstream-peers: {error}");
    // Nobody listens any more if this fails, and the exit status tells.
    let _ = print_line(&Failed { error });
}

/// Nanoseconds of CLOCK_MONOTONIC, which all processes of a machine share.
pub(crate) fn now_ns() -> Result<u64> {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).context("the system does not tell the time")?;
    Ok(u64::try_from(Duration::from(now).as_nanos()).unwrap_or(u64::MAX))
}

fn processor_time() -> Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_SELF).context("the system does not tell this process's time")?;
    let [user, system] =
        [usage.user_time(), usage.system_time()].map(|time| Duration::new(time.tv_sec() as u64, time.tv_usec() as u32 * 1000));
    Ok(user + system)
}

fn print_line(line: &impl Serialize) -> Result<()> {
    let mut out = std::io::stdout().lock();
    serde_json::to_writer(&mut out, line)?;
    writeln!(out)?;
    Ok(out.flush()?)
}
