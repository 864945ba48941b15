//! Continuation: data shipments that differ from the one before them only in where their units lie.
//!
//! Called by the half for every shipment of data, and by [`super::gso_batch`]. At high rates most shipments carry new units in the middle of a
//! long segment. How many of them are alike is calculated once, behind the first.
//!
//! Invariant: a continuation has the part that [`SendHalf::fill`] would have chosen at the same time. What else is due leaves first.

use super::SendHalf;
use super::schedule::holds_one;
use super::segment::SendSegment;
use segstream_base::codec::varint_len;
use segstream_base::{Instant, Position, ShipmentNumber};
use segstream_wire::Part;

/// What is known of the shipments behind the last one.
#[derive(Debug, Default)]
pub(super) struct Continuation {
    /// The part of the last one, and the bytes of its body.
    part: Part,
    body_bytes: usize,
    /// How many behind it are alike.
    left: u32,
    /// The room in a shipment that this was calculated for.
    room: usize,
}

impl SendHalf {
    /// A shipment with `parts`, in a body of `body_bytes`, has been decided: what may follow it.
    #[inline]
    pub(super) fn note_contents(&mut self, parts: &[Part], body_bytes: usize) {
        self.continuation.left = 0;
        // Why one stream: with several each shipment may be another one's turn. Why not the first part: code and window are decided with it.
        if let [part] = parts
            && !part.retransmission
            && part.first > Position::FIRST
            && self.streams.len() == 1
        {
            let (stream, room) = (&self.streams[0], self.path.pmtu.data_bytes);
            let segment = stream.segments.get(part.segment).filter(|_| stream.current == part.segment);
            let left = segment.map_or(0, |segment| alike(segment, part, room));
            if left > 0 {
                self.continuation = Continuation { part: *part, body_bytes, left, room };
            }
        }
    }

    /// How many shipments that continue the last one may follow it, and the bytes of the body of each; `None` if the next one is to be decided.
    #[inline]
    pub(super) fn continuations(&self) -> Option<(u32, usize)> {
        let Continuation { ref part, body_bytes, left, room } = self.continuation;
        let has_others = self.stream_counts.retransmit > 0 || self.coding.turns_left > 0 || self.streams.len() != 1;
        if left == 0 || has_others || room != self.path.pmtu.data_bytes {
            return None;
        }
        let stream = &self.streams[0];
        let segment = stream.segments.get(part.segment).filter(|_| stream.current == part.segment)?;
        (segment.sent.next == part.end() && !segment.skipped).then_some((left, body_bytes))
    }

    /// `count` shipments that continue the last one leave, numbered from `first` on. Returns the part of the last of them.
    #[inline]
    pub(super) fn continue_with(&mut self, now: Instant, first: ShipmentNumber, count: u32) -> Part {
        self.debug_assert_chosen(&self.continuation.part);
        let Continuation { part, body_bytes, left, .. } = &mut self.continuation;
        let units = part.count * count;
        part.first += units;
        *left -= count;
        let (part, body_bytes) = (*part, *body_bytes);
        debug_assert_eq!(part.encoded_len(), body_bytes, "not all are alike");
        let stream = &mut self.streams[0];
        if let Some(segment) = stream.segments.get_mut(part.segment) {
            for number in first.onward().take(count as usize) {
                segment.on_sent(now, segment.sent.next, part.count, number);
            }
        }
        stream.credit = stream.credit.saturating_sub(body_bytes as u64 * u64::from(count));
        stream.counters.units_sent += u64::from(units);
        self.counters.units_sent += u64::from(units);
        self.counters.payload_bytes += u64::from(part.payload_bytes) * u64::from(count);
        part
    }
}

/// How many shipments behind that of `part` look like it, with `room` bytes for parts in each: as many full units with a full one behind them, and
/// headers of the same length.
fn alike(segment: &SendSegment, part: &Part, room: usize) -> u32 {
    let (Some(units), Some(length)) = (segment.layout.units, segment.layout.length) else { return 0 };
    // Why: interleaved, a short last unit may be anywhere.
    if !segment.layout.order.is_in_order() && length % u64::from(segment.layout.unit_bytes) != 0 {
        return 0;
    }
    if segment.skipped || segment.sent.next != part.end() || part.payload_bytes != part.count * segment.layout.unit_bytes {
        return 0;
    }
    // Why: of an open segment the rest is counted against the window with the first shipment that tells its length.
    if !segment.is_counted() {
        return 0;
    }
    let end = match varint_len(u64::from(part.first)) {
        1 => 1 << 6,
        2 => 1 << 14,
        4 => 1 << 30,
        _ => return 0,
    };
    // Why all but two: the last may be so short that it fits in beside those before it.
    let left = units.saturating_sub(2).saturating_sub(segment.sent.next.0) / part.count;
    let same_length = u32::div_ceil(end - part.first.0, part.count) - 1;
    left.min(same_length).min(same_count(segment, part, room))
}

/// How many shipments behind that of `part` carry as many units as it does, other things being equal: the schedule leaves room for the length of
/// the number of units left, and one unit more may fit where that is shorter.
fn same_count(segment: &SendSegment, part: &Part, room: usize) -> u32 {
    let (next, units) = (segment.sent.next.0, segment.units());
    let least = match varint_len(u64::from((units - part.first.0).min(segment.tolerance.per_shipment))) {
        1 => return u32::MAX,
        2 => 1 << 6,
        4 => 1 << 14,
        _ => 1 << 30,
    };
    if holds_one(room, segment.layout.unit_bytes) {
        return u32::MAX;
    }
    // Of the k-th behind it at most `units - next - (k - 1) * count` are left.
    (units - next).checked_sub(least).map_or(0, |more| more / part.count + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::ShipmentCounter;
    use crate::rate::Rate;
    use crate::sender::{Outgoing, SenderConfig};
    use segstream_base::{Duration, ReportNumber, Run, SegmentNumber, StreamId, Tolerance};
    use segstream_wire::report::Report;
    use segstream_wire::{Class, Contract, ReportFrame};

    const NOW: Instant = Instant::from_nanos(1_000_000);

    fn half() -> SendHalf {
        let config = SenderConfig {
            class: Class::ALL,
            body_bytes: 1100,
            overhead_bytes: 40,
            rate: Rate::Unpaced,
            epoch: Duration::ZERO,
            circuit_breaker: false,
            pacing_quantum: Duration::ZERO,
            keep_alive: Duration::from_secs(1),
        };
        SendHalf::new(config, Instant::ZERO)
    }

    fn open(half: &mut SendHalf) -> StreamId {
        open_with(half, Contract { unit_bytes: 1000, ..Contract::default() })
    }

    fn open_with(half: &mut SendHalf, contract: Contract) -> StreamId {
        let stream = half.open_stream(NOW, contract).unwrap();
        told(half, 0, None, ReportFrame::Grant { stream, segments: 9, units: 4096, end_known: false });
        stream
    }

    fn told(half: &mut SendHalf, number: u64, echo: Option<ShipmentNumber>, frame: ReportFrame) {
        let frames = core::iter::once(frame).collect();
        half.handle_report(NOW, &Report { number: ReportNumber(number), echo, frames, ..Report::default() });
    }

    /// The part that leaves next, and whether it was decided before.
    fn next(half: &mut SendHalf, counter: &mut ShipmentCounter) -> (Part, bool) {
        loop {
            let (mut parts, continues) = (Vec::new(), half.continuations().is_some());
            let (_, outgoing) = half.poll_transmit(NOW, counter, &mut parts).unwrap();
            if matches!(outgoing, Outgoing::Data { .. }) {
                return (parts[0], continues);
            }
        }
    }

    #[test]
    fn what_is_alike_is_decided_once_and_everything_else_is_decided_anew() {
        let (mut half, mut counter) = (half(), ShipmentCounter::default());
        let stream = open(&mut half);
        // 100 units: positions from 64 on take a byte more, and the last is short.
        half.submit(NOW, stream, Some(99_500), NOW, None).unwrap();
        let parts: Vec<(Part, bool)> = (0..100).map(|_| next(&mut half, &mut counter)).collect();
        assert!(parts.iter().enumerate().all(|(at, (part, _))| (part.first.0, part.count) == (at as u32, 1)));
        let decided: Vec<u32> = parts.iter().filter(|(_, continues)| !continues).map(|(part, _)| part.first.0).collect();
        assert_eq!(decided, [0, 1, 64, 98, 99]);
    }

    /// The same segment, decided part by part, and as it leaves.
    #[test]
    fn with_units_of_any_size_each_shipment_carries_what_it_would_if_it_was_decided_anew() {
        let tolerances = [Contract::default().tolerance, Tolerance::new(16, 4, 2).unwrap(), Tolerance::new(200, 9, 1).unwrap()];
        for (unit_bytes, tolerance, short) in (20..550).flat_map(|bytes| tolerances.map(|tolerance| (bytes, tolerance, bytes % 2))) {
            let run = |forgets: bool| {
                let (mut half, mut counter) = (half(), ShipmentCounter::default());
                let stream = open_with(&mut half, Contract { unit_bytes, tolerance, ..Contract::default() });
                half.submit(NOW, stream, Some(200 * u64::from(unit_bytes) - u64::from(short)), NOW, None).unwrap();
                let mut parts = Vec::new();
                while parts.last().is_none_or(|part: &Part| part.end() < Position(200)) {
                    if forgets {
                        half.continuation.left = 0;
                    }
                    parts.push(next(&mut half, &mut counter).0);
                }
                parts
            };
            assert_eq!(run(false), run(true), "units of {unit_bytes} bytes, {tolerance}");
        }
    }

    #[test]
    fn a_request_another_stream_and_a_larger_datagram_end_it() {
        let (mut half, mut counter) = (half(), ShipmentCounter::default());
        let stream = open(&mut half);
        half.submit(NOW, stream, Some(60_000), NOW, None).unwrap();
        assert!((0..6).map(|_| next(&mut half, &mut counter).1).eq([false, false, true, true, true, true]));
        let missing = core::iter::once(Run::new(Position(0), Position(1)).unwrap()).collect();
        let echo = ShipmentNumber(counter.peek().0 - 1);
        told(
            &mut half,
            1,
            Some(echo),
            ReportFrame::Request { stream, segment: SegmentNumber(0), missing, tail_from: None, length_wanted: false },
        );
        let (again, continues) = next(&mut half, &mut counter);
        assert_eq!((again.first, again.retransmission, continues), (Position(0), true, false));
        assert_eq!((next(&mut half, &mut counter).1, next(&mut half, &mut counter).1), (false, true), "new data goes on");
        half.path.pmtu.data_bytes = 2100;
        let (two, continues) = next(&mut half, &mut counter);
        assert_eq!((two.count, continues, next(&mut half, &mut counter).1), (2, false, true), "two units fit");
        open(&mut half);
        assert!(!next(&mut half, &mut counter).1);
    }
}
