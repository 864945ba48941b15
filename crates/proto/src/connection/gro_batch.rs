//! A GRO batch is received: successive data shipments whose parts continue each other are processed as one part.
//!
//! Called by the endpoint with datagrams that arrived together. At high rates most arrivals are new units in the middle of a long
//! segment, which need no separate checks for each shipment. The sender's counterpart is the GSO batch of [`crate::sender`].
//!
//! Invariant: after a GRO batch the state and the events of the connection are the same as if each datagram had been processed by itself
//! at the same time; only the order of events may differ: units of a run may be reported before a verdict that one of them has caused.
//! Numbers, bytes and marks are counted one by one; only the decisions about units are made once for a run of shipments with
//! consecutive numbers.

use super::Connection;
use super::receive::Shipment;
use crate::receiver::PartOutcome;
use segstream_base::codec::{Reader, varint_len};
use segstream_base::endpoint::Arrival;
use segstream_base::{Instant, ShipmentNumber};
use segstream_wire::{Kind, Level, Part};

/// The maximum number of shipments in a run, which are opened together. Their payload is read twice, to open and to copy it, and should
/// still be in the fastest cache the second time.
const RUN_MAX: usize = 16;

/// Shipments whose parts continue each other.
#[derive(Debug, Default)]
struct Run<'a> {
    /// The number of the first.
    first_number: ShipmentNumber,
    /// Their parts as one.
    part: Part,
    /// How many there are, each with as many units and bytes as the first.
    count: usize,
    payloads: [&'a [u8]; RUN_MAX],
    /// What stands in front of where the first one's units begin, and between that and its payload.
    before: &'a [u8],
    behind: &'a [u8],
    /// Units of each.
    each: u32,
}

impl<'a> Run<'a> {
    /// The payload of a shipment that continues the run: the next number, as many units of the same segment right behind those
    /// before them, and nothing else told.
    ///
    /// Why so: what stands in front of the payload is then the first one's, byte for byte, but for where the units begin; to
    /// compare costs less than to read all fields.
    #[inline]
    fn continued_by(&self, shipment: &Shipment<'a>) -> Option<&'a [u8]> {
        if self.count == 0 || self.before.is_empty() || shipment.number != self.first_number + self.count as u64 || !carries_data(shipment)
        {
            return None;
        }
        let next = self.part.end();
        let mut rest = Reader::new(shipment.body.strip_prefix(self.before)?);
        let is_next = rest.varint("first unit").ok()? == u64::from(next) && next.0.checked_add(self.each).is_some();
        let payload = rest.rest().strip_prefix(self.behind)?;
        (is_next && payload.len() == self.payloads[0].len()).then_some(payload)
    }

    /// Begins a run with a shipment, which has `part` and nothing else.
    #[inline]
    fn begin(&mut self, shipment: &Shipment<'a>, part: &Part, payload: &'a [u8]) {
        (self.first_number, self.part, self.each) = (shipment.number, *part, part.count);
        (self.payloads[0], self.count) = (payload, 1);
        let heading = &shipment.body[..shipment.body.len() - payload.len()];
        // Why: in a heading that is longer than it must be, fields lie elsewhere. Nothing continues it.
        let usual = heading.len() == part.header_len();
        let (before, first) = heading.split_at(if usual { part.first_at() } else { 0 });
        (self.before, self.behind) = (before, first.get(varint_len(u64::from(part.first))..).unwrap_or_default());
    }

    /// Adds a shipment that continues it.
    #[inline]
    fn add(&mut self, payload: &'a [u8]) {
        self.part.count += self.each;
        self.part.payload_bytes += payload.len() as u32;
        self.payloads[self.count] = payload;
        self.count += 1;
        debug_assert!(self.count <= RUN_MAX && self.part.count == self.each * self.count as u32);
    }

    fn payloads(&self) -> impl Iterator<Item = &'a [u8]> {
        self.payloads[..self.count].iter().copied()
    }

    /// The parts and their payloads, one by one.
    fn parts(&self) -> impl Iterator<Item = (Part, &'a [u8])> {
        self.payloads().zip(0..).map(|(payload, at)| {
            let one = Part { first: self.part.first + at * self.each, count: self.each, payload_bytes: payload.len() as u32, ..self.part };
            (one, payload)
        })
    }
}

impl Connection {
    /// Takes datagrams of `datagram_bytes`, the last of which may be shorter, that came together from the peer.
    pub(crate) fn handle_batch(&mut self, now: Instant, arrival: Arrival, batch: &mut [u8], datagram_bytes: usize) {
        self.trace_from(now);
        for some in batch.chunks_mut(datagram_bytes * RUN_MAX) {
            // Why all first: a seal is a long chain of steps, and those of several overlap when nothing stands between.
            let mut shipments = [None; RUN_MAX];
            for (shipment, datagram) in shipments.iter_mut().zip(some.chunks_mut(datagram_bytes)) {
                *shipment = self.open(datagram);
            }
            self.take_opened(now, arrival, &shipments);
            // Why after: those that could be opened came no later than the one that was broken once too often.
            self.close_on_aead_limit(now);
        }
    }

    /// Takes shipments that have been opened.
    fn take_opened(&mut self, now: Instant, arrival: Arrival, shipments: &[Option<Shipment<'_>>; RUN_MAX]) {
        let (mut run, mut part) = (Run::default(), Part::default());
        for shipment in shipments.iter().flatten() {
            let continued = run.continued_by(shipment);
            if continued.is_none() {
                // Before the next is counted, whose number may decide what is declared lost.
                self.take_run(now, &mut run);
            }
            if !self.count(now, arrival, shipment) {
                continue;
            }
            match continued {
                Some(payload) => run.add(payload),
                None => match only_part(shipment, &mut part) {
                    Some(payload) => run.begin(shipment, &part, payload),
                    None => self.take(now, arrival.from, shipment),
                },
            }
            // What is declared lost now is so before the next unit.
            let alone = run.count == 1 && !self.recv.may_begin_run(&run.part);
            if alone || self.recv.has_passed() {
                self.take_run(now, &mut run);
            }
        }
        self.take_run(now, &mut run);
    }

    /// Takes the shipments of a run, which is empty after this.
    fn take_run(&mut self, now: Instant, run: &mut Run<'_>) {
        if run.count == 0 {
            return;
        }
        self.on_data_level(now);
        if self.recv.is_ready_for(&run.part, run.count) {
            self.take_as_one(now, run);
        } else {
            // Why: what is told of a segment may have to be learnt first, or refused from some part on.
            self.take_one_by_one(now, run);
        }
        run.count = 0;
        self.restore(now);
        self.recv.after_shipment(now);
        self.after_input(now);
    }

    fn take_as_one(&mut self, now: Instant, run: &Run<'_>) {
        if self.close.is_over() {
            return;
        }
        let news = self.news_in(&run.part);
        match self.recv.on_part(now, run.first_number, &run.part) {
            PartOutcome::Fresh => {
                self.store(&run.part, run.payloads());
                self.tell_units(run.part.stream, run.part.segment, &news);
            }
            PartOutcome::Refused => self.recv.counters.parts_refused += run.count as u64 - 1,
            _ => {}
        }
    }

    fn take_one_by_one(&mut self, now: Instant, run: &Run<'_>) {
        for (number, (part, payload)) in run.first_number.onward().zip(run.parts()) {
            if !self.close.is_over() {
                self.take_part(now, number, &part, payload);
            }
        }
    }
}

/// The payload of a data shipment with a single part of new units, which is read into `part`.
#[inline]
fn only_part<'a>(shipment: &Shipment<'a>, part: &mut Part) -> Option<&'a [u8]> {
    if !carries_data(shipment) {
        return None;
    }
    let mut input = Reader::new(shipment.body);
    let payload = part.read(&mut input).ok()?;
    // Why not a repair: with each a segment may have become good enough, and what comes then is too late.
    (input.is_empty() && !part.retransmission).then_some(payload)
}

#[inline]
fn carries_data(shipment: &Shipment<'_>) -> bool {
    shipment.kind == Kind::Data && shipment.level != Level::Handshake
}

#[cfg(test)]
mod tests {
    use super::*;
    use segstream_base::codec::Writer;
    use segstream_base::{Position, SegmentNumber};

    fn part(first: u32, count: u32) -> Part {
        let first = Position(first);
        Part { segment: SegmentNumber(7), first, count, length: Some(100_000), payload_bytes: count * 10, ..Part::default() }
    }

    fn body(part: &Part) -> Vec<u8> {
        let mut body = vec![0; 200];
        let mut writer = Writer::new(&mut body);
        part.encode_header(&mut writer);
        writer.bytes(&vec![part.first.0 as u8; part.payload_bytes as usize]);
        let length = writer.finish().unwrap();
        body.truncate(length);
        body
    }

    fn shipment(number: ShipmentNumber, body: &[u8]) -> Shipment<'_> {
        Shipment { level: Level::Data, kind: Kind::Data, number, datagram_bytes: 0, body }
    }

    fn begun<'a>(number: ShipmentNumber, body: &'a [u8]) -> Run<'a> {
        let (mut run, mut one, first) = (Run::default(), Part::default(), shipment(number, body));
        assert!(run.continued_by(&first).is_none());
        let payload = only_part(&first, &mut one).unwrap();
        run.begin(&first, &one, payload);
        run
    }

    #[test]
    fn parts_that_continue_each_other_become_one_and_come_apart_again() {
        let bodies: Vec<Vec<u8>> = (0..4).map(|at| body(&part(40 + 2 * at, 2))).collect();
        let mut run = begun(ShipmentNumber(9), &bodies[0]);
        for (number, body) in (10..).zip(&bodies[1..]) {
            let payload = run.continued_by(&shipment(ShipmentNumber(number), body)).unwrap();
            run.add(payload);
        }
        assert_eq!((run.first_number, run.part), (ShipmentNumber(9), part(40, 8)));
        let apart: Vec<(Part, Vec<u8>)> = run.parts().map(|(part, payload)| (part, payload.to_vec())).collect();
        let expected: Vec<(Part, Vec<u8>)> = (0..4).map(|at| (part(40 + 2 * at, 2), vec![40 + 2 * at as u8; 20])).collect();
        assert_eq!(apart, expected);
    }

    #[test]
    fn what_does_not_continue_a_run_ends_it() {
        let continues = |first: &Part, number, one: &Part| {
            let (first, next) = (body(first), body(one));
            let run = begun(ShipmentNumber(9), &first);
            run.continued_by(&shipment(number, &next)).is_some()
        };
        let first = part(40, 2);
        assert!(continues(&first, ShipmentNumber(10), &part(42, 2)));
        assert!(!continues(&first, ShipmentNumber(11), &part(42, 2)), "a shipment is missing between");
        assert!(!continues(&first, ShipmentNumber(10), &part(43, 2)), "units are missing between");
        assert!(!continues(&first, ShipmentNumber(10), &part(42, 1)), "fewer units");
        assert!(!continues(&first, ShipmentNumber(10), &Part { payload_bytes: 15, ..part(42, 2) }), "a short last unit");
        assert!(!continues(&first, ShipmentNumber(10), &Part { segment: SegmentNumber(8), ..part(42, 2) }), "another segment");
        assert!(!continues(&first, ShipmentNumber(10), &Part { length: None, ..part(42, 2) }), "a length that is not told");
        assert!(!continues(&first, ShipmentNumber(10), &Part { retransmission: true, ..part(42, 2) }), "a repair");
        assert!(continues(&part(62, 2), ShipmentNumber(10), &part(64, 2)), "a place that takes more bytes to tell");
        assert!(!continues(&part(u32::MAX - 2, 2), ShipmentNumber(10), &part(0, 2)), "places do not wrap");
        let (mut long, next) = (body(&first), body(&part(42, 2)));
        long.splice(1..2, [0x40, long[1]]);
        assert!(
            begun(ShipmentNumber(9), &long).continued_by(&shipment(ShipmentNumber(10), &next)).is_none(),
            "a heading that is longer than it must be"
        );
        let state = Shipment { kind: Kind::State, ..shipment(ShipmentNumber(10), &[]) };
        assert!(begun(ShipmentNumber(9), &body(&first)).continued_by(&state).is_none());
    }
}
