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
use crate::protection::Protection;
use crate::tolerance_argument::ToleranceArgument;
use crate::{json, quantity, usage};
use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum};
use scheduled_change::ScheduledChange;
use scheme::SchemeArguments;
use segstream::blocking::Endpoint;
use segstream::{Class, Config, Contract, DatagramSize, Duration, InterleaveChoice, Limits, Order, Rate};
use segstream_base::Bytes;
use segstream_wire::contract::{SEGMENT_UNITS_MAX, UNIT_BYTES_MAX};
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _};
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
/// The transfer is encrypted, and both ends prove who they are: the receiver by the fingerprint that `recv` prints, we by
/// a one-time code, a key that is allowed there, or a certificate. Succeeds when every segment arrived completely or within its tolerance and, where both ends could compute the hash
/// of the content, it agreed. Files are read as they are sent; one that cannot be read harms no other.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  segstream send 192.0.2.1:4433 a.bin b.bin --peer SHA256:... --code k7qm-2xnp-9wdt-4rfh\n  \
                        segstream send 192.0.2.1:4433 c.bin\n  camera | segstream send 192.0.2.1:4433 - --rate auto:peak=50mbit --tolerance \
                        1024,5,1 --lifetime 200ms\n\nThe first is as `recv` prints it, with the files in place of PATH. From then on the receiver is known, and our \
                        identity can be allowed there with --allow.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    given: Given,
    /// The receiver, as `recv` prints it, such as 192.0.2.1:4433 or host:4433.
    #[arg(value_name = "ADDR")]
    address: String,
    /// Files, or - for standard input.
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// What may be missing of a segment: reliable, any, E,B (of the segment at most E units, at most B in a row) or
    /// W,E,B (of every W units).
    #[arg(long, value_name = "T", default_value = "reliable", allow_hyphen_values = true)]
    tolerance: ToleranceArgument,
    /// The size of a unit, 1 to 1160 with --insecure and to 1148 without. A window of more than 16384 units, or more than 63 files,
    /// leave a few bytes less.
    #[arg(long, value_name = "N", default_value = "1024", value_parser = quantity::positive_bytes)]
    unit_bytes: Bytes,
    /// The longest segment [default: 256KiB, or the window if that is smaller].
    #[arg(long, value_name = "N", value_parser = quantity::positive_bytes)]
    segment_bytes: Option<Bytes>,
    /// A segment from a pipe leaves when it is full, or so long after its first byte came.
    #[arg(long, value_name = "T", default_value = "20ms", value_parser = quantity::duration)]
    segment_wait: Duration,
    /// The size of datagrams, 1200 to 65507 [default: 1200, and more where the path is found to carry it].
    #[arg(long, value_name = "N", value_parser = quantity::positive_bytes)]
    datagram_bytes: Option<Bytes>,
    /// The rate, counted in whole IP packets: auto, found as it goes and shared with others; auto:floor=1mbit,peak=50mbit
    /// within bounds; or fixed, for a path of one's own: the peak P, or P,F,L for F bursts a second of L shipments
    /// [default: auto].
    #[arg(long, value_name = "auto|P[,F,L]", value_parser = argument::rate)]
    rate: Option<Rate>,
    /// The receiver's buffer for a file. At least (rounds of repair + 2) bandwidth-delay products, or the sender waits
    /// for repairs: 16MiB is enough for 100mbit over 60ms at a loss of 10 % many times.
    #[arg(long, value_name = "BYTES", default_value = "16MiB", value_parser = quantity::positive_bytes)]
    window: Bytes,
    /// Error control 4 + flow control 2 + rate control 1.
    #[arg(long, value_name = "N", default_value = "7", value_parser = scheduled_change::class)]
    class: Class,
    /// Segments older than this are given up, counted from when they were read [default: never].
    #[arg(long, value_name = "T", value_parser = quantity::positive_duration)]
    lifetime: Option<Duration>,
    /// In which order the receiver hands over segments.
    #[arg(long, value_name = "ORDER", value_enum, default_value_t = OrderArgument::InOrder)]
    order: OrderArgument,
    /// Whether neighbouring units leave apart from each other: auto (as the tolerance needs it), off, or in blocks of N.
    #[arg(long, value_name = "auto|off|N", default_value = "auto", value_parser = argument::interleave)]
    interleave: InterleaveChoice,
    /// Allows a class with neither flow control nor rate control, which can flood a network.
    #[arg(long)]
    unlimited: bool,
    /// The receiver is given up when nothing has come from it for so long; at least 1s.
    #[arg(long, value_name = "T", default_value = "10s", value_parser = quantity::positive_duration)]
    idle_timeout: Duration,
    /// Changes rate or class while data flows, such as 5s:rate=40mbit,class=5 or 9s:rate=auto; may be given several times.
    #[arg(long, value_name = "T:CHANGES")]
    at: Vec<ScheduledChange>,
    /// Prints a line of statistics as JSON on standard error once in this time.
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
    config: Config,
    /// The contract of every file's stream, but for its label.
    contract: Contract,
    segment_bytes: usize,
    segment_wait: Duration,
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
    arguments.protection.tell();
    let any =
        if plan.receiver.peer.address.is_ipv4() { SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)) } else { (Ipv6Addr::UNSPECIFIED, 0).into() };
    let endpoint = Endpoint::bind(any, plan.config.clone())?;
    for warning in endpoint.warnings() {
        eprintln!("{warning}");
    }
    let interruption = Interruption::listen(Some(endpoint.waker()))?;
    let report = Transfer::new(endpoint, plan, interruption).run()?;
    eprintln!("{}", report.sentence_of_sender());
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
    let unit_bytes = within(arguments.unit_bytes, 1, u64::from(UNIT_BYTES_MAX), "--unit-bytes")? as u32;
    let datagram_bytes = arguments.datagram_bytes.map(|bytes| within(bytes, 1200, 65_507, "--datagram-bytes")).transpose()?;
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
    let remote = remote(&arguments.address)?;
    let rate = rate(arguments);
    let changes = changes(arguments, rate)?;
    let receiver = Receiver::of(arguments, remote)?;
    let config = Config {
        security: receiver.security.clone(),
        rate,
        class: arguments.class,
        datagram_bytes: datagram_bytes.map_or(DatagramSize::Discover, |bytes| DatagramSize::Fixed(bytes as usize)),
        unlimited: arguments.unlimited,
        idle_timeout: arguments.idle_timeout,
        connect_timeout: arguments.idle_timeout,
        ..Config::default()
    };
    // The manifest's stream goes before those of the files.
    let last_stream = paths.len().max(1) as u32;
    within(arguments.unit_bytes, 1, u64::from(config.unit_bytes_max(last_stream, &contract)), "--unit-bytes")?;
    let segment_bytes = usize::try_from(segment_bytes).unwrap_or(usize::MAX);
    Ok(Plan { receiver, paths, config, contract, segment_bytes, segment_wait: arguments.segment_wait, changes, stats: arguments.stats })
}

/// The rate at first. Without rate control there is none unless it is asked for.
fn rate(arguments: &Arguments) -> Rate {
    arguments.rate.unwrap_or(if arguments.class.rate_control() { Rate::AUTO } else { Rate::Unpaced })
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
        rate = change.rate.unwrap_or(rate);
        rate.check(class).map_err(|error| usage::bad(format!("after {}: {error}", change.at)))?;
    }
    Ok(changes)
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
                "class {class} has neither flow control (2) nor rate control (1); add one of them, or allow it with --unlimited"
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
            _ => Err(usage::bad("- stands for standard input and is sent alone; give it or files, not both")),
        };
    }
    // One stream of the peer's limit is the manifest's.
    let most = Limits::default().streams as usize - 1;
    if paths.len() > most {
        return Err(usage::bad(format!("{} files are more than one transfer carries; send at most {most}, or an archive", paths.len())));
    }
    let mut names = BTreeSet::new();
    for path in paths {
        if path.is_dir() {
            return Err(usage::bad(format!(
                "{} is a directory; name the files in it, or send an archive: tar c {0} | segstream send ADDR -",
                path.display()
            )));
        }
        if !names.insert(name(path)) {
            return Err(usage::bad(format!("two files are called {}; send them in two transfers", name(path))));
        }
    }
    Ok(paths.to_vec())
}

/// The name a file has at the receiver: the last part of its path.
fn name(path: &Path) -> String {
    path.file_name().map_or_else(|| path.to_string_lossy(), |name| name.to_string_lossy()).into_owned()
}

fn remote(text: &str) -> Result<SocketAddr> {
    let malformed = || usage::bad(format!("\"{text}\" is not an address; write host:port, such as 192.0.2.1:4433 or [2001:db8::1]:4433"));
    let (host, port) = text.rsplit_once(':').ok_or_else(malformed)?;
    let port: u16 = port.parse().map_err(|_| malformed())?;
    if host.is_empty() || port == 0 {
        return Err(malformed());
    }
    let mut found = text.to_socket_addrs().with_context(|| format!("the address of {host} cannot be found; check its name"))?;
    let remote = found.next().with_context(|| format!("{host} has no address"))?;
    if remote.ip().is_unspecified() {
        return Err(usage::bad(format!("nothing can be sent to {remote}; name the address of a host")));
    }
    Ok(remote)
}
