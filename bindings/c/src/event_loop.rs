//! For programs with an event loop of their own: what to watch, how long to sleep, and what to call then.
//!
//! ```text
//! for (;;) {
//!     poll() segstream_fd() for reading, for at most segstream_timeout()
//!     segstream_process()
//!     while (segstream_wait(endpoint, &event, 0) == SEGSTREAM_OK) handle it
//! }
//! ```
//!
//! Called by C programs. Invariant: a loop that does this misses nothing and never turns without need.

use crate::endpoint::{State, segstream_endpoint, with};
use crate::failure::{Failure, guarded, guarded_number};
use crate::status::segstream_status;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::time::Duration;

/// The file descriptor to watch for reading; -1 if the setting "background" is on or `endpoint` is NULL. It belongs to the endpoint: it
/// must not be read or closed, and is not valid after the endpoint was freed.
///
/// # Safety
///
/// `endpoint` is NULL or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn segstream_fd(endpoint: *const segstream_endpoint) -> i32 {
    let fd = |state: &mut State| {
        if state.endpoint.is_driven_in_background() {
            return Err(Failure::argument("a thread of the library drives this endpoint and reads its socket; wait with segstream_wait"));
        }
        Ok(state.endpoint.as_fd().as_raw_fd())
    };
    // Safety: as this function's caller promises.
    guarded_number(-1, || unsafe { with(endpoint, fd) })
}

/// After how many microseconds to call segstream_process() even if nothing has arrived; 0 for at once, -1 if only an arrival makes work.
/// Ask again after every call of this endpoint. A loop whose clock ticks in milliseconds rounds down to keep a high rate.
///
/// # Safety
///
/// `endpoint` is NULL or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn segstream_timeout(endpoint: *const segstream_endpoint) -> i64 {
    let timeout = |state: &mut State| {
        let microseconds = |after: Duration| i64::try_from(after.as_nanos().div_ceil(1000)).unwrap_or(i64::MAX);
        Ok(state.endpoint.serve_after().map_or(-1, microseconds))
    };
    // Safety: as this function's caller promises.
    guarded_number(-1, || unsafe { with(endpoint, timeout) })
}

/// Serves the network once without sleeping: takes what has arrived, sends what is due. Events are kept for segstream_wait().
///
/// # Safety
///
/// `endpoint` is a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn segstream_process(endpoint: *mut segstream_endpoint) -> segstream_status {
    // Safety: as this function's caller promises.
    guarded(|| unsafe { with(endpoint, |state| Ok(state.endpoint.process()?)) })
}
