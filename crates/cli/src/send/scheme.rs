//! `segstream send --scheme KEY`: one source with another scheme, without encryption, for laboratories.
//!
//! Called by the verb.
//!
//! Invariant: what the flags mean is a scenario; a flag that means nothing to the scheme is refused.

use super::Arguments;
use crate::content_hash::ContentHash;
use crate::interruption::Interruption;
use crate::progress::Progress;
use crate::scheme_report::SchemeReport;
use crate::transfer_report::FileReport;
use crate::{address, quantity, sim, usage};
use anyhow::{Context as _, Result};
use clap::Args;
use segstream::{Bandwidth, Rate};
use segstream_base::{Bytes, Duration};
use segstream_blocks::Accounting;
use segstream_lab::live::{LiveError, Sending};
use segstream_lab::registry::{self, Scheme};
use segstream_lab::scenario::{BlackBox, Scenario, Workload};
use segstream_net::adapter::{self, SendOptions, Timing, Watch, read_segments};
use segstream_schemes::setting::Value;
use segstream_schemes::sstp::Acknowledgment;
use segstream_schemes::transport::Takes;
use std::fs::File;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

/// The rate to a loopback address when none is given.
const LOOPBACK_RATE: Bandwidth = Bandwidth::from_megabits_per_second(100);
/// The longest window where none is given: that of AA's end systems, where segments are single packets.
const WINDOW_SEGMENTS_MAX: u32 = 400;
/// A network may change the order of packets a little.
const REORDER: u32 = 3;

/// Flags that mean nothing with a scheme.
pub(super) const USUAL: &[&str] = &[
    "exclude",
    "links",
    "dry_run",
    "unit_bytes",
    "segment_bytes",
    "segment_wait",
    "datagram_bytes",
    "congestion",
    "class",
    "lifetime",
    "order",
    "interleave",
    "unlimited",
    "at",
    "shutdown_timeout",
    "stats",
    "stats_json",
    "segments_json",
    "drop_oldest",
    "careful_resume",
    "coding",
    "clock_ahead",
    "metrics",
    "qlog",
];
/// Flags that mean nothing without a scheme.
pub(super) const WITH_SCHEME: &[&str] = &[
    "packet_bytes",
    "segment_packets",
    "window_segments",
    "buffer",
    "ack",
    "accounting",
    "reorder",
    "rtt",
    "status_period",
    "t_normal",
    "t_error",
];

/// The flags of a scheme, under the names they have in `sim`; only its window, which there counts segments too,
/// has a name of its own, because `--window` of `send` counts bytes.
#[derive(Debug, Args)]
#[command(next_help_heading = "With --scheme")]
pub(crate) struct SchemeArguments {
    /// Sends one file or standard input with another protocol from the papers: sstp, snr, htpnet, tcp, adaptive-ack, sscop or
    /// xtp. For laboratories; needs --insecure, and the same --scheme at the receiver. Of the flags above it takes
    /// --tolerance (in packets), --rate (a fixed rate without IP and UDP headers, 100mbit to a loopback address by default),
    /// --idle-timeout, --insecure and --json.
    #[arg(long, value_name = "KEY", value_parser = sim::scheme)]
    scheme: Option<String>,
    /// The size of a data packet with its header. The adapter's header, UDP and IP add 36 bytes.
    #[arg(long, value_name = "BYTES", value_parser = quantity::bytes, default_value = "1024")]
    packet_bytes: Bytes,
    /// Packets per segment [default: 256; always 1 for sscop].
    #[arg(long, value_name = "N")]
    segment_packets: Option<u32>,
    /// The window, in segments [default: 36; 400 for sscop].
    #[arg(long, value_name = "N")]
    window_segments: Option<u32>,
    /// The receiver's buffer, in segments [default: the window].
    #[arg(long, value_name = "N")]
    buffer: Option<u32>,
    /// How a receiver acknowledges whose buffer is smaller than its window: hard, soft-lazy or soft-eager.
    #[arg(long, value_name = "ACK", default_value = "hard")]
    ack: Acknowledgment,
    /// How tolerated losses are counted: strict-all, strict-burst or paper-literal.
    #[arg(long, value_name = "HOW", default_value = "strict-all")]
    accounting: Accounting,
    /// The reordering threshold: how many packets may overtake a packet before it is declared lost [default: 3].
    #[arg(long, value_name = "N")]
    reorder: Option<u32>,
    /// The round-trip time of the path. snr needs it; xtp uses 60ms by default.
    #[arg(long, value_name = "T", value_parser = quantity::positive_duration)]
    rtt: Option<Duration>,
    /// The interval at which snr exchanges state [default: a twelfth of the round-trip time].
    #[arg(long, value_name = "T", value_parser = quantity::positive_duration)]
    status_period: Option<Duration>,
    /// The report interval of adaptive-ack's receiver while nothing is missing [default: 40ms].
    #[arg(long, value_name = "T", value_parser = quantity::positive_duration)]
    t_normal: Option<Duration>,
    /// The report interval of adaptive-ack's receiver while something is missing [default: 5ms].
    #[arg(long, value_name = "T", value_parser = quantity::positive_duration)]
    t_error: Option<Duration>,
}

impl SchemeArguments {
    /// The scheme, unless it is segstream.
    pub(super) fn scheme(&self) -> Option<&'static Scheme> {
        self.scheme.as_deref().and_then(registry::find).filter(|scheme| scheme.is_live)
    }
}

/// Sends with `scheme`.
pub(super) fn run(arguments: &Arguments, scheme: &'static Scheme) -> Result<ExitCode> {
    arguments.protection.check_scheme(scheme.key)?;
    let remote = address::of_host(&arguments.address)?;
    let scenario = scenario(arguments, scheme, remote)?;
    let path = source(arguments)?;
    super::check_idle_timeout(arguments)?;
    address::check_route(remote)?;
    let timing = Timing { open_timeout: arguments.idle_timeout, idle_timeout: arguments.idle_timeout, ..Timing::default() };
    let sending = Sending::bind(&scenario, remote, SendOptions { timing, ..SendOptions::default() }).map_err(refused)?;
    arguments.protection.tell();
    for warning in sending.warnings() {
        eprintln!("{warning}");
    }
    let (reader, name, length) = open(path)?;
    let hash = Arc::new(Mutex::new(ContentHash::default()));
    let reader = Hashing { reader, hash: Arc::clone(&hash), at: 0 };
    let segment_bytes = usize::try_from(sending.segment_bytes()).unwrap_or(usize::MAX);
    let interruption = Interruption::listen(None)?;
    let progress = Progress::new(false);
    progress.expected(length.unwrap_or(0));
    let mut told = |so_far: adapter::Progress| progress.delivered(so_far.bytes);
    let watch = Watch { stop: Some(interruption.flag()), progress: Some(&mut told) };
    let sent = sending.run(read_segments(reader, segment_bytes), watch).map_err(refused)?;
    progress.clear();
    let hash = std::mem::take(&mut *hash.lock().unwrap_or_else(PoisonError::into_inner));
    let bytes = hash.bytes();
    // What was not sent to its end is not the file.
    let blake3 = if sent.failure.is_none() { hash.finish(|_, _| None)? } else { None };
    let file = FileReport { name, bytes, blake3, ..FileReport::default() };
    let result = SchemeReport::of_sender(scheme.key, sent, file);
    if let Some(sentence) = result.report.sentence_of_sender() {
        eprintln!("{sentence}");
    }
    if arguments.json {
        result.print(false)?;
    }
    if let Some(error) = &result.report.error {
        eprintln!("segstream: {error}");
    }
    Ok(if result.report.is_success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn scenario(arguments: &Arguments, scheme: &'static Scheme, remote: SocketAddr) -> Result<Scenario> {
    let flags = &arguments.scheme;
    let with_scheme = format!("with --scheme {}", scheme.key);
    arguments.explicit.refuse(USUAL, &with_scheme)?;
    if arguments.explicit.has("window") {
        return Err(usage::bad(format!("--window counts bytes and has no effect {with_scheme}; give --window-segments")));
    }
    let default = Scenario::of(scheme);
    let segment_packets = flags.segment_packets.unwrap_or(default.workload.segment_packets);
    let black_box = BlackBox {
        rtt: rtt(flags, scheme)?.unwrap_or(default.black_box.rtt),
        bandwidth: bandwidth(arguments, remote)?,
        ..default.black_box
    };
    let workload = Workload {
        packet_bytes: u32::try_from(flags.packet_bytes.get()).unwrap_or(u32::MAX),
        segment_packets,
        window: flags.window_segments.unwrap_or(default.workload.window.min(WINDOW_SEGMENTS_MAX)),
        buffer: flags.buffer,
        tolerance: arguments.tolerance.of_packets(segment_packets).map_err(usage::bad)?,
        // How much there is to send is not the receiver's to know.
        packets: u64::from(segment_packets),
        ..default.workload
    };
    let mut scenario = Scenario { black_box, workload, scheme: default.scheme };
    let reorder = flags.reorder.unwrap_or(if scheme.has_setting("reorder") { REORDER } else { 0 });
    let settings = [
        ("ack", Value::word(flags.ack)),
        ("accounting", Value::word(flags.accounting)),
        ("reorder", reorder.into()),
        ("status-period", Value::optional(flags.status_period)),
    ];
    for (flag, value) in settings {
        scenario.set(flag, &value).map_err(|error| usage::bad(error.to_string()))?;
    }
    for (flag, period) in [("t-normal", flags.t_normal), ("t-error", flags.t_error)] {
        let Some(period) = period else { continue };
        if !scheme.has_setting(flag) {
            return Err(usage::bad(format!("{} does not use --{flag}; leave it out", scheme.key)));
        }
        scenario.set(flag, &period.into()).map_err(|error| usage::bad(error.to_string()))?;
    }
    Ok(scenario)
}

/// The round trip, which those schemes need that exchange state so many times in it, and XTP can do with.
fn rtt(flags: &SchemeArguments, scheme: &Scheme) -> Result<Option<Duration>> {
    let takes = scheme.takes.iter().find_map(|takes| if let Takes::RoundTrip { needed } = takes { Some(*needed) } else { None });
    match (takes, flags.rtt) {
        (Some(true), None) => Err(usage::bad(format!("{} needs the round-trip time of the path; give it, such as --rtt 60ms", scheme.key))),
        (None, Some(_)) => Err(usage::bad(format!("{} does not use --rtt; leave it out", scheme.key))),
        (_, rtt) => Ok(rtt),
    }
}

fn bandwidth(arguments: &Arguments, remote: SocketAddr) -> Result<Bandwidth> {
    match arguments.rate {
        Some(Rate::Fixed(rate)) if rate.is_smooth() => Ok(rate.peak()),
        Some(Rate::Auto { .. } | Rate::Unpaced) => Err(usage::bad(
            "with --scheme the rate is not found by congestion control; give a rate that the path carries, such as --rate 50mbit",
        )),
        Some(Rate::Fixed(_)) => Err(usage::bad("with --scheme there are no bursts; give one rate, such as --rate 50mbit")),
        None if remote.ip().is_loopback() => Ok(LOOPBACK_RATE),
        None => Err(usage::bad(format!(
            "{remote} is not a loopback address, so give --scheme a rate that the path carries, such as --rate 50mbit"
        ))),
    }
}

/// The one source: a file, or nothing for standard input.
fn source(arguments: &Arguments) -> Result<Option<&Path>> {
    match &super::paths(&arguments.paths)?[..] {
        [] => Ok(None),
        [path] if path.is_dir() => Err(usage::bad(format!(
            "{} is a directory, and --scheme sends one file or standard input; send an archive: tar c {0} | segstream send ADDR - --scheme KEY",
            path.display()
        ))),
        [_] => Ok(arguments.paths.first().map(std::path::PathBuf::as_path)),
        paths => Err(usage::bad(format!(
            "--scheme sends one file or standard input, not {} files; send an archive: tar c FILES | segstream send ADDR - --scheme KEY",
            paths.len()
        ))),
    }
}

/// Its reader, its name and, where it is known, its length.
fn open(path: Option<&Path>) -> Result<(Box<dyn Read + Send>, String, Option<u64>)> {
    let Some(path) = path else { return Ok((Box::new(io::stdin()), "-".to_owned(), None)) };
    let file = File::open(path).with_context(|| format!("{} cannot be read", path.display()))?;
    let length = file.metadata().ok().filter(std::fs::Metadata::is_file).map(|metadata| metadata.len());
    Ok((Box::new(file), super::name(path), length))
}

/// Hashes what is read.
struct Hashing<R> {
    reader: R,
    hash: Arc<Mutex<ContentHash>>,
    at: u64,
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        let bytes = buffer.get(..count).unwrap_or_default();
        self.hash.lock().unwrap_or_else(PoisonError::into_inner).write(self.at, bytes);
        self.at += count as u64;
        Ok(count)
    }
}

/// What cannot be run is bad usage, what the system refuses is a failure.
pub(super) fn refused(error: LiveError) -> anyhow::Error {
    match error {
        LiveError::Adapter(error) => error.into(),
        error => usage::bad(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flag_is_said_to_mean_something_or_nothing_with_a_scheme() {
        let both = ["address", "paths", "tolerance", "rate", "window", "idle_timeout", "insecure", "json", "scheme"];
        // --insecure contradicts these.
        let encrypted =
            ["identity", "certificate", "authority", "key_log", "key_log_env", "peer", "code", "code_file", "pair", "known_peers"];
        let command = Arguments::augment_args(clap::Command::new("send"));
        for argument in command.get_arguments().map(|argument| argument.get_id().as_str()) {
            let lists =
                [USUAL.contains(&argument), WITH_SCHEME.contains(&argument), both.contains(&argument), encrypted.contains(&argument)];
            assert_eq!(lists.iter().filter(|listed| **listed).count(), 1, "{argument}");
        }
    }
}
