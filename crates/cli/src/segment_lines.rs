//! The file of `--segments-json`: a line of JSON for each segment, at either end.
//!
//! Called by `send` for each verdict that has come, and by `recv` for each segment that was taken.
//!
//! Invariant: a line is in the file when its round of the program's loop is over.

use crate::json;
use anyhow::{Context as _, Result};
use serde::Serialize;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

/// The file.
#[derive(Debug)]
pub(crate) struct SegmentLines(BufWriter<File>);

impl SegmentLines {
    /// Makes the file, or empties it.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let file = File::create(path)
            .with_context(|| format!("{} cannot be written; choose another file with --segments-json", path.display()))?;
        Ok(Self(BufWriter::new(file)))
    }

    /// Adds a line, which is in the file after [`SegmentLines::flush`].
    pub(crate) fn add(&mut self, record: &impl Serialize) -> io::Result<()> {
        self.0.write_all(&json::line(record).map_err(io::Error::other)?)
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// What is told when it fails.
pub(crate) fn failure(error: &io::Error) -> String {
    format!("segstream: the file of --segments-json cannot be written any further: {error}")
}
