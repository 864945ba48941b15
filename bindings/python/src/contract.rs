//! The contract of a stream, made of keyword arguments with the names of the library and the command.
//!
//! Called by applications and by the handles of streams. Invariant: a contract that Python holds is valid.

use crate::errors::Fault;
use crate::layout::Layout;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use segstream::{Contract as Facade, Error, InterleaveChoice, Order, Tolerance};
use std::time::Duration;

/// The contract of a stream: what may be missing, in which order, for how long.
#[pyclass(frozen, module = "segstream", eq, from_py_object)]
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Contract {
    pub(crate) facade: Facade,
    pub(crate) layout: Option<Layout>,
    /// The label without the layout.
    label: String,
}

/// A tolerance as three numbers, or `reliable`, `any`, `E,B` or `W,E,B`.
#[derive(FromPyObject)]
pub(crate) enum ToleranceArgument {
    Three((u32, u32, u32)),
    Text(String),
}

impl ToleranceArgument {
    /// The tolerance.
    pub(crate) fn read(self) -> Result<Tolerance, Fault> {
        let whole = Facade::default().tolerance.window();
        let text = match self {
            Self::Three((window, errors, burst)) => return Ok(Tolerance::new(window, errors, burst).map_err(Error::from)?),
            Self::Text(text) => text,
        };
        let numbers: Option<Vec<u32>> = text.split(',').map(|number| number.trim().parse().ok()).collect();
        let (window, errors, burst) = match (text.trim(), numbers.as_deref()) {
            ("reliable", _) => (whole, 0, 0),
            ("any", _) => (whole, whole, whole),
            (_, Some(&[errors, burst])) => (whole, errors, burst),
            (_, Some(&[window, errors, burst])) => (window, errors, burst),
            _ => {
                let text = format!("'{text}' is not a tolerance; give reliable, any, E,B as in 5,1, or W,E,B as in 1024,5,1");
                return Err(Fault::Usage(text));
            }
        };
        Ok(Tolerance::new(window, errors, burst).map_err(Error::from)?)
    }
}

/// Automatic, off, or a depth in units.
#[derive(FromPyObject)]
enum InterleaveArgument {
    Depth(u32),
    Word(String),
}

impl InterleaveArgument {
    fn read(self) -> Result<InterleaveChoice, Fault> {
        match self {
            Self::Depth(depth) => Ok(InterleaveChoice::Depth(depth)),
            Self::Word(word) if word == "auto" => Ok(InterleaveChoice::Auto),
            Self::Word(word) if word == "off" => Ok(InterleaveChoice::Off),
            Self::Word(word) => Err(Fault::Usage(format!("interleave='{word}' is unknown; give 'auto', 'off' or a number of units"))),
        }
    }
}

/// Seconds as a duration.
pub(crate) fn seconds(name: &str, seconds: f64) -> Result<Duration, Fault> {
    Duration::try_from_secs_f64(seconds).map_err(|_| Fault::Usage(format!("{name}={seconds} is no time; give seconds from 0 on")))
}

impl Contract {
    /// The contract of a stream of the peer.
    pub(crate) fn of(facade: Facade) -> Self {
        let (label, layout) = Layout::of_label(&facade.label);
        Self { facade, layout, label }
    }
}

#[pymethods]
impl Contract {
    #[new]
    #[pyo3(signature = (*, unit_bytes=None, tolerance=None, importance=0, order="in-order", lifetime=0.0, interleave=None,
        window_units=None, window_segments=None, weight=1, label="", dtype=None, shape=None))]
    // Why so many: they are the fields of the contract, and keywords in Python.
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        unit_bytes: Option<u32>,
        tolerance: Option<ToleranceArgument>,
        importance: u32,
        order: &str,
        lifetime: f64,
        interleave: Option<InterleaveArgument>,
        window_units: Option<u32>,
        window_segments: Option<u32>,
        weight: u8,
        label: &str,
        dtype: Option<&Bound<'_, PyAny>>,
        shape: Option<Vec<i64>>,
    ) -> PyResult<Self> {
        let order = match order {
            "in-order" => Order::InOrder,
            "as-accepted" => Order::AsAccepted,
            other => return Err(Fault::Usage(format!("order='{other}' is unknown; give 'in-order' or 'as-accepted'")).into()),
        };
        let layout = match dtype {
            None if shape.is_some() => return Err(Fault::Usage("a shape needs a dtype".to_owned()).into()),
            None => None,
            Some(dtype) => {
                let text: String = py.import("segstream._array")?.call_method1("dtype_text", (dtype,))?.extract()?;
                Some(Layout::new(text, shape.unwrap_or_default()).map_err(Fault::Usage)?)
            }
        };
        let default = Facade::default();
        let window_units = window_units.unwrap_or(default.window_units);
        let facade = Facade {
            unit_bytes: unit_bytes.unwrap_or(default.unit_bytes),
            tolerance: tolerance.map_or(Ok(default.tolerance), ToleranceArgument::read)?,
            importance,
            order,
            lifetime: seconds("lifetime", lifetime)?,
            interleave: interleave.map_or(Ok(default.interleave), InterleaveArgument::read)?,
            window_units,
            window_segments: window_segments.unwrap_or(window_units.min(65_536)),
            weight,
            label: layout.as_ref().map_or_else(|| label.to_owned(), |layout| layout.labelled(label)),
        };
        facade.validate().map_err(|error| Fault::Library(error.into()))?;
        Ok(Self { facade, layout, label: label.to_owned() })
    }

    #[getter]
    fn unit_bytes(&self) -> u32 {
        self.facade.unit_bytes
    }

    #[getter]
    fn tolerance(&self) -> (u32, u32, u32) {
        self.facade.tolerance.triplet()
    }

    #[getter]
    fn importance(&self) -> u32 {
        self.facade.importance
    }

    #[getter]
    fn order(&self) -> &'static str {
        match self.facade.order {
            Order::InOrder => "in-order",
            Order::AsAccepted => "as-accepted",
        }
    }

    #[getter]
    fn lifetime(&self) -> f64 {
        self.facade.lifetime.as_secs_f64()
    }

    /// `auto`, `off`, or a depth in units.
    #[getter]
    fn interleave(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match self.facade.interleave {
            InterleaveChoice::Auto => "auto".into_py_any(py),
            InterleaveChoice::Off => "off".into_py_any(py),
            InterleaveChoice::Depth(depth) => depth.into_py_any(py),
        }
    }

    #[getter]
    fn window_units(&self) -> u32 {
        self.facade.window_units
    }

    #[getter]
    fn window_segments(&self) -> u32 {
        self.facade.window_segments
    }

    #[getter]
    fn weight(&self) -> u8 {
        self.facade.weight
    }

    #[getter]
    fn label(&self) -> &str {
        &self.label
    }

    /// The type as numpy spells it, or `None`.
    #[getter]
    fn dtype(&self) -> Option<&str> {
        self.layout.as_ref().map(|layout| layout.dtype.as_str())
    }

    #[getter]
    fn shape(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let shape = self.layout.as_ref().map(|layout| pyo3::types::PyTuple::new(py, &layout.shape));
        Ok(shape.transpose()?.map(|shape| shape.into_any().unbind()))
    }

    fn __repr__(&self) -> String {
        let (window, errors, burst) = self.facade.tolerance.triplet();
        let layout =
            self.layout.as_ref().map_or_else(String::new, |layout| format!(", dtype='{}', shape={:?}", layout.dtype, layout.shape));
        format!("Contract(unit_bytes={}, tolerance=({window}, {errors}, {burst}), label='{}'{layout})", self.facade.unit_bytes, self.label)
    }
}
