//! The errors of the library as Python's exceptions, each saying whose fault it is.
//!
//! Called wherever an operation fails. The classes are in `segstream/_errors.py`; `docs/errors.md` has the table.
//!
//! Invariant: every error becomes an exception; none is swallowed.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use segstream::{CloseReason, Error};

/// Why an operation failed.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The library says so.
    Library(Error),
    /// The handle, named here, was closed by this program before.
    Closed(&'static str),
    /// The process was forked after the library had started its threads.
    Forked,
    /// The interpreter exits.
    Exiting,
    /// A call that is wrong in itself.
    Usage(String),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Library(error)
    }
}

/// A class of `segstream/_errors.py`.
#[derive(Clone, Copy)]
enum Class {
    Usage,
    Closed,
    Forked,
    TimedOut,
    Peer,
    Path,
    System,
}

impl Class {
    const fn name(self) -> &'static str {
        match self {
            Self::Usage => "UsageError",
            Self::Closed => "ClosedError",
            Self::Forked => "ForkedError",
            Self::TimedOut => "TimedOutError",
            Self::Peer => "PeerError",
            Self::Path => "PathError",
            Self::System => "SystemFaultError",
        }
    }

    fn new_err(self, py: Python<'_>, text: String) -> PyErr {
        static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
        let class = MODULE
            .get_or_try_init(py, || py.import("segstream._errors").map(Bound::unbind))
            .and_then(|module| module.bind(py).getattr(self.name()))
            .and_then(|class| Ok(class.cast_into::<PyType>()?));
        match class {
            Ok(class) => PyErr::from_type(class, text),
            Err(error) => error,
        }
    }
}

impl Fault {
    const fn class(&self) -> Class {
        match self {
            Self::Library(error) => class_of(error),
            Self::Closed(_) | Self::Exiting => Class::Closed,
            Self::Forked => Class::Forked,
            Self::Usage(_) => Class::Usage,
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Library(error) => error.to_string(),
            Self::Closed(handle) => format!("this {handle} has been closed by this program; make another"),
            Self::Forked => "this process was forked after segstream had started its threads, which a child does not have; \
                 fork before the first endpoint is made, or start processes with the method 'spawn'"
                .to_owned(),
            Self::Exiting => "the interpreter exits; close endpoints before the program ends".to_owned(),
            Self::Usage(text) => text.clone(),
        }
    }

    /// The exception.
    pub(crate) fn into_py_err(self, py: Python<'_>) -> PyErr {
        self.class().new_err(py, self.text())
    }
}

impl From<Fault> for PyErr {
    fn from(fault: Fault) -> Self {
        // Only called by threads of Python, which are attached.
        Python::attach(|py| fault.into_py_err(py))
    }
}

/// Whose fault an error of the library is.
const fn class_of(error: &Error) -> Class {
    match error {
        Error::Closed { reason, .. } => match reason {
            CloseReason::ClosedHere | CloseReason::AbortedHere => Class::Closed,
            CloseReason::TimedOut(_) | CloseReason::NoAnswer(_) | CloseReason::PathOverloaded { .. } => Class::Path,
            CloseReason::AeadLimitReached => Class::System,
            _ => Class::Peer,
        },
        Error::Refused { .. } | Error::NotConfirming => Class::Peer,
        Error::Closing { .. } | Error::EndpointClosed => Class::Closed,
        Error::TimedOut | Error::Woken => Class::TimedOut,
        Error::Socket(_) | Error::System(_) | Error::Entropy(_) | Error::NoRuntime => Class::System,
        _ => Class::Usage,
    }
}
