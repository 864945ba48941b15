//! Why a connection ended or could not be made.
//!
//! Every variant says whose fault it is. Told by connections, printed by applications.

use crate::session::HandshakeError;
use segstream_base::{Bytes, Duration};
use segstream_wire::handshake::RejectReason;

/// The code a peer hears when we leave a path for [`CloseReason::PathOverloaded`]. Why so high: the low codes are the
/// application's.
pub const PATH_OVERLOADED_CODE: u64 = 0x5347_0001;

/// Why a connection is no more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CloseReason {
    /// We closed it, and everything accepted was judged first.
    #[error("closed here after everything accepted was judged")]
    ClosedHere,
    /// The peer closed it, and everything accepted was judged first.
    #[error("closed by the peer: {detail} (code {code})")]
    ClosedByPeer {
        /// The peer's code; zero when all is well.
        code: u64,
        /// The peer's sentence.
        detail: String,
    },
    /// The peer broke it off; what was under way is lost.
    #[error("broken off by the peer: {detail} (code {code})")]
    AbortedByPeer {
        /// The peer's code.
        code: u64,
        /// The peer's sentence.
        detail: String,
    },
    /// We broke it off.
    #[error("broken off here")]
    AbortedHere,
    /// Nothing has come from the peer for the idle timeout: it or the path is gone.
    #[error("nothing came from the peer for {0}: it or the path is gone")]
    TimedOut(Duration),
    /// Nobody answered the request.
    #[error("nobody answered within {0}: check the address, that the other side listens, and that both sides use the same protection")]
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
        "of {sent} sent in {span} only {received} arrived: the path carries almost nothing of the fixed rate and was left alone; \
         give a rate that it carries, or let the rate be found (auto)"
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
    /// The peer has lost the connection, by a crash for instance.
    #[error("the peer has lost the connection: it was started anew; connect again")]
    ResetByPeer,
    /// The keys have sealed or refused as much as they may.
    #[error("the keys of the connection are worn out; connect again")]
    KeysWornOut,
    /// The peer sent what no correct peer sends.
    #[error("the peer broke the protocol: {0}")]
    PeerMisbehaved(&'static str),
}

/// Why the peer has refused, as a sentence, with what it says itself.
fn rejection(reason: RejectReason, detail: &str) -> String {
    let sentence = match reason {
        RejectReason::Version => "it speaks another version of the protocol; update the older side".to_owned(),
        RejectReason::Busy => "it has as many connections as it keeps; try again later".to_owned(),
        RejectReason::NotAccepting => "it accepts no connections; check that it is a receiver that listens".to_owned(),
        RejectReason::Unacceptable => "it does not agree with the class or the limits; propose flow control or a rate".to_owned(),
        RejectReason::Refused => "its application does not want the connection".to_owned(),
        RejectReason::Protection => "one side encrypts and the other does not; both must do the same".to_owned(),
        RejectReason::Handshake => "it does not accept our part of the handshake".to_owned(),
        RejectReason::Other(code) => format!("it gives reason {code}, which this version does not know"),
        _ => "it gives no reason".to_owned(),
    };
    if detail.is_empty() { sentence } else { format!("{sentence} ({detail})") }
}

/// Why a connection was not even tried: a fault of the caller.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// Too many connections.
    #[error("the endpoint already has {0} connections, as many as it may")]
    TooMany(usize),
    /// Neither flow control nor rate control.
    #[error("class {0} has neither flow control nor rate control; set a window or a rate, or allow unlimited sending explicitly")]
    Unlimited(segstream_wire::Class),
    /// The rate contradicts itself or the class.
    #[error(transparent)]
    Rate(#[from] crate::rate::RateError),
    /// Too many streams at once.
    #[error("{0} streams do not fit a connection request; open at most {max} with it and the others later", max = segstream_wire::proposal::STREAMS_MAX)]
    TooManyStreams(usize),
    /// The contracts do not fit a proposal.
    #[error("the stream contracts take {0} bytes, more than a connection request carries; shorten the labels or open streams later")]
    RequestTooLong(usize),
    /// What is trusted contradicts what the endpoint was given.
    #[error("the connection cannot be protected: {}", .0.detail)]
    Protection(HandshakeError),
    /// A contract contradicts itself.
    #[error(transparent)]
    Contract(#[from] segstream_wire::contract::ContractError),
    /// See the message.
    #[error("datagrams of {0} bytes are not allowed; choose 1200 to 65507")]
    DatagramBytes(usize),
}
