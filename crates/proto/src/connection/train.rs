//! A train comes in: data shipments behind one another whose parts continue each other are taken as one part.
//!
//! Called by the endpoint with datagrams that arrived together. Most of what arrives at high rates are new units in the
//! middle of a long segment; that they are expected need not be found out for each shipment anew. The sender's side of
//! this is [`crate::sender`]'s train.
//!
//! Invariant: after a train the connection is what it would be had each of its datagrams been taken by itself at the same
//! moment, and tells the same; only units of a run may be told of before a verdict that one of them has caused. Numbers,
//! bytes and marks are counted one by one; only what is decided about units is decided for a run of shipments at once, whose
//! numbers follow one another without a gap.

use super::Connection;
use super::receive::Shipment;
use crate::receiver::PartFate;
use segstream_base::Instant;
use segstream_base::codec::Reader;
use segstream_base::endpoint::Arrival;
use segstream_wire::{Kind, Level, Part};

/// The most shipments of a run, and how many are opened at a time: their payload is read twice, to be opened and to be copied,
/// and should still be in the fastest cache the second time.
const RUN_MAX: usize = 16;

/// Shipments whose parts continue each other.
#[derive(Debug, Default)]
struct Run<'a> {
    /// The number of the first.
    first_number: u64,
    /// Their parts as one.
    part: Part,
    /// How many there are, each with as many units and bytes as the first.
    count: usize,
    payloads: [&'a [u8]; RUN_MAX],
}

impl<'a> Run<'a> {
    /// Whether a shipment continues the run, or begins one. `one` is the only part of it.
    #[inline]
    fn fits(&self, number: u64, one: &Part, payload: &[u8]) -> bool {
        match self.count {
            0 => true,
            count => number == self.first_number + count as u64 && self.is_continued_by(one, payload),
        }
    }

    /// Adds a shipment that fits.
    #[inline]
    fn add(&mut self, number: u64, one: &Part, payload: &'a [u8]) {
        if self.count == 0 {
            (self.first_number, self.part) = (number, *one);
        } else {
            self.part.count += one.count;
            self.part.payload_bytes += one.payload_bytes;
        }
        self.payloads[self.count] = payload;
        self.count += 1;
    }

    /// Whether `one` is the next part as the first was: as many units of the same segment, behind those before them.
    #[inline]
    fn is_continued_by(&self, one: &Part, payload: &[u8]) -> bool {
        let all = &self.part;
        one.first == all.first.saturating_add(all.count)
            && u64::from(one.count) * self.count as u64 == u64::from(all.count)
            && payload.len() == self.payloads[0].len()
            && (one.stream, one.segment, one.length, one.source_time) == (all.stream, all.segment, all.length, all.source_time)
            && (one.again, one.opened, one.tolerance) == (all.again, all.opened, all.tolerance)
    }

    /// The parts and their payloads, one by one.
    fn parts(&self) -> impl Iterator<Item = (Part, &'a [u8])> {
        let each = self.part.count / self.count.max(1) as u32;
        self.payloads[..self.count].iter().zip(0..).map(move |(payload, at)| {
            let one = Part { first: self.part.first + at * each, count: each, payload_bytes: payload.len() as u32, ..self.part };
            (one, *payload)
        })
    }
}

impl Connection {
    /// Takes datagrams of `datagram_bytes`, the last of which may be shorter, that came together from the peer.
    pub(crate) fn handle_train(&mut self, now: Instant, arrival: Arrival, train: &mut [u8], datagram_bytes: usize) {
        for some in train.chunks_mut(datagram_bytes * RUN_MAX) {
            // Why all first: a seal is a long chain of steps, and those of several overlap when nothing stands between.
            let mut shipments = [None; RUN_MAX];
            for (shipment, datagram) in shipments.iter_mut().zip(some.chunks_mut(datagram_bytes)) {
                *shipment = self.open(datagram);
            }
            self.take_opened(now, arrival, &shipments);
            // Why after: those that could be opened came no later than the one that was broken once too often.
            self.retire_worn_out(now);
        }
    }

    /// Takes shipments that have been opened.
    fn take_opened(&mut self, now: Instant, arrival: Arrival, shipments: &[Option<Shipment<'_>>; RUN_MAX]) {
        let (mut run, mut part) = (Run::default(), Part::default());
        for shipment in shipments.iter().flatten() {
            let payload = only_part(shipment, &mut part);
            if payload.is_none_or(|payload| !run.fits(shipment.number, &part, payload)) {
                // Before the next is counted, whose number may decide what is held lost.
                self.take_run(now, &mut run);
            }
            if !self.count(now, arrival, shipment) {
                continue;
            }
            match payload {
                Some(payload) => run.add(shipment.number, &part, payload),
                None => self.take(now, arrival.from, shipment),
            }
            if self.recv.has_passed() {
                // What is held lost now is so before the next unit.
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
        self.recv.after_shipment(now);
        self.after_input(now);
    }

    fn take_as_one(&mut self, now: Instant, run: &Run<'_>) {
        if self.close.is_over() {
            return;
        }
        match self.recv.on_part(now, run.first_number, &run.part) {
            PartFate::Fresh => {
                run.parts().for_each(|(part, payload)| self.store(&part, payload));
                self.tell_units(&run.part);
            }
            PartFate::Refused => self.recv.counters.parts_refused += run.count as u64 - 1,
            _ => {}
        }
    }

    fn take_one_by_one(&mut self, now: Instant, run: &Run<'_>) {
        for (number, (part, payload)) in (run.first_number..).zip(run.parts()) {
            if !self.close.is_over() {
                self.take_part(now, number, &part, payload);
            }
        }
    }
}

/// The payload of a data shipment with a single part of new units, which is read into `part`.
#[inline]
fn only_part<'a>(shipment: &Shipment<'a>, part: &mut Part) -> Option<&'a [u8]> {
    if shipment.kind != Kind::Data || shipment.level == Level::Handshake {
        return None;
    }
    let mut input = Reader::new(shipment.body);
    let payload = part.read(&mut input).ok()?;
    // Why not a repair: with each a segment may have become good enough, and what comes then is too late.
    (input.is_empty() && !part.again).then_some(payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(first: u32, count: u32) -> Part {
        Part { segment: 7, first, count, length: Some(100_000), payload_bytes: count * 10, ..Part::default() }
    }

    #[test]
    fn parts_that_continue_each_other_become_one_and_come_apart_again() {
        let payloads: Vec<Vec<u8>> = (0..4).map(|at| vec![at; 20]).collect();
        let mut run = Run::default();
        for (at, payload) in (0..).zip(&payloads) {
            let one = part(40 + 2 * at, 2);
            assert!(run.fits(9 + u64::from(at), &one, payload));
            run.add(9 + u64::from(at), &one, payload);
        }
        assert_eq!((run.first_number, run.part), (9, part(40, 8)));
        let apart: Vec<(Part, &[u8])> = run.parts().collect();
        assert_eq!(apart, (0..).zip(&payloads).map(|(at, payload)| (part(40 + 2 * at, 2), &payload[..])).collect::<Vec<_>>());
    }

    #[test]
    fn what_does_not_continue_a_run_ends_it() {
        let (payload, short) = ([0; 20], [0; 15]);
        let mut run = Run::default();
        run.add(9, &part(40, 2), &payload);
        assert!(run.fits(10, &part(42, 2), &payload));
        assert!(!run.fits(11, &part(42, 2), &payload), "a shipment is missing between");
        assert!(!run.fits(10, &part(43, 2), &payload), "units are missing between");
        assert!(!run.fits(10, &part(42, 1), &payload), "fewer units");
        assert!(!run.fits(10, &part(42, 2), &short), "a short last unit");
        assert!(!run.fits(10, &Part { segment: 8, ..part(42, 2) }, &payload), "another segment");
        assert!(!run.fits(10, &Part { length: None, ..part(42, 2) }, &payload), "a length that is not told");
    }
}
