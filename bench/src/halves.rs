//! `halves`: the cost of the flagship's state machines per data packet, without sockets, seal or payload.
//!
//! Each case is recorded once in virtual time (`path`) and then played to each half alone (`replay`), so no
//! clock is read between two packets and neither half pays for the other. The first fifth of a record warms
//! up and is not measured.

use crate::instructions::{self, Counter};
use crate::path::{Case, Record, SEGMENT_UNITS, UNIT_BYTES, is_data};
use crate::processor_time::processor_time;
use crate::replay::{replay_receiver, replay_sender};
use crate::spread::Spread;
use crate::{ALLOCATOR, print};
use anyhow::{Result, bail};
use clap::Args;
use segstream_base::{Duration, Tolerance};
use segstream_lab::machine::Machine;
use serde::Serialize;
use std::fmt::Write as _;

/// What EC Table 2 gives for its protocol machines, in microseconds a packet: sending, receiving.
const PAPER_US: (f64, f64) = (273.0, 310.0);

const TOLERANT: Tolerance = match Tolerance::new(SEGMENT_UNITS, 1, 1) {
    Ok(tolerance) => tolerance,
    Err(_) => Tolerance::any(SEGMENT_UNITS),
};

const CASES: [Case; 4] = [
    Case {
        name: "perfect",
        about: "perfect path, reliable",
        loss: 0.0,
        tolerance: Tolerance::reliable(SEGMENT_UNITS),
        pacing_quantum: Duration::ZERO,
    },
    Case {
        name: "gathered",
        about: "the same, departures gathered for 200 us",
        loss: 0.0,
        tolerance: Tolerance::reliable(SEGMENT_UNITS),
        pacing_quantum: Duration::from_micros(200),
    },
    Case {
        name: "loss",
        about: "random loss 1e-3, reliable",
        loss: 1e-3,
        tolerance: Tolerance::reliable(SEGMENT_UNITS),
        pacing_quantum: Duration::ZERO,
    },
    Case {
        name: "tolerant",
        about: "random loss 1e-3, tolerance (256,1,1)",
        loss: 1e-3,
        tolerance: TOLERANT,
        pacing_quantum: Duration::ZERO,
    },
];

/// Options of `halves`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// How often each measurement is repeated, all in turns.
    #[arg(long, default_value_t = 11)]
    repetitions: usize,
    /// Segments in a record.
    #[arg(long, default_value_t = 500)]
    segments: u64,
    /// Only this case: perfect, gathered, loss or tolerant.
    #[arg(long)]
    case: Option<String>,
    /// Only this half: sender or receiver.
    #[arg(long)]
    half: Option<String>,
    /// Count instructions with valgrind where the processor's counter is not lent.
    #[arg(long)]
    callgrind: bool,
}

#[derive(Serialize)]
struct Report {
    machine: Machine,
    repetitions: usize,
    unit_bytes: u32,
    segment_units: u32,
    cases: Vec<CaseReport>,
}

#[derive(Serialize)]
struct CaseReport {
    case: &'static str,
    about: &'static str,
    packets: usize,
    halves: Vec<HalfReport>,
}

#[derive(Serialize)]
struct HalfReport {
    half: &'static str,
    packet_ns: Spread,
    /// How often the half is woken.
    wakes: f64,
    /// 8 * unit bytes / time.
    throughput_gbps: f64,
    instructions: Option<f64>,
    allocations: f64,
    paper_us: f64,
    paper_mbps: f64,
}

/// One replay of the measured part of a record.
#[derive(Clone, Copy)]
struct Sample {
    nanos: f64,
    instructions: Option<u64>,
    allocations: usize,
}

/// Measures and prints.
pub(crate) fn run(options: &Options) -> Result<()> {
    let cases: Vec<Case> = CASES.iter().copied().filter(|case| options.case.as_ref().is_none_or(|name| name == case.name)).collect();
    let known = options.half.as_deref().is_none_or(|half| half == "sender" || half == "receiver");
    if cases.is_empty() || !known || options.repetitions == 0 || options.segments == 0 {
        bail!("nothing to measure; cases are perfect, loss and tolerant, halves are sender and receiver");
    }
    let records: Vec<Record> = cases.iter().map(|case| case.record(options.segments)).collect();
    let mut samples: Vec<[Vec<Sample>; 2]> = cases.iter().map(|_| Default::default()).collect();
    let mut counter = Counter::new();
    for _ in 0..options.repetitions {
        for ((case, record), samples) in cases.iter().zip(&records).zip(&mut samples) {
            if options.half.as_deref() != Some("receiver") {
                samples[0].push(measure_sender(*case, record, &mut counter));
            }
            if options.half.as_deref() != Some("sender") {
                samples[1].push(measure_receiver(*case, record, &mut counter));
            }
        }
    }
    let mut report = Report {
        machine: Machine::here(),
        repetitions: options.repetitions,
        unit_bytes: UNIT_BYTES,
        segment_units: SEGMENT_UNITS,
        cases: Vec::new(),
    };
    for ((case, record), samples) in cases.iter().zip(&records).zip(&samples) {
        report.cases.push(case_report(*case, record, samples, options.callgrind)?);
    }
    print(options.json, &report, &table(&report))
}

/// Where the measured part of `record` begins.
fn warm<T>(record: &[T]) -> usize {
    record.len() / 5
}

/// Data packets in a part of what a receiver was told; as many left a sender, except for those lost.
fn packets(record: &Record, measured_only: bool) -> usize {
    let from = if measured_only { warm(&record.receiver) } else { 0 };
    record.receiver[from..].iter().filter(|(_, packet)| packet.as_ref().is_some_and(is_data)).count()
}

fn sample(counter: &mut Counter, work: impl FnOnce()) -> Sample {
    let before = ALLOCATOR.stats();
    let start = processor_time();
    let instructions = counter.count(work);
    let nanos = processor_time() - start;
    let after = ALLOCATOR.stats();
    let count = |stats: stats_alloc::Stats| stats.allocations + stats.reallocations;
    Sample { nanos, instructions, allocations: count(after) - count(before) }
}

fn measure_sender(case: Case, record: &Record, counter: &mut Counter) -> Sample {
    let (first, rest) = record.sender.split_at(warm(&record.sender));
    let (mut sender, mut left) = (case.sender(), record.segments);
    replay_sender(&mut sender, first, &mut left);
    sample(counter, || replay_sender(&mut sender, rest, &mut left))
}

fn measure_receiver(case: Case, record: &Record, counter: &mut Counter) -> Sample {
    let (first, rest) = record.receiver.split_at(warm(&record.receiver));
    let mut receiver = case.receiver();
    replay_receiver(&mut receiver, first);
    sample(counter, || replay_receiver(&mut receiver, rest))
}

/// Data packets a sender sends in the measured part.
fn packets_sent(case: Case, record: &Record) -> usize {
    let (first, rest) = record.sender.split_at(warm(&record.sender));
    let (mut sender, mut left) = (case.sender(), record.segments);
    replay_sender(&mut sender, first, &mut left);
    let before = sender.half.counters.data_shipments;
    replay_sender(&mut sender, rest, &mut left);
    (sender.half.counters.data_shipments - before) as usize
}

fn case_report(case: Case, record: &Record, samples: &[Vec<Sample>; 2], callgrind: bool) -> Result<CaseReport> {
    let mut halves = Vec::new();
    let counts = [packets_sent(case, record), packets(record, true)];
    let steps = [record.sender.len() - warm(&record.sender), record.receiver.len() - warm(&record.receiver)];
    for (index, (half, paper_us)) in [("sender", PAPER_US.0), ("receiver", PAPER_US.1)].into_iter().enumerate() {
        let Some(last) = samples[index].last() else { continue };
        let each = counts[index] as f64;
        let packet_ns = Spread::of(samples[index].iter().map(|sample| sample.nanos / each).collect());
        let counted = last.instructions.map(|count| count as f64 / each);
        let instructions = match counted {
            None if callgrind => Some(callgrind_per_packet(case, half)?),
            counted => counted,
        };
        let bits = 8.0 * f64::from(UNIT_BYTES);
        halves.push(HalfReport {
            half,
            packet_ns,
            wakes: steps[index] as f64 / each,
            throughput_gbps: bits / packet_ns.median,
            instructions,
            allocations: last.allocations as f64 / each,
            paper_us,
            paper_mbps: bits / paper_us,
        });
    }
    Ok(CaseReport { case: case.name, about: case.about, packets: counts[1], halves })
}

/// Replays shorter records, as callgrind is slow: instructions of both lengths differ by those of the packets
/// between them, so what happens once drops out.
fn callgrind_per_packet(case: Case, half: &'static str) -> Result<f64> {
    const SEGMENTS: [u64; 2] = [40, 120];
    let mut counted = [(0.0, 0.0); 2];
    for (counted, segments) in counted.iter_mut().zip(SEGMENTS) {
        let text = segments.to_string();
        let arguments = ["halves", "--repetitions", "1", "--case", case.name, "--half", half, "--segments", &text];
        let instructions = instructions::with_callgrind(&format!("replay_{half}"), &arguments)?;
        // A run plays the sender's record twice: measured, and to count its packets.
        let record = case.record(segments);
        let plays = if half == "sender" { 2.0 } else { 1.0 };
        *counted = (instructions as f64 / plays, packets(&record, false) as f64);
    }
    let [(short, few), (long, many)] = counted;
    Ok((long - short) / (many - few))
}

fn table(report: &Report) -> String {
    let mut text = format!(
        "{}\n{} repetitions in turns; segments of {} units of {} bytes, one unit a packet; no socket, seal or payload\n\n",
        report.machine, report.repetitions, report.segment_units, report.unit_bytes
    );
    let _ = writeln!(
        text,
        "{:<38} {:<8} {:>34} {:>7} {:>12} {:>11} {:>5}  EC Table 2",
        "case", "half", "ns a packet: median (min to max)", "Gbit/s", "instructions", "allocations", "wakes"
    );
    for case in &report.cases {
        for half in &case.halves {
            let instructions = half.instructions.map_or("-".to_owned(), |count| format!("{count:.0}"));
            let _ = writeln!(
                text,
                "{:<38} {:<8} {:>34} {:>7.1} {:>12} {:>11.4} {:>5.2}  {:.0} us, {:.0} Mbit/s",
                case.about,
                half.half,
                half.packet_ns.to_string(),
                half.throughput_gbps,
                instructions,
                half.allocations,
                half.wakes,
                half.paper_us,
                half.paper_mbps
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replay_does_what_was_recorded() {
        for case in CASES {
            let record = case.record(20);
            let (mut sender, mut left, mut receiver) = (case.sender(), record.segments, case.receiver());
            replay_sender(&mut sender, &record.sender, &mut left);
            replay_receiver(&mut receiver, &record.receiver);
            assert_eq!((left, sender.half.has_unjudged()), (0, false), "{}", case.name);
            let judged: u64 = receiver.half.counters.segments.iter().sum();
            assert_eq!(judged, record.segments, "{}", case.name);
        }
    }
}
