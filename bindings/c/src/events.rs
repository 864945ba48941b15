//! The events of all connections of an endpoint, one at a time.
//!
//! Called by C programs. Invariant: a program ignores kinds that it does not know; kinds are only ever added.

use crate::arguments::{self, Out};
use crate::endpoint::{State, segstream_endpoint, with};
use crate::failure::{Failure, guarded, keep};
use crate::segment::segstream_verdict;
use crate::status::segstream_status::{self, *};
use segstream::{CloseReason, ConnectionEvent};

/// What has happened.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum segstream_event_kind {
    /// Something that this header has no name for; ignore it.
    SEGSTREAM_EVENT_OTHER = 0,
    /// The connection is established.
    SEGSTREAM_EVENT_CONNECTED = 1,
    /// The peer has opened `stream`.
    SEGSTREAM_EVENT_STREAM_OPENED = 2,
    /// `stream` of the peer has segments, or units if it is read unit by unit: take all of them.
    SEGSTREAM_EVENT_READABLE = 3,
    /// `stream` of the peer has ended, and all of its segments were taken.
    SEGSTREAM_EVENT_ENDED = 4,
    /// Segments of ours, from `segment` to the one before `segment_end`, have the verdict `verdict`. segstream_segment_verdict() would
    /// have told the same and the holes; it does not do so after this event.
    SEGSTREAM_EVENT_JUDGED = 5,
    /// `stream` of ours has room in its send buffer again.
    SEGSTREAM_EVENT_WRITABLE = 6,
    /// The peer has refused `stream` of ours.
    SEGSTREAM_EVENT_REFUSED = 7,
    /// Another stream can be opened.
    SEGSTREAM_EVENT_STREAMS_AVAILABLE = 8,
    /// The rate of our direction is `rate_bps` now; an encoder should follow it.
    SEGSTREAM_EVENT_RATE_CHANGED = 9,
    /// The peer is closing.
    SEGSTREAM_EVENT_PEER_CLOSING = 10,
    /// The connection has ended because of `reason`; segstream_last_error() is a sentence. Release it.
    SEGSTREAM_EVENT_CLOSED = 11,
    /// The peer's application has confirmed all segments of `stream` below `segment_end`, or will confirm no more: segstream_confirmed()
    /// tells.
    SEGSTREAM_EVENT_DURABLE = 12,
    /// A new class is in force in our direction.
    SEGSTREAM_EVENT_RECLASSED = 13,
}

/// Why a connection has ended.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum segstream_close_kind {
    /// For another reason; segstream_last_error() is a sentence.
    SEGSTREAM_CLOSE_OTHER = 0,
    /// This end closed it gracefully.
    SEGSTREAM_CLOSE_HERE = 1,
    /// The peer closed it gracefully.
    SEGSTREAM_CLOSE_BY_PEER = 2,
    /// The peer aborted it.
    SEGSTREAM_CLOSE_ABORTED_BY_PEER = 3,
    /// This end aborted it.
    SEGSTREAM_CLOSE_ABORTED_HERE = 4,
    /// Nothing came from the peer for the idle timeout.
    SEGSTREAM_CLOSE_TIMED_OUT = 5,
    /// Nobody answered.
    SEGSTREAM_CLOSE_NO_ANSWER = 6,
    /// The peer refused it.
    SEGSTREAM_CLOSE_REJECTED = 7,
    /// The path carries almost nothing of a fixed rate.
    SEGSTREAM_CLOSE_PATH_OVERLOADED = 8,
    /// The peer is not who it should be, or not one to be served.
    SEGSTREAM_CLOSE_HANDSHAKE_FAILED = 9,
    /// The peer has lost the connection.
    SEGSTREAM_CLOSE_RESET_BY_PEER = 10,
}

/// Why a connection has ended, and the peer's code.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct segstream_close_reason {
    /// Why.
    pub kind: segstream_close_kind,
    /// The peer's code, if the peer closed or aborted it.
    pub code: u64,
}

impl segstream_close_reason {
    const NONE: Self = Self { kind: segstream_close_kind::SEGSTREAM_CLOSE_OTHER, code: 0 };

    pub(crate) fn of(reason: &CloseReason) -> Self {
        use segstream_close_kind::*;
        let (kind, code) = match reason {
            CloseReason::ClosedHere => (SEGSTREAM_CLOSE_HERE, 0),
            CloseReason::ClosedByPeer { code, .. } => (SEGSTREAM_CLOSE_BY_PEER, *code),
            CloseReason::AbortedByPeer { code, .. } => (SEGSTREAM_CLOSE_ABORTED_BY_PEER, *code),
            CloseReason::AbortedHere => (SEGSTREAM_CLOSE_ABORTED_HERE, 0),
            CloseReason::TimedOut(_) => (SEGSTREAM_CLOSE_TIMED_OUT, 0),
            CloseReason::NoAnswer(_) => (SEGSTREAM_CLOSE_NO_ANSWER, 0),
            CloseReason::Rejected { .. } => (SEGSTREAM_CLOSE_REJECTED, 0),
            CloseReason::PathOverloaded { .. } => (SEGSTREAM_CLOSE_PATH_OVERLOADED, 0),
            CloseReason::HandshakeFailed(_) => (SEGSTREAM_CLOSE_HANDSHAKE_FAILED, 0),
            CloseReason::ResetByPeer => (SEGSTREAM_CLOSE_RESET_BY_PEER, 0),
            _ => (SEGSTREAM_CLOSE_OTHER, 0),
        };
        Self { kind, code }
    }
}

/// An event. What its kind does not name is zero.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct segstream_event {
    /// What has happened.
    pub kind: segstream_event_kind,
    /// On which stream.
    pub stream: u32,
    /// On which connection. An incoming one gets its number with its first event.
    pub connection: u64,
    /// The first segment of those judged.
    pub segment: u64,
    /// The one behind the last, or behind the last that is confirmed.
    pub segment_end: u64,
    /// The rate in bit/s, in whole IP packets.
    pub rate_bps: u64,
    /// The verdict.
    pub verdict: segstream_verdict,
    /// Why the connection has ended.
    pub reason: segstream_close_reason,
}

impl segstream_event {
    fn of(connection: u64, event: &ConnectionEvent) -> Self {
        use segstream_event_kind::*;
        let mut told = Self {
            kind: SEGSTREAM_EVENT_OTHER,
            stream: 0,
            connection,
            segment: 0,
            segment_end: 0,
            rate_bps: 0,
            verdict: segstream_verdict::SEGSTREAM_VERDICT_COMPLETE,
            reason: segstream_close_reason::NONE,
        };
        let on_stream = |kind| (kind, true);
        let (kind, has_stream) = match event {
            ConnectionEvent::Connected => (SEGSTREAM_EVENT_CONNECTED, false),
            ConnectionEvent::StreamOpened(_) => on_stream(SEGSTREAM_EVENT_STREAM_OPENED),
            ConnectionEvent::Readable(_) | ConnectionEvent::Units { .. } => on_stream(SEGSTREAM_EVENT_READABLE),
            ConnectionEvent::Ended { .. } => on_stream(SEGSTREAM_EVENT_ENDED),
            ConnectionEvent::Judged { segments, verdict, .. } => {
                (told.segment, told.segment_end, told.verdict) = (segments.start.0, segments.end.0, (*verdict).into());
                on_stream(SEGSTREAM_EVENT_JUDGED)
            }
            ConnectionEvent::Writable(_) => on_stream(SEGSTREAM_EVENT_WRITABLE),
            ConnectionEvent::Refused(..) => on_stream(SEGSTREAM_EVENT_REFUSED),
            ConnectionEvent::StreamsAvailable => (SEGSTREAM_EVENT_STREAMS_AVAILABLE, false),
            ConnectionEvent::RateChanged(rate) => {
                told.rate_bps = rate.bits_per_second();
                (SEGSTREAM_EVENT_RATE_CHANGED, false)
            }
            ConnectionEvent::Durable(_, durable) => {
                told.segment_end = durable.segments.0;
                on_stream(SEGSTREAM_EVENT_DURABLE)
            }
            ConnectionEvent::Reclassed(_) => (SEGSTREAM_EVENT_RECLASSED, false),
            ConnectionEvent::PeerClosing => (SEGSTREAM_EVENT_PEER_CLOSING, false),
            ConnectionEvent::Closed(reason) => {
                told.reason = segstream_close_reason::of(reason);
                (SEGSTREAM_EVENT_CLOSED, false)
            }
            _ => (SEGSTREAM_EVENT_OTHER, false),
        };
        told.kind = kind;
        told.stream = if has_stream { stream(event) } else { 0 };
        told
    }
}

/// The stream of an event.
fn stream(event: &ConnectionEvent) -> u32 {
    match event {
        ConnectionEvent::StreamOpened(stream)
        | ConnectionEvent::Readable(stream)
        | ConnectionEvent::Writable(stream)
        | ConnectionEvent::Refused(stream, _)
        | ConnectionEvent::Durable(stream, _)
        | ConnectionEvent::Units { stream, .. }
        | ConnectionEvent::Ended { stream, .. }
        | ConnectionEvent::Judged { stream, .. } => stream.0,
        _ => 0,
    }
}

/// Serves the network until there is an event. With a timeout of 0 it serves it once: SEGSTREAM_TIMED_OUT says that there is no event.
/// With SEGSTREAM_EVENT_CLOSED, segstream_last_error() is the reason as a sentence, although this returns SEGSTREAM_OK.
///
/// # Safety
///
/// `endpoint` is a handle; `event` is NULL or valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn segstream_wait(
    endpoint: *mut segstream_endpoint,
    event: *mut segstream_event,
    timeout_ms: i64,
) -> segstream_status {
    guarded(|| {
        // Safety: as this function's caller promises.
        let out = unsafe { Out::new(event, "event") }?;
        let wait = |state: &mut State| match state.endpoint.wait(arguments::timeout(timeout_ms))? {
            Some((id, event)) => Ok((state.number(id), event)),
            None => Err(Failure::new(SEGSTREAM_TIMED_OUT, "there is no event yet; call again")),
        };
        // Safety: as this function's caller promises.
        let (connection, event) = unsafe { with(endpoint, wait) }?;
        if let ConnectionEvent::Closed(reason) = &event {
            keep(reason.to_string());
        }
        out.set(segstream_event::of(connection, &event));
        Ok(())
    })
}
