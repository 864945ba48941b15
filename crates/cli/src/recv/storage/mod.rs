//! Storage of received files: a part file while a file is incomplete, then its name, and what a crash leaves of it.
//!
//! - [`disk`]: what is asked of a file system; [`journal`]: how a transfer goes on after a crash;
//! - [`keeping`]: whole files get their names, many at a time.
//!
//! Called by the writer thread, and by transfers with `--scheme`, through the sink.
//!
//! ```text
//! begin      nothing on disk yet
//! write      NAME.part, created with the first byte, and NAME.part.journal; NAME.TOKEN.part when that is taken
//! note       every 32 MiB: sync of the data ── line of the journal
//! keep       sync of the data ── rename to NAME ── sync of the directory ── durable
//!            └ --durability file, directory          └ --durability directory
//! ```
//!
//! A small file that came in one piece is written to a hidden directory of its receiver and renamed from there, so that nothing is left
//! beside other files; what a receiver that was killed has left there the next one removes.
//!
//! Invariant: a file has its name only when it is whole; with `file` and `directory` that holds after a crash of the system
//! too. Nothing is called durable before its name is synced.
//! Invariant: a part file belongs to one transfer. Those of others are never in the way, and never written.
//! Invariant: at most [`OPEN_FILES_MAX`] part files are open, however many are begun.

mod disk;
mod journal;
mod keeping;
#[cfg(test)]
mod page_cache;
#[cfg(test)]
mod resume_tests;
#[cfg(test)]
mod tests;

use super::file_name::SafePath;
use clap::ValueEnum;
pub(super) use disk::{Directory, Disk, Existing, Inode, SCRATCH_PREFIX};
use journal::Journal;
pub(super) use journal::{INTERVAL_BYTES, Resumable, TransferId};
pub(super) use keeping::{Kept, Small};
use std::collections::{BTreeMap, VecDeque};
use std::io;

/// The most part files that are open at a time.
const OPEN_FILES_MAX: usize = 64;
/// The suffix of an incomplete file.
const PART_SUFFIX: &str = ".part";
/// The most bytes of a name in the name of its part file, whose journal has a longer one. NAME_MAX is 255 on Linux.
const PART_STEM_BYTES_MAX: usize = 200;
/// How many names are tried for a part file. Why random ones: numbers would be searched one by one past all that were left.
const PART_NAME_TRIES: usize = 8;
/// The permission bits of a file of which the sender has said none.
const USUAL_MODE: u32 = 0o666;
/// Those of a file that is not whole.
const PART_MODE: u32 = 0o600;

/// What must be on disk before a file is told to be whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(super) enum Durability {
    /// Nothing: the system writes when it wants to. A power cut may leave an empty file under the final name.
    None,
    /// The file's bytes and length. A power cut may leave it under its provisional name.
    File,
    /// Also its name in the directory.
    Directory,
}

/// What a file is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) name: SafePath,
    /// Permission bits and time of the last change, if the sender has said them.
    pub(super) mode: Option<u32>,
    pub(super) mtime: Option<(i64, u32)>,
    /// Whether a file that has its name gives way.
    pub(super) replaces: bool,
}

/// How a file begins.
#[derive(Clone, Debug)]
pub(super) enum Beginning {
    /// From its first byte, without a journal: nobody can go on with it.
    Plain,
    /// From its first byte, with a journal.
    New(TransferId),
    /// Where a part ends.
    Resumed(Resumable),
}

/// A file that is being received.
#[derive(Debug)]
struct Part<F> {
    target: Target,
    /// For a journal that is not begun.
    transfer: Option<TransferId>,
    journal: Option<Journal>,
    /// Its name on disk, once it was created.
    created: Option<(String, Inode)>,
    /// None before it was created, and while others use the descriptors.
    file: Option<F>,
    /// The length on disk.
    written_to: u64,
    /// The length it is to have.
    length: u64,
    /// Whether something that was written has not reached the medium and never will.
    is_lost: bool,
}

/// The files that are being received into one directory, by key.
#[derive(Debug)]
pub(super) struct Storage<D: Disk, K> {
    disk: D,
    durability: Durability,
    parts: BTreeMap<K, Part<D::File>>,
    /// Which parts are open, the most recently used last.
    open: VecDeque<K>,
    /// The directory of small files, once there is one.
    scratch: Option<String>,
    /// How many small files have been written there.
    small: u64,
}

impl<D: Disk, K: Copy + Ord> Storage<D, K> {
    /// Storage without files.
    pub(super) const fn new(disk: D, durability: Durability) -> Self {
        Self { disk, durability, parts: BTreeMap::new(), open: VecDeque::new(), scratch: None, small: 0 }
    }

    /// Begins a file; a sentence when its name is taken. Nothing is created before the first byte.
    pub(super) fn begin(&mut self, key: K, target: Target, beginning: Beginning) -> Result<(), String> {
        let name = &target.name;
        match self.disk.existing(name.as_str()) {
            Ok(None) => {}
            Ok(Some(found)) if target.replaces && found.is_file => {}
            Ok(Some(_)) => {
                return Err(format!("{name} exists at the receiver and is not overwritten; remove it or send under another name"));
            }
            Err(error) => return Err(format!("{name} cannot be created: {error}")),
        }
        let mut part = Part { target, transfer: None, journal: None, created: None, file: None, written_to: 0, length: 0, is_lost: false };
        match beginning {
            Beginning::Plain => {}
            Beginning::New(transfer) => part.transfer = Some(transfer),
            Beginning::Resumed(resumable) => {
                let name = part.target.name.clone();
                self.resume(&mut part, resumable).map_err(|error| format!("{name} cannot be gone on with: {error}"))?;
            }
        }
        self.parts.insert(key, part);
        Ok(())
    }

    /// Cuts a part and its journal to what was found right.
    fn resume(&self, part: &mut Part<D::File>, resumable: Resumable) -> io::Result<()> {
        let file = self.disk.open(&resumable.part, resumable.part_inode)?;
        if !self.disk.lock(&file)? {
            return Err(io::Error::other("another transfer of it has begun meanwhile"));
        }
        self.disk.set_len(&file, resumable.bytes)?;
        resumable.journal.cut(&self.disk)?;
        part.created = Some((resumable.part, resumable.part_inode));
        part.journal = Some(resumable.journal);
        (part.written_to, part.length) = (resumable.bytes, resumable.bytes);
        Ok(())
    }

    /// Writes all of `bytes` at `offset`.
    pub(super) fn write_at(&mut self, key: K, bytes: &[u8], offset: u64) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.open(key)?;
        let Some((disk, part, file)) = self.opened(key) else { return Err(not_begun()) };
        write_all(disk, file, bytes, offset)?;
        *part.written_to = (*part.written_to).max(offset.saturating_add(bytes.len() as u64));
        *part.length = (*part.length).max(*part.written_to);
        Ok(())
    }

    /// Makes the file `length` bytes long, if it is shorter: what is not written reads as zeros and takes no room.
    pub(super) fn extend_to(&mut self, key: K, length: u64) {
        if let Some(part) = self.parts.get_mut(&key) {
            part.length = part.length.max(length);
        }
    }

    /// Reads back at `offset` what fits the buffer.
    pub(super) fn read_at(&mut self, key: K, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.open(key)?;
        let Some((disk, _, file)) = self.opened(key) else { return Err(not_begun()) };
        disk.read_at(file, buffer, offset)
    }

    /// Whether the file has a journal, and how far it is written by that.
    pub(super) fn noted_to(&self, key: K) -> Option<u64> {
        self.parts.get(&key)?.journal.as_ref().map(|journal| journal.written_to)
    }

    /// Notes in the journal that the first `bytes`, whose hash it is, are written; with a sync of them as far as asked for. Whether they
    /// are on the medium now.
    pub(super) fn note(&mut self, key: K, bytes: u64, hash: &str) -> io::Result<bool> {
        let syncs = self.durability >= Durability::File;
        self.open(key)?;
        if syncs {
            let Some((disk, _, file)) = self.opened(key) else { return Err(not_begun()) };
            disk.sync(file)?;
        }
        let Some(journal) = self.parts.get_mut(&key).and_then(|part| part.journal.as_mut()) else { return Ok(false) };
        journal.note(&self.disk, bytes, hash, syncs)?;
        Ok(syncs)
    }

    /// Ends a file that is not whole; the name of its part file, which stays, if there is one. `is_wrong`: nobody is to go on with it.
    pub(super) fn leave(&mut self, key: K, is_wrong: bool) -> Option<String> {
        self.open.retain(|other| *other != key);
        let part = self.parts.remove(&key)?;
        if let Some(journal) = part.journal.filter(|_| is_wrong) {
            // Why ignored: what cannot be removed is found wrong again.
            let _ = journal.remove(&self.disk);
        }
        part.created.map(|(name, _)| name)
    }

    /// The name of a file in the directory: the provisional one once it is there.
    pub(super) fn name(&self, key: K) -> Option<&str> {
        let part = self.parts.get(&key)?;
        Some(part.created.as_ref().map_or(part.target.name.as_str(), |(name, _)| name))
    }

    /// The directory.
    pub(super) const fn disk(&self) -> &D {
        &self.disk
    }

    /// Makes sure that a part is open; for that the one that was used least recently is closed when there are too many.
    fn open(&mut self, key: K) -> io::Result<()> {
        self.open.retain(|other| *other != key);
        let Some(part) = self.parts.get(&key) else { return Err(not_begun()) };
        if part.file.is_none()
            && self.open.len() >= OPEN_FILES_MAX
            && let Some(oldest) = self.open.pop_front()
        {
            self.close(oldest);
        }
        let Some(part) = self.parts.get_mut(&key) else { return Err(not_begun()) };
        if part.is_lost {
            return Err(io::Error::other("what was written before could not be synced"));
        }
        if part.file.is_none() {
            part.file = Some(match &part.created {
                // Limit: while it was closed, another program could have locked it.
                Some((name, inode)) => {
                    let file = self.disk.open(name, *inode)?;
                    self.disk.lock(&file)?;
                    file
                }
                None => create(&self.disk, part)?,
            });
        }
        self.open.push_back(key);
        Ok(())
    }

    /// Closes a part that goes on later.
    fn close(&mut self, key: K) {
        let Some(part) = self.parts.get_mut(&key) else { return };
        let Some(file) = part.file.take() else { return };
        // Why here: the system tells an error of writing back to those who have the file open, and nobody has it from now on.
        part.is_lost = self.durability >= Durability::File && self.disk.sync(&file).is_err();
    }

    /// The disk, the lengths and the descriptor of a part that is open.
    fn opened(&mut self, key: K) -> Option<(&D, Lengths<'_>, &D::File)> {
        let Part { file, written_to, length, .. } = self.parts.get_mut(&key)?;
        Some((&self.disk, Lengths { written_to, length }, file.as_ref()?))
    }
}

/// The lengths of a part.
struct Lengths<'a> {
    written_to: &'a mut u64,
    length: &'a mut u64,
}

/// The part of a transfer of `name` that it can go on with, if there is one.
pub(super) fn find<D: Disk>(disk: &D, name: &SafePath, transfer: &TransferId) -> io::Result<Option<Resumable>> {
    for part in [part_name(name, None), part_name(name, Some(transfer.token()))] {
        if let Some(found) = journal::find(disk, &part, transfer)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// The name of a part file, perhaps with a token.
fn part_name(name: &SafePath, token: Option<&str>) -> String {
    let (directory, last) = name.as_str().rsplit_once('/').map_or(("", name.as_str()), |(directory, last)| (directory, last));
    let slash = if directory.is_empty() { "" } else { "/" };
    let end = (0..=PART_STEM_BYTES_MAX.min(last.len())).rev().find(|&end| last.is_char_boundary(end));
    let stem = last.get(..end.unwrap_or(0)).unwrap_or("");
    match token {
        None => format!("{directory}{slash}{stem}{PART_SUFFIX}"),
        Some(token) => format!("{directory}{slash}{stem}.{token}{PART_SUFFIX}"),
    }
}

/// Creates a part file under a name of its own, and its journal if it is to have one.
fn create<D: Disk>(disk: &D, part: &mut Part<D::File>) -> io::Result<D::File> {
    let mode = part.target.mode.map_or(USUAL_MODE, |_| PART_MODE);
    for attempt in 0..PART_NAME_TRIES {
        let token = match (attempt, &part.transfer) {
            (0, _) => None,
            (1, Some(transfer)) => Some(transfer.token().to_owned()),
            _ => Some(format!("{:08x}", getrandom::u32().map_err(|error| io::Error::other(error.to_string()))?)),
        };
        let name = part_name(&part.target.name, token.as_deref());
        let (file, inode) = match disk.create(&name, mode) {
            Ok(created) => created,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(error),
        };
        disk.lock(&file)?;
        if let Some(transfer) = &part.transfer {
            match Journal::begin(disk, &name, inode, transfer) {
                Ok(journal) => part.journal = Some(journal),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    // The journal of a part that is no more.
                    disk.remove(&name)?;
                    continue;
                }
                Err(error) => return Err(error),
            }
        }
        part.created = Some((name, inode));
        return Ok(file);
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Writes all of `bytes` at `offset`.
fn write_all<D: Disk>(disk: &D, file: &D::File, bytes: &[u8], offset: u64) -> io::Result<()> {
    let mut written = 0;
    while let Some(rest) = bytes.get(written..).filter(|rest| !rest.is_empty()) {
        match disk.write_at(file, rest, offset.saturating_add(written as u64)) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => written += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn not_begun() -> io::Error {
    io::Error::other("it was not begun")
}
