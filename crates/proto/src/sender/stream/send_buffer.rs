//! The send buffer of one stream: what the application has submitted and has no verdict on.
//!
//! Owned by the stream. The bytes themselves are in the store; here they are counted.
//!
//! Invariant: at most two windows are buffered; `unjudged` and `units` are what the segments say.

use segstream_base::halves::SubmitError;
use segstream_wire::contract::Contract;

/// What the send buffer of a stream holds.
#[derive(Debug, Default)]
pub(crate) struct SendBuffer {
    /// Segments without a verdict.
    pub(crate) unjudged: u64,
    /// Units of segments without a verdict.
    pub(crate) units: u64,
    /// A submission was refused; an event follows when the next one can succeed.
    pub(crate) blocked: bool,
    /// Drop-oldest: a full send buffer drops the oldest unsent segment for a new one.
    pub(crate) drops_oldest: bool,
}

impl SendBuffer {
    /// Whether `units` more fit, of a stream whose window has `window` units. At most two windows are buffered: one in flight, one
    /// not yet sent.
    pub(super) fn admit(&mut self, units: u64, contract: &Contract, window: u64) -> Result<(), SubmitError> {
        if self.is_full_of_segments(contract) || self.units + units > 2 * window {
            self.blocked = true;
            return Err(SubmitError::Blocked);
        }
        Ok(())
    }

    /// Whether there are too many segments for one more, whatever its length.
    pub(super) fn is_full_of_segments(&self, contract: &Contract) -> bool {
        self.unjudged >= 2 * u64::from(contract.window_segments)
    }
}
