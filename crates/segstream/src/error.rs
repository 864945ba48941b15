//! The errors of the library: each says whose fault it is and what to do.
//!
//! Invariant: an error never loses what was accepted before it.

use crate::{
    Class, CloseReason, ConfirmError, ConnectError, ContractError, IdentityError, OpenStreamError, RateError, RefuseReason, SocketError,
    StreamId, SubmitError, ToleranceError,
};
use std::net::SocketAddr;

/// An error of the library.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The socket could not be made.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// The connection was not started.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// A stream was not opened.
    #[error(transparent)]
    OpenStream(OpenStreamError),
    /// A contract contradicts itself.
    #[error(transparent)]
    Contract(#[from] ContractError),
    /// Three numbers are not a valid tolerance.
    #[error(transparent)]
    Tolerance(#[from] ToleranceError),
    /// A segment was not accepted.
    #[error(transparent)]
    Submit(#[from] SubmitError),
    /// The connection has ended.
    #[error("the connection to {remote} has ended: {reason}")]
    Closed {
        /// The peer.
        remote: SocketAddr,
        /// Why.
        reason: CloseReason,
    },
    /// The connection is being closed.
    #[error("the connection to {remote} is closing; it accepts no new streams and segments")]
    Closing {
        /// The peer.
        remote: SocketAddr,
    },
    /// The peer has refused a stream of ours.
    #[error("the peer refuses stream {stream} ({reason:?}); segments sent on it get no verdict")]
    Refused {
        /// The stream.
        stream: StreamId,
        /// Why.
        reason: RefuseReason,
    },
    /// The timeout has passed. Nothing is lost; call again.
    #[error("the timeout has passed and nothing has come; nothing is lost, call again to wait longer")]
    TimedOut,
    /// A waker ended the call. Nothing is lost; call again.
    #[error("a waker ended the call; nothing is lost, call again to continue")]
    Woken,
    /// The peer's application confirms nothing.
    #[error("the peer confirms nothing of what it receives; set `confirms` in the configuration of the receiving end")]
    NotConfirming,
    /// A confirmation was not taken.
    #[error(transparent)]
    Confirm(#[from] ConfirmError),
    /// The class has neither flow control nor rate control.
    #[error("class {0} has neither flow control nor rate control; use a class with one of them, or allow unlimited sending explicitly")]
    Unlimited(Class),
    /// A listening endpoint has no peers to serve.
    #[error("this endpoint would listen and serve nobody; name whom it serves with allow, allow_anyone or admission of its builder")]
    ServesNobody,
    /// The endpoint has been closed.
    #[error("the endpoint has been closed; bind another")]
    EndpointClosed,
    /// An asynchronous endpoint was bound outside a tokio runtime.
    #[cfg(feature = "tokio")]
    #[error("there is no tokio runtime with I/O enabled in this context; bind the endpoint inside one, or use segstream::blocking")]
    NoRuntime,
    /// A rate contradicts itself or the class.
    #[error(transparent)]
    Rate(#[from] RateError),
    /// The stream, segment or connection does not exist or has ended; a verdict may have been delivered before.
    #[error("there is no such {0}, or it has ended")]
    Unknown(&'static str),
    /// The operating system reported an error that a retry cannot solve.
    #[error("the operating system reported an error: {0}")]
    System(#[from] std::io::Error),
    /// A key or a certificate cannot be used.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The operating system provides no random numbers.
    #[error("the operating system provides no random numbers: {0}")]
    Entropy(getrandom::Error),
}

impl From<OpenStreamError> for Error {
    fn from(error: OpenStreamError) -> Self {
        match error {
            OpenStreamError::Contract(contract) => Self::Contract(contract),
            other => Self::OpenStream(other),
        }
    }
}
