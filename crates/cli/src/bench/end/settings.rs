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
use segstream::{Builder, Class, Config, ConnectionId, Contract, DatagramSize, Fingerprint, Order, Peer, StreamId};
use std::net::SocketAddr;
use std::time::Duration;

/// What every datagram can be.
const DATAGRAM_BYTES_MIN: usize = 1200;
/// Units that fill datagrams are never shorter.
const UNIT_BYTES_LEAST: u32 = 512;
/// The window: some 5 MiB of them, as much as is on its way in the raw measurement. More lies in no cache when it is read.
const WINDOW_UNITS: u32 = 4800;
/// How long an end waits for the other one, which is started right after it.
const PATIENCE: Duration = Duration::from_secs(60);

/// The endpoint that is connected to; says where it listens.
pub(super) fn serve(bind: SocketAddr, job: &Job, encrypted: bool) -> Result<Endpoint> {
    let endpoint = builder(job, encrypted)?.allow_anyone().listen(bind)?;
    let trust = endpoint.fingerprint().map_or_else(String::new, |key| key.to_string());
    json::print(&Listening { listening: endpoint.local_addr(), trust })?;
    Ok(endpoint)
}

/// The other end's connection.
pub(super) fn accept(endpoint: &mut Endpoint) -> Result<ConnectionId> {
    endpoint.accept(Some(PATIENCE)).with_context(|| format!("no peer has connected for {} s", PATIENCE.as_secs()))
}

/// The endpoint that connects, and where to.
pub(super) fn run(connect: SocketAddr, trust: Option<Fingerprint>, job: &Job, encrypted: bool) -> Result<(Endpoint, Peer)> {
    let endpoint = builder(job, encrypted)?.bind(any_port(connect))?;
    let peer = trust.map_or_else(|| Peer::from(connect), |key| Peer::from((connect, key)));
    Ok((endpoint, peer))
}

/// The contract of a measured stream.
pub(super) fn contract(job: &Job, encrypted: bool) -> Result<Contract> {
    let usual = Contract::default();
    // Why: a tolerance counts the units that people expect.
    let unit_bytes =
        if job.tolerance.is_some() { usual.unit_bytes } else { filling_unit_bytes(job.datagram_bytes, largest_unit(job, encrypted)?) };
    let units = units(job, unit_bytes)?;
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

fn units(job: &Job, unit_bytes: u32) -> Result<u32> {
    u32::try_from(job.segment_bytes.div_ceil(unit_bytes as usize)).context("a segment is too long; lower --segment-bytes")
}

/// The largest unit that fits 1200 bytes.
fn largest_unit(job: &Job, encrypted: bool) -> Result<usize> {
    // Units that fill a datagram are never shorter than this, hence no more.
    let window_units = WINDOW_UNITS.max(units(job, UNIT_BYTES_LEAST)?);
    Ok(builder(job, encrypted)?.unit_bytes_max(StreamId(0), &Contract { window_units, ..Contract::default() }) as usize)
}

/// The largest units of which a whole number fills a datagram, or nearly does: units travel whole. None is longer than
/// `largest`, which fits 1200 bytes.
fn filling_unit_bytes(datagram_bytes: usize, largest: usize) -> u32 {
    let room = datagram_bytes.saturating_sub(DATAGRAM_BYTES_MIN - largest);
    let whole = (room / largest).max(1);
    // Why a twentieth: units that are not the largest cost more than they gain where so little is left over.
    let nearly = whole * largest * 20 >= room * 19;
    let bytes = if nearly { largest } else { room / (whole + 1) };
    u32::try_from(bytes.max(1)).unwrap_or(u32::MAX)
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

fn builder(job: &Job, encrypted: bool) -> Result<Builder<Endpoint>> {
    let builder = Endpoint::builder().config(config(job)?);
    Ok(if encrypted { builder } else { builder.insecure() })
}

fn config(job: &Job) -> Result<Config> {
    let unpaced = job.rate == JobRate::Unpaced;
    Ok(Config {
        class: Class::new(if unpaced { 6 } else { 7 }).context("there are the classes 6 and 7")?,
        rate: job.rate(),
        unlimited: unpaced,
        // Why: a measurement on a busy machine may stand still for longer than a path does.
        idle_timeout: Duration::from_secs(60),
        datagram_bytes: DatagramSize::Fixed(job.datagram_bytes),
        connections: usize::try_from(job.count).unwrap_or(usize::MAX).saturating_add(1).max(Config::default().connections),
        handshakes_per_second: u32::MAX,
        offload: !job.no_offload,
        threads: job.threads.of_endpoint(),
        polling: job.polling.of_endpoint(),
        coding: job.coding,
        ..Config::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_fill_datagrams_to_at_least_nineteen_twentieths() {
        for datagram_bytes in 1200..=65_507 {
            for largest in [1160, 1148] {
                let unit = filling_unit_bytes(datagram_bytes, largest) as usize;
                let room = datagram_bytes - (1200 - largest);
                assert!((UNIT_BYTES_LEAST as usize..=largest).contains(&unit), "{datagram_bytes}: {unit}");
                assert!(room / unit * unit * 20 >= room * 19, "{datagram_bytes}: {unit}");
            }
        }
        assert_eq!([1200, 1472].map(|datagram_bytes| filling_unit_bytes(datagram_bytes, 1148)), [1148, 710]);
    }
}
