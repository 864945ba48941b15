//! Requests from addresses that do not complete a handshake: spoofed ones, and real ones that are validated and then stop.
//!
//! Called through [`super::ATTACKS`]. Source: RFC 9000 8.1 and 21.3 (amplification), RFC 4987 (half-open connections).
//!
//! Invariant: no host here ever completes a handshake.

use super::{Siege, honest};
use crate::attacker::Attacker;
use crate::forge;
use crate::outcome::{Bound, Outcome};
use segstream_wire::handshake::Request;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::time::Duration;

/// Set-ups at a time, in all and for a host: `Config` of the protocol.
const SETUPS: usize = 256;
const SETUPS_PER_HOST: usize = 16;

/// Requests from as many hosts, each once, whose cookies are not returned.
///
/// # Errors
/// When the victim fails.
pub fn without_a_cookie(siege: &Siege) -> anyhow::Result<Outcome> {
    let attempts: u32 = if siege.small { 2_000 } else { 10_000 };
    let mut watch = siege.watch(&[])?;
    let mut attacker = Attacker::new(watch.address())?;
    let request = forge::request(watch.address())?;
    let handshake_seconds = watch.handshake_seconds(|victim| honest(victim, 0))?;
    for attempt in 0..attempts {
        let datagram = forge::datagram_of(&Request { request: u64::from(attempt), ..request.clone() });
        attacker.send(Attacker::host(attempt), &datagram)?;
        if attempt % 16 == 0 {
            attacker.hear(|_, _| ())?;
        }
    }
    attacker.hear_for(Duration::from_millis(300), |_, _| ())?;
    let after = honest(watch.address(), 5)?;
    let (mut outcome, before, report) = watch.end("spoofed", (attacker.sent, attacker.answered), format!("after: {after}"))?;
    // Why: nothing is kept for an address that has not proved itself. At most 64 answers of at most 1200 bytes wait to
    // leave, which is 77 kB; the rest is for the allocator and the honest transfer after it.
    let memory = outcome.common_bounds(256.0 * 1024.0, outcome.sent.bytes as f64);
    outcome.bounds.extend(memory);
    outcome.bounds.push(Bound::most("connections made", (report.connected - before.connected) as f64, 1.0));
    // Why: the kernel may drop some on a busy machine; fewer would not have been the attack.
    let cookies = (report.unmatched.cookies - before.unmatched.cookies) as f64;
    outcome.bounds.push(Bound::least("requests heard", cookies, f64::from(attempts) * 0.9));
    outcome.bounds.push(Bound::so("an honest transfer after it", after.is_well()));
    if !siege.small {
        // Why: a request without proof costs a hash and an answer, never a handshake.
        let cost = outcome.cpu_seconds / f64::from(attempts) * 1e6;
        outcome.bounds.push(Bound::most("CPU us for a request; half a handshake", cost, handshake_seconds * 1e6 / 2.0));
    }
    Ok(outcome)
}

/// Set-ups that prove their address and say no more.
///
/// # Errors
/// When the victim fails.
pub fn silent_after_the_cookie(siege: &Siege) -> anyhow::Result<Outcome> {
    let (hosts, each, timeout) = if siege.small { (32, 20, 3) } else { (128, 32, 10) };
    let watch = siege.watch(&["--connect-timeout", &timeout.to_string()])?;
    let mut attacker = Attacker::new(watch.address())?;
    let requests: BTreeMap<u64, (Ipv4Addr, Request)> = forge::requests((hosts * each) as usize, watch.address())?
        .into_iter()
        .enumerate()
        // Why: half come from one host, which must not get more than its share.
        .map(|(at, request)| (request.request, (Attacker::host(if at % 2 == 0 { 0 } else { at as u32 % hosts }), request)))
        .collect();
    let mut silent = Silent { requests: &requests, proofs: Vec::new(), confirmed: BTreeMap::new() };
    for (at, (host, request)) in requests.values().enumerate() {
        attacker.send(*host, &forge::datagram_of(request))?;
        if at % 16 == 0 {
            silent.go_on(&mut attacker)?;
        }
    }
    for _ in 0..50 {
        silent.go_on(&mut attacker)?;
        std::thread::sleep(Duration::from_millis(10));
    }
    let during = honest(watch.address(), 1)?;
    siege.progress("waiting until the victim gives the silent ones up");
    attacker.hear_for(Duration::from_secs(timeout + 2), |_, _| ())?;
    let after = honest(watch.address(), 5)?;
    let confirmed: usize = silent.confirmed.values().map(BTreeSet::len).sum();
    let of_one_host = silent.confirmed.values().map(BTreeSet::len).max().unwrap_or(0);
    let effect = format!("during: {during}; after: {after}");
    let (mut outcome, _, _) = watch.end("slow", (attacker.sent, attacker.answered), effect)?;
    outcome.bounds.push(Bound::most("set-ups at a time", confirmed as f64, SETUPS as f64));
    outcome.bounds.push(Bound::most("set-ups of one host", of_one_host as f64, SETUPS_PER_HOST as f64));
    outcome.bounds.push(Bound::least("set-ups begun", confirmed as f64, SETUPS as f64 / 2.0));
    // Why: a set-up keeps a TLS state and the answer it repeats, and of its peer's handshake bytes at most 64 KiB; these
    // are allowed for, though what is not in order is not kept.
    let memory = (SETUPS * 64 * 1024) as f64;
    // Why: the answer is repeated after 0.2, 0.4, 0.8, 1.6, 3.2 and 3.2 s, so seven times in 10 s, and is at most three
    // datagrams long; unknown peers without proof get no more than they sent.
    let answered = outcome.sent.bytes as f64 + (SETUPS * 7 * 3 * 1200) as f64;
    let common = outcome.common_bounds(memory, answered);
    outcome.bounds.extend(common);
    outcome.bounds.push(Bound::so("an honest transfer after it", after.is_well()));
    Ok(outcome)
}

/// Peers that go silent.
struct Silent<'a> {
    requests: &'a BTreeMap<u64, (Ipv4Addr, Request)>,
    proofs: Vec<(Ipv4Addr, Vec<u8>)>,
    confirmed: BTreeMap<Ipv4Addr, BTreeSet<u64>>,
}

impl Silent<'_> {
    /// Answers cookies, counts confirms.
    fn go_on(&mut self, attacker: &mut Attacker) -> anyhow::Result<()> {
        attacker.hear(|host, answer| {
            if let Some(cookie) = forge::cookie_in(answer) {
                if let Some((host, request)) = self.requests.get(&cookie.request) {
                    let request = Request { token: cookie.token, ..request.clone() };
                    self.proofs.push((*host, forge::datagram_of(&request)));
                }
            } else if let Some(request) = forge::confirmed_in(answer) {
                self.confirmed.entry(host).or_default().insert(request);
            }
        })?;
        for (host, proof) in self.proofs.drain(..) {
            attacker.send(host, &proof)?;
        }
        Ok(())
    }
}
