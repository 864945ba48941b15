//! How an endpoint is protected, whom it connects to and whom it serves.
//!
//! Made by the builder, and part of every connect. Invariant: by default no peer is trusted.

use crate::Error;
use segstream_proto::session::{Plain, Protection};
use segstream_secure::{Admission, Authorities, Fingerprint, Identity, KeyLog, Tls, Trust};
use std::net::SocketAddr;

/// The protection of an endpoint, its identity and whom it serves. Both ends of a connection must have the same protection.
#[derive(Clone, Debug)]
pub(crate) enum Security {
    /// TLS 1.3: without the keys nobody can read, change or forge data, or end a connection.
    Encrypted {
        /// Our key and its certificates.
        identity: Identity,
        /// Whose connections are accepted.
        admission: Admission,
        /// Who certifies peers that are trusted by name.
        authorities: Option<Authorities>,
        /// Where the secrets of connections are written.
        key_log: Option<KeyLog>,
    },
    /// Plain mode: an integrity check only.
    Insecure,
}

impl Security {
    /// The size of a shipment's seal in bytes.
    pub(crate) const fn seal_bytes(insecure: bool) -> usize {
        if insecure { Plain::SEAL_BYTES } else { segstream_secure::SEAL_BYTES }
    }
}

/// Whom to connect to: an address, and which identity to accept there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The address.
    pub address: SocketAddr,
    /// The accepted identity. Ignored in plain mode.
    pub trust: Trust,
}

impl Peer {
    /// Any peer at `address`. An attacker on the path can impersonate it, so this is for peers where that is impossible, such as one in
    /// the same process.
    pub const fn anyone(address: SocketAddr) -> Self {
        Self { address, trust: Trust::Anyone }
    }

    /// A peer that a certificate authority has certified as `name`.
    pub fn certified(address: SocketAddr, name: impl Into<String>) -> Self {
        Self { address, trust: Trust::Certified(name.into()) }
    }
}

/// An address without an identity trusts no key: the connection ends with the peer's fingerprint in [`crate::CloseReason`].
impl From<SocketAddr> for Peer {
    fn from(address: SocketAddr) -> Self {
        Self { address, trust: Trust::Nobody }
    }
}

impl From<(SocketAddr, Fingerprint)> for Peer {
    fn from((address, key): (SocketAddr, Fingerprint)) -> Self {
        Self { address, trust: Trust::Key(key) }
    }
}

/// The protection of an endpoint, and the fingerprint of its key.
pub(crate) fn protection(security: &Security, connections_per_peer: usize) -> Result<(Box<dyn Protection>, Option<Fingerprint>), Error> {
    match security {
        Security::Insecure => {
            let mut key = [0; 16];
            getrandom::fill(&mut key).map_err(Error::Entropy)?;
            Ok((Box::new(Plain::new(key)), None))
        }
        Security::Encrypted { identity, admission, authorities, key_log } => {
            let fingerprint = identity.fingerprint();
            let tls = Tls::new(identity.clone(), admission.clone(), authorities.clone())?.with_connections_per_peer(connections_per_peer);
            let tls = match key_log {
                Some(log) => tls.with_key_log(log),
                None => tls,
            };
            Ok((Box::new(tls), Some(fingerprint)))
        }
    }
}
