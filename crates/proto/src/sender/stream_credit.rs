//! The stream limit of the peer: how many streams may be opened (compare RFC 9000 4.6).
//!
//! Owned by the half. The peer tells a total that only grows, first by the limits of set-up, then in MAX_STREAMS frames as
//! streams retire at its end. Before set-up is done the limit is unknown and nothing is refused; streams beyond the limit are
//! then refused without announcing them.
//!
//! Invariant: once the total is known, no more streams are announced than it allows.

use segstream_base::StreamId;

/// The stream limit and what has been used of it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StreamCredit {
    /// The number of the next stream: how many were opened, refused ones included.
    next: StreamId,
    /// Streams that the peer does not have: it refused them, or was never asked.
    refused: u64,
    /// The total that the peer allows; `None` until it is known.
    total: Option<u64>,
    /// The application was refused a stream at the limit.
    blocked: bool,
    /// Most streams that may wait for confirmations; `None` where the receiver confirms nothing.
    pub(super) confirms_max: Option<u32>,
}

impl StreamCredit {
    /// Whether one more stream may be opened; if not, [`StreamCredit::on_total`] says when.
    pub(super) fn allows_one_more(&mut self) -> bool {
        let allows = self.next.0 < u32::MAX && self.total.is_none_or(|total| self.asked() < total);
        self.blocked |= !allows;
        allows
    }

    /// The application was refused a stream for another reason.
    pub(super) const fn block(&mut self) {
        self.blocked = true;
    }

    /// Whether the application was refused a stream, and has not been told that it can open one.
    pub(super) const fn is_blocked(&self) -> bool {
        self.blocked
    }

    /// That reason may be gone. Returns whether an application that was refused a stream can open one now.
    pub(super) fn unblock(&mut self) -> bool {
        self.blocked && self.allows_one_more() && core::mem::take(&mut self.blocked)
    }

    /// Streams announced to the peer.
    fn asked(&self) -> u64 {
        u64::from(self.next) - self.refused
    }

    /// The number of the next stream.
    pub(super) const fn next(&self) -> StreamId {
        self.next
    }

    /// A stream is opened; its number.
    pub(super) const fn on_opened(&mut self) -> StreamId {
        let number = self.next;
        self.next = StreamId(self.next.0.saturating_add(1));
        number
    }

    /// A stream is refused.
    pub(super) const fn on_refused(&mut self) {
        self.refused += 1;
    }

    /// The peer allows this total. Returns whether an application that was refused a stream can open one now.
    pub(super) fn on_total(&mut self, total: u64) -> bool {
        self.total = Some(self.total.map_or(total, |known| known.max(total)));
        self.unblock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_opened_up_to_the_total_and_refused_ones_do_not_count() {
        let mut credit = StreamCredit::default();
        assert!((0..3).all(|number| credit.allows_one_more() && credit.on_opened() == StreamId(number)));
        assert!(!credit.on_total(2), "nobody waits");
        credit.on_refused();
        assert!(!credit.allows_one_more());
        assert!(!credit.on_total(1), "a total never shrinks, and this one is no news");
        assert!(credit.on_total(3) && credit.allows_one_more());
        assert_eq!(credit.on_opened(), StreamId(3));
        assert!(!credit.allows_one_more());
    }
}
