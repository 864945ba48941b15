//! `sim`: how many data packets a second the simulator moves, scheme by scheme.
//!
//! Each case is run short and long, in turns, on one thread, and as replications on all processors. The cost
//! of a packet must not grow with the length of a run, and no packet may allocate.

use crate::spread::Spread;
use crate::{ALLOCATOR, print};
use anyhow::{Result, bail};
use clap::Args;
use rayon::prelude::*;
use segstream_base::random::Seed;
use segstream_lab::machine::Machine;
use segstream_lab::registry::{self, Scheme};
use segstream_lab::run::{Run, run};
use segstream_lab::runner::replication_seed;
use segstream_lab::scenario::Scenario;
use segstream_schemes::sstp::FeedbackMode;
use serde::Serialize;
use std::fmt::Write as _;
use std::time::Instant;

/// Options of `sim`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// How often each measurement is repeated, all in turns.
    #[arg(long, default_value_t = 5)]
    repetitions: usize,
    /// New packets of a long run, at least 200,000.
    #[arg(long, default_value_t = 10_000_000)]
    packets: u64,
    /// Only this scheme.
    #[arg(long)]
    scheme: Option<String>,
}

/// New packets of a short run.
const SHORT: u64 = 100_000;
/// Short runs in one measurement, so that a clock can tell.
const SHORT_RUNS: u32 = 20;

#[derive(Serialize)]
struct Report {
    machine: Machine,
    repetitions: usize,
    packets_short: u64,
    packets_long: u64,
    cases: Vec<CaseReport>,
}

#[derive(Serialize)]
struct CaseReport {
    case: &'static str,
    /// Millions of data packets a second on one core, in long runs.
    packets_mps: Spread,
    packet_ns_short: Spread,
    packet_ns_long: Spread,
    /// Long by short: 1 when the cost does not grow.
    long_by_short: f64,
    /// Allocations a data packet in the part of a long run that a short one does not have.
    allocations: f64,
    processors: usize,
    /// Packets a second of as many replications as processors, by those of one.
    speedup: f64,
}

struct Case {
    name: &'static str,
    scenario: Scenario,
}

fn cases() -> Vec<Case> {
    let case = |name, scheme: &str, loss: &str, feedback| Case {
        name,
        scenario: Scenario::default().with(|it| {
            it.scheme = registry::find(scheme).map_or_else(Default::default, Scheme::config);
            it.black_box.loss = loss.parse().unwrap_or_default();
            it.black_box.loss_back = if feedback == FeedbackMode::Full { loss.parse().unwrap_or_default() } else { Default::default() };
            it.black_box.feedback = feedback;
        }),
    };
    vec![
        case("sstp, full, p = 1e-3", "sstp", "1e-3", FeedbackMode::Full),
        case("sstp, ideal, p = 1e-3", "sstp", "1e-3", FeedbackMode::Ideal),
        case("sstp, full, p = 1e-1", "sstp", "1e-1", FeedbackMode::Full),
        case("snr, p = 1e-3", "snr", "1e-3", FeedbackMode::Ideal),
        case("segstream, p = 1e-3", "segstream", "1e-3", FeedbackMode::Full),
        case("segstream, p = 1e-1", "segstream", "1e-1", FeedbackMode::Full),
    ]
}

/// Measures and prints.
pub(crate) fn measure(options: &Options) -> Result<()> {
    let chosen: Vec<Case> =
        cases().into_iter().filter(|case| options.scheme.as_ref().is_none_or(|scheme| scheme == case.scenario.scheme.key())).collect();
    if chosen.is_empty() || options.repetitions == 0 || options.packets < 2 * SHORT {
        bail!("nothing to measure: --scheme is sstp, snr or segstream, --repetitions at least 1, --packets at least {}", 2 * SHORT);
    }
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(processors).build()?;
    let mut report = Report {
        machine: Machine::here(),
        repetitions: options.repetitions,
        packets_short: SHORT,
        packets_long: options.packets,
        cases: Vec::new(),
    };
    for case in chosen {
        let short = case.scenario.clone().with(|it| it.workload.packets = SHORT);
        let long = case.scenario.clone().with(|it| it.workload.packets = options.packets);
        let (mut short_ns, mut long_ns, mut speedups) = (Vec::new(), Vec::new(), Vec::new());
        for repetition in 0..options.repetitions {
            let runs: Vec<Run> = (0..SHORT_RUNS).map(|at| run(&short, seed(repetition, at))).collect::<Result<_, _>>()?;
            short_ns.push(packet_ns(&runs));
            long_ns.push(packet_ns(&[run(&long, seed(repetition, 0))?]));
            speedups.push(speedup(&pool, &long, processors, repetition)?);
        }
        let (packet_ns_short, packet_ns_long) = (Spread::of(short_ns), Spread::of(long_ns.clone()));
        report.cases.push(CaseReport {
            case: case.name,
            packets_mps: Spread::of(long_ns.iter().map(|ns| 1e3 / ns).collect()),
            packet_ns_short,
            packet_ns_long,
            long_by_short: packet_ns_long.median / packet_ns_short.median,
            allocations: allocations(&short, &long)?,
            processors,
            speedup: Spread::of(speedups).median,
        });
    }
    print(options.json, &report, &table(&report))
}

fn seed(repetition: usize, at: u32) -> Seed {
    replication_seed(Seed(repetition as u64), at)
}

/// Wall time by data packets sent.
fn packet_ns(runs: &[Run]) -> f64 {
    let packets: u64 = runs.iter().map(|run| run.outcome.packets_sent).sum();
    runs.iter().map(|run| run.wall_s).sum::<f64>() * 1e9 / packets as f64
}

/// How much faster `processors` replications are together than one after the other.
fn speedup(pool: &rayon::ThreadPool, scenario: &Scenario, processors: usize, repetition: usize) -> Result<f64> {
    let replications: Vec<u32> = (0..processors as u32).collect();
    let began = Instant::now();
    for replication in &replications {
        run(scenario, seed(repetition, *replication))?;
    }
    let serial = began.elapsed();
    let began = Instant::now();
    pool.install(|| replications.par_iter().map(|at| run(scenario, seed(repetition, *at))).collect::<Result<Vec<_>, _>>())?;
    Ok(serial.as_secs_f64() / began.elapsed().as_secs_f64())
}

/// What a long run allocates beyond a short one, by the packets it sends beyond it.
fn allocations(short: &Scenario, long: &Scenario) -> Result<f64> {
    let count = |scenario: &Scenario| -> Result<(f64, f64)> {
        let before = ALLOCATOR.stats();
        let run = run(scenario, seed(0, 0))?;
        let after = ALLOCATOR.stats();
        let made = (after.allocations + after.reallocations) - (before.allocations + before.reallocations);
        Ok((made as f64, run.outcome.packets_sent as f64))
    };
    let ((few, little), (many, much)) = (count(short)?, count(long)?);
    Ok((many - few) / (much - little))
}

fn table(report: &Report) -> String {
    let mut text = format!(
        "{}\n{} repetitions in turns; {} and {} new packets; window 36 segments of 256 packets, 500 Mbit/s, 60 ms\n\n",
        report.machine, report.repetitions, report.packets_short, report.packets_long
    );
    let _ = writeln!(
        text,
        "{:<24} {:>26} {:>9} {:>9} {:>11} {:>11} {:>8}",
        "case", "million packets a second", "ns short", "ns long", "long/short", "allocations", "speedup"
    );
    for case in &report.cases {
        let _ = writeln!(
            text,
            "{:<24} {:>26} {:>9.1} {:>9.1} {:>11.3} {:>11.5} {:>8.2}",
            case.case,
            case.packets_mps.to_string(),
            case.packet_ns_short.median,
            case.packet_ns_long.median,
            case.long_by_short,
            case.allocations,
            case.speedup
        );
    }
    let _ = writeln!(
        text,
        "\nspeedup: {} replications on as many processors, against one after the other",
        report.cases.first().map_or(0, |case| case.processors)
    );
    text
}
