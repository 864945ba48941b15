//! Where received bytes go: a file under its provisional name, standard output, a device or FIFO, or nowhere.
//!
//! Called by the writing thread of the usual way, and by the way of another scheme.
//!
//! Invariant: what was written to a file can be read back for its hash; of the others nothing can. Only what takes bytes
//! without keeping them is opened although it exists.

use super::part_file::PartFile;
use anyhow::{Context as _, Result};
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where the bytes of one stream go.
#[derive(Debug)]
pub(super) enum Sink {
    Discarded,
    StandardOutput,
    Device(Arc<Device>),
    Part(PartFile),
}

/// A character device or a FIFO, such as `/dev/null` or what `mkfifo` makes.
#[derive(Debug)]
pub(super) struct Device {
    path: PathBuf,
    file: File,
}

impl Device {
    /// Opens `path` if it is a character device or a FIFO; `None` for anything else. A FIFO waits for its reader, as it does
    /// for a shell. Why not a block device: writing to it destroys what is there.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub(super) fn open(path: &Path) -> Result<Option<Self>> {
        let kind = std::fs::metadata(path).map(|metadata| metadata.file_type());
        if !kind.is_ok_and(|kind| kind.is_char_device() || kind.is_fifo()) {
            return Ok(None);
        }
        let file = OpenOptions::new().write(true).open(path).with_context(|| format!("{} cannot be opened to write", path.display()))?;
        Ok(Some(Self { path: path.to_owned(), file }))
    }
}

impl Sink {
    /// Writes `bytes`; only a file takes them at their offset, everything else behind the last.
    pub(super) fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        match self {
            Self::Discarded => Ok(()),
            Self::StandardOutput => {
                let mut out = io::stdout().lock();
                out.write_all(bytes).and_then(|()| out.flush())
            }
            Self::Device(device) => (&device.file).write_all(bytes),
            Self::Part(part) => part.write_at(bytes, offset),
        }
    }

    /// Reads back what was written; `None` where that cannot be.
    pub(super) fn read_at(&self, buffer: &mut [u8], offset: u64) -> Option<io::Result<usize>> {
        match self {
            Self::Part(part) => Some(part.read_at(buffer, offset)),
            Self::Discarded | Self::StandardOutput | Self::Device(_) => None,
        }
    }

    /// Its name, for people.
    pub(super) fn place(&self) -> String {
        match self {
            Self::Discarded => String::new(),
            Self::StandardOutput => "standard output".to_owned(),
            Self::Device(device) => device.path.display().to_string(),
            Self::Part(part) => part.path(),
        }
    }
}
