//! Files that tell what connections do: `--qlog DIR` and `--loss-log FILE`.
//!
//! Used by `send` and `recv`. The library's recorder writes the files; here are the flags, and what is told at the end.
//!
//! Invariant: a file that cannot be written ends no transfer.

use anyhow::{Context, Result};
use clap::Args;
use segstream::Builder;
use segstream::recorder::{Recorder, Records};
use std::path::PathBuf;

/// The variable of the environment that names the folder of qlogs, as with implementations of QUIC.
const QLOGDIR: &str = "QLOGDIR";

/// The flag of both ends.
#[derive(Clone, Debug, Args)]
pub(crate) struct QlogArgument {
    /// Writes a qlog of each connection to this directory: shipments, losses, reports, verdicts and the state of the controller, as JSON
    /// text sequences (docs/QLOG.md). It tells addresses and times, but no key, payload or file name [default: QLOGDIR of the
    /// environment, if it is set].
    #[arg(long, value_name = "DIR")]
    qlog: Option<PathBuf>,
}

/// A recorder that may be running.
#[derive(Debug)]
pub(crate) struct Recording(Option<Recorder>);

impl QlogArgument {
    /// Starts the recorder that the flags ask for.
    ///
    /// # Errors
    /// If a directory or file cannot be made.
    pub(crate) fn start<E>(&self, loss_log: Option<&PathBuf>, builder: Builder<E>) -> Result<(Builder<E>, Recording)> {
        let qlog = self.qlog.clone().or_else(|| std::env::var_os(QLOGDIR).filter(|folder| !folder.is_empty()).map(PathBuf::from));
        if qlog.is_none() && loss_log.is_none() {
            return Ok((builder, Recording(None)));
        }
        let mut records = Records::default();
        (records.qlog, records.loss_log) = (qlog, loss_log.cloned());
        let recorder = Recorder::start(&records).with_context(|| match (&records.qlog, &records.loss_log) {
            (Some(folder), None) => format!("no qlog can be written to {}; choose another directory with --qlog", folder.display()),
            (None, Some(file)) => format!("{} cannot be made; choose a new file with --loss-log", file.display()),
            (qlog, loss_log) => {
                format!("the files of --qlog {:?} and --loss-log {:?} cannot be made", qlog.as_deref(), loss_log.as_deref())
            }
        })?;
        Ok((builder.record(recorder.clone()), Recording(Some(recorder))))
    }
}

impl Recording {
    /// Writes what is left, and tells what is missing in the files.
    pub(crate) fn finish(&self) {
        let Some(recorder) = &self.0 else { return };
        if let Err(error) = recorder.finish() {
            eprintln!("segstream: the recorded files are not complete ({error}); the transfer is not affected");
        }
        let omitted = recorder.events_omitted();
        if omitted > 0 {
            eprintln!("segstream: {omitted} events were not recorded: the disk was slower than the transfer, or a file has failed");
        }
    }
}
