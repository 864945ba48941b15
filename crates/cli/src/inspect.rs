//! `segstream inspect`: the shipments in a packet capture, one a line.
//!
//! - [`capture`]: from the file to UDP payloads;
//! - [`shipment`]: from a payload to something readable.
//!
//! Called from the command line.
//!
//! Invariant: whatever is in the file, every packet is counted once: as a shipment, as one that cannot be decoded, or
//! as something else.

mod capture;
mod shipment;

use crate::json;
use anyhow::{Context as _, Result};
use capture::{Capture, Datagram, Found};
use clap::Args;
use serde::Serialize;
use shipment::{Flows, Shipment};
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Lists the shipments (datagrams of this protocol) in a packet capture: time, addresses, kind, number and content.
///
/// Reads pcap files of Ethernet, Linux cooked and raw IP captures. In a capture on the sending machine one packet may hold
/// several datagrams (segmentation offload, GSO); it cannot be divided and counts as undecodable. Capture at the receiver,
/// or turn offload off. Of an encrypted connection only set-up, connection identifiers and lengths are readable; the project's
/// dissector for Wireshark shows the rest with a key log (`send --key-log`, `recv --key-log`).
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  tcpdump -i eth0 -w trace.pcap udp port 4433\n  segstream inspect trace.pcap")]
pub(crate) struct Arguments {
    /// The capture.
    #[arg(value_name = "FILE.pcap")]
    file: PathBuf,
    /// Prints one JSON object on standard output: the shipments and the totals.
    #[arg(long)]
    json: bool,
}

/// What was found besides shipments that could be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
struct Counts {
    /// Shipments that could be read.
    shipments_read: u64,
    /// Shipments of encrypted connections, of which only the outside can be read.
    sealed: u64,
    /// Shipments that could not be read: a broken seal, a body that is none, or cut off by the capture.
    undecodable: u64,
    /// UDP datagrams of other protocols.
    other_datagrams: u64,
    /// Packets that are no UDP.
    other_packets: u64,
}

/// A shipment with its place in the capture.
#[derive(Debug, Serialize)]
struct Line {
    seconds: f64,
    from: String,
    to: String,
    bytes: usize,
    #[serde(flatten)]
    shipment: Shipment,
}

/// Runs the verb.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let mut capture = Capture::open(&arguments.file)?;
    let mut out = BufWriter::new(io::stdout().lock());
    let written = if arguments.json { list(&mut capture, &mut Objects::new(&mut out)) } else { list(&mut capture, &mut Lines(&mut out)) };
    let (counts, ended) = match written {
        Ok(found) => found,
        // The reader of the pipe has closed it.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(ExitCode::SUCCESS),
        Err(error) => return Err(error).context("standard output cannot be written"),
    };
    out.flush().context("standard output cannot be written")?;
    let Counts { shipments_read, sealed, undecodable, other_datagrams, other_packets } = counts;
    eprintln!(
        "{shipments_read} shipments, {sealed} sealed, {undecodable} undecodable; {other_datagrams} other UDP datagrams, {other_packets} other packets"
    );
    ended?;
    Ok(ExitCode::SUCCESS)
}

/// How shipments are printed.
trait Printer {
    fn shipment(&mut self, line: &Line) -> io::Result<()>;
    fn end(&mut self, counts: &Counts) -> io::Result<()>;
}

/// A line each, for people.
struct Lines<'a, W: Write>(&'a mut W);

/// One JSON object, written incrementally.
struct Objects<'a, W: Write> {
    out: &'a mut W,
    first: bool,
}

/// Prints all shipments. The counts, and how the capture ended.
fn list(capture: &mut Capture, printer: &mut impl Printer) -> io::Result<(Counts, Result<()>)> {
    let mut counts = Counts::default();
    let mut flows = Flows::default();
    let ended = loop {
        let found = match capture.next() {
            None => break Ok(()),
            Some(Err(error)) => break Err(error),
            Some(Ok(found)) => found,
        };
        let Found::Datagram(Datagram { since, from, to, payload, whole }) = found else {
            counts.other_packets += 1;
            continue;
        };
        match flows.read((from, to), &payload, whole) {
            None => counts.other_datagrams += 1,
            Some(Err(_)) => counts.undecodable += 1,
            Some(Ok(shipment)) => {
                *(if shipment.sealed { &mut counts.sealed } else { &mut counts.shipments_read }) += 1;
                let (from, to) = (from.to_string(), to.to_string());
                printer.shipment(&Line { seconds: since.as_secs_f64(), from, to, bytes: payload.len(), shipment })?;
            }
        }
    };
    printer.end(&counts)?;
    Ok((counts, ended))
}

impl<W: Write> Printer for Lines<'_, W> {
    fn shipment(&mut self, line: &Line) -> io::Result<()> {
        let Line { seconds, from, to, bytes, shipment } = line;
        let Shipment { kind, number, connection, level, sealed, parts } = shipment;
        write!(self.0, "{seconds:.6} {from} > {to} ")?;
        match (kind, number) {
            (Some(kind), Some(number)) => write!(self.0, "{kind} #{number}")?,
            _ => write!(self.0, "{level}")?,
        }
        let sealed = if *sealed { " sealed" } else { "" };
        write!(self.0, "{sealed} connection {connection:08x} {bytes} bytes")?;
        for part in parts {
            write!(self.0, "; {part}")?;
        }
        writeln!(self.0)
    }

    fn end(&mut self, _counts: &Counts) -> io::Result<()> {
        Ok(())
    }
}

impl<'a, W: Write> Objects<'a, W> {
    fn new(out: &'a mut W) -> Self {
        Self { out, first: true }
    }
}

impl<W: Write> Printer for Objects<'_, W> {
    fn shipment(&mut self, line: &Line) -> io::Result<()> {
        self.out.write_all(if std::mem::take(&mut self.first) { b"{\"shipments\":[" } else { b"," })?;
        let line = json::line(line).map_err(io::Error::other)?;
        self.out.write_all(&line)
    }

    fn end(&mut self, counts: &Counts) -> io::Result<()> {
        if self.first {
            self.out.write_all(b"{\"shipments\":[")?;
        }
        let counts = serde_json::to_string(counts)?;
        // The counts continue the JSON object that is already open.
        writeln!(self.out, "],{}", counts.strip_prefix('{').unwrap_or("}"))
    }
}
