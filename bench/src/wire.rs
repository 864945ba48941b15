//! `wire`: encoding, decoding and sealing of one shipment.

use crate::print;
use crate::processor_time::processor_time;
use crate::spread::Spread;
use anyhow::Result;
use clap::Args;
use segstream_base::Instant as VirtualInstant;
use segstream_base::codec::{Reader, Writer};
use segstream_base::{ExchangeNumber, Position, ReportNumber, Run, SegmentNumber, ShipmentNumber, StreamId};
use segstream_lab::machine::Machine;
use segstream_proto::session::Plain;
use segstream_wire::header::HEADER_BYTES;
use segstream_wire::state::{Confirmed, Finished};
use segstream_wire::{Header, Kind, Level, Part, Report, ReportFrame, State, StateFrame};
use serde::Serialize;
use std::fmt::Write as _;
use std::hint::black_box;

/// Calls of one measurement.
const CALLS: u32 = 100_000;
const PAYLOAD_BYTES: usize = 1024;

/// Options of `wire`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// How often each measurement is repeated, all in turns.
    #[arg(long, default_value_t = 11)]
    repetitions: usize,
}

#[derive(Serialize)]
struct Output {
    machine: Machine,
    repetitions: usize,
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    what: &'static str,
    bytes: usize,
    shipment_ns: Spread,
}

/// A named piece of work on one shipment.
struct Work {
    what: &'static str,
    bytes: usize,
    call: Box<dyn FnMut()>,
}

/// Measures and prints.
pub(crate) fn run(options: &Options) -> Result<()> {
    let mut works = works();
    let mut samples: Vec<Vec<f64>> = works.iter().map(|_| Vec::new()).collect();
    for _ in 0..options.repetitions {
        for (work, samples) in works.iter_mut().zip(&mut samples) {
            let start = processor_time();
            (0..CALLS).for_each(|_| (work.call)());
            samples.push((processor_time() - start) / f64::from(CALLS));
        }
    }
    let rows =
        works.iter().zip(samples).map(|(work, samples)| Row { what: work.what, bytes: work.bytes, shipment_ns: Spread::of(samples) });
    let output = Output { machine: Machine::here(), repetitions: options.repetitions, rows: rows.collect() };
    let mut text = format!(
        "{}\n{} repetitions in turns\n\n{:<36} {:>6} {:>34}\n",
        output.machine, options.repetitions, "work", "bytes", "ns a shipment: median (min to max)"
    );
    for row in &output.rows {
        let _ = writeln!(text, "{:<36} {:>6} {:>34}", row.what, row.bytes, row.shipment_ns.to_string());
    }
    print(options.json, &output, &text)
}

fn works() -> Vec<Work> {
    let mut works = Vec::new();
    data(&mut works);
    state(&mut works);
    report(&mut works);
    let mut sealed = vec![7; HEADER_BYTES + PAYLOAD_BYTES + Plain::SEAL_BYTES];
    works.push(Work {
        what: "CRC32C seal of one unit's shipment",
        bytes: sealed.len(),
        call: Box::new(move || Plain::seal(ShipmentNumber(9), black_box(&mut sealed))),
    });
    works
}

fn data(works: &mut Vec<Work>) {
    let part = Part {
        stream: StreamId(0),
        segment: SegmentNumber(5000),
        first: Position(17),
        count: 1,
        retransmission: false,
        opened: false,
        length: Some(1 << 18),
        tolerance: None,
        source_time: VirtualInstant::from_nanos(1_234_567_000),
        payload_bytes: PAYLOAD_BYTES as u32,
    };
    let encode = move |out: &mut Writer<'_>| {
        part.encode_header(out);
        out.bytes(&[7; PAYLOAD_BYTES]);
    };
    let names = ["DT of one unit: encode with payload", "DT of one unit: decode"];
    shipment(works, names, Kind::Data, encode, |input| {
        let _ = black_box(Part::decode(input));
    });
}

fn state(works: &mut Vec<Work>) {
    let finished = Finished {
        stream: StreamId(0),
        segment: SegmentNumber(5000),
        opened: false,
        length: 1 << 18,
        source_time: VirtualInstant::from_nanos(1_234_567_000),
        tolerance: None,
        last_shipment: Some(ShipmentNumber(1_300_000)),
    };
    let state = State {
        sync: ExchangeNumber(900),
        time: 1 << 40,
        answer: false,
        exchange: false,
        confirmed: Confirmed { highest: Some(ReportNumber(800)), before: u64::MAX },
        frames: smallvec::smallvec![StateFrame::Finished(finished)],
    };
    let names = ["TXS with a FINISHED: encode", "TXS with a FINISHED: decode"];
    shipment(
        works,
        names,
        Kind::State,
        move |out| state.encode(out),
        |input| {
            let _ = black_box(State::decode(input));
        },
    );
}

fn report(works: &mut Vec<Work>) {
    let missing = (0..8).filter_map(|run| Run::single(Position(run * 20 + 1))).collect();
    let report = Report {
        number: ReportNumber(900),
        echo: Some(ShipmentNumber(1_300_000)),
        reorder: 3,
        time: Some(1 << 40),
        held: 20_000,
        frames: smallvec::smallvec![
            ReportFrame::Grant { stream: StreamId(0), segments: 6000, units: 1_500_000, end_known: false },
            ReportFrame::Request { stream: StreamId(0), segment: SegmentNumber(5000), missing, tail_from: None, length_wanted: false },
        ],
    };
    let names = ["RXS with a GRANT and 8 runs: encode", "RXS with a GRANT and 8 runs: decode"];
    shipment(
        works,
        names,
        Kind::Report,
        move |out| report.encode(out),
        |input| {
            let _ = black_box(Report::decode(input));
        },
    );
}

/// Adds encoding and decoding of one shipment.
fn shipment(
    works: &mut Vec<Work>,
    [encoding, decoding]: [&'static str; 2],
    kind: Kind,
    encode: impl Fn(&mut Writer<'_>) + 'static,
    decode: impl Fn(&mut Reader<'_>) + 'static,
) {
    let header = Header { level: Level::Data, kind, connection: 1, number: 1_300_001 };
    let write = move |buffer: &mut [u8]| {
        let mut out = Writer::new(buffer);
        header.encode(&mut out);
        encode(&mut out);
        out.finish().unwrap_or(0)
    };
    let mut buffer = vec![0; 1500];
    let bytes = write(&mut buffer);
    let encoded = buffer[..bytes].to_vec();
    works.push(Work {
        what: encoding,
        bytes,
        call: Box::new(move || {
            black_box(write(black_box(&mut buffer)));
        }),
    });
    let read = move || {
        let mut input = Reader::new(black_box(&encoded));
        let _ = black_box(Header::decode(&mut input));
        decode(&mut input);
    };
    works.push(Work { what: decoding, bytes, call: Box::new(read) });
}
