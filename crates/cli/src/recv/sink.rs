//! Where received bytes go: files in storage, standard output, a device or FIFO, or nowhere.
//!
//! Called by the writer thread, and by transfers with `--scheme`.
//!
//! Invariant: what was written to a file can be read back for its hash; of the others nothing can. Only what takes bytes
//! without keeping them is opened although it exists.

use super::Destination;
use super::file_name::SafePath;
use super::storage::{Beginning, Directory, Durability, Kept, Small, Storage, Target};
use anyhow::{Context as _, Result};
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::ops::Range;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

/// Where the bytes of all streams go; each is known by its key.
#[derive(Debug)]
pub(super) struct Sink<K> {
    destination: Destination,
    durability: Durability,
    /// Whether names may begin with a dot.
    hidden: bool,
    /// Once the first file was begun.
    storage: Option<Storage<Directory, K>>,
    /// Whether the one file of a path has been begun.
    path_taken: bool,
}

/// What a sender and this receiver's user want of a file.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Attributes {
    /// Permission bits.
    pub(super) mode: Option<u32>,
    /// When the content was changed last.
    pub(super) mtime: Option<(i64, u32)>,
    /// Whether a file that has the name gives way.
    pub(super) replaces: bool,
}

/// A small file that was taken.
#[derive(Debug)]
pub(super) enum Taken {
    /// It is counted and discarded.
    Discarded,
    /// It is written and gets its name with its group.
    Written(Small),
}

/// A character device or a FIFO, such as `/dev/null` or what `mkfifo` makes.
#[derive(Debug)]
pub(super) struct Device {
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
        Ok(Some(Self { file }))
    }
}

impl<K: Copy + Ord> Sink<K> {
    /// A sink to which nothing has been written.
    pub(super) const fn new(destination: Destination, durability: Durability, hidden: bool) -> Self {
        Self { destination, durability, hidden, storage: None, path_taken: false }
    }

    /// Begins a stream whose sender calls it `name`.
    pub(super) fn begin(&mut self, key: K, name: &str, attributes: Attributes, beginning: Beginning) -> Result<(), String> {
        let (directory, name) = match &self.destination {
            Destination::Nowhere | Destination::StandardOutput | Destination::Device(_) => return Ok(()),
            Destination::Directory(directory) => (directory.clone(), SafePath::of_path(name, self.hidden)?),
            Destination::Path(path) => {
                if std::mem::replace(&mut self.path_taken, true) {
                    return Err(SINGLE_FILE.to_owned());
                }
                split(path)?
            }
        };
        self.open_storage(&directory)?;
        let target = target(name, attributes);
        self.storage.as_mut().map_or(Ok(()), |storage| storage.begin(key, target, beginning))
    }

    /// Takes a small file whole.
    pub(super) fn put(&mut self, name: &str, attributes: Attributes, content: &[u8]) -> Result<Taken, String> {
        let directory = match &self.destination {
            Destination::Nowhere => return Ok(Taken::Discarded),
            Destination::Directory(directory) => directory.clone(),
            Destination::StandardOutput | Destination::Device(_) | Destination::Path(_) => {
                return Err("this receiver takes no packs of files".to_owned());
            }
        };
        let name = SafePath::of_path(name, self.hidden)?;
        self.open_storage(&directory)?;
        let target = target(name, attributes);
        self.storage.as_mut().map_or(Ok(Taken::Discarded), |storage| storage.put(target, content).map(Taken::Written))
    }

    fn open_storage(&mut self, directory: &Path) -> Result<(), String> {
        if self.storage.is_none() {
            let directory = Directory::open(directory).map_err(|error| unusable(&error))?;
            // Why ignored: what another receiver has left is in nobody's way.
            let _ = directory.clear_scratch();
            self.storage = Some(Storage::new(directory, self.durability));
        }
        Ok(())
    }

    /// Whether the stream is a file with a journal, and how far that says it is written.
    pub(super) fn noted_to(&self, key: K) -> Option<u64> {
        self.storage.as_ref()?.noted_to(key)
    }

    /// Notes in the journal of a file that its first `bytes` are written, whose hash it is; whether they are on the medium.
    pub(super) fn note(&mut self, key: K, bytes: u64, hash: &str) -> io::Result<bool> {
        self.storage.as_mut().map_or(Ok(false), |storage| storage.note(key, bytes, hash))
    }

    /// Writes `bytes`; only a file takes them at their offset, everything else behind the last.
    pub(super) fn write_at(&mut self, key: K, bytes: &[u8], offset: u64) -> io::Result<()> {
        match &self.destination {
            Destination::Nowhere => Ok(()),
            Destination::StandardOutput => {
                let mut out = io::stdout().lock();
                out.write_all(bytes).and_then(|()| out.flush())
            }
            Destination::Device(device) => (&device.file).write_all(bytes),
            Destination::Directory(_) | Destination::Path(_) => {
                self.storage.as_mut().map_or(Ok(()), |storage| storage.write_at(key, bytes, offset))
            }
        }
    }

    /// Writes the parts of `bytes` that are outside of `missing`, which are ascending ranges of zeros; a file does not store those.
    pub(super) fn write_around(&mut self, key: K, bytes: &[u8], missing: &[Range<usize>], offset: u64) -> io::Result<()> {
        if !self.is_file() {
            return self.write_at(key, bytes, offset);
        }
        let mut from = 0;
        for hole in missing.iter().cloned().chain(std::iter::once(bytes.len()..bytes.len())) {
            if let Some(here) = bytes.get(from..hole.start) {
                self.write_at(key, here, offset.saturating_add(from as u64))?;
            }
            from = hole.end;
        }
        if let Some(storage) = &mut self.storage {
            storage.extend_to(key, offset.saturating_add(bytes.len() as u64));
        }
        Ok(())
    }

    /// Reads back what was written; `None` where that cannot be.
    pub(super) fn read_at(&mut self, key: K, buffer: &mut [u8], offset: u64) -> Option<io::Result<usize>> {
        self.storage.as_mut().map(|storage| storage.read_at(key, buffer, offset))
    }

    /// Gives whole files their names. For each whether it is durable, or a sentence.
    pub(super) fn keep(&mut self, keys: Vec<K>, small: &[Small]) -> (Vec<(K, Kept)>, Vec<Kept>) {
        match &mut self.storage {
            Some(storage) => storage.keep(keys, small),
            None => (keys.into_iter().map(|key| (key, Ok(false))).collect(), small.iter().map(|_| Ok(false)).collect()),
        }
    }

    /// Ends a stream that is not whole; the path of the part file that stays, if there is one, for this end only. `is_wrong`: nobody is
    /// to go on with it.
    pub(super) fn leave(&mut self, key: K, is_wrong: bool) -> Option<String> {
        let storage = self.storage.as_mut()?;
        storage.leave(key, is_wrong).map(|part| storage.disk().path().join(part).display().to_string())
    }

    /// The name of a stream's place, as the sender may be told it: nothing of the receiver's own paths.
    pub(super) fn place(&self, key: K) -> String {
        match &self.destination {
            Destination::Nowhere => String::new(),
            Destination::StandardOutput => "the standard output of the receiver".to_owned(),
            Destination::Device(_) => "the device or FIFO of the receiver".to_owned(),
            Destination::Directory(_) | Destination::Path(_) => {
                self.storage.as_ref().and_then(|storage| storage.name(key)).unwrap_or_default().to_owned()
            }
        }
    }

    /// Whether it is a directory or file, which takes bytes at any offset.
    pub(super) const fn is_file(&self) -> bool {
        matches!(self.destination, Destination::Directory(_) | Destination::Path(_))
    }

    /// Whether it takes nothing.
    pub(super) const fn is_nowhere(&self) -> bool {
        matches!(self.destination, Destination::Nowhere)
    }
}

/// What a sender of several files is told when --out names a file.
pub(super) const SINGLE_FILE: &str = "--out of the receiver names a single file; send one file, or start recv with a directory as --out";

fn target(name: SafePath, attributes: Attributes) -> Target {
    let Attributes { mode, mtime, replaces } = attributes;
    Target { name, mode, mtime, replaces }
}

/// What a sender is told when the directory of --out cannot be opened.
pub(super) fn unusable(error: &io::Error) -> String {
    format!("the directory of --out cannot be used: {error}")
}

/// The directory and the name of the file at `path`.
pub(super) fn split(path: &Path) -> Result<(PathBuf, SafePath), String> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Why a hidden name may be: this end's user wrote it.
    Ok((directory.to_owned(), SafePath::of_name(name, true)?))
}
