//! Reassembly of segments.
//!
//! Called by the receiving half with what Rx1 passes on. With error control units come in order and every segment becomes
//! complete. Without, units may be missing: a segment is over when its number has passed, and a segment of which nothing
//! has come is taken to be a full one, unless its neighbours tell its length.
//!
//! Invariant: every segment is reported once, and all of them before the end.

use super::super::message::Unit;
use segstream_base::halves::{ReceiverEvent, SegmentNumber, StreamId, Verdict};
use std::collections::VecDeque;

/// Segments that can be open: more packets are never in flight.
const OPEN_MAX: u64 = 1 << 16;

/// A segment from the first that is not judged on.
#[derive(Clone, Copy, Debug, Default)]
struct Open {
    received: u32,
    units: Option<u32>,
    /// The number of its first packet.
    first: Option<u64>,
    judged: bool,
}

/// The segments that are not judged.
#[derive(Clone, Debug)]
pub(super) struct Assembly {
    /// Units of a full segment.
    full: u32,
    /// Segments from `next` on.
    open: VecDeque<Open>,
    next: u64,
    ended: bool,
    events: VecDeque<ReceiverEvent>,
}

impl Assembly {
    pub(super) fn new(full: u32) -> Self {
        Self { full, open: VecDeque::new(), next: 0, ended: false, events: VecDeque::new() }
    }

    #[inline]
    pub(super) fn poll(&mut self) -> Option<ReceiverEvent> {
        self.events.pop_front()
    }

    /// Unit `seq` has come.
    #[inline]
    pub(super) fn deliver(&mut self, unit: &Unit, seq: u64) {
        let Some(ahead) = u64::from(unit.segment).checked_sub(self.next).filter(|ahead| *ahead < OPEN_MAX) else { return };
        let index = ahead as usize;
        if index >= self.open.len() {
            self.open.resize(index + 1, Open::default());
        }
        let open = &mut self.open[index];
        if open.judged {
            return;
        }
        open.received += 1;
        open.first = seq.checked_sub(u64::from(unit.packet));
        if unit.last {
            open.units = Some(u32::from(unit.packet) + 1);
        }
        if open.units == Some(open.received) {
            self.judge(index);
            self.drop_judged();
        }
    }

    /// No packet before number `passed` will come any more.
    pub(super) fn pass(&mut self, passed: u64) {
        for index in 0..self.open.len() {
            if self.open[index].judged {
                continue;
            }
            let begun = self.open[index].first;
            let after = self.open.get(index + 1).and_then(|next| next.first);
            if self.open[index].units.is_none()
                && let (Some(from), Some(to)) = (begun, after)
            {
                self.open[index].units = to.checked_sub(from).and_then(|units| u32::try_from(units).ok());
            }
            let end = begun.zip(self.open[index].units).map(|(first, units)| first + u64::from(units));
            let later = self.open.iter().skip(index + 1).find_map(|later| later.first);
            if end.or(after).or(later).is_some_and(|end| end <= passed) {
                self.judge(index);
            }
        }
        self.drop_judged();
    }

    /// There were `segments` segments, and no more will come.
    pub(super) fn end(&mut self, segments: u32) {
        let segments = u64::from(segments);
        let left = segments.saturating_sub(self.next).min(OPEN_MAX) as usize;
        self.open.resize(left, Open::default());
        for index in 0..left {
            if !self.open[index].judged {
                self.judge(index);
            }
        }
        self.drop_judged();
        if !self.ended {
            self.ended = true;
            self.events.push_back(ReceiverEvent::Ended { stream: StreamId(0), segments: self.next });
        }
    }

    fn judge(&mut self, index: usize) {
        let open = &mut self.open[index];
        open.judged = true;
        let units = open.units.unwrap_or(self.full).max(open.received);
        let holes = units - open.received;
        let verdict = if holes == 0 { Verdict::Complete } else { Verdict::WithinTolerance };
        let segment = SegmentNumber(self.next + index as u64);
        self.events.push_back(ReceiverEvent::Delivered { stream: StreamId(0), segment, verdict, units, holes });
    }

    fn drop_judged(&mut self) {
        while self.open.front().is_some_and(|open| open.judged) {
            self.open.pop_front();
            self.next += 1;
        }
    }
}
