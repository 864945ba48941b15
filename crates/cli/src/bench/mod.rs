//! `segstream bench`: what this protocol does on this machine, beside bare UDP and other transports.
//!
//! - [`workload`]: what is measured; [`transport`]: over what;
//! - [`end`]: one side of a measurement, a process of its own; [`child`] starts and hears it;
//! - [`measurement`]: both sides together; [`remote`]: one of them on another host;
//! - [`figures`], [`table`], [`markdown`]: what is told of it.
//!
//! Called from the command line.
//!
//! Invariant: transports take turns, so that what else happens on the machine happens to all of them; nothing is asserted
//! about time.

mod child;
mod end;
mod figures;
mod markdown;
mod measurement;
mod remote;
mod table;
mod transport;
mod workload;

use crate::{json, progress, quantity, usage};
use anyhow::{Context as _, Result};
use clap::{Args, Subcommand, ValueEnum};
use end::job::{JobPolling, JobThreads};
use figures::{Figures, Run, ratios};
use measurement::{Host, Processors, Sample};
use segstream::Bandwidth;
use segstream_base::{Bytes, Duration};
use segstream_lab::machine::Machine;
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use std::process::ExitCode;
use table::Table;
use transport::{Catalogue, Transport};
use workload::{ACTIVE_BYTES_MIN, AT_RATE_BYTES_MIN, Workload};

/// Measures this protocol over loopback, or between two hosts with `serve` and `run`.
///
/// Sender and receiver are separate processes, on two processors if there are two. The transports are measured alternately.
/// Goodput is what the receiving application gets; processor time is the sum of both ends. `raw` is UDP in GSO batches
/// without retransmission. ratio_to_raw is the plain mode's goodput divided by that of raw, and for round trips its time
/// divided by that of raw. Other transports need the program segstream-peers.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true,
    after_help = "Example:\n  segstream bench\n  segstream bench throughput ping-pong --against raw --json\n  \
                        segstream bench --against all --markdown numbers.md\n  segstream bench serve --listen 0.0.0.0:4433"
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    measuring: Measuring,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    Serve(remote::ServeArguments),
    /// Measures from this host to one where `segstream bench serve` runs.
    #[command(after_help = "Example:\n  segstream bench run 192.0.2.1:4433 --peer SHA256:... --code\n\n\
                            `serve` prints this line.")]
    Run(Box<RunArguments>),
    #[command(hide = true)]
    End(Box<end::Arguments>),
}

#[derive(Debug, Args)]
struct RunArguments {
    #[command(flatten)]
    server: remote::ServerArguments,
    #[command(flatten)]
    measuring: Measuring,
}

/// What is measured, over what, and how it is told.
#[derive(Debug, Args)]
struct Measuring {
    /// What to measure [default: throughput].
    #[arg(value_name = "WORKLOAD", value_enum)]
    workloads: Vec<Workload>,
    /// Whether to measure plain mode, encrypted mode or both.
    #[arg(long, value_enum, default_value = "both")]
    protection: Protection,
    /// What to compare with: raw, or other transports (quinn, s2n-quic, tcp, srt, srt-aes, udt, kcp, enet, aeron); all for
    /// everything that is available.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    against: Vec<String>,
    /// The path of the program segstream-peers [default: the directory of this program, then PATH].
    #[arg(long, value_name = "PATH")]
    peers: Option<PathBuf>,
    /// Measurements of each.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000), default_value = "5")]
    repetitions: u32,
    #[command(flatten)]
    flags: Flags,
    /// Does not pin the two ends to processors.
    #[arg(long)]
    no_pin: bool,
    /// Prints one JSON object on standard output.
    #[arg(long)]
    json: bool,
    /// Writes the tables as Markdown, into a new file, or into an existing one between the lines <!-- bench:WORKLOAD --> and
    /// <!-- /bench -->.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
}

/// What each measurement does.
#[derive(Debug, Args)]
struct Flags {
    /// MiB that `throughput` and `records` send [default: 1024; 100 for `records`].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 30), conflicts_with = "seconds")]
    mebibytes: Option<u64>,
    /// The duration of each measurement, in place of --mebibytes.
    #[arg(long, value_name = "T", value_parser = seconds)]
    seconds: Option<Duration>,
    /// The size of a segment [default: depends on the workload].
    #[arg(long, value_name = "BYTES", value_parser = quantity::positive_bytes)]
    segment_bytes: Option<Bytes>,
    /// The largest datagram.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1200..=65_507), default_value = "1200")]
    datagram_bytes: u64,
    /// The payload rate of `at-rate`, and of each connection of `active` [default: 10mbit; 1mbit for `active`].
    #[arg(long, value_name = "B", value_parser = quantity::bandwidth)]
    rate: Option<Bandwidth>,
    /// The number of idle connections of `connections`, or of sending connections of `active` [default: 10000; 1000 for
    /// `active`].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    connections: Option<u64>,
    /// How both ends wait for datagrams: block at once, or busy-poll first for about the cost of a wake-up (brief) or for
    /// several times that (adaptive). With adaptive, `raw`, `tcp` and `aeron` poll without blocking; otherwise `raw` and other
    /// transports block at once.
    #[arg(long, value_enum, default_value = "brief")]
    polling: JobPolling,
    /// Which I/O threads both ends of this protocol use. With more than one thread the ends are not pinned.
    #[arg(long, value_enum, default_value = "one")]
    threads: JobThreads,
    /// Turns segmentation offload (GSO and GRO) off at both ends.
    #[arg(long)]
    no_offload: bool,
}

/// Which of ours is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Protection {
    Plain,
    Encrypted,
    Both,
}

/// Runs the verb.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    match &arguments.action {
        None => measure(&arguments.measuring, None),
        Some(Action::Run(arguments)) => measure(&arguments.measuring, Some(&arguments.server)),
        Some(Action::Serve(arguments)) => remote::serve(arguments),
        Some(Action::End(arguments)) => end::run(arguments),
    }
}

/// Measures, and tells.
fn measure(measuring: &Measuring, server: Option<&remote::ServerArguments>) -> Result<ExitCode> {
    let workloads = measuring.workloads();
    measuring.check(&workloads, server.is_some())?;
    let transports = measuring.transports()?;
    measuring.check_transports(&workloads, &transports)?;
    let mut host = match server {
        Some(server) => Host::There(Box::new(remote::Control::connect(server)?)),
        None => Host::Here,
    };
    if let Host::There(control) = &host
        && let Some(lacking) = transports.iter().find(|transport| !control.has(&transport.known.name))
    {
        anyhow::bail!("the server cannot measure {}; leave it out, or build it there", lacking.known.name);
    }
    let runs = measuring.runs(&mut host, &workloads, &transports)?;
    let machines = match host {
        Host::There(control) => {
            let machines = vec![Machine::here(), control.machine().clone()];
            control.close()?;
            machines
        }
        Host::Here => vec![Machine::here()],
    };
    measuring.tell(&workloads, &runs, &machines)?;
    Ok(ExitCode::SUCCESS)
}

impl Measuring {
    /// Each workload once, as named.
    fn workloads(&self) -> Vec<Workload> {
        let mut workloads = Vec::new();
        for &workload in &self.workloads {
            if !workloads.contains(&workload) {
                workloads.push(workload);
            }
        }
        if workloads.is_empty() { vec![Workload::Throughput] } else { workloads }
    }

    /// Refuses what contradicts itself or means nothing.
    fn check(&self, workloads: &[Workload], two_hosts: bool) -> Result<()> {
        let flags = &self.flags;
        let by_amount: &[Workload] = &[Workload::Throughput, Workload::Records];
        let by_time: &[Workload] = &[Workload::Throughput, Workload::Records, Workload::PingPong, Workload::AtRate, Workload::Active];
        for (flag, is_given, of) in [
            ("mebibytes", flags.mebibytes.is_some(), by_amount),
            ("seconds", flags.seconds.is_some(), by_time),
            ("segment-bytes", flags.segment_bytes.is_some(), by_time),
            ("rate", flags.rate.is_some(), &[Workload::AtRate, Workload::Active]),
            ("connections", flags.connections.is_some(), &[Workload::Connections, Workload::Active]),
        ] {
            if is_given && !workloads.iter().any(|workload| of.contains(workload)) {
                let of: Vec<&str> = of.iter().map(|workload| workload.name()).collect();
                return Err(usage::bad(format!("--{flag} has an effect on {} only; leave it out", of.join(", "))));
            }
        }
        let size = flags.segment_bytes.map_or(ACTIVE_BYTES_MIN, Bytes::get);
        if size > SEGMENT_BYTES_MAX {
            return Err(usage::bad(format!(
                "a segment of {size} bytes does not fit the window; give --segment-bytes at most {SEGMENT_BYTES_MAX}"
            )));
        }
        if workloads.contains(&Workload::AtRate) && size < AT_RATE_BYTES_MIN {
            return Err(usage::bad(format!("a segment at a rate says when it was due; give --segment-bytes at least {AT_RATE_BYTES_MIN}")));
        }
        if workloads.contains(&Workload::Active) && size < ACTIVE_BYTES_MIN {
            return Err(usage::bad(format!(
                "active is paced at a fifth more than its payload, and headers of segments this short take more; give --segment-bytes at \
                 least {ACTIVE_BYTES_MIN}"
            )));
        }
        if two_hosts && workloads.contains(&Workload::AtRate) {
            return Err(usage::bad("at-rate compares the clocks of both ends, which must be on one host; leave it out"));
        }
        match &self.markdown {
            Some(file) => markdown::check(file, &workloads.iter().map(|workload| workload.name()).collect::<Vec<_>>()),
            None => Ok(()),
        }
    }

    /// Ours as chosen, then the others.
    fn transports(&self) -> Result<Vec<Transport>> {
        let with_peers = self.against.iter().any(|name| name != "raw");
        let catalogue = Catalogue::ask(self.peers.as_deref(), with_peers)?;
        let ours: &[&str] = match self.protection {
            Protection::Plain => &["plain"],
            Protection::Encrypted => &["encrypted"],
            Protection::Both => &["plain", "encrypted"],
        };
        let mut transports: Vec<Transport> = ours.iter().map(|name| catalogue.our(name)).collect::<Result<_>>()?;
        transports.extend(catalogue.against(&self.against)?);
        Ok(transports)
    }

    /// Refuses a transport that nothing is measured over.
    fn check_transports(&self, workloads: &[Workload], transports: &[Transport]) -> Result<()> {
        let is_idle = |transport: &&Transport| !workloads.iter().any(|workload| workload.suits(&transport.known.name));
        match transports.iter().find(is_idle).filter(|_| !self.against.iter().any(|name| name == "all")) {
            Some(Transport { known, .. }) => {
                let workloads: Vec<&str> = workloads.iter().map(|workload| workload.name()).collect();
                Err(usage::bad(format!("{} cannot be compared under {}; leave it out", known.name, workloads.join(" and "))))
            }
            None => Ok(()),
        }
    }

    /// All measurements: workload after workload, and in each the transports in turn.
    fn runs(&self, host: &mut Host, workloads: &[Workload], transports: &[Transport]) -> Result<Vec<Run>> {
        let processors = Processors::choose(!self.no_pin && self.flags.threads == JobThreads::One);
        let suited = |workload: Workload| transports.iter().filter(move |transport| workload.suits(&transport.known.name));
        let total: usize = workloads.iter().map(|&workload| suited(workload).count() * workload.jobs(&self.flags).len()).sum();
        let bar = progress::bar(
            Some(total as u64 * u64::from(self.repetitions)),
            "{pos} of {len} measurements [{wide_bar}] {msg}, {eta} left",
            false,
        );
        let mut runs = Vec::new();
        for &workload in workloads {
            let jobs = workload.jobs(&self.flags);
            let mut samples: Vec<Vec<Vec<Sample>>> = suited(workload).map(|_| vec![Vec::new(); jobs.len()]).collect();
            for _ in 0..self.repetitions {
                for (transport, samples) in suited(workload).zip(&mut samples) {
                    for (job, samples) in jobs.iter().zip(samples) {
                        bar.set_message(format!("{workload} over {}", transport.known.name));
                        let measured = host.measure(transport, job, processors);
                        samples.push(measured.with_context(|| format!("{workload} over {}", transport.known.name))?);
                        bar.inc(1);
                    }
                }
            }
            runs.extend(suited(workload).zip(samples).map(|(transport, samples)| self.summarised(workload, transport, &samples)));
        }
        bar.finish_and_clear();
        Ok(runs)
    }

    fn summarised(&self, workload: Workload, transport: &Transport, samples: &[Vec<Sample>]) -> Run {
        Run {
            name: transport.known.name.clone(),
            workload: workload.name(),
            version: transport.known.version.clone(),
            encrypts: transport.known.encrypts,
            settings: transport.known.settings.clone(),
            repetitions: self.repetitions as usize,
            figures: Figures::of(workload, samples),
        }
    }

    /// Tables for people, JSON for programs, Markdown for readers.
    fn tell(&self, workloads: &[Workload], runs: &[Run], machines: &[Machine]) -> Result<()> {
        let machine = machines.iter().map(ToString::to_string).collect::<Vec<_>>().join("; receiver on ");
        let mut by_workload = Map::new();
        let mut parts = Vec::new();
        eprintln!("{machine}");
        for workload in workloads {
            let runs: Vec<&Run> = runs.iter().filter(|run| run.workload == workload.name()).collect();
            let ratios = ratios(&runs);
            let table = Table::of(workload.name(), &runs, &ratios);
            eprintln!("\n{}", table.text().trim_end());
            parts.push((workload.name(), format!("{}, {machine}.\n\n{}", today(), table.markdown(&runs))));
            by_workload.insert(workload.name().to_owned(), ratios.into());
        }
        if let Some(file) = &self.markdown {
            markdown::write(file, &parts)?;
        }
        if self.json {
            json::print(&object(runs, machines, by_workload))?;
        }
        Ok(())
    }
}

/// The longest segment: the largest window that a receiver grants by default.
const SEGMENT_BYTES_MAX: u64 = 64 << 20;

/// The JSON object. The ratios of one workload stand in it, those of several in an object for each.
fn object(runs: &[Run], machines: &[Machine], mut ratios: Map<String, Value>) -> Value {
    let mut object = json!({ "runs": runs });
    object["machine"] = json!(machines.first());
    if let Some(server) = machines.get(1) {
        object["server_machine"] = json!(server);
    }
    if ratios.len() == 1
        && let Some((_, Value::Object(only))) = ratios.iter_mut().next()
    {
        for (name, ratio) in std::mem::take(only) {
            object[name] = ratio;
        }
    } else {
        object["ratios"] = ratios.into();
    }
    object
}

/// The date in UTC, as 2026-01-31.
fn today() -> String {
    time::OffsetDateTime::now_utc().date().to_string()
}

/// A time that is measured for: `5`, `0.5` or `500ms`.
fn seconds(text: &str) -> Result<Duration, String> {
    let is_bare = text.parse::<f64>().is_ok();
    quantity::positive_duration(&if is_bare { format!("{text}s") } else { text.to_owned() })
}
