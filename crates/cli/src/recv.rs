//! `segstream recv`: what a sender sends, into a file, a directory or a pipe.
//!
//! - [`sender_admission`]: which senders are admitted, and the command printed for them;
//! - [`pairing`]: senders that are remembered;
//! - [`receiving`]: the loop around the endpoint and its connections;
//! - [`incoming`]: one connection: its streams, the records about them, their results;
//! - [`offers`] and [`checks`]: what the sender has, and what is wanted of it;
//! - [`writer`], [`sink`], [`storage`], [`file_name`]: where bytes go;
//! - [`segment_record`]: a line for each segment;
//! - [`scheme`]: the same with another scheme.
//!
//! Called from the command line.
//!
//! Invariant: what a peer sends never leaves the output directory, follows no link and overwrites nothing but what --overwrite names.

mod checks;
mod file_name;
mod incoming;
mod offers;
mod open_streams;
mod pairing;
mod receiving;
mod scheme;
mod segment_record;
mod sender_admission;
mod sink;
mod storage;
mod writer;

use crate::explicit_flags::ExplicitFlags;
use crate::interruption::{Interruption, Shutdown, ShutdownArgument};
use crate::live_statistics::StatsArguments;
use crate::metrics_server::MetricsArgument;
use crate::protection::Protection;
use crate::recording::QlogArgument;
use crate::segment_lines::SegmentLines;
use crate::{address, quantity, sim};
use anyhow::{Context as _, Result, bail};
use checks::Overwrite;
use clap::{Args, ValueEnum};
use receiving::Receiving;
use segstream::Config;
use segstream_base::Bytes;
use segstream_lab::registry;
use sender_admission::{AdmissionArguments, SenderAdmission};
use sink::Device;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use storage::Durability;

/// The most bytes that one connection may write with --allow-anyone.
const STRANGERS_BYTES_MAX: Bytes = Bytes::new(1 << 30);

/// Receives files or a pipe from a sender.
///
/// Ends after one connection, unless --keep is given. The first line of standard error is the address it listens on; then
/// come the fingerprint of its key and the command that sends to it.
///
/// The transfer is encrypted. Only senders that were named are served: by key (--allow), as remembered (--known), by authority, or by
/// the one-time code that is printed when none of these is given. A file is called NAME.part until it is complete, or
/// NAME.TOKEN.part where another transfer has left NAME.part; beside it is NAME.part.journal, by which an interrupted transfer goes on
/// where it was. Without --out the data is counted and discarded.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  segstream recv --listen 0.0.0.0:4433 --out copies/\n  segstream recv --listen 0.0.0.0:4433 --out copies/ \
                        --keep --allow SHA256:... --max-bytes 2GiB\n  segstream recv --listen 127.0.0.1:0 --out - | player"
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    explicit: ExplicitFlags,
    /// The address to listen on; port 0 selects a free port.
    #[arg(long, value_name = "ADDR", value_parser = address::numeric)]
    listen: SocketAddr,
    /// Where to write: an existing directory, where files keep the sender's names; the name of a new file; a device or
    /// FIFO; or - for standard output.
    #[arg(long, value_name = "PATH|DIR|-")]
    out: Option<PathBuf>,
    /// Which files in the directory of --out give way to others of their names. never: none, and one that differs is an error; newer:
    /// those that were changed before the sender's; always: all. What has the same content is not sent again.
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = Overwrite::Never)]
    overwrite: Overwrite,
    /// Accepts names that begin with a dot. Without it they are refused: a sender could write files that programs obey.
    #[arg(long)]
    hidden: bool,
    /// The most bytes that one connection may write to --out. Files above it are refused by name, a pipe is broken off and what came
    /// stays in the .part file [default: 1GiB with --allow-anyone, otherwise no limit].
    #[arg(long, value_name = "BYTES", value_parser = quantity::positive_bytes)]
    max_bytes: Option<Bytes>,
    /// What is on disk before a file gets its name and the sender is told that it is whole. none: whatever the system has
    /// written; file: its bytes; directory: also its name.
    #[arg(long, value_name = "HOW", value_enum, default_value_t = Durability::Directory)]
    durability: Durability,
    /// Serves connections, several at a time, until it is interrupted.
    #[arg(long)]
    keep: bool,
    /// Receives one transfer with another protocol from the papers: sstp, snr, htpnet, tcp, adaptive-ack, sscop or xtp. For
    /// laboratories; needs --insecure, and the same --scheme at the sender, which sets everything else. --out is a file or -.
    /// Cannot be combined with --keep, --max-bytes, --segments-json and --stats.
    #[arg(long, value_name = "KEY", value_parser = sim::scheme)]
    scheme: Option<String>,
    /// What is written for missing units: zeros, or nothing.
    #[arg(long, value_name = "HOW", value_enum, default_value_t = Holes::Zero)]
    holes: Holes,
    /// Writes tolerance, holes, verdict and delay of each segment to this file, one line of JSON a segment.
    #[arg(long, value_name = "FILE")]
    segments_json: Option<PathBuf>,
    /// Writes losses to this new file, as lines of JSON: each run of lost shipments, what became of the lost units of each segment
    /// (repaired, tolerated, missing), and a sum for each stream.
    #[arg(long, value_name = "FILE")]
    loss_log: Option<PathBuf>,
    #[command(flatten)]
    qlog: QlogArgument,
    #[command(flatten)]
    stats: StatsArguments,
    /// Prints one JSON object for each connection on standard output; with --out - on standard error, as the last line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    metrics: MetricsArgument,
    #[command(flatten)]
    shutdown: ShutdownArgument,
    #[command(flatten)]
    admission: AdmissionArguments,
    #[command(flatten)]
    protection: Protection,
}

/// What becomes of missing units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Holes {
    Zero,
    Drop,
}

/// Where received bytes go.
#[derive(Clone, Debug)]
enum Destination {
    /// They are counted and discarded.
    Nowhere,
    StandardOutput,
    /// A device or a FIFO, which takes bytes in the order they are written.
    Device(Arc<Device>),
    /// Every file under its own name.
    Directory(PathBuf),
    /// One file.
    Path(PathBuf),
}

impl Destination {
    /// Whether it takes bytes in one order only, so that streams go there one after another.
    const fn is_sequential(&self) -> bool {
        matches!(self, Self::StandardOutput | Self::Device(_))
    }
}

/// Runs the verb.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    sender_admission::check(arguments)?;
    // Why: at the file size limit (setrlimit(2)) the signal would end the whole receiver; with a handler the write fails with EFBIG.
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default()).context("the signal SIGXFSZ cannot be handled")?;
    let scheme = arguments.scheme.as_deref().and_then(registry::find).filter(|scheme| scheme.is_live);
    if let Some(scheme) = scheme {
        return scheme::run(arguments, scheme);
    }
    let destination = destination(arguments.out.as_ref())?;
    let segments = arguments.segments_json.as_deref().map(SegmentLines::create).transpose()?;
    let stats = arguments.stats.start()?;
    let (mut admission, builder) = SenderAdmission::of(arguments)?;
    // Why unlimited: whether a sender may go without flow and rate control is the sender's own decision.
    let config = Config { unlimited: true, ..Config::default() };
    let (builder, metrics) = arguments.metrics.serve(builder)?;
    let (builder, recording) = arguments.qlog.start(arguments.loss_log.as_ref(), builder)?;
    let endpoint = builder.config(config).listen(arguments.listen)?;
    // Why before anything is said: whoever reads where it listens may end it in order from then on.
    let interruption = Interruption::listen_for_shutdown(endpoint.waker(), metrics.shutdown.clone())?;
    eprintln!("listening on {}", endpoint.local_addr());
    admission.print(endpoint.local_addr());
    if let Some(told) = &metrics.told {
        eprintln!("{told}");
    }
    for warning in endpoint.warnings() {
        eprintln!("{warning}");
    }
    arguments.protection.tell();
    if matches!(destination, Destination::Nowhere) {
        eprintln!("no --out: the data is counted and discarded");
    }
    let shutdown = Shutdown::of(&interruption, arguments.shutdown);
    let success = Receiving::new(endpoint, arguments, admission, destination, (segments, stats), (interruption, shutdown)).run()?;
    recording.finish();
    Ok(if success { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Arguments {
    /// The most bytes that one connection may write, if there is a limit.
    fn bytes_max(&self) -> Option<Bytes> {
        self.max_bytes.or_else(|| sender_admission::serves_strangers(self).then_some(STRANGERS_BYTES_MAX))
    }
}

fn destination(out: Option<&PathBuf>) -> Result<Destination> {
    let Some(path) = out else { return Ok(Destination::Nowhere) };
    if path.as_os_str() == "-" {
        return Ok(Destination::StandardOutput);
    }
    if path.is_dir() {
        return Ok(Destination::Directory(path.clone()));
    }
    if let Some(device) = Device::open(path)? {
        return Ok(Destination::Device(Arc::new(device)));
    }
    // Why: `received/` means a directory, but the last part of the path would make a file of it.
    if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
        bail!("the directory {} does not exist; make it first", path.display());
    }
    if std::fs::symlink_metadata(path).is_ok() {
        bail!("{} exists and is not overwritten; remove it or choose another path with --out", path.display());
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Some(parent) = parent.filter(|parent| !parent.is_dir()) {
        bail!("the directory {} does not exist; make it first", parent.display());
    }
    if path.file_name().and_then(|name| name.to_str()).is_none() {
        bail!("{} does not end with the name of a file; give a path that does", path.display());
    }
    Ok(Destination::Path(path.clone()))
}
