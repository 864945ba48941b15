//! `soak`: one transfer through the emulator for a long time, with what it does to memory, speed and verdicts.
//!
//! Called by people. `segstream send` sends a stream of bytes to `segstream recv` through `segstream link`, three processes;
//! the bytes are made and counted here. The receiver throws them away, and both ends compute a hash of all of them.
//!
//! Invariant: it ends by itself, soon after the time that was asked for; no process that it has started outlives it.

use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;
use segstream_lab::machine::Machine;
use serde::Serialize;
use serde_json::Value;
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// How long.
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
    minutes: u32,
    /// The bandwidth of the path.
    #[arg(long, value_name = "B", default_value = "1gbit")]
    bandwidth: String,
    /// Its round trip.
    #[arg(long, value_name = "T", default_value = "10ms")]
    rtt: String,
    /// Its loss there.
    #[arg(long, value_name = "SPEC", default_value = "1e-2")]
    loss: String,
    /// What else `send` is told, such as "--rate 500mbit --tolerance 5,1".
    #[arg(long, value_name = "FLAGS", default_value = "", allow_hyphen_values = true)]
    send: String,
    /// The command to measure [default: built now, beside this program].
    #[arg(long, value_name = "PATH")]
    segstream: Option<PathBuf>,
}

const MINUTE: Duration = Duration::from_secs(60);
/// How much is written at a time.
const PATTERN_BYTES: usize = 1 << 20;
/// More than a soak of any length sends.
const MOST: &str = "1048576GiB";

/// One minute.
#[derive(Clone, Debug, Serialize)]
struct Minute {
    goodput_bps: f64,
    /// Resident memory at its end, in KiB: sender, receiver, emulator.
    resident_kib: [u64; 3],
}

#[derive(Debug, Serialize)]
struct Report {
    machine: Machine,
    minutes: Vec<Minute>,
    /// How much more memory each had at the end than after the first minute, in KiB.
    growth_kib: [i64; 3],
    sender: Value,
    receiver: Value,
}

/// A process that ends with the value that stands for it.
#[derive(Debug)]
struct Process(Child);

impl Process {
    fn start(program: &Path, words: &[&str], input: Stdio) -> Result<Self> {
        let mut command = Command::new(program);
        command.args(words).stdin(input).stdout(Stdio::piped()).stderr(Stdio::inherit());
        Ok(Self(command.spawn().with_context(|| format!("{} cannot be started", program.display()))?))
    }

    /// Resident memory in KiB; zero once it has ended.
    fn resident_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Why ignored: it has ended by itself, as a rule.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let program = match &options.segstream {
        Some(program) => program.clone(),
        None => crate::shared::build()?,
    };
    let [at, link_at] = [free_address()?, free_address()?];
    // Without --out it counts what comes and throws it away.
    let receiver_words = ["recv", "--listen", &at, "--insecure", "--json", "--max-bytes", MOST];
    let mut receiver = Process::start(&program, &receiver_words, Stdio::null())?;
    let link_words = ["link", "--listen", &link_at, "--to", &at, "--bandwidth", &options.bandwidth, "--rtt", &options.rtt];
    let mut link = Process::start(&program, &[&link_words[..], &["--loss", &options.loss, "--json"]].concat(), Stdio::null())?;
    let more: Vec<&str> = options.send.split_whitespace().collect();
    let sender_words = [&["send", &link_at, "-", "--insecure", "--json"][..], &more].concat();
    let mut sender = Process::start(&program, &sender_words, Stdio::piped())?;

    let (count, over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let feeding = feed(&mut sender, Arc::clone(&count), Arc::clone(&over))?;
    let minutes = watch(options, &count, [&mut sender, &mut receiver, &mut link]);
    over.store(true, Ordering::Relaxed);
    feeding.join().ok();
    let minutes = minutes?;
    let (sender, receiver) = (outcome(&mut sender, "sender")?, outcome(&mut receiver, "receiver")?);

    let [first, last] = [minutes.first(), minutes.last()].map(|minute| minute.map_or([0; 3], |minute| minute.resident_kib));
    let growth_kib = std::array::from_fn(|at| i64::try_from(last[at]).unwrap_or(i64::MAX) - i64::try_from(first[at]).unwrap_or(0));
    let report = Report { machine: Machine::here(), minutes, growth_kib, sender, receiver };
    crate::print(options.json, &report, &text(&report))
}

/// An address that is free now.
fn free_address() -> Result<String> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).context("there is no free port")?;
    Ok(socket.local_addr()?.to_string())
}

/// Writes bytes into the sender until it is over, as fast as it takes them.
fn feed(sender: &mut Process, count: Arc<AtomicU64>, over: Arc<AtomicBool>) -> Result<thread::JoinHandle<()>> {
    let mut input = sender.0.stdin.take().context("the sender has no input")?;
    let pattern: Vec<u8> = (0..PATTERN_BYTES).map(|at| (at % 251) as u8).collect();
    Ok(thread::spawn(move || {
        while !over.load(Ordering::Relaxed) && input.write_all(&pattern).is_ok() {
            count.fetch_add(PATTERN_BYTES as u64, Ordering::Relaxed);
        }
    }))
}

/// Samples throughput and memory every minute, and checks that all processes are alive.
fn watch(options: &Options, count: &AtomicU64, mut processes: [&mut Process; 3]) -> Result<Vec<Minute>> {
    let began = Instant::now();
    let (mut minutes, mut before) = (Vec::new(), 0);
    for minute in 1..=options.minutes {
        let end = began + MINUTE * minute;
        while Instant::now() < end {
            thread::sleep(Duration::from_millis(500).min(end.saturating_duration_since(Instant::now())));
            for (process, name) in processes.iter_mut().zip(["sender", "receiver", "emulator"]) {
                if process.0.try_wait()?.is_some() {
                    bail!("the {name} has ended in minute {minute}; it says why above");
                }
            }
        }
        let now = count.load(Ordering::Relaxed);
        let resident_kib = processes.each_ref().map(|process| process.resident_kib());
        let told = Minute { goodput_bps: (now - before) as f64 * 8.0 / MINUTE.as_secs_f64(), resident_kib };
        eprintln!("{minute} of {} minutes: {}", options.minutes, row(&told));
        minutes.push(told);
        before = now;
    }
    Ok(minutes)
}

/// What an end says of itself when it is done.
fn outcome(end: &mut Process, name: &str) -> Result<Value> {
    let mut said = String::new();
    end.0.stdout.take().context("an end has no output")?.read_to_string(&mut said)?;
    let status = end.0.wait()?;
    ensure!(status.success(), "the {name} has failed: {status}");
    serde_json::from_str(said.trim()).with_context(|| format!("the {name} says what cannot be understood: {said}"))
}

fn row(minute: &Minute) -> String {
    let [sender, receiver, link] = minute.resident_kib.map(|kib| kib as f64 / 1024.0);
    format!("{:.1} Mbit/s; resident memory {sender:.1}, {receiver:.1}, {link:.1} MiB", minute.goodput_bps / 1e6)
}

fn text(report: &Report) -> String {
    let mut out = format!("{}\n\nminute  Mbit/s  resident MiB: sender  receiver  emulator\n", report.machine);
    for (number, minute) in (1..).zip(&report.minutes) {
        let [sender, receiver, link] = minute.resident_kib.map(|kib| kib as f64 / 1024.0);
        let _ = writeln!(out, "{number:>6}  {:>6.1}  {sender:>20.1}  {receiver:>8.1}  {link:>8.1}", minute.goodput_bps / 1e6);
    }
    let [sender, receiver, link] = report.growth_kib;
    let _ = writeln!(out, "\nmore memory than after the first minute, KiB: sender {sender}, receiver {receiver}, emulator {link}");
    let field = |end: &Value, name: &str| end.get(name).map_or_else(|| "unknown".to_owned(), Value::to_string);
    for (name, end) in [("sender", &report.sender), ("receiver", &report.receiver)] {
        let _ = writeln!(
            out,
            "{name}: {} bytes, verdicts {}, {} units again, same hash at both ends: {}",
            field(end, "bytes"),
            field(end, "verdicts"),
            field(end, "units_retransmitted"),
            field(end, "hash_agrees")
        );
    }
    out
}
