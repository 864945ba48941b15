//! Sending segments, and their verdicts.
//!
//! Called by C programs. Invariant: a segment is accepted whole or not at all, and bytes that were given with a release function are
//! released once, whatever happens.

use crate::arguments::{self, Out, segstream_run};
use crate::contract::tolerance;
use crate::endpoint::{State, segstream_endpoint, with};
use crate::failure::{Failure, guarded};
use crate::segment::segstream_verdict;
use crate::status::segstream_status::{self, *};
use segstream::{Bytes, Judged, SegmentNumber, StreamId, Timestamp, Tolerance, Verdict};
use std::ffi::c_void;

/// How a segment is sent, if not with the usual values. NULL in place of it, and zeros in it, are the usual values.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct segstream_send_options {
    /// The source's time in nanoseconds, on any clock of its own; 0 for now.
    pub source_time_ns: u64,
    /// A tolerance of the segment's own, if W is not 0.
    pub tolerance_w: u32,
    /// E of it.
    pub tolerance_e: u32,
    /// B of it.
    pub tolerance_b: u32,
    /// 0: wait while the send buffer is full, and serve the network once. 1: SEGSTREAM_BLOCKED if it is full, and leave the network to
    /// the next call that serves it; for many short segments, which then share datagrams.
    pub try_only: u32,
}

/// The verdict on a segment of ours.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct segstream_judged {
    /// The segment.
    pub segment: u64,
    /// The verdict.
    pub verdict: segstream_verdict,
    /// How many runs of units are missing.
    pub holes: usize,
    /// How many units are missing.
    pub missing_units: u32,
}

/// The function that releases bytes of segstream_send_owned().
pub type segstream_release_bytes = Option<unsafe extern "C" fn(context: *mut c_void)>;

/// Bytes of the program that it has lent until they are released.
struct Lent {
    bytes: *const u8,
    count: usize,
    release: segstream_release_bytes,
    context: *mut c_void,
}

// Safety: the caller of segstream_send_owned() promises that the bytes may be read, and the function called, by whichever thread is in a
// call of the endpoint; with the setting "background" by the library's thread.
unsafe impl Send for Lent {}
// Safety: the bytes are read only.
unsafe impl Sync for Lent {}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        if self.count == 0 {
            return &[];
        }
        // Safety: the caller has promised that the bytes stay until they are released; the pointer was checked when it came.
        unsafe { std::slice::from_raw_parts(self.bytes, self.count) }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // Safety: the caller has promised that it may be called once with this context.
            unsafe { release(self.context) };
        }
    }
}

/// Sends a segment.
fn send(state: &mut State, connection: u64, stream: u32, bytes: Bytes, options: segstream_send_options) -> Result<u64, Failure> {
    let own: Option<Tolerance> = match options {
        segstream_send_options { tolerance_w: 0, tolerance_e: 0, tolerance_b: 0, .. } => None,
        segstream_send_options { tolerance_w, tolerance_e, tolerance_b, .. } => Some(tolerance(tolerance_w, tolerance_e, tolerance_b)?),
    };
    let now = state.endpoint.clock().now();
    let source_time = if options.source_time_ns == 0 { now } else { Timestamp::from_nanos(options.source_time_ns) };
    let mut connection = state.connection(connection)?;
    let sent = match options.try_only {
        0 => connection.send_at(StreamId(stream), bytes, source_time, own),
        1 => connection.try_send(StreamId(stream), bytes, source_time, own),
        other => return Err(Failure::argument(format!("try_only cannot be {other}; give 0 or 1"))),
    };
    Ok(sent?.0)
}

/// Sends a whole segment: copies the bytes once, and waits while the send buffer is full. `options` may be NULL; `segment` gets its number
/// and may be NULL.
///
/// # Safety
///
/// `endpoint` is a handle; `bytes` is valid for reading `count` bytes; `options` and `segment` are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn segstream_send(
    endpoint: *mut segstream_endpoint,
    connection: u64,
    stream: u32,
    bytes: *const c_void,
    count: usize,
    options: *const segstream_send_options,
    segment: *mut u64,
) -> segstream_status {
    guarded(|| {
        // Safety: as this function's caller promises.
        let (bytes, options) = unsafe { (arguments::bytes(bytes, count, "bytes")?, options.as_ref().copied().unwrap_or_default()) };
        let send = |state: &mut State| send(state, connection, stream, Bytes::copy_from_slice(bytes), options);
        // Safety: as this function's caller promises.
        let sent = unsafe { with(endpoint, send) }?;
        // Safety: as this function's caller promises.
        if let Ok(out) = unsafe { Out::new(segment, "segment") } {
            out.set(sent);
        }
        Ok(())
    })
}

/// Sends a whole segment without a copy in memory: the bytes are lent, and `release(context)` is called once when the library needs them no
/// longer: after the verdict, or before this returns if it fails, whatever the reason. It is called on a thread that is in a call of this
/// endpoint, or frees it; with the setting "background" also on the library's thread. It must not call the endpoint.
///
/// # Safety
///
/// As of segstream_send(); the bytes stay as they are until they are released; `release` may be called with `context` on such a thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn segstream_send_owned(
    endpoint: *mut segstream_endpoint,
    connection: u64,
    stream: u32,
    bytes: *const c_void,
    count: usize,
    release: segstream_release_bytes,
    context: *mut c_void,
    options: *const segstream_send_options,
    segment: *mut u64,
) -> segstream_status {
    let lent = Lent { bytes: bytes.cast(), count, release, context };
    guarded(move || {
        // Safety: as this function's caller promises.
        let options = unsafe {
            arguments::bytes(bytes, count, "bytes")?;
            options.as_ref().copied().unwrap_or_default()
        };
        let send = move |state: &mut State| send(state, connection, stream, Bytes::from_owner(lent), options);
        // Safety: as this function's caller promises.
        let sent = unsafe { with(endpoint, send) }?;
        // Safety: as this function's caller promises.
        if let Ok(out) = unsafe { Out::new(segment, "segment") } {
            out.set(sent);
        }
        Ok(())
    })
}

/// Opens a segment whose length is not known yet; its first units leave before its last ones exist. Only one of a stream can be open.
/// Waits while the send buffer is full.
///
/// # Safety
///
/// `endpoint` is a handle; `segment` is NULL or valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn segstream_open_segment(
    endpoint: *mut segstream_endpoint,
    connection: u64,
    stream: u32,
    segment: *mut u64,
) -> segstream_status {
    guarded(|| {
        // Safety: as this function's caller promises.
        let out = unsafe { Out::new(segment, "segment") }?;
        let open = |state: &mut State| Ok(state.connection(connection)?.open_segment(StreamId(stream))?.detach().0);
        // Safety: as this function's caller promises.
        out.set(unsafe { with(endpoint, open) }?);
        Ok(())
    })
}

/// Appends bytes to the open segment of a stream. With `try_only` 0 it waits while the send buffer is full; with 1 it returns
/// SEGSTREAM_BLOCKED then. SEGSTREAM_END if the segment was judged or abandoned meanwhile, and the bytes were not accepted.
///
/// # Safety
///
/// `endpoint` is a handle; `bytes` is valid for reading `count` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn segstream_append(
    endpoint: *mut segstream_endpoint,
    connection: u64,
    stream: u32,
    segment: u64,
    bytes: *const c_void,
    count: usize,
    try_only: u32,
) -> segstream_status {
    guarded(|| {
        // Safety: as this function's caller promises.
        let bytes = unsafe { arguments::bytes(bytes, count, "bytes") }?;
        let append = |state: &mut State| {
            let mut connection = state.connection(connection)?;
            let mut writer = connection.resume_segment(StreamId(stream), SegmentNumber(segment));
            let appended = if try_only == 0 { writer.append(bytes) } else { writer.try_append(bytes) };
            writer.detach();
            Ok(appended?)
        };
        // Safety: as this function's caller promises.
        let judged: Option<Verdict> = unsafe { with(endpoint, append) }?;
        if judged.is_some() { Err(Failure::end()) } else { Ok(()) }
    })
}

/// Ends the open segment of a stream at its present length.
///
/// # Safety
///
/// `endpoint` is a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn segstream_finish_segment(
    endpoint: *mut segstream_endpoint,
    connection: u64,
    stream: u32,
    segment: u64,
) -> segstream_status {
    let finish = |state: &mut State| {
        state.connection(connection)?.resume_segment(StreamId(stream), SegmentNumber(segment)).finish()?;
        Ok(())
    };
    // Safety: as this function's caller promises.
    guarded(|| unsafe { with(endpoint, finish) })
}

/// Whether a stream of ours replaces the oldest waiting segment when its send buffer is full (1) or waits (0). For live media.
///
/// # Safety
///
/// `endpoint` is a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn segstream_set_drop_oldest(
    endpoint: *mut segstream_endpoint,
    connection: u64,
    stream: u32,
    drops_oldest: u32,
) -> segstream_status {
    let set = |state: &mut State| Ok(state.connection(connection)?.set_drop_oldest(StreamId(stream), drops_oldest != 0)?);
    // Safety: as this function's caller promises.
    guarded(|| unsafe { with(endpoint, set) })
}

/// Waits for the verdict on a segment; each is told once. The holes go into `holes`, which has room for `holes_max` runs; if it has too
/// little, `judged` says how many there are, SEGSTREAM_BUFFER_TOO_SMALL is returned, and the next call tells the verdict again.
///
/// # Safety
///
/// `endpoint` is a handle; `judged` is NULL or valid for writing; `holes` is valid for writing `holes_max` runs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn segstream_segment_verdict(
    endpoint: *mut segstream_endpoint,
    connection: u64,
    stream: u32,
    segment: u64,
    judged: *mut segstream_judged,
    holes: *mut segstream_run,
    holes_max: usize,
    timeout_ms: i64,
) -> segstream_status {
    guarded(|| {
        // Safety: as this function's caller promises.
        let (out, holes) = unsafe { (Out::new(judged, "judged")?, arguments::buffer(holes, holes_max, "holes")?) };
        let verdict = |state: &mut State| {
            let key = (connection, StreamId(stream), SegmentNumber(segment));
            let kept = state.kept.verdicts.remove(&key);
            let judged = match kept {
                Some(judged) => judged,
                None => state.connection(connection)?.verdict(key.1, key.2, arguments::timeout(timeout_ms))?,
            };
            tell(state, connection, judged, out, holes)
        };
        // Safety: as this function's caller promises.
        unsafe { with(endpoint, verdict) }
    })
}

/// Waits for the next verdict of a stream, in the order in which they come. SEGSTREAM_END if no more will come. Otherwise as
/// segstream_segment_verdict().
///
/// # Safety
///
/// As of segstream_segment_verdict().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn segstream_next_verdict(
    endpoint: *mut segstream_endpoint,
    connection: u64,
    stream: u32,
    judged: *mut segstream_judged,
    holes: *mut segstream_run,
    holes_max: usize,
    timeout_ms: i64,
) -> segstream_status {
    guarded(|| {
        // Safety: as this function's caller promises.
        let (out, holes) = unsafe { (Out::new(judged, "judged")?, arguments::buffer(holes, holes_max, "holes")?) };
        let next = |state: &mut State| {
            let stream = StreamId(stream);
            let of_stream = (connection, stream, SegmentNumber(0))..=(connection, stream, SegmentNumber(u64::MAX));
            let kept = state.kept.verdicts.range(of_stream).next().map(|(key, _)| *key);
            let judged = match kept.and_then(|key| state.kept.verdicts.remove(&key)) {
                Some(judged) => judged,
                None => state.connection(connection)?.next_verdict(stream, arguments::timeout(timeout_ms))?.ok_or_else(Failure::end)?,
            };
            tell(state, connection, judged, out, holes)
        };
        // Safety: as this function's caller promises.
        unsafe { with(endpoint, next) }
    })
}

/// Tells a verdict with its holes, or keeps it if they do not fit.
fn tell(
    state: &mut State,
    connection: u64,
    judged: Judged,
    out: Out<segstream_judged>,
    holes: &mut [segstream_run],
) -> Result<(), Failure> {
    out.set(segstream_judged {
        segment: judged.segment.0,
        verdict: judged.verdict.into(),
        holes: judged.holes.len(),
        missing_units: judged.missing(),
    });
    if arguments::copy_runs(&judged.holes, holes) {
        return Ok(());
    }
    let text = format!("the verdict has {} holes; there is room for {}", judged.holes.len(), holes.len());
    state.kept.verdicts.insert((connection, judged.stream, judged.segment), judged);
    Err(Failure::new(SEGSTREAM_BUFFER_TOO_SMALL, text))
}
