//! Whom `recv` serves, and how it tells people to send to it.
//!
//! Called by the verb before it listens, and by the receiver's loop for each connection.
//!
//! Invariant: only those are served who were named: by key, by authority, as anyone, or, when nobody was, by a one-time
//! code that one connection uses up.

use super::Arguments;
use crate::protection::Protection;
use anyhow::Result;
use clap::Args;
use segstream::blocking::Endpoint;
use segstream::{Admission, Builder, Fingerprint, OneTimeCode};
use std::net::SocketAddr;

/// The flags of the receiver, by the names of their fields.
const FLAGS: &[&str] = &["allow", "allow_any"];

/// The flags of the receiver about its senders.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Protection")]
pub(crate) struct AdmissionArguments {
    /// Serves the sender with this key; can be repeated. Without --allow, --allow-any and --authority a one-time code is
    /// printed instead: the first sender that gives it to `send` is served. With --keep a new code follows.
    #[arg(long, value_name = "FINGERPRINT")]
    allow: Vec<Fingerprint>,
    /// Serves every sender, whatever its key.
    #[arg(long)]
    allow_any: bool,
}

/// Who is served, and how they are told to come.
#[derive(Debug)]
pub(super) struct Admitting {
    admission: Admission,
    /// Where we listen, for people.
    place: String,
    fingerprint: Option<Fingerprint>,
    /// What is to be said of an identity that was made just now.
    made: Option<String>,
    /// The code that is open, and the key that follows from it.
    code: Option<(OneTimeCode, Fingerprint)>,
}

/// Refuses flags that contradict each other.
///
/// # Errors
/// Bad usage.
pub(super) fn check(arguments: &Arguments) -> Result<()> {
    let given = &arguments.given;
    Protection::check(given, FLAGS)?;
    given.contradiction("allow_any", &["allow", "authority"], "one serves every sender, the other only some")
}

/// Whether anyone is served whose name nobody has given.
pub(super) const fn serves_strangers(arguments: &Arguments) -> bool {
    arguments.admission.allow_any
}

impl Admitting {
    /// As the command line says, and how the endpoint is to be protected.
    pub(super) fn of(arguments: &Arguments) -> Result<(Self, Builder<Endpoint>)> {
        let mut admitting = Self { admission: Admission::nobody(), place: String::new(), fingerprint: None, made: None, code: None };
        if arguments.protection.is_insecure() {
            return Ok((admitting, Endpoint::builder().insecure()));
        }
        let AdmissionArguments { allow, allow_any } = &arguments.admission;
        let (identity, made) = arguments.protection.identity()?;
        admitting.made = made;
        if *allow_any {
            admitting.admission = Admission::anyone();
        }
        allow.iter().for_each(|key| admitting.admission.allow(*key));
        let authorities = arguments.protection.authorities()?;
        let is_chosen = *allow_any || !allow.is_empty() || authorities.is_some();
        if let Some(authorities) = authorities {
            admitting.admission.allow_certified(authorities);
        }
        if !is_chosen {
            admitting.open_code()?;
        }
        admitting.fingerprint = Some(identity.fingerprint());
        let builder = Endpoint::builder().identity(identity).admission(admitting.admission.clone());
        Ok((admitting, builder))
    }

    fn open_code(&mut self) -> Result<()> {
        let code = OneTimeCode::generate()?;
        let key = self.admission.allow_once(&code)?;
        self.code = Some((code, key));
        Ok(())
    }

    /// Tells people, once the endpoint listens.
    pub(super) fn tell(&mut self, address: SocketAddr) {
        // Nobody can send to a wildcard: the host is for people to fill in.
        self.place = if address.ip().is_unspecified() { format!("HOST:{}", address.port()) } else { address.to_string() };
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

    /// The command that sends to us, ready to paste; none in the clear.
    fn invitation(&self) -> Option<String> {
        let (fingerprint, place) = (self.fingerprint.as_ref()?, &self.place);
        let code = self.code.as_ref().map_or(String::new(), |(code, _)| format!(" --code {code}"));
        Some(format!("to send: segstream send {place} PATH --peer {fingerprint}{code}"))
    }

    /// A sender is there. When it has used the code up, what invites the next; `is_last`: there will be none.
    pub(super) fn on_connected(&mut self, sender: Option<Fingerprint>, is_last: bool) -> Result<Option<String>> {
        if self.code.as_ref().is_none_or(|(_, key)| Some(*key) != sender) {
            return Ok(None);
        }
        self.code = None;
        if is_last {
            return Ok(None);
        }
        self.open_code()?;
        Ok(self.invitation())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wildcard_becomes_a_placeholder_and_a_used_code_another() {
        let fingerprint = Some(Fingerprint([1; 32]));
        let mut admitting = Admitting { admission: Admission::nobody(), place: String::new(), fingerprint, made: None, code: None };
        admitting.open_code().unwrap();
        admitting.tell(([0, 0, 0, 0], 4433).into());
        let first = admitting.invitation().unwrap();
        assert!(first.contains("send HOST:4433 PATH --peer SHA256:") && first.contains(" --code "), "{first}");
        let used = admitting.code.as_ref().map(|(_, key)| *key);
        assert_eq!(admitting.on_connected(Some(Fingerprint([2; 32])), false).unwrap(), None, "another key");
        let second = admitting.on_connected(used, false).unwrap().unwrap();
        assert_ne!(first, second);
        let used = admitting.code.as_ref().map(|(_, key)| *key);
        assert_eq!(admitting.on_connected(used, true).unwrap(), None, "nobody is served any more");
    }
}
