//! A flood of complete handshakes, by clients with an admitted key and with an unknown one.
//!
//! Called through [`super::ATTACKS`]. Source: RFC 9000 21.2 and 21.8 (exhaustion of state).
//!
//! Invariant: the clients keep to the protocol, except that they connect as often as they can.

use super::{Siege, Watch};
use crate::attacker::{Attacker, Tally};
use crate::client::Client;
use crate::messages::Request;
use crate::outcome::{Bound, Outcome};
use crate::victim::any;
use segstream::{CloseReason, ConnectionId};
use segstream_base::Bandwidth;
use segstream_proto::connection::ConnectionEvent;
use segstream_wire::handshake::RejectReason;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Handshakes begun in a second, in bursts of as many: `Config` of the protocol.
const HANDSHAKES_PER_SECOND: f64 = 500.0;
/// Hosts that take part.
const HOSTS: u32 = 8;
/// Requests of a host that are under way at a time: within what one host may have.
const UNDER_WAY: usize = 12;

/// A victim on a small scale has this many connections, so that they are soon used up.
const CONNECTIONS_SMALL: usize = 64;
/// Those of `Config` by default.
const CONNECTIONS: usize = 1024;

/// The fate of the clients' connections.
#[derive(Clone, Copy, Debug, Default)]
struct Fates {
    connected: u64,
    busy: u64,
    /// Refused by the handshake, or otherwise.
    refused: u64,
    /// The part of the newcomers with an admitted key that was let in.
    let_in: f64,
    /// There are that many at the victim.
    kept: u64,
}

/// Of a key that is served: as many connections as may be are made, and kept.
///
/// # Errors
/// When the victim fails.
pub fn of_an_admitted_key(siege: &Siege) -> anyhow::Result<Outcome> {
    let connections = if siege.small { CONNECTIONS_SMALL } else { CONNECTIONS };
    let (mut outcome, fates, seconds) = flood(siege, "flood-known", HOSTS, &["--anyone", "--connections", &connections.to_string()])?;
    outcome.bounds.push(Bound::most("connections at a time", fates.connected as f64, connections as f64));
    outcome.bounds.push(Bound::least("connections made", fates.connected as f64, connections as f64 / 4.0));
    outcome.bounds.push(Bound::most("handshakes", (fates.connected + fates.refused) as f64, HANDSHAKES_PER_SECOND * (seconds + 1.0)));
    // Why 64 KiB each: a connection without streams keeps its TLS keys, its tables and at most its handshake's bytes.
    outcome.bounds.push(Bound::most("memory growth, bytes", outcome.memory_growth_bytes as f64, (connections * 64 * 1024) as f64));
    Ok(outcome)
}

/// Of a key that is not served: every handshake goes all the way to the proof of the key.
///
/// # Errors
/// When the victim fails.
pub fn of_an_unknown_key(siege: &Siege) -> anyhow::Result<Outcome> {
    unknown(siege, "flood-unknown", HOSTS)
}

/// The same from a single host.
///
/// # Errors
/// When the victim fails.
pub fn of_one_host(siege: &Siege) -> anyhow::Result<Outcome> {
    unknown(siege, "flood-one-host", 1)
}

fn unknown(siege: &Siege, name: &'static str, hosts: u32) -> anyhow::Result<Outcome> {
    let (mut outcome, fates, seconds) = flood(siege, name, hosts, &[])?;
    outcome.bounds.push(Bound::most("connections made at the victim", fates.kept as f64, 0.0));
    // Why so few: a host has this many places of set-up, and a refused set-up keeps one for a second.
    outcome.bounds.push(Bound::least("handshakes refused", fates.refused as f64, f64::from(hosts) * seconds * 4.0));
    outcome.bounds.push(Bound::least("newcomers let in, of those who came", fates.let_in, 0.5));
    outcome.bounds.push(Bound::most("handshakes", fates.refused as f64, HANDSHAKES_PER_SECOND * (seconds + 1.0)));
    // Why: a refused set-up lingers for a second, at 500 a second and a burst of 500, each of at most 64 KiB as above.
    outcome.bounds.push(Bound::most("memory growth, bytes", outcome.memory_growth_bytes as f64, (1000 * 64 * 1024) as f64));
    Ok(outcome)
}

fn flood(siege: &Siege, name: &'static str, hosts: u32, settings: &[&str]) -> anyhow::Result<(Outcome, Fates, f64)> {
    let time = Duration::from_secs(if siege.small { 2 } else { 8 });
    let mut newcomer = Client::bind(any(), Bandwidth::from_megabits_per_second(1))?;
    let (watch, handshake_seconds) = served(siege, settings, &mut newcomer)?;
    let victim = watch.address();
    let begun = Instant::now();
    let (mut fates, mut sent, mut answered) = (Fates::default(), Tally::default(), Tally::default());
    let newcomers = std::thread::scope(|scope| {
        let hosts: Vec<_> = (0..hosts).map(|host| scope.spawn(move || connect_for(time, host, victim))).collect();
        let newcomers = newcomers(&mut newcomer, victim, time);
        for host in hosts {
            let (of_host, tallies) = host.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            fates.connected += of_host.connected;
            fates.busy += of_host.busy;
            fates.refused += of_host.refused;
            (sent, answered) = (sent.plus(tallies.0), answered.plus(tallies.1));
        }
        newcomers
    })?;
    let seconds = begun.elapsed().as_secs_f64();
    let effect = format!("{} of {} newcomers with an admitted key were let in", newcomers.0, newcomers.1);
    let (mut outcome, before, after) = watch.end(name, (sent, answered), effect)?;
    fates.let_in = newcomers.0 as f64 / (newcomers.1 as f64).max(1.0);
    fates.kept = (after.connected - before.connected).saturating_sub(newcomers.0);
    siege.progress(&format!("{fates:?} in {seconds:.1} s, of {:.0} us each without the flood", handshake_seconds * 1e6));
    if !siege.small {
        // Why: a handshake may cost three times what it does without the flood, for the refusal, the set-ups that linger and
        // the connections that stay; all other datagrams must each cost less than 100 us, with up to 1024 connections that
        // are looked through.
        let handshakes = (fates.connected.min(fates.kept) + fates.refused) as f64;
        let limit = handshakes * handshake_seconds * 3.0 + outcome.sent.datagrams as f64 * 100e-6;
        outcome.bounds.push(Bound::most("CPU s", outcome.cpu_seconds, limit));
    }
    Ok((outcome, fates, seconds))
}

/// A victim that serves the newcomer, and what a handshake with it has cost.
fn served(siege: &Siege, settings: &[&str], newcomer: &mut Client) -> anyhow::Result<(Watch, f64)> {
    let arguments: Vec<&str> = ["victim"].iter().chain(settings).copied().collect();
    let mut victim = siege.process(&arguments)?;
    victim.ask(&Request::Admit(newcomer.key().to_owned()))?;
    newcomer.transfer(victim.address(), 1, |_, _| Ok(false))?;
    let mut watch = Watch::begin(victim)?;
    let seconds = watch.handshake_seconds(|victim| newcomer.transfer(victim, 1, |_, _| Ok(false)))?;
    Ok((watch, seconds))
}

/// An admitted client connects now and then: how often it was let in, of how many attempts.
fn newcomers(client: &mut Client, victim: SocketAddr, time: Duration) -> anyhow::Result<(u64, u64)> {
    let end = Instant::now() + time;
    let (mut let_in, mut attempts) = (0, 0);
    while Instant::now() < end {
        attempts += 1;
        let_in += u64::from(client.transfer(victim, 1, |_, _| Ok(false))?.connected);
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok((let_in, attempts))
}

/// Connects again and again from a host.
fn connect_for(time: Duration, host: u32, victim: SocketAddr) -> anyhow::Result<(Fates, (Tally, Tally))> {
    let address = (Attacker::host(host), 0).into();
    let mut client = Client::bind(address, Bandwidth::from_megabits_per_second(1))?;
    let (mut fates, mut under_way, mut over) = (Fates::default(), BTreeSet::<ConnectionId>::new(), Vec::<ConnectionId>::new());
    let end = Instant::now() + time;
    while Instant::now() < end {
        while under_way.len() < UNDER_WAY {
            under_way.insert(client.connect(victim)?);
        }
        for (id, event) in client.serve(segstream_base::Duration::from_millis(2))? {
            if matches!(event, ConnectionEvent::Connected | ConnectionEvent::Closed(_)) {
                under_way.remove(&id);
            }
            match event {
                ConnectionEvent::Connected => fates.connected += 1,
                ConnectionEvent::Closed(CloseReason::Rejected { reason: RejectReason::Busy, .. }) => {
                    fates.busy += 1;
                    over.push(id);
                }
                // An initiator may be connected before the responder has looked at its key.
                ConnectionEvent::Closed(_) => {
                    fates.refused += 1;
                    over.push(id);
                }
                _ => {}
            }
        }
        over.retain(|&id| !client.release(id));
    }
    Ok((fates, client.tallies()))
}
