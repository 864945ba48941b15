//! Whom `send` takes for its receiver, and what it says when somebody else answers.
//!
//! Called by the verb: before a socket is opened, when the connection is there, and when it has failed.
//!
//! Invariant: a receiver is trusted for its key as it was given (`--peer`) or as it was known before, or for its
//! certificate (`--authority`); never because it answered.

use super::{Arguments, known_capacities};
use crate::code_argument::{self, CodeArguments};
use crate::protection::{KNOWN_PEERS, Protection};
use crate::usage;
use anyhow::Result;
use clap::Args;
use segstream::blocking::Endpoint;
use segstream::{Builder, CloseReason, Fingerprint, Identity, KnownPeers, KnownPeersError, Peer, Trust};
use segstream_wire::handshake::RejectReason;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The codes a peer ends a failed handshake with: 256 and the TLS alert (RFC 9001 4.8).
const HANDSHAKE_CODES: std::ops::Range<u64> = 256..512;

/// The flags of the sender, by the names of their fields.
const FLAGS: &[&str] = &["peer", "code", "code_file", "pair", "known_peers"];

/// The flags of the sender about its receiver.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Protection")]
pub(crate) struct TrustArguments {
    /// The receiver's fingerprint, as `recv` prints it. It is stored for ADDR and needs to be given only once.
    #[arg(long, value_name = "FINGERPRINT")]
    peer: Option<Fingerprint>,
    #[command(flatten)]
    pub(super) code: CodeArguments,
    /// With a one-time code: asks the receiver to remember this user's own key, so that no code is needed from then on. The receiver must be
    /// started with --pair.
    #[arg(long)]
    pair: bool,
    /// The file of known receivers, one line each: ADDR and fingerprint [default: known_peers in the directory of the
    /// identity].
    #[arg(long, value_name = "FILE")]
    known_peers: Option<PathBuf>,
}

/// Why the receiver is trusted.
#[derive(Clone, Debug)]
enum Reason {
    Insecure,
    /// `--peer`, to be remembered.
    Given(Fingerprint),
    /// It is known from before, and its line in the file.
    Known(Fingerprint, usize),
    /// It is not known.
    Unknown,
    Certified,
}

/// How a transfer is protected, and whom it goes to.
#[derive(Clone, Debug)]
pub(super) struct Receiver {
    pub(super) builder: Builder<Endpoint>,
    pub(super) peer: Peer,
    /// ADDR as it was typed.
    address: String,
    reason: Reason,
    known_peers: PathBuf,
    /// Our own fingerprint, and whether it follows from a code.
    ours: Option<(Fingerprint, bool)>,
    /// The fingerprint of the key that the receiver is asked to remember.
    pub(super) pair: Option<Fingerprint>,
}

/// Refuses flags that contradict each other.
///
/// # Errors
/// Bad usage.
pub(super) fn check(arguments: &Arguments) -> Result<()> {
    let explicit = &arguments.explicit;
    Protection::check(explicit, FLAGS)?;
    code_argument::refuse_among(&arguments.paths)?;
    if arguments.trust.pair && !arguments.trust.code.is_given() {
        return Err(usage::bad("--pair needs a one-time code: give --code or --code-file".to_owned()));
    }
    for flag in ["code", "code_file"] {
        let others: &[&str] = if arguments.trust.pair { &["certificate"] } else { &["identity", "certificate"] };
        explicit.contradiction(flag, others, "the key of this transfer is derived from the code")?;
    }
    explicit.contradiction("authority", &["peer", "known_peers"], "one trusts a certificate, the other a key")
}

impl Receiver {
    /// The receiver at `remote`, as the command line says who that is.
    pub(super) fn of(arguments: &Arguments, remote: SocketAddr) -> Result<Self> {
        let (protection, trust) = (&arguments.protection, &arguments.trust);
        let address = arguments.address.clone();
        if protection.is_insecure() {
            let (peer, reason) = (Peer::anyone(remote), Reason::Insecure);
            return Ok(Self {
                builder: Endpoint::builder().insecure(),
                peer,
                address,
                reason,
                known_peers: PathBuf::new(),
                ours: None,
                pair: None,
            });
        }
        let (identity, made) = match trust.code.read(arguments.paths.iter().any(|file| file.as_os_str() == "-"))? {
            Some(code) => (Identity::of_code(&code)?, None),
            None => protection.identity()?,
        };
        if let Some(made) = made {
            eprintln!("{made}");
        }
        let pair = if trust.pair { Some(protection.identity()?.0.fingerprint()) } else { None };
        let authorities = protection.authorities()?;
        let mut known_peers = PathBuf::new();
        let reason = if authorities.is_some() {
            Reason::Certified
        } else {
            known_peers = match &trust.known_peers {
                Some(file) => file.clone(),
                None => protection.beside_identity(KNOWN_PEERS)?,
            };
            let known = KnownPeers::load(&known_peers)?;
            let known = known.find(&address).zip(known.line_of(&address)).map(|(key, line)| Reason::Known(key, line));
            trust.peer.map(Reason::Given).or(known).unwrap_or(Reason::Unknown)
        };
        let peer = Peer { address: remote, trust: reason.trust(&address) };
        let ours = Some((identity.fingerprint(), trust.code.is_given()));
        let builder = protection.with_key_log(Endpoint::builder().identity(identity))?;
        let builder = match authorities {
            Some(authorities) => builder.authorities(authorities),
            None => builder,
        };
        Ok(Self { builder, peer, address, reason, known_peers, ours, pair })
    }

    /// Where the capacities of paths are stored, if they are.
    fn known_capacities(&self) -> Option<PathBuf> {
        self.known_peers.file_name().map(|_| self.known_peers.with_file_name(known_capacities::KNOWN_CAPACITIES))
    }

    /// Lets `endpoint` begin with what the last transfer found.
    pub(super) fn resume(&self, endpoint: &mut Endpoint) {
        if let Some(capacity) =
            self.known_capacities().and_then(|file| known_capacities::take(&file, &self.address, endpoint.clock().now()))
        {
            endpoint.save_capacity(self.peer.address, capacity);
        }
    }

    /// Stores what this transfer has found. What is to be said about it.
    pub(super) fn store_capacity(&self, endpoint: &Endpoint) -> Option<String> {
        let (file, capacity) = self.known_capacities().zip(endpoint.saved_capacity(self.peer.address))?;
        let error = known_capacities::store(&file, &self.address, &capacity).err()?;
        Some(format!("note: the capacity of the path could not be stored in {}: {error}", file.display()))
    }

    /// The connection is there: a key that was given is remembered. What is to be said about it.
    pub(super) fn remember(&self) -> Option<String> {
        let (Reason::Given(key), address) = (&self.reason, &self.address) else { return None };
        let file = self.known_peers.display();
        let remembered = KnownPeers::load(&self.known_peers).and_then(|mut known| known.remember(address, *key));
        match remembered {
            Ok(true) => Some(format!("the key of {address} is stored in {file}; --peer is not needed next time")),
            Ok(false) => None,
            Err(KnownPeersError::Changed { known, line, .. }) => Some(format!(
                "note: {file} line {line} has another key, {known}, for {address}; remove that line so that the new key can be stored"
            )),
            Err(error) => Some(format!("note: the key of {address} could not be stored: {error}")),
        }
    }

    /// The sentence for a connection that has ended so, where there is more to say than `reason` does itself.
    pub(super) fn explain(&self, reason: &CloseReason) -> Option<String> {
        let address = &self.address;
        match reason {
            CloseReason::HandshakeFailed(error) => error.untrusted.map(|found| self.explain_key(found)),
            CloseReason::Rejected { reason: RejectReason::Protection, .. } => Some(if self.ours.is_some() {
                format!(
                    "the receiver at {address} was started with --insecure and this sender encrypts; give --insecure at both ends or at neither"
                )
            } else {
                format!(
                    "the receiver at {address} encrypts and this sender was started with --insecure; give --insecure at both ends or at neither"
                )
            }),
            CloseReason::Rejected { reason: RejectReason::Handshake, detail } => self.explain_refusal(detail),
            CloseReason::AbortedByPeer { code, detail } | CloseReason::ClosedByPeer { code, detail } if HANDSHAKE_CODES.contains(code) => {
                self.explain_refusal(detail)
            }
            _ => None,
        }
    }

    /// The receiver has refused the handshake. When it was for our key, `detail` names it.
    fn explain_refusal(&self, detail: &str) -> Option<String> {
        let address = &self.address;
        let (ours, from_code) = self.ours.filter(|(ours, _)| detail.contains(&ours.to_string()))?;
        Some(if from_code {
            format!(
                "the receiver at {address} refuses the one-time code: it is mistyped or was used before; give the code that recv prints now"
            )
        } else {
            format!(
                "the receiver at {address} does not allow the key {ours} of this sender; start recv there with --allow {ours}, or give the one-time code that recv prints with --code"
            )
        })
    }

    /// The receiver's key is `found`, and that is not the one that is trusted.
    fn explain_key(&self, found: Fingerprint) -> String {
        let (address, file) = (&self.address, self.known_peers.display());
        match &self.reason {
            Reason::Given(expected) => format!(
                "{address} has the key {found}, and --peer says {expected}; compare both with the fingerprint that recv prints there. If recv \
                 prints neither of them, another program answers at that address"
            ),
            Reason::Known(expected, line) => format!(
                "the key of {address} has changed: it was {expected} ({file} line {line}), now it is {found}. Either the receiver has a new \
                 identity, or another program answers at that address. Compare the new key with the fingerprint that recv prints \
                 there; if they are the same, remove line {line} of {file} and give --peer {found}"
            ),
            Reason::Unknown => format!(
                "the receiver at {address} is not known yet. Its key is {found}. Compare that with the fingerprint that recv prints there; \
                 if they are the same, accept the key: {}",
                again_with(&format!("--peer {found}"))
            ),
            Reason::Certified | Reason::Insecure => format!(
                "the certificate of the key {found} at {address} is not signed by an authority in the file of --authority for that host name; \
                 get a certificate for the receiver, or give its fingerprint with --peer in place of --authority"
            ),
        }
    }
}

impl Reason {
    fn trust(&self, address: &str) -> Trust {
        match self {
            Self::Insecure => Trust::Anyone,
            Self::Given(key) | Self::Known(key, _) => Trust::Key(*key),
            Self::Unknown => Trust::Nobody,
            Self::Certified => Trust::Certified(host(address).to_owned()),
        }
    }
}

/// The host part of an address; that of an IPv6 address without its brackets.
fn host(address: &str) -> &str {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

/// This command line once more, with more behind it, for a shell.
fn again_with(more: &str) -> String {
    let words = std::env::args_os().map(|word| quoted(&word.to_string_lossy()));
    words.chain([more.to_owned()]).collect::<Vec<_>>().join(" ")
}

/// A word that a shell reads back as it is.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:=,@%+[]".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_what_a_certificate_is_for() {
        assert_eq!(["host.example:4433", "192.0.2.1:1", "[2001:db8::1]:1"].map(host), ["host.example", "192.0.2.1", "2001:db8::1"]);
    }

    #[test]
    fn a_word_comes_back_from_a_shell() {
        for (word, shell) in [("a.bin", "a.bin"), ("a b", "'a b'"), ("it's", "'it'\\''s'"), ("", "''"), ("$HOME", "'$HOME'")] {
            assert_eq!(quoted(word), shell);
        }
    }
}
