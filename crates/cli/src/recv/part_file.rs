//! A file that is being received: `NAME.part` until it is whole, then `NAME`.
//!
//! Called by the writer.
//!
//! Invariant: nothing that exists is overwritten and no link is followed: the part is created exclusively (O_EXCL) in
//! a directory that is held open, and renamed without replacing (renameat2 RENAME_NOREPLACE, or a hard link where the
//! file system lacks it).

use super::file_name::FileName;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// What is behind the name of a file that is not whole.
const PART_SUFFIX: &str = ".part";

/// A file under way.
#[derive(Debug)]
pub(super) struct PartFile {
    directory: OwnedFd,
    /// The directory for people.
    place: String,
    name: FileName,
    part: String,
    file: File,
}

impl PartFile {
    /// Creates the part of `name` in `directory`; a sentence when there is something in the way.
    pub(super) fn create(directory: &Path, name: FileName) -> Result<Self, String> {
        let place = directory.display().to_string();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::openat(CWD, directory, flags, Mode::empty())
            .map_err(|error| format!("the directory {place} cannot be used: {}", system(error)))?;
        let part = format!("{name}{PART_SUFFIX}");
        match rustix::fs::statat(&directory, name.as_str(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => return Err(format!("{name} exists at the receiver and is not overwritten; remove it or send under another name")),
            Err(Errno::NOENT) => {}
            Err(error) => return Err(format!("{name} cannot be created: {}", system(error))),
        }
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&directory, &part, flags, Mode::from_raw_mode(0o666)).map_err(|error| match error {
            Errno::EXIST => format!("{part} exists at the receiver, left by another transfer, and is not overwritten; remove it"),
            error => format!("{part} cannot be created: {}", system(error)),
        })?;
        Ok(Self { directory, place, name, part, file: File::from(file) })
    }

    /// Writes all of `bytes` at `offset`.
    pub(super) fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    /// Reads at `offset` what fits the buffer.
    pub(super) fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buffer, offset)
    }

    /// Where the part is, for people.
    pub(super) fn path(&self) -> String {
        format!("{}/{}", self.place, self.part)
    }

    /// Gives the file its name, unless something else has it by now.
    pub(super) fn keep(&self) -> Result<(), String> {
        let (from, to) = (self.part.as_str(), self.name.as_str());
        let renamed = match rustix::fs::renameat_with(&self.directory, from, &self.directory, to, RenameFlags::NOREPLACE) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                rustix::fs::linkat(&self.directory, from, &self.directory, to, AtFlags::empty())
                    .and_then(|()| rustix::fs::unlinkat(&self.directory, from, AtFlags::empty()))
            }
            other => other,
        };
        renamed.map_err(|error| match error {
            Errno::EXIST => format!("{to} has come into being meanwhile and is not overwritten; what was received is in {}", self.path()),
            error => format!("{} cannot be renamed to {to}: {}", self.path(), system(error)),
        })
    }
}

fn system(error: Errno) -> io::Error {
    io::Error::from(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn create(directory: &Path, name: &str) -> Result<PartFile, String> {
        PartFile::create(directory, FileName::parse(name).unwrap())
    }

    #[test]
    fn a_file_has_its_name_only_when_it_is_whole() {
        let directory = tempfile::tempdir().unwrap();
        let part = create(directory.path(), "a").unwrap();
        part.write_at(b"world", 6).unwrap();
        part.write_at(b"hello ", 0).unwrap();
        assert!(!directory.path().join("a").exists());
        part.keep().unwrap();
        assert_eq!(std::fs::read(directory.path().join("a")).unwrap(), b"hello world");
        assert!(!directory.path().join("a.part").exists());
    }

    #[test]
    fn what_exists_is_not_overwritten_and_links_are_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        std::fs::write(at("there"), b"old").unwrap();
        std::fs::write(at("late.part"), b"old").unwrap();
        std::os::unix::fs::symlink(at("target"), at("link")).unwrap();
        std::os::unix::fs::symlink(at("target"), at("sly.part")).unwrap();
        for name in ["there", "late", "link", "sly"] {
            assert!(create(directory.path(), name).unwrap_err().contains("exists"), "{name}");
        }
        assert!(!at("target").exists());
        let raced = create(directory.path(), "raced").unwrap();
        std::fs::write(at("raced"), b"old").unwrap();
        assert!(raced.keep().unwrap_err().contains("not overwritten"));
        assert_eq!(std::fs::read(at("raced")).unwrap(), b"old");
    }
}
