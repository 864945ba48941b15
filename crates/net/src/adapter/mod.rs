//! Any pair of halves over UDP, plainly: an [`Endpoint`](segstream_base::endpoint::Endpoint) around one half
//! at each end.
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
//! - [`send_blocking`], [`receive_blocking`]: sockets and the loop as well, on the caller's thread;
//!   [`BlockingSender`] and [`BlockingReceiver`] are the same in two steps.
//! - [`Envelope`]: the eight bytes in front of each datagram.
//! - [`SendReport`], [`ReceiveReport`]: what became of a transfer.
//!
//! Called by the laboratory, which knows schemes and what their parameters mean; nothing here does. The half
//! paces itself and counts its own overhead; eight bytes a datagram come on top. In each direction the first
//! datagram is the adapter's (OPEN, OPENED), so that packet n of the scheme is datagram n + 1 if neither is
//! lost or repeated.
//!
//! Invariant: what comes from the network never panics, is never stored without a limit, and is ignored when
//! it belongs to no transfer of ours; every transfer ends.
//!
//! Limit: for laboratories. Nothing is encrypted or proven, rates are not adapted to the path, and packets must
//! fit it. A scheme whose packets tell no [`payload`](segstream_base::halves::Packet::payload), or which needs
//! control that cannot be lost, does not run here.

mod envelope;
mod failure;
mod gso_batch;
mod peer;
mod receiving;
mod receiving_loop;
mod receiving_store;
mod report;
mod sending;
mod sending_loop;
mod sending_store;
mod source;

pub use envelope::{ENVELOPE_BYTES, Envelope, Kind, PARAMETERS_BYTES_MAX, REASON_BYTES_MAX};
pub use failure::Failure;
pub use peer::{AdapterCounters, Timing};
pub use receiving::{Delivery, ReceivingConfig, ReceivingEndpoint};
pub use receiving_loop::{BlockingReceiver, ReceiveOptions, receive_blocking};
pub use receiving_store::StoreLimits;
pub use report::{Gauge, ReceiveReport, SendReport, VerdictCounts};
pub use sending::{NotTaken, SendingEndpoint, SendingEvent};
pub use sending_loop::{BlockingSender, SendOptions, send_blocking};
pub use source::read_segments;

use crate::bind::SocketError;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

/// How often a transfer that is not complete is closed: enough to tell the peer, soon enough for a user who waits.
const INCOMPLETE_TRIES: u32 = 3;

/// Why a transfer cannot be tried or cannot go on: nothing a network can do.
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
    /// The system failed in a way that no later try would mend.
    #[error("the transfer cannot go on because the system failed: {0}")]
    System(#[from] io::Error),
}

/// How far a transfer is, told to [`Watch::progress`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Application bytes delivered so far; at the sender with the holes of segments within tolerance.
    pub bytes: u64,
    /// Segments judged so far.
    pub segments: u64,
}

/// How a user looks at a running transfer, and ends it. By default nobody does.
#[derive(Default)]
pub struct Watch<'a> {
    /// Set to end the transfer; looked at after each turn, ten times a second at least. The waker of
    /// [`BlockingSender`] or [`BlockingReceiver`] makes it at once.
    pub stop: Option<&'a AtomicBool>,
    /// Called whenever a segment was judged.
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
