//! A connection: its streams, its rate, its end.
//!
//! Made by endpoints. Invariant: after `close` every method says that the connection was closed.

use crate::contract::Contract;
use crate::errors::Fault;
use crate::operation::{NewConnection, Operation, Outcome};
use crate::runtime::Guarded;
use crate::settings::RateArgument;
use crate::streams::Sender;
use pyo3::prelude::*;
use pyo3::types::PyList;
use segstream::{Class, Clock, StreamId};

/// One connection.
#[pyclass(frozen, module = "segstream._native")]
pub(crate) struct Connection {
    facade: Guarded<segstream::Connection>,
    /// Senders of the streams that were opened with it.
    senders: Py<PyList>,
    clock: Clock,
}

impl Connection {
    pub(crate) fn new(py: Python<'_>, new: NewConnection) -> PyResult<Self> {
        let NewConnection { connection, senders, clock } = new;
        let senders = senders.into_iter().map(|(sender, contract)| Sender::new(sender, contract, clock));
        let senders = PyList::new(py, senders.collect::<Vec<Sender>>())?.unbind();
        Ok(Self { facade: Guarded::new(connection), senders, clock })
    }
}

#[pymethods]
impl Connection {
    #[getter]
    fn remote(&self) -> PyResult<String> {
        Ok(self.facade.get()?.remote().to_string())
    }

    #[getter]
    fn peer_fingerprint(&self) -> PyResult<Option<String>> {
        Ok(self.facade.get()?.peer_fingerprint().map(|fingerprint| fingerprint.to_string()))
    }

    #[getter]
    fn senders(&self, py: Python<'_>) -> Py<PyList> {
        self.senders.clone_ref(py)
    }

    fn open_stream(&self, contract: &Contract) -> PyResult<Operation> {
        let (facade, contract, clock) = (self.facade.get()?.clone(), contract.clone(), self.clock);
        Ok(Operation::new(async move {
            let sender = facade.open_stream_when_allowed(contract.facade.clone()).await?;
            Ok(Outcome::Sender(sender, Box::new(contract), clock))
        }))
    }

    fn accept_stream(&self) -> PyResult<Operation> {
        let facade = self.facade.get()?.clone();
        Ok(Operation::new(async move {
            let accepted = facade.accept_stream().await?;
            Ok(accepted.map_or(Outcome::Nothing, |receiver| Outcome::Receiver(receiver, facade)))
        }))
    }

    fn set_rate(&self, rate: RateArgument, congestion: Option<&str>) -> PyResult<()> {
        let rate = rate.read(congestion)?;
        Ok(self.facade.get()?.set_rate(rate).map_err(Fault::from)?)
    }

    /// In bit/s, whole IP packets; `None` when unpaced.
    #[getter]
    fn rate(&self) -> PyResult<Option<u64>> {
        Ok(self.facade.get()?.rate().map(|rate| rate.bits_per_second()))
    }

    fn rate_changed(&self) -> PyResult<Operation> {
        let facade = self.facade.get()?.clone();
        Ok(Operation::new(async move { Ok(Outcome::Number(facade.rate_changed().await?.bits_per_second())) }))
    }

    /// Changes the class of our direction, and waits until it is in force.
    fn set_class(&self, class: u8) -> PyResult<Operation> {
        let class = Class::new(class).ok_or_else(|| Fault::Usage(format!("class {class} is none; give 0 to 7")))?;
        let facade = self.facade.get()?.clone();
        Ok(Operation::new(async move {
            facade.set_class(class).await?;
            Ok(Outcome::Nothing)
        }))
    }

    /// The statistics of a stream of ours as JSON.
    fn stream_statistics(&self, stream: u32) -> PyResult<String> {
        Ok(serde_json::to_string(&self.facade.get()?.stream_statistics(StreamId(stream))).unwrap_or_default())
    }

    /// The statistics as JSON.
    fn statistics(&self) -> PyResult<String> {
        Ok(serde_json::to_string(&self.facade.get()?.statistics()).unwrap_or_default())
    }

    fn has_unjudged(&self) -> PyResult<bool> {
        Ok(self.facade.get()?.has_unjudged())
    }

    fn close(&self, code: u64, detail: String) -> PyResult<Operation> {
        let facade = self.facade.get()?.clone();
        Ok(Operation::new(async move {
            facade.close(code, &detail).await?;
            Ok(Outcome::Nothing)
        }))
    }

    fn abort(&self, code: u64, detail: &str) -> PyResult<()> {
        self.facade.get()?.abort(code, detail);
        Ok(())
    }

    /// Waits for the end; why.
    fn closed(&self) -> PyResult<Operation> {
        let facade = self.facade.get()?.clone();
        Ok(Operation::new(async move { Ok(Outcome::Text(facade.closed().await.to_string())) }))
    }
}
