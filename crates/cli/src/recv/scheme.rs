//! `segstream recv --scheme KEY`: one transfer with another scheme, without encryption, for laboratories.
//!
//! Called by the verb.
//!
//! Invariant: as without `--scheme` nothing is overwritten, no link is followed, and a file has its name only when
//! it is whole.
//!
//! Limit: the thread that serves the network also writes the bytes, so a slow disk or pipe delays the scheme.

use super::sink::{Attributes, Sink};
use super::storage::Beginning;
use super::{Arguments, Destination, Holes};
use crate::content_hash::ContentHash;
use crate::interruption::Interruption;
use crate::progress::Progress;
use crate::scheme_report::SchemeReport;
use crate::transfer_report::FileReport;
use crate::usage;
use anyhow::{Result, anyhow};
use segstream_lab::live::{Arrived, Receiving};
use segstream_lab::registry::Scheme;
use segstream_net::adapter::{self, ReceiveOptions, ReceivingConfig, Watch};
use std::io;
use std::process::ExitCode;

/// Flags that mean nothing with a scheme.
const USUAL: &[&str] = &["keep", "segments_json", "stats", "stats_json", "max_bytes", "metrics", "overwrite", "hidden", "qlog", "loss_log"];

/// The destination, and what has been written to it.
#[derive(Debug)]
struct Output {
    sink: Sink<()>,
    drop_holes: bool,
    hash: ContentHash,
    whole: bool,
}

/// Receives with `scheme`.
pub(super) fn run(arguments: &Arguments, scheme: &'static Scheme) -> Result<ExitCode> {
    arguments.protection.check_scheme(scheme.key)?;
    arguments.explicit.refuse(USUAL, &format!("with --scheme {}", scheme.key))?;
    let destination = super::destination(arguments.out.as_ref())?;
    if let Destination::Directory(directory) = &destination {
        return Err(usage::bad(format!(
            "with --scheme the sender transmits no file name, so --out cannot be the directory {}; give a file",
            directory.display()
        )));
    }
    let mut sink = Sink::new(destination.clone(), arguments.durability, arguments.hidden);
    sink.begin((), "", Attributes::default(), Beginning::Plain).map_err(|sentence| anyhow!(sentence))?;
    let drop_holes = arguments.holes == Holes::Drop;
    // Only a file can be written at an offset.
    let in_order = drop_holes || !sink.is_file();
    let output = Output { sink, drop_holes, hash: ContentHash::default(), whole: true };
    let result = receive(arguments, scheme, output, in_order)?;
    if let Some(sentence) = result.report.sentence_of_receiver() {
        eprintln!("{sentence}");
    }
    if arguments.json {
        result.print(matches!(destination, Destination::StandardOutput))?;
    }
    if let Some(error) = &result.report.error {
        eprintln!("segstream: {error}");
    }
    Ok(if result.report.is_success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn receive(arguments: &Arguments, scheme: &'static Scheme, mut output: Output, in_order: bool) -> Result<SchemeReport> {
    let receiving = ReceivingConfig { in_order, ..ReceivingConfig::default() };
    let receiver = Receiving::bind(scheme, arguments.listen, ReceiveOptions { receiving, ..ReceiveOptions::default() })?;
    let interruption = Interruption::listen(None)?;
    eprintln!("listening on {}", receiver.local_addr());
    for warning in receiver.warnings() {
        eprintln!("{warning}");
    }
    arguments.protection.tell();
    if output.sink.is_nowhere() {
        eprintln!("no --out: the data is counted and discarded");
    }
    eprintln!("waiting for a sender with --scheme {}", scheme.key);
    let progress = Progress::new(false);
    let mut told = |so_far: adapter::Progress| progress.delivered(so_far.bytes);
    let watch = Watch { stop: Some(interruption.flag()), progress: Some(&mut told) };
    let received = receiver.run(|arrived| output.take(arrived), watch)?;
    progress.clear();
    let mut result = SchemeReport::of_receiver(scheme.key, received);
    let mut file = output.finish(result.report.error.is_none())?;
    file.name = arguments.out.as_ref().map_or_else(String::new, |path| path.display().to_string());
    if let Some(error) = &file.error {
        result.report.error.get_or_insert_with(|| error.clone());
    }
    result.report.add_file(file);
    Ok(result)
}

impl Output {
    /// Writes a judged segment.
    fn take(&mut self, arrived: Arrived) -> io::Result<()> {
        let Arrived { offset, delivery } = arrived;
        self.whole &= delivery.missing.is_empty();
        let (offset, bytes) =
            if self.drop_holes { (self.hash.bytes(), delivery.without_holes()) } else { (offset, delivery.zero_filled()) };
        self.sink.write_at((), &bytes, offset)?;
        self.hash.write(offset, &bytes);
        Ok(())
    }

    /// Renames a complete file, or says where the incomplete one is. With its hash if nothing is missing.
    fn finish(self, all_has_come: bool) -> Result<FileReport> {
        let Self { mut sink, hash, whole, .. } = self;
        let mut file = FileReport { bytes: hash.bytes(), ..FileReport::default() };
        if all_has_come {
            if whole {
                file.blake3 = hash.finish(|at, buffer| sink.read_at((), buffer, at))?;
            }
            for ((), result) in sink.keep(vec![()], &[]).0 {
                match result {
                    Ok(durable) => file.durable = Some(durable),
                    Err(sentence) => file.error = Some(sentence),
                }
            }
        }
        if let Some(part) = sink.leave((), true) {
            eprintln!("segstream: what came is left in {part}");
        }
        Ok(file)
    }
}
