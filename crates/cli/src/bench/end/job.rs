//! What an end is asked to do: the same flags for every transport.
//!
//! Made by [`crate::bench::workload`], written on a command line by [`Job::words`], read back by `end`.
//!
//! Invariant: a job that is written and read is the same job.

use crate::tolerance_argument::ToleranceArgument;
use clap::{Args, ValueEnum};
use segstream::{Algorithm, Bandwidth, Coding, Polling, Rate, Threads};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::{Duration, Instant};

/// What the two ends do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(in crate::bench) enum Task {
    /// Segments one after the other, as fast as they go.
    Throughput,
    /// One segment there and back, again and again.
    PingPong,
    /// Segments due at fixed times. The first 16 bytes of each unit say when it was due (ns of CLOCK_MONOTONIC) and which it is.
    Schedule,
    /// Connections made and closed, one after the other.
    Setups,
    /// Connections made and kept.
    Idle,
    /// Connections that all send segments due at fixed times.
    Active,
}

/// The flags of an end that both sides get.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub(in crate::bench) struct Job {
    /// What the two ends do.
    #[arg(long, value_enum, default_value = "throughput")]
    pub(in crate::bench) workload: Task,
    /// How much `throughput` sends.
    #[arg(long, value_name = "N", default_value_t = 1 << 30)]
    pub(in crate::bench) bytes: u64,
    /// How long a segment is.
    #[arg(long, value_name = "N", default_value_t = 1 << 20)]
    pub(in crate::bench) segment_bytes: usize,
    /// How long a datagram is at most.
    #[arg(long, value_name = "N", default_value_t = 1200)]
    pub(in crate::bench) datagram_bytes: usize,
    /// How long it goes on, in place of --bytes and --count.
    #[arg(long, value_name = "S")]
    pub(in crate::bench) seconds: Option<f64>,
    /// Round trips, segments of a schedule, or connections; of `active` all connections together.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub(in crate::bench) count: u64,
    /// How far apart the segments of a schedule, or of each active connection, are due.
    #[arg(long, value_name = "N", default_value_t = 1000.0)]
    pub(in crate::bench) interval_us: f64,
    /// How many round trips or segments of a schedule are left out at first; they count towards --count.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(in crate::bench) warm_up: u64,
    /// The rate of the sender in bit/s; 0 is unpaced, `auto` congestion-controlled.
    #[arg(long, value_name = "BPS", default_value = "0")]
    pub(in crate::bench) rate: JobRate,
    /// The congestion control of `--rate auto` [default: auto].
    #[arg(long, value_name = "NAME", value_parser = congestion)]
    pub(in crate::bench) congestion: Option<String>,
    /// How it waits for datagrams; bare UDP blocks at once, or with `adaptive` only polls.
    #[arg(long, value_enum, default_value = "brief")]
    pub(in crate::bench) polling: JobPolling,
    /// Which functions have a thread of their own; bare UDP has one thread.
    #[arg(long, value_enum, default_value = "one")]
    pub(in crate::bench) threads: JobThreads,
    /// Turns segmentation offload (GSO and GRO) off.
    #[arg(long)]
    pub(in crate::bench) no_offload: bool,
    /// How much of a segment may be missing, in units.
    #[arg(long, value_name = "W,E,B")]
    #[serde(skip)]
    pub(in crate::bench) tolerance: Option<ToleranceArgument>,
    /// What is done with repair units: off, hedged, or auto:latency=80ms,budget=10%.
    #[arg(long, value_name = "CODING", default_value = "hedged")]
    #[serde(skip)]
    pub(in crate::bench) coding: Coding,
}

/// A rate on an end's command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::bench) enum JobRate {
    Unpaced,
    Auto,
    Fixed(u64),
}

/// How an end waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(in crate::bench) enum JobPolling {
    /// Blocks at once.
    Blocking,
    /// Busy-polls first, for about the cost of a wake-up, as long as that pays.
    Brief,
    /// Busy-polls first, for several times the cost of a wake-up, as long as that pays.
    Adaptive,
}

impl JobPolling {
    /// As an endpoint is told.
    pub(super) const fn of_endpoint(self) -> Polling {
        match self {
            Self::Blocking => Polling::Blocking,
            Self::Brief => Polling::Brief,
            Self::Adaptive => Polling::Adaptive,
        }
    }
}

/// The threads of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(in crate::bench) enum JobThreads {
    /// One does everything.
    One,
    /// Sending has one of its own.
    Sending,
    /// Receiving has one of its own.
    Receiving,
    /// Sending has one, and receiving another.
    Both,
}

impl JobThreads {
    /// As an endpoint is told.
    pub(super) const fn of_endpoint(self) -> Threads {
        match self {
            Self::One => Threads::One,
            Self::Sending => Threads::Sending,
            Self::Receiving => Threads::Receiving,
            Self::Both => Threads::Both,
        }
    }
}

impl Job {
    /// The job as flags that every end knows.
    pub(in crate::bench) fn words(&self) -> Vec<String> {
        let mut words = vec!["--workload".to_owned(), word(&self.workload)];
        let mut flag = |name: &str, value: String| words.extend([format!("--{name}"), value]);
        flag("bytes", self.bytes.to_string());
        flag("segment-bytes", self.segment_bytes.to_string());
        flag("datagram-bytes", self.datagram_bytes.to_string());
        flag("count", self.count.to_string());
        flag("interval-us", self.interval_us.to_string());
        flag("warm-up", self.warm_up.to_string());
        flag("rate", self.rate.to_string());
        if let Some(seconds) = self.seconds {
            flag("seconds", seconds.to_string());
        }
        words.extend(self.no_offload.then(|| "--no-offload".to_owned()));
        words
    }

    /// What of the job only our own ends know, as flags.
    pub(in crate::bench) fn own_words(&self) -> Vec<String> {
        let mut words = vec!["--threads".to_owned(), word(&self.threads), "--polling".to_owned(), word(&self.polling)];
        words.extend(self.congestion.iter().flat_map(|name| ["--congestion".to_owned(), name.clone()]));
        words
    }

    /// The same for ends of other transports, which spin or do not.
    pub(in crate::bench) fn peers_words(&self) -> Vec<String> {
        (self.polling == JobPolling::Adaptive).then(|| "--spin".to_owned()).into_iter().collect()
    }

    /// How long it goes on, when that was said in place of an amount.
    pub(super) fn duration(&self) -> Option<Duration> {
        self.seconds.map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::ZERO))
    }

    /// How much is left to do of what began at `began`, if it is an amount of which `of_amount` is left; without end, or nothing,
    /// if a time was said.
    pub(super) fn left(&self, began: Instant, of_amount: u64) -> u64 {
        match self.duration() {
            Some(duration) if began.elapsed() < duration => u64::MAX,
            Some(_) => 0,
            None => of_amount,
        }
    }

    /// The rate of an endpoint.
    pub(super) fn rate(&self) -> Rate {
        let algorithm = self.congestion.as_deref().and_then(|name| Algorithm::offered(name).ok());
        let rate = self.rate.of_endpoint();
        algorithm.map_or(rate, |algorithm| rate.under(algorithm))
    }

    /// How far apart segments are due.
    pub(super) fn interval(&self) -> Duration {
        Duration::try_from_secs_f64(self.interval_us * 1e-6).unwrap_or(Duration::ZERO)
    }

    /// Of round trips or scheduled segments, whether this one counts.
    pub(super) const fn is_warm(&self, number: u64) -> bool {
        number >= self.warm_up
    }
}

impl JobRate {
    /// The same for an endpoint.
    fn of_endpoint(self) -> Rate {
        match self {
            Self::Unpaced => Rate::Unpaced,
            Self::Auto => Rate::AUTO,
            Self::Fixed(bps) => Rate::smooth(Bandwidth::from_bits_per_second(bps)),
        }
    }
}

impl std::str::FromStr for JobRate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            _ => match text.parse() {
                Ok(0) => Ok(Self::Unpaced),
                Ok(bps) => Ok(Self::Fixed(bps)),
                Err(_) => Err(format!("\"{text}\" is not a rate; write bits per second, 0 or auto")),
            },
        }
    }
}

impl fmt::Display for JobRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unpaced => f.write_str("0"),
            Self::Auto => f.write_str("auto"),
            Self::Fixed(bps) => bps.fmt(f),
        }
    }
}

/// The name of a congestion control that users can choose.
fn congestion(text: &str) -> Result<String, String> {
    Algorithm::offered(text).map(|algorithm| algorithm.name.to_owned()).map_err(|error| error.to_string())
}

/// A value as a command line has it.
pub(super) fn word(value: &impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        job: Job,
    }

    #[test]
    fn a_job_that_is_written_on_a_command_line_is_read_back_the_same() {
        let job = Job {
            workload: Task::PingPong,
            bytes: 7,
            segment_bytes: 64,
            datagram_bytes: 9000,
            seconds: Some(0.25),
            count: 11,
            interval_us: 5.12,
            warm_up: 3,
            rate: JobRate::Fixed(100),
            congestion: Some("bbr".to_owned()),
            polling: JobPolling::Adaptive,
            threads: JobThreads::Both,
            no_offload: true,
            tolerance: None,
            coding: Coding::default(),
        };
        let words = ["end".to_owned()].into_iter().chain(job.words()).chain(job.own_words());
        let read = Line::parse_from(words).job;
        assert_eq!(format!("{read:?}"), format!("{job:?}"));
    }
}
