//! Buffers of Python as segments to send.
//!
//! Called by the sending operations. A read-only buffer is lent to the transport without a copy and held until the verdict; a writable
//! one is copied, unless the caller lends it explicitly.
//!
//! Invariant: a lent buffer is released with the GIL held, and never by a thread of the runtime: those drop the last handle of a
//! segment under the endpoint's lock, and would wait there for a thread of Python that waits for the lock.

use crate::process_id;
use bytes::{Bytes, BytesMut};
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use pyo3::{ffi, intern};
use std::borrow::Cow;
use std::collections::VecDeque;
use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

/// Up to this size a copy costs less than holding the buffer.
const COPIED_BYTES_MAX: usize = 4096;

/// How much memory copies of a batch share. It is free again when the last of them is judged.
const COPIES_BYTES: usize = 16 * COPIED_BYTES_MAX;

/// Buffers that the transport has done with, until someone who has the GIL releases them.
static DONE_WITH: Mutex<Vec<View>> = Mutex::new(Vec::new());
/// The process that lends.
static LENDER: AtomicU32 = AtomicU32::new(0);

/// A view that Python has granted.
struct View(Box<ffi::Py_buffer>);

// SAFETY: the memory is the exporter's and is read only; the view itself is released with the GIL held.
unsafe impl Send for View {}
// SAFETY: as above.
unsafe impl Sync for View {}

impl View {
    /// Asks `object` for its memory in C order.
    fn of(object: &Bound<'_, PyAny>, flags: c_int) -> PyResult<Self> {
        let mut view = Box::new(ffi::Py_buffer::new());
        // SAFETY: `object` is alive and the view is writable memory of the right type.
        if unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), &mut *view, flags) } == 0 {
            return Ok(Self(view));
        }
        let error = PyErr::fetch(object.py());
        let kind = object.get_type().name()?.to_string();
        if error.is_instance_of::<PyTypeError>(object.py()) {
            return Err(PyTypeError::new_err(format!("'{kind}' has no buffer; give bytes, a bytearray, a memoryview or a numpy array")));
        }
        Err(PyBufferError::new_err(format!("the memory of this '{kind}' cannot be used ({error}); give numpy.ascontiguousarray(a)")))
    }

    fn bytes(&self) -> &[u8] {
        if self.0.len <= 0 || self.0.buf.is_null() {
            return &[];
        }
        // SAFETY: the exporter keeps `len` bytes at `buf` until the view is released. Limit: Python code may change memory that it has
        // lent; then what is sent is a mixture, as the documentation of `borrow` says.
        unsafe { std::slice::from_raw_parts(self.0.buf.cast(), self.0.len as usize) }
    }

    fn is_read_only(&self) -> bool {
        self.0.readonly != 0
    }

    /// The format of an element, as the module `struct` spells it, and its size.
    fn element(&self) -> (Cow<'_, str>, usize) {
        let format = if self.0.format.is_null() {
            Cow::Borrowed("B")
        } else {
            // SAFETY: the exporter's text, which lives as long as the view.
            unsafe { CStr::from_ptr(self.0.format) }.to_string_lossy()
        };
        (format, self.0.itemsize.max(1) as usize)
    }

    /// Gives the memory back.
    fn release(mut self, _py: Python<'_>) {
        // SAFETY: granted once, released once, with the GIL held.
        unsafe { ffi::PyBuffer_Release(&mut *self.0) }
    }
}

/// A view lent to the transport.
struct Lent {
    /// `Some` until it is dropped.
    view: Option<View>,
    pid: u32,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        self.view.as_ref().map_or(&[], View::bytes)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let Some(view) = self.view.take() else { return };
        if self.pid != process_id::current() {
            // Why forgotten: the lock may be held by a thread that this child of a fork does not have.
            return std::mem::forget(view);
        }
        let mut done_with = DONE_WITH.lock().unwrap_or_else(PoisonError::into_inner);
        done_with.push(view);
        let is_first = done_with.len() == 1;
        drop(done_with);
        if is_first {
            // Why the result is ignored: if there is no room for a pending call, the next one that sends releases it.
            // SAFETY: may be called by any thread, without the GIL.
            let _ = unsafe { ffi::Py_AddPendingCall(Some(release_pending), std::ptr::null_mut()) };
        }
    }
}

/// Called by the interpreter, with the GIL.
extern "C" fn release_pending(_: *mut c_void) -> c_int {
    // Why: the lock may be held by a thread that this child of a fork does not have.
    if LENDER.load(Ordering::Relaxed) != process_id::current() {
        return 0;
    }
    // SAFETY: the interpreter makes pending calls with the GIL held.
    release_done_with(unsafe { Python::assume_attached() });
    0
}

/// Releases what the transport has done with.
pub(crate) fn release_done_with(py: Python<'_>) {
    let done_with = std::mem::take(&mut *DONE_WITH.lock().unwrap_or_else(PoisonError::into_inner));
    for view in done_with {
        view.release(py);
    }
}

/// What the elements of a stream must be; see [`crate::layout`].
pub(crate) trait Expectation {
    /// Refuses a buffer of other elements or of another length.
    fn check(&self, format: &str, item_bytes: usize, is_raw: bool, bytes: usize) -> PyResult<()>;
}

/// The memory of `object` as a segment.
///
/// # Errors
///
/// `TypeError` if it has no buffer or not the elements that `expected` names, `BufferError` if it is not contiguous in C order,
/// `ValueError` if it has not the length.
pub(crate) fn segment_of<E: Expectation>(object: &Bound<'_, PyAny>, borrow: bool, expected: Option<&E>) -> PyResult<Bytes> {
    release_done_with(object.py());
    one_of(object, borrow, expected, None)
}

/// The memory of each of `objects` as a segment.
///
/// # Errors
///
/// Those of [`segment_of`], for the first that is refused.
pub(crate) fn segments_of<E: Expectation>(objects: &Bound<'_, PyAny>, borrow: bool, expected: Option<&E>) -> PyResult<VecDeque<Bytes>> {
    release_done_with(objects.py());
    let mut copies = BytesMut::new();
    objects.try_iter()?.map(|object| one_of(&object?, borrow, expected, Some(&mut copies))).collect()
}

/// A segment; what is short is copied behind the other `copies` of its batch, if there is one.
///
/// Why together: an allocation for each segment of a batch would cost more than its copy.
fn one_of<E: Expectation>(object: &Bound<'_, PyAny>, borrow: bool, expected: Option<&E>, copies: Option<&mut BytesMut>) -> PyResult<Bytes> {
    let py = object.py();
    let flags = ffi::PyBUF_C_CONTIGUOUS | if expected.is_some() { ffi::PyBUF_FORMAT } else { 0 };
    let view = View::of(object, flags)?;
    if let Some(expected) = expected {
        let is_raw = object.is_exact_instance_of::<PyBytes>() || object.hasattr(intern!(py, "decode"))?;
        let (format, item_bytes) = view.element();
        let checked = expected.check(&format, item_bytes, is_raw, view.bytes().len());
        if let Err(error) = checked {
            view.release(py);
            return Err(error);
        }
    }
    let held = borrow || view.is_read_only();
    if held && view.bytes().len() > COPIED_BYTES_MAX {
        let pid = process_id::current();
        LENDER.store(pid, Ordering::Relaxed);
        return Ok(Bytes::from_owner(Lent { view: Some(view), pid }));
    }
    // Why with the GIL: without it another thread could change or resize what is being copied.
    let bytes = match copies.filter(|_| view.bytes().len() <= COPIED_BYTES_MAX) {
        Some(copies) => {
            if copies.capacity() < view.bytes().len() {
                *copies = BytesMut::with_capacity(COPIES_BYTES);
            }
            copies.extend_from_slice(view.bytes());
            copies.split().freeze()
        }
        None => Bytes::copy_from_slice(view.bytes()),
    };
    view.release(py);
    Ok(bytes)
}

/// Copies `bytes` to the start of the writable buffer of `object`; its length in bytes.
///
/// # Errors
///
/// `TypeError` or `BufferError` if it cannot be written, and `Ok(Err(length))` if it is too short: nothing is copied then.
pub(crate) fn copy_into(object: &Bound<'_, PyAny>, bytes: &[u8]) -> PyResult<Result<usize, usize>> {
    let py = object.py();
    let view = View::of(object, ffi::PyBUF_C_CONTIGUOUS | ffi::PyBUF_WRITABLE).map_err(|error| {
        let text = format!("the target cannot be written: {}", error.value(py));
        if error.is_instance_of::<PyTypeError>(py) { PyTypeError::new_err(text) } else { PyBufferError::new_err(text) }
    })?;
    let room = view.bytes().len();
    let fits = bytes.len() <= room;
    if fits && !bytes.is_empty() {
        // SAFETY: the exporter has granted `room` writable bytes at `buf`; a segment's memory is another.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), view.0.buf.cast::<u8>(), bytes.len()) }
    }
    view.release(py);
    Ok(if fits { Ok(bytes.len()) } else { Err(room) })
}
