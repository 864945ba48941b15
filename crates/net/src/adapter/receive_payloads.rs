//! The reassembly buffer: the bytes of every segment that has arrived in part and is not judged yet.
//!
//! Called by [`super::ReceivingEndpoint`], which first asks whether a packet fits ([`ReceivePayloads::admits`]) and does not pass a
//! packet that does not fit to the half: to the scheme it is lost.
//!
//! Invariant: it never holds more than [`StoreLimits::bytes`], whatever a peer sends, including delivered segments that were not
//! taken yet and the memory for holes. The last [`StoreLimits::segment_bytes`] of that, and an eighth more, are reserved for
//! the oldest segment, so that later segments cannot keep it out.

use segstream_base::halves::PayloadSpan;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The approximate memory for one range of bytes.
const RANGE_COST_BYTES: u64 = 48;

/// The first allocation for a segment, or less if it is shorter.
const FIRST_BYTES: u64 = 4_096;

/// The limits of the reassembly buffer. It must hold the scheme's window, or the scheme stalls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreLimits {
    /// Bytes of all segments together; 64 MiB by default.
    pub bytes: u64,
    /// The longest segment in bytes; 16 MiB by default. More than half of `bytes` is of no use.
    pub segment_bytes: u64,
    /// How many segments from the oldest one not judged; 4096 by default.
    pub segments: u64,
}

impl Default for StoreLimits {
    fn default() -> Self {
        Self { bytes: 64 << 20, segment_bytes: 16 << 20, segments: 4_096 }
    }
}

/// The bytes of a segment and what is missing of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Payload {
    /// Up to the last byte that arrived, with zeros in the holes.
    pub(super) bytes: Vec<u8>,
    /// The length of the segment.
    pub(super) length: u64,
    /// The byte ranges that are missing, up to `length`.
    pub(super) missing: Vec<Range<u64>>,
    /// Its cost to the buffer until it is released.
    pub(super) cost: u64,
}

#[derive(Debug, Default)]
struct Partial {
    bytes: Vec<u8>,
    allocated: u64,
    /// Ranges of bytes that arrived, start to end; no two touch.
    runs: BTreeMap<u64, u64>,
    /// The low 16 bits of the segment's length.
    length_detail: u16,
}

/// The bytes of segments that are not judged.
#[derive(Debug)]
pub(super) struct ReceivePayloads {
    limits: StoreLimits,
    partial: BTreeMap<u64, Partial>,
    /// All segments before this one are judged.
    base: u64,
    /// Judged segments after `base`.
    judged: BTreeSet<u64>,
    used: u64,
    /// The longest piece of payload that arrived: the scheme's unit.
    piece_bytes: u64,
}

impl ReceivePayloads {
    pub(super) const fn new(limits: StoreLimits) -> Self {
        Self { limits, partial: BTreeMap::new(), base: 0, judged: BTreeSet::new(), used: 0, piece_bytes: 0 }
    }

    /// All segments before this one are judged.
    pub(super) const fn base(&self) -> u64 {
        self.base
    }

    fn is_judged(&self, segment: u64) -> bool {
        segment < self.base || self.judged.contains(&segment)
    }

    /// Whether all of a packet's payload fits. Payload of a judged segment needs no room.
    pub(super) fn admits(&self, spans: impl Iterator<Item = PayloadSpan>) -> bool {
        let mut growth = 0u64;
        for span in spans {
            let segment = span.segment.0;
            if span.stream.0 != 0 || segment.saturating_sub(self.base) >= self.limits.segments {
                return false;
            }
            if self.is_judged(segment) {
                continue;
            }
            let Some(end) = end_of(&span).filter(|end| *end <= self.limits.segment_bytes) else { return false };
            let allocated = self.partial.get(&segment).map_or(0, |partial| partial.allocated);
            growth = growth.saturating_add(self.allocation(allocated, end) - allocated).saturating_add(RANGE_COST_BYTES);
            let reserve = if segment == self.base { 0 } else { self.reserve() };
            if self.used.saturating_add(growth) > self.limits.bytes.saturating_sub(reserve) {
                return false;
            }
        }
        true
    }

    /// The reserve for the oldest segment: its bytes, and an eighth for the memory of its holes.
    const fn reserve(&self) -> u64 {
        self.limits.segment_bytes.saturating_add(self.limits.segment_bytes / 8)
    }

    /// The new allocation so that `end` bytes fit, if the present one is `allocated`.
    fn allocation(&self, allocated: u64, end: u64) -> u64 {
        if end <= allocated {
            return allocated;
        }
        // Why doubled: bytes that arrive in order are then moved once and not each time.
        end.max(allocated.saturating_mul(2)).max(FIRST_BYTES).min(self.limits.segment_bytes.max(end))
    }

    /// Copies a piece that was admitted. `length_detail` is the low 16 bits of the segment's length, from the header.
    pub(super) fn write(&mut self, span: &PayloadSpan, piece: &[u8], length_detail: u16) {
        let segment = span.segment.0;
        let Some(end) = end_of(span).filter(|_| !self.is_judged(segment) && !piece.is_empty()) else { return };
        self.piece_bytes = self.piece_bytes.max(piece.len() as u64);
        let allocated = self.partial.get(&segment).map_or(0, |partial| partial.allocated);
        let allocation = self.allocation(allocated, end);
        let partial = self.partial.entry(segment).or_insert_with(|| Partial { length_detail, ..Partial::default() });
        partial.allocated = allocation;
        let runs_before = partial.runs.len() as u64;
        partial.copy(span.offset, end, piece);
        let runs_after = partial.runs.len() as u64;
        self.used = (self.used + allocation - allocated + RANGE_COST_BYTES * runs_after).saturating_sub(RANGE_COST_BYTES * runs_before);
    }

    /// Removes and returns a judged segment of `units` units; `None` if it was judged before.
    pub(super) fn take(&mut self, segment: u64, units: u32) -> Option<Payload> {
        if self.is_judged(segment) {
            return None;
        }
        self.judged.insert(segment);
        while self.judged.remove(&self.base) {
            self.base += 1;
        }
        let most = u64::from(units).saturating_mul(self.piece_bytes);
        let Some(mut partial) = self.partial.remove(&segment) else {
            // Limit: no part of it arrived, so its length is computed from its units.
            let whole = 0..most;
            return Some(Payload { length: most, missing: (most > 0).then_some(whole).into_iter().collect(), ..Payload::default() });
        };
        self.used = self.used.saturating_sub(RANGE_COST_BYTES * partial.runs.len() as u64);
        let length = length_at_most(most.max(partial.bytes.len() as u64), partial.length_detail);
        partial.bytes.truncate(usize::try_from(length).unwrap_or(usize::MAX));
        let missing = partial.missing(length);
        Some(Payload { bytes: partial.bytes, length, missing, cost: partial.allocated })
    }

    /// The application has taken a payload.
    pub(super) fn release(&mut self, cost: u64) {
        self.used = self.used.saturating_sub(cost);
    }

    /// Segments of which a part arrived and that are not judged.
    pub(super) fn unfinished(&self) -> u64 {
        self.partial.len() as u64
    }
}

impl Partial {
    fn copy(&mut self, from: u64, end: u64, piece: &[u8]) {
        let allocated = usize::try_from(self.allocated).unwrap_or(usize::MAX);
        let (from_at, end_at) = (usize::try_from(from).unwrap_or(usize::MAX), usize::try_from(end).unwrap_or(usize::MAX));
        self.bytes.reserve_exact(allocated.saturating_sub(self.bytes.len()));
        if self.bytes.len() < end_at {
            self.bytes.resize(end_at, 0);
        }
        if let Some(room) = self.bytes.get_mut(from_at..end_at).filter(|room| room.len() == piece.len()) {
            room.copy_from_slice(piece);
            self.join(from, end);
        }
    }

    /// Adds a range, merged with those that it touches.
    fn join(&mut self, mut from: u64, mut end: u64) {
        while let Some((&start, &stop)) = self.runs.range(..=end).next_back().filter(|(_, stop)| **stop >= from) {
            self.runs.remove(&start);
            from = from.min(start);
            end = end.max(stop);
        }
        self.runs.insert(from, end);
    }

    fn missing(&self, length: u64) -> Vec<Range<u64>> {
        let mut missing = Vec::new();
        let mut at = 0;
        for (&start, &end) in &self.runs {
            if start.min(length) > at {
                missing.push(at..start.min(length));
            }
            at = at.max(end);
        }
        if at < length {
            missing.push(at..length);
        }
        missing
    }
}

fn end_of(span: &PayloadSpan) -> Option<u64> {
    span.offset.checked_add(span.bytes as u64)
}

/// The greatest length of at most `most` whose low 16 bits are `detail`. It is unique, because a unit is shorter than 65536 bytes.
fn length_at_most(most: u64, detail: u16) -> u64 {
    let above = most.wrapping_sub(u64::from(detail)) & 0xffff;
    most.checked_sub(above).unwrap_or(most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use segstream_base::halves::{SegmentNumber, StreamId};

    fn span(segment: u64, offset: u64, bytes: usize) -> PayloadSpan {
        PayloadSpan { at: 0, bytes, stream: StreamId(0), segment: SegmentNumber(segment), offset }
    }

    /// Writes a piece if it is admitted.
    fn offer(store: &mut ReceivePayloads, span: PayloadSpan, length: u64) -> bool {
        let admitted = store.admits([span].into_iter());
        if admitted {
            store.write(&span, &vec![7; span.bytes], length as u16);
        }
        admitted
    }

    #[test]
    fn a_short_last_unit_that_never_came_has_its_true_length() {
        for (length, came) in [(70_001u64, 0..70u64), (70_000, 0..69), (3, 0..0), (1_001, 1..2)] {
            let mut store = ReceivePayloads::new(StoreLimits::default());
            offer(&mut store, span(0, 0, 1_000), 5_000);
            store.take(0, 5);
            for unit in came.clone() {
                let bytes = (length - unit * 1_000).min(1_000);
                assert!(offer(&mut store, span(1, unit * 1_000, bytes as usize), length));
            }
            let payload = store.take(1, length.div_ceil(1_000) as u32).unwrap();
            if !came.is_empty() {
                assert_eq!(payload.length, length);
            }
            let missing: u64 = payload.missing.iter().map(|hole| hole.end - hole.start).sum();
            let arrived: u64 = came.map(|unit| (length - unit * 1_000).min(1_000)).sum();
            assert_eq!(missing, payload.length - arrived);
        }
    }

    #[test]
    fn padding_behind_the_end_is_cut_off() {
        let mut store = ReceivePayloads::new(StoreLimits::default());
        offer(&mut store, span(0, 0, 1_000), 1_300);
        offer(&mut store, span(0, 1_000, 1_000), 1_300);
        let payload = store.take(0, 2).unwrap();
        assert_eq!((payload.length, payload.bytes.len(), payload.missing.len()), (1_300, 1_300, 0));
    }

    #[test]
    fn what_came_early_cannot_keep_the_oldest_segment_out() {
        let limits = StoreLimits { bytes: 100_000, segment_bytes: 20_000, segments: 1_000 };
        let mut store = ReceivePayloads::new(limits);
        let admitted = (1..100).filter(|segment| offer(&mut store, span(*segment, 0, 10_000), 10_000)).count();
        assert!((1..100).contains(&admitted), "{admitted}");
        assert!(offer(&mut store, span(0, 0, 10_000), 10_000));
        // What is delivered and not taken counts until it is released.
        let payload = store.take(0, 1).unwrap();
        assert!(!offer(&mut store, span(900, 0, 10_000), 10_000));
        store.release(payload.cost);
        for segment in 1..100 {
            let cost = store.take(segment, 1).unwrap().cost;
            store.release(cost);
        }
        assert_eq!((store.used, store.base()), (0, 100));
    }

    #[test]
    fn a_repetition_of_a_judged_segment_needs_no_place() {
        let mut store = ReceivePayloads::new(StoreLimits { bytes: 10_000, segment_bytes: 5_000, segments: 4 });
        assert!(offer(&mut store, span(1, 0, 100), 100));
        assert!(store.take(1, 1).is_some());
        assert!(store.take(1, 1).is_none());
        assert!(offer(&mut store, span(1, 0, 100), 100));
        assert_eq!((store.unfinished(), store.base()), (0, 0));
        assert!(!offer(&mut store, span(4, 0, 100), 100), "behind the limit of segments");
    }

    proptest! {
        #[test]
        fn no_peer_makes_it_keep_more_than_its_limit(
            pieces in proptest::collection::vec((0u64..12, any::<u64>(), 0u64..3_000, 1usize..400, any::<bool>()), 0..300),
        ) {
            let limits = StoreLimits { bytes: 40_000, segment_bytes: 4_000, segments: 8 };
            let mut store = ReceivePayloads::new(limits);
            for (segment, far, near, bytes, take) in pieces {
                offer(&mut store, span(segment, if far % 7 == 0 { far } else { near }, bytes), far);
                let real: u64 = store.partial.values()
                    .map(|partial| partial.bytes.capacity() as u64 + RANGE_COST_BYTES * partial.runs.len() as u64).sum();
                prop_assert_eq!(real, store.used);
                prop_assert!(real <= limits.bytes);
                if take && let Some(payload) = store.take(segment, 8) {
                    prop_assert!(payload.bytes.len() as u64 <= payload.length);
                    store.release(payload.cost);
                }
            }
        }

        #[test]
        fn runs_and_holes_are_what_came_and_what_did_not(pieces in proptest::collection::vec((0u64..200, 1u64..20), 1..40)) {
            let mut store = ReceivePayloads::new(StoreLimits::default());
            let mut came = vec![false; 220];
            for (from, bytes) in &pieces {
                offer(&mut store, span(0, *from, *bytes as usize), 220);
                came[*from as usize..(from + bytes) as usize].fill(true);
            }
            let payload = store.take(0, 220).unwrap();
            prop_assert_eq!(payload.length % 65_536, 220);
            for (at, came) in came.iter().enumerate() {
                prop_assert_eq!(payload.missing.iter().any(|hole| hole.contains(&(at as u64))), !came);
                prop_assert_eq!(payload.bytes.get(at).copied().unwrap_or(0), if *came { 7 } else { 0 });
            }
        }
    }
}
