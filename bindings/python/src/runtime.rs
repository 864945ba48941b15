//! What a process has once: the threads that serve the network, and the state of its end.
//!
//! Called by every operation. Python's threads wait here without the GIL; the runtime's threads never take it, so that the end of the
//! interpreter finds none of them in Python.
//!
//! Invariant: a wait ends when its operation does, its timeout passes, a signal handler raises, or the interpreter exits. After a fork
//! nothing of the parent's runtime is touched in the child.

use crate::errors::Fault;
use crate::operation::{Outcome, Pending};
use crate::process_id;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::{Handle, Runtime};
use tokio::sync::Notify;

/// How long a wait goes on before it looks for signals: what Ctrl-C takes at most.
const SIGNALS_EVERY: Duration = Duration::from_millis(50);
/// The most threads that serve the network.
const THREADS_MAX: usize = 4;
/// How long the end of the interpreter waits for connections that are being closed.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(4);

static PROCESS: OnceLock<Process> = OnceLock::new();

/// The runtime of this process.
pub(crate) struct Process {
    pid: u32,
    handle: Handle,
    /// `None` once it was shut down.
    runtime: Mutex<Option<Runtime>>,
    exiting: AtomicBool,
    exit: Notify,
    /// Python's threads that are in a call without the GIL.
    detached: AtomicUsize,
}

/// Counts a thread that is without the GIL, until it has it again.
struct Detached<'p>(&'p Process);

impl Drop for Detached<'_> {
    fn drop(&mut self) {
        self.0.detached.fetch_sub(1, Ordering::SeqCst);
    }
}

enum Step {
    Done(Result<Outcome, Fault>),
    Signals,
    Exiting,
}

impl Process {
    /// The runtime; the first call starts it.
    ///
    /// # Errors
    ///
    /// In a child of a process that had started it, when the interpreter exits, and when the system cannot start threads.
    pub(crate) fn get() -> Result<&'static Self, Fault> {
        let process = match PROCESS.get() {
            Some(process) => process,
            None => {
                let started = Self::start()?;
                PROCESS.get_or_init(|| started)
            }
        };
        if process.pid != process_id::current() {
            return Err(Fault::Forked);
        }
        if process.exiting.load(Ordering::SeqCst) {
            return Err(Fault::Exiting);
        }
        Ok(process)
    }

    /// Whether what was made in process `pid` may be used, or dropped, in this one.
    pub(crate) fn is_current(pid: u32) -> bool {
        pid == process_id::current()
    }

    fn start() -> Result<Self, Fault> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().thread_name("segstream").build();
        let runtime = runtime.map_err(|error| Fault::Library(error.into()))?;
        Ok(Self {
            pid: process_id::current(),
            handle: runtime.handle().clone(),
            runtime: Mutex::new(Some(runtime)),
            exiting: AtomicBool::new(false),
            exit: Notify::new(),
            detached: AtomicUsize::new(0),
        })
    }

    /// The runtime, to spawn on.
    pub(crate) const fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Makes `call` without the GIL.
    pub(crate) fn without_gil<T: Send>(&self, py: Python<'_>, call: impl FnOnce() -> T + Send) -> Result<T, Fault> {
        let _detached = self.detach()?;
        Ok(py.detach(call))
    }

    fn detach(&self) -> Result<Detached<'_>, Fault> {
        self.detached.fetch_add(1, Ordering::SeqCst);
        let detached = Detached(self);
        // Why after the count: the end of the interpreter sets the flag first and then waits for the count.
        if self.exiting.load(Ordering::SeqCst) { Err(Fault::Exiting) } else { Ok(detached) }
    }

    /// Waits for `operation` without the GIL. A timed-out operation is dropped, and has then taken nothing.
    pub(crate) fn wait(&self, py: Python<'_>, timeout: Option<Duration>, mut operation: Pending) -> PyResult<Outcome> {
        let until = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            let slice = left.map_or(SIGNALS_EVERY, |left| left.min(SIGNALS_EVERY));
            let step = self.without_gil(py, || self.step(&mut operation, slice))?;
            match step {
                Step::Done(result) => return Ok(result?),
                Step::Exiting => return Err(Fault::Exiting.into()),
                Step::Signals => {
                    py.check_signals()?;
                    if left.is_some_and(|left| left <= slice) {
                        return Err(Fault::Library(segstream::Error::TimedOut).into());
                    }
                }
            }
        }
    }

    fn step(&self, operation: &mut Pending, slice: Duration) -> Step {
        self.handle.block_on(async {
            let exit = self.exit.notified();
            if self.exiting.load(Ordering::SeqCst) {
                return Step::Exiting;
            }
            tokio::select! {
                biased;
                result = operation => Step::Done(result),
                () = exit => Step::Exiting,
                () = tokio::time::sleep(slice) => Step::Signals,
            }
        })
    }

    /// The interpreter exits: ends every wait, lets the runtime close what can be closed, and waits until no thread is in a call.
    fn end(&self) {
        self.exiting.store(true, Ordering::SeqCst);
        while self.detached.load(Ordering::SeqCst) > 0 {
            self.exit.notify_waiters();
            std::thread::sleep(Duration::from_millis(1));
        }
        let runtime = self.runtime.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(runtime) = runtime {
            runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
        }
    }
}

/// For `atexit`: ends every wait and stops the threads. What has ended on its streams is closed gracefully, the rest is aborted.
#[pyfunction]
pub(crate) fn shut_down(py: Python<'_>) {
    if let Some(process) = PROCESS.get()
        && process.pid == process_id::current()
    {
        py.detach(|| process.end());
    }
}

/// Something that a child of a fork must neither use nor drop: its locks may be held by threads that the child does not have.
pub(crate) struct Guarded<T> {
    pid: u32,
    value: std::mem::ManuallyDrop<T>,
}

impl<T> Guarded<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { pid: process_id::current(), value: std::mem::ManuallyDrop::new(value) }
    }

    /// The value, in the process that made it.
    pub(crate) fn get(&self) -> Result<&T, Fault> {
        if Process::is_current(self.pid) { Ok(&self.value) } else { Err(Fault::Forked) }
    }
}

impl<T> Drop for Guarded<T> {
    fn drop(&mut self) {
        if Process::is_current(self.pid) {
            // SAFETY: dropped here, once; nobody uses the value after its owner's drop.
            unsafe { std::mem::ManuallyDrop::drop(&mut self.value) }
        }
    }
}
