//! TOL CHECK: whether a segment is accepted, and what is requested of it.
//!
//! Called by the receiving half, from every trigger. Sources: EC 4.2 (checking application tolerance,
//! step 4), FC 3.4 (receiver window operations), FC 4.3.1 (acknowledgments with a small buffer).
//!
//! Invariant: a segment is accepted once and then never asked for, unless it was discarded; the user is
//! told of it once, when it can no longer be discarded.

use super::{Receiver, STREAM};
use crate::sstp::Acknowledgment;
use segstream_base::Instant;
use segstream_base::halves::{ReceiverEvent, SegmentNumber, Verdict};
use segstream_blocks::Accounting;

/// When a segment that is still incomplete is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    /// Now, whether it was requested before or not: a round has ended, or its period has.
    Again,
    /// Now, unless it was requested before; then the period decides.
    Once,
}

impl Receiver {
    /// Calls the checker for segments `from..to` as far as they lie in the window and were seen.
    pub(super) fn check_range(&mut self, now: Instant, from: u64, to: u64, ask: Ask) {
        // EC 4.2 checks [L, H + 1] when the loss timer expires. H + 1 may never have been sent, and with
        // full tolerance it would be accepted; so nothing above the highest segment seen is judged.
        let to = to.min(self.highest).min(self.slots.limit());
        for segment in from.max(self.slots.low())..to {
            self.check(now, segment, ask);
        }
    }

    /// Calls the checker for one segment.
    pub(super) fn check(&mut self, now: Instant, segment: u64, ask: Ask) {
        if !self.slots.contains(segment) || self.slots.get(segment).accepted {
            return;
        }
        if !self.slots.get(segment).held {
            self.check_absent(now, segment, ask);
            return;
        }
        let slot = self.slots.get_mut(segment);
        let units = slot.units;
        // EC 3.1: a last segment shorter than the window keeps E and B.
        let tolerance = self.config.tolerance.clipped_to(units);
        let accepted = self.checker.check(tolerance, 0, &mut slot.present, &mut slot.tolerated, units, &mut self.request);
        if self.checker.accounting() == Accounting::PaperLiteral {
            slot.missing = units - slot.present.count_ones_in(0, units);
        }
        if accepted && !slot.length_known && segment + 1 == self.highest {
            // EC 4.2 lets the loss timer judge segment H as well. Its end may be nearer than assumed, so a
            // segment that is good enough waits for a mark or a newer packet.
            return;
        }
        if accepted {
            let holes = slot.tolerated.count_ones_in(0, units);
            self.accept(now, segment, holes);
        } else if ask == Ask::Again || !slot.asked {
            self.ask(now, segment);
        }
    }

    /// A segment of which nothing is kept.
    fn check_absent(&mut self, now: Instant, segment: u64, ask: Ask) {
        let slot = self.slots.get(segment);
        if slot.revoked && self.config.acknowledgment == Acknowledgment::SoftLazy && segment != self.slots.low() {
            // FC 4.3.1 does not say when a discarded segment is requested again. Its results need that it is
            // not before the segment becomes the head of the line.
            return;
        }
        let (units, asked, discarded) = (slot.units, slot.asked, slot.discarded);
        if !discarded && self.config.tolerance.clipped_to(units).is_any() && self.open(now, segment) {
            self.accept(now, segment, units);
            return;
        }
        if ask == Ask::Again || !asked {
            self.request.reset(units);
            self.request.set_range(0, units);
            self.ask(now, segment);
        }
    }

    /// Asks for the packets in `request`, and from now on periodically.
    fn ask(&mut self, now: Instant, segment: u64) {
        let edges = self.edges();
        let period = self.acks.period();
        let slot = self.slots.get_mut(segment);
        // EC 4.2: "the last expected packet" is the last of the group: the highest that was requested.
        let last = self.request.one_runs(0, slot.units).last();
        slot.expected_last = last.map_or(slot.units - 1, |run| run.end() - 1);
        slot.outstanding = true;
        if !self.ideal {
            slot.asked = true;
            slot.repeat_at = now + period;
            if slot.requests == 0 {
                slot.requested_at = now;
            }
            slot.requests = slot.requests.saturating_add(1);
            self.acks.repeat_at = self.acks.repeat_at.min(slot.repeat_at);
        }
        self.acks.snak(now, segment, edges, &self.request);
    }

    /// ACKQ: every request whose period is over leaves again, made anew.
    pub(super) fn repeat_requests(&mut self, now: Instant) {
        self.acks.repeat_at = Instant::FAR_FUTURE;
        let mut segment = self.slots.low();
        // The window may advance while requests are made: a packet that came since may have been enough.
        while segment < self.slots.limit() {
            if self.slots.contains(segment) {
                let slot = self.slots.get(segment);
                let (asked, at) = (slot.asked, slot.repeat_at);
                if asked && at <= now {
                    self.check(now, segment, Ask::Again);
                } else if asked {
                    self.acks.repeat_at = self.acks.repeat_at.min(at);
                }
            }
            segment += 1;
        }
    }

    /// The segment meets the tolerance.
    pub(super) fn accept(&mut self, now: Instant, segment: u64, holes: u32) {
        let firm = self.buffer.is_firm(&self.slots, segment);
        let slot = self.slots.get_mut(segment);
        slot.accepted = true;
        slot.asked = false;
        slot.holes = holes;
        if firm {
            self.deliver(segment);
        }
        let head_asked_for = segment == self.slots.low() && self.advance(now);
        let end = self.is_over();
        self.acks.pack(now, Some(segment), self.edges(), !firm, holes > 0, end);
        if head_asked_for {
            self.check(now, self.slots.low(), Ask::Once);
        }
    }

    /// Tells the user, once.
    fn deliver(&mut self, segment: u64) {
        let slot = self.slots.get_mut(segment);
        if slot.delivered {
            return;
        }
        slot.delivered = true;
        let verdict = if slot.holes == 0 { Verdict::Complete } else { Verdict::WithinTolerance };
        let (units, holes) = (slot.units, slot.holes);
        self.events.push_back(ReceiverEvent::Delivered { stream: STREAM, segment: SegmentNumber(segment), verdict, units, holes });
    }

    /// Moves the window over everything accepted in sequence. `true` when the new head of the line was
    /// discarded earlier and must be asked for now.
    pub(super) fn advance(&mut self, now: Instant) -> bool {
        let firm_before = self.slots.low() + u64::from(self.config.buffer);
        loop {
            let low = self.slots.low();
            let slot = self.slots.get(low);
            if !slot.accepted || !self.throttled.takes(now) {
                break;
            }
            self.below_holes = slot.holes > 0;
            self.deliver(low);
            self.buffer.release();
            self.slots.advance();
        }
        let low = self.slots.low();
        for segment in firm_before.max(low)..(low + u64::from(self.config.buffer)).min(self.slots.limit()) {
            if self.slots.get(segment).accepted {
                self.deliver(segment);
            }
        }
        self.end_if_over();
        let head = self.slots.get(low);
        head.discarded && !head.held && !(self.ideal && head.outstanding)
    }
}
