//! How a run ended.
//!
//! Returned by [`crate::Simulation::run`] and [`crate::Simulation::settle`].
//!
//! Invariant: only [`End::Delivered`] and [`End::Settled`] mean that the goal was reached.

use crate::observer::Direction;
use core::fmt;
use segstream_base::Instant;
use segstream_base::codec::DecodeError;
use segstream_base::halves::SubmitError;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// The receiver has judged every segment.
    Delivered,
    /// Besides, the sender knows every verdict and the receiver knows that the stream has ended.
    Settled,
    /// Nothing is in flight, no timer runs and the source has nothing due, but the goal is not reached: a deadlock.
    Quiet,
    /// [`crate::Setup::until`] was reached.
    Limit,
    /// A half was called repeatedly at one instant without progress, or sent without end.
    Stuck {
        /// The timer of its deadline, or `"transmit"` for a half that sent without end.
        timer: &'static str,
    },
    /// The source's segment was refused for good.
    Refused {
        /// Which one, counted from 0.
        segment: u64,
        /// Why.
        error: SubmitError,
    },
    /// Check mode found a packet that does not survive encoding and decoding.
    BadEncoding {
        /// Which way it went.
        direction: Direction,
        /// Which packet of this direction, counted from 0.
        number: u64,
        /// When it was sent.
        at: Instant,
        /// What was wrong.
        fault: EncodingFault,
    },
}

impl End {
    /// Whether the run reached its goal.
    pub const fn is_reached(self) -> bool {
        matches!(self, Self::Delivered | Self::Settled)
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Delivered => f.write_str("every segment is delivered"),
            Self::Settled => f.write_str("every segment is delivered and both halves know it"),
            Self::Quiet => f.write_str("nothing is in flight and no timer runs, but segments are missing: the halves are deadlocked"),
            Self::Limit => f.write_str("the time limit of the run was reached"),
            Self::Stuck { timer } => write!(f, "a half makes no progress: \"{timer}\" is due again and again at the same instant"),
            Self::Refused { segment, error } => write!(f, "segment {segment} was refused: {error}"),
            Self::BadEncoding { direction, number, at, fault } => write!(f, "packet {number} {direction}, sent at {at}, {fault}"),
        }
    }
}

/// What is wrong with the encoding of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodingFault {
    /// The encoding is not as long as the packet says.
    #[error("says that its encoding has {announced} bytes but writes {written}; correct encoded_len or encode")]
    Length {
        /// What `encoded_len` says.
        announced: usize,
        /// What `encode` writes, or would write.
        written: usize,
    },
    /// The encoding cannot be decoded.
    #[error("does not decode what it encodes: {0}")]
    Undecodable(DecodeError),
}
