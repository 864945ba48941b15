//! The asynchronous interface: operations run on the runtime's threads, and their results wait here for an event loop.
//!
//! Called by `segstream/aio.py`: the loop watches [`Mailbox::fileno`] and then calls [`Mailbox::drain`].
//!
//! Invariant: no thread of the runtime takes the GIL. A cancelled operation loses nothing: its result is put back.

use crate::errors::Fault;
use crate::operation::{Operation, Outcome};
use crate::runtime::{Guarded, Process};
use pyo3::prelude::*;
use rustix::event::{EventfdFlags, eventfd};
use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::task::AbortHandle;

/// The results that an event loop has not taken yet.
#[pyclass(frozen, module = "segstream._native")]
pub(crate) struct Mailbox {
    shared: Guarded<Arc<Shared>>,
}

struct Shared {
    /// Readable while there are results.
    ready: OwnedFd,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next: u64,
    running: BTreeMap<u64, AbortHandle>,
    done: Vec<(u64, Result<Outcome, Fault>)>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Operation `token` has ended. A cancelled one is not running any more.
    fn deliver(&self, token: u64, result: Result<Outcome, Fault>) {
        let mut state = self.lock();
        if state.running.remove(&token).is_none() {
            drop(state);
            return put_back(result);
        }
        state.done.push((token, result));
        if state.done.len() == 1 {
            // Why the result is ignored: the counter cannot overflow, and nothing else can fail.
            let _ = rustix::io::write(&self.ready, &1u64.to_ne_bytes());
        }
    }
}

fn put_back(result: Result<Outcome, Fault>) {
    if let Ok(outcome) = result {
        outcome.put_back();
    }
}

#[pymethods]
impl Mailbox {
    #[new]
    fn new() -> PyResult<Self> {
        let ready = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).map_err(std::io::Error::from)?;
        Ok(Self { shared: Guarded::new(Arc::new(Shared { ready, state: Mutex::default() })) })
    }

    /// Readable while results are waiting.
    fn fileno(&self) -> PyResult<i32> {
        Ok(self.shared.get()?.ready.as_raw_fd())
    }

    /// Starts an operation; its token comes with its result.
    fn start(&self, operation: &Operation) -> PyResult<u64> {
        let (process, shared) = (Process::get()?, Arc::clone(self.shared.get()?));
        let pending = operation.take()?;
        let mut state = shared.lock();
        let token = state.next;
        state.next += 1;
        let mailbox = Arc::clone(&shared);
        // Why under the lock: the operation may end before it is entered below.
        let task = process.handle().spawn(async move {
            let result = pending.await;
            mailbox.deliver(token, result);
        });
        state.running.insert(token, task.abort_handle());
        drop(state);
        Ok(token)
    }

    /// Ends an operation whose result nobody wants.
    fn cancel(&self, token: u64) -> PyResult<()> {
        let mut state = self.shared.get()?.lock();
        if let Some(task) = state.running.remove(&token) {
            task.abort();
        } else if let Some(at) = state.done.iter().position(|(done, _)| *done == token) {
            let (_, result) = state.done.remove(at);
            drop(state);
            put_back(result);
        }
        Ok(())
    }

    /// The results that are there: token, object or exception, and whether it is an exception.
    fn drain(&self, py: Python<'_>) -> PyResult<Vec<(u64, Py<PyAny>, bool)>> {
        let shared = self.shared.get()?;
        let done = {
            let mut state = shared.lock();
            // Why the result is ignored: an empty counter is no error.
            let _ = rustix::io::read(&shared.ready, &mut [0; 8]);
            std::mem::take(&mut state.done)
        };
        let objects = done.into_iter().map(|(token, result)| {
            match result.map_err(|fault| fault.into_py_err(py)).and_then(|outcome| outcome.into_py(py)) {
                Ok(object) => (token, object, false),
                Err(error) => (token, error.into_value(py).into_any(), true),
            }
        });
        Ok(objects.collect())
    }
}
