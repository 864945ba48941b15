//! One end of a measurement: a process that sends or receives, and says what it has counted.
//!
//! - [`job`]: what is asked of an end, on its command line;
//! - [`line`](mod@line): what an end says, in lines of JSON;
//! - [`settings`]: endpoints of ours as they are measured;
//! - [`segments`], [`ping_pong`], [`setups`], [`active`]: the workloads over this protocol;
//! - [`raw_batch`], [`raw_echo`]: the limit that UDP itself sets, on a socket as [`raw`] opens it;
//! - [`processor`]: processor time, memory and the clock of both ends.
//!
//! Started by [`super::child`], and by whatever else measures several transports alike. The form is the same for every
//! transport: `end TRANSPORT --side serve --bind ADDR ...` says where it listens, `end TRANSPORT --side run --connect ADDR
//! ...` goes there.
//!
//! Invariant: standard output carries lines of JSON and nothing else; the last one is the result or the reason that there is none.

mod active;
pub(super) mod job;
pub(super) mod line;
mod ping_pong;
mod processor;
mod raw;
mod raw_batch;
mod raw_echo;
mod segments;
mod settings;
mod setups;

use crate::json;
use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use job::{Job, Task, word};
use line::{Failure, Known, Outcome};
use segstream::Fingerprint;
use std::net::SocketAddr;
use std::process::ExitCode;

pub(super) use processor::usable as usable_processors;
pub(super) use settings::any_port;

/// One end of a measurement, for programs: lines of JSON on standard output.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Over what.
    #[arg(value_name = "TRANSPORT", value_enum, required_unless_present = "list")]
    transport: Option<Transport>,
    /// Prints what this program can be an end of.
    #[arg(long)]
    list: bool,
    /// Accepted, and always so: an end speaks JSON.
    #[arg(long)]
    json: bool,
    /// Which end: the one that is connected to and receives, or the one that connects and sends.
    #[arg(long, value_enum, required_unless_present = "list")]
    side: Option<Side>,
    /// Where `serve` listens.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    bind: SocketAddr,
    /// Where `run` finds the other end.
    #[arg(long, value_name = "ADDR", required_if_eq("side", "run"))]
    connect: Option<SocketAddr>,
    /// What the other end has said about itself.
    #[arg(long, value_name = "TEXT", default_value = "")]
    trust: String,
    /// The processor this process stays on.
    #[arg(long, value_name = "N")]
    cpu: Option<usize>,
    #[command(flatten)]
    job: Job,
}

/// The transports of this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Transport {
    Plain,
    Encrypted,
    Raw,
}

/// The ends of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Side {
    Serve,
    Run,
}

/// Runs the hidden verb.
pub(super) fn run(arguments: &Arguments) -> Result<ExitCode> {
    if arguments.list {
        json::print(&list())?;
        return Ok(ExitCode::SUCCESS);
    }
    match measure(arguments) {
        Ok(outcome) => json::print(&outcome).map(|()| ExitCode::SUCCESS),
        Err(error) => json::print(&Failure { error: format!("{error:#}") }).map(|()| ExitCode::FAILURE),
    }
}

fn measure(arguments: &Arguments) -> Result<Outcome> {
    if let Some(processor) = arguments.cpu {
        processor::stay_on(processor)?;
    }
    let (Some(transport), Some(side)) = (arguments.transport, arguments.side) else { bail!("give a transport and --side") };
    let job = &arguments.job;
    let place = match side {
        Side::Serve => Place::Serve(arguments.bind),
        Side::Run => Place::Run {
            connect: arguments.connect.unwrap_or(arguments.bind),
            // A transport that proves nothing has nothing to trust.
            trust: Some(arguments.trust.as_str()).filter(|text| !text.is_empty()).map(str::parse).transpose()?,
        },
    };
    let encrypted = transport == Transport::Encrypted;
    match (transport, job.workload) {
        (Transport::Raw, Task::Throughput) => raw_batch::run(&place, job),
        (Transport::Raw, Task::PingPong) => raw_echo::run(&place, job),
        (Transport::Raw, other) => bail!("bare UDP knows the workloads throughput and ping-pong, not {}", word(&other)),
        (_, Task::Throughput | Task::Schedule) => segments::run(&place, job, encrypted),
        (_, Task::PingPong) => ping_pong::run(&place, job, encrypted),
        (_, Task::Active) => active::run(&place, job, encrypted),
        (_, Task::Setups | Task::Idle) => setups::run(&place, job, encrypted),
    }
}

/// Where an end is, and whom it goes to.
#[derive(Debug)]
enum Place {
    Serve(SocketAddr),
    Run { connect: SocketAddr, trust: Option<Fingerprint> },
}

/// What this program can be an end of.
pub(super) fn list() -> Vec<Known> {
    let known = |name: &str, encrypts, settings: &str| Known {
        name: name.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        encrypts,
        settings: settings.to_owned(),
        available: true,
        why: None,
    };
    vec![
        known(
            "plain",
            false,
            "Segstream with an integrity check alone, class 6: a window of 8192 units paces, no rate; active has class 7 and a rate",
        ),
        known(
            "encrypted",
            true,
            "Segstream with TLS 1.3 keys on both sides, class 6: a window of 8192 units paces, no rate; active has class 7 and a rate",
        ),
        known("raw", false, "bare UDP: GSO batches of datagrams, a window of 4000 datagrams, no retransmission"),
    ]
}
