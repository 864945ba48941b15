//! What encryption costs: the same transfer over loopback in plain mode and encrypted, in turn; and what a set-up
//! with its close costs the server's processor.
//!
//! Called by people. Two threads, each with a socket of its own; what the system's network costs is in both modes the same.
//!
//! Invariant: every byte counted has arrived in a segment judged complete.

use crate::machine::{Machine, processor_time};
use crate::spread::Spread;
use anyhow::{Context as _, Result, bail};
use clap::Args;
use nix::time::{ClockId, clock_gettime};
use segstream::blocking::Endpoint;
use segstream::{Bytes, Class, Config, Contract, Peer, Rate, Security, Verdict};
use serde::Serialize;
use std::fmt::Write as _;
use std::thread;
use std::time::{Duration, Instant};

/// What is sent, how often.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// How much each transfer carries, in MiB.
    #[arg(long, value_name = "N", default_value_t = 1024)]
    mebibytes: u32,
    /// Transfers in each mode, in turn.
    #[arg(long, value_name = "N", default_value_t = 5)]
    repetitions: usize,
    /// Set-ups measured in each mode.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    setups: u32,
    /// Prints one JSON object.
    #[arg(long)]
    json: bool,
}

const SEGMENT_BYTES: usize = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Plain,
    Encrypted,
}

impl Mode {
    fn config(self, server: bool) -> Config {
        let security = match self {
            Self::Plain => Security::Insecure,
            Self::Encrypted if server => Security::serving_anyone(),
            Self::Encrypted => Security::default(),
        };
        Config { security, ..Config::default() }
    }
}

#[derive(Debug, Serialize)]
struct Run {
    name: &'static str,
    goodput_bps_median: f64,
    cpu_seconds_per_gb: f64,
    server_cpu_us_per_setup: f64,
}

#[derive(Debug, Serialize)]
struct Report {
    machine: Machine,
    runs: Vec<Run>,
    /// Encrypted against plain.
    goodput_ratio: f64,
    cpu_ratio: f64,
}

/// Measures and prints.
pub(crate) fn run(options: &Options) -> Result<()> {
    let modes = [Mode::Plain, Mode::Encrypted];
    let mut goodput = [Vec::new(), Vec::new()];
    let mut cpu = [Vec::new(), Vec::new()];
    for _ in 0..options.repetitions.max(1) {
        for (at, mode) in modes.into_iter().enumerate() {
            let (bps, seconds_per_gb) = transfer(mode, options.mebibytes as usize)?;
            goodput[at].push(bps);
            cpu[at].push(seconds_per_gb);
        }
    }
    let names = ["plain", "encrypted"];
    let runs: Result<Vec<Run>> = (0..2)
        .map(|at| {
            Ok(Run {
                name: names[at],
                goodput_bps_median: Spread::of(goodput[at].clone()).median,
                cpu_seconds_per_gb: Spread::of(cpu[at].clone()).median,
                server_cpu_us_per_setup: setups(modes[at], options.setups)?,
            })
        })
        .collect();
    let runs = runs?;
    let report = Report {
        machine: Machine::here(),
        goodput_ratio: runs[1].goodput_bps_median / runs[0].goodput_bps_median,
        cpu_ratio: runs[1].cpu_seconds_per_gb / runs[0].cpu_seconds_per_gb,
        runs,
    };
    crate::print(options.json, &report, &text(&report)?)
}

fn text(report: &Report) -> Result<String> {
    let mut text = format!("{}\n\n{:<10} {:>14} {:>10} {:>22}\n", report.machine, "", "goodput", "CPU", "server CPU of a set-up");
    for run in &report.runs {
        let gigabits = run.goodput_bps_median / 1e9;
        writeln!(
            text,
            "{:<10} {gigabits:>7.2} Gbit/s {:>5.2} s/GB {:>19.0} us",
            run.name, run.cpu_seconds_per_gb, run.server_cpu_us_per_setup
        )?;
    }
    writeln!(text, "encrypted / plain: goodput {:.2}, CPU {:.2}", report.goodput_ratio, report.cpu_ratio)?;
    Ok(text)
}

/// One transfer: bits a second, and seconds of both ends' processors for a GB.
fn transfer(mode: Mode, mebibytes: usize) -> Result<(f64, f64)> {
    let any = ([127, 0, 0, 1], 0).into();
    let class = Class::new(6).context("there is a class 6")?;
    // Without rate control the window alone paces, so that what is measured is what the two ends can do.
    let windowed = |server| Config { class, rate: Rate::Unpaced, unlimited: true, ..mode.config(server) };
    let receiver = Endpoint::listen(any, windowed(true))?;
    let peer = receiver.peer();
    let receiving = thread::spawn(move || receive(receiver, mebibytes));
    let cpu = process_cpu()?;
    let began = Instant::now();
    send(windowed(false), peer, mebibytes)?;
    let took = began.elapsed();
    let cpu = process_cpu()? - cpu;
    receiving.join().map_err(|_| anyhow::anyhow!("the receiving thread has panicked"))??;
    let bytes = (mebibytes * SEGMENT_BYTES) as f64;
    Ok((bytes * 8.0 / took.as_secs_f64(), cpu.as_secs_f64() / (bytes / 1e9)))
}

fn send(config: Config, peer: Peer, segments: usize) -> Result<()> {
    let mut endpoint = Endpoint::bind(([127, 0, 0, 1], 0).into(), config)?;
    let contract = Contract { window_units: 8192, ..Contract::default() };
    let id = endpoint.connect(peer, vec![contract])?;
    let mut connection = endpoint.connection(id);
    let bytes = Bytes::from(vec![7; SEGMENT_BYTES]);
    for _ in 0..segments {
        connection.send(0, bytes.clone())?;
    }
    connection.close(0, "done")?;
    Ok(())
}

fn receive(mut endpoint: Endpoint, segments: usize) -> Result<()> {
    let id = endpoint.accept(None)?;
    let mut connection = endpoint.connection(id);
    let mut complete = 0;
    while let Some(segment) = connection.recv(0, None)? {
        complete += usize::from(segment.verdict == Verdict::Complete && segment.bytes.len() == SEGMENT_BYTES);
    }
    endpoint.close()?;
    if complete != segments {
        bail!("{complete} of {segments} segments are complete");
    }
    Ok(())
}

/// The server's processor time of a set-up with its close, in microseconds.
fn setups(mode: Mode, count: u32) -> Result<f64> {
    let any = ([127, 0, 0, 1], 0).into();
    let mut server = Endpoint::listen(any, Config { handshakes_per_second: 1_000_000, ..mode.config(true) })?;
    let peer = server.peer();
    let serving = thread::spawn(move || -> Result<f64> {
        let before = processor_time();
        for _ in 0..count {
            let id = server.accept(None)?;
            server.connection(id).closed(None)?;
            server.forget(id);
        }
        Ok(processor_time() - before)
    });
    let mut client = Endpoint::bind(any, mode.config(false))?;
    for _ in 0..count {
        let id = client.connect(peer.clone(), Vec::new())?;
        client.connection(id).close(0, "done")?;
        client.forget(id);
    }
    let spent = serving.join().map_err(|_| anyhow::anyhow!("the serving thread has panicked"))??;
    Ok(spent / 1e3 / f64::from(count.max(1)))
}

fn process_cpu() -> Result<Duration> {
    Ok(clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).context("the system does not tell the process's time")?.into())
}
