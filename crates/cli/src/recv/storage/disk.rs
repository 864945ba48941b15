//! What storage asks of a file system, and the directory of a real one.
//!
//! Called by [`super::Storage`] and [`super::journal`]. The tests put a model of the page cache in its place. Names are paths below the
//! directory, with slashes; [`SafePath`](super::super::file_name::SafePath) has seen to it that they lead nowhere else.
//!
//! Invariant: no link is followed, in no part of a path: each directory on the way is opened by its name in the one before (O_NOFOLLOW).
//! Invariant: nothing that exists is overwritten, unless that is asked for: files are created exclusively (O_EXCL) and renamed without
//! replacing (renameat2 RENAME_NOREPLACE, or a hard link where the file system lacks it).

use rustix::fs::{AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, RenameFlags, Timespec, Timestamps};
use rustix::io::Errno;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How many directories below the first are held open.
const PARENTS_MAX: usize = 16;
/// How many names are tried for the directory of small files that are not whole.
const SCRATCH_TRIES: usize = 8;
/// Its name is hidden, begins so and ends with [`SCRATCH_SUFFIX`].
pub(in crate::recv) const SCRATCH_PREFIX: &str = ".segstream.";
const SCRATCH_SUFFIX: &str = ".part";

/// What a file is, whatever its name.
pub(in crate::recv) type Inode = u64;

/// What is known of something that has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::recv) struct Existing {
    pub(in crate::recv) is_file: bool,
    pub(in crate::recv) is_directory: bool,
    pub(in crate::recv) bytes: u64,
    pub(in crate::recv) mtime: (i64, u32),
    pub(in crate::recv) inode: Inode,
}

/// One directory of a file system and what is below it.
pub(in crate::recv) trait Disk {
    /// An open file.
    type File;
    /// What has this name, a dangling link included.
    fn existing(&self, name: &str) -> io::Result<Option<Existing>>;
    /// Creates a file that did not exist, with these permission bits less those of the umask.
    fn create(&self, name: &str, mode: u32) -> io::Result<(Self::File, Inode)>;
    /// Opens a file again; an error when it is no longer the same file.
    fn open(&self, name: &str, inode: Inode) -> io::Result<Self::File>;
    /// Whether the file is this program's alone from now on, until it is closed.
    fn lock(&self, file: &Self::File) -> io::Result<bool>;
    /// Writes a beginning of `bytes` at `offset`; how many.
    fn write_at(&self, file: &Self::File, bytes: &[u8], offset: u64) -> io::Result<usize>;
    /// Reads at `offset` what fits the buffer; how many.
    fn read_at(&self, file: &Self::File, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Makes the file `length` bytes long; what is new reads as zeros and takes no room.
    fn set_len(&self, file: &Self::File, length: u64) -> io::Result<()>;
    /// Sets permission bits, less those of the umask, and the time of the last change.
    fn set_attributes(&self, file: &Self::File, mode: Option<u32>, mtime: Option<(i64, u32)>) -> io::Result<()>;
    /// Returns once data and length are on the storage medium.
    fn sync(&self, file: &Self::File) -> io::Result<()>;
    /// Gives a file another name; nothing gives way to it unless it `replaces`.
    fn rename(&self, from: &str, to: &str, replaces: bool) -> io::Result<()>;
    /// Takes a name away.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Returns once the names in the directory of `name` are on the storage medium.
    fn sync_names(&self, name: &str) -> io::Result<()>;
    /// Returns once everything that was written before is on the storage medium: data and names.
    fn sync_all(&self) -> io::Result<()>;
    /// Makes a directory; whether it did not exist.
    fn make_directory(&self, name: &str, mode: u32) -> io::Result<bool>;
    /// Makes a directory of a name of its own for files that are not whole; the name.
    fn make_scratch(&self) -> io::Result<String>;
}

/// A directory that is held open.
#[derive(Debug)]
pub(in crate::recv) struct Directory {
    descriptor: Arc<OwnedFd>,
    path: PathBuf,
    /// Directories below it that were used last, by their names.
    parents: RefCell<VecDeque<(String, Arc<OwnedFd>)>>,
    /// The directory of small files, which stays open and locked, and its name.
    scratch: RefCell<Option<(String, OwnedFd)>>,
    umask: u32,
}

impl Directory {
    /// Opens the directory at `path`.
    pub(in crate::recv) fn open(path: &Path) -> io::Result<Self> {
        let descriptor = Arc::new(rustix::fs::openat(CWD, path, directory_flags() & !OFlags::NOFOLLOW, Mode::empty())?);
        let (parents, scratch) = (RefCell::default(), RefCell::default());
        Ok(Self { descriptor, path: path.to_owned(), parents, scratch, umask: umask() })
    }

    /// Its path, for people.
    pub(in crate::recv) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a file to read it only; an error when it is no longer the same file.
    pub(in crate::recv) fn open_to_read(&self, name: &str, known: Inode) -> io::Result<File> {
        self.open_with(name, known, OFlags::RDONLY)
    }

    /// Sets the time of the last change of a directory.
    pub(in crate::recv) fn set_directory_time(&self, name: &str, mtime: (i64, u32)) -> io::Result<()> {
        let (parent, last) = self.parent(name)?;
        let directory = rustix::fs::openat(&*parent, last, directory_flags(), Mode::empty())?;
        Ok(rustix::fs::futimens(directory, &times(mtime))?)
    }

    /// Makes a symbolic link that did not exist.
    pub(in crate::recv) fn make_link(&self, name: &str, target: &str) -> io::Result<()> {
        let (parent, last) = self.parent(name)?;
        Ok(rustix::fs::symlinkat(target, &*parent, last)?)
    }

    /// Where a link leads.
    pub(in crate::recv) fn link_target(&self, name: &str) -> io::Result<Vec<u8>> {
        let (parent, last) = self.parent(name)?;
        Ok(rustix::fs::readlinkat(&*parent, last, Vec::new())?.into_bytes())
    }

    /// Removes what receivers that are no more have left of small files.
    pub(in crate::recv) fn clear_scratch(&self) -> io::Result<()> {
        let list = rustix::fs::openat(&*self.descriptor, ".", directory_flags(), Mode::empty())?;
        for entry in rustix::fs::Dir::new(list)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            if !name.starts_with(SCRATCH_PREFIX) || !name.ends_with(SCRATCH_SUFFIX) {
                continue;
            }
            let Ok(left) = rustix::fs::openat(&*self.descriptor, name, directory_flags(), Mode::empty()) else { continue };
            // Why the lock: a receiver that lives holds it.
            if rustix::fs::flock(&left, FlockOperation::NonBlockingLockExclusive).is_ok() {
                self.remove_scratch(name, &left)?;
            }
        }
        Ok(())
    }

    fn remove_scratch(&self, name: &str, scratch: &OwnedFd) -> io::Result<()> {
        for entry in rustix::fs::Dir::read_from(scratch)? {
            let entry = entry?;
            // Why only numbers: nothing else is made there.
            if entry.file_name().to_bytes().iter().all(u8::is_ascii_digit) {
                rustix::fs::unlinkat(scratch, entry.file_name(), AtFlags::empty())?;
            }
        }
        Ok(rustix::fs::unlinkat(&*self.descriptor, name, AtFlags::REMOVEDIR)?)
    }

    fn open_with(&self, name: &str, known: Inode, access: OFlags) -> io::Result<File> {
        let (parent, last) = self.parent(name)?;
        // Why not blocking: somebody may have put a FIFO there.
        let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::openat(&*parent, last, flags, Mode::empty())?);
        let metadata = file.metadata()?;
        if metadata.ino() != known || !metadata.is_file() {
            return Err(io::Error::other("another file has its name now"));
        }
        Ok(file)
    }

    /// The directory that `name` is in, and the last part of the name.
    fn parent<'a>(&self, name: &'a str) -> io::Result<(Arc<OwnedFd>, &'a str)> {
        let Some((directory, last)) = name.rsplit_once('/') else { return Ok((Arc::clone(&self.descriptor), name)) };
        if let Some((_, found)) = self.parents.borrow().iter().find(|(known, _)| known == directory) {
            return Ok((Arc::clone(found), last));
        }
        let (above, own) = self.parent(directory)?;
        let opened = Arc::new(rustix::fs::openat(&*above, own, directory_flags(), Mode::empty())?);
        let mut parents = self.parents.borrow_mut();
        if parents.len() >= PARENTS_MAX {
            parents.pop_front();
        }
        parents.push_back((directory.to_owned(), Arc::clone(&opened)));
        Ok((opened, last))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if let Some((name, scratch)) = self.scratch.take() {
            // Why ignored: the next receiver tries again.
            let _ = self.remove_scratch(&name, &scratch);
        }
    }
}

impl Disk for Directory {
    type File = File;

    fn existing(&self, name: &str) -> io::Result<Option<Existing>> {
        let (parent, last) = match self.parent(name) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        match rustix::fs::statat(&*parent, last, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => {
                let kind = FileType::from_raw_mode(found.st_mode);
                Ok(Some(Existing {
                    is_file: kind.is_file(),
                    is_directory: kind.is_dir(),
                    bytes: found.st_size as u64,
                    mtime: (found.st_mtime, found.st_mtime_nsec as u32),
                    inode: found.st_ino,
                }))
            }
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn create(&self, name: &str, mode: u32) -> io::Result<(File, Inode)> {
        let (parent, last) = self.parent(name)?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::openat(&*parent, last, flags, Mode::from_raw_mode(mode & 0o777))?);
        let inode = file.metadata()?.ino();
        Ok((file, inode))
    }

    fn open(&self, name: &str, known: Inode) -> io::Result<File> {
        self.open_with(name, known, OFlags::RDWR)
    }

    fn lock(&self, file: &File) -> io::Result<bool> {
        match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(true),
            Err(Errno::WOULDBLOCK) => Ok(false),
            // A file system without locks: others are kept out by nothing, as in any other program there.
            Err(Errno::OPNOTSUPP | Errno::NOLCK | Errno::NOSYS) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    fn write_at(&self, file: &File, bytes: &[u8], offset: u64) -> io::Result<usize> {
        file.write_at(bytes, offset)
    }

    fn read_at(&self, file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        file.read_at(buffer, offset)
    }

    fn set_len(&self, file: &File, length: u64) -> io::Result<()> {
        file.set_len(length)
    }

    fn set_attributes(&self, file: &File, mode: Option<u32>, mtime: Option<(i64, u32)>) -> io::Result<()> {
        if let Some(mode) = mode {
            rustix::fs::fchmod(file, Mode::from_raw_mode(mode & 0o777 & !self.umask))?;
        }
        Ok(mtime.map_or(Ok(()), |mtime| rustix::fs::futimens(file, &times(mtime)))?)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        file.sync_all()
    }

    fn rename(&self, from: &str, to: &str, replaces: bool) -> io::Result<()> {
        let ((parent, last), (new_parent, new_last)) = (self.parent(from)?, self.parent(to)?);
        if replaces {
            return Ok(rustix::fs::renameat(&*parent, last, &*new_parent, new_last)?);
        }
        match rustix::fs::renameat_with(&*parent, last, &*new_parent, new_last, RenameFlags::NOREPLACE) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                rustix::fs::linkat(&*parent, last, &*new_parent, new_last, AtFlags::empty())?;
                Ok(rustix::fs::unlinkat(&*parent, last, AtFlags::empty())?)
            }
            other => Ok(other?),
        }
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let (parent, last) = self.parent(name)?;
        Ok(rustix::fs::unlinkat(&*parent, last, AtFlags::empty())?)
    }

    fn sync_names(&self, name: &str) -> io::Result<()> {
        Ok(rustix::fs::fsync(&*self.parent(name)?.0)?)
    }

    fn sync_all(&self) -> io::Result<()> {
        // Why it tells of errors: since Linux 5.8 it returns those of every file of the file system since the descriptor was opened.
        Ok(rustix::fs::syncfs(self.descriptor.as_fd())?)
    }

    fn make_directory(&self, name: &str, mode: u32) -> io::Result<bool> {
        let (parent, last) = self.parent(name)?;
        match rustix::fs::mkdirat(&*parent, last, Mode::from_raw_mode(mode & 0o777)) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn make_scratch(&self) -> io::Result<String> {
        for _ in 0..SCRATCH_TRIES {
            let token = getrandom::u32().map_err(|error| io::Error::other(error.to_string()))?;
            let name = format!("{SCRATCH_PREFIX}{token:08x}{SCRATCH_SUFFIX}");
            match rustix::fs::mkdirat(&*self.descriptor, name.as_str(), Mode::from_raw_mode(0o700)) {
                Ok(()) => {}
                Err(Errno::EXIST) => continue,
                Err(error) => return Err(error.into()),
            }
            let scratch = rustix::fs::openat(&*self.descriptor, name.as_str(), directory_flags(), Mode::empty())?;
            // Why looked at again: another receiver may have taken it for one that was left, before it was locked.
            let is_locked = rustix::fs::flock(&scratch, FlockOperation::NonBlockingLockExclusive).is_ok();
            if is_locked && self.existing(&name)?.is_some() {
                *self.scratch.borrow_mut() = Some((name.clone(), scratch));
                return Ok(name);
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }
}

fn directory_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

fn times((seconds, nanoseconds): (i64, u32)) -> Timestamps {
    let omitted = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT };
    // Why a bound: larger numbers have meanings of their own (UTIME_NOW).
    let changed = Timespec { tv_sec: seconds, tv_nsec: nanoseconds.min(999_999_999).into() };
    Timestamps { last_access: omitted, last_modification: changed }
}

/// The permission bits that this process gives nobody. Why from /proc: umask(2) tells them only by changing them.
fn umask() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    line.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok()).unwrap_or(0o077)
}
