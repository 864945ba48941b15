//! `segstream-peers`: other transports as ends of the measurements of `segstream bench`.
//!
//! Called by `segstream bench` and by `segstream-bench paths`, once for each side; people can call it too. How to read
//! what it measures is said in `README.md`.
//!
//! - [`options`]: what one end is told;
//! - [`outcome`]: what an end says, and its clocks;
//! - [`catalogue`]: the transports, their versions and their settings;
//! - [`schedule`]: segments that are due at fixed times;
//! - [`byte_stream`]: the workloads over a blocking stream of bytes, for [`tcp`], [`kcp_end`] and `aeron_end`;
//! - `aeron_driver`: the media driver of `aeron_end`; both are there with the feature `aeron`;
//! - [`quic`]: the workloads over streams of QUIC, for [`quinn_end`] and [`s2n_end`], with their [`certificate`];
//! - [`foreign`]: the ends that are programs in C and C++, in the folder `c`.
//!
//! Invariant: only lines of JSON go to standard output; the exit status is 1 if one of them is an error, 2 for bad usage.

#[cfg(feature = "aeron")]
mod aeron_driver;
#[cfg(feature = "aeron")]
mod aeron_end;
mod byte_stream;
mod catalogue;
mod certificate;
mod foreign;
mod kcp_end;
mod options;
mod outcome;
mod quic;
mod quinn_end;
mod s2n_end;
mod schedule;
mod tcp;

use anyhow::{Context as _, Result, bail};
use clap::{Parser, Subcommand};
use options::Options;
use std::process::ExitCode;

/// Other transports as ends of Segstream's measurements.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// One side of a measurement, or the list of transports.
    End(Options),
}

fn main() -> ExitCode {
    let What::End(options) = Arguments::parse().what;
    match end(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            outcome::failed(&error);
            ExitCode::FAILURE
        }
    }
}

fn end(options: &Options) -> Result<()> {
    if options.list {
        return catalogue::print(options.json);
    }
    let name = options.transport.as_deref().context("name a transport, or ask for --list")?;
    let transport = catalogue::find(name)?;
    if let Some(processor) = options.cpu {
        pin(processor)?;
    }
    let outcome = match transport.name {
        "tcp" => tcp::run(options)?,
        "kcp" => kcp_end::run(options)?,
        #[cfg(feature = "aeron")]
        "aeron" => aeron_end::run(options)?,
        "quinn" => quinn_end::run(options)?,
        "s2n-quic" => s2n_end::run(options)?,
        name => match transport.foreign {
            Some(foreign) => return foreign::become_it(foreign, name, options),
            None => bail!("{name} cannot be measured here: {}", transport.why_not),
        },
    };
    outcome.print()
}

/// Keeps this process, and what it becomes, on one processor.
fn pin(processor: usize) -> Result<()> {
    use nix::sched::{CpuSet, sched_setaffinity};
    let mut set = CpuSet::new();
    set.set(processor).with_context(|| format!("--cpu {processor} is no processor"))?;
    sched_setaffinity(nix::unistd::Pid::from_raw(0), &set)
        .with_context(|| format!("this process cannot be kept on processor {processor}; give --cpu one that this machine has"))
}
