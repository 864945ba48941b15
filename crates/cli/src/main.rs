//! The `segstream` command: one file a verb.
//!
//! - [`send`] and [`recv`]: files and pipes over the transport;
//! - [`link`]: a path with bandwidth, delay and loss between real sockets;
//! - [`inspect`]: shipments in a capture;
//! - [`bench`]: what the transport does on this machine, beside bare UDP and others;
//! - [`demo`]: a flow simulation streamed in four ways;
//! - [`sim`]: one scheme over a simulated black box, or XTP over a tandem of queues;
//! - [`study`]: the figures and tables of the papers.
//!
//! What the verbs share is called after what it is: [`quantity`] (`60ms`, `500mbit`, `1MiB`), [`address`],
//! [`tolerance_argument`], [`given`], [`protection`], [`progress`], [`json`], [`usage`].
//!
//! Invariant: everything for people goes to standard error, and the exit status is 0 for done, 1 for failed
//! and 2 for bad usage.

mod address;
mod bench;
mod content_hash;
mod demo;
mod given;
mod hops;
mod inspect;
mod interruption;
mod json;
mod link;
mod link_speed;
mod link_tun;
mod live_statistics;
mod manifest;
mod progress;
mod protection;
mod quantity;
mod recv;
mod scheme_report;
mod send;
mod sim;
mod study;
mod tolerance_argument;
mod transfer_report;
mod usage;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Sends messages (segments) over UDP, with loss bounded to what the application tolerates.
#[derive(Debug, Parser)]
#[command(name = "segstream", version, propagate_version = true, arg_required_else_help = true)]
#[command(after_help = "Example:\n  segstream recv --listen 127.0.0.1:4433 --out copies\n  segstream send 127.0.0.1:4433 film.mkv --peer \
                        SHA256:... --code k7qm-2xnp-9wdt-4rfh\n\n`recv` prints the second line, with PATH for the file.\n\nExit status: 0 done, 1 failed, 2 bad usage.")]
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
    Inspect(inspect::Arguments),
    Sim(Box<sim::Arguments>),
    Study(study::Arguments),
}

fn main() -> ExitCode {
    let command = Command::try_parse().unwrap_or_else(|error| sim::explained(send::explained(error)).exit());
    let outcome = match command.verb {
        Verb::Demo(arguments) => demo::run(&arguments),
        Verb::Recv(arguments) => recv::run(&arguments),
        Verb::Send(arguments) => send::run(&arguments),
        Verb::Link(arguments) => link::run(&arguments),
        Verb::Bench(arguments) => bench::run(&arguments),
        Verb::Inspect(arguments) => inspect::run(&arguments),
        Verb::Sim(arguments) => sim::run(&arguments),
        Verb::Study(arguments) => study::run(&arguments),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("segstream: {error:#}");
        usage::exit_code(&error)
    })
}
