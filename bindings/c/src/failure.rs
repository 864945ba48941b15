//! The outcome of a function: a status, and a sentence that the thread keeps. No panic passes.
//!
//! Called by every function of the interface.
//!
//! Invariant: a function that returns another status than SEGSTREAM_OK has left its sentence.

use crate::status::segstream_status::{self, *};
use segstream::{Error, OpenStreamError, SubmitError};
use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static LAST: RefCell<CString> = RefCell::new(CString::default());
}

/// Why a function has not done what it was called for.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: segstream_status,
    text: String,
}

impl Failure {
    pub(crate) fn new(status: segstream_status, text: impl Into<String>) -> Self {
        Self { status, text: text.into() }
    }

    /// The program's fault.
    pub(crate) fn argument(text: impl Into<String>) -> Self {
        Self::new(SEGSTREAM_INVALID_ARGUMENT, text)
    }

    /// The stream or connection has nothing more.
    pub(crate) fn end() -> Self {
        Self::new(SEGSTREAM_END, "nothing more will come")
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let status = match &error {
            Error::TimedOut => SEGSTREAM_TIMED_OUT,
            Error::Woken => SEGSTREAM_WOKEN,
            Error::Submit(SubmitError::Blocked) | Error::OpenStream(OpenStreamError::TooManyStreams { .. }) => SEGSTREAM_BLOCKED,
            Error::Closed { .. } => SEGSTREAM_CLOSED,
            Error::Closing { .. } => SEGSTREAM_CLOSING,
            Error::Refused { .. } => SEGSTREAM_REFUSED,
            Error::Unknown(_) | Error::EndpointClosed => SEGSTREAM_UNKNOWN,
            Error::Connect(segstream::ConnectError::TooMany(_)) => SEGSTREAM_LIMIT,
            Error::Socket(_) | Error::System(_) | Error::Entropy(_) => SEGSTREAM_SYSTEM,
            Error::Identity(_) => SEGSTREAM_IDENTITY,
            _ => SEGSTREAM_INVALID_ARGUMENT,
        };
        Self::new(status, error.to_string())
    }
}

/// Runs the body of a function. A panic in it becomes a status: unwinding into C is undefined.
pub(crate) fn guarded(body: impl FnOnce() -> Result<(), Failure>) -> segstream_status {
    // Why a body may be called again after a panic in it: a handle whose call has panicked refuses every other one.
    let outcome = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| Err(of_panic(&*panic)));
    match outcome {
        Ok(()) => SEGSTREAM_OK,
        Err(Failure { status, text }) => {
            keep(text);
            status
        }
    }
}

/// As [`guarded`], for a function that returns a number: `otherwise` if it fails.
pub(crate) fn guarded_number<N>(otherwise: N, body: impl FnOnce() -> Result<N, Failure>) -> N {
    let mut number = otherwise;
    let _ = guarded(|| {
        number = body()?;
        Ok(())
    });
    number
}

fn of_panic(panic: &(dyn Any + Send)) -> Failure {
    let told = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    Failure::new(SEGSTREAM_FAULT, format!("a fault of this library, please report it: {}", told.unwrap_or("it says no more")))
}

/// Keeps the sentence for this thread. While the thread ends nothing can be kept any more, and nobody asks.
pub(crate) fn keep(mut text: String) {
    text.retain(|letter| letter != '\0');
    let text = CString::new(text).unwrap_or_default();
    let _ = LAST.try_with(|last| *last.borrow_mut() = text);
}

/// The sentence of this thread.
pub(crate) fn last() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    #[test]
    fn a_panic_becomes_a_status_with_a_sentence() {
        assert_eq!(guarded(|| panic!("no {}", "way")), SEGSTREAM_FAULT);
        // Safety: the text of this thread, which makes no other call meanwhile.
        let text = unsafe { CStr::from_ptr(last()) }.to_str().unwrap();
        assert!(text.ends_with("no way"), "{text}");
        assert_eq!(guarded_number(-1, || panic!("again")), -1);
    }

    #[test]
    fn zero_bytes_in_a_sentence_do_not_cut_it() {
        guarded(|| Err(Failure::argument("a\0b")));
        // Safety: as above.
        assert_eq!(unsafe { CStr::from_ptr(last()) }.to_str().unwrap(), "ab");
    }
}
