//! A middlebox that writes a line for every event: the same seed gives the same text on every platform.
//!
//! ```text
//! 0 h0 sent 10.0.0.1:4000 > 10.0.0.2:4000 bytes=1200 arrives=30000000
//! 30000000 h1 got 10.0.0.1:4000 > 10.0.0.2:4000 bytes=1200 handled
//! 230000000 h0 timer retransmission
//! ```
//!
//! A line is the instant in whole nanoseconds and the event.

use crate::event::{Event, Middlebox};
use core::fmt::Write as _;
use segstream_base::Instant;

/// The lines of all events so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventLog {
    text: String,
}

impl EventLog {
    /// The lines so far, each with its end.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// How many lines contain `what`.
    pub fn count(&self, what: &str) -> usize {
        self.text.lines().filter(|line| line.contains(what)).count()
    }
}

impl Middlebox for EventLog {
    fn observe(&mut self, now: Instant, event: &Event<'_>) {
        if !matches!(event, Event::Clock) {
            // Why ignored: a string takes whatever is written.
            let _ = writeln!(self.text, "{} {event}", now.as_nanos());
        }
    }
}
