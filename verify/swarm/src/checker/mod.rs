//! What must hold in every run, one checker a file.
//!
//! - [`promise`]: what is delivered is what was submitted, within what its contract tolerates;
//! - [`order`]: streams are handed over in their order, each segment once, and end once;
//! - [`durability`]: what is told to be durable was confirmed;
//! - [`memory`]: memory stays within what was granted, and is freed in the end;
//! - [`work`]: what a peer sends costs work in proportion to its bytes;
//! - [`progress`]: every connection ends and says why, everything accepted is judged, time advances;
//! - [`amplification`]: no endpoint is an amplifier towards an address that was never validated.
//!
//! Called by [`crate::watch`] with every event. Invariant: a checker knows events and definitions, nothing of how the
//! protocol works; what it holds to be true is true of every correct implementation.

mod amplification;
mod durability;
mod memory;
mod order;
mod progress;
mod promise;
mod work;

use crate::event::Event;
use segstream_base::Instant;

/// Sees every event and objects to what must not happen.
pub(crate) trait Checker {
    /// Its name in a report.
    fn name(&self) -> &'static str;

    /// Takes the next event. An error is a sentence that says what is wrong; nothing is asked after it.
    fn observe(&mut self, now: Instant, event: &Event) -> Result<(), String>;
}

/// All of them. `peaceful`: nothing in the run excuses an end other than the graceful one.
pub(crate) fn all(peaceful: bool) -> Vec<Box<dyn Checker>> {
    vec![
        Box::<promise::Promise>::default(),
        Box::<order::OrderOfDelivery>::default(),
        Box::<durability::Durability>::default(),
        Box::new(progress::Progress::new(peaceful)),
        Box::<memory::Memory>::default(),
        Box::<work::Work>::default(),
        Box::<amplification::Amplification>::default(),
    ]
}

/// Those of a run in which a host sends its peers what no endpoint of ours would: only what is promised to anyone.
pub(crate) fn of_bounds() -> Vec<Box<dyn Checker>> {
    vec![Box::<memory::Memory>::default(), Box::<work::Work>::default(), Box::<amplification::Amplification>::default()]
}

/// Fails with a sentence unless something holds.
macro_rules! must {
    ($holds:expr, $($sentence:tt)+) => {
        if !$holds {
            return Err(format!($($sentence)+));
        }
    };
}
pub(crate) use must;
