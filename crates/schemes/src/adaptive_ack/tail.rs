//! How the sender detects a lost tail: two equal statuses in a row while it sends nothing.
//!
//! Called by the sender for every acknowledgment. A gap shows only when a packet behind it arrives, so after the loss of the
//! last packets AA's receiver reports forever that nothing is missing. AA is silent on this; its stream has no end.
//!
//! Invariant: no answer to an acknowledgment is given before the same one came twice with nothing new sent in between.

/// What the last status without a gap said.
#[derive(Clone, Copy, Debug)]
pub(super) struct TailRule {
    on: bool,
    /// Its cumulative number, and the number of the next new packet when it came.
    last: Option<(u32, u32)>,
}

impl TailRule {
    /// A rule that has seen nothing; one that is not `on` never finds anything.
    pub(super) const fn new(on: bool) -> Self {
        Self { on, last: None }
    }

    /// An acknowledgment with a gap has come: what is missing is being asked for.
    #[inline]
    pub(super) const fn on_gap(&mut self) {
        self.last = None;
    }

    /// A status without a gap has come, while `next` is the next new packet. Whether all from `cumulative` on is declared lost.
    #[inline]
    pub(super) fn on_status(&mut self, cumulative: u32, next: u32) -> bool {
        let seen = Some((cumulative, next));
        let again = self.last == seen;
        self.last = seen;
        self.on && again && cumulative < next
    }
}
