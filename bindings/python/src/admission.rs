//! Whom an endpoint serves, as a list that may change while the endpoint exists.
//!
//! Made by applications, given to `segstream.listen` as `admission`. Invariant: an empty one admits nobody.

use crate::errors::Fault;
use crate::settings;
use pyo3::prelude::*;
use segstream::Fingerprint;
use std::path::PathBuf;

/// A key's fingerprint.
pub(crate) fn fingerprint(text: &str) -> Result<Fingerprint, Fault> {
    text.parse().map_err(|error| Fault::Usage(format!("{error}")))
}

/// Whose connections are served. Every endpoint that it was given to sees its changes.
#[pyclass(frozen, module = "segstream")]
pub(crate) struct Admission {
    shared: segstream::Admission,
}

impl Admission {
    pub(crate) const fn shared(&self) -> &segstream::Admission {
        &self.shared
    }
}

#[pymethods]
impl Admission {
    #[new]
    #[pyo3(signature = (*, anyone=false))]
    fn new(anyone: bool) -> Self {
        Self { shared: if anyone { segstream::Admission::anyone() } else { segstream::Admission::nobody() } }
    }

    /// Serves the holder of the key with this fingerprint from now on.
    fn allow(&self, key: &str) -> PyResult<()> {
        self.shared.allow(fingerprint(key)?);
        Ok(())
    }

    /// Serves every peer that an authority of a file (PEM) has certified for client authentication, from now on.
    fn allow_certified(&self, path: PathBuf) -> PyResult<()> {
        self.shared.allow_certified(settings::authorities(&path)?);
        Ok(())
    }
}
