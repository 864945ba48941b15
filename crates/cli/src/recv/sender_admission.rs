//! Which senders `recv` admits, and the command it prints for them.
//!
//! Called by the verb before it listens, and by the receiver's loop for each connection.
//!
//! Invariant: a sender is admitted by its key, by an authority, because anyone is, or, when no such flag was given, by a
//! one-time code that one connection uses up.

use super::Arguments;
use super::pairing::{self, Paired, Pairing};
use crate::address;
use crate::code_argument::VARIABLE;
use crate::protection::{KNOWN_SENDERS, Protection};
use anyhow::Result;
use clap::Args;
use segstream::blocking::Endpoint;
use segstream::{Admission, Builder, Fingerprint, OneTimeCode};
use std::net::SocketAddr;
use std::path::PathBuf;

/// The flags of `recv` that need encryption, by the names of their fields.
const FLAGS: &[&str] = &["allow", "allow_anyone", "pair", "known", "known_senders"];

/// The flags of `recv` that admit senders.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Protection")]
pub(crate) struct AdmissionArguments {
    /// Serves the sender with this key; can be repeated. Without --allow, --allow-anyone, --known and --authority a one-time code is
    /// printed instead: the first sender that gives it to `send` is served. With --keep a new code follows.
    #[arg(long, value_name = "FINGERPRINT")]
    allow: Vec<Fingerprint>,
    /// Serves every sender, whatever its key.
    // Why the alias: scripts have the name from before it was that of the libraries.
    #[arg(long, alias = "allow-any")]
    allow_anyone: bool,
    /// Prints a one-time code, and remembers the sender that gives it together with `send --pair` under this name.
    #[arg(long, value_name = "NAME", value_parser = pairing::name)]
    pair: Option<String>,
    /// Serves the senders that are remembered; `segstream identity` lists them.
    #[arg(long)]
    known: bool,
    /// The file of remembered senders, one line each: name and fingerprint [default: known_senders in the directory of the identity].
    #[arg(long, value_name = "FILE")]
    known_senders: Option<PathBuf>,
}

/// Which senders are admitted, and what is printed for them.
#[derive(Debug)]
pub(super) struct SenderAdmission {
    keys: Admission,
    /// The address it listens on, as a sender would write it.
    place: String,
    fingerprint: Option<Fingerprint>,
    /// The message about an identity that was just generated.
    made: Option<String>,
    /// The one-time code that is still unused, and the key derived from it.
    code: Option<(OneTimeCode, Fingerprint)>,
    /// Who is to be remembered, until that is done.
    pairing: Option<Pairing>,
}

/// Refuses flags that contradict each other.
///
/// # Errors
/// Bad usage.
pub(super) fn check(arguments: &Arguments) -> Result<()> {
    let explicit = &arguments.explicit;
    Protection::check(explicit, FLAGS)?;
    explicit.contradiction("allow_anyone", &["allow", "authority", "pair", "known"], "one serves every sender, the other only some")
}

/// Whether senders are admitted whose key or authority the user has not named.
pub(super) const fn serves_strangers(arguments: &Arguments) -> bool {
    arguments.admission.allow_anyone
}

impl SenderAdmission {
    /// The admission that the flags ask for, and a builder of the endpoint with its protection.
    pub(super) fn of(arguments: &Arguments) -> Result<(Self, Builder<Endpoint>)> {
        let mut admission =
            Self { keys: Admission::nobody(), place: String::new(), fingerprint: None, made: None, code: None, pairing: None };
        if arguments.protection.is_insecure() {
            return Ok((admission, Endpoint::builder().insecure()));
        }
        let AdmissionArguments { allow, allow_anyone, pair, known, known_senders } = &arguments.admission;
        let (identity, made) = arguments.protection.identity()?;
        admission.made = made;
        if *allow_anyone {
            admission.keys = Admission::anyone();
        }
        allow.iter().for_each(|key| admission.keys.allow(*key));
        let senders = || known_senders.clone().map_or_else(|| arguments.protection.beside_identity(KNOWN_SENDERS), Ok);
        if *known {
            pairing::allow_known(&admission.keys, &senders()?)?;
        }
        if let Some(name) = pair {
            admission.pairing = Some(Pairing::new(name.clone(), senders()?)?);
        }
        let authorities = arguments.protection.authorities()?;
        let is_chosen = pair.is_none() && (*allow_anyone || *known || !allow.is_empty() || authorities.is_some());
        if let Some(authorities) = authorities {
            admission.keys.allow_certified(authorities);
        }
        if !is_chosen {
            admission.open_code()?;
        }
        admission.fingerprint = Some(identity.fingerprint());
        let builder = arguments.protection.with_key_log(Endpoint::builder().identity(identity).admission(admission.keys.clone()))?;
        Ok((admission, builder))
    }

    fn open_code(&mut self) -> Result<()> {
        let code = OneTimeCode::generate()?;
        let key = self.keys.allow_once(&code)?;
        self.code = Some((code, key));
        Ok(())
    }

    /// Prints fingerprint and command on standard error, once the endpoint listens.
    pub(super) fn print(&mut self, address: SocketAddr) {
        self.place = address::destination(address);
        if let Some(made) = self.made.take() {
            eprintln!("{made}");
        }
        if let Some(fingerprint) = &self.fingerprint {
            eprintln!("fingerprint {fingerprint}");
        }
        if let Some(invitation) = self.invitation() {
            eprintln!("{invitation}");
        }
    }

    /// The command that sends to this receiver, ready to paste; none without encryption.
    fn invitation(&self) -> Option<String> {
        let (fingerprint, place) = (self.fingerprint.as_ref()?, &self.place);
        Some(match &self.code {
            Some((code, _)) => {
                let pair = if self.pairing.is_some() { " --pair" } else { "" };
                format!("to send: {VARIABLE}={code} segstream send {place} PATH --peer {fingerprint} --code{pair}")
            }
            None => format!("to send: segstream send {place} PATH --peer {fingerprint}"),
        })
    }

    /// A sender has connected. When it has used the code, the command with a new code for the next sender; none if this
    /// one `is_last`.
    pub(super) fn on_connected(&mut self, sender: Option<Fingerprint>, is_last: bool) -> Result<Option<String>> {
        if self.code.as_ref().is_none_or(|(_, key)| Some(*key) != sender) {
            return Ok(None);
        }
        self.code = None;
        if let Some((pairing, sender)) = self.pairing.as_mut().zip(sender) {
            pairing.on_code_used(sender);
        }
        if is_last {
            return Ok(None);
        }
        self.open_code()?;
        Ok(self.invitation())
    }

    /// The sender with this key of a connection wants to be remembered by another key of its own.
    pub(super) fn pair(&mut self, sender: Option<Fingerprint>, key: &str) -> Paired {
        let Some(pairing) = &self.pairing else {
            return Paired::refused("a sender wants to be remembered; start recv with --pair NAME to do that");
        };
        let paired = pairing.pair(sender, key, &self.keys);
        if paired.name.is_some() {
            self.pairing = None;
        }
        paired
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wildcard_becomes_a_placeholder_and_a_used_code_another() {
        let fingerprint = Some(Fingerprint([1; 32]));
        let mut admission =
            SenderAdmission { keys: Admission::nobody(), place: String::new(), fingerprint, made: None, code: None, pairing: None };
        admission.open_code().unwrap();
        admission.print(([0, 0, 0, 0], 4433).into());
        let first = admission.invitation().unwrap();
        assert!(first.contains("send HOST:4433 PATH --peer SHA256:") && first.ends_with(" --code"), "{first}");
        assert!(first.starts_with("to send: SEGSTREAM_CODE="), "no argument shows the code: {first}");
        let used = admission.code.as_ref().map(|(_, key)| *key);
        assert_eq!(admission.on_connected(Some(Fingerprint([2; 32])), false).unwrap(), None, "another key");
        let second = admission.on_connected(used, false).unwrap().unwrap();
        assert_ne!(first, second);
        let used = admission.code.as_ref().map(|(_, key)| *key);
        assert_eq!(admission.on_connected(used, true).unwrap(), None, "nobody is served any more");
    }
}
