//! `observe`: what metrics and qlog cost a transfer at a fixed rate.
//!
//! Called by people. `segstream send` sends a file of zeros over loopback to `segstream recv`, which discards it: without either, with metrics
//! at both ends that are scraped each second, and with qlogs at both ends, in turn. Processor time is that of both processes together.
//!
//! Why in plain mode: there everything else costs least, so that the shares are the largest.
//!
//! Invariant: nothing is asserted about time; what the qlogs lack is told.

use crate::spread::Spread;
use anyhow::{Context as _, Result, ensure};
use clap::Args;
use nix::sys::resource::{UsageWho, getrusage};
use segstream_lab::machine::Machine;
use segstream_testbed::process::{Ended, Running, start};
use serde::Serialize;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// The sending rate, in Mbit/s.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    megabits: u64,
    /// How long a transfer takes at that rate.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=40))]
    seconds: u64,
    /// How often each is measured.
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    repetitions: u32,
    /// The command to measure [default: built now, beside this program].
    #[arg(long, value_name = "PATH")]
    segstream: Option<PathBuf>,
}

/// What is switched on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Mode {
    Off,
    Metrics,
    Qlog,
}

const MODES: [Mode; 3] = [Mode::Off, Mode::Metrics, Mode::Qlog];

/// One transfer.
#[derive(Clone, Copy, Debug)]
struct Sample {
    processor_seconds: f64,
    goodput_bps: f64,
    events_omitted: u64,
    qlog_bytes: u64,
}

/// All transfers of one mode.
#[derive(Debug, Serialize)]
struct Row {
    mode: Mode,
    processor_seconds_per_gib: Spread,
    /// How much more than without either, in percent of the medians.
    growth_percent: f64,
    goodput_mbps: Spread,
    events_omitted_max: u64,
    qlog_mib_per_gib: f64,
}

#[derive(Debug, Serialize)]
struct Report {
    machine: Machine,
    megabits: u64,
    seconds: u64,
    repetitions: u32,
    rows: Vec<Row>,
}

/// Measures and prints.
pub(crate) fn run(options: &Options) -> Result<()> {
    let program = options.segstream.clone().map_or_else(crate::shared::build, Ok)?;
    let folder = tempfile::tempdir()?;
    let bytes = options.megabits * 1_000_000 / 8 * options.seconds;
    let file = folder.path().join("zeros");
    File::create(&file)?.set_len(bytes)?;
    let mut samples: [Vec<Sample>; 3] = Default::default();
    for repetition in 0..options.repetitions {
        for (mode, samples) in MODES.into_iter().zip(&mut samples) {
            eprintln!("{mode:?}, {} of {}", repetition + 1, options.repetitions);
            samples.push(transfer(&program, &file, options.megabits, mode).with_context(|| format!("{mode:?}"))?);
        }
    }
    let gibibytes = bytes as f64 / f64::from(1 << 30);
    let spread =
        |samples: &[Sample], read: fn(&Sample) -> f64, by: f64| Spread::of(samples.iter().map(|sample| read(sample) / by).collect());
    let processor = |samples: &[Sample]| spread(samples, |sample| sample.processor_seconds, gibibytes);
    let off = processor(&samples[0]).median;
    let rows = MODES.into_iter().zip(&samples).map(|(mode, samples)| Row {
        mode,
        processor_seconds_per_gib: processor(samples),
        growth_percent: 100.0 * (processor(samples).median / off - 1.0),
        goodput_mbps: spread(samples, |sample| sample.goodput_bps, 1e6),
        events_omitted_max: samples.iter().map(|sample| sample.events_omitted).max().unwrap_or(0),
        qlog_mib_per_gib: spread(samples, |sample| sample.qlog_bytes as f64, gibibytes * f64::from(1 << 20)).median,
    });
    let Options { megabits, seconds, repetitions, .. } = *options;
    let report = Report { machine: Machine::here(), megabits, seconds, repetitions, rows: rows.collect() };
    crate::print(options.json, &report, &text(&report))
}

/// The processor time of all children that have ended, in seconds.
fn processor_seconds() -> Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).context("the system does not tell the time of children")?;
    let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    Ok(seconds(usage.user_time()) + seconds(usage.system_time()))
}

fn transfer(program: &Path, file: &Path, megabits: u64, mode: Mode) -> Result<Sample> {
    let logs = tempfile::tempdir()?;
    let observed: Vec<String> = match mode {
        Mode::Off => Vec::new(),
        Mode::Metrics => ["--metrics", "127.0.0.1:0"].map(str::to_owned).into(),
        Mode::Qlog => vec!["--qlog".to_owned(), logs.path().display().to_string()],
    };
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).chain(observed.iter().cloned()).collect::<Vec<String>>();
    let before = processor_seconds()?;
    let mut receiver = start(program, words(&["recv", "--listen", "127.0.0.1:0", "--insecure", "--json"]));
    let at = receiver.listening().to_string();
    let (rate, file) = (format!("{megabits}mbit"), file.display().to_string());
    let mut sender = start(program, words(&["send", &at, &file, "--insecure", "--json", "--rate", &rate, "--careful-resume", "false"]));
    let stop = AtomicBool::new(false);
    let addresses: Vec<String> = match mode {
        Mode::Metrics => vec![metrics_of(&mut receiver), metrics_of(&mut sender)],
        Mode::Off | Mode::Qlog => Vec::new(),
    };
    let (sent, received) = std::thread::scope(|scope| {
        scope.spawn(|| scrape(&addresses, &stop));
        let sent = sender.end();
        let received = receiver.end();
        stop.store(true, Ordering::Relaxed);
        (sent, received)
    });
    ensure!(sent.code == Some(0) && received.code == Some(0), "the transfer failed: {} {}", sent.stderr, received.stderr);
    let qlog_bytes = std::fs::read_dir(logs.path())?.filter_map(|entry| Some(entry.ok()?.metadata().ok()?.len())).sum();
    Ok(Sample {
        processor_seconds: processor_seconds()? - before,
        goodput_bps: received.json()["goodput_bps"].as_f64().unwrap_or(f64::NAN),
        events_omitted: omitted(&sent) + omitted(&received),
        qlog_bytes,
    })
}

/// Where a process serves its metrics.
fn metrics_of(process: &mut Running) -> String {
    loop {
        if let Some(rest) = process.line().strip_prefix("metrics: http://") {
            return rest.trim_end_matches("/metrics").to_owned();
        }
    }
}

/// Asks each address for its metrics once a second.
fn scrape(addresses: &[String], stop: &AtomicBool) {
    let mut text = String::new();
    while !addresses.is_empty() && !stop.load(Ordering::Relaxed) {
        for address in addresses {
            text.clear();
            // A process that has ended is not asked any more.
            let Ok(mut stream) = TcpStream::connect(address) else { continue };
            _ = stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").and_then(|()| stream.read_to_string(&mut text));
        }
        std::thread::sleep(Duration::from_secs(1));
    }
}

/// How many events the command says that it has not recorded.
fn omitted(ended: &Ended) -> u64 {
    let line = ended.stderr.lines().find(|line| line.contains("events were not recorded"));
    line.and_then(|line| line.split(' ').nth(1)?.parse().ok()).unwrap_or(0)
}

fn text(report: &Report) -> String {
    let Report { machine, megabits, seconds, repetitions, rows } = report;
    let mut text =
        format!("{machine}\n{megabits} Mbit/s over loopback for {seconds} s, medians (least to most) of {repetitions} in turn\n\n");
    for Row { mode, processor_seconds_per_gib, growth_percent, goodput_mbps, events_omitted_max, qlog_mib_per_gib } in rows {
        let mode = format!("{mode:?}").to_lowercase();
        _ = writeln!(
            text,
            "{mode:8} {processor_seconds_per_gib} processor seconds a GiB, {growth_percent:+.1} %; {goodput_mbps} Mbit/s; \
             {qlog_mib_per_gib:.1} MiB of qlog a GiB, at most {events_omitted_max} events omitted"
        );
    }
    text
}
