//! `segstream recv`: what a sender sends, into a file, a directory or a pipe.
//!
//! - [`admitting`]: whom we serve, and how they are told;
//! - [`receiving`]: the loop around the endpoint and its connections;
//! - [`incoming`]: one connection: its streams, what is said about them, what comes of them;
//! - [`writer`], [`sink`], [`part_file`], [`file_name`]: where bytes go;
//! - [`segment_record`]: a line for each segment;
//! - [`scheme`]: the same in the way of another scheme.
//!
//! Called from the command line.
//!
//! Invariant: what a peer sends never leaves the output directory, follows no link and overwrites nothing.

mod admitting;
mod file_name;
mod incoming;
mod part_file;
mod receiving;
mod scheme;
mod segment_record;
mod sink;
mod writer;

use crate::given::Given;
use crate::interruption::Interruption;
use crate::protection::Protection;
use crate::{quantity, sim};
use admitting::{AdmissionArguments, Admitting};
use anyhow::{Context as _, Result, bail};
use clap::{Args, ValueEnum};
use receiving::Receiving;
use segstream::blocking::Endpoint;
use segstream::{Config, Duration};
use segstream_base::Bytes;
use segstream_lab::{live, registry};
use std::fs::File;
use std::io::BufWriter;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

/// What one connection may write with --allow-any.
const STRANGERS_BYTES_MAX: Bytes = Bytes::new(1 << 30);

/// Receives files or a pipe from a sender.
///
/// Ends after one connection, unless --keep is given. Prints the address it listens on as the first line of standard
/// error, then the fingerprint of its key and the command that sends to it. The transfer is encrypted, and only those are
/// served who were named: by key, by authority, or by a one-time code, which is what is printed when nobody was. A file
/// is called NAME.part until it is whole. Without --out everything is counted and thrown away.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  segstream recv --listen 0.0.0.0:4433 --out copies\n  segstream recv --listen 0.0.0.0:4433 --out copies \
                        --keep --allow SHA256:... --max-bytes 2GiB\n  segstream recv --listen 127.0.0.1:0 --out - | player"
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    given: Given,
    /// Where to listen; port 0 takes any free one.
    #[arg(long, value_name = "ADDR", value_parser = quantity::address)]
    listen: SocketAddr,
    /// A directory that exists takes files under the sender's names; anything else is the file to write, and - is standard
    /// output. What exists is never overwritten.
    #[arg(long, value_name = "PATH|DIR|-")]
    out: Option<PathBuf>,
    /// The most that one connection may write to --out; one that has more is broken off, and what came of it is left as
    /// .part [default: 1GiB with --allow-any, otherwise no limit].
    #[arg(long, value_name = "BYTES", value_parser = quantity::positive_bytes)]
    max_bytes: Option<Bytes>,
    /// Goes on after the first connection, with several at a time, until it is interrupted.
    #[arg(long)]
    keep: bool,
    /// Receives one transfer in the way of another scheme (sstp, snr, htpnet, tcp, adaptive-ack, sscop or xtp), in the clear,
    /// for laboratories, so --insecure must be given; the sender needs the same --scheme and tells everything else. --out is
    /// a file or -; --keep, --max-bytes, --segments-json and --stats mean nothing then. segstream is the usual way.
    #[arg(long, value_name = "KEY", value_parser = sim::scheme)]
    scheme: Option<String>,
    /// Whether missing units are written as zeros at their place, or left out.
    #[arg(long, value_name = "HOW", value_enum, default_value_t = Holes::Zero)]
    holes: Holes,
    /// Writes a line of JSON for each segment to this file: its tolerance, holes, verdict and delay.
    #[arg(long, value_name = "FILE")]
    segments_json: Option<PathBuf>,
    /// Prints a line of statistics for each connection as JSON on standard error once in this time.
    #[arg(long, value_name = "T", value_parser = quantity::positive_duration)]
    stats: Option<Duration>,
    /// Prints one JSON object for each connection on standard output, or with --out - as the last line of standard error.
    #[arg(long)]
    json: bool,
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
#[derive(Clone, Debug, PartialEq, Eq)]
enum Destination {
    /// They are counted and thrown away.
    Nowhere,
    StandardOutput,
    /// Every file under its own name.
    Directory(PathBuf),
    /// One file.
    Path(PathBuf),
}

/// Runs the verb.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    admitting::check(arguments)?;
    let scheme = arguments.scheme.as_deref().and_then(registry::find).filter(|scheme| live::is_live(scheme));
    if let Some(scheme) = scheme {
        return scheme::run(arguments, scheme);
    }
    let destination = destination(arguments.out.as_ref())?;
    let segments = arguments.segments_json.as_ref().map(|path| {
        let file =
            File::create(path).with_context(|| format!("{} cannot be written; choose another file with --segments-json", path.display()));
        file.map(BufWriter::new)
    });
    let segments = segments.transpose()?;
    let (mut admitting, security) = Admitting::of(arguments)?;
    // Why unlimited: whether a sender may go without flow and rate control is the sender's own decision.
    let config = Config { security, unlimited: true, ..Config::default() };
    let endpoint = Endpoint::listen(arguments.listen, config)?;
    eprintln!("listening on {}", endpoint.local_addr());
    admitting.tell(endpoint.local_addr());
    for warning in endpoint.warnings() {
        eprintln!("{warning}");
    }
    arguments.protection.tell();
    if destination == Destination::Nowhere {
        eprintln!("no --out: what comes is counted and thrown away");
    }
    let interruption = Interruption::listen(Some(endpoint.waker()))?;
    let success = Receiving::new(endpoint, arguments, admitting, destination, segments, interruption).run()?;
    Ok(if success { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Arguments {
    /// The most that one connection may write, if there is a limit.
    fn bytes_max(&self) -> Option<Bytes> {
        self.max_bytes.or_else(|| admitting::serves_strangers(self).then_some(STRANGERS_BYTES_MAX))
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
        bail!("{} is no name of a file; give a path that ends with one", path.display());
    }
    Ok(Destination::Path(path.clone()))
}
