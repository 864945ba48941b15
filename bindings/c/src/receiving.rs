//! Receiving segments: into the caller's buffer, as a handle without a copy, or unit by unit as they arrive.
//!
//! Called by C programs. Invariant: nothing is lost because a buffer was too small.

use crate::arguments::{self, Out, segstream_run};
use crate::endpoint::{State, segstream_endpoint, with};
use crate::failure::{Failure, guarded};
use crate::segment::{segstream_received, segstream_segment};
use crate::status::segstream_status::{self, *};
use segstream::{Progress, Received, StreamId};
use std::ffi::c_void;

/// Units of a segment that have arrived, or a segment that is judged.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct segstream_units {
    /// The segment.
    pub segment: u64,
    /// Which units.
    pub run: segstream_run,
    /// Where the first of them begins in the segment, in bytes.
    pub offset: u64,
    /// Their length in bytes.
    pub bytes: usize,
    /// 1 if the segment is judged and all of its units were told: the next segstream_recv() of the stream returns it at once. Its run is
    /// empty then.
    pub judged: u32,
}

/// The next judged segment of a stream.
fn take(state: &mut State, connection: u64, stream: u32, timeout_ms: i64) -> Result<Received, Failure> {
    let stream = StreamId(stream);
    match state.kept.segments.remove(&(connection, stream)) {
        Some(received) => Ok(received),
        None => state.connection(connection)?.recv(stream, arguments::timeout(timeout_ms))?.ok_or_else(Failure::end),
    }
}

/// Waits for the next judged segment of a stream of the peer, and copies it and its holes into the caller's buffers. If one of them is too
/// small, `received` says what is needed, SEGSTREAM_BUFFER_TOO_SMALL is returned, and the next call gets the same segment.
/// SEGSTREAM_END if the stream has ended.
///
/// # Safety
///
/// `endpoint` is a handle; `buffer` is valid for writing `buffer_bytes` bytes and `holes` for `holes_max` runs; `received` is NULL or valid
/// for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn segstream_recv(
    endpoint: *mut segstream_endpoint,
    connection: u64,
    stream: u32,
    buffer: *mut c_void,
    buffer_bytes: usize,
    holes: *mut segstream_run,
    holes_max: usize,
    received: *mut segstream_received,
    timeout_ms: i64,
) -> segstream_status {
    guarded(|| {
        // Safety: as this function's caller promises.
        let (out, buffer, holes) = unsafe {
            let buffer = arguments::buffer(buffer.cast::<u8>(), buffer_bytes, "buffer")?;
            (Out::new(received, "received")?, buffer, arguments::buffer(holes, holes_max, "holes")?)
        };
        let recv = |state: &mut State| {
            let received = take(state, connection, stream, timeout_ms)?;
            out.set(segstream_received::of(&received));
            if received.bytes.len() <= buffer.len() && arguments::copy_runs(&received.holes, holes) {
                buffer[..received.bytes.len()].copy_from_slice(&received.bytes);
                return Ok(());
            }
            let (bytes, runs) = (received.bytes.len(), received.holes.len());
            state.kept.segments.insert((connection, StreamId(stream)), received);
            let text = format!("the segment has {bytes} bytes and {runs} holes; there is room for {buffer_bytes} and {holes_max}");
            Err(Failure::new(SEGSTREAM_BUFFER_TOO_SMALL, text))
        };
        // Safety: as this function's caller promises.
        unsafe { with(endpoint, recv) }
    })
}

/// Waits for the next judged segment of a stream of the peer, and returns it as a handle without a copy; free it with
/// segstream_segment_free(). SEGSTREAM_END if the stream has ended.
///
/// # Safety
///
/// `endpoint` is a handle; `segment` is NULL or valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn segstream_recv_segment(
    endpoint: *mut segstream_endpoint,
    connection: u64,
    stream: u32,
    segment: *mut *mut segstream_segment,
    timeout_ms: i64,
) -> segstream_status {
    guarded(|| {
        // Safety: as this function's caller promises.
        let out = unsafe { Out::new(segment, "segment") }?;
        // Safety: as this function's caller promises.
        let received = unsafe { with(endpoint, |state| take(state, connection, stream, timeout_ms)) }?;
        out.set(Box::into_raw(Box::new(segstream_segment::new(received))));
        Ok(())
    })
}

/// Waits for the next units of a stream of the peer, and copies them into the caller's buffer. From the first call on the stream is read
/// unit by unit. If the buffer is too small, `units` says what is needed, SEGSTREAM_BUFFER_TOO_SMALL is returned, and the next call gets
/// the same units. SEGSTREAM_END if the stream has ended. A judged segment that segstream_recv() does not take is dropped by the next
/// call.
///
/// # Safety
///
/// `endpoint` is a handle; `buffer` is valid for writing `buffer_bytes` bytes; `units` is NULL or valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn segstream_next_units(
    endpoint: *mut segstream_endpoint,
    connection: u64,
    stream: u32,
    buffer: *mut c_void,
    buffer_bytes: usize,
    units: *mut segstream_units,
    timeout_ms: i64,
) -> segstream_status {
    guarded(|| {
        // Safety: as this function's caller promises.
        let (out, buffer) = unsafe { (Out::new(units, "units")?, arguments::buffer(buffer.cast::<u8>(), buffer_bytes, "buffer")?) };
        let next = |state: &mut State| {
            let key = (connection, StreamId(stream));
            state.kept.segments.remove(&key);
            let progress = match state.kept.units.remove(&key) {
                Some(units) => Progress::Units(units),
                None => {
                    let mut connection = state.connection(connection)?;
                    connection.next_units(StreamId(stream), arguments::timeout(timeout_ms))?.ok_or_else(Failure::end)?
                }
            };
            match progress {
                Progress::Judged(received) => {
                    out.set(segstream_units { segment: received.segment.0, judged: 1, ..segstream_units::default() });
                    state.kept.segments.insert(key, received);
                    Ok(())
                }
                Progress::Units(units) => {
                    let bytes = units.bytes.len();
                    let run = segstream_run { start: units.run.start().0, end: units.run.end().0 };
                    out.set(segstream_units { segment: units.segment.0, run, offset: units.offset, bytes, judged: 0 });
                    if let Some(buffer) = buffer.get_mut(..bytes) {
                        buffer.copy_from_slice(&units.bytes);
                        return Ok(());
                    }
                    state.kept.units.insert(key, units);
                    Err(Failure::new(SEGSTREAM_BUFFER_TOO_SMALL, format!("the units have {bytes} bytes; the buffer has {buffer_bytes}")))
                }
                _ => {
                    Err(Failure::new(SEGSTREAM_FAULT, "this library does not know a kind of progress that it was given; please report it"))
                }
            }
        };
        // Safety: as this function's caller promises.
        unsafe { with(endpoint, next) }
    })
}

/// Discards what arrives on a stream of the peer from now on, so that its window does not close.
///
/// # Safety
///
/// `endpoint` is a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn segstream_discard(endpoint: *mut segstream_endpoint, connection: u64, stream: u32) -> segstream_status {
    // Safety: as this function's caller promises.
    guarded(|| unsafe { with(endpoint, |state| Ok(state.connection(connection)?.discard(StreamId(stream))?)) })
}
