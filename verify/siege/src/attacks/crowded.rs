//! Datagrams of unknown peers at a victim that has nearly its maximum of connections: the cost of such a datagram must not grow
//! with the number of connections so far that a few attackers suffice.
//!
//! Called through [`super::ATTACKS`]. Source: algorithmic complexity attacks (Crosby and Wallach, 2003).
//!
//! Invariant: the connections are honest and idle.

use super::{Siege, Watch};
use crate::attacker::Attacker;
use crate::client::Client;
use crate::forge::{self, noise};
use crate::outcome::{Bound, Outcome};
use crate::victim::any;
use segstream_base::Bandwidth;
use segstream_base::random::Seed;
use segstream_proto::connection::ConnectionEvent;
use segstream_wire::handshake::Request;
use std::time::{Duration, Instant};

/// Fewer than a host may have under way.
const UNDER_WAY: u64 = 12;

/// Requests without a cookie, and shipments of no connection.
///
/// # Errors
/// When the victim fails.
pub fn unknown_peers_at_a_busy_victim(siege: &Siege) -> anyhow::Result<Outcome> {
    let (crowd, each) = if siege.small { (100, 1_000) } else { (1_000, 20_000) };
    let mut watch = siege.watch(&[])?;
    let mut client = Client::bind(any(), Bandwidth::from_megabits_per_second(1))?;
    let here = gather(&mut client, &watch, crowd)?;
    watch.before = watch.victim.report()?;
    let mut attacker = Attacker::new(watch.address())?;
    let mut make = requests(&watch)?;
    let requests = costs(&mut watch, &mut attacker, each, &mut make)?;
    let mut random = Seed(1).stream("crowded");
    let unmatched = costs(&mut watch, &mut attacker, each, &mut |_| {
        let mut stray = noise(&mut random, 200);
        stray[0] = 0x60;
        stray
    })?;
    let effect = format!("{here} idle connections; CPU us: {:.1} a request, {:.1} a stray shipment", requests, unmatched);
    let (mut outcome, before, after) = watch.end("crowded", (attacker.sent, attacker.answered), effect)?;
    // Why 256 KiB: as without a crowd, nothing is kept for unknown peers.
    let common = outcome.common_bounds(256.0 * 1024.0, outcome.sent.bytes as f64);
    outcome.bounds.extend(common);
    outcome.bounds.push(Bound::least("connections there", here as f64, crowd as f64));
    outcome.bounds.push(Bound::least("connections left", (after.connections + 1) as f64, before.connections as f64));
    if !siege.small {
        // Why 50 us: 20,000 a second, the load that must do no harm, would take a whole processor.
        outcome.bounds.push(Bound::most("CPU us for a request", requests, 50.0));
        outcome.bounds.push(Bound::most("CPU us for a stray shipment", unmatched, 50.0));
    }
    Ok(outcome)
}

fn requests(watch: &Watch) -> anyhow::Result<impl FnMut(u64) -> Vec<u8> + use<>> {
    let request = forge::request(watch.address())?;
    Ok(move |at| forge::datagram_of(&Request { request: at, ..request.clone() }))
}

/// Makes connections until there are this many, or for 20 s.
fn gather(client: &mut Client, watch: &Watch, crowd: u64) -> anyhow::Result<u64> {
    let (mut here, mut under_way, end) = (0, 0, Instant::now() + Duration::from_secs(20));
    while here < crowd && Instant::now() < end {
        while under_way < UNDER_WAY.min(crowd - here) {
            client.connect(watch.address())?;
            under_way += 1;
        }
        for (id, event) in client.serve(segstream_base::Duration::from_millis(5))? {
            match event {
                ConnectionEvent::Connected => {
                    here += 1;
                    under_way -= 1;
                }
                // Why: more are asked for than may be in a second.
                ConnectionEvent::Closed(_) => {
                    client.release(id);
                    under_way -= 1;
                }
                _ => {}
            }
        }
    }
    // Why 3 s: by then every connection has said that it is alive, and grown what it needs for that.
    let end = Instant::now() + Duration::from_secs(3);
    while Instant::now() < end {
        client.serve(segstream_base::Duration::from_millis(50))?;
    }
    Ok(here)
}

/// Sends `count` datagrams from as many hosts: what each that was heard has cost, in microseconds.
fn costs(watch: &mut Watch, attacker: &mut Attacker, count: u64, make: &mut impl FnMut(u64) -> Vec<u8>) -> anyhow::Result<f64> {
    let before = watch.victim.report()?;
    for at in 0..count {
        attacker.send(Attacker::host(at as u32), &make(at))?;
        if at % 16 == 0 {
            attacker.hear(|_, _| ())?;
        }
    }
    attacker.hear_for(Duration::from_millis(200), |_, _| ())?;
    let after = watch.victim.report()?;
    let heard = after.heard_of_strangers() - before.heard_of_strangers();
    Ok((after.spent.cpu_seconds - before.spent.cpu_seconds) * 1e6 / (heard as f64).max(1.0))
}
