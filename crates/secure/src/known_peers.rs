//! The keys of known peers: a file with a line `address fingerprint` for each, as ssh's known_hosts (trust on first use).
//!
//! The command reads it before it connects, and adds a key after the user has agreed.
//!
//! Invariant: a known key of an address is never changed here; the user forgets it first. Comments (`#`) and other lines stay as they are.

use crate::Fingerprint;
use segstream_proto::session::FingerprintError;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// The known peers of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownPeers {
    path: PathBuf,
    text: String,
    /// Line from 1, address, key.
    peers: Vec<(usize, String, Fingerprint)>,
}

/// Why the file of known peers could not be used.
#[derive(Debug, thiserror::Error)]
pub enum KnownPeersError {
    /// The file could not be read.
    #[error("{} cannot be read: {cause}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        cause: io::Error,
    },
    /// The file could not be written.
    #[error("{} cannot be written: {cause}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        cause: io::Error,
    },
    /// A line is not an address and a fingerprint.
    #[error("{} line {line}: {cause}; a line is an address, a space and a fingerprint, or a comment that begins with #", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        cause: String,
    },
    /// Another key is known for this address.
    #[error(
        "{} has another key for {address}: {known}. If you know why the peer has a new key, remove that line",
        path.display()
    )]
    Changed {
        /// The file.
        path: PathBuf,
        /// The address.
        address: String,
        /// The key in the file.
        known: Fingerprint,
        /// Its line, from 1.
        line: usize,
    },
    /// An address cannot be represented in the file.
    #[error("the key of \"{address}\" cannot be stored: an address has no spaces and does not begin with #")]
    Address {
        /// The address.
        address: String,
    },
}

impl KnownPeers {
    /// Reads the file. If it does not exist, no peer is known yet.
    ///
    /// # Errors
    /// If the file cannot be read or a line is malformed.
    pub fn load(path: &Path) -> Result<Self, KnownPeersError> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(cause) => return Err(KnownPeersError::Read { path: path.to_owned(), cause }),
        };
        let mut peers = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let peer = parse(line).map_err(|cause| KnownPeersError::Line { path: path.to_owned(), line: at + 1, cause })?;
            peers.extend(peer.map(|(address, key)| (at + 1, address, key)));
        }
        Ok(Self { path: path.to_owned(), text, peers })
    }

    /// The key of the peer at this address, which must be written as it was stored.
    pub fn find(&self, address: &str) -> Option<Fingerprint> {
        self.entry(address).map(|(_, key)| key)
    }

    /// The line of the file, from 1, that has the key of the peer at this address.
    pub fn line_of(&self, address: &str) -> Option<usize> {
        self.entry(address).map(|(line, _)| line)
    }

    fn entry(&self, address: &str) -> Option<(usize, Fingerprint)> {
        self.peers.iter().find(|(_, known, _)| known == address).map(|(line, _, key)| (*line, *key))
    }

    /// All of them, address and key, in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Fingerprint)> {
        self.peers.iter().map(|(_, address, key)| (address.as_str(), *key))
    }

    /// Removes the peer at this address, also from the file. Returns its key, or `None` if it was not known.
    ///
    /// # Errors
    /// If the file cannot be read again or written.
    pub fn forget(&mut self, address: &str) -> Result<Option<Fingerprint>, KnownPeersError> {
        let now = Self::load(&self.path)?;
        let Some(key) = now.find(address) else {
            *self = now;
            return Ok(None);
        };
        let gone = |number: usize| now.peers.iter().any(|(line, known, _)| *line == number && known == address);
        let lines = now.text.split_inclusive('\n').enumerate();
        let text: String = lines.filter(|(at, _)| !gone(at + 1)).map(|(_, line)| line).collect();
        Self { text, ..now.clone() }.write().map_err(|cause| KnownPeersError::Write { path: self.path.clone(), cause })?;
        *self = Self::load(&self.path)?;
        Ok(Some(key))
    }

    /// Stores the key of a peer, also in the file. Returns whether it is new.
    ///
    /// # Errors
    /// If another key is known for the address, or the file cannot be read again or written.
    // Limit: if two processes add a line at the same time, one line may be lost, and that process asks again next time.
    pub fn remember(&mut self, address: &str, key: Fingerprint) -> Result<bool, KnownPeersError> {
        if address.is_empty() || address.starts_with('#') || address.contains(char::is_whitespace) {
            return Err(KnownPeersError::Address { address: address.to_owned() });
        }
        let mut now = Self::load(&self.path)?;
        let is_new = match now.entry(address) {
            Some((line, known)) if known != key => {
                return Err(KnownPeersError::Changed { path: self.path.clone(), address: address.to_owned(), known, line });
            }
            Some(_) => false,
            None => {
                if !now.text.is_empty() && !now.text.ends_with('\n') {
                    now.text.push('\n');
                }
                now.text.push_str(&format!("{address} {key}\n"));
                now.peers.push((now.text.lines().count(), address.to_owned(), key));
                now.write().map_err(|cause| KnownPeersError::Write { path: self.path.clone(), cause })?;
                true
            }
        };
        *self = now;
        Ok(is_new)
    }

    /// Writes a temporary file and renames it, so that neither a reader nor a crash sees half of it.
    fn write(&self) -> io::Result<()> {
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
        fs::create_dir_all(folder)?;
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(self.text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(&self.path).map_err(|error| error.error)?;
        Ok(())
    }
}

/// The peer of a line, if it has one.
fn parse(line: &str) -> Result<Option<(String, Fingerprint)>, String> {
    let mut words = line.split_whitespace();
    let Some(address) = words.next().filter(|word| !word.starts_with('#')) else { return Ok(None) };
    let key = words.next().ok_or_else(|| "the fingerprint is missing".to_owned())?;
    let key = key.parse().map_err(|error: FingerprintError| error.to_string())?;
    match words.next() {
        Some(rest) if !rest.starts_with('#') => Err(format!("\"{rest}\" is one word too many")),
        _ => Ok(Some((address.to_owned(), key))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u8) -> Fingerprint {
        Fingerprint([number; 32])
    }

    #[test]
    fn what_is_remembered_is_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/known_peers");
        let mut peers = KnownPeers::load(&path).unwrap();
        assert_eq!(peers.find("host:4433"), None);
        peers.remember("host:4433", key(1)).unwrap();
        peers.remember("[::1]:4433", key(2)).unwrap();
        peers.remember("host:4433", key(1)).unwrap();
        assert_eq!(KnownPeers::load(&path).unwrap(), peers);
        assert_eq!((peers.find("host:4433"), peers.find("[::1]:4433"), peers.find("host")), (Some(key(1)), Some(key(2)), None));
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing is left beside the file");
    }

    #[test]
    fn comments_and_lines_that_others_added_meanwhile_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("known_peers");
        fs::write(&path, format!("# ours\n\na:1   {}  # the attic", key(1))).unwrap();
        let mut peers = KnownPeers::load(&path).unwrap();
        KnownPeers::load(&path).unwrap().remember("b:1", key(2)).unwrap();
        peers.remember("c:1", key(3)).unwrap();
        let expected = format!("# ours\n\na:1   {}  # the attic\nb:1 {}\nc:1 {}\n", key(1), key(2), key(3));
        assert_eq!(fs::read_to_string(&path).unwrap(), expected);
        assert_eq!(peers.find("b:1"), Some(key(2)));
    }

    #[test]
    fn a_peer_that_is_forgotten_can_be_remembered_with_another_key_and_the_rest_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("known_peers");
        fs::write(&path, format!("# ours\na:1 {}  # the attic\nb:1 {}\na:1 {}\n\n# end", key(1), key(2), key(1))).unwrap();
        let mut peers = KnownPeers::load(&path).unwrap();
        assert_eq!(peers.forget("c:1").unwrap(), None);
        assert_eq!(peers.forget("a:1").unwrap(), Some(key(1)));
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("# ours\nb:1 {}\n\n# end", key(2)));
        assert_eq!(peers.iter().collect::<Vec<_>>(), [("b:1", key(2))]);
        assert!(peers.remember("a:1", key(3)).unwrap());
        assert_eq!(KnownPeers::load(&path).unwrap().find("a:1"), Some(key(3)));
    }

    #[test]
    fn a_known_key_is_not_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("known_peers");
        let mut peers = KnownPeers::load(&path).unwrap();
        peers.remember("a:1", key(1)).unwrap();
        let error = peers.remember("a:1", key(2)).unwrap_err().to_string();
        assert!(error.contains(&key(1).to_string()) && error.contains("remove that line"), "{error}");
        assert_eq!(KnownPeers::load(&path).unwrap().find("a:1"), Some(key(1)));
    }

    #[test]
    fn a_malformed_line_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("known_peers");
        for bad in ["b:1", "b:1 SHA256:short", &format!("b:1 {} more", key(1))] {
            fs::write(&path, format!("# fine\na:1 {}\n{bad}\n", key(1))).unwrap();
            let error = KnownPeers::load(&path).unwrap_err().to_string();
            assert!(error.contains("known_peers line 3:"), "{error}");
        }
        for address in ["", "#a", "a b", "a\nb"] {
            let mut peers = KnownPeers::load(&folder.path().join("other")).unwrap();
            assert!(matches!(peers.remember(address, key(1)), Err(KnownPeersError::Address { .. })), "{address:?}");
        }
    }
}
