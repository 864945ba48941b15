//! An endpoint: a socket with its connections, behind a handle.
//!
//! Called by C programs, and by the other files of this interface through `with`.
//!
//! Invariant: a handle is in one call at a time, and after a panic in none any more. What was too large for the caller's buffer is kept
//! here until the caller comes with a larger one.

use crate::arguments::{self, Out};
use crate::failure::{Failure, guarded};
use crate::options::segstream_options;
use crate::status::segstream_status::{self, *};
use segstream::blocking::{Connection, Endpoint};
use segstream::recorder::Recorder;
use segstream::{ConnectionId, Judged, Received, SegmentNumber, StreamId, Units};
use std::collections::BTreeMap;
use std::ffi::c_char;
use std::sync::{Mutex, PoisonError, TryLockError};

/// An endpoint: a socket with its connections.
pub struct segstream_endpoint {
    state: Mutex<State>,
}

/// What a handle has.
pub(crate) struct State {
    pub(crate) endpoint: Endpoint,
    connections: BTreeMap<u64, ConnectionId>,
    numbers: BTreeMap<ConnectionId, u64>,
    last: u64,
    pub(crate) kept: Kept,
    recorder: Option<Recorder>,
}

/// What did not fit the caller's buffers, by connection and stream.
#[derive(Default)]
pub(crate) struct Kept {
    pub(crate) segments: BTreeMap<(u64, StreamId), Received>,
    pub(crate) units: BTreeMap<(u64, StreamId), Units>,
    pub(crate) verdicts: BTreeMap<(u64, StreamId, SegmentNumber), Judged>,
}

impl State {
    fn new(endpoint: Endpoint, recorder: Option<Recorder>) -> Self {
        Self { endpoint, connections: BTreeMap::new(), numbers: BTreeMap::new(), last: 0, kept: Kept::default(), recorder }
    }

    /// The number of a connection; a new one if it has none. Numbers begin with 1 and are not used again.
    pub(crate) fn number(&mut self, id: ConnectionId) -> u64 {
        if let Some(number) = self.numbers.get(&id) {
            return *number;
        }
        self.last += 1;
        self.numbers.insert(id, self.last);
        self.connections.insert(self.last, id);
        self.last
    }

    /// The connection with this number.
    pub(crate) fn connection(&mut self, number: u64) -> Result<Connection<'_>, Failure> {
        let id = self.id(number)?;
        Ok(self.endpoint.connection(id))
    }

    pub(crate) fn id(&self, number: u64) -> Result<ConnectionId, Failure> {
        let unknown = || Failure::new(SEGSTREAM_UNKNOWN, format!("there is no connection {number}, or it was released"));
        self.connections.get(&number).copied().ok_or_else(unknown)
    }

    /// Forgets a connection and what was kept of it.
    pub(crate) fn forget(&mut self, number: u64) {
        if let Some(id) = self.connections.remove(&number) {
            self.numbers.remove(&id);
        }
        self.kept.segments.retain(|(connection, _), _| *connection != number);
        self.kept.units.retain(|(connection, _), _| *connection != number);
        self.kept.verdicts.retain(|(connection, ..), _| *connection != number);
    }
}

/// Runs `call` with what is behind a handle.
///
/// # Safety
///
/// `endpoint` is NULL, or comes from segstream_bind() or segstream_listen() and is not freed before this returns.
pub(crate) unsafe fn with<R>(
    endpoint: *const segstream_endpoint,
    call: impl FnOnce(&mut State) -> Result<R, Failure>,
) -> Result<R, Failure> {
    // Safety: as this function's caller promises; only shared references are made of it until it is freed.
    let handle = unsafe { endpoint.as_ref() }.ok_or_else(|| Failure::argument("endpoint is NULL"))?;
    match handle.state.try_lock() {
        Ok(mut state) => call(&mut state),
        Err(TryLockError::WouldBlock) => {
            Err(Failure::new(SEGSTREAM_IN_USE, "the endpoint is in another call; use it from one thread at a time, or a waker"))
        }
        Err(TryLockError::Poisoned(_)) => {
            Err(Failure::new(SEGSTREAM_FAULT, "a call of this endpoint has failed before by a fault of the library; free it"))
        }
    }
}

/// Makes an endpoint of settings (NULL for the usual ones) at an address.
///
/// # Safety
///
/// As of the functions that call it.
unsafe fn make(
    options: *const segstream_options,
    address: *const c_char,
    endpoint: *mut *mut segstream_endpoint,
    listens: bool,
) -> segstream_status {
    guarded(|| {
        // Safety: as this function's caller promises.
        let (out, address) = unsafe { (Out::new(endpoint, "endpoint")?, arguments::text(address, "address")?) };
        let address = arguments::address(address)?;
        // Safety: as this function's caller promises.
        let options = unsafe { options.as_ref() }.cloned().unwrap_or_default();
        let recorder = options.recorder()?;
        let builder = options.builder(Endpoint::builder(), recorder.clone());
        let builder = if options.in_background() { builder.driven_in_background() } else { builder };
        let made = if listens { builder.listen(address) } else { builder.bind(address) }?;
        out.set(Box::into_raw(Box::new(segstream_endpoint { state: Mutex::new(State::new(made, recorder)) })));
        Ok(())
    })
}

/// Writes what is recorded to the end.
fn finish(recorder: Option<Recorder>) -> Result<(), Failure> {
    let finished = recorder.map_or(Ok(()), |recorder| recorder.finish());
    finished.map_err(|error| Failure::new(SEGSTREAM_SYSTEM, format!("qlog or loss_log was not written to the end: {error}")))
}

/// Makes an endpoint that only makes connections. An address with port 0 takes any free port. `options` may be NULL.
///
/// # Safety
///
/// `options` is NULL or comes from segstream_options_new(); `address` is a text; `endpoint` is NULL or valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn segstream_bind(
    options: *const segstream_options,
    address: *const c_char,
    endpoint: *mut *mut segstream_endpoint,
) -> segstream_status {
    // Safety: as this function's caller promises.
    unsafe { make(options, address, endpoint, false) }
}

/// Makes an endpoint that makes and accepts connections. The options say whom it serves: "allow", "allow_anyone" or "insecure".
///
/// # Safety
///
/// As of segstream_bind().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn segstream_listen(
    options: *const segstream_options,
    address: *const c_char,
    endpoint: *mut *mut segstream_endpoint,
) -> segstream_status {
    // Safety: as this function's caller promises.
    unsafe { make(options, address, endpoint, true) }
}

/// Frees an endpoint. Connections whose segments are all judged and read are closed gracefully, which takes three seconds at most; the
/// others are aborted.
///
/// # Safety
///
/// `endpoint` is NULL, or comes from segstream_bind() or segstream_listen(), was not freed, and is in no call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn segstream_endpoint_free(endpoint: *mut segstream_endpoint) {
    let _ = guarded(|| {
        if !endpoint.is_null() {
            // Safety: it came from a box, and the caller promises that it is freed once.
            let handle = unsafe { Box::from_raw(endpoint) };
            let State { endpoint, recorder, .. } = handle.state.into_inner().unwrap_or_else(PoisonError::into_inner);
            drop(endpoint);
            finish(recorder)?;
        }
        Ok(())
    });
}

/// Closes every connection gracefully, waits until all have ended, and frees the endpoint, whatever it returns.
///
/// # Safety
///
/// As of segstream_endpoint_free().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn segstream_endpoint_close(endpoint: *mut segstream_endpoint) -> segstream_status {
    guarded(|| {
        if endpoint.is_null() {
            return Err(Failure::argument("endpoint is NULL"));
        }
        // Safety: it came from a box, and the caller promises that it is freed once.
        let handle = unsafe { Box::from_raw(endpoint) };
        let state = handle.state.into_inner().map_err(|_| Failure::new(SEGSTREAM_FAULT, "a call of this endpoint has failed before"))?;
        let closed = state.endpoint.close();
        finish(state.recorder)?;
        Ok(closed?)
    })
}

/// Accepts no connection from now on; those that were accepted go on.
///
/// # Safety
///
/// `endpoint` is a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn segstream_stop_accepting(endpoint: *mut segstream_endpoint) -> segstream_status {
    // Safety: as this function's caller promises.
    guarded(|| unsafe {
        with(endpoint, |state| {
            state.endpoint.stop_accepting();
            Ok(())
        })
    })
}

/// Writes the address in use, such as 127.0.0.1:9000, with its zero byte. 64 bytes are enough.
///
/// # Safety
///
/// `endpoint` is a handle; `buffer` is valid for writing `buffer_bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn segstream_local_address(
    endpoint: *const segstream_endpoint,
    buffer: *mut c_char,
    buffer_bytes: usize,
) -> segstream_status {
    // Safety: as this function's caller promises.
    unsafe { tell(endpoint, buffer, buffer_bytes, |state| Ok(state.endpoint.local_addr().to_string())) }
}

/// Writes the fingerprint of this end's key, SHA256:..., with its zero byte; an empty text in plain mode. 64 bytes are enough.
///
/// # Safety
///
/// As of segstream_local_address().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn segstream_fingerprint(
    endpoint: *const segstream_endpoint,
    buffer: *mut c_char,
    buffer_bytes: usize,
) -> segstream_status {
    // Safety: as this function's caller promises.
    unsafe { tell(endpoint, buffer, buffer_bytes, |state| Ok(state.endpoint.fingerprint().map(|key| key.to_string()).unwrap_or_default())) }
}

/// Writes a text about an endpoint into the caller's buffer.
///
/// # Safety
///
/// `endpoint` is a handle; `buffer` is valid for writing `buffer_bytes` bytes.
pub(crate) unsafe fn tell(
    endpoint: *const segstream_endpoint,
    buffer: *mut c_char,
    buffer_bytes: usize,
    text: impl FnOnce(&mut State) -> Result<String, Failure>,
) -> segstream_status {
    guarded(|| {
        // Safety: as this function's caller promises; any byte may be written to a buffer of characters.
        let buffer = unsafe { arguments::buffer(buffer.cast::<u8>(), buffer_bytes, "buffer") }?;
        // Safety: as this function's caller promises.
        let text = unsafe { with(endpoint, text) }?;
        if arguments::copy_text(&text, buffer) {
            return Ok(());
        }
        Err(Failure::new(SEGSTREAM_BUFFER_TOO_SMALL, format!("the text needs {} bytes; the buffer has {buffer_bytes}", text.len() + 1)))
    })
}
