//! Pointers, texts, addresses and timeouts from C as values of Rust.
//!
//! Called by every function of the interface, which passes on what its caller has promised of a pointer.
//!
//! Invariant: NULL is an error with the name of the argument, never an access.

use crate::failure::Failure;
use segstream::{Run, UnitIndex};
use std::ffi::{CStr, c_char, c_void};
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

/// A run of units: the first, and the one behind the last.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct segstream_run {
    /// The first unit.
    pub start: u32,
    /// The unit behind the last.
    pub end: u32,
}

/// A text of the caller.
///
/// # Safety
///
/// `text` is NULL or points to bytes that end with a zero and stay as they are while the result is used.
pub(crate) unsafe fn text<'a>(text: *const c_char, name: &str) -> Result<&'a str, Failure> {
    if text.is_null() {
        return Err(Failure::argument(format!("{name} is NULL; give a text")));
    }
    // Safety: it is not NULL, and the caller promises the rest.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| Failure::argument(format!("{name} is not UTF-8")))
}

/// Bytes of the caller; NULL stands for none if the length is 0.
///
/// # Safety
///
/// `bytes` is valid for reading `count` bytes while the result is used.
pub(crate) unsafe fn bytes<'a>(bytes: *const c_void, count: usize, name: &str) -> Result<&'a [u8], Failure> {
    if count == 0 {
        return Ok(&[]);
    }
    check(bytes, count, name)?;
    // Safety: it is not NULL, its length is one that a slice may have, and the caller promises the rest.
    Ok(unsafe { std::slice::from_raw_parts(bytes.cast(), count) })
}

/// A buffer of the caller to write to; NULL stands for none if the length is 0.
///
/// # Safety
///
/// `buffer` is valid for writing `count` values of `T`, and nothing else uses it while the result is used. `T` has no invalid values, so
/// that it does not matter what is in the buffer.
pub(crate) unsafe fn buffer<'a, T>(buffer: *mut T, count: usize, name: &str) -> Result<&'a mut [T], Failure> {
    if count == 0 {
        return Ok(&mut []);
    }
    check(buffer.cast_const().cast(), count.saturating_mul(size_of::<T>()), name)?;
    // Safety: it is not NULL, its length is one that a slice may have, and the caller promises the rest.
    Ok(unsafe { std::slice::from_raw_parts_mut(buffer, count) })
}

fn check(pointer: *const c_void, bytes: usize, name: &str) -> Result<(), Failure> {
    if pointer.is_null() {
        return Err(Failure::argument(format!("{name} is NULL, but its length is not 0")));
    }
    if bytes > isize::MAX as usize {
        return Err(Failure::argument(format!("{name} is said to have {bytes} bytes, which no buffer has")));
    }
    Ok(())
}

/// Where a result goes.
pub(crate) struct Out<T>(*mut T);

impl<T> Out<T> {
    /// A place for a result, which is checked now and written later.
    ///
    /// # Safety
    ///
    /// `place` is NULL or valid for writing a `T` until the function ends that was given it.
    pub(crate) unsafe fn new(place: *mut T, name: &str) -> Result<Self, Failure> {
        if place.is_null() { Err(Failure::argument(format!("{name} is NULL; give a place for the result"))) } else { Ok(Self(place)) }
    }

    /// Writes the result; what stood there is not read and not dropped.
    pub(crate) fn set(self, value: T) {
        // Safety: it is not NULL, and whoever made it has promised the rest.
        unsafe { self.0.write(value) };
    }
}

/// A timeout in milliseconds; negative for none.
pub(crate) fn timeout(milliseconds: i64) -> Option<Duration> {
    u64::try_from(milliseconds).ok().map(Duration::from_millis)
}

/// An address such as `127.0.0.1:9000` or `[::1]:9000`; a name in place of the number is looked up, and its first address taken.
pub(crate) fn address(text: &str) -> Result<SocketAddr, Failure> {
    let wrong =
        |why: &str| Failure::argument(format!("\"{text}\" is no address: {why}; give one like 192.0.2.1:9000 or [2001:db8::1]:9000"));
    text.to_socket_addrs().map_err(|error| wrong(&error.to_string()))?.next().ok_or_else(|| wrong("the name has none"))
}

/// Copies runs into the caller's array. Only if all fit.
pub(crate) fn copy_runs(from: &[Run<UnitIndex>], to: &mut [segstream_run]) -> bool {
    let Some(to) = to.get_mut(..from.len()) else { return false };
    for (to, run) in to.iter_mut().zip(from) {
        *to = segstream_run { start: run.start().0, end: run.end().0 };
    }
    true
}

/// Copies a text with its zero byte into the caller's buffer. Only if it fits.
pub(crate) fn copy_text(text: &str, to: &mut [u8]) -> bool {
    let Some(to) = to.get_mut(..text.len() + 1) else { return false };
    to[..text.len()].copy_from_slice(text.as_bytes());
    to[text.len()] = 0;
    true
}
