//! How an endpoint is protected, whom it connects to and whom it serves.
//!
//! Part of [`crate::Config`] and of every connect. Invariant: without a word of the application everything is
//! encrypted, nobody is trusted and nobody is served.

use crate::Error;
use segstream_proto::session::{Plain, Protection};
use segstream_secure::{Admission, Authorities, Fingerprint, Identity, Tls, Trust};
use std::net::SocketAddr;

/// How an endpoint is protected. Both ends of a connection must be protected in the same way.
#[derive(Clone, Debug)]
pub enum Security {
    /// TLS 1.3: nobody without the keys can read, change or forge anything, or end a connection. The default.
    Encrypted(Credentials),
    /// An integrity check alone: anyone on the path can read and forge everything, and everyone is served. For
    /// laboratories.
    Insecure,
}

impl Default for Security {
    fn default() -> Self {
        Self::Encrypted(Credentials::default())
    }
}

impl Security {
    /// Encrypted with a fresh identity that lives as long as the endpoint; serves whoever comes.
    pub fn serving_anyone() -> Self {
        Self::Encrypted(Credentials { admission: Admission::anyone(), ..Credentials::default() })
    }

    /// The bytes of a shipment's seal.
    pub(crate) const fn seal_bytes(&self) -> usize {
        match self {
            Self::Encrypted(_) => segstream_secure::SEAL_BYTES,
            Self::Insecure => Plain::SEAL_BYTES,
        }
    }
}

/// What an encrypted endpoint shows, and whom it serves.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    /// Our key and its certificates. `None`, the default, is a fresh one that lives as long as the endpoint.
    pub identity: Option<Identity>,
    /// Whose connections are accepted. Default: nobody's. It can be changed while the endpoint lives.
    pub admission: Admission,
    /// Who certifies peers that are trusted by name ([`Trust::Certified`]).
    pub authorities: Option<Authorities>,
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
        Security::Encrypted(credentials) => {
            let identity = match &credentials.identity {
                Some(identity) => identity.clone(),
                None => Identity::generate()?,
            };
            let fingerprint = identity.fingerprint();
            let tls = Tls::new(identity, credentials.admission.clone(), credentials.authorities.clone())?;
            Ok((Box::new(tls), Some(fingerprint)))
        }
    }
}
