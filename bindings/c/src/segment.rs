//! A received segment as a handle: its bytes are the library's buffer, without a copy.
//!
//! Called by C programs that got one from segstream_recv_segment().
//!
//! Invariant: a segment stays as it is until it is freed, also after its endpoint was.

use crate::arguments::{Out, segstream_run};
use crate::failure::{Failure, guarded, guarded_number};
use crate::status::segstream_status;
use segstream::{Received, Verdict};
use std::ffi::c_void;

/// The outcome of a segment.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum segstream_verdict {
    /// Every unit arrived.
    SEGSTREAM_VERDICT_COMPLETE = 0,
    /// Units are missing, and the tolerance allows every hole.
    SEGSTREAM_VERDICT_WITHIN_TOLERANCE = 1,
    /// The tolerance was not met.
    SEGSTREAM_VERDICT_EXPIRED = 2,
    /// The connection ended before the receiver's verdict was known. Only a sender is told this.
    SEGSTREAM_VERDICT_UNKNOWN = 3,
}

impl From<Verdict> for segstream_verdict {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Complete => Self::SEGSTREAM_VERDICT_COMPLETE,
            Verdict::WithinTolerance => Self::SEGSTREAM_VERDICT_WITHIN_TOLERANCE,
            Verdict::Expired => Self::SEGSTREAM_VERDICT_EXPIRED,
            Verdict::Unknown => Self::SEGSTREAM_VERDICT_UNKNOWN,
        }
    }
}

/// What is told of a received segment.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct segstream_received {
    /// The segment.
    pub segment: u64,
    /// Its length in bytes, zeros where units are missing.
    pub bytes: usize,
    /// Its units.
    pub units: u32,
    /// The size of a unit in bytes.
    pub unit_bytes: u32,
    /// How many runs of units are missing.
    pub holes: usize,
    /// The verdict.
    pub verdict: segstream_verdict,
    /// The source's time in nanoseconds, on its own clock.
    pub source_time_ns: u64,
    /// When the first unit or repair unit arrived, in nanoseconds since this endpoint was made; UINT64_MAX if none did.
    pub first_arrival_ns: u64,
    /// When the segment was judged, on the same clock.
    pub judged_at_ns: u64,
}

impl segstream_received {
    pub(crate) fn of(received: &Received) -> Self {
        Self {
            segment: received.segment.0,
            bytes: received.bytes.len(),
            units: received.units,
            unit_bytes: received.unit_bytes,
            holes: received.holes.len(),
            verdict: received.verdict.into(),
            source_time_ns: received.source_time.as_nanos(),
            first_arrival_ns: received.first_arrival.map_or(u64::MAX, |at| at.as_nanos()),
            judged_at_ns: received.judged_at.as_nanos(),
        }
    }
}

/// A received segment.
pub struct segstream_segment {
    received: Received,
    holes: Vec<segstream_run>,
}

impl segstream_segment {
    pub(crate) fn new(received: Received) -> Self {
        let holes = received.holes.iter().map(|run| segstream_run { start: run.start().0, end: run.end().0 }).collect();
        Self { received, holes }
    }
}

/// The segment behind a pointer.
///
/// # Safety
///
/// `segment` is NULL, or comes from segstream_recv_segment() and is not freed while the result is used.
unsafe fn read<'a>(segment: *const segstream_segment) -> Result<&'a segstream_segment, Failure> {
    // Safety: as this function's caller promises.
    unsafe { segment.as_ref() }.ok_or_else(|| Failure::argument("segment is NULL"))
}

/// What is told of a segment.
///
/// # Safety
///
/// `segment` comes from segstream_recv_segment() and is not freed; `received` is NULL or valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn segstream_segment_received(
    segment: *const segstream_segment,
    received: *mut segstream_received,
) -> segstream_status {
    guarded(|| {
        // Safety: as this function's caller promises.
        let (segment, out) = unsafe { (read(segment)?, Out::new(received, "received")?) };
        out.set(segstream_received::of(&segment.received));
        Ok(())
    })
}

/// The bytes of a segment, valid until it is freed; NULL if it is NULL.
///
/// # Safety
///
/// `segment` is NULL, or comes from segstream_recv_segment() and is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn segstream_segment_bytes(segment: *const segstream_segment) -> *const c_void {
    // Safety: as this function's caller promises.
    guarded_number(std::ptr::null(), || Ok(unsafe { read(segment) }?.received.bytes.as_ptr().cast()))
}

/// The holes of a segment, as many as segstream_received.holes says, in ascending order and valid until it is freed; NULL if it is NULL.
///
/// # Safety
///
/// `segment` is NULL, or comes from segstream_recv_segment() and is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn segstream_segment_holes(segment: *const segstream_segment) -> *const segstream_run {
    // Safety: as this function's caller promises.
    guarded_number(std::ptr::null(), || Ok(unsafe { read(segment) }?.holes.as_ptr()))
}

/// Frees a segment, on any thread.
///
/// # Safety
///
/// `segment` is NULL, or comes from segstream_recv_segment() and was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn segstream_segment_free(segment: *mut segstream_segment) {
    let _ = guarded(|| {
        if !segment.is_null() {
            // Safety: it came from a box, and the caller promises that it is freed once.
            drop(unsafe { Box::from_raw(segment) });
        }
        Ok(())
    });
}
