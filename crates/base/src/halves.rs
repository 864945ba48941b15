//! The halves contract: one direction of a transfer, as two state machines that exchange typed packets.
//!
//! Implemented by every scheme and by the flagship's data plane. Driven by the simulator (typed packets,
//! synthetic payload), by tests in virtual time, and by the endpoint adapter over UDP.
//!
//! Payloads are not in here. A half knows how long a segment is and which of its units a packet carries;
//! whoever owns the bytes keeps them in a store of its own and copies them when a packet is encoded. So
//! ten million simulated packets cost no copy, and a real one costs exactly one on each side.
//!
//! Invariant: a half reads no clock and draws no entropy; the same calls give the same packets.

use crate::codec::{DecodeError, Reader, Writer};
pub use crate::endpoint::Deadline;
use crate::endpoint::Ecn;
pub use crate::numbers::{SegmentNumber, StreamId};
use crate::time::Instant;
use crate::tolerance::Tolerance;
use core::fmt;

/// A segment as it is handed to a [`Sender`]: everything but its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The stream it belongs to.
    pub stream: StreamId,
    /// Its length in bytes; `None` for a segment that is opened now and appended to later.
    pub bytes: Option<u64>,
    /// The source's own time, carried to the receiver for playout at a constant latency.
    pub source_time: Instant,
    /// A tolerance of its own instead of the stream's.
    pub tolerance: Option<Tolerance>,
}

/// The fate of a segment, as the receiver judged it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Every unit arrived.
    Complete,
    /// Units are missing, and the tolerance allows every hole.
    WithinTolerance,
    /// The tolerance was not met, whatever the cause.
    Expired,
    /// The connection ended before the receiver's verdict was known. Only a sender says this.
    Unknown,
}

impl Verdict {
    /// Whether the promise was kept.
    pub const fn is_met(self) -> bool {
        matches!(self, Self::Complete | Self::WithinTolerance)
    }

    /// The verdict's name in every printed and JSON output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::WithinTolerance => "within_tolerance",
            Self::Expired => "expired",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A packet of some scheme: it knows its length on the wire and can be encoded and decoded.
///
/// Payload bytes are the store's: `encode` leaves them zero, and `encoded_len` counts them. Whoever fills them in calls
/// [`Packet::seal`] then; where nobody does, as in a simulation, the encoding is that of a payload of zeros.
pub trait Packet: Sized + Clone + fmt::Debug {
    /// The length of the encoding in bytes, payload included.
    fn encoded_len(&self) -> usize;
    /// Writes the packet, with zeros for the payload.
    fn encode(&self, out: &mut Writer<'_>);
    /// Completes an encoding whose payload has been filled in: writes the checksum that covers it. Default: nothing, for a format
    /// whose checksum, if it has one, leaves the payload out.
    fn seal(&self, encoding: &mut [u8]) {
        let _ = encoding;
    }
    /// Reads a packet that fills `input` to its end.
    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError>;
    /// Whether the packet carries units of segments; everything else is control. A simulation may let
    /// control travel out of band, as the papers do.
    fn is_data(&self) -> bool;
    /// The `index`-th piece of payload in the encoding, in the order of the encoding; `None` behind the
    /// last, and always in a control packet.
    fn payload(&self, index: usize) -> Option<PayloadSpan>;
    /// The ECN codepoint that the packet is sent with (RFC 3168, RFC 9331); `None` is Not-ECT. A congested path may mark an
    /// ECN-capable packet instead of dropping it.
    fn ecn(&self) -> Option<Ecn> {
        None
    }
}

/// Where a piece of payload lies in the encoding of its packet, and which bytes of which segment it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayloadSpan {
    /// The offset of its first byte from the start of the encoding.
    pub at: usize,
    /// Its length in bytes.
    pub bytes: usize,
    /// The stream.
    pub stream: StreamId,
    /// The segment.
    pub segment: SegmentNumber,
    /// The offset of its first byte from the start of the segment.
    pub offset: u64,
}

/// Why a segment was not taken. Nothing of it is kept; what was accepted before is unharmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SubmitError {
    /// The send buffer is full; try again after [`SenderEvent::WindowOpen`].
    Blocked,
    /// The segment can never fit the stream's window.
    TooLong {
        /// Units of the segment.
        units: u64,
        /// Units the window holds.
        window: u64,
    },
    /// [`Sender::finish`] was called, or the stream does not exist.
    Finished,
    /// Another segment of the stream is still open.
    SegmentOpen,
    /// The tolerance contradicts itself.
    BadTolerance,
    /// The stream's units leave no room for a tolerance of the segment's own.
    NoRoom {
        /// The size of the units.
        unit_bytes: u32,
        /// The largest that leaves room.
        fits: u32,
    },
}

impl fmt::Display for SubmitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blocked => f.write_str("the send buffer is full; wait until the window opens"),
            Self::TooLong { units, window } => {
                write!(f, "the segment has {units} units but the stream's window holds {window}; raise the window or send shorter segments")
            }
            Self::Finished => f.write_str("the stream is finished or was never opened"),
            Self::SegmentOpen => f.write_str("another segment of this stream is open; finish it first"),
            Self::BadTolerance => f.write_str("the tolerance contradicts itself: E and B must not exceed W"),
            Self::NoRoom { unit_bytes, fits } => {
                write!(
                    f,
                    "units of {unit_bytes} bytes leave no room for a tolerance of the segment's own; open the stream with 1 to {fits}"
                )
            }
        }
    }
}

impl core::error::Error for SubmitError {}

/// A change of a running transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reconfigure {
    /// A new rate in bits per second.
    Rate(crate::Bandwidth),
    /// A new class: error control 4, flow control 2, rate control 1.
    Class(u8),
}

/// Why a change was refused; the transfer goes on as before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReconfigureError {
    /// The scheme has no such setting.
    Unsupported,
    /// The value is outside what the scheme allows.
    OutOfRange,
}

impl fmt::Display for ReconfigureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unsupported => "this scheme has no such setting",
            Self::OutOfRange => "the value is outside what this scheme allows",
        })
    }
}

impl core::error::Error for ReconfigureError {}

/// What a sender tells its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SenderEvent {
    /// The first packet of a segment has just been handed out, for the first time: its delay begins.
    Started {
        /// The stream.
        stream: StreamId,
        /// The segment.
        segment: SegmentNumber,
    },
    /// The receiver's verdict on a segment has arrived.
    Judged {
        /// The stream.
        stream: StreamId,
        /// The segment.
        segment: SegmentNumber,
        /// The verdict.
        verdict: Verdict,
    },
    /// A submission that was refused with [`SubmitError::Blocked`] may succeed now.
    WindowOpen(StreamId),
    /// The rate in force has changed.
    RateChanged(crate::Bandwidth),
}

/// What a receiver tells its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReceiverEvent {
    /// A segment is judged and can be read.
    Delivered {
        /// The stream.
        stream: StreamId,
        /// The segment.
        segment: SegmentNumber,
        /// The verdict.
        verdict: Verdict,
        /// Units of the segment.
        units: u32,
        /// How many of them are missing.
        holes: u32,
    },
    /// The stream has ended: every segment before `segments` is judged and no more will come.
    Ended {
        /// The stream.
        stream: StreamId,
        /// How many segments it had.
        segments: u64,
    },
}

/// What a sender has handed out so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SenderCounters {
    /// Data packets, first times and repetitions.
    pub packets_sent: u64,
    /// Those of them that carried something again.
    pub packets_retransmitted: u64,
}

/// What a half's bookkeeping has cost so far, beside the packets. A simulation may charge it to a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Operations {
    /// Entries of the table of sent packets that were looked at in search of lost ones (HT 3.1.3).
    pub slots_searched: u64,
    /// Operations on a list of timers: one set, one cleared.
    pub timer_operations: u64,
    /// Timers in that list, added up over those operations: what a search through the list passes.
    pub timers_passed: u64,
}

/// Receives the named gauges of a half.
pub trait Probe {
    /// One gauge: its name with the unit last, and its value now.
    fn gauge(&mut self, name: &'static str, value: f64);
}

/// The sending half of one direction.
pub trait Sender {
    /// Data and control from sender to receiver.
    type Forward: Packet;
    /// State from receiver to sender.
    type Feedback: Packet;

    /// Takes a whole segment, or opens one whose length is not known yet.
    fn submit(&mut self, now: Instant, segment: Segment) -> Result<SegmentNumber, SubmitError>;
    /// Appends `bytes` to the open segment of `stream`; with `last` the segment is finished. Default: always
    /// [`SubmitError::Finished`], for a half that takes whole segments alone.
    fn append(&mut self, now: Instant, stream: StreamId, bytes: u64, last: bool) -> Result<(), SubmitError> {
        let _ = (now, stream, bytes, last);
        Err(SubmitError::Finished)
    }
    /// No more segments will come: end of every stream.
    fn finish(&mut self, now: Instant);
    /// Changes rate or class while data flows.
    fn reconfigure(&mut self, now: Instant, change: Reconfigure) -> Result<(), ReconfigureError>;
    /// Takes a packet of the receiver.
    fn handle_feedback(&mut self, now: Instant, packet: &Self::Feedback);
    /// The next packet that may leave now.
    fn poll_transmit(&mut self, now: Instant) -> Option<Self::Forward>;
    /// The next control packet that may leave now, asked for while the processor that makes data is busy: for a half
    /// whose control is a process of its own (HT 5, Tx2). [`Sender::poll_transmit`] hands out the same packets.
    /// Default: none, so that control waits as data does.
    fn poll_control(&mut self, now: Instant) -> Option<Self::Forward> {
        let _ = now;
        None
    }
    /// When and why the half wants [`Sender::handle_timeout`].
    fn poll_timeout(&self) -> Option<Deadline>;
    /// The same while data is not asked for: the next timer or control packet, whatever data waits. Default:
    /// [`Sender::poll_timeout`], which may tell of data that could leave first.
    fn poll_control_timeout(&self) -> Option<Deadline> {
        self.poll_timeout()
    }
    /// Tells that time has passed.
    fn handle_timeout(&mut self, now: Instant);
    /// The next thing to tell the user.
    fn poll_event(&mut self) -> Option<SenderEvent>;
    /// What has been handed out so far.
    fn counters(&self) -> SenderCounters;
    /// What the bookkeeping has cost so far.
    fn operations(&self) -> Operations {
        Operations::default()
    }
    /// Writes the half's gauges: window, in flight, rate.
    fn probe(&self, out: &mut dyn Probe);
}

/// The receiving half of one direction, the sender's mirror image.
pub trait Receiver {
    /// Data and control from sender to receiver.
    type Forward: Packet;
    /// State from receiver to sender.
    type Feedback: Packet;

    /// Takes a packet of the sender.
    fn handle_forward(&mut self, now: Instant, packet: &Self::Forward);
    /// The packet that is handed over next was marked on a congested path (RFC 3168).
    fn note_congestion_mark(&mut self, _now: Instant) {}
    /// The next packet that may leave now.
    fn poll_transmit(&mut self, now: Instant) -> Option<Self::Feedback>;
    /// When and why the half wants [`Receiver::handle_timeout`].
    fn poll_timeout(&self) -> Option<Deadline>;
    /// Tells that time has passed.
    fn handle_timeout(&mut self, now: Instant);
    /// The next thing to tell the user.
    fn poll_event(&mut self) -> Option<ReceiverEvent>;
    /// Writes the half's gauges.
    fn probe(&self, out: &mut dyn Probe);
}
