//! The end of one stream: the application finishes it, and the receiver confirms that; or the receiver refuses the stream.
//!
//! Owned by the stream. When a stream that has ended is removed, the half decides, in `retirement`.
//!
//! Invariant: only the end of a finished stream is confirmed.

use segstream_wire::report::RefuseReason;

/// How a stream ends, as far as it has.
#[derive(Debug, Default)]
pub(crate) struct StreamEnd {
    /// No more segments will come.
    pub(crate) finished: bool,
    /// The receiver knows how many segments there are.
    pub(crate) confirmed: bool,
    /// Why the receiver does not take the stream.
    pub(crate) refused: Option<RefuseReason>,
}

impl StreamEnd {
    /// Whether nothing more can be submitted.
    pub(super) const fn is_set(&self) -> bool {
        self.finished || self.refused.is_some()
    }

    /// Whether the stream is finished and the receiver may not know it yet.
    pub(crate) const fn is_unconfirmed(&self) -> bool {
        self.finished && !self.confirmed
    }
}
