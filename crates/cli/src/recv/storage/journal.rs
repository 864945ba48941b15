//! The journal beside a part file: how far the part is written, so that a transfer goes on where it was.
//!
//! ```text
//! NAME.part.journal
//! {"transfer":"5f1c...","inode":1234}     whose part it is
//! 33554432 9a0d...                        so many bytes are written; BLAKE3 of them
//! 67108864 41bb...
//! ```
//!
//! Called by storage, which writes it, and by the checks, which look for one.
//!
//! Invariant: nothing in it is trusted: a part is used as far as its bytes have the hash of a line, whatever was lost in a crash.
//! Invariant: a part is used only by the transfer that began it: the same sender, name, length and time of change.

use super::disk::{Disk, Inode};
use segstream::Fingerprint;
use serde::{Deserialize, Serialize};
use std::io;

/// How many bytes are written until the journal says so.
pub(in crate::recv) const INTERVAL_BYTES: u64 = 32 << 20;
/// The longest journal that is read: at an interval of 32 MiB enough for 6 TiB.
const JOURNAL_BYTES_MAX: u64 = 16 << 20;
/// How much of a part is read at a time.
const READ_BYTES: usize = 256 * 1024;
/// What is behind the name of the part.
const SUFFIX: &str = ".journal";

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    transfer: String,
    inode: Inode,
}

/// Which transfer of a file it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::recv) struct TransferId(String);

impl TransferId {
    /// The file `name` of a sender with this key, of a length, changed last at a time.
    pub(in crate::recv) fn new(sender: Option<Fingerprint>, name: &str, bytes: u64, mtime: Option<(i64, u32)>) -> Self {
        let mut hasher = blake3::Hasher::new();
        let sender = sender.map_or_else(String::new, |key| key.to_string());
        // Why it cannot fail: numbers and texts always have a form in JSON.
        hasher.update(&serde_json::to_vec(&(sender, name, bytes, mtime)).unwrap_or_default());
        Self(hasher.finalize().to_hex().to_string())
    }

    /// A part of its name for the part file, if the plain one is taken.
    pub(in crate::recv) fn token(&self) -> &str {
        self.0.get(..8).unwrap_or("")
    }
}

/// A part that a transfer can go on with.
#[derive(Clone, Debug)]
pub(in crate::recv) struct Resumable {
    pub(super) part: String,
    pub(super) part_inode: Inode,
    pub(super) journal: Journal,
    /// So many bytes are as the journal says.
    pub(in crate::recv) bytes: u64,
    /// The hash of them, to go on with.
    pub(in crate::recv) hasher: Box<blake3::Hasher>,
}

impl Resumable {
    /// The same part, to be written anew from its first byte.
    pub(in crate::recv) fn emptied(self) -> Self {
        let journal = Journal { length: self.journal.head_bytes, written_to: 0, ..self.journal };
        Self { bytes: 0, hasher: Box::default(), journal, ..self }
    }

    /// The hash of what is there.
    pub(in crate::recv) fn hash(&self) -> String {
        self.hasher.finalize().to_hex().to_string()
    }
}

/// A journal that is written.
#[derive(Clone, Debug)]
pub(super) struct Journal {
    name: String,
    inode: Inode,
    length: u64,
    /// How long the first line is.
    head_bytes: u64,
    /// The last line's bytes of the part.
    pub(super) written_to: u64,
}

/// The name of the journal of a part.
pub(super) fn name_of(part: &str) -> String {
    format!("{part}{SUFFIX}")
}

impl Journal {
    /// Begins the journal of a part that was just created. Whether another has that name tells the error.
    pub(super) fn begin<D: Disk>(disk: &D, part: &str, part_inode: Inode, transfer: &TransferId) -> io::Result<Self> {
        let name = name_of(part);
        let (file, inode) = disk.create(&name, 0o600)?;
        let mut head = serde_json::to_vec(&Head { transfer: transfer.0.clone(), inode: part_inode })?;
        head.push(b'\n');
        let mut journal = Self { name, inode, length: 0, head_bytes: head.len() as u64, written_to: 0 };
        journal.append(disk, &file, &head)?;
        Ok(journal)
    }

    /// Says that the part is written so far. `syncs`: it is on the medium, and this is to be.
    pub(super) fn note<D: Disk>(&mut self, disk: &D, bytes: u64, hash: &str, syncs: bool) -> io::Result<()> {
        let file = disk.open(&self.name, self.inode)?;
        let is_first = self.written_to == 0;
        self.append(disk, &file, format!("{bytes} {hash}\n").as_bytes())?;
        self.written_to = bytes;
        if !syncs {
            return Ok(());
        }
        disk.sync(&file)?;
        if is_first { disk.sync_names(&self.name) } else { Ok(()) }
    }

    /// Forgets what is behind the lines that were found right.
    pub(super) fn cut<D: Disk>(&self, disk: &D) -> io::Result<()> {
        disk.set_len(&disk.open(&self.name, self.inode)?, self.length)
    }

    /// Takes it away: the part has become the file.
    pub(super) fn remove<D: Disk>(&self, disk: &D) -> io::Result<()> {
        disk.remove(&self.name)
    }

    fn append<D: Disk>(&mut self, disk: &D, file: &D::File, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match disk.write_at(file, bytes, self.length) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    self.length += count as u64;
                    bytes = bytes.get(count..).unwrap_or(&[]);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// The part of `transfer` under the name `part`, as far as its bytes are what its journal says.
pub(super) fn find<D: Disk>(disk: &D, part: &str, transfer: &TransferId) -> io::Result<Option<Resumable>> {
    let name = name_of(part);
    let Some(journal) = disk.existing(&name)?.filter(|found| found.is_file && found.bytes <= JOURNAL_BYTES_MAX) else { return Ok(None) };
    let text = read_all(disk, &disk.open(&name, journal.inode)?, journal.bytes)?;
    let mut lines = text.split_inclusive('\n');
    let head = lines.next().unwrap_or("");
    let Some(Head { inode, .. }) = serde_json::from_str::<Head>(head).ok().filter(|head| head.transfer == transfer.0) else {
        return Ok(None);
    };
    let Some(found) = disk.existing(part)?.filter(|found| found.is_file && found.inode == inode) else {
        // Its part has become the file, or is no more.
        disk.remove(&name)?;
        return Ok(None);
    };
    let file = disk.open(part, inode)?;
    if !disk.lock(&file)? {
        return Ok(None);
    }
    let head_bytes = head.len() as u64;
    let own = Journal { name, inode: journal.inode, length: head_bytes, head_bytes, written_to: 0 };
    let mut resumable = Resumable { part: part.to_owned(), part_inode: inode, journal: own, bytes: 0, hasher: Box::default() };
    let mut reading = Reading { hasher: blake3::Hasher::new(), to: 0, buffer: vec![0; READ_BYTES] };
    let mut length = head_bytes;
    for line in lines {
        length += line.len() as u64;
        let said = line.strip_suffix('\n').and_then(|line| line.split_once(' '));
        let Some((Ok(bytes), hash)) = said.map(|(bytes, hash)| (bytes.parse::<u64>(), hash)) else { break };
        if bytes <= reading.to || bytes > found.bytes || !reading.read_to(disk, &file, bytes)? {
            break;
        }
        // Why it goes on when it differs: a line may be of what was lost and written again.
        if reading.hasher.finalize().to_hex().as_str() == hash {
            resumable.journal.length = length;
            resumable.journal.written_to = bytes;
            resumable.bytes = bytes;
            *resumable.hasher = reading.hasher.clone();
        }
    }
    Ok(Some(resumable))
}

/// A part that is read from its beginning.
struct Reading {
    hasher: blake3::Hasher,
    to: u64,
    buffer: Vec<u8>,
}

impl Reading {
    /// Reads on to `end`; whether so much is there.
    fn read_to<D: Disk>(&mut self, disk: &D, file: &D::File, end: u64) -> io::Result<bool> {
        while self.to < end {
            let most = self.buffer.len().min((end - self.to) as usize);
            let Some(buffer) = self.buffer.get_mut(..most) else { return Ok(false) };
            let count = disk.read_at(file, buffer, self.to)?;
            if count == 0 {
                return Ok(false);
            }
            self.hasher.update(buffer.get(..count).unwrap_or(&[]));
            self.to += count as u64;
        }
        Ok(true)
    }
}

fn read_all<D: Disk>(disk: &D, file: &D::File, length: u64) -> io::Result<String> {
    let (mut bytes, mut read) = (vec![0; length as usize], 0);
    while let Some(rest) = bytes.get_mut(read..).filter(|rest| !rest.is_empty()) {
        match disk.read_at(file, rest, read as u64)? {
            0 => break,
            count => read += count,
        }
    }
    bytes.truncate(read);
    // What is no text was torn in a crash: what comes before it counts.
    let valid = std::str::from_utf8(&bytes).map_or_else(|error| error.valid_up_to(), str::len);
    bytes.truncate(valid);
    Ok(String::from_utf8(bytes).unwrap_or_default())
}
