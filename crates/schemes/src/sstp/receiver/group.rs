//! Discard by groups: what a packet group brought is kept as a whole or not at all, when its end is known.
//!
//! Called by the receiving half for data and for ends of groups where [`Discard::Group`](crate::sstp::Discard::Group) is chosen.
//! Source: FC 4.3.1 ("discards any segments"), FC 2.5 (buffers "on a segment basis"), EC 5.2 (feedback by groups).
//!
//! Invariant: between two ends of groups no place of the buffer is taken or given up for what arrives.

use super::Receiver;
use crate::sstp::packet::Data;
use segstream_base::Instant;

impl Receiver {
    /// A packet of a group whose end is not known yet.
    pub(super) fn note_of_group(&mut self, data: &Data) {
        let segment = u64::from(data.segment);
        self.highest = self.highest.max(segment + 1);
        if !self.slots.contains(segment) {
            self.dropped += 1;
            return;
        }
        let packet = u32::from(data.packet);
        let slot = self.slots.get_mut(segment);
        if packet < slot.units && !slot.accepted {
            slot.arriving.set(packet);
            if data.last {
                slot.learn_length(packet + 1);
            }
        }
    }

    /// The end of a group: finds a place for what it brought, or drops it.
    pub(super) fn keep_or_discard_group(&mut self, now: Instant, segment: u64) {
        let slot = self.slots.get(segment);
        let came = slot.arriving.count_ones();
        let units = slot.units;
        if came == 0 || slot.accepted {
            return;
        }
        let kept = slot.held || self.open(now, segment);
        let literal = self.literal;
        let slot = self.slots.get_mut(segment);
        let arriving = core::mem::take(&mut slot.arriving);
        if kept {
            for run in arriving.one_runs(0, units) {
                slot.present.set_range(run.start(), run.len());
                for packet in run.start()..run.end() {
                    if literal {
                        slot.tolerated.clear(packet);
                    }
                }
            }
            slot.missing = units - slot.present.count_ones_in(0, units);
        } else {
            self.dropped += u64::from(came);
        }
        let slot = self.slots.get_mut(segment);
        slot.arriving = arriving;
        slot.arriving.reset(units);
    }
}
