//! The key log: the secrets of connections, for tools that read captures (draft-ietf-tls-keylogfile).
//!
//! Opened by the command or the library's user, who asks for it; written by rustls as secrets come to be.
//!
//! Invariant: nothing is written unless a file was given here. No environment variable is read.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// A file that gets the secrets of every connection of an endpoint. Whoever has it can read these connections. Cheap to clone.
#[derive(Clone, Debug)]
pub struct KeyLog(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// None after a write has failed: half a log is worth something, a transfer that ends because of it is not.
    file: Mutex<Option<File>>,
}

impl KeyLog {
    /// Appends to `path`; a file that is made now is readable by its owner only.
    ///
    /// # Errors
    /// If the file can be neither opened nor made.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut options = File::options();
        options.create(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        Ok(Self(Arc::new(Inner { file: Mutex::new(Some(options.open(path)?)) })))
    }

    /// The same as rustls calls it.
    pub(crate) fn of(log: Option<&Self>) -> Arc<dyn rustls::KeyLog> {
        log.map_or_else(|| Arc::new(rustls::NoKeyLog {}) as Arc<dyn rustls::KeyLog>, |log| Arc::<Inner>::clone(&log.0))
    }
}

impl rustls::KeyLog for Inner {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let hex = |bytes: &[u8]| data_encoding::HEXLOWER.encode(bytes);
        let line = format!("{label} {} {}\n", hex(client_random), hex(secret));
        // A lock is poisoned only by a panic while it is held, and nothing here panics.
        let mut file = self.file.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // One write a line, so that endpoints in several processes can share the file.
        if file.as_mut().is_some_and(|file| file.write_all(line.as_bytes()).is_err()) {
            *file = None;
        }
    }
}
