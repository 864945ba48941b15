//! What every function returns, as a number and as text.
//!
//! Called by C programs. Invariant: zero is done, positive is no error, negative is one; a number keeps its meaning.

use crate::failure;
use std::ffi::c_char;

/// What a function returns. Above 0: nothing was lost, call again. Below 0: an error, and segstream_last_error() says more.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum segstream_status {
    /// Done.
    SEGSTREAM_OK = 0,
    /// There is nothing more to come: the stream has ended, or no more verdicts will come.
    SEGSTREAM_END = 1,
    /// The timeout has passed.
    SEGSTREAM_TIMED_OUT = 2,
    /// A waker has ended the call.
    SEGSTREAM_WOKEN = 3,
    /// The send buffer is full, or as many streams are live as the peer allows.
    SEGSTREAM_BLOCKED = 4,
    /// The buffer or the array is too small. What it was for is kept for the next call.
    SEGSTREAM_BUFFER_TOO_SMALL = 5,
    /// An argument is wrong: the program's fault.
    SEGSTREAM_INVALID_ARGUMENT = -1,
    /// There is no such connection, stream or segment, or it has ended and everything of it was taken.
    SEGSTREAM_UNKNOWN = -2,
    /// The connection has ended other than by a graceful close.
    SEGSTREAM_CLOSED = -3,
    /// The connection is closing and accepts nothing new.
    SEGSTREAM_CLOSING = -4,
    /// The peer has refused the stream.
    SEGSTREAM_REFUSED = -5,
    /// A limit of this endpoint is reached.
    SEGSTREAM_LIMIT = -6,
    /// The operating system reports an error.
    SEGSTREAM_SYSTEM = -7,
    /// A key or a certificate cannot be used.
    SEGSTREAM_IDENTITY = -8,
    /// The handle is in another call, of another thread or of a callback.
    SEGSTREAM_IN_USE = -9,
    /// A fault of this library. Free the handle; nothing else can be done with it.
    SEGSTREAM_FAULT = -10,
}

use segstream_status::*;

/// A few words for a status; "unknown status" for a number that is none.
#[unsafe(no_mangle)]
pub extern "C" fn segstream_status_text(status: i32) -> *const c_char {
    let known = [
        (SEGSTREAM_OK, c"done"),
        (SEGSTREAM_END, c"nothing more will come"),
        (SEGSTREAM_TIMED_OUT, c"the timeout has passed"),
        (SEGSTREAM_WOKEN, c"a waker has ended the call"),
        (SEGSTREAM_BLOCKED, c"the send buffer is full or too many streams are live"),
        (SEGSTREAM_BUFFER_TOO_SMALL, c"the buffer is too small"),
        (SEGSTREAM_INVALID_ARGUMENT, c"an argument is wrong"),
        (SEGSTREAM_UNKNOWN, c"there is no such connection, stream or segment"),
        (SEGSTREAM_CLOSED, c"the connection has ended"),
        (SEGSTREAM_CLOSING, c"the connection is closing"),
        (SEGSTREAM_REFUSED, c"the peer has refused the stream"),
        (SEGSTREAM_LIMIT, c"a limit is reached"),
        (SEGSTREAM_SYSTEM, c"the operating system reports an error"),
        (SEGSTREAM_IDENTITY, c"a key or a certificate cannot be used"),
        (SEGSTREAM_IN_USE, c"the handle is in another call"),
        (SEGSTREAM_FAULT, c"a fault of the library"),
    ];
    known.iter().find(|(code, _)| *code as i32 == status).map_or(c"unknown status", |(_, text)| text).as_ptr()
}

/// The sentence to the last status of this thread that was not SEGSTREAM_OK; empty if there was none. It is valid until the next call of
/// this thread.
#[unsafe(no_mangle)]
pub extern "C" fn segstream_last_error() -> *const c_char {
    failure::last()
}

/// The version of the library, such as "0.1.0".
#[unsafe(no_mangle)]
pub extern "C" fn segstream_version() -> *const c_char {
    const VERSION: &std::ffi::CStr = match std::ffi::CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => c"",
    };
    VERSION.as_ptr()
}
