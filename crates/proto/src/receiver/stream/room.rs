//! The room of an incoming stream: its window, and what of it is reserved for segments.
//!
//! Owned by the stream. A segment reserves room before anything of it is kept, and gives it up once the application has taken it, or later
//! ([`super::release`]).
//!
//! Invariant: `reserved` is the sum of what segments have reserved, and `held` the part of it that segments have which were taken.

use segstream_blocks::window::ReceiveWindow;

/// The room of a stream, in units.
#[derive(Debug)]
pub(crate) struct StreamRoom {
    pub(crate) window: ReceiveWindow,
    /// Units reserved for segments.
    pub(super) reserved: u64,
    /// Units reserved for segments that were taken and hold the window.
    pub(super) held: u64,
    /// The receive buffer, where the window advertises more.
    pub(super) buffer_units: Option<u64>,
}

impl StreamRoom {
    /// Nothing of the window is reserved.
    pub(super) const fn new(window: ReceiveWindow, buffer_units: Option<u64>) -> Self {
        Self { window, reserved: 0, held: 0, buffer_units }
    }

    /// Units of the buffer that are not reserved.
    pub(in crate::receiver) fn free_units(&self) -> u64 {
        let buffer = self.buffer_units.unwrap_or(u64::MAX).min(self.window.size().1);
        buffer.saturating_sub(self.reserved)
    }

    /// Units that the segment may reserve for which the application waits, whatever newer ones have; `own` are those that it has.
    pub(super) fn for_awaited(&self, own: u64) -> u64 {
        self.window.size().1.saturating_sub(self.held + own)
    }

    /// A segment has given up its room: so many units in the window, of which so many were reserved.
    pub(super) fn on_freed(&mut self, freed: Option<(u64, u64)>) {
        if let Some((units, reserved)) = freed {
            self.reserved -= reserved;
            self.window.release(units);
        }
    }
}
