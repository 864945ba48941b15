//! An endpoint: a socket that connects and accepts.
//!
//! Made by `segstream.listen`, `segstream.bind` and `segstream.connect`.
//!
//! Invariant: as in the library, everything is encrypted and no peer is served unless the caller says otherwise.

use crate::contract::{Contract, seconds};
use crate::errors::Fault;
use crate::operation::{NewConnection, Operation, Outcome};
use crate::runtime::{Guarded, Process};
use pyo3::prelude::*;
use segstream::{Bandwidth, Class, Config, Error, Fingerprint, Identity, Peer, Rate};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

/// The settings of an endpoint, with the names of the library.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Settings {
    identity: Option<PathBuf>,
    allow: Vec<String>,
    allow_anyone: bool,
    insecure: bool,
    rate: Option<f64>,
    class_number: u8,
    unlimited: bool,
    idle_timeout: f64,
    connect_timeout: f64,
    stream_window_bytes: u64,
    datagram_bytes: Option<usize>,
}

/// A fixed rate, or the congestion-controlled one.
pub(crate) fn rate(bits_per_second: Option<f64>) -> Result<Rate, Fault> {
    match bits_per_second {
        None => Ok(Rate::AUTO),
        Some(rate) if rate.is_finite() && rate >= 1.0 => Ok(Rate::smooth(Bandwidth::from_bits_per_second(rate as u64))),
        Some(rate) => Err(Fault::Usage(format!("rate={rate} is no rate; give bit/s above 0, or None for congestion control"))),
    }
}

/// A host and a port.
fn address(text: &str) -> Result<SocketAddr, Fault> {
    let refused = |why: String| Fault::Usage(format!("'{text}' is no address ({why}); give HOST:PORT as in 127.0.0.1:9000"));
    let mut found = text.to_socket_addrs().map_err(|error| refused(error.to_string()))?;
    found.next().ok_or_else(|| refused("the name has no address".to_owned()))
}

fn fingerprint(text: &str) -> Result<Fingerprint, Fault> {
    text.parse().map_err(|error| Fault::Usage(format!("{error}")))
}

impl Settings {
    fn config(&self) -> Result<Config, Fault> {
        let class =
            Class::new(self.class_number).ok_or_else(|| Fault::Usage(format!("class_={} is no class; give 0 to 7", self.class_number)))?;
        let default = Config::default();
        Ok(Config {
            rate: rate(self.rate)?,
            class,
            unlimited: self.unlimited,
            idle_timeout: seconds("idle_timeout", self.idle_timeout)?,
            connect_timeout: seconds("connect_timeout", self.connect_timeout)?,
            stream_window_bytes: self.stream_window_bytes,
            datagram_bytes: self.datagram_bytes.map_or(default.datagram_bytes, segstream::DatagramSize::Fixed),
            ..default
        })
    }

    fn open(self, at: SocketAddr, listens: bool) -> Result<segstream::Endpoint, Fault> {
        let mut builder = segstream::Endpoint::builder().config(self.config()?);
        if let Some(path) = self.identity {
            builder = builder.identity_file(path);
        }
        for peer in &self.allow {
            builder = builder.allow(fingerprint(peer)?);
        }
        if self.allow_anyone {
            builder = builder.allow_anyone();
        }
        if self.insecure {
            builder = builder.insecure();
        }
        Ok(if listens { builder.listen(at)? } else { builder.bind(at)? })
    }
}

/// A socket with its connections.
#[pyclass(frozen, module = "segstream._native")]
pub(crate) struct Endpoint {
    facade: Guarded<segstream::Endpoint>,
}

#[pymethods]
impl Endpoint {
    #[new]
    fn new(py: Python<'_>, at: &str, listens: bool, settings: Settings) -> PyResult<Self> {
        let process = Process::get()?;
        let opened = process.without_gil(py, || {
            let _context = process.handle().enter();
            settings.open(address(at)?, listens)
        })?;
        Ok(Self { facade: Guarded::new(opened?) })
    }

    #[getter]
    fn address(&self) -> PyResult<String> {
        Ok(self.facade.get()?.local_addr().to_string())
    }

    #[getter]
    fn fingerprint(&self) -> PyResult<Option<String>> {
        Ok(self.facade.get()?.fingerprint().map(|fingerprint| fingerprint.to_string()))
    }

    /// The time on the endpoint's clock, in seconds.
    fn now(&self) -> PyResult<f64> {
        Ok(self.facade.get()?.clock().now().as_nanos() as f64 / 1e9)
    }

    #[getter]
    fn warnings(&self) -> PyResult<Vec<String>> {
        Ok(self.facade.get()?.warnings().iter().map(ToString::to_string).collect())
    }

    #[pyo3(signature = (to, key, certified, anyone, contracts))]
    fn connect(
        &self,
        py: Python<'_>,
        to: String,
        key: Option<&str>,
        certified: Option<&str>,
        anyone: bool,
        contracts: Vec<Contract>,
    ) -> PyResult<Operation> {
        // Why without the GIL: a name may have to be looked up.
        let at = Process::get()?.without_gil(py, || address(&to))??;
        let peer = match (key, certified) {
            (Some(key), _) => Peer::from((at, fingerprint(key)?)),
            (None, Some(name)) => Peer::certified(at, name),
            (None, None) if anyone => Peer::anyone(at),
            (None, None) => Peer::from(at),
        };
        let facade = self.facade.get()?.clone();
        Ok(Operation::new(async move {
            let proposed = contracts.iter().map(|contract| contract.facade.clone()).collect();
            let (connection, senders) = facade.connect(peer, proposed).await?;
            let senders = senders.into_iter().zip(contracts).collect();
            Ok(Outcome::Connection(Box::new(NewConnection { connection, senders, clock: facade.clock() })))
        }))
    }

    fn accept(&self) -> PyResult<Operation> {
        let facade = self.facade.get()?.clone();
        Ok(Operation::new(async move {
            // Why an error: an application that accepts in a loop must see the end of it.
            let connection = facade.accept().await?.ok_or(Fault::Library(Error::EndpointClosed))?;
            Ok(Outcome::Connection(Box::new(NewConnection { connection, senders: Vec::new(), clock: facade.clock() })))
        }))
    }

    fn close(&self) -> PyResult<Operation> {
        let facade = self.facade.get()?.clone();
        Ok(Operation::new(async move {
            facade.close().await?;
            Ok(Outcome::Nothing)
        }))
    }
}

/// The fingerprint of the key in a file; if the file does not exist, it is made with a fresh key.
#[pyfunction]
pub(crate) fn identity(path: PathBuf) -> PyResult<String> {
    let identity = Identity::load_or_create(&path).map_err(|error| Fault::Library(error.into()))?;
    Ok(identity.fingerprint().to_string())
}
