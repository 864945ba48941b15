//! PACK RECV and SNAK RECV: how the sender processes the receiver's packets.
//!
//! Called by the sending half. Sources: EC 3.3 (avoiding premature retransmission), EC 4.2
//! (retransmission request and positive acknowledgment processing), FC 3.4 (sender window operations).
//!
//! Invariant: a packet that speaks of segments that were never sent changes nothing; every other may come
//! late, twice or in any order.

use super::control_block::Status;
use super::{STREAM, Sender};
use crate::sstp::packet::{Feedback, Pack, Snak};
use segstream_base::halves::{SegmentNumber, SenderEvent, Verdict};
use segstream_base::sequence::expand;
use segstream_base::{Duration, Instant};

/// The round trip as long as none was measured. Requests are repeated, so a rightful one is only late.
const TRIP_UNKNOWN: Duration = Duration::from_millis(100);

impl Sender {
    pub(super) fn on_feedback(&mut self, now: Instant, packet: &Feedback) {
        let grant = packet.grant();
        let accepted = u64::from(grant.accepted);
        if grant.connection != self.config.connection || accepted > self.queue.begun() {
            return;
        }
        let control = expand(u64::from(grant.control), 32, self.newest_control);
        self.newest_control = self.newest_control.max(control);
        // A request for the segment behind the highest seen may speak of one that was not sent yet.
        let kept = self.low..self.queue.begun();
        let segment = grant.segment.map(u64::from).filter(|segment| kept.contains(segment));
        if let Some(segment) = segment.filter(|_| !self.ideal) {
            self.sample(now, segment, packet);
        }
        if let (Some(segment), Feedback::Pack(pack)) = (segment, packet) {
            self.on_pack(segment, *pack);
        }
        self.release_below(accepted);
        // FC 3.4: S_h = max(S_h, window upper limit); the receiver grants at most W above R_l.
        self.limit = self.limit.max(u64::from(grant.limit).min(accepted + u64::from(self.config.window)));
        if let (Some(segment), Feedback::Snak(snak)) = (segment, packet) {
            self.on_snak(now, segment, control, snak);
        }
        self.over |= matches!(packet, Feedback::Pack(pack) if pack.end) && self.finished && self.low == self.submitted;
        self.update_eligible();
        if self.refused && self.submitted - self.low < self.kept_max() {
            self.refused = false;
            self.events.push_back(SenderEvent::WindowOpen(STREAM));
        }
    }

    /// The first answer to a first group tells the round trip. An answer to a repeated group may have been
    /// caused by the transmission before it (the ambiguity that EC 3.3 speaks of), so it tells nothing.
    fn sample(&mut self, now: Instant, segment: u64, answer: &Feedback) {
        let block = self.blocks.get_mut(segment);
        if block.status != Status::Waiting || block.answered {
            return;
        }
        block.answered = true;
        // A request for all of a segment may be the loss timer's, for the segment behind the highest seen
        // (EC 4.2), made before that segment left: a sample of it would switch the filter off.
        let asks_for_all = matches!(answer, Feedback::Snak(snak) if snak.request.count_ones() >= block.packets);
        if !asks_for_all {
            self.rtt.on_sample(now, now.since(block.last_left));
        }
    }

    fn on_pack(&mut self, segment: u64, pack: Pack) {
        if pack.soft {
            // FC 4.3.1: arrived, but the receiver may still discard it; the segment is kept.
            self.blocks.get_mut(segment).soft = true;
            return;
        }
        self.judge(segment, if pack.holes { Verdict::WithinTolerance } else { Verdict::Complete });
    }

    fn judge(&mut self, segment: u64, verdict: Verdict) {
        let block = self.blocks.get_mut(segment);
        if block.status == Status::Released {
            return;
        }
        block.status = Status::Released;
        if segment == self.queue.segment {
            // It is accepted before all of it has left: the rest of it stays here.
            self.ended_with = block.packets;
        }
        self.queue.forget(segment);
        self.events.push_back(SenderEvent::Judged { stream: STREAM, segment: SegmentNumber(segment), verdict });
    }

    /// EC 4.2: a segment is also acknowledged by any packet whose ACK segment NO lies above it.
    fn release_below(&mut self, accepted: u64) {
        // With a lost PACK it is unknown whether there are holes; without a tolerance there are none.
        let verdict = if self.config.tolerance.is_reliable() { Verdict::Complete } else { Verdict::WithinTolerance };
        while self.low < accepted {
            self.judge(self.low, verdict);
            self.low += 1;
        }
    }

    /// EC 4.2: retransmits what is requested, unless the request cannot yet know of the last transmission.
    fn on_snak(&mut self, now: Instant, segment: u64, control: u64, snak: &Snak) {
        if segment < self.low {
            return;
        }
        let block = self.blocks.get_mut(segment);
        // EC 4.1 numbers control packets so that a duplicate is seen; an older request than one that was
        // already taken asks for what may have arrived since.
        let stale = control <= block.newest_request;
        block.newest_request = block.newest_request.max(control);
        // EC 3.3: while the group is queued, or within a round trip of its last packet, a request is
        // premature. The minimum, since a longer estimate would refuse rightful requests.
        let queued = block.status != Status::Waiting;
        let trip = self.rtt.min().unwrap_or(TRIP_UNKNOWN);
        let premature = !self.ideal && now.since(block.last_left) < trip;
        if stale || queued || premature || !self.queue.schedule(&mut self.blocks, segment, &snak.request) {
            self.requests_ignored += 1;
        }
    }
}
