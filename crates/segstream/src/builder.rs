//! How an endpoint is made: its settings, its key, whom it serves, where it is.
//!
//! Called by applications through `Endpoint::builder()` of either interface, which add what ends it: `bind` and `listen`.
//!
//! Invariant: without a word of the application everything is encrypted and nobody is served.

use crate::security::Security;
use crate::{Config, Contract, Error, StreamId};
use segstream_net::clock::Clock;
use segstream_proto::config::DATAGRAM_BYTES_MIN;
use segstream_secure::{Admission, Authorities, Fingerprint, Identity};
use segstream_wire::Part;
use segstream_wire::header::HEADER_BYTES;
use std::fmt;
use std::marker::PhantomData;
use std::path::PathBuf;

/// What an endpoint is made of. `E` is the endpoint: [`crate::blocking::Endpoint`] or the one for tokio.
///
/// ```no_run
/// # use segstream::{Error, Fingerprint, blocking::Endpoint};
/// # fn example(sender: Fingerprint) -> Result<(), Error> {
/// let receiver = Endpoint::builder().identity_file("receiver.pem").allow(sender).listen(([0, 0, 0, 0], 9000))?;
/// # Ok(())
/// # }
/// ```
pub struct Builder<E> {
    config: Config,
    key: Key,
    admission: Option<Admission>,
    authorities: Option<Authorities>,
    insecure: bool,
    clock: Option<Clock>,
    /// Whether a thread of its own drives the endpoint; the asynchronous one always has a task.
    pub(crate) in_background: bool,
    endpoint: PhantomData<fn() -> E>,
}

#[derive(Clone, Debug)]
enum Key {
    Fresh,
    Given(Identity),
    File(PathBuf),
}

/// A builder whose key has been read.
#[derive(Clone, Debug)]
pub(crate) struct Parts {
    pub(crate) config: Config,
    pub(crate) security: Security,
    pub(crate) clock: Clock,
    pub(crate) in_background: bool,
    /// Whether connections are accepted.
    pub(crate) accept: bool,
}

impl<E> Builder<E> {
    pub(crate) fn new() -> Self {
        Self {
            config: Config::default(),
            key: Key::Fresh,
            admission: None,
            authorities: None,
            insecure: false,
            clock: None,
            in_background: false,
            endpoint: PhantomData,
        }
    }

    /// The settings of the protocol and the socket. Default: [`Config::default`].
    pub fn config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// Our key and its certificates. Default: a fresh key that lives as long as the endpoint.
    pub fn identity(mut self, identity: Identity) -> Self {
        self.key = Key::Given(identity);
        self
    }

    /// Our key is the one in the file at `path` (PKCS#8 in PEM), so that peers know us again. The file is made with a fresh
    /// key, for its owner only, when there is none. It is read when the endpoint is made.
    pub fn identity_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.key = Key::File(path.into());
        self
    }

    /// Serves the peer that holds this key, besides those allowed before.
    pub fn allow(mut self, peer: Fingerprint) -> Self {
        self.admission.get_or_insert_with(Admission::nobody).allow(peer);
        self
    }

    /// Serves whoever comes.
    pub fn allow_anyone(mut self) -> Self {
        self.admission = Some(Admission::anyone());
        self
    }

    /// Serves whom `admission` names. It can be changed while the endpoint lives; clones are the same admission.
    pub fn admission(mut self, admission: Admission) -> Self {
        self.admission = Some(admission);
        self
    }

    /// Who certifies the peers that we connect to by name ([`crate::Trust::Certified`]).
    pub fn authorities(mut self, authorities: Authorities) -> Self {
        self.authorities = Some(authorities);
        self
    }

    /// Plain mode: an integrity check alone. Anyone on the path can read and forge everything, and everyone is served. Both
    /// ends must say so. For laboratories.
    pub fn insecure(mut self) -> Self {
        self.insecure = true;
        self
    }

    /// A clock that other endpoints use too, so that source times compare within a process. Default: a clock of its own.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = Some(clock);
        self
    }

    /// The largest unit that segments of stream `stream` can have under `contract`, whose own size of units does not count: it
    /// fits a datagram of 1200 bytes with the headers and the seal. Streams are counted from 0 as they are opened.
    /// Segments with a tolerance of their own need units that are 3 to 12 bytes shorter.
    pub fn unit_bytes_max(&self, stream: StreamId, contract: &Contract) -> u32 {
        let body_bytes = DATAGRAM_BYTES_MIN - HEADER_BYTES - Security::seal_bytes(self.insecure);
        Part::unit_bytes_max(stream, contract, None, body_bytes)
    }

    /// Reads or makes the key.
    pub(crate) fn parts(self, accept: bool) -> Result<Parts, Error> {
        if accept && !self.insecure && self.admission.is_none() {
            return Err(Error::ServesNobody);
        }
        let security = if self.insecure {
            Security::Insecure
        } else {
            let identity = match self.key {
                Key::Fresh => Identity::generate()?,
                Key::Given(identity) => identity,
                Key::File(path) => Identity::load_or_create(&path)?,
            };
            let admission = self.admission.unwrap_or_else(Admission::nobody);
            Security::Encrypted { identity, admission, authorities: self.authorities }
        };
        let clock = self.clock.unwrap_or_else(Clock::start);
        Ok(Parts { config: self.config, security, clock, in_background: self.in_background, accept })
    }
}

// Why not derived: an endpoint need not be `Clone` for its builder to be.
impl<E> Clone for Builder<E> {
    fn clone(&self) -> Self {
        Self {
            config: self.config.clone(),
            key: self.key.clone(),
            admission: self.admission.clone(),
            authorities: self.authorities.clone(),
            insecure: self.insecure,
            clock: self.clock,
            in_background: self.in_background,
            endpoint: PhantomData,
        }
    }
}

impl<E> fmt::Debug for Builder<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { config, key, admission, authorities, insecure, .. } = self;
        let mut shown = f.debug_struct("Builder");
        shown.field("config", config).field("key", key).field("admission", admission).field("authorities", authorities);
        shown.field("insecure", insecure).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocking::Endpoint;

    #[test]
    fn whoever_listens_says_whom_it_serves() {
        assert!(matches!(Endpoint::builder().parts(true), Err(Error::ServesNobody)));
        assert!(Endpoint::builder().parts(false).is_ok());
        assert!(Endpoint::builder().allow_anyone().parts(true).is_ok());
        assert!(Endpoint::builder().admission(Admission::nobody()).parts(true).is_ok());
        assert!(Endpoint::builder().insecure().parts(true).is_ok());
    }
}
