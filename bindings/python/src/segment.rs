//! What was received, and the verdicts on what was sent, as objects of Python.
//!
//! Made by operations. A segment's memory is the buffer in which it was put together: Python reads it through the buffer protocol.
//!
//! Invariant: nothing is copied unless the name of the method says so; the memory is read-only.

use crate::buffers;
use crate::errors::Fault;
use crate::layout::Layout;
use crate::runtime::Guarded;
use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyRange, PyTuple};
use segstream::{Received, Run, UnitIndex};
use std::ffi::{CString, c_int};
use std::ptr::null_mut;
use std::sync::Arc;

/// Runs of units as a list of `range`.
fn ranges<'py>(py: Python<'py>, runs: &[Run<UnitIndex>]) -> PyResult<Bound<'py, PyList>> {
    let ranges: PyResult<Vec<_>> = runs.iter().map(|run| range(py, *run)).collect();
    PyList::new(py, ranges?)
}

fn range(py: Python<'_>, run: Run<UnitIndex>) -> PyResult<Bound<'_, PyRange>> {
    PyRange::new(py, run.start().0 as isize, run.end().0 as isize)
}

/// Fills a view of `bytes`, which `owner` keeps.
///
/// # Safety
///
/// `view` is null or points to a view to fill, as the interpreter passes it.
unsafe fn fill(owner: &Bound<'_, PyAny>, bytes: &[u8], view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
    // SAFETY: the caller's view; the bytes live as long as their owner, to which the view holds a reference. The memory is read-only.
    let filled = unsafe { ffi::PyBuffer_FillInfo(view, owner.as_ptr(), bytes.as_ptr().cast_mut().cast(), bytes.len() as isize, 1, flags) };
    if filled == 0 { Ok(()) } else { Err(PyErr::fetch(owner.py())) }
}

/// What a view of an array points to; freed with the view.
struct Described {
    format: CString,
    shape: Vec<isize>,
    strides: Vec<isize>,
}

/// As [`fill`], but as an array of `layout`, where the bytes are one and the caller asks for more than bytes.
///
/// # Safety
///
/// As for [`fill`]. The view is released by [`Segment::__releasebuffer__`].
unsafe fn fill_array(owner: &Bound<'_, PyAny>, bytes: &[u8], layout: &Layout, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
    // SAFETY: the caller's view.
    unsafe { fill(owner, bytes, view, flags)? };
    let asked = ffi::PyBUF_FORMAT | ffi::PyBUF_ND;
    let (true, Some((format, item_bytes, shape))) = (flags & asked == asked, layout.described(bytes.len())) else { return Ok(()) };
    let mut strides = vec![item_bytes; shape.len()];
    for at in (1..shape.len()).rev() {
        strides[at - 1] = strides[at] * shape[at].max(1);
    }
    let described = Box::into_raw(Box::new(Described { format, shape, strides }));
    // SAFETY: the view was filled above; what it points to lives until it is released.
    unsafe {
        (*view).itemsize = item_bytes;
        (*view).format = (*described).format.as_ptr().cast_mut();
        (*view).ndim = (*described).shape.len() as c_int;
        (*view).shape = (*described).shape.as_mut_ptr();
        (*view).strides = if flags & ffi::PyBUF_STRIDES == ffi::PyBUF_STRIDES { (*described).strides.as_mut_ptr() } else { null_mut() };
        (*view).internal = described.cast();
    }
    Ok(())
}

/// A received segment.
#[pyclass(frozen, module = "segstream", weakref)]
pub(crate) struct Segment {
    received: Guarded<Received>,
    layout: Option<Arc<Layout>>,
}

impl Segment {
    pub(crate) fn new(received: Received, layout: Option<Arc<Layout>>) -> Self {
        Self { received: Guarded::new(received), layout }
    }

    pub(crate) fn received(&self) -> Result<&Received, Fault> {
        self.received.get()
    }
}

#[pymethods]
impl Segment {
    #[getter]
    fn stream(&self) -> PyResult<u32> {
        Ok(self.received()?.stream.0)
    }

    #[getter]
    fn segment(&self) -> PyResult<u64> {
        Ok(self.received()?.segment.0)
    }

    #[getter]
    fn verdict(&self) -> PyResult<&'static str> {
        Ok(self.received()?.verdict.name())
    }

    #[getter]
    fn is_met(&self) -> PyResult<bool> {
        Ok(self.received()?.verdict.is_met())
    }

    #[getter]
    fn units(&self) -> PyResult<u32> {
        Ok(self.received()?.units)
    }

    #[getter]
    fn unit_bytes(&self) -> PyResult<u32> {
        Ok(self.received()?.unit_bytes)
    }

    #[getter]
    fn nbytes(&self) -> PyResult<usize> {
        Ok(self.received()?.bytes.len())
    }

    /// Runs of missing units, ascending.
    #[getter]
    fn holes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        ranges(py, &self.received()?.holes)
    }

    #[getter]
    fn missing(&self) -> PyResult<u32> {
        Ok(self.received()?.holes.iter().map(|run| run.len()).sum())
    }

    #[getter]
    fn source_time(&self) -> PyResult<f64> {
        Ok(self.received()?.source_time.as_nanos() as f64 / 1e9)
    }

    #[getter]
    fn first_arrival(&self) -> PyResult<Option<f64>> {
        Ok(self.received()?.first_arrival.map(|time| time.as_nanos() as f64 / 1e9))
    }

    #[getter]
    fn judged_at(&self) -> PyResult<f64> {
        Ok(self.received()?.judged_at.as_nanos() as f64 / 1e9)
    }

    #[getter]
    fn dtype(&self) -> Option<&str> {
        self.layout.as_ref().map(|layout| layout.dtype.as_str())
    }

    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.layout.as_ref().map(|layout| PyTuple::new(py, &layout.shape)).transpose()
    }

    /// The segment as an array over its memory.
    #[getter]
    fn array<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        helper(slf, "array_of")
    }

    /// Per element of `array`: whether any of its bytes is missing.
    #[getter]
    fn mask<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        helper(slf, "mask_of")
    }

    /// Per unit: whether it is missing.
    #[getter]
    fn unit_mask<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        helper(slf, "unit_mask_of")
    }

    /// The segment as a masked array.
    fn masked<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        helper(slf, "masked_of")
    }

    /// Copies the segment to the start of a writable buffer; its length in bytes.
    fn copy_into(&self, buffer: &Bound<'_, PyAny>) -> PyResult<usize> {
        let bytes = &self.received()?.bytes;
        buffers::copy_into(buffer, bytes)?.map_err(|room| {
            PyValueError::new_err(format!("the segment has {} bytes and the buffer {room}; give a longer buffer", bytes.len()))
        })
    }

    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(slf: &Bound<'py, Self>, dtype: Option<Bound<'py, PyAny>>, copy: Option<bool>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("segstream._array")?.call_method1("array_as", (slf, dtype, copy))
    }

    fn __len__(&self) -> PyResult<usize> {
        self.nbytes()
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyBytes>> {
        Ok(pyo3::types::PyBytes::new(py, &self.received()?.bytes))
    }

    fn __repr__(&self) -> PyResult<String> {
        let received = self.received()?;
        let (stream, segment, verdict) = (received.stream.0, received.segment.0, received.verdict.name());
        let holes = if received.holes.is_empty() { String::new() } else { format!(", {} units missing", self.missing()?) };
        Ok(format!("<Segment {segment} of stream {stream}: {} bytes, {verdict}{holes}>", received.bytes.len()))
    }

    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let bytes = &slf.get().received()?.bytes;
        match &slf.get().layout {
            // SAFETY: the interpreter's view; the segment is frozen, so its memory stays.
            Some(layout) => unsafe { fill_array(slf.as_any(), bytes, layout, view, flags) },
            // SAFETY: as above.
            None => unsafe { fill(slf.as_any(), bytes, view, flags) },
        }
    }

    unsafe fn __releasebuffer__(&self, view: *mut ffi::Py_buffer) {
        // SAFETY: the interpreter's view, which was filled above; `internal` is null or what was boxed there.
        unsafe {
            let described = std::mem::replace(&mut (*view).internal, null_mut()).cast::<Described>();
            if !described.is_null() {
                drop(Box::from_raw(described));
            }
        }
    }
}

/// A function of `segstream/_array.py`.
fn helper<'py>(segment: &Bound<'py, Segment>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    segment.py().import("segstream._array")?.call_method1(name, (segment,))
}

/// Units that have arrived of a segment that is not judged yet.
#[pyclass(frozen, module = "segstream")]
pub(crate) struct Units {
    units: segstream::Units,
}

impl Units {
    pub(crate) const fn new(units: segstream::Units) -> Self {
        Self { units }
    }
}

#[pymethods]
impl Units {
    #[getter]
    fn stream(&self) -> u32 {
        self.units.stream.0
    }

    #[getter]
    fn segment(&self) -> u64 {
        self.units.segment.0
    }

    /// Which units.
    #[getter]
    fn units<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyRange>> {
        range(py, self.units.run)
    }

    /// Where the first of them starts in the segment, in bytes.
    #[getter]
    const fn offset(&self) -> u64 {
        self.units.offset
    }

    const fn __len__(&self) -> usize {
        self.units.bytes.len()
    }

    fn __repr__(&self) -> String {
        let (run, segment) = (self.units.run, self.units.segment);
        format!("<Units {}..{} of segment {}: {} bytes>", run.start().0, run.end().0, segment.0, self.units.bytes.len())
    }

    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        // SAFETY: as for a segment.
        unsafe { fill(slf.as_any(), &slf.get().units.bytes, view, flags) }
    }
}

/// The verdict on a segment of ours.
#[pyclass(frozen, module = "segstream")]
pub(crate) struct Judged {
    judged: segstream::Judged,
}

impl Judged {
    pub(crate) const fn new(judged: segstream::Judged) -> Self {
        Self { judged }
    }
}

#[pymethods]
impl Judged {
    #[getter]
    fn stream(&self) -> u32 {
        self.judged.stream.0
    }

    #[getter]
    fn segment(&self) -> u64 {
        self.judged.segment.0
    }

    #[getter]
    fn verdict(&self) -> &'static str {
        self.judged.verdict.name()
    }

    #[getter]
    fn is_met(&self) -> bool {
        self.judged.verdict.is_met()
    }

    #[getter]
    fn holes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        ranges(py, &self.judged.holes)
    }

    #[getter]
    fn missing(&self) -> u32 {
        self.judged.missing()
    }

    fn __repr__(&self) -> String {
        format!("<Judged {}>", self.judged)
    }
}
