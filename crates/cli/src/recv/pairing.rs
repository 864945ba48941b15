//! Pairing: a sender that came with a one-time code is remembered by its own key, so that it needs no code from then on.
//!
//! ```text
//!  recv --pair NAME                          send --code --pair --peer FINGERPRINT
//!      │ one-time code, given by a person ──────────► key of this connection
//!      │ ◄──────────── in the manifest: fingerprint of the sender's own key │
//!  known_senders: NAME FINGERPRINT           known_peers: ADDR FINGERPRINT
//! ```
//!
//! Called by the admission of senders. The other half, that the sender remembers the receiver, is in `send/trust`.
//!
//! Invariant: only the connection whose key is derived from the code can name a key, once, inside the encryption. A name that has another key
//! is not overwritten.

use anyhow::{Result, bail};
use segstream::{Admission, Fingerprint, KnownPeers};
use std::path::{Path, PathBuf};

/// What has come of a request to be remembered.
#[derive(Debug)]
pub(super) struct Paired {
    /// The name under which the sender is remembered, if it is.
    pub(super) name: Option<String>,
    /// A sentence for the user.
    pub(super) told: String,
}

impl Paired {
    /// The sender is not remembered.
    pub(super) fn refused(why: &str) -> Self {
        Self { name: None, told: format!("note: {why}") }
    }
}

/// A sender that is to be remembered.
#[derive(Debug)]
pub(super) struct Pairing {
    name: String,
    senders: PathBuf,
    /// The key of the connection that has used the code.
    code_key: Option<Fingerprint>,
}

impl Pairing {
    /// Somebody is to be remembered as `name` in the file `senders`.
    ///
    /// # Errors
    /// If the name is taken, or the file cannot be read.
    pub(super) fn new(name: String, senders: PathBuf) -> Result<Self> {
        if let Some(key) = KnownPeers::load(&senders)?.find(&name) {
            bail!("{name} is remembered already, with the key {key}; take another name, or forget it: segstream identity forget {name}");
        }
        Ok(Self { name, senders, code_key: None })
    }

    /// The connection with this key has used the code.
    pub(super) const fn on_code_used(&mut self, key: Fingerprint) {
        self.code_key = Some(key);
    }

    /// A connection with the key `sender` names `key` as its own: it is stored and admitted from now on.
    pub(super) fn pair(&self, sender: Option<Fingerprint>, key: &str, keys: &Admission) -> Paired {
        if sender.is_none() || sender != self.code_key {
            return Paired::refused("a sender that has not used the code wants to be remembered; it is not");
        }
        let Ok(key) = key.parse::<Fingerprint>() else {
            return Paired::refused("the sender wants to be remembered by a key that is no fingerprint; it is not");
        };
        match KnownPeers::load(&self.senders).and_then(|mut known| known.remember(&self.name, key)) {
            Ok(_) => {
                keys.allow(key);
                let told = format!("the sender is remembered as {} with the key {key}; recv --known serves it without a code", self.name);
                Paired { name: Some(self.name.clone()), told }
            }
            Err(error) => Paired::refused(&format!("the sender could not be remembered: {error}")),
        }
    }
}

/// Admits every sender in the file.
///
/// # Errors
/// If it cannot be read, or there is none.
pub(super) fn allow_known(keys: &Admission, senders: &Path) -> Result<()> {
    let known = KnownPeers::load(senders)?;
    if known.iter().next().is_none() {
        bail!("no sender is remembered in {}; start recv with --pair NAME, and send with --code --pair", senders.display());
    }
    known.iter().for_each(|(_, key)| keys.allow(key));
    Ok(())
}

/// A name for a sender: it is a word in a line of a file.
pub(super) fn name(text: &str) -> Result<String, String> {
    let is_word = !text.is_empty() && text.len() <= 64 && text.chars().all(|letter| letter.is_alphanumeric() || "-_.@".contains(letter));
    if is_word { Ok(text.to_owned()) } else { Err("give a name of up to 64 letters, digits and - _ . @".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whoever_used_the_code_is_remembered_once_and_under_a_free_name() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("known_senders");
        let (code, own, other) = (Fingerprint([1; 32]), Fingerprint([2; 32]), Fingerprint([3; 32]));
        let keys = Admission::nobody();
        assert!(allow_known(&keys, &file).unwrap_err().to_string().contains("no sender is remembered"));
        let mut pairing = Pairing::new("studio".into(), file.clone()).unwrap();
        assert_eq!(pairing.pair(Some(code), &own.to_string(), &keys).name, None, "nobody has used the code");
        pairing.on_code_used(code);
        assert_eq!(pairing.pair(Some(other), &own.to_string(), &keys).name, None);
        assert_eq!(pairing.pair(Some(code), "SHA256:short", &keys).name, None);
        assert!(!file.exists());
        assert_eq!(pairing.pair(Some(code), &own.to_string(), &keys).name.as_deref(), Some("studio"));
        assert_eq!(KnownPeers::load(&file).unwrap().find("studio"), Some(own));
        assert_eq!(pairing.pair(Some(code), &other.to_string(), &keys).name, None, "the name has another key now");
        assert!(Pairing::new("studio".into(), file.clone()).is_err());
        allow_known(&keys, &file).unwrap();
        assert!(name("two words").is_err() && name("#x").is_err() && name("caf\u{e9}-1").is_ok());
    }
}
