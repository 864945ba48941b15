//! What can be measured, and what the two ends have to do for it.
//!
//! Called by the verb for each workload of the command line.
//!
//! Invariant: every transport gets the same job.

use super::Flags;
use super::end::job::{Job, JobRate, Task};
use clap::ValueEnum;
use segstream::{Bandwidth, Coding};
use std::fmt;

/// The share of round trips, and of segments at a rate, that warms up: the first ones, which are left out.
pub(super) const WARM_UP: f64 = 0.1;
/// Round trips of a measurement.
const ROUND_TRIPS: u64 = 20_000;
/// Set-ups of a measurement; one more goes before them.
const SETUPS: u64 = 1000;
/// How long segments at a rate are sent.
const AT_RATE_SECONDS: f64 = 5.0;
/// The payload of segments at a rate, unless it was said.
const RATE: Bandwidth = Bandwidth::from_megabits_per_second(10);
/// Idle connections, unless it was said.
const CONNECTIONS: u64 = 10_000;
/// Active connections, and the payload of each, unless it was said.
const ACTIVE: u64 = 1000;
const ACTIVE_RATE: Bandwidth = Bandwidth::from_megabits_per_second(1);
/// What each is paced at for its payload: with what surrounds that, and so that it keeps up.
const ACTIVE_MARGIN: f64 = 1.2;
/// The least a segment at a rate can be: it says when it was due.
pub(super) const AT_RATE_BYTES_MIN: u64 = 16;
/// The shortest segment of `active`: the headers of shorter ones exceed [`ACTIVE_MARGIN`].
pub(super) const ACTIVE_BYTES_MIN: u64 = 512;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(super) enum Workload {
    /// Segments of 1 MiB as fast as they go: goodput, and processor time of both ends for a GB.
    Throughput,
    /// 64 bytes there and back: the round trip.
    PingPong,
    /// Segments of 64 bytes due at --rate: from when one was due to when it was delivered.
    AtRate,
    /// Connections made and closed, and connections kept: the server's processor time and memory for each.
    Connections,
    /// Many connections at once to one endpoint, each paced, with segments due at --rate: processor time, and what was lost.
    Active,
    /// Segments of 100 bytes as fast as they go: how many in a second.
    Records,
}

impl Workload {
    /// Its name on the command line.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::PingPong => "ping-pong",
            Self::AtRate => "at-rate",
            Self::Connections => "connections",
            Self::Active => "active",
            Self::Records => "records",
        }
    }

    /// What the ends do for it, one after the other.
    pub(super) fn jobs(self, flags: &Flags) -> Vec<Job> {
        let job = |workload| self.job(workload, flags);
        match self {
            Self::Throughput | Self::Records => vec![job(Task::Throughput)],
            Self::PingPong => vec![job(Task::PingPong)],
            Self::AtRate => vec![job(Task::Schedule)],
            Self::Connections => vec![job(Task::Setups), job(Task::Idle)],
            Self::Active => vec![job(Task::Active)],
        }
    }

    /// Whether a transport of this name can be measured so.
    pub(super) fn suits(self, transport: &str) -> bool {
        match transport {
            "plain" | "encrypted" => true,
            "raw" => matches!(self, Self::Throughput | Self::PingPong),
            _ => matches!(self, Self::Throughput | Self::PingPong | Self::AtRate),
        }
    }

    fn job(self, workload: Task, flags: &Flags) -> Job {
        let segment_bytes = flags.segment_bytes.map_or(self.segment_bytes(), |size| size.get());
        let rate = flags.rate.unwrap_or(if workload == Task::Active { ACTIVE_RATE } else { RATE });
        let interval_us = segment_bytes as f64 * 8e6 / rate.bits_per_second() as f64;
        let seconds = flags.seconds.map(|seconds| seconds.as_secs_f64());
        let at_rate = (seconds.unwrap_or(AT_RATE_SECONDS) * 1e6 / interval_us).max(1.0) as u64;
        let (count, warm_up) = match workload {
            // Why none: with --seconds their number is known only when they are over; figures leave the first ones out.
            Task::PingPong => (ROUND_TRIPS, 0),
            Task::Schedule => (at_rate, (at_rate as f64 * WARM_UP) as u64),
            Task::Setups => (SETUPS + 1, 0),
            Task::Idle => (flags.connections.unwrap_or(CONNECTIONS), 0),
            Task::Active => (flags.connections.unwrap_or(ACTIVE), 0),
            Task::Throughput => (0, 0),
        };
        let seconds = match workload {
            Task::Throughput | Task::PingPong => seconds,
            Task::Active => Some(seconds.unwrap_or(AT_RATE_SECONDS)),
            _ => None,
        };
        let paced_at = (rate.bits_per_second() as f64 * ACTIVE_MARGIN) as u64;
        Job {
            workload,
            bytes: flags.mebibytes.unwrap_or_else(|| self.mebibytes()).saturating_mul(1 << 20),
            segment_bytes: usize::try_from(segment_bytes).unwrap_or(usize::MAX),
            datagram_bytes: flags.datagram_bytes as usize,
            seconds,
            count,
            interval_us,
            warm_up,
            rate: if workload == Task::Active { JobRate::Fixed(paced_at) } else { JobRate::Unpaced },
            congestion: None,
            polling: flags.polling,
            threads: flags.threads,
            no_offload: flags.no_offload,
            tolerance: None,
            coding: Coding::default(),
        }
    }

    /// How much it sends, unless it was said.
    const fn mebibytes(self) -> u64 {
        if matches!(self, Self::Records) { 100 } else { 1024 }
    }

    /// How long its segments are, unless it was said.
    const fn segment_bytes(self) -> u64 {
        match self {
            Self::PingPong | Self::AtRate => 64,
            Self::Records => 100,
            // Ten a second at the rate it has unless another is said.
            Self::Active => 12_500,
            Self::Throughput | Self::Connections => 1 << 20,
        }
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
