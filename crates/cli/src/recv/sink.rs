//! Where received bytes go: a file under its provisional name, standard output, or nowhere.
//!
//! Called by the writing thread of the usual way, and by the way of another scheme.
//!
//! Invariant: what was written to a file can be read back for its hash; of the others nothing can.

use super::part_file::PartFile;
use std::io::{self, Write as _};

/// Where the bytes of one stream go.
#[derive(Debug)]
pub(super) enum Sink {
    Discarded,
    StandardOutput,
    Part(PartFile),
}

impl Sink {
    /// Writes `bytes`; standard output takes them behind the last, whatever their offset.
    pub(super) fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        match self {
            Self::Discarded => Ok(()),
            Self::StandardOutput => {
                let mut out = io::stdout().lock();
                out.write_all(bytes).and_then(|()| out.flush())
            }
            Self::Part(part) => part.write_at(bytes, offset),
        }
    }

    /// Reads back what was written; `None` where that cannot be.
    pub(super) fn read_at(&self, buffer: &mut [u8], offset: u64) -> Option<io::Result<usize>> {
        match self {
            Self::Part(part) => Some(part.read_at(buffer, offset)),
            Self::Discarded | Self::StandardOutput => None,
        }
    }

    /// Its name, for people.
    pub(super) fn place(&self) -> String {
        match self {
            Self::Discarded => String::new(),
            Self::StandardOutput => "standard output".to_owned(),
            Self::Part(part) => part.path(),
        }
    }
}
