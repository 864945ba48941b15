//! Files that are appended to now and then, of which only some are open at a time.
//!
//! Called for the qlogs, of which there is one for each connection. The file that was used least recently is closed when another is opened and
//! there are as many as may be, or when the system has no descriptor left; it is opened again when it is used again.
//!
//! Invariant: no more files are open than was said, and each is one that this process has made.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// What a process gets if it has as many open files as it may (EMFILE), or the system has (ENFILE).
const TOO_MANY_OPEN: [i32; 2] = [24, 23];

/// Files by a key.
#[derive(Debug)]
pub(super) struct OpenFiles {
    open_max: usize,
    /// The one that was used last is the last.
    open: Vec<(u64, File)>,
}

impl OpenFiles {
    /// At most `open_max` files at a time, one at least.
    pub(super) fn new(open_max: usize) -> Self {
        Self { open_max: open_max.max(1), open: Vec::new() }
    }

    /// Makes the file of `key`.
    ///
    /// # Errors
    ///
    /// If there is a file at `path`, or the system cannot make one.
    pub(super) fn create(&mut self, key: u64, path: &Path) -> io::Result<()> {
        let file = self.open(OpenOptions::new().append(true).create_new(true), path)?;
        self.open.push((key, file));
        Ok(())
    }

    /// Appends to the file of `key`, which was made at `path`.
    ///
    /// # Errors
    ///
    /// If it is gone, or the system cannot write it.
    pub(super) fn append(&mut self, key: u64, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut file = match self.open.iter().rposition(|(of, _)| *of == key) {
            Some(place) => self.open.remove(place).1,
            None => self.open(OpenOptions::new().append(true), path)?,
        };
        let written = file.write_all(bytes);
        self.open.push((key, file));
        written
    }

    /// Nothing more will be appended to the file of `key`.
    pub(super) fn close(&mut self, key: u64) {
        self.open.retain(|(of, _)| *of != key);
    }

    fn open(&mut self, options: &OpenOptions, path: &Path) -> io::Result<File> {
        while self.open.len() >= self.open_max {
            self.open.remove(0);
        }
        loop {
            match options.open(path) {
                Err(error) if error.raw_os_error().is_some_and(|code| TOO_MANY_OPEN.contains(&code)) && !self.open.is_empty() => {
                    self.open.remove(0);
                }
                opened => return opened,
            }
        }
    }
}
