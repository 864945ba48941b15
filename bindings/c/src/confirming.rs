//! Confirmations: what the receiving application has in safety, and what the sending one knows of it.
//!
//! Called by C programs. Invariant: what is told as confirmed was confirmed by the peer's application, never by the library.

use crate::arguments::{self, Out};
use crate::endpoint::{State, segstream_endpoint, with};
use crate::failure::guarded;
use crate::status::segstream_status;
use segstream::{Durable, SegmentNumber, StreamId};

/// What of a stream the peer's application has confirmed.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct segstream_durable {
    /// All segments below this one.
    pub segments: u64,
    /// 1 if no more will be confirmed.
    pub last: u32,
}

impl From<Durable> for segstream_durable {
    fn from(durable: Durable) -> Self {
        Self { segments: durable.segments.0, last: u32::from(durable.last) }
    }
}

/// Tells the peer that all segments of one of its streams below `segments` are safe with this application: on disk, processed, or whatever
/// the two mean by it. The setting "confirms" must be on. Lower numbers than before change nothing.
///
/// # Safety
///
/// `endpoint` is a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn segstream_confirm(
    endpoint: *mut segstream_endpoint,
    connection: u64,
    stream: u32,
    segments: u64,
) -> segstream_status {
    let confirm = |state: &mut State| Ok(state.connection(connection)?.confirm(StreamId(stream), SegmentNumber(segments))?);
    // Safety: as this function's caller promises.
    guarded(|| unsafe { with(endpoint, confirm) })
}

/// Tells the peer that no more of one of its streams will be confirmed, so that the stream can end.
///
/// # Safety
///
/// `endpoint` is a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn segstream_confirm_no_more(endpoint: *mut segstream_endpoint, connection: u64, stream: u32) -> segstream_status {
    let confirm = |state: &mut State| Ok(state.connection(connection)?.confirm_no_more(StreamId(stream))?);
    // Safety: as this function's caller promises.
    guarded(|| unsafe { with(endpoint, confirm) })
}

/// Waits until the peer's application has confirmed all segments of a stream of ours below `segments`, or will confirm no more; with
/// `segments` 0 it tells what is confirmed already. SEGSTREAM_INVALID_ARGUMENT if the peer confirms nothing.
///
/// # Safety
///
/// `endpoint` is a handle; `durable` is NULL or valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn segstream_confirmed(
    endpoint: *mut segstream_endpoint,
    connection: u64,
    stream: u32,
    segments: u64,
    durable: *mut segstream_durable,
    timeout_ms: i64,
) -> segstream_status {
    guarded(|| {
        // Safety: as this function's caller promises.
        let out = unsafe { Out::new(durable, "durable") }?;
        let confirmed = |state: &mut State| {
            let mut connection = state.connection(connection)?;
            Ok(match segments {
                0 => connection.durable(StreamId(stream))?,
                _ => connection.confirmed(StreamId(stream), SegmentNumber(segments), arguments::timeout(timeout_ms))?,
            })
        };
        // Safety: as this function's caller promises.
        out.set(unsafe { with(endpoint, confirmed) }?.into());
        Ok(())
    })
}
