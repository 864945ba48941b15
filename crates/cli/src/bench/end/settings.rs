//! Endpoints of this protocol as they are measured, and how their ends find each other.
//!
//! Called by the workloads over it.
//!
//! Invariant: without a rate the window alone paces, so that what is measured is what the two ends can do.

use super::job::{Job, JobRate, Task};
use super::line::Listening;
use crate::json;
use anyhow::{Context as _, Result};
use segstream::blocking::Endpoint;
use segstream::{Class, Config, ConnectionId, Contract, DatagramSize, Duration, Fingerprint, Order, Peer, Polling, Security};
use std::net::SocketAddr;

/// The largest units, which fill datagrams of 1200 bytes as far as any do.
const UNIT_BYTES: u32 = 1120;
/// The window: some 9 MiB of them.
const WINDOW_UNITS: u32 = 8192;
/// How long an end waits for the other one, which is started right after it.
const PATIENCE: Duration = Duration::from_secs(60);

/// The endpoint that is connected to; says where it listens.
pub(super) fn serve(bind: SocketAddr, job: &Job, encrypted: bool) -> Result<Endpoint> {
    let security = if encrypted { Security::serving_anyone() } else { Security::Insecure };
    let endpoint = Endpoint::listen(bind, config(job, security)?)?;
    let trust = endpoint.fingerprint().map_or_else(String::new, |key| key.to_string());
    json::print(&Listening { listening: endpoint.local_addr(), trust })?;
    Ok(endpoint)
}

/// The other end's connection.
pub(super) fn accept(endpoint: &mut Endpoint) -> Result<ConnectionId> {
    endpoint.accept(Some(PATIENCE)).with_context(|| format!("nobody came for {PATIENCE}"))
}

/// The endpoint that connects, and where to.
pub(super) fn run(connect: SocketAddr, trust: Option<Fingerprint>, job: &Job, encrypted: bool) -> Result<(Endpoint, Peer)> {
    let security = if encrypted { Security::default() } else { Security::Insecure };
    let endpoint = Endpoint::bind(any_port(connect), config(job, security)?)?;
    let peer = trust.map_or_else(|| Peer::from(connect), |key| Peer::from((connect, key)));
    Ok((endpoint, peer))
}

/// The contract of a measured stream.
pub(super) fn contract(job: &Job) -> Result<Contract> {
    let usual = Contract::default();
    // Why: a tolerance counts the units that people expect.
    let unit_bytes = if job.tolerance.is_some() { usual.unit_bytes } else { UNIT_BYTES };
    let units = u32::try_from(job.segment_bytes.div_ceil(unit_bytes as usize)).context("a segment is too long; lower --segment-bytes")?;
    let tolerance = job.tolerance.map(|tolerance| tolerance.of_segments(units)).transpose().map_err(anyhow::Error::msg)?;
    Ok(Contract {
        unit_bytes,
        tolerance: tolerance.unwrap_or(usual.tolerance),
        // Why: the delay of a scheduled segment is its own, not that of a repair to the one before it.
        order: if job.workload == Task::Schedule { Order::AsAccepted } else { usual.order },
        window_units: WINDOW_UNITS.max(units),
        ..usual
    })
}

/// Any free port of an address that reaches `remote`.
pub(in crate::bench) fn any_port(remote: SocketAddr) -> SocketAddr {
    match (remote, remote.ip().is_loopback()) {
        (SocketAddr::V4(_), true) => ([127, 0, 0, 1], 0).into(),
        (SocketAddr::V4(_), false) => ([0, 0, 0, 0], 0).into(),
        (SocketAddr::V6(_), true) => ([0, 0, 0, 0, 0, 0, 0, 1], 0).into(),
        (SocketAddr::V6(_), false) => ([0u16; 8], 0).into(),
    }
}

fn config(job: &Job, security: Security) -> Result<Config> {
    let unpaced = job.rate == JobRate::Unpaced;
    Ok(Config {
        security,
        class: Class::new(if unpaced { 6 } else { 7 }).context("there are the classes 6 and 7")?,
        rate: job.rate.of_endpoint(),
        unlimited: unpaced,
        // Why: a measurement on a busy machine may stand still for longer than a path does.
        idle_timeout: Duration::from_secs(60),
        datagram_bytes: DatagramSize::Fixed(job.datagram_bytes),
        connections: usize::try_from(job.count).unwrap_or(usize::MAX).saturating_add(1).max(Config::default().connections),
        handshakes_per_second: u32::MAX,
        offload: !job.no_offload,
        polling: if job.spin { Polling::Adaptive } else { Polling::Blocking },
        ..Config::default()
    })
}
