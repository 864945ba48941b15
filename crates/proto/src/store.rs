//! The packet store: the payload bytes that the halves only refer to (HT 3.2).
//!
//! Owned by the connection. A byte is copied once on each side: from the application's segment into the
//! datagram, and from the datagram into the segment handed to the application.
//!
//! Invariant: the sender keeps the bytes of segments without a verdict, the receiver those of segments
//! the application has not taken; both are bounded by the window (see [`crate::sender`] and
//! [`crate::receiver`]).

use crate::coding::{HeldRepairs, RepairUnits, Restorable};
use crate::layout::Layout;
use crate::live_streams::LiveStreams;
use crate::receiver::Recovery;
pub use crate::segment_buffers::RECYCLED_BYTES_MIN;
use crate::segment_buffers::SegmentBuffers;
use bytes::Bytes;
use core::ops::Range;
use segstream_base::{Run, SegmentNumber, StreamId, UnitIndex};
use segstream_blocks::fence::Fence;
use segstream_wire::repair::repair_unit_bytes;
use segstream_wire::{Part, Repair};
use std::collections::{BTreeMap, VecDeque};

/// The fewest protected units of which the repair units are kept. Why not of fewer: they have more repair units than they are (eight at least),
/// and are quickly encoded again.
const KEPT_UNITS_MIN: u32 = 8;

/// The bytes of one outgoing segment.
#[derive(Debug)]
enum Outgoing {
    Whole(Bytes),
    Open(Vec<u8>),
    Gone,
}

impl Outgoing {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Whole(bytes) => bytes,
            Self::Open(bytes) => bytes,
            Self::Gone => &[],
        }
    }
}

/// A queue addressed by number, whose front has number `base`.
#[derive(Debug)]
struct Numbered<T> {
    base: SegmentNumber,
    items: VecDeque<T>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self { base: SegmentNumber::FIRST, items: VecDeque::new() }
    }
}

impl<T> Numbered<T> {
    fn get_mut(&mut self, number: SegmentNumber) -> Option<&mut T> {
        self.items.get_mut(number.place_from(self.base)?)
    }

    fn get(&self, number: SegmentNumber) -> Option<&T> {
        self.items.get(number.place_from(self.base)?)
    }

    fn drop_front_while(&mut self, gone: impl Fn(&T) -> bool) {
        while self.items.front().is_some_and(&gone) {
            self.items.pop_front();
            self.base += 1;
        }
    }
}

/// The payload of outgoing segments.
#[derive(Debug, Default)]
pub struct SendStore {
    streams: LiveStreams<Numbered<Outgoing>>,
    /// The repair units of segments that were asked for again.
    repairs: BTreeMap<(StreamId, SegmentNumber), RepairUnits>,
}

impl SendStore {
    /// Keeps the bytes of the next whole segment of `stream`.
    pub fn push(&mut self, stream: StreamId, bytes: Bytes) {
        self.stream(stream).items.push_back(Outgoing::Whole(bytes));
    }

    /// Keeps room for an open segment.
    pub fn open(&mut self, stream: StreamId) {
        self.stream(stream).items.push_back(Outgoing::Open(Vec::new()));
    }

    /// Appends to the open segment, the newest of the stream.
    pub fn append(&mut self, stream: StreamId, bytes: &[u8]) {
        if let Some(Outgoing::Open(open)) = self.stream(stream).items.back_mut() {
            open.extend_from_slice(bytes);
        }
    }

    /// Removes segments that have their verdicts.
    pub fn remove(&mut self, stream: StreamId, segments: Range<SegmentNumber>) {
        while let Some((&place, _)) = self.repairs.range((stream, segments.start)..(stream, segments.end)).next() {
            self.repairs.remove(&place);
        }
        let Some(stream) = self.streams.get_mut(stream) else { return };
        for segment in segments.start.up_to(segments.end) {
            if let Some(kept) = stream.get_mut(segment) {
                *kept = Outgoing::Gone;
            }
        }
        stream.drop_front_while(|kept| matches!(kept, Outgoing::Gone));
    }

    /// Bytes kept for all streams.
    pub fn kept_bytes(&self) -> u64 {
        let segments: u64 = self.streams.iter().flat_map(|stream| &stream.items).map(|kept| kept.bytes().len() as u64).sum();
        segments + self.repairs.values().map(RepairUnits::kept_bytes).sum::<u64>()
    }

    /// Appends the payload of repair units over the `fence` of a segment to `out`; zeros where bytes are missing, which only a caller's
    /// mistake can cause.
    pub(crate) fn append_repairs(&mut self, repair: &Repair, layout: &Layout, fence: Fence, out: &mut Vec<u8>) {
        let place = (repair.stream, repair.segment);
        let end = out.len() + repair.payload_bytes as usize;
        if layout.units.is_some_and(|units| fence.count(units) < KEPT_UNITS_MIN) {
            let kept = self.streams.get(repair.stream).and_then(|stream| stream.get(repair.segment));
            if let Some(encoded) = RepairUnits::encode(layout, fence, kept.map_or(&[][..], Outgoing::bytes)) {
                out.extend_from_slice(encoded.run(repair.first, repair.count));
            }
            out.resize(end, 0);
            return;
        }
        if !self.repairs.contains_key(&place) {
            let kept = self.streams.get(repair.stream).and_then(|stream| stream.get(repair.segment));
            let encoded = RepairUnits::encode(layout, fence, kept.map_or(&[][..], Outgoing::bytes));
            self.repairs.extend(encoded.map(|encoded| (place, encoded)));
        }
        if let Some(encoded) = self.repairs.get(&place) {
            out.extend_from_slice(encoded.run(repair.first, repair.count));
        }
        out.resize(end, 0);
    }

    /// Appends the payload of `part` to `out`; zeros where bytes are missing, which only a caller's mistake can cause.
    #[inline]
    pub fn append_to(&self, part: &Part, layout: &Layout, out: &mut Vec<u8>) {
        let stream = self.streams.get(part.stream);
        let bytes = stream.and_then(|stream| stream.get(part.segment)).map_or(&[][..], Outgoing::bytes);
        let unit_bytes = layout.unit_bytes as usize;
        if layout.order.is_in_order() {
            append(out, bytes, part.first.0 as usize * unit_bytes, part.payload_bytes as usize);
            return;
        }
        let end = out.len() + part.payload_bytes as usize;
        for unit in layout.units_at(part.first, part.count) {
            append(out, bytes, unit.0 as usize * unit_bytes, layout.bytes_of(unit) as usize);
        }
        out.resize(end, 0);
    }

    fn stream(&mut self, stream: StreamId) -> &mut Numbered<Outgoing> {
        self.streams.get_or_insert(stream)
    }

    /// Removes all streams for which `keep` is false.
    pub fn retain(&mut self, keep: impl Fn(StreamId) -> bool) {
        self.repairs.retain(|&(stream, _), _| keep(stream));
        self.streams.retain(|stream, _| keep(stream));
    }
}

/// Appends `count` of `bytes` from `start` on.
fn append(out: &mut Vec<u8>, bytes: &[u8], start: usize, count: usize) {
    let end = out.len() + count;
    let rest = bytes.get(start..).unwrap_or(&[]);
    out.extend_from_slice(&rest[..rest.len().min(count)]);
    out.resize(end, 0);
}

/// The payload of incoming segments.
#[derive(Debug)]
pub struct RecvStore {
    streams: LiveStreams<Numbered<Option<Vec<u8>>>>,
    buffers: SegmentBuffers,
    /// Repair units of segments that are not restored yet, by their numbers.
    repairs: BTreeMap<(StreamId, SegmentNumber), HeldRepairs>,
    /// What the buffers of segments take, and what they and the spare ones may take, in bytes.
    in_use: u64,
    granted: u64,
}

impl Default for RecvStore {
    fn default() -> Self {
        Self { streams: LiveStreams::default(), buffers: SegmentBuffers::default(), repairs: BTreeMap::new(), in_use: 0, granted: u64::MAX }
    }
}

impl RecvStore {
    /// The windows of all streams together have so many bytes from now on. Without this call there is no bound but the windows themselves.
    pub fn set_granted(&mut self, bytes: u64) {
        self.granted = bytes;
        self.buffers.set_room(usize::try_from(bytes.saturating_sub(self.in_use)).unwrap_or(usize::MAX));
    }

    /// Keeps the payload of a part that the half has called fresh, in pieces of whole units. Units of an unknown length extend
    /// the segment.
    #[inline]
    pub fn write<'a>(&mut self, part: &Part, layout: &Layout, payloads: impl IntoIterator<Item = &'a [u8]>) {
        let Some(buffer) = buffer(&mut self.streams, part.stream, part.segment) else { return };
        let before = buffer.capacity();
        let room = usize::try_from(self.granted.saturating_sub(self.in_use)).unwrap_or(usize::MAX);
        make_room(buffer, part, layout, &self.buffers, room);
        fill(buffer, part, layout, payloads);
        self.in_use += (buffer.capacity() - before) as u64;
    }

    /// Keeps repair units that the half has called fresh.
    pub(crate) fn keep_repairs(&mut self, repair: &Repair, payload: &[u8]) {
        let kept = self.repairs.entry((repair.stream, repair.segment)).or_default();
        let unit_bytes = payload.len() / repair.count.max(1) as usize;
        for (number, unit) in (repair.first..).zip(payload.chunks_exact(unit_bytes.max(1))) {
            if kept.iter().all(|(held, _)| *held != number) {
                kept.push((number, unit.into()));
            }
        }
    }

    /// Restores the missing units of a segment by its repair units, which are forgotten. Whether that was possible.
    pub(crate) fn restore(&mut self, stream: StreamId, segment: SegmentNumber, recovery: &Recovery) -> bool {
        let Some(repairs) = self.repairs.remove(&(stream, segment)) else { return false };
        let Recovery { layout, fence, missing } = recovery;
        let Some(buffer) = buffer(&mut self.streams, stream, segment) else { return false };
        let before = buffer.capacity();
        let room = usize::try_from(self.granted.saturating_sub(self.in_use)).unwrap_or(usize::MAX);
        make_room(buffer, &Part::default(), layout, &self.buffers, room);
        self.in_use += (buffer.capacity() - before) as u64;
        debug_assert!(repairs.iter().all(|(_, unit)| unit.len() == repair_unit_bytes(layout.unit_bytes) as usize));
        Restorable { layout, fence: *fence, missing, repairs: &repairs }.restore(buffer).is_some()
    }

    /// Takes the bytes of a segment, of `length` bytes, with zeros where `holes` (runs of units of `unit_bytes`) say that
    /// nothing came.
    pub fn take(&mut self, stream: StreamId, segment: SegmentNumber, length: u64, holes: &[Run<UnitIndex>], unit_bytes: u32) -> Bytes {
        let mut bytes = buffer(&mut self.streams, stream, segment).map(core::mem::take).unwrap_or_default();
        self.in_use -= bytes.capacity() as u64;
        self.repairs.remove(&(stream, segment));
        match bytes.is_empty() {
            // Why: fresh zeros come from the system already zeroed.
            true => bytes = vec![0; length as usize],
            false => bytes.resize(length as usize, 0),
        }
        // Invariant: a buffer that was used before shows nothing of the segment that was in it.
        for hole in holes {
            let missing = hole.byte_range(unit_bytes, bytes.len() as u64);
            bytes[missing.start as usize..missing.end as usize].fill(0);
        }
        if let Some(stream) = self.streams.get_mut(stream) {
            if let Some(kept) = stream.get_mut(segment) {
                *kept = None;
            }
            stream.drop_front_while(Option::is_none);
        }
        self.buffers.lend(bytes)
    }

    /// Discards the bytes of an evicted segment; if it is taken later, all of it is zero.
    pub fn empty(&mut self, stream: StreamId, segment: SegmentNumber) {
        self.repairs.remove(&(stream, segment));
        if let Some(buffer) = buffer(&mut self.streams, stream, segment) {
            self.in_use -= core::mem::take(buffer).capacity() as u64;
        }
    }

    /// Removes all streams for which `keep` is false.
    pub fn retain(&mut self, keep: impl Fn(StreamId) -> bool) {
        let in_use = &mut self.in_use;
        self.repairs.retain(|&(stream, _), _| keep(stream));
        self.streams.retain(|stream, segments| {
            let keeps = keep(stream);
            if !keeps {
                *in_use -= segments.items.iter().flatten().map(|kept| kept.capacity() as u64).sum::<u64>();
            }
            keeps
        });
    }

    /// Bytes kept for all streams.
    pub fn kept_bytes(&self) -> u64 {
        let repairs = self.repairs.values().flatten().map(|(_, unit)| unit.len() as u64).sum::<u64>();
        repairs + self.streams.iter().flat_map(|stream| &stream.items).flatten().map(|kept| kept.capacity() as u64).sum::<u64>()
    }

    /// Bytes of spare buffers, and of the places of segments.
    pub(crate) fn spare_bytes(&self) -> u64 {
        let places: usize = self.streams.iter().map(|stream| stream.items.capacity() * size_of::<Option<Vec<u8>>>()).sum();
        (self.buffers.spare_bytes() + places) as u64
    }

    /// What is there of a segment so far; bytes of units that are missing mean nothing.
    pub fn peek(&self, stream: StreamId, segment: SegmentNumber) -> &[u8] {
        self.streams.get(stream).and_then(|stream| stream.get(segment)).and_then(Option::as_deref).unwrap_or(&[])
    }
}

fn buffer(streams: &mut LiveStreams<Numbered<Option<Vec<u8>>>>, stream: StreamId, segment: SegmentNumber) -> Option<&mut Vec<u8>> {
    let stream = streams.get_or_insert(stream);
    while segment >= stream.base + stream.items.len() as u64 {
        stream.items.push_back(Some(Vec::new()));
    }
    stream.get_mut(segment)?.as_mut()
}

/// Makes room for a part of the segment in `buffer`, where `room` bytes are left for all that are in use.
#[inline]
fn make_room(buffer: &mut Vec<u8>, part: &Part, layout: &Layout, buffers: &SegmentBuffers, room: usize) {
    match layout.length {
        Some(length) if buffer.len() as u64 == length => {}
        // Why: what one part fills from start to end needs no zeros first, and many segments are that small.
        Some(length) if buffer.is_empty() && fills(part, layout) && (length as usize) < RECYCLED_BYTES_MIN => {
            buffer.reserve_exact(length as usize);
        }
        Some(length) if buffer.is_empty() => *buffer = buffers.take(length as usize, room),
        Some(length) => {
            buffer.reserve_exact((length as usize).saturating_sub(buffer.len()));
            buffer.resize(length as usize, 0);
        }
        None => {
            let (end, capacity) = ((layout.counted(part.end()) * u64::from(layout.unit_bytes)) as usize, buffer.capacity());
            if end > capacity && capacity.max(end - capacity) > room {
                // Why: it would grow by doubling, and all of it counts.
                buffer.reserve_exact(end - buffer.len());
            }
        }
    }
}

/// Whether the part has the whole segment, its first byte first.
fn fills(part: &Part, layout: &Layout) -> bool {
    layout.units == Some(part.count) && layout.order.is_in_order()
}

/// Puts the payload of a part into the buffer of its segment, in pieces of whole units.
#[inline]
fn fill<'a>(buffer: &mut Vec<u8>, part: &Part, layout: &Layout, payloads: impl IntoIterator<Item = &'a [u8]>) {
    let unit_bytes = layout.unit_bytes as usize;
    if layout.order.is_in_order() {
        let mut start = part.first.0 as usize * unit_bytes;
        for payload in payloads {
            place(buffer, start, payload, layout.length.is_none());
            start += payload.len();
        }
        return;
    }
    let (mut payloads, mut rest) = (payloads.into_iter(), &[][..]);
    for unit in layout.units_at(part.first, part.count) {
        if rest.is_empty() {
            rest = payloads.next().unwrap_or_default();
        }
        let (bytes, after) = rest.split_at(rest.len().min(layout.bytes_of(unit) as usize));
        place(buffer, unit.0 as usize * unit_bytes, bytes, layout.length.is_none());
        rest = after;
    }
}

fn place(buffer: &mut Vec<u8>, start: usize, bytes: &[u8], may_grow: bool) {
    let end = start + bytes.len();
    if start == buffer.len() && (may_grow || end <= buffer.capacity()) {
        buffer.extend_from_slice(bytes);
        return;
    }
    if may_grow && buffer.len() < end {
        buffer.resize(end, 0);
    }
    if let Some(room) = buffer.get_mut(start..end) {
        room.copy_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use segstream_base::{Position, Tolerance};
    use segstream_wire::Contract;

    #[test]
    fn bytes_come_back_in_their_place_in_order_and_interleaved_in_one_part_and_in_several() {
        let source: Vec<u8> = (0..155).collect();
        let (reliable, spread) = (Tolerance::reliable(16), Tolerance::new(16, 4, 1).unwrap());
        for (tolerance, count) in [(reliable, 16), (reliable, 4), (spread, 16), (spread, 4)] {
            let contract = Contract { unit_bytes: 10, tolerance, ..Contract::default() };
            let layout = Layout::new(&contract, tolerance, false, Some(155));
            assert_eq!(layout.order.is_in_order(), tolerance == reliable);
            let (mut sent, mut received) = (SendStore::default(), RecvStore::default());
            sent.push(StreamId(0), Bytes::from(source.clone()));
            for first in (0..16).step_by(count as usize).map(Position) {
                let payload_bytes = layout.payload_bytes(first, count);
                let part = Part { first, count, length: Some(155), payload_bytes, ..Part::default() };
                let mut payload = Vec::new();
                sent.append_to(&part, &layout, &mut payload);
                let piece_bytes = if tolerance == reliable { 20 } else { payload.len() };
                received.write(&part, &layout, payload.chunks(piece_bytes));
                assert_eq!(received.in_use, 155, "a segment takes what its length says from its first part on");
            }
            assert_eq!(received.take(StreamId(0), SegmentNumber(0), 155, &[], 10), source, "{tolerance:?} in parts of {count} units");
        }
    }

    #[test]
    fn what_is_forgotten_out_of_order_frees_the_front_later() {
        let mut store = SendStore::default();
        for _ in 0..3 {
            store.push(StreamId(0), Bytes::from_static(b"x"));
        }
        store.remove(StreamId(0), SegmentNumber(1)..SegmentNumber(2));
        assert_eq!(store.streams[0].items.len(), 3);
        store.remove(StreamId(0), SegmentNumber(0)..SegmentNumber(1));
        assert_eq!((store.streams[0].items.len(), store.streams[0].base), (1, SegmentNumber(2)));
    }
}
