//! `segstream send`: files or standard input, as segments, to a receiver.
//!
//! - [`argument`] and [`scheduled_change`]: arguments that need a parser of their own;
//! - [`walk`] and [`exclusion`]: what is sent of what was named; [`source`]: where the bytes come from;
//! - [`outgoing`]: the files that are not settled;
//! - [`file_queue`]: submits files as streams and segments, as the send buffer drains;
//! - [`trust`]: which receivers are trusted;
//! - [`transfer`]: the loop around the connection;
//! - [`scheme`]: the same with another scheme.
//!
//! Called from the command line.
//!
//! Invariant: contradictions on the command line are refused before a socket is opened.

mod argument;
mod exclusion;
mod file_queue;
mod known_capacities;
mod outgoing;
mod scheduled_change;
mod scheme;
mod segment_record;
mod source;
mod transfer;
mod trust;
mod walk;

use crate::explicit_flags::ExplicitFlags;
use crate::interruption::{Interruption, Shutdown, ShutdownArgument};
use crate::live_statistics::{StatsArguments, StatsLines};
use crate::metrics_server::MetricsArgument;
use crate::protection::Protection;
use crate::recording::QlogArgument;
use crate::segment_lines::SegmentLines;
use crate::tolerance_argument::ToleranceArgument;
use crate::{address, json, quantity, usage};
use anyhow::Result;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgAction, Args, ValueEnum};
use exclusion::Exclusions;
use scheduled_change::ScheduledChange;
use scheme::SchemeArguments;
use segstream::blocking::Endpoint;
use segstream::{Algorithm, Builder, Class, Clock, Coding, Config, Contract, DatagramSize, InterleaveChoice, Order, Rate, StreamId};
use segstream_base::{Bytes, Duration};
use segstream_wire::contract::{SEGMENT_UNITS_MAX, UNIT_BYTES_MAX};
use segstream_wire::repair::PROTECTED_MAX;
use std::collections::BTreeSet;
use std::io::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use transfer::Transfer;
use trust::{Receiver, TrustArguments};
use walk::{Found, Walk, name};

/// The default segment size, if the window allows it.
const SEGMENT_BYTES: u64 = 256 * 1024;
/// The size of units that only have to fill datagrams. Three fit the smallest one (1200 bytes), four what is left of 1492 bytes with IPv6
/// and PPPoE, where units of 1024 bytes leave a quarter of each packet empty.
const FILLING_UNIT_BYTES: u32 = 344;
/// IP and UDP headers in front of a datagram on IPv4.
const HEADER_BYTES: u64 = 28;
/// Segments in the window, at most.
const WINDOW_SEGMENTS_MAX: u32 = 65_536;

/// Sends files under their own names, directories with all that is in them, or standard input.
///
/// A file that the receiver has with the same content is not sent again. Interrupted at either end, the same command goes on where it
/// was.
///
/// The transfer is encrypted, and both ends authenticate each other. The receiver is known by the fingerprint that `recv`
/// prints. The sender is known by a one-time code, by a key that the receiver allows, or by a certificate.
///
/// The exit status is 0 when every segment arrived completely or within its tolerance, and the content hashes of both ends
/// agree wherever both could compute one. A file that cannot be read does not stop the others.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  segstream send 192.0.2.1:4433 a.bin b.bin --peer SHA256:... --code\n  \
                        segstream send 192.0.2.1:4433 c.bin\n  camera | segstream send 192.0.2.1:4433 - --rate auto:peak=50mbit --tolerance \
                        1024,5,1 --lifetime 200ms\n\n`recv` prints the first line; put the files in place of PATH. After it the receiver is remembered, and the \
                        receiver can allow this sender's key with --allow.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    explicit: ExplicitFlags,
    /// The receiver, as `recv` prints it, such as 192.0.2.1:4433 or host:4433.
    #[arg(value_name = "ADDR")]
    address: String,
    /// Files and directories, or - for standard input.
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,
    /// What is left out of directories: a name such as *.o, or a path from the directory on such as photos/raw/*; can be repeated.
    #[arg(long, value_name = "PATTERN")]
    exclude: Vec<String>,
    /// Symbolic links in directories are sent as links. Without it they are left out; they are never followed.
    #[arg(long)]
    links: bool,
    /// Lists what would be offered to the receiver, and sends nothing.
    #[arg(long)]
    dry_run: bool,
    /// How many units of a segment may be missing: reliable (none), any (all), E,B (at most E units of the segment, at most
    /// B of them in a row) or W,E,B (the same for every W units).
    #[arg(long, value_name = "T", default_value = "reliable", allow_hyphen_values = true)]
    tolerance: ToleranceArgument,
    /// The size of a unit in bytes, 1 to 1148 (1160 with --insecure) [default: 344 if nothing may be missing, so that units
    /// fill datagrams of any size; 1024 with another --tolerance, or if a segment has more than 1024 units of 344 bytes]. The
    /// limit is a few bytes lower with a window of more than 16384 units or with more than 63 files.
    #[arg(long, value_name = "N", value_parser = quantity::positive_bytes)]
    unit_bytes: Option<Bytes>,
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
    /// auto:floor=1mbit,peak=50mbit: the same within bounds; auto:start=8mbit: the same for a live source of that rate,
    /// which the stream has from the beginning, and holds beside other flows up to half of the path. P: a fixed rate, for a
    /// path that nobody else uses. P,F,L: a fixed rate in bursts, F bursts per second of L datagrams each, sent at the rate P
    /// within a burst [default: auto].
    #[arg(long, value_name = "auto|P[,F,L]", value_parser = argument::rate)]
    rate: Option<Rate>,
    /// The congestion control of --rate auto. auto: keeps queues short, and holds its share beside flows that fill them.
    /// cubic: CUBIC (RFC 9438), paced; fills the queue until it drops or marks. bbr: BBR version 3; a model of bandwidth and
    /// round trip, bears 1 to 2 % of loss. prague: for L4S (RFC 9330); sends ECT(1), and queues that mark it early (DualPI2)
    /// stay at a millisecond; elsewhere as Reno [default: auto].
    #[arg(long, value_name = "NAME", value_parser = argument::congestion)]
    congestion: Option<&'static Algorithm>,
    /// Whether an automatic rate begins with half of the capacity that the last transfer to ADDR found in the last hour, if the round trip
    /// is alike (Careful Resume, RFC 9959). It is stored in known_capacities beside the known receivers, not with --insecure or
    /// --authority.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set)]
    careful_resume: bool,
    /// What is done with repair units, any of which stands for any unit that is missing. off: what is lost is sent again, unit by unit.
    /// hedged: what is asked for again is answered by repair units, a few more where much is lost, so that a second round is rare.
    /// auto:latency=80ms,budget=10%: also ahead of any loss, where a round of retransmission would miss the latency, as many as the tolerance
    /// and the measured loss ask for, and no more than the budget. Ignored if the receiver does not know repair units.
    #[arg(long, value_name = "CODING", default_value = "hedged")]
    coding: Coding,
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
    /// For measurements: takes the time of day, by which senders drain queues together, to be so much later than the system says.
    #[arg(long, value_name = "T", value_parser = quantity::duration, hide = true)]
    clock_ahead: Option<Duration>,
    /// Writes the verdict on each segment to this file as it comes, one line of JSON a segment: holes, and the time from the source to the
    /// verdict.
    #[arg(long, value_name = "FILE")]
    segments_json: Option<PathBuf>,
    #[command(flatten)]
    stats: StatsArguments,
    /// Prints one JSON object on standard output.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    metrics: MetricsArgument,
    #[command(flatten)]
    shutdown: ShutdownArgument,
    #[command(flatten)]
    qlog: QlogArgument,
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

/// What to send, and how; checked for contradictions.
#[derive(Debug)]
struct Plan {
    receiver: Receiver,
    /// Files and directories, or nothing for standard input.
    paths: Vec<PathBuf>,
    exclusions: Exclusions,
    links: bool,
    /// Whether every byte arrives, whenever: small files can travel in packs.
    is_reliable: bool,
    builder: Builder<Endpoint>,
    /// The contract of every file's stream, but for its label.
    contract: Contract,
    segment_bytes: usize,
    segment_wait: Duration,
    /// Whether the oldest unsent segments make room when the send buffer is full.
    drops_oldest: bool,
    changes: Vec<ScheduledChange>,
    /// Whether what the last transfer found is used.
    careful_resume: bool,
    stats: StatsLines,
}

/// Runs the verb.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    trust::check(arguments)?;
    if let Some(scheme) = arguments.scheme.scheme() {
        return scheme::run(arguments, scheme);
    }
    arguments.explicit.refuse(scheme::WITH_SCHEME, "without --scheme, or with --scheme segstream")?;
    let plan = plan(arguments)?;
    let segments = arguments.segments_json.as_deref().map(SegmentLines::create).transpose()?;
    if arguments.dry_run {
        return plan.list();
    }
    address::check_route(plan.receiver.peer.address)?;
    arguments.protection.tell();
    let any =
        if plan.receiver.peer.address.is_ipv4() { SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)) } else { (Ipv6Addr::UNSPECIFIED, 0).into() };
    let (builder, metrics) = arguments.metrics.serve(plan.builder.clone())?;
    let (builder, recording) = arguments.qlog.start(None, builder)?;
    let clock = Clock::start().ahead_by(arguments.clock_ahead.unwrap_or(Duration::ZERO).into());
    let endpoint = builder.clock(clock).bind(any)?;
    let interruption = Interruption::listen_for_shutdown(endpoint.waker(), metrics.shutdown.clone())?;
    if let Some(told) = &metrics.told {
        eprintln!("{told}");
    }
    for warning in endpoint.warnings() {
        eprintln!("{warning}");
    }
    let shutdown = Shutdown::of(&interruption, arguments.shutdown);
    let report = Transfer::new(endpoint, plan, segments, (interruption, shutdown)).run()?;
    recording.finish();
    if let Some(sentence) = report.sentence_of_sender() {
        eprintln!("{sentence}");
    }
    if arguments.json {
        json::print(&report)?;
    }
    if let Some(error) = report.untold_error() {
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
        lifetime: arguments.lifetime.unwrap_or(Duration::ZERO).into(),
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
        careful_resume: arguments.careful_resume,
        coding: arguments.coding,
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
        exclusions: Exclusions::new(&arguments.exclude).map_err(usage::bad)?,
        links: arguments.links,
        is_reliable: contract.tolerance.is_reliable()
            && arguments.lifetime.is_none()
            && arguments.class.error_control()
            && changes.iter().filter_map(|change| change.class).all(Class::error_control),
        paths,
        builder,
        contract,
        segment_bytes,
        segment_wait: arguments.segment_wait,
        drops_oldest: arguments.drop_oldest,
        changes,
        careful_resume: arguments.careful_resume && rate.is_auto(),
        stats: arguments.stats.start()?,
    })
}

impl Plan {
    /// The walk through what is to be sent.
    fn walk(&self) -> Walk {
        Walk::new(self.paths.clone(), self.exclusions.clone(), self.links)
    }

    /// Lists what would be offered.
    fn list(&self) -> Result<ExitCode> {
        let mut out = std::io::stdout().lock();
        let (mut files, mut bytes, mut code) = (0u64, 0u64, ExitCode::SUCCESS);
        for found in self.walk() {
            match found {
                Found::Item(item) => {
                    files += 1;
                    bytes += item.bytes.unwrap_or(0);
                    writeln!(out, "{}", item.line())?;
                }
                Found::LeftOut(sentence) => eprintln!("note: {sentence}"),
                Found::Failed(_, sentence) => {
                    eprintln!("segstream: {sentence}");
                    code = ExitCode::FAILURE;
                }
            }
        }
        eprintln!("{files} files and directories, {bytes} bytes would be offered to {}", self.receiver.peer.address);
        Ok(code)
    }
}

/// The window in units and the length of segments, which fit the window.
fn window_and_segment(arguments: &Arguments, unit_bytes: u32) -> Result<(u32, u64)> {
    let window_units = u32::try_from(arguments.window.get() / u64::from(unit_bytes)).unwrap_or(u32::MAX);
    if !(1..=SEGMENT_UNITS_MAX).contains(&window_units) {
        let most = Bytes::new(u64::from(unit_bytes) * u64::from(SEGMENT_UNITS_MAX));
        return Err(usage::bad(format!(
            "--window {} holds {window_units} units of {unit_bytes} bytes; give at least one unit and at most {most}",
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
    let Some(asked) = arguments.unit_bytes else { return Ok(default_unit_bytes(arguments)) };
    let given = u32::try_from(asked.get()).unwrap_or(u32::MAX).clamp(1, UNIT_BYTES_MAX);
    let window_units = u32::try_from(arguments.window.get() / u64::from(given)).unwrap_or(u32::MAX);
    let contract = Contract { window_units, ..Contract::default() };
    let builder = if arguments.protection.is_insecure() { Endpoint::builder().insecure() } else { Endpoint::builder() };
    // The manifest's stream goes before those of the files.
    let most = builder.unit_bytes_max(StreamId(files.max(1) as u32), &contract);
    Ok(within(asked, 1, u64::from(most), "--unit-bytes")? as u32)
}

/// The size of units where the user gives none. Where a segment is used whole or not at all, nobody sees its units.
fn default_unit_bytes(arguments: &Arguments) -> u32 {
    let segment_bytes = arguments.segment_bytes.map_or(SEGMENT_BYTES, Bytes::get);
    let can_be_coded = segment_bytes.div_ceil(u64::from(FILLING_UNIT_BYTES)) <= u64::from(PROTECTED_MAX);
    let is_whole = arguments.tolerance == ToleranceArgument::Reliable;
    if is_whole && can_be_coded { FILLING_UNIT_BYTES } else { Contract::default().unit_bytes }
}

/// An error of the parser. Where the user wrote the name that other transports give a flag, it names ours.
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

/// The initial rate. Without rate control there is none unless the user asks for it.
fn rate(arguments: &Arguments) -> Rate {
    under(arguments, arguments.rate.unwrap_or(if arguments.class.rate_control() { Rate::AUTO } else { Rate::Unpaced }))
}

/// The rate with the congestion control of `--congestion`.
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

/// The changes in the order of time, checked: the settings in force at any time do not contradict each other.
fn changes(arguments: &Arguments, first: Rate) -> Result<Vec<ScheduledChange>> {
    let (mut rate, mut class) = (first, arguments.class);
    rate.check(class).map_err(|error| usage::bad(error.to_string()))?;
    let mut changes = arguments.at.clone();
    changes.sort_by_key(|change| change.at);
    for change in &mut changes {
        class = change.class.unwrap_or(class);
        if rate == Rate::Unpaced && class.rate_control() {
            // Without rate control before, the user had asked for no rate.
            change.rate.get_or_insert(Rate::AUTO);
        }
        change.rate = change.rate.map(|rate| under(arguments, rate));
        rate = change.rate.unwrap_or(rate);
        rate.check(class).map_err(|error| usage::bad(format!("after {}: {error}", change.at)))?;
    }
    Ok(changes)
}

/// Refuses drop-oldest for files: a file can wait for the network, and dropping would only destroy data.
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
    if arguments.explicit.has("tolerance") {
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
    let mut names = BTreeSet::new();
    for path in paths {
        if !names.insert(name(path)) {
            return Err(usage::bad(format!(
                "two files are called {}, and the receiver keeps files by their names; send them in two transfers",
                name(path)
            )));
        }
    }
    Ok(paths.to_vec())
}
