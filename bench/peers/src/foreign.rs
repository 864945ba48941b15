//! Ends that are separate programs in C and C++, built by `build.rs` where their library is installed.
//!
//! Called by [`crate::end`] and [`crate::catalogue`].
//!
//! Invariant: this process becomes the program, so it keeps its number, its processor and its standard output.

use crate::options::{Options, Side, Workload};
use anyhow::{Context as _, Result, bail};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

/// A program that may be there.
#[derive(Debug)]
pub(crate) struct Foreign {
    /// Where it was built, if it was.
    pub(crate) program: Option<&'static str>,
    /// The package of Debian 12 that has its library.
    pub(crate) package: &'static str,
    /// The transport's name for it.
    pub(crate) transport: &'static str,
}

pub(crate) const SRT: Foreign = Foreign { program: option_env!("SRT_END"), package: "libsrt-openssl-dev", transport: "srt" };
pub(crate) const SRT_AES: Foreign = Foreign { transport: "srt-aes", ..SRT };
pub(crate) const UDT: Foreign = Foreign { program: option_env!("UDT_END"), package: "libudt-dev", transport: "udt" };
pub(crate) const ENET: Foreign = Foreign { program: option_env!("ENET_END"), package: "libenet-dev", transport: "enet" };

impl Foreign {
    /// The program, or what has to be done for it.
    pub(crate) fn found(&self) -> Result<&'static Path> {
        match self.program.map(Path::new) {
            Some(program) if program.is_file() => Ok(program),
            Some(_) => bail!("it was built but is gone; build segstream-peers again"),
            None => bail!("its library was not there when this was built: apt-get install {}, then build again", self.package),
        }
    }

    /// The version of its library.
    pub(crate) fn version(&self) -> Result<String> {
        let said = Command::new(self.found()?).arg("version").output().context("it cannot be started")?;
        Ok(String::from_utf8_lossy(&said.stdout).trim().to_owned())
    }
}

/// Becomes the program; returns only if that fails.
pub(crate) fn become_it(foreign: &Foreign, name: &str, options: &Options) -> Result<()> {
    options.without_bbr(name)?;
    let program = foreign.found().with_context(|| format!("{name} is not available"))?;
    let (side, address) = match options.side {
        Side::Serve => ("serve", options.bind),
        Side::Run => ("run", options.peer()?),
    };
    let workload = match options.workload {
        Workload::Throughput => "throughput",
        Workload::PingPong => "ping-pong",
        Workload::Schedule => "schedule",
    };
    anyhow::ensure!(address.is_ipv4(), "{name} is measured over IPv4 only");
    let count = if options.workload == Workload::Schedule { options.segments()? } else { options.count };
    let numbers = [
        ("port", f64::from(address.port())),
        ("bytes", options.bytes as f64),
        ("segment_bytes", options.segment_bytes as f64),
        ("datagram_bytes", options.datagram_bytes.map_or(0.0, f64::from)),
        ("seconds", options.seconds),
        ("count", count as f64),
        ("interval_us", options.interval_us),
        ("warm_up", options.warm_up as f64),
        ("rate", options.rate as f64),
        ("latency_ms", f64::from(options.latency_ms)),
        ("filter_columns", options.filter.map_or(0.0, |filter| f64::from(filter.columns))),
        ("filter_rows", options.filter.map_or(0.0, |filter| f64::from(filter.rows))),
    ];
    let mut command = Command::new(program);
    command.args([foreign.transport, side, &address.ip().to_string(), workload]);
    command.args(numbers.map(|(name, value)| format!("{name}={value}")));
    Err(command.exec()).with_context(|| format!("{name} cannot be started"))
}
