//! `segstream send`: files or standard input, as segments, to a receiver.
//!
//! - [`argument`] and [`scheduled_change`]: arguments that need a parser of their own;
//! - [`source`]: where the bytes come from;
//! - [`feed`]: files become streams and segments, not earlier than they can leave;
//! - [`trust`]: whom we take for the receiver;
//! - [`transfer`]: the loop around the connection;
//! - [`scheme`]: the same in the way of another scheme.
//!
//! Called from the command line.
//!
//! Invariant: whatever the command line contradicts is refused before a socket is opened.

mod argument;
mod feed;
mod scheduled_change;
mod scheme;
mod source;
mod transfer;
mod trust;

use crate::given::Given;
use crate::interruption::Interruption;
use crate::manifest::FILES_MAX;
use crate::protection::Protection;
use crate::tolerance_argument::ToleranceArgument;
use crate::{address, json, quantity, usage};
use anyhow::Result;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, ValueEnum};
use scheduled_change::ScheduledChange;
use scheme::SchemeArguments;
use segstream::blocking::Endpoint;
use segstream::{Algorithm, Builder, Class, Config, Contract, DatagramSize, InterleaveChoice, Order, Rate, StreamId};
use segstream_base::{Bytes, Duration};
use segstream_wire::contract::{SEGMENT_UNITS_MAX, UNIT_BYTES_MAX};
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use transfer::Transfer;
use trust::{Receiver, TrustArguments};

/// Segments are so long if nothing is said and the window allows it.
const SEGMENT_BYTES: u64 = 256 * 1024;
/// IP and UDP headers in front of a datagram on IPv4.
const HEADER_BYTES: u64 = 28;
/// Segments in the window, at most.
const WINDOW_SEGMENTS_MAX: u32 = 65_536;

/// Sends files, each as a stream under its own name, or standard input.
///
/// The transfer is encrypted, and both ends authenticate each other. The receiver is known by the fingerprint that `recv`
/// prints. The sender is known by a one-time code, by a key that the receiver allows, or by a certificate.
///
/// The exit status is 0 when every segment arrived completely or within its tolerance, and the content hashes of both ends
/// agree wherever both could compute one. A file that cannot be read does not stop the others.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  segstream send 192.0.2.1:4433 a.bin b.bin --peer SHA256:... --code k7qm-2xnp-9wdt-4rfh\n  \
                        segstream send 192.0.2.1:4433 c.bin\n  camera | segstream send 192.0.2.1:4433 - --rate auto:peak=50mbit --tolerance \
                        1024,5,1 --lifetime 200ms\n\n`recv` prints the first line; put the files in place of PATH. After it the receiver is remembered, and the \
                        receiver can allow this sender's key with --allow.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    given: Given,
    /// The receiver, as `recv` prints it, such as 192.0.2.1:4433 or host:4433.
    #[arg(value_name = "ADDR")]
    address: String,
    /// Files, or - for standard input.
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// How many units of a segment may be missing: reliable (none), any (all), E,B (at most E units of the segment, at most
    /// B of them in a row) or W,E,B (the same for every W units).
    #[arg(long, value_name = "T", default_value = "reliable", allow_hyphen_values = true)]
    tolerance: ToleranceArgument,
    /// The size of a unit in bytes, 1 to 1148 (1160 with --insecure). The limit is a few bytes lower with a window of more
    /// than 16384 units or with more than 63 files.
    #[arg(long, value_name = "N", default_value = "1024", value_parser = quantity::positive_bytes)]
    unit_bytes: Bytes,
    /// The size of a segment [default: 256KiB, or the window if that is smaller].
    #[arg(long, value_name = "N", value_parser = quantity::positive_bytes)]
    segment_bytes: Option<Bytes>,
    /// Standard input: a segment is sent when it is full, or this long after its first byte was read.
    #[arg(long, value_name = "T", default_value = "20ms", value_parser = quantity::duration)]
    segment_wait: Duration,
    /// A fixed size of datagrams, 1200 to 65507 [default: 1200 at first, then the largest that the path carries (path MTU
    /// discovery, RFC 8899)].
    #[arg(long, value_name = "N", value_parser = quantity::positive_bytes)]
    datagram_bytes: Option<Bytes>,
    /// The sending rate, which counts whole IP packets. auto: congestion-controlled, shares the path with other flows;
    /// auto:floor=1mbit,peak=50mbit: the same within bounds. P: a fixed rate, for a path that nobody else uses. P,F,L: a
    /// fixed rate in bursts, F bursts per second of L datagrams each, sent at the rate P within a burst [default: auto].
    #[arg(long, value_name = "auto|P[,F,L]", value_parser = argument::rate)]
    rate: Option<Rate>,
    /// The congestion control of --rate auto. auto: keeps queues short, and holds its share beside flows that fill them
    /// [default: auto].
    #[arg(long, value_name = "NAME", value_parser = argument::congestion)]
    congestion: Option<&'static Algorithm>,
    /// The receive buffer of each file. The sender stops when the buffer is full, so it should hold the bandwidth-delay
    /// product times (rounds of retransmission + 2). For 100mbit over 60ms one such product is 750kB.
    #[arg(long, value_name = "BYTES", default_value = "16MiB", value_parser = quantity::positive_bytes)]
    window: Bytes,
    /// The controls in use, as a sum: error control (retransmission) 4, flow control 2, rate control 1.
    #[arg(long, value_name = "N", default_value = "7", value_parser = scheduled_change::class)]
    class: Class,
    /// The sender drops a segment that has no verdict this long after it was read [default: never].
    #[arg(long, value_name = "T", value_parser = quantity::positive_duration)]
    lifetime: Option<Duration>,
    /// For a live source, which must not wait: when the send buffer is full, the oldest segment of which nothing has been sent
    /// is dropped, and both ends count it as expired. The buffer holds two windows.
    #[arg(long)]
    drop_oldest: bool,
    /// The order in which the receiver delivers segments.
    #[arg(long, value_name = "ORDER", value_enum, default_value_t = OrderArgument::InOrder)]
    order: OrderArgument,
    /// Interleaving: units that are neighbours in a segment are sent in different datagrams, so that a burst of loss
    /// becomes single holes. auto: as far as the tolerance needs it; off; or in blocks of N units.
    #[arg(long, value_name = "auto|off|N", default_value = "auto", value_parser = argument::interleave)]
    interleave: InterleaveChoice,
    /// Permits a class with neither flow control nor rate control, which can congest a network.
    #[arg(long)]
    unlimited: bool,
    /// The connection fails when nothing has arrived from the receiver for this long; at least 1s.
    #[arg(long, value_name = "T", default_value = "10s", value_parser = quantity::positive_duration)]
    idle_timeout: Duration,
    /// Changes rate or class during the transfer, such as 5s:rate=40mbit,class=5 or 9s:rate=auto; can be repeated.
    #[arg(long, value_name = "T:CHANGES")]
    at: Vec<ScheduledChange>,
    /// Prints statistics on standard error at this interval, one line of JSON each time.
    #[arg(long, value_name = "T", value_parser = quantity::positive_duration)]
    stats: Option<Duration>,
    /// Prints one JSON object on standard output.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    trust: TrustArguments,
    #[command(flatten)]
    protection: Protection,
    #[command(flatten)]
    scheme: SchemeArguments,
}

/// The order of delivery on the command line.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum OrderArgument {
    InOrder,
    AsAccepted,
}

/// What is to be sent, and how: free of contradictions.
#[derive(Debug)]
struct Plan {
    receiver: Receiver,
    /// Files, or nothing for standard input.
    paths: Vec<PathBuf>,
    builder: Builder<Endpoint>,
    /// The contract of every file's stream, but for its label.
    contract: Contract,
    segment_bytes: usize,
    segment_wait: Duration,
    /// Whether the oldest unsent segments make room when the send buffer is full.
    drops_oldest: bool,
    changes: Vec<ScheduledChange>,
    stats: Option<Duration>,
}

/// Runs the verb.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    trust::check(arguments)?;
    if let Some(scheme) = arguments.scheme.scheme() {
        return scheme::run(arguments, scheme);
    }
    arguments.given.refuse(scheme::WITH_SCHEME, "without --scheme, or with --scheme segstream")?;
    let plan = plan(arguments)?;
    address::check_route(plan.receiver.peer.address)?;
    arguments.protection.tell();
    let any =
        if plan.receiver.peer.address.is_ipv4() { SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)) } else { (Ipv6Addr::UNSPECIFIED, 0).into() };
    let endpoint = plan.builder.clone().bind(any)?;
    for warning in endpoint.warnings() {
        eprintln!("{warning}");
    }
    let interruption = Interruption::listen(Some(endpoint.waker()))?;
    let report = Transfer::new(endpoint, plan, interruption).run()?;
    if let Some(sentence) = report.sentence_of_sender() {
        eprintln!("{sentence}");
    }
    if arguments.json {
        json::print(&report)?;
    }
    if let Some(error) = &report.error {
        eprintln!("segstream: {error}");
    }
    Ok(if report.is_success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn plan(arguments: &Arguments) -> Result<Plan> {
    let paths = paths(&arguments.paths)?;
    check_drop_oldest(arguments, &paths)?;
    let unit_bytes = unit_bytes(arguments, paths.len())?;
    let datagram_bytes = arguments.datagram_bytes.map(|bytes| within(bytes, 1200, 65_507, "--datagram-bytes")).transpose()?;
    let (window_units, segment_bytes) = window_and_segment(arguments, unit_bytes)?;
    let segment_units = u32::try_from(segment_bytes.div_ceil(u64::from(unit_bytes))).unwrap_or(u32::MAX);
    let contract = Contract {
        unit_bytes,
        tolerance: arguments.tolerance.of_segments(segment_units).map_err(usage::bad)?,
        order: match arguments.order {
            OrderArgument::InOrder => Order::InOrder,
            OrderArgument::AsAccepted => Order::AsAccepted,
        },
        lifetime: arguments.lifetime.unwrap_or(Duration::ZERO),
        interleave: arguments.interleave,
        window_units,
        window_segments: window_units.min(WINDOW_SEGMENTS_MAX),
        ..Contract::default()
    };
    contract.validate().map_err(|error| usage::bad(error.to_string()))?;
    check_limits(arguments, datagram_bytes.unwrap_or(1200))?;
    check_error_control(arguments)?;
    let remote = address::of_host(&arguments.address)?;
    let rate = rate(arguments);
    let changes = changes(arguments, rate)?;
    check_congestion(arguments, rate, &changes)?;
    let receiver = Receiver::of(arguments, remote)?;
    let config = Config {
        rate,
        class: arguments.class,
        datagram_bytes: datagram_bytes.map_or(DatagramSize::Discover, |bytes| DatagramSize::Fixed(bytes as usize)),
        unlimited: arguments.unlimited,
        idle_timeout: arguments.idle_timeout.into(),
        connect_timeout: arguments.idle_timeout.into(),
        ..Config::default()
    };
    let builder = receiver.builder.clone().config(config);
    let segment_bytes = usize::try_from(segment_bytes).unwrap_or(usize::MAX);
    Ok(Plan {
        receiver,
        paths,
        builder,
        contract,
        segment_bytes,
        segment_wait: arguments.segment_wait,
        drops_oldest: arguments.drop_oldest,
        changes,
        stats: arguments.stats,
    })
}

/// The window in units and the length of segments, which fit the window.
fn window_and_segment(arguments: &Arguments, unit_bytes: u32) -> Result<(u32, u64)> {
    let window_units = u32::try_from(arguments.window.get() / u64::from(unit_bytes)).unwrap_or(u32::MAX);
    if !(1..=SEGMENT_UNITS_MAX).contains(&window_units) {
        let most = Bytes::new(u64::from(unit_bytes) * u64::from(SEGMENT_UNITS_MAX));
        return Err(usage::bad(format!(
            "--window {} holds {window_units} units of {unit_bytes} bytes; give from 1 unit up to {most}",
            arguments.window
        )));
    }
    let window_bytes = u64::from(window_units) * u64::from(unit_bytes);
    let segment_bytes = arguments.segment_bytes.map_or(SEGMENT_BYTES.min(window_bytes), Bytes::get);
    if segment_bytes > window_bytes {
        let segment = Bytes::new(segment_bytes);
        return Err(usage::bad(format!(
            "segments of {segment} do not fit a window of {}; raise --window or lower --segment-bytes",
            arguments.window
        )));
    }
    Ok((window_units, segment_bytes))
}

/// The size of units, which fit the smallest datagram with the seal, the window and the number of files in use.
fn unit_bytes(arguments: &Arguments, files: usize) -> Result<u32> {
    let given = u32::try_from(arguments.unit_bytes.get()).unwrap_or(u32::MAX).clamp(1, UNIT_BYTES_MAX);
    let window_units = u32::try_from(arguments.window.get() / u64::from(given)).unwrap_or(u32::MAX);
    let contract = Contract { window_units, ..Contract::default() };
    let builder = if arguments.protection.is_insecure() { Endpoint::builder().insecure() } else { Endpoint::builder() };
    // The manifest's stream goes before those of the files.
    let most = builder.unit_bytes_max(StreamId(files.max(1) as u32), &contract);
    Ok(within(arguments.unit_bytes, 1, u64::from(most), "--unit-bytes")? as u32)
}

/// An error of the parser, which names the flag of ours where the name that other transports have for it was given.
pub(crate) fn explained(mut error: clap::Error) -> clap::Error {
    if error.kind() != ErrorKind::UnknownArgument || std::env::args().nth(1).as_deref() != Some("send") {
        return error;
    }
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else { return error };
    let ours = match flag.split('=').next() {
        Some("--latency" | "--ttl") => "--lifetime",
        Some("--bitrate" | "--bandwidth" | "--maxbw") => "--rate",
        Some("--mtu" | "--mss") => "--datagram-bytes",
        Some("--passphrase" | "--password") => "--code",
        Some("--timeout") => "--idle-timeout",
        _ => return error,
    };
    error.insert(ContextKind::SuggestedArg, ContextValue::String(ours.to_owned()));
    // Why: it would show the flag that the parser has guessed.
    error.remove(ContextKind::Usage);
    error
}

/// The rate at first. Without rate control there is none unless it is asked for.
fn rate(arguments: &Arguments) -> Rate {
    under(arguments, arguments.rate.unwrap_or(if arguments.class.rate_control() { Rate::AUTO } else { Rate::Unpaced }))
}

/// The rate with the congestion control that was asked for.
fn under(arguments: &Arguments, rate: Rate) -> Rate {
    arguments.congestion.map_or(rate, |congestion| rate.under(congestion))
}

fn check_congestion(arguments: &Arguments, first: Rate, changes: &[ScheduledChange]) -> Result<()> {
    let is_used = first.is_auto() || changes.iter().filter_map(|change| change.rate).any(|rate| rate.is_auto());
    match arguments.congestion {
        Some(congestion) if !is_used => Err(usage::bad(format!(
            "--congestion {} applies to a congestion-controlled rate only; leave it out, or give --rate auto",
            congestion.name
        ))),
        _ => Ok(()),
    }
}

/// The changes in the order of time. Whatever is in force at any time goes together.
fn changes(arguments: &Arguments, first: Rate) -> Result<Vec<ScheduledChange>> {
    let (mut rate, mut class) = (first, arguments.class);
    rate.check(class).map_err(|error| usage::bad(error.to_string()))?;
    let mut changes = arguments.at.clone();
    changes.sort_by_key(|change| change.at);
    for change in &mut changes {
        class = change.class.unwrap_or(class);
        if rate == Rate::Unpaced && class.rate_control() {
            // Nobody has asked for a rate before there was rate control.
            change.rate.get_or_insert(Rate::AUTO);
        }
        change.rate = change.rate.map(|rate| under(arguments, rate));
        rate = change.rate.unwrap_or(rate);
        rate.check(class).map_err(|error| usage::bad(format!("after {}: {error}", change.at)))?;
    }
    Ok(changes)
}

/// A file waits for the network: dropping what it has would only destroy it.
fn check_drop_oldest(arguments: &Arguments, paths: &[PathBuf]) -> Result<()> {
    match paths.iter().find(|path| arguments.drop_oldest && path.is_file()) {
        Some(path) => Err(usage::bad(format!(
            "--drop-oldest is for a live source, and {} is a file, which can wait; leave the flag out, or give a pipe or -",
            path.display()
        ))),
        None => Ok(()),
    }
}

fn check_idle_timeout(arguments: &Arguments) -> Result<()> {
    if arguments.idle_timeout < Duration::from_secs(1) {
        return Err(usage::bad(format!("--idle-timeout {} is too short; give at least 1s", arguments.idle_timeout)));
    }
    Ok(())
}

fn check_limits(arguments: &Arguments, datagram_bytes: u64) -> Result<()> {
    check_idle_timeout(arguments)?;
    let classes = arguments.at.iter().filter_map(|change| change.class).chain([arguments.class]);
    for class in classes.filter(|class| !class.is_limited(true)) {
        if !arguments.unlimited {
            return Err(usage::bad(format!(
                "class {class} has neither flow control (2) nor rate control (1); add one of them, or permit this with --unlimited"
            )));
        }
    }
    let rates = arguments.at.iter().filter_map(|change| change.rate).chain(arguments.rate);
    for rate in rates {
        let Rate::Fixed(rate) = rate else { continue };
        rate.check(Bytes::new(datagram_bytes + HEADER_BYTES)).map_err(|error| usage::bad(error.to_string()))?;
    }
    Ok(())
}

/// Without error control nothing that is lost is sent again, so segments with a hole expire under full reliability: a
/// contradiction when that was asked for, a note when it is the default.
fn check_error_control(arguments: &Arguments) -> Result<()> {
    let class = arguments.class;
    if class.error_control() || arguments.tolerance != ToleranceArgument::Reliable {
        return Ok(());
    }
    if arguments.given.has("tolerance") {
        return Err(usage::bad(format!(
            "--class {class} and --tolerance reliable contradict each other: without error control (4) nothing that is lost is retransmitted; \
             add 4 to the class, or give --tolerance any to have segments delivered with holes"
        )));
    }
    eprintln!(
        "note: class {class} has no error control (4), so nothing that is lost is retransmitted, and a segment with a hole expires; give \
         --tolerance any to have it delivered"
    );
    Ok(())
}

/// The value of a flag, if it lies in its range.
fn within(value: Bytes, least: u64, most: u64, flag: &str) -> Result<u64> {
    if (least..=most).contains(&value.get()) {
        return Ok(value.get());
    }
    Err(usage::bad(format!("{flag} {} is not possible; give {least} to {most}", value.get())))
}

/// The files to send; none for standard input.
fn paths(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    if paths.iter().any(|path| path.as_os_str() == "-") {
        return match paths {
            [_] => Ok(Vec::new()),
            _ => Err(usage::bad("- (standard input) cannot be combined with files; give either - or files")),
        };
    }
    if paths.len() > FILES_MAX {
        return Err(usage::bad(format!(
            "one transfer carries at most {FILES_MAX} files and {} were given; send fewer, or an archive",
            paths.len()
        )));
    }
    let mut names = BTreeSet::new();
    for path in paths {
        if path.is_dir() {
            return Err(usage::bad(format!(
                "{} is a directory; give the files in it, or send an archive: tar c {0} | segstream send ADDR -",
                path.display()
            )));
        }
        if !names.insert(name(path)) {
            return Err(usage::bad(format!(
                "two files are called {}, and the receiver keeps files by their names; send them in two transfers",
                name(path)
            )));
        }
    }
    Ok(paths.to_vec())
}

/// The name a file has at the receiver: the last part of its path.
fn name(path: &Path) -> String {
    path.file_name().map_or_else(|| path.to_string_lossy(), |name| name.to_string_lossy()).into_owned()
}
