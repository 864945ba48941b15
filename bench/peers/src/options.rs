//! The command line of an end.
//!
//! Called by [`crate::end`] and read by every transport.
//!
//! Invariant: both sides of a measurement are told the same workload and sizes; only the side and its address differ.

use anyhow::{Context as _, Result, bail, ensure};
use clap::{Args, ValueEnum};
use std::net::SocketAddr;
use std::time::Duration;

/// One side of a measurement.
#[derive(Clone, Debug, Args)]
pub(crate) struct Options {
    /// The transport, one of those that --list names.
    #[arg(value_name = "TRANSPORT")]
    pub(crate) transport: Option<String>,
    /// Lists the transports with their versions and settings.
    #[arg(long)]
    pub(crate) list: bool,
    /// Lists them as a JSON array.
    #[arg(long, requires = "list")]
    pub(crate) json: bool,
    /// Which side this is.
    #[arg(long, value_enum, default_value_t = Side::Serve)]
    pub(crate) side: Side,
    /// Where the serving side listens; port 0 takes any free one.
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:0")]
    pub(crate) bind: SocketAddr,
    /// Where the running side connects to.
    #[arg(long, value_name = "IP:PORT", required_if_eq("side", "run"))]
    pub(crate) connect: Option<SocketAddr>,
    /// What the serving side printed as `trust`: its certificate, for QUIC.
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub(crate) trust: String,
    /// What is measured.
    #[arg(long, value_enum, default_value_t = Workload::Throughput)]
    pub(crate) workload: Workload,
    /// Payload of `throughput`.
    #[arg(long, value_name = "N", default_value_t = 1 << 30)]
    pub(crate) bytes: u64,
    /// Size of a write of `throughput` and of a segment of `schedule`.
    #[arg(long, value_name = "N", default_value_t = 1 << 20, value_parser = clap::value_parser!(u64).range(64..=1 << 28))]
    pub(crate) segment_bytes: u64,
    /// Size of the payload of a UDP datagram [default: what the transport finds or takes by itself]. TCP ignores it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(576..))]
    pub(crate) datagram_bytes: Option<u16>,
    /// How long it goes on, in place of --bytes and --count.
    #[arg(long, value_name = "S", default_value_t = 0.0)]
    pub(crate) seconds: f64,
    /// Round trips of `ping-pong`, segments of `schedule`.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(crate) count: u64,
    /// How far apart the segments of `schedule` are due, in microseconds.
    #[arg(long, value_name = "N", default_value_t = 10_000.0)]
    pub(crate) interval_us: f64,
    /// How many round trips or segments of `schedule` are left out at first; they count towards --count.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) warm_up: u64,
    /// Payload a second of `throughput` in bit/s; 0 is as fast as it goes.
    #[arg(long, value_name = "BPS", default_value_t = 0)]
    pub(crate) rate: u64,
    /// Keeps this end on one processor.
    #[arg(long, value_name = "K")]
    pub(crate) cpu: Option<usize>,
    /// Asks for arrivals all the time instead of sleeping. Only TCP and Aeron can.
    #[arg(long)]
    pub(crate) spin: bool,
    /// Accepted; how datagrams are handed to the system is each library's own affair.
    #[arg(long)]
    pub(crate) no_offload: bool,
    /// Congestion control of TCP and of the QUIC stacks.
    #[arg(long, value_enum, default_value_t = Congestion::Cubic)]
    pub(crate) congestion: Congestion,
    /// SRT's live mode with this latency; 0 is its file mode.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) latency_ms: u32,
    /// The packet filter of SRT's live mode: XOR sums of the rows and the columns of so many packets; others ignore it.
    #[arg(long, value_name = "COLUMNS,ROWS", requires = "latency_ms")]
    pub(crate) filter: Option<Filter>,
    /// Aeron's receiver window, which its documentation wants to be the bandwidth-delay product of the path; others ignore it.
    #[arg(long, value_name = "N", default_value_t = 4 << 20, value_parser = clap::value_parser!(u32).range(1 << 17..=1 << 22))]
    pub(crate) window_bytes: u32,
}

/// Rows and columns of a packet filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Filter {
    /// Packets of a row.
    pub(crate) columns: u32,
    /// Packets of a column.
    pub(crate) rows: u32,
}

impl std::str::FromStr for Filter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once(',').and_then(|(columns, rows)| Some((columns.parse().ok()?, rows.parse().ok()?)));
        let filter = numbers.map(|(columns, rows)| Self { columns, rows });
        let allowed = filter.filter(|filter| (1..=256).contains(&filter.columns) && (1..=256).contains(&filter.rows));
        allowed.ok_or_else(|| format!("\"{text}\" is no packet filter; give columns and rows of 1 to 256, such as 10,5"))
    }
}

/// A side of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Side {
    /// Waits for the other and receives.
    Serve,
    /// Connects and sends.
    Run,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Workload {
    /// One stream of bytes, as fast as it goes.
    Throughput,
    /// 64 bytes there and back, one at a time.
    PingPong,
    /// Segments that are due at fixed times.
    Schedule,
}

/// A congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Congestion {
    /// RFC 9438.
    Cubic,
    /// Model-based.
    Bbr,
}

impl Options {
    /// Where the running side connects to.
    pub(crate) fn peer(&self) -> Result<SocketAddr> {
        self.connect.context("--side run needs --connect")
    }

    /// How long a transfer lasts that is limited by time.
    pub(crate) fn time(&self) -> Result<Option<Duration>> {
        Ok(if self.seconds == 0.0 { None } else { Some(duration(self.seconds)?) })
    }

    /// How many segments `schedule` has.
    pub(crate) fn segments(&self) -> Result<u64> {
        let interval = self.interval()?.as_secs_f64().max(1e-9);
        Ok(self.time()?.map_or(self.count, |time| (time.as_secs_f64() / interval) as u64))
    }

    /// Whether a round trip is to follow these ones.
    pub(crate) fn goes_on(&self, rounds: u64, elapsed: Duration) -> Result<bool> {
        Ok(self.time()?.map_or(rounds < self.count, |time| elapsed < time))
    }

    /// How far apart segments are due.
    pub(crate) fn interval(&self) -> Result<Duration> {
        duration(self.interval_us / 1e6)
    }

    /// The bytes of a segment, of which the first ones can be written over.
    pub(crate) fn segment(&self) -> Vec<u8> {
        vec![7; self.segment_length()]
    }

    /// The length of a segment.
    pub(crate) const fn segment_length(&self) -> usize {
        self.segment_bytes as usize
    }

    /// Refuses what the transport has not.
    pub(crate) fn without_bbr(&self, transport: &str) -> Result<()> {
        if self.congestion == Congestion::Bbr {
            bail!("{transport} has no --congestion bbr; tcp, quinn and s2n-quic have");
        }
        Ok(())
    }
}

fn duration(seconds: f64) -> Result<Duration> {
    ensure!((0.0..=86400.0).contains(&seconds), "{seconds} s is no time a measurement can take; give 0 to 86400");
    Ok(Duration::from_secs_f64(seconds))
}
