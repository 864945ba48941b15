//! Why a transfer failed.
//!
//! Set by both adapters and their blocking loops; read by programs that print a report.
//!
//! Invariant: the sentence says what is wrong and what to do.

use segstream_base::Duration;
use segstream_base::halves::SubmitError;
use std::net::SocketAddr;

/// Why a transfer failed. What was delivered before stays delivered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The receiver has not answered.
    #[error("{peer} has not answered for {waited}; check the address, and that a receiver for schemes listens there")]
    NotAnswered {
        /// The receiver's address.
        peer: SocketAddr,
        /// For how long.
        waited: Duration,
    },
    /// The receiver cannot build its half from the parameters.
    #[error("the receiver refuses the parameters: {reason}")]
    Refused {
        /// Its reason.
        reason: String,
    },
    /// Idle timeout: nothing has arrived from the peer for too long.
    #[error("nothing has come from {peer} for {waited}: the peer has stopped or the path is interrupted")]
    Silent {
        /// The peer.
        peer: SocketAddr,
        /// For how long.
        waited: Duration,
    },
    /// The peer has ended the transfer before every segment was judged.
    #[error("{peer} has ended the transfer before all of it was delivered; look there for the cause")]
    EndedByPeer {
        /// The peer.
        peer: SocketAddr,
    },
    /// This end was told to stop.
    #[error("interrupted")]
    Interrupted,
    /// A packet of the scheme is longer than a datagram can be.
    #[error("the scheme's packet of {bytes} bytes cannot be put into a datagram; choose smaller packets")]
    UnfitPacket {
        /// The length the packet announces.
        bytes: usize,
    },
    /// The scheme does not take a segment.
    #[error("the scheme does not take segment {segment}: {cause}")]
    Submit {
        /// Its number, counted from 0.
        segment: u64,
        /// Why not.
        cause: SubmitError,
    },
    /// The source of segments failed.
    #[error("the data to send could not be read: {cause}")]
    Source {
        /// What the system said.
        cause: String,
    },
    /// What was delivered could not be written.
    #[error("what was delivered could not be written: {cause}")]
    Sink {
        /// What the system said.
        cause: String,
    },
}
