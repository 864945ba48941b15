//! The builder of an endpoint: its settings, its key, whom it serves, its address.
//!
//! Called by applications through `Endpoint::builder()` of either interface, which add the methods that build it: `bind` and `listen`.
//!
//! Invariant: by default everything is encrypted and no peer is served.

use crate::security::Security;
use crate::{Config, Contract, Error, StreamId};
use segstream_net::clock::Clock;
use segstream_proto::config::DATAGRAM_BYTES_MIN;
use segstream_secure::{Admission, Authorities, Fingerprint, Identity, KeyLog};
use segstream_wire::Part;
use segstream_wire::header::HEADER_BYTES;
use std::fmt;
use std::marker::PhantomData;
use std::path::PathBuf;

/// A builder of an endpoint. `E` is the endpoint: [`crate::blocking::Endpoint`] or the one for tokio.
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
    key_log: Option<KeyLog>,
    insecure: bool,
    clock: Option<Clock>,
    #[cfg(feature = "metrics")]
    metrics: Option<MetricsWanted>,
    #[cfg(feature = "recorder")]
    recorder: Option<crate::recorder::Recorder>,
    /// Whether a background thread drives the endpoint; the asynchronous one always has a task.
    pub(crate) in_background: bool,
    endpoint: PhantomData<fn() -> E>,
}

#[derive(Clone, Debug)]
enum Key {
    Fresh,
    Given(Identity),
    File(PathBuf),
}

/// That statistics are published as metrics.
#[cfg(feature = "metrics")]
#[derive(Clone, Debug)]
pub(crate) struct MetricsWanted {
    /// When; `None` for always.
    pub(crate) demand: Option<crate::metrics::Demand>,
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
    /// Whether and when statistics are published as metrics.
    #[cfg(feature = "metrics")]
    pub(crate) metrics: Option<MetricsWanted>,
    #[cfg(feature = "recorder")]
    pub(crate) recorder: Option<crate::recorder::Recorder>,
}

impl<E> Builder<E> {
    pub(crate) fn new() -> Self {
        Self {
            config: Config::default(),
            key: Key::Fresh,
            admission: None,
            authorities: None,
            key_log: None,
            insecure: false,
            clock: None,
            #[cfg(feature = "metrics")]
            metrics: None,
            #[cfg(feature = "recorder")]
            recorder: None,
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

    /// Our key is in the file at `path` (PKCS#8 in PEM), so that peers recognise us. If the file does not exist, it is created with a
    /// fresh key and is readable by its owner only. It is read when the endpoint is built.
    pub fn identity_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.key = Key::File(path.into());
        self
    }

    /// Serves the peer that holds this key, in addition to those allowed before.
    pub fn allow(mut self, peer: Fingerprint) -> Self {
        self.admission.get_or_insert_with(Admission::nobody).allow(peer);
        self
    }

    /// Serves every peer.
    pub fn allow_anyone(mut self) -> Self {
        self.admission = Some(Admission::anyone());
        self
    }

    /// Serves the peers of `admission`, which can be changed while the endpoint exists; clones share one list.
    pub fn admission(mut self, admission: Admission) -> Self {
        self.admission = Some(admission);
        self
    }

    /// The certificate authorities for peers that we connect to by name ([`crate::Trust::Certified`]).
    pub fn authorities(mut self, authorities: Authorities) -> Self {
        self.authorities = Some(authorities);
        self
    }

    /// Writes the secrets of every connection to `log`, for tools that read captures. Whoever has the file can read these connections.
    pub fn key_log(mut self, log: KeyLog) -> Self {
        self.key_log = Some(log);
        self
    }

    /// Plain mode: an integrity check only. Anyone on the path can read and forge everything, and every peer is served. Both ends must
    /// use it. For laboratories.
    pub fn insecure(mut self) -> Self {
        self.insecure = true;
        self
    }

    /// A clock shared with other endpoints, so that their source times can be compared. Default: a separate clock.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Publishes the statistics of every connection as metrics, each second, through the crate `metrics`; see [`crate::metrics`]. The
    /// application installs a recorder before, such as that of `metrics-exporter-prometheus`.
    #[cfg(feature = "metrics")]
    pub fn metrics(mut self) -> Self {
        self.metrics = Some(MetricsWanted { demand: None });
        self
    }

    /// As [`Builder::metrics`], but only in seconds after [`crate::metrics::Demand::ask`] was called; otherwise it costs next to nothing.
    #[cfg(feature = "metrics")]
    pub fn metrics_on_demand(mut self, demand: crate::metrics::Demand) -> Self {
        self.metrics = Some(MetricsWanted { demand: Some(demand) });
        self
    }

    /// Records what every connection does in files; see [`crate::recorder`].
    #[cfg(feature = "recorder")]
    pub fn record(mut self, recorder: crate::recorder::Recorder) -> Self {
        self.recorder = Some(recorder);
        self
    }

    /// The largest unit that fits a datagram of 1200 bytes with the headers and the seal, on stream `stream` under `contract`; the unit
    /// size in `contract` is ignored. Streams are counted from 0 in the order of opening. Segments with their own tolerance need
    /// units that are 3 to 12 bytes shorter.
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
            Security::Encrypted { identity, admission, authorities: self.authorities, key_log: self.key_log }
        };
        let clock = self.clock.unwrap_or_else(Clock::start);
        Ok(Parts {
            config: self.config,
            security,
            clock,
            in_background: self.in_background,
            accept,
            #[cfg(feature = "metrics")]
            metrics: self.metrics,
            #[cfg(feature = "recorder")]
            recorder: self.recorder,
        })
    }
}

// Why not derived: that would require the endpoint to be `Clone`.
impl<E> Clone for Builder<E> {
    fn clone(&self) -> Self {
        Self {
            config: self.config.clone(),
            key: self.key.clone(),
            admission: self.admission.clone(),
            authorities: self.authorities.clone(),
            key_log: self.key_log.clone(),
            insecure: self.insecure,
            clock: self.clock,
            #[cfg(feature = "metrics")]
            metrics: self.metrics.clone(),
            #[cfg(feature = "recorder")]
            recorder: self.recorder.clone(),
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
