//! Segstream for Python: the extension module behind the package `segstream`.
//!
//! The classes that applications see are in `python/segstream`; here are the handles that they hold, and everything that touches
//! memory. [`operation`] says how a call waits, [`buffers`] how memory is lent, [`runtime`] what happens at a fork and at the end.
//!
//! Invariant: nothing that Python code does makes a panic or an abort: it gets an exception.

mod admission;
mod buffers;
mod connection;
mod contract;
mod endpoint;
mod errors;
mod lab;
mod layout;
mod mailbox;
mod operation;
mod process_id;
mod runtime;
mod segment;
mod settings;
mod streams;

use pyo3::prelude::*;

/// The extension module. Every class can be used by many threads at once, so it needs no GIL (PEP 703).
#[pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use super::admission::Admission;
    #[pymodule_export]
    use super::connection::Connection;
    #[pymodule_export]
    use super::contract::Contract;
    #[pymodule_export]
    use super::endpoint::{Endpoint, identity, unit_bytes_max};
    #[pymodule_export]
    use super::lab::{Job, lab_is_time, lab_scenario, lab_schemes, lab_simulate, lab_studies, lab_study};
    #[pymodule_export]
    use super::mailbox::Mailbox;
    #[pymodule_export]
    use super::operation::Operation;
    #[pymodule_export]
    use super::runtime::shut_down;
    #[pymodule_export]
    use super::segment::{Judged, Segment, Units};
    #[pymodule_export]
    use super::streams::{Receiver, Sender, Writer};
}
