//! A rate that is changed while data flows.
//!
//! Called by the senders that are paced smoothly and whose window does not follow from the rate.
//!
//! Invariant: a change that is refused leaves the pacer as it was.

use segstream_base::halves::{Reconfigure, ReconfigureError};
use segstream_base::{Bandwidth, Instant};
use segstream_blocks::{Pacer, RateSpec};

/// Sets the rate of `pacer` to that of `change`, and returns it.
///
/// # Errors
/// Another change than that of the rate, or a rate of zero.
pub(crate) fn new_rate(pacer: &mut Pacer, now: Instant, change: Reconfigure) -> Result<Bandwidth, ReconfigureError> {
    let Reconfigure::Rate(rate) = change else { return Err(ReconfigureError::Unsupported) };
    if rate.is_zero() {
        return Err(ReconfigureError::OutOfRange);
    }
    pacer.set_spec(now, RateSpec::smooth(rate));
    Ok(rate)
}
