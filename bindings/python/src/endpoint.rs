//! An endpoint: a socket that connects and accepts.
//!
//! Made by `segstream.listen`, `segstream.listen_shards`, `segstream.bind` and `segstream.connect`.
//!
//! Invariant: as in the library, everything is encrypted and no peer is served unless the caller says otherwise.

use crate::admission::fingerprint;
use crate::contract::Contract;
use crate::errors::Fault;
use crate::operation::{NewConnection, Operation, Outcome};
use crate::runtime::{Guarded, Process};
use crate::settings::{Settings, address};
use pyo3::prelude::*;
use segstream::recorder::Recorder;
use segstream::{Bandwidth, Error, Identity, Peer, SavedCapacity, StreamId};
use std::num::NonZeroU8;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// A socket with its connections.
#[pyclass(frozen, module = "segstream._native")]
pub(crate) struct Endpoint {
    facade: Guarded<segstream::Endpoint>,
    /// Shared by the shards of a port; the last one that is closed ends it.
    recorder: Guarded<Mutex<Option<Arc<Recorder>>>>,
}

impl Endpoint {
    fn new(facade: segstream::Endpoint, recorder: Option<Arc<Recorder>>) -> Self {
        Self { facade: Guarded::new(facade), recorder: Guarded::new(Mutex::new(recorder)) }
    }
}

/// Counters by name.
macro_rules! counters {
    ($value:expr, $($name:ident),* $(,)?) => {{
        let counters = $value;
        vec![$((stringify!($name), counters.$name)),*]
    }};
}

#[pymethods]
impl Endpoint {
    #[new]
    fn open(py: Python<'_>, at: &str, listens: bool, settings: Settings<'_>) -> PyResult<Self> {
        let process = Process::get()?;
        let (builder, recorder) = settings.builder()?;
        let opened = process.without_gil(py, || {
            let _context = process.handle().enter();
            let at = address(at)?;
            Ok::<_, Fault>(if listens { builder.listen(at)? } else { builder.bind(at)? })
        })?;
        Ok(Self::new(opened?, recorder.map(Arc::new)))
    }

    /// So many endpoints on one port.
    #[staticmethod]
    fn open_shards(py: Python<'_>, at: &str, count: u8, settings: Settings<'_>) -> PyResult<Vec<Self>> {
        let process = Process::get()?;
        let count = NonZeroU8::new(count).ok_or_else(|| Fault::Usage("count=0 is no number of shards; give 1 to 255".to_owned()))?;
        let (builder, recorder) = settings.builder()?;
        let opened = process.without_gil(py, || {
            let _context = process.handle().enter();
            Ok::<_, Fault>(builder.listen_shards(address(at)?, count)?)
        })?;
        let recorder = recorder.map(Arc::new);
        Ok(opened?.into_iter().map(|shard| Self::new(shard, recorder.clone())).collect())
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

    /// What the socket has counted.
    fn socket_counters(&self) -> PyResult<Vec<(&'static str, u64)>> {
        let counters = self.facade.get()?.socket_counters();
        Ok(counters!(
            counters,
            datagrams_received,
            bytes_received,
            receive_calls,
            datagrams_sent,
            bytes_sent,
            send_calls,
            send_blocked,
            datagrams_dropped,
            unreachable,
            refused,
            too_big,
            other_errors,
            offload_failures
        ))
    }

    /// The datagrams that match no connection.
    fn unmatched(&self) -> PyResult<Vec<(&'static str, u64)>> {
        let counters = self.facade.get()?.unmatched();
        Ok(counters!(
            counters,
            not_ours,
            unknown_connection,
            bad_requests,
            rejected,
            short_requests,
            cookies,
            setups_full,
            handshakes_refused,
            connections_full,
            answers_full,
            resets,
            resets_refused
        ))
    }

    /// The rate in bit/s, the round trip in seconds, and for how many seconds it may still be used.
    fn saved_capacity(&self, py: Python<'_>, remote: &str) -> PyResult<Option<(u64, f64, f64)>> {
        let facade = self.facade.get()?;
        let remote = Process::get()?.without_gil(py, || address(remote))??;
        let now = facade.clock().now();
        Ok(facade.saved_capacity(remote).map(|saved| {
            let left = saved.expires.since(now);
            (saved.rate.bits_per_second(), saved.rtt.as_secs_f64(), left.as_secs_f64())
        }))
    }

    fn save_capacity(&self, py: Python<'_>, remote: &str, rate: u64, rtt: f64, lifetime: f64) -> PyResult<()> {
        let facade = self.facade.get()?;
        let remote = Process::get()?.without_gil(py, || address(remote))??;
        let (rtt, lifetime) = (crate::contract::seconds("rtt", rtt)?, crate::contract::seconds("lifetime", lifetime)?);
        let lifetime = segstream_base::Duration::from(lifetime).min(SavedCapacity::LIFETIME);
        let capacity =
            SavedCapacity { rate: Bandwidth::from_bits_per_second(rate), rtt: rtt.into(), expires: facade.clock().now() + lifetime };
        facade.save_capacity(remote, capacity);
        Ok(())
    }

    fn stop_accepting(&self) -> PyResult<()> {
        self.facade.get()?.stop_accepting();
        Ok(())
    }

    /// How many events the recorder has dropped.
    #[getter]
    fn events_omitted(&self) -> PyResult<u64> {
        let recorder = self.recorder.get()?.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(recorder.as_ref().map_or(0, |recorder| recorder.events_omitted()))
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
        let recorder = self.recorder.get()?.lock().unwrap_or_else(PoisonError::into_inner).take();
        Ok(Operation::new(async move {
            let closed = facade.close().await;
            if let Some(recorder) = recorder.and_then(Arc::into_inner) {
                let written = tokio::task::spawn_blocking(move || recorder.finish()).await;
                written.unwrap_or_else(|stopped| Err(std::io::Error::other(stopped))).map_err(Error::System)?;
            }
            closed?;
            Ok(Outcome::Nothing)
        }))
    }
}

/// The largest unit that fits every datagram on stream `stream` under a contract.
#[pyfunction]
pub(crate) fn unit_bytes_max(contract: &Contract, stream: u32, insecure: bool) -> u32 {
    let builder = segstream::Endpoint::builder();
    let builder = if insecure { builder.insecure() } else { builder };
    builder.unit_bytes_max(StreamId(stream), &contract.facade)
}

/// The fingerprint of the key in a file; if the file does not exist, it is made with a fresh key.
#[pyfunction]
pub(crate) fn identity(path: PathBuf) -> PyResult<String> {
    let identity = Identity::load_or_create(&path).map_err(|error| Fault::Library(error.into()))?;
    Ok(identity.fingerprint().to_string())
}
