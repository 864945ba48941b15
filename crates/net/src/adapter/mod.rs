//! Any pair of halves over UDP, without encryption: an [`Endpoint`](segstream_base::endpoint::Endpoint) around one half at each end.
//!
//! ```text
//! sender                                     receiver
//!   OPEN (parameters) ----------------------->  builds its half from them, or answers REFUSED
//!   <------------------------------- OPENED
//!   PACKET (data, control) ------------------>
//!   <------------------- PACKET (feedback)
//!   CLOSE, when every segment is judged ----->
//!   <------------------------------- CLOSED
//! ```
//!
//! - [`SendingEndpoint`], [`ReceivingEndpoint`]: state machines without a clock, for any driver.
//! - [`send_blocking`], [`receive_blocking`]: the same with sockets and the loop, on the caller's thread;
//!   [`BlockingSender`] and [`BlockingReceiver`] do that in two steps.
//! - [`AdapterHeader`]: the header of each datagram.
//! - [`SendReport`], [`ReceiveReport`]: the outcome of a transfer.
//!
//! Called by the laboratory, which knows the schemes and the meaning of their parameters; the adapter does not. The half does its own
//! pacing and counts its own overhead; the header of eight bytes is not in it. In each direction the first datagram is the
//! adapter's (OPEN, OPENED), so that packet n of the scheme is datagram n + 1 if neither is lost or repeated.
//!
//! Invariant: no datagram from the network causes a panic or is stored without a limit; one that belongs to no transfer is ignored;
//! every transfer ends.
//!
//! Limit: for laboratories. Nothing is encrypted or authenticated, there is no congestion control, and packets must fit the path. A
//! scheme whose packets have no [`payload`](segstream_base::halves::Packet::payload), or which needs control packets that cannot
//! be lost, does not run here.

mod failure;
mod gso_batch;
mod header;
mod peer;
mod receive_payloads;
mod receiving;
mod receiving_loop;
mod report;
mod send_payloads;
mod sending;
mod sending_loop;
mod source;

pub use failure::Failure;
pub use header::{AdapterHeader, HEADER_BYTES, Kind, PARAMETERS_BYTES_MAX, REASON_BYTES_MAX};
pub use peer::{AdapterCounters, Timing};
pub use receive_payloads::StoreLimits;
pub use receiving::{Delivery, ReceivingConfig, ReceivingEndpoint};
pub use receiving_loop::{BlockingReceiver, ReceiveOptions, receive_blocking};
pub use report::{Gauge, ReceiveReport, SendReport, VerdictCounts};
pub use sending::{NotTaken, SendingEndpoint, SendingEvent};
pub use sending_loop::{BlockingSender, SendOptions, send_blocking};
pub use source::read_segments;

use crate::bind::SocketError;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

/// How often CLOSE of an incomplete transfer is sent: often enough to reach the peer, and not too long for a user who waits.
const INCOMPLETE_TRIES: u32 = 3;

/// Why a transfer cannot start or cannot go on, for reasons other than the network.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdapterError {
    /// The socket cannot be opened.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// The parameters do not fit a datagram.
    #[error("the parameters are {bytes} bytes long but OPEN carries at most {PARAMETERS_BYTES_MAX}; make them shorter")]
    LongParameters {
        /// Their length.
        bytes: usize,
    },
    /// The system failed in a way that a retry cannot solve.
    #[error("the transfer cannot go on because the system failed: {0}")]
    System(#[from] io::Error),
}

/// The progress of a transfer, for [`Watch::progress`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Application bytes delivered so far; at the sender including the holes of segments within tolerance.
    pub bytes: u64,
    /// Segments judged so far.
    pub segments: u64,
}

/// How a user observes a running transfer, and stops it. By default neither.
#[derive(Default)]
pub struct Watch<'a> {
    /// Set to end the transfer. It is checked after each turn, at least ten times a second; the waker of [`BlockingSender`] or
    /// [`BlockingReceiver`] makes the loop check it at once.
    pub stop: Option<&'a AtomicBool>,
    /// Called when a segment was judged.
    pub progress: Option<&'a mut dyn FnMut(Progress)>,
}

impl Watch<'_> {
    fn wants_stop(&self) -> bool {
        self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    fn tell(&mut self, progress: Progress) {
        if let Some(told) = &mut self.progress {
            told(progress);
        }
    }
}

impl std::fmt::Debug for Watch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").field("stop", &self.stop).field("progress", &self.progress.is_some()).finish()
    }
}
