//! `segstream-bench`: what the state machines and the wire format cost, per packet, and what threads make of it.
//!
//! Called by people: `cargo run --profile dist -p segstream-bench -- halves`. How to read it is said in `README.md`.
//!
//! Invariant: nothing here asserts about time; it prints what it measured, and on which machine.

#[cfg(target_os = "linux")]
mod arrivals;
#[cfg(target_os = "linux")]
mod files;
mod halves;
mod instructions;
mod intervals;
#[cfg(target_os = "linux")]
mod json_lines;
#[cfg(target_os = "linux")]
mod observe;
mod pacing;
mod path;
#[cfg(target_os = "linux")]
mod paths;
mod processor_time;
#[cfg(target_os = "linux")]
mod profile;
#[cfg(target_os = "linux")]
mod rates;
mod replay;
#[cfg(target_os = "linux")]
mod shared;
mod simulator;
#[cfg(target_os = "linux")]
mod soak;
mod spread;
mod stages;
mod wire;

use anyhow::Result;
use clap::{Parser, Subcommand};
use serde::Serialize;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use std::alloc::System;
use std::io::Write as _;

#[global_allocator]
pub(crate) static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// What Segstream's state machines and wire format cost.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// The sending and the receiving half, each by itself, per data packet.
    Halves(halves::Options),
    /// Encoding, decoding and sealing, per shipment.
    Wire(wire::Options),
    /// T_normal and T_error of adaptive acknowledgment over UDP sockets, in real time.
    Intervals(intervals::Options),
    /// A directory of small files and a large file, ours and rsync in turn: real processes, in real time.
    #[cfg(target_os = "linux")]
    Files(files::Options),
    /// The simulator, per data packet, scheme by scheme.
    Sim(simulator::Options),
    /// The accuracy of the pacer, at the system call that sends.
    Pacing(pacing::Options),
    /// The processor time of a datagram, stage by stage; needs `perf`.
    #[cfg(target_os = "linux")]
    Profile(profile::Options),
    /// HTPNET's processes on threads, and on modelled processors.
    Stages(stages::Options),
    /// The flagship on a link that others share: real processes, in real time; needs the administrator.
    #[cfg(target_os = "linux")]
    Shared(shared::Options),
    /// What metrics and qlog cost a transfer at a fixed rate.
    #[cfg(target_os = "linux")]
    Observe(observe::Options),
    /// One transfer through the emulator for a long time: speed, memory, verdicts.
    #[cfg(target_os = "linux")]
    Soak(soak::Options),
    /// Ours and other transports over a lossy long path: real processes, in real time; needs the administrator.
    #[cfg(target_os = "linux")]
    Paths(paths::Options),
    /// The matrix of rates: the kernel's CUBIC and BBR and ours in turn on the paths that users have; needs the administrator.
    #[cfg(target_os = "linux")]
    Rates(rates::Options),
}

fn main() -> Result<()> {
    match Arguments::parse().what {
        What::Halves(options) => halves::run(&options),
        #[cfg(target_os = "linux")]
        What::Files(options) => files::run(&options),
        What::Wire(options) => wire::run(&options),
        What::Intervals(options) => intervals::run(&options),
        What::Sim(options) => simulator::measure(&options),
        What::Pacing(options) => pacing::run(&options),
        #[cfg(target_os = "linux")]
        What::Profile(options) => profile::run(&options),
        #[cfg(target_os = "linux")]
        What::Observe(options) => observe::run(&options),
        What::Stages(options) => stages::run(&options),
        #[cfg(target_os = "linux")]
        What::Shared(options) => shared::run(&options),
        #[cfg(target_os = "linux")]
        What::Paths(options) => paths::run(&options),
        #[cfg(target_os = "linux")]
        What::Rates(options) => rates::run(&options),
        #[cfg(target_os = "linux")]
        What::Soak(options) => soak::run(&options),
    }
}

/// Prints `report` as JSON, or `text` for people.
fn print<T: Serialize>(json: bool, report: &T, text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    if json {
        serde_json::to_writer_pretty(&mut out, report)?;
        writeln!(out)?;
    } else {
        write!(out, "{text}")?;
    }
    Ok(())
}
