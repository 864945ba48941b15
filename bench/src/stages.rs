//! `stages`: HTPNET's processes on threads of this machine, and on modelled processors of the same costs.
//!
//! The stages are measured on one thread first. What each costs there says how they are spread over more threads, and
//! what the model's processors are charged, so that the two can be compared.

use crate::print;
use crate::spread::Spread;
use anyhow::Result;
use clap::Args;
use segstream_lab::machine::Machine;
use segstream_lab::stages::{self, Measurement, Measuring, STAGE_NAMES, StageCosts, StageScenario};
use serde::Serialize;
use std::fmt::Write as _;

/// Options of `stages`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// How often each number of threads is measured.
    #[arg(long, default_value_t = 5)]
    repetitions: usize,
    /// Packets of a run.
    #[arg(long, default_value_t = 1_000_000)]
    packets: u32,
    /// The numbers of threads; the first is what the others are compared with.
    #[arg(long, value_delimiter = ',', default_value = "1,2")]
    threads: Vec<usize>,
    /// Bytes of a whole packet.
    #[arg(long, default_value_t = 2048)]
    packet_bytes: u32,
    /// Packets of the window.
    #[arg(long, default_value_t = 4096)]
    window: u32,
    /// Bind each thread to a processor.
    #[arg(long)]
    pin: bool,
}

#[derive(Serialize)]
struct Report {
    machine: Machine,
    repetitions: usize,
    packets: u32,
    packet_bytes: u32,
    window: u32,
    threads: Vec<ThreadsReport>,
    modelled: Vec<ModelReport>,
}

#[derive(Serialize)]
struct ThreadsReport {
    threads: usize,
    packets_per_second: Spread,
    /// To the first number of threads.
    ratio: f64,
    pinned: bool,
    /// Of its waking time each thread had a processor for this share.
    processor_shares: Vec<f64>,
    retransmitted: u64,
    stages: Vec<StageReport>,
}

#[derive(Serialize)]
struct StageReport {
    stage: &'static str,
    thread: usize,
    calls_a_packet: f64,
    call_ns: f64,
    packet_ns: f64,
    stalls: u64,
}

/// A model of this many processors, charged the paper's costs and those of the first measurement.
#[derive(Serialize)]
struct ModelReport {
    processors: usize,
    paper_packets_per_second: f64,
    paper_ratio: f64,
    here_packets_per_second: f64,
    here_ratio: f64,
    /// By stage, with the paper's costs.
    paper_placement: Vec<usize>,
}

/// Measures and prints.
pub(crate) fn run(options: &Options) -> Result<()> {
    let mut report = Report {
        machine: Machine::here(),
        repetitions: options.repetitions,
        packets: options.packets,
        packet_bytes: options.packet_bytes,
        window: options.window,
        threads: Vec::new(),
        modelled: Vec::new(),
    };
    let mut first: Option<Measurement> = None;
    for threads in &options.threads {
        let measured = stages::measure(&Measuring {
            threads: *threads,
            costs: first.as_ref().map_or_else(StageCosts::paper, Measurement::costs),
            pin: options.pin,
            runs: options.repetitions,
            packets: options.packets,
            packet_bytes: options.packet_bytes,
            window: options.window,
            ..Measuring::default()
        })?;
        let base = first.get_or_insert_with(|| measured.clone());
        report.threads.push(threads_report(options, *threads, &measured, base));
    }
    let here = first.as_ref().map_or_else(StageCosts::paper, Measurement::costs);
    report.modelled = modelled(here)?;
    print(options.json, &report, &text(&report))
}

fn threads_report(options: &Options, threads: usize, measured: &Measurement, base: &Measurement) -> ThreadsReport {
    let stages = measured.stages.iter().zip(measured.thread_of).map(|(stage, thread)| StageReport {
        stage: stage.name,
        thread,
        calls_a_packet: stage.calls as f64 / f64::from(options.packets),
        call_ns: stage.call_ns,
        packet_ns: stage.packet_ns,
        stalls: stage.stalls,
    });
    ThreadsReport {
        threads,
        packets_per_second: Spread::of(measured.packets_per_second.clone()),
        ratio: measured.packets_per_second_median() / base.packets_per_second_median(),
        pinned: measured.pinned,
        processor_shares: measured.processor_shares.clone(),
        retransmitted: measured.data_sent - u64::from(options.packets),
        stages: stages.collect(),
    }
}

/// One to eight processors. An exchange each 5 ms is for processors as slow as the paper's; those of this machine
/// exchange states each millisecond, as its threads do.
fn modelled(here: StageCosts) -> Result<Vec<ModelReport>> {
    let mut reports: Vec<ModelReport> = Vec::new();
    for processors in 1..=8 {
        let paper = StageScenario { processors, ..StageScenario::default() };
        let ours = Measuring::default();
        let ours =
            StageScenario { costs: here, window: 8 * ours.window - 1, sync_period: ours.sync_period, packets: 100_000, ..paper.clone() };
        let (paper_rate, here_rate) = (stages::run(&paper)?.packets_per_second(), stages::run(&ours)?.packets_per_second());
        let base = reports.first().map_or((paper_rate, here_rate), |one| (one.paper_packets_per_second, one.here_packets_per_second));
        reports.push(ModelReport {
            processors,
            paper_packets_per_second: paper_rate,
            paper_ratio: paper_rate / base.0,
            here_packets_per_second: here_rate,
            here_ratio: here_rate / base.1,
            paper_placement: paper.placement().to_vec(),
        });
    }
    Ok(reports)
}

fn text(report: &Report) -> String {
    let mut text = format!("{}\n", report.machine);
    // Why the results are dropped: writing to a string does not fail.
    let _ = writeln!(
        text,
        "{} packets of {} bytes, window {}, median of {} (smallest to largest)\n",
        report.packets, report.packet_bytes, report.window, report.repetitions
    );
    for threads in &report.threads {
        let rate = threads.packets_per_second;
        let pinned = if threads.pinned { ", bound" } else { "" };
        let _ = writeln!(text, "{} threads{pinned}: {rate} packets/s, {:.2} times the first", threads.threads, threads.ratio);
        let shares: Vec<String> = threads.processor_shares.iter().map(|share| format!("{share:.2}")).collect();
        let _ = writeln!(text, "  the threads had a processor for {} of their time", shares.join(" and "));
        let _ =
            writeln!(text, "  {:<14} {:>6} {:>14} {:>8} {:>11} {:>8}", "stage", "thread", "calls a packet", "ns", "ns a packet", "stalls");
        for stage in &threads.stages {
            let _ = writeln!(
                text,
                "  {:<14} {:>6} {:>14.3} {:>8.1} {:>11.1} {:>8}",
                stage.stage, stage.thread, stage.calls_a_packet, stage.call_ns, stage.packet_ns, stage.stalls
            );
        }
        let _ = writeln!(text);
    }
    let _ = writeln!(text, "modelled, costs of the paper's magnitude, and as measured in the first row above");
    let _ = writeln!(
        text,
        "{:>10} {:>12} {:>6} {:>14} {:>6}  stages on each processor (paper's costs)",
        "processors", "packets/s", "ratio", "packets/s", "ratio"
    );
    for row in &report.modelled {
        let _ = writeln!(
            text,
            "{:>10} {:>12.0} {:>6.2} {:>14.0} {:>6.2}  {}",
            row.processors,
            row.paper_packets_per_second,
            row.paper_ratio,
            row.here_packets_per_second,
            row.here_ratio,
            placed(&row.paper_placement)
        );
    }
    text
}

/// The stages of each processor.
fn placed(placement: &[usize]) -> String {
    let processors = placement.iter().max().map_or(0, |last| last + 1);
    let of = |processor: usize| {
        let names = STAGE_NAMES.iter().zip(placement).filter(|(_, at)| **at == processor).map(|(name, _)| *name);
        names.collect::<Vec<_>>().join(" + ")
    };
    (0..processors).map(of).collect::<Vec<_>>().join(" | ")
}
