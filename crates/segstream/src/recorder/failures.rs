//! The errors of recorded files.
//!
//! Called by the thread of the recorder. Invariant: the first is kept, the others are counted, so that a full disk is told once.

use std::io;
use std::path::{Path, PathBuf};

/// The files that have failed.
#[derive(Debug, Default)]
pub(super) struct Failures {
    first: Option<(PathBuf, io::Error)>,
    others: u64,
}

impl Failures {
    /// The file at `path` has failed; nothing more is written to it.
    pub(super) fn note(&mut self, path: &Path, error: io::Error) {
        match self.first {
            Some(_) => self.others += 1,
            None => self.first = Some((path.to_owned(), error)),
        }
    }

    /// The first error, with its file and how many other files have failed.
    pub(super) fn into_result(self) -> io::Result<()> {
        let Some((path, error)) = self.first else { return Ok(()) };
        let others = match self.others {
            0 => String::new(),
            count => format!("; other files that have failed: {count}"),
        };
        Err(io::Error::new(error.kind(), format!("{}: {error}{others}", path.display())))
    }
}
