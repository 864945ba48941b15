//! The contents of the next data shipment: retransmissions first unless it is the turn of new data, oldest segment first; then new units, for
//! which the streams are served by deficit round robin.
//!
//! Called by the half when the pacer permits a shipment. Invariant: a shipment carries at most B consecutive and at most E units of one
//! window of a partially tolerant segment, so that the loss of one datagram cannot violate a tolerance.

use super::SendHalf;
use super::segment::SendSegment;
use segstream_base::codec::varint_len;
use segstream_base::{Instant, Position, Run, SegmentNumber, ShipmentNumber, StreamId};
use segstream_wire::Part;
use segstream_wire::contract::{time_len, tolerance_len};

/// Datagrams' worth of bytes a stream of weight 1 may send before the next one's turn.
const TURN_DATAGRAMS: u64 = 8;

impl SendHalf {
    /// Whether anything could leave but for the pacer.
    pub(super) const fn has_eligible(&self) -> bool {
        self.stream_counts.eligible > 0
    }

    /// Fills one shipment with parts; returns the bytes of its body.
    pub(super) fn fill(&mut self, now: Instant, number: ShipmentNumber, parts: &mut Vec<Part>) -> usize {
        let mut used = 0;
        if self.stream_counts.retransmit > 0 {
            for place in 0..self.streams.len() {
                while self.streams[place].retransmissions.total > 0 && self.take_retransmission(now, place, number, parts, &mut used) {}
            }
        }
        self.fill_new(now, number, parts, used)
    }

    /// Fills what is left of one shipment, of which `used` bytes are, with parts of new data; returns the bytes of its body.
    pub(super) fn fill_new(&mut self, now: Instant, number: ShipmentNumber, parts: &mut Vec<Part>, mut used: usize) -> usize {
        while let Some(place) = self.next_turn() {
            if !self.take_first_time(now, place, number, parts, &mut used) {
                break;
            }
            // Why: mostly one unit fills a shipment and one stream sends, so a second look finds nothing.
            if self.streams.len() == 1 && !self.streams[0].next_fits(self.path.pmtu.data_bytes - used) {
                break;
            }
        }
        let mut changed: Option<StreamId> = None;
        for part in parts.iter() {
            // Why: in the middle of a whole segment one more unit changes nothing but the count.
            if self.streams.get(part.stream).is_some_and(|stream| !stream.is_within_whole(part)) {
                // Why not at once: mostly one stream fills a shipment.
                let before = changed.replace(part.stream).filter(|before| *before != part.stream);
                before.into_iter().for_each(|before| self.refresh(before));
            }
        }
        changed.into_iter().for_each(|last| self.refresh(last));
        used
    }

    /// The place of the stream whose turn it is among those with new data.
    fn next_turn(&mut self) -> Option<usize> {
        let (flow, count) = (self.config.class.flow_control(), self.streams.len());
        if count == 1 {
            return self.streams[0].first_time_ready(flow).then_some(0);
        }
        for _ in 0..=count {
            let turn = self.turn;
            if turn >= count {
                return None;
            }
            let stream = &mut self.streams[turn];
            if stream.first_time_ready(flow) {
                if stream.credit > 0 {
                    return Some(turn);
                }
                stream.credit = u64::from(stream.contract.weight) * TURN_DATAGRAMS * self.path.pmtu.data_bytes as u64;
            } else {
                stream.credit = 0;
            }
            self.turn = (turn + 1) % count;
        }
        // Every stream with data has just been given new credit.
        let turn = (0..count).map(|step| (self.turn + step) % count).find(|&place| self.streams[place].first_time_ready(flow))?;
        self.turn = turn;
        Some(turn)
    }

    /// Adds one run of pending retransmissions. False when nothing more fits.
    fn take_retransmission(&mut self, now: Instant, place: usize, number: ShipmentNumber, parts: &mut Vec<Part>, used: &mut usize) -> bool {
        let room = self.path.pmtu.data_bytes - *used;
        let id = self.streams.number(place);
        let Some(segment_number) = self.streams[place].oldest_retransmission() else { return false };
        let Some(segment) = self.streams[place].segments.get(segment_number) else { return false };
        if segment.tolerance.in_force.is_partial() && parts.iter().any(|part| part.stream == id && part.segment == segment_number) {
            return false;
        }
        let Some(positions) = segment.retransmission_run(segment.tolerance.per_shipment) else { return false };
        let Some(run) = NextPart::fitting(id, segment_number, segment, positions, true, room) else { return false };
        parts.push(run.part(id, segment_number, segment));
        let first_repair = u64::from(!segment.retransmissions.repaired);
        self.counters.segments_repaired += first_repair;
        self.counters.units_retransmitted += u64::from(run.count);
        let stream = &mut self.streams[place];
        stream.retransmissions.total -= run.count;
        stream.counters.segments_repaired += first_repair;
        stream.counters.units_retransmitted += u64::from(run.count);
        stream.counters.units_sent += u64::from(run.count);
        if let Some(segment) = stream.segments.get_mut(segment_number) {
            segment.on_sent(now, run.first, run.count, number);
        }
        self.counters.units_sent += u64::from(run.count);
        self.counters.payload_bytes += u64::from(run.payload_bytes);
        *used += run.length;
        true
    }

    /// Adds a run of new units of the stream's present segment. False when nothing more fits.
    fn take_first_time(&mut self, now: Instant, place: usize, number: ShipmentNumber, parts: &mut Vec<Part>, used: &mut usize) -> bool {
        let room = self.path.pmtu.data_bytes - *used;
        self.plan_if_first(now, place);
        let stream = &self.streams[place];
        let id = self.streams.number(place);
        let current = stream.current;
        let Some(segment) = stream.segments.get(current) else { return false };
        if segment.tolerance.in_force.is_partial() && parts.iter().any(|part| part.stream == id && part.segment == current) {
            return false;
        }
        let Some(run) = self.first_time_run(place, segment, room) else { return false };
        parts.push(run.part(id, current, segment));
        let stream = &mut self.streams[place];
        stream.credit = stream.credit.saturating_sub(run.length as u64);
        stream.on_first_time(now, run.count, number);
        let over = stream.current > current;
        self.counters.units_sent += u64::from(run.count);
        self.counters.payload_bytes += u64::from(run.payload_bytes);
        *used += run.length;
        if over {
            self.release_planned(now, place, current);
        }
        true
    }

    /// The new units of `segment`, the present one of the stream at `place`, that fit `room`; `None` when there are none.
    #[inline]
    fn first_time_run(&self, place: usize, segment: &SendSegment, room: usize) -> Option<NextPart> {
        let stream = &self.streams[place];
        let mut most = (segment.ready() - segment.sent.next).min(segment.tolerance.per_shipment);
        if segment.layout.units.is_none() && self.config.class.flow_control() {
            most = most.min(stream.window.open_room(segment));
        }
        let positions = Run::new(segment.sent.next, segment.sent.next + most)?;
        NextPart::fitting(self.streams.number(place), stream.current, segment, positions, false, room)
    }

    /// The part behind `part` is what the next shipment would contain if that was decided anew.
    pub(super) fn debug_assert_chosen(&self, part: &Part) {
        let chosen = || {
            let segment = self.streams[0].segments.get(part.segment)?;
            Some(self.first_time_run(0, segment, self.path.pmtu.data_bytes)?.part(part.stream, part.segment, segment))
        };
        let is_ready = || self.streams[0].first_time_ready(self.config.class.flow_control());
        debug_assert!(is_ready() && chosen() == Some(Part { first: part.end(), ..*part }), "{part:?} is not continued by {:?}", chosen());
    }

    /// Fixes the code of a segment that begins.
    fn plan_if_first(&mut self, now: Instant, place: usize) {
        let stream = &self.streams[place];
        let current = stream.current;
        if stream.coding_target.is_some() && stream.segments.get(current).is_some_and(|segment| segment.sent.next == Position::FIRST) {
            self.plan_code(now, place, current);
        }
    }
}

/// Whether `room` bytes hold no more than one unit of `unit_bytes`, whatever their header takes.
pub(super) const fn holds_one(room: usize, unit_bytes: u32) -> bool {
    room / 2 < unit_bytes as usize
}

/// The positions of one part, and what it takes.
#[derive(Clone, Copy)]
struct NextPart {
    first: Position,
    count: u32,
    retransmission: bool,
    payload_bytes: u32,
    /// The whole part in bytes.
    length: usize,
}

impl NextPart {
    /// As many units from the first of `positions` on as fit `room`; `None` when not even one fits.
    #[inline]
    fn fitting(
        id: StreamId,
        number: SegmentNumber,
        segment: &SendSegment,
        positions: Run<Position>,
        retransmission: bool,
        room: usize,
    ) -> Option<Self> {
        let (first, most) = (positions.start(), positions.len());
        let single = segment.layout.payload_bytes(first, 1);
        if room <= single as usize {
            return None;
        }
        // Everything of the header but the lengths of count and payload.
        let fixed = 1
            + varint_len(u64::from(id))
            + varint_len(number.0)
            + varint_len(u64::from(first))
            + time_len(segment.source_time)
            + Self::length_told(segment, retransmission).map_or(0, varint_len)
            + segment.tolerance.own.map_or(0, tolerance_len);
        let unit = segment.layout.unit_bytes;
        let count = if most == 1 || holds_one(room, unit) {
            // Why: mostly there is room for one unit, and a division costs as much as all the rest.
            1
        } else {
            let bound = fixed + varint_len(u64::from(most)) + varint_len(u64::from(u16::MAX));
            let rest = u32::try_from(room.saturating_sub(bound)).unwrap_or(u32::MAX);
            // A short last unit may fit where a full one does not.
            most.min(rest / unit).max(1)
        };
        let payload_bytes = if count == 1 { single } else { segment.layout.payload_bytes(first, count) };
        let length = fixed + varint_len(u64::from(count)) + varint_len(u64::from(payload_bytes)) + payload_bytes as usize;
        (length <= room).then_some(Self { first, count, retransmission, payload_bytes, length })
    }

    /// A repair tells the length only once all of the segment has been counted against the window.
    fn length_told(segment: &SendSegment, retransmission: bool) -> Option<u64> {
        segment.layout.length.filter(|_| !retransmission || segment.is_counted())
    }

    #[inline]
    fn part(&self, id: StreamId, number: SegmentNumber, segment: &SendSegment) -> Part {
        let part = Part {
            stream: id,
            segment: number,
            first: self.first,
            count: self.count,
            retransmission: self.retransmission,
            opened: segment.opened,
            length: Self::length_told(segment, self.retransmission),
            tolerance: segment.tolerance.own,
            source_time: segment.source_time,
            payload_bytes: self.payload_bytes,
        };
        debug_assert_eq!(self.length, part.encoded_len());
        part
    }
}
