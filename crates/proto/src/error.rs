//! Why a connection ended or could not be made.
//!
//! Every variant says whose fault it is. Told by connections, printed by applications.

use crate::session::HandshakeError;
use core::time::Duration;
use segstream_base::{Bytes, SegmentNumber, StreamId};
use segstream_wire::handshake::RejectReason;

/// The code a peer receives when this end closes for [`CloseReason::PathOverloaded`]. Why so high: the low codes are the
/// application's.
pub const PATH_OVERLOADED_CODE: u64 = 0x5347_0001;

/// The code a peer receives when this end closes for [`CloseReason::PeerOverMemoryBudget`].
pub const MEMORY_BUDGET_CODE: u64 = 0x5347_0003;

/// The code a peer receives when this end closes for [`CloseReason::ProtocolViolation`].
pub const PROTOCOL_VIOLATION_CODE: u64 = 0x5347_0002;

/// Why a connection is no more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CloseReason {
    /// This end closed it, and every accepted segment had its verdict first.
    #[error("closed by this end after every segment had its verdict")]
    ClosedHere,
    /// The peer closed it, and every accepted segment had its verdict first.
    #[error("closed by the peer: {detail} (code {code})")]
    ClosedByPeer {
        /// The peer's code; zero when all is well.
        code: u64,
        /// The peer's sentence.
        detail: String,
    },
    /// The peer aborted it; segments without a verdict are lost.
    #[error("aborted by the peer: {detail} (code {code})")]
    AbortedByPeer {
        /// The peer's code.
        code: u64,
        /// The peer's sentence.
        detail: String,
    },
    /// This end aborted it.
    #[error("aborted by this end")]
    AbortedHere,
    /// Nothing has come from the peer for the idle timeout: it or the path is gone.
    #[error("nothing came from the peer for {0:?}: the peer has stopped or the path is interrupted")]
    TimedOut(Duration),
    /// Nobody answered the request.
    #[error("nobody answered within {0:?}: check the address and port, that the peer listens there, and that no firewall blocks UDP")]
    NoAnswer(Duration),
    /// The peer refused the connection.
    #[error("refused by the peer: {}", rejection(*reason, detail))]
    Rejected {
        /// Why.
        reason: RejectReason,
        /// The peer's sentence.
        detail: String,
    },
    /// The path carries almost nothing of the fixed rate (RFC 8084).
    #[error(
        "of {sent} sent in {span:?} only {received} arrived: the path carries almost nothing of the fixed rate, so this end closed the \
         connection; give a lower rate, or use congestion control (auto)"
    )]
    PathOverloaded {
        /// What was sent, in whole IP packets.
        sent: Bytes,
        /// What of it arrived.
        received: Bytes,
        /// In how long.
        span: Duration,
    },
    /// The handshake failed here: the peer is not who it should be, or not one to be served, or does not keep to TLS.
    #[error("the handshake failed: {}", .0.detail)]
    HandshakeFailed(HandshakeError),
    /// The peer has lost the connection state, for example by a restart (stateless reset, RFC 9000 10.3).
    #[error("the peer has lost the connection state, for example by a restart; connect again")]
    ResetByPeer,
    /// The connections of the peer's key would have been granted more than a key may have.
    #[error(
        "the connections of this peer's key have been granted the {0} bytes of memory that a key may have; it should close others first, or ask for smaller \
         windows"
    )]
    PeerOverMemoryBudget(u64),
    /// The AEAD usage limit of the keys is reached: they have sealed, or failed to open, as much as is safe (RFC 9001 6.6).
    #[error("the keys of the connection have reached their usage limit (RFC 9001 6.6); connect again")]
    AeadLimitReached,
    /// The peer sent what no correct peer sends.
    #[error("the peer violated the protocol: {0}")]
    ProtocolViolation(&'static str),
}

/// Why the peer has refused, as a sentence, with what it says itself.
fn rejection(reason: RejectReason, detail: &str) -> String {
    let sentence = match reason {
        RejectReason::Version => "it runs another version of the protocol; use the same version at both ends".to_owned(),
        RejectReason::Busy => "it has reached its limit of connections; try again later".to_owned(),
        RejectReason::NotAccepting => "it accepts no connections; check that a program listens there".to_owned(),
        RejectReason::Unacceptable => "it does not accept the class or the limits; use flow control or rate control".to_owned(),
        RejectReason::Refused => "its application refuses the connection".to_owned(),
        RejectReason::Protection => "one end encrypts and the other does not; both must do the same".to_owned(),
        RejectReason::Handshake => "it does not accept the handshake of this end".to_owned(),
        RejectReason::Other(code) => format!("it gives the reason {code}, which this version does not know"),
        _ => "it gives no reason".to_owned(),
    };
    if detail.is_empty() { sentence } else { format!("{sentence} ({detail})") }
}

/// Why a stream was not opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenStreamError {
    /// The contract contradicts itself: a fault of the caller.
    #[error(transparent)]
    Contract(#[from] segstream_wire::contract::ContractError),
    /// As many streams are live as the peer allows.
    #[error(
        "the peer allows {live_max} streams at a time, and as many are open or have not been read to their end; finish one, or wait until the peer has read it"
    )]
    TooManyStreams {
        /// How many it allows at a time.
        live_max: u32,
    },
}

/// Why a confirmation was not taken: a fault of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfirmError {
    /// One end does not do it.
    #[error("confirmations are not agreed on with this peer; set `confirms` at the receiving end, and use a sender that knows them")]
    NotAgreed,
    /// The peer has no such stream, or it has ended and all of it is confirmed.
    #[error("the peer has no stream {0}, or it has ended and nothing of it is left to confirm")]
    Unknown(StreamId),
    /// The application has not taken so many segments.
    #[error("segments below {segments} cannot be confirmed: those below {taken} were taken; receive the others first")]
    NotTaken {
        /// What was to be confirmed.
        segments: SegmentNumber,
        /// What may be.
        taken: SegmentNumber,
    },
}

/// Why a connection was not even tried: a fault of the caller.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// Too many connections.
    #[error("the endpoint has {0} connections, which is its limit; raise the limit or close some")]
    TooMany(usize),
    /// Neither flow control nor rate control.
    #[error("class {0} has neither flow control nor rate control; use a class with one of them, or allow unlimited sending explicitly")]
    Unlimited(segstream_wire::Class),
    /// The rate contradicts itself or the class.
    #[error(transparent)]
    Rate(#[from] crate::rate::RateError),
    /// Too many streams at once.
    #[error("{0} streams do not fit a connection request; open at most {max} with it and the others later", max = segstream_wire::proposal::STREAMS_MAX)]
    TooManyStreams(usize),
    /// The contracts do not fit a proposal.
    #[error("the stream contracts take {0} bytes and do not fit a connection request; shorten the labels, or open some streams later")]
    RequestTooLong(usize),
    /// What is trusted contradicts what the endpoint was given.
    #[error("the connection cannot be protected: {}", .0.detail)]
    Protection(HandshakeError),
    /// A contract contradicts itself.
    #[error(transparent)]
    Contract(#[from] segstream_wire::contract::ContractError),
    /// See the message.
    #[error("a datagram size of {0} bytes is not allowed; give 1200 to 65507")]
    DatagramBytes(usize),
}
