//! The `segstream` command: one file a verb.
//!
//! - [`send`] and [`recv`]: files and pipes over the transport;
//! - [`link`]: a path with bandwidth, delay and loss between real sockets;
//! - [`identity`]: our own key and those of known peers;
//! - [`inspect`]: shipments in a capture;
//! - [`bench`]: what the transport does on this machine, beside bare UDP and others;
//! - [`demo`]: a flow simulation streamed in five ways;
//! - [`sim`]: one scheme over a simulated black box, or XTP over a tandem of queues;
//! - [`top`]: the connections of running transfers;
//! - [`study`]: the figures and tables of the papers.
//!
//! What the verbs share is called after what it is: [`quantity`] (`60ms`, `500mbit`, `1MiB`), [`address`],
//! [`tolerance_argument`], [`code_argument`], [`explicit_flags`], [`protection`], [`progress`], [`json`], [`usage`].
//!
//! Invariant: everything for people goes to standard error, and the exit status is 0 for done, 1 for failed
//! and 2 for bad usage.

mod address;
mod bench;
mod code_argument;
mod content_hash;
mod demo;
mod explicit_flags;
mod hops;
mod http_server;
mod identity;
mod inspect;
mod interruption;
mod json;
mod link;
mod link_metrics;
mod link_speed;
mod link_tun;
mod live_statistics;
mod local_sockets;
mod manifest;
mod metrics_server;
mod pack;
mod progress;
mod protection;
mod quantity;
mod recording;
mod recv;
mod scheme_report;
mod segment_lines;
mod send;
mod sim;
mod study;
mod tolerance_argument;
mod top;
mod transfer_report;
mod usage;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Sends messages (segments) over UDP, with loss bounded to what the application tolerates.
#[derive(Debug, Parser)]
#[command(name = "segstream", version, propagate_version = true, arg_required_else_help = true)]
#[command(
    after_help = "Example:\n  segstream recv --listen 127.0.0.1:4433 --out film.mkv\n  segstream send 127.0.0.1:4433 film.mkv --peer \
                        SHA256:... --code\n\n`recv` prints the second line, with PATH for the file and the one-time code for --code in front of it.\n\nExit status: 0 done, 1 failed, 2 bad usage."
)]
struct Command {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Demo(demo::Arguments),
    Recv(Box<recv::Arguments>),
    Send(Box<send::Arguments>),
    Link(Box<link::Arguments>),
    Bench(Box<bench::Arguments>),
    Identity(identity::Arguments),
    Inspect(inspect::Arguments),
    Sim(Box<sim::Arguments>),
    Study(study::Arguments),
    Top(top::Arguments),
}

fn main() -> ExitCode {
    let command = Command::try_parse().unwrap_or_else(|error| sim::explained(send::explained(error)).exit());
    let outcome = match command.verb {
        Verb::Demo(arguments) => demo::run(&arguments),
        Verb::Recv(arguments) => recv::run(&arguments),
        Verb::Send(arguments) => send::run(&arguments),
        Verb::Link(arguments) => link::run(&arguments),
        Verb::Bench(arguments) => bench::run(&arguments),
        Verb::Identity(arguments) => identity::run(&arguments),
        Verb::Inspect(arguments) => inspect::run(&arguments),
        Verb::Sim(arguments) => sim::run(&arguments),
        Verb::Study(arguments) => study::run(&arguments),
        Verb::Top(arguments) => top::run(&arguments),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("segstream: {error:#}");
        usage::exit_code(&error)
    })
}
