//! What a part or a statement says of its segment as a whole: whether it was opened, its length, its own tolerance, its source's time.
//!
//! Made by the half of what arrives; taken over by the segment, once when it is heard of, and again when its length is.
//!
//! Invariant: a length, once known, never changes.

use super::{ALL_DUE, RecvSegment};
use crate::layout::Layout;
use segstream_base::tolerance::Tolerance;
use segstream_base::{Instant, Position};
use segstream_wire::contract::Contract;
use segstream_wire::state::Finished;

/// What a part or a statement says of its segment as a whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct About {
    pub(crate) opened: bool,
    pub(crate) length: Option<u64>,
    pub(crate) own: Option<Tolerance>,
    pub(crate) source_time: Instant,
}

impl About {
    /// What a statement of the sender says.
    pub(crate) const fn of(finished: &Finished) -> Self {
        Self { opened: finished.opened, length: Some(finished.length), own: finished.tolerance, source_time: finished.source_time }
    }
}

impl RecvSegment {
    /// The fast path: the segment is open, the part says nothing new about it, and its room is reserved.
    #[inline]
    pub(in crate::receiver) fn has_room_for(&self, length: Option<u64>, end: Position) -> bool {
        let reserved = self.room.reserved;
        !self.is_closed()
            && self.known
            && length.is_some()
            && length == self.layout.length
            && self.layout.units == Some(reserved)
            && end.0 <= reserved
    }

    /// One more than the highest position present.
    pub(in crate::receiver) fn present_end(&self) -> Position {
        if self.layout.units.is_some() { Position::FIRST } else { self.presence.positions.end() }
    }

    /// Takes over layout and tolerance of the segment.
    pub(in crate::receiver) fn learn(&mut self, contract: &Contract, about: &About, length: Option<u64>) {
        let promise = about.own.unwrap_or(contract.tolerance);
        self.known = true;
        self.source_time = about.source_time;
        self.layout = Layout::new(contract, promise, about.opened, length);
        self.forget_accounting();
        self.tolerance = promise.clipped_to(self.layout.units.unwrap_or(u32::MAX));
    }

    /// Takes over layout and tolerance of the segment and makes room for it; positions that become known below the frontier are lost
    /// at once.
    pub(in crate::receiver) fn know(&mut self, contract: &Contract, about: &About, length: Option<u64>) {
        self.learn(contract, about, length);
        if let Some(units) = self.layout.units {
            let asked = self.violated_at.is_some() && self.presence.due == ALL_DUE;
            self.presence.grow(units);
            // Why: for a violated segment of unknown length, everything up to its end was requested.
            self.presence.more_is_lost &= !asked;
            self.debug_assert_counts();
        }
    }
}
