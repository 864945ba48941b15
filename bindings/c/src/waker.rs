//! A waker: ends the waiting call of an endpoint from another thread, or from a signal handler's thread.
//!
//! Called by C programs. Invariant: a waker may be used from any thread at any time, also after its endpoint was freed.

use crate::arguments::Out;
use crate::endpoint::{segstream_endpoint, with};
use crate::failure::{Failure, guarded};
use crate::status::segstream_status;
use segstream::Waker;

/// Ends the waiting call of an endpoint.
pub struct segstream_waker {
    waker: Waker,
}

/// Makes a waker of an endpoint. Free it with segstream_waker_free().
///
/// # Safety
///
/// `endpoint` is a handle; `waker` is NULL or valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn segstream_waker_new(endpoint: *mut segstream_endpoint, waker: *mut *mut segstream_waker) -> segstream_status {
    guarded(|| {
        // Safety: as this function's caller promises.
        let out = unsafe { Out::new(waker, "waker") }?;
        // Safety: as this function's caller promises.
        let waker = unsafe { with(endpoint, |state| Ok(state.endpoint.waker())) }?;
        out.set(Box::into_raw(Box::new(segstream_waker { waker })));
        Ok(())
    })
}

/// Ends the call of the endpoint that waits, or else its next one that would: it returns SEGSTREAM_WOKEN, segstream_wait()
/// SEGSTREAM_TIMED_OUT.
///
/// # Safety
///
/// `waker` comes from segstream_waker_new() and is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn segstream_wake(waker: *const segstream_waker) -> segstream_status {
    guarded(|| {
        // Safety: as this function's caller promises.
        unsafe { waker.as_ref() }.ok_or_else(|| Failure::argument("waker is NULL"))?.waker.wake();
        Ok(())
    })
}

/// Frees a waker.
///
/// # Safety
///
/// `waker` is NULL, or comes from segstream_waker_new() and was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn segstream_waker_free(waker: *mut segstream_waker) {
    let _ = guarded(|| {
        if !waker.is_null() {
            // Safety: it came from a box, and the caller promises that it is freed once.
            drop(unsafe { Box::from_raw(waker) });
        }
        Ok(())
    });
}
