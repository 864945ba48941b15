//! How an endpoint is protected, whom it connects to and whom it serves.
//!
//! Made by the builder, and part of every connect. Invariant: without a word of the application nobody is trusted.

use crate::Error;
use segstream_proto::session::{Plain, Protection};
use segstream_secure::{Admission, Authorities, Fingerprint, Identity, Tls, Trust};
use std::net::SocketAddr;

/// How an endpoint is protected, what it shows and whom it serves. Both ends of a connection must be protected in the same way.
#[derive(Clone, Debug)]
pub(crate) enum Security {
    /// TLS 1.3: nobody without the keys can read, change or forge anything, or end a connection.
    Encrypted {
        /// Our key and its certificates.
        identity: Identity,
        /// Whose connections are accepted.
        admission: Admission,
        /// Who certifies peers that are trusted by name.
        authorities: Option<Authorities>,
    },
    /// An integrity check alone.
    Insecure,
}

impl Security {
    /// The bytes of a shipment's seal.
    pub(crate) const fn seal_bytes(insecure: bool) -> usize {
        if insecure { Plain::SEAL_BYTES } else { segstream_secure::SEAL_BYTES }
    }
}

/// Whom to connect to: an address, and whom to take for the one wanted there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Where.
    pub address: SocketAddr,
    /// Who. In plain mode it says nothing.
    pub trust: Trust,
}

impl Peer {
    /// Whoever answers at `address`. Anyone on the path can be that: for peers that nobody can stand in for, such as one
    /// in the same process.
    pub const fn anyone(address: SocketAddr) -> Self {
        Self { address, trust: Trust::Anyone }
    }

    /// Whoever an authority has certified as `name`.
    pub fn certified(address: SocketAddr, name: impl Into<String>) -> Self {
        Self { address, trust: Trust::Certified(name.into()) }
    }
}

/// An address alone trusts nobody: the connection ends with the peer's fingerprint in [`crate::CloseReason`].
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
pub(crate) fn protection(security: &Security) -> Result<(Box<dyn Protection>, Option<Fingerprint>), Error> {
    match security {
        Security::Insecure => {
            let mut key = [0; 16];
            getrandom::fill(&mut key).map_err(Error::Entropy)?;
            Ok((Box::new(Plain::new(key)), None))
        }
        Security::Encrypted { identity, admission, authorities } => {
            let fingerprint = identity.fingerprint();
            let tls = Tls::new(identity.clone(), admission.clone(), authorities.clone())?;
            Ok((Box::new(tls), Some(fingerprint)))
        }
    }
}
