//! Operations that wait: started by a handle, waited for by a thread of Python or by an event loop.
//!
//! Made by the handles. [`Operation::wait`] is the blocking interface, [`crate::mailbox`] the asynchronous one.
//!
//! Invariant: an operation is used once. What it has taken from a stream is given to the application or put back.

use crate::connection::Connection;
use crate::contract::{Contract, seconds};
use crate::errors::Fault;
use crate::runtime::Process;
use crate::segment::{Judged, Segment, Units};
use crate::streams::{Home, Receiver, Sender, Writer};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyList;
use segstream::{Clock, Received, Verdict};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

/// What an operation will return.
pub(crate) type Pending = Pin<Box<dyn Future<Output = Result<Outcome, Fault>> + Send>>;

/// What an operation has returned, before Python has it.
pub(crate) enum Outcome {
    Nothing,
    Number(u64),
    Numbers(Vec<u64>),
    Text(String),
    Verdict(Verdict),
    Judged(segstream::Judged),
    Segment(Received, Arc<Home>),
    Segments(Vec<Received>, Arc<Home>),
    Units(segstream::Units),
    Connection(Box<NewConnection>),
    Sender(segstream::StreamSender, Box<Contract>, Clock),
    Receiver(segstream::StreamReceiver, segstream::Connection),
    Durable(segstream::Durable),
    Writer(segstream::SegmentWriter),
}

/// A connection that was made or accepted.
pub(crate) struct NewConnection {
    pub(crate) connection: segstream::Connection,
    pub(crate) senders: Vec<(segstream::StreamSender, Contract)>,
    pub(crate) clock: Clock,
}

impl Outcome {
    /// As an object of Python.
    pub(crate) fn into_py(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match self {
            Self::Nothing => Ok(py.None()),
            Self::Number(number) => number.into_py_any(py),
            Self::Numbers(numbers) => numbers.into_py_any(py),
            Self::Text(text) => text.into_py_any(py),
            Self::Verdict(verdict) => verdict.name().into_py_any(py),
            Self::Judged(judged) => Judged::new(judged).into_py_any(py),
            Self::Segment(received, home) => Segment::new(received, home.layout.clone()).into_py_any(py),
            Self::Segments(received, home) => {
                let segments = received.into_iter().map(|received| Segment::new(received, home.layout.clone()));
                PyList::new(py, segments)?.into_py_any(py)
            }
            Self::Units(units) => Units::new(units).into_py_any(py),
            Self::Connection(new) => Connection::new(py, *new)?.into_py_any(py),
            Self::Sender(sender, contract, clock) => Sender::new(sender, *contract, clock).into_py_any(py),
            Self::Receiver(receiver, connection) => Receiver::new(receiver, connection).into_py_any(py),
            Self::Durable(durable) => (durable.segments.0, durable.last).into_py_any(py),
            Self::Writer(writer) => Writer::new(writer).into_py_any(py),
        }
    }

    /// Nobody wants it any more: what was taken from a stream goes back to its front.
    pub(crate) fn put_back(self) {
        match self {
            Self::Segment(received, home) => home.put_back(received),
            Self::Segments(received, home) => received.into_iter().rev().for_each(|received| home.put_back(received)),
            _ => {}
        }
    }
}

/// An operation that was not waited for yet.
#[pyclass(frozen, module = "segstream._native")]
pub(crate) struct Operation {
    pending: Mutex<Option<Pending>>,
}

impl Operation {
    pub(crate) fn new(future: impl Future<Output = Result<Outcome, Fault>> + Send + 'static) -> Self {
        Self { pending: Mutex::new(Some(Box::pin(future))) }
    }

    /// The operation, once.
    pub(crate) fn take(&self) -> Result<Pending, Fault> {
        let pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner).take();
        pending.ok_or_else(|| Fault::Usage("this operation was waited for before".to_owned()))
    }
}

#[pymethods]
impl Operation {
    /// Waits without the GIL, at most so many seconds.
    #[pyo3(signature = (timeout=None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Py<PyAny>> {
        let timeout = timeout.map(|timeout| seconds("timeout", timeout)).transpose()?;
        Process::get()?.wait(py, timeout, self.take()?)?.into_py(py)
    }
}
