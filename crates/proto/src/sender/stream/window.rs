//! The flow control window of one stream: what the receiver has granted, and what has been used of it (FC 3).
//!
//! Owned by the stream.
//!
//! Invariant: no edge retreats; the units of a segment are counted once, as the receiver counts them.

use crate::sender::segment::SendSegment;
use segstream_base::SegmentNumber;
use segstream_blocks::window::SendWindow;

/// The window of one stream.
#[derive(Debug)]
pub(crate) struct StreamWindow {
    /// Its upper edges.
    pub(crate) edges: SendWindow,
    /// Whether the receiver has granted a window, which also confirms the stream.
    pub(crate) granted: bool,
    /// The receive buffer in units, as the first grant says; until then what the contract asks for.
    pub(super) size: u64,
    /// Units started in all, as the receiver's unit edge counts them.
    pub(super) units_started: u64,
}

impl StreamWindow {
    /// A closed window, of which the contract asks for `size` units.
    pub(super) const fn new(size: u64) -> Self {
        Self { edges: SendWindow::new(0, 0), granted: false, size, units_started: 0 }
    }

    /// The receiver has granted its first window, of so many units: its receive buffer, which may hold less than the contract asks for.
    pub(super) fn on_first_grant(&mut self, units: u64) {
        self.granted = true;
        self.size = self.size.min(units.max(1));
    }

    /// Whether it admits the next unit of `segment`, which is the one that is being sent and has the number `number`.
    #[inline]
    pub(super) fn admits(&self, number: SegmentNumber, segment: &SendSegment) -> bool {
        let begun = segment.layout.units.map_or_else(|| segment.layout.counted(segment.sent.next + 1), u64::from);
        self.edges.admits(number.0, self.units_started, begun - u64::from(segment.counted))
    }

    /// Further positions it admits of the open segment that is being sent: the rest of a block that is
    /// counted, and whole blocks.
    pub(crate) fn open_room(&self, segment: &SendSegment) -> u32 {
        let (room, block) = (self.edges.units().saturating_sub(self.units_started), u64::from(segment.layout.order.block.max(1)));
        u32::try_from(u64::from(segment.counted - segment.sent.next.0) + room / block * block).unwrap_or(u32::MAX)
    }
}
