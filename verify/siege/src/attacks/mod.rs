//! The attacks, and what they have in common.
//!
//! - [`spoofed`]: requests from spoofed addresses; set-ups that stop once their address is validated;
//! - [`replayed`]: every datagram of an honest set-up replayed, from any address, and reflected to its sender;
//! - [`forged`]: shipments of a live transfer replayed, reordered, sent from other addresses, and forged;
//! - [`flipped`]: every byte of every kind of shipment changed; datagrams cut short and blown up;
//! - [`flood`]: as many handshakes as can be;
//! - [`crowded`]: unknown peers at a victim that has nearly its maximum of connections;
//! - [`served`]: a peer with an admitted key whose parts cost as much as parts can; [`statements`]: the same with its states;
//!   [`receiver`]: one that is sent to, and its reports; `tries`: what these have in common;
//! - [`load`]: 20,000 hostile datagrams a second beside a live transfer.
//!
//! Called by the command and by tests, which attack on a small scale. Invariant: every attack has a victim of its own,
//! and ends it in order: a victim that has panicked is an error.

pub mod crowded;
pub mod flipped;
pub mod flood;
pub mod forged;
pub mod load;
pub mod receiver;
pub mod replayed;
pub mod served;
pub mod spoofed;
pub mod statements;
mod tries;

use crate::attacker::Tally;
use crate::client::{Client, Transfer};
use crate::labels::Labels;
use crate::messages::Report;
use crate::outcome::{Bound, Outcome};
use crate::process::Process;
use crate::relay::{Hands, Relay, Way};
use crate::victim::any;
use segstream_base::Bandwidth;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// Honest clients of the functional attacks keep to this rate.
const HONEST_RATE: Bandwidth = Bandwidth::from_megabits_per_second(40);
/// The length of an honest segment.
const SEGMENT_BYTES: usize = 20_000;

/// How to attack.
#[derive(Clone, Debug)]
pub struct Siege {
    /// This program, which is also the victim.
    pub program: PathBuf,
    /// On a small scale, and without bounds of time.
    pub small: bool,
    /// How long the load lasts, in seconds.
    pub seconds: u64,
    /// Further arguments of the victim.
    pub victim: Vec<String>,
}

/// An attack.
pub type Attack = fn(&Siege) -> anyhow::Result<Outcome>;

/// Every attack with its name, in the order in which they run.
pub const ATTACKS: &[(&str, Attack)] = &[
    ("spoofed", spoofed::without_a_cookie),
    ("slow", spoofed::silent_after_the_cookie),
    ("replayed", replayed::handshakes),
    ("forged", forged::shipments),
    ("flipped", flipped::bits),
    ("misshapen", flipped::lengths),
    ("flood-known", flood::of_an_admitted_key),
    ("flood-unknown", flood::of_an_unknown_key),
    ("flood-one-host", flood::of_one_host),
    ("crowded", crowded::unknown_peers_at_a_busy_victim),
    ("served", served::costly_parts),
    ("statements", statements::costly_states),
    ("receiver", receiver::costly_reports),
    ("load", load::beside_a_transfer),
];

/// A victim, and how it was before the attack.
struct Watch {
    victim: Process,
    before: Report,
}

impl Siege {
    /// Progress messages during an attack.
    fn progress(&self, text: &str) {
        if !self.small {
            eprintln!("  {text}");
        }
    }

    fn process(&self, arguments: &[&str]) -> anyhow::Result<Process> {
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).chain(self.victim.iter().cloned()).collect();
        Process::start(&self.program, &arguments)
    }

    /// A victim that has served honest clients already, so that what every service costs is not taken for the
    /// attack's.
    fn watch(&self, arguments: &[&str]) -> anyhow::Result<Watch> {
        let arguments: Vec<&str> = ["victim", "--anyone"].iter().chain(arguments).copied().collect();
        let victim = self.process(&arguments)?;
        for _ in 0..8 {
            // Why not looked at: the attacks look at their own clients.
            honest(victim.address(), 0)?;
        }
        Watch::begin(victim)
    }

    /// The same, having also received as much as `segments`.
    fn watch_transfers(&self, segments: u64) -> anyhow::Result<Watch> {
        let Watch { victim, .. } = self.watch(&[])?;
        honest(victim.address(), segments)?;
        Watch::begin(victim)
    }
}

impl Watch {
    fn begin(mut victim: Process) -> anyhow::Result<Self> {
        let before = victim.report()?;
        Ok(Self { victim, before })
    }

    fn address(&self) -> SocketAddr {
        self.victim.address()
    }

    /// What a handshake costs the victim, with the rest of an empty connection; the watch begins anew.
    fn handshake_seconds(&mut self, mut handshake: impl FnMut(SocketAddr) -> anyhow::Result<Transfer>) -> anyhow::Result<f64> {
        const HANDSHAKES: u32 = 32;
        for _ in 0..HANDSHAKES {
            handshake(self.address())?;
        }
        let now = self.victim.report()?;
        let seconds = (now.spent.cpu_seconds - self.before.spent.cpu_seconds) / f64::from(HANDSHAKES);
        self.before = now;
        Ok(seconds)
    }

    /// Ends the victim; the outcome without bounds, and how the victim was before and after.
    fn end(mut self, attack: &'static str, tallies: (Tally, Tally), effect: String) -> anyhow::Result<(Outcome, Report, Report)> {
        let after = self.victim.report()?;
        self.victim.end()?;
        let memory_growth_bytes = after.spent.growth_bytes(&self.before.spent);
        let cpu_seconds = after.spent.cpu_seconds - self.before.spent.cpu_seconds;
        let (sent, answered) = tallies;
        let outcome = Outcome { attack, sent, answered, memory_growth_bytes, cpu_seconds, effect, bounds: Vec::new() };
        Ok((outcome, self.before, after))
    }
}

impl Outcome {
    /// The bounds that every attack on memory and reflection has.
    fn common_bounds(&self, memory_bytes: f64, answered_bytes: f64) -> [Bound; 2] {
        [
            Bound::most("memory growth, bytes", self.memory_growth_bytes as f64, memory_bytes),
            Bound::most("bytes answered", self.answered.bytes as f64, answered_bytes),
        ]
    }
}

/// An honest transfer of this many segments, straight to the victim.
fn honest(victim: SocketAddr, segments: u64) -> anyhow::Result<Transfer> {
    Client::bind(any(), HONEST_RATE)?.transfer(victim, SEGMENT_BYTES, |transfer, _| Ok(transfer.sent < segments))
}

/// An honest transfer of this many segments through an on-path attacker that tampers with it.
fn tampered(
    victim: SocketAddr,
    segments: u64,
    mut tamper: impl FnMut(&mut Hands, &Labels, Way, &[u8]) -> bool + Send,
) -> anyhow::Result<(Transfer, Labels, Hands)> {
    let relay = Relay::new(victim)?;
    let (address, stop) = (relay.address(), AtomicBool::new(false));
    let mut client = Client::bind(any(), HONEST_RATE)?;
    let labels = client.labels.clone();
    std::thread::scope(|scope| {
        let relaying = scope.spawn(|| relay.run(&stop, |hands, way, datagram| tamper(hands, &labels, way, datagram)));
        let transfer = client.transfer(address, SEGMENT_BYTES, |transfer, _| Ok(transfer.sent < segments));
        // Why: the last injected datagrams are still in flight.
        std::thread::sleep(std::time::Duration::from_millis(200));
        stop.store(true, Ordering::Relaxed);
        let hands = relaying.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok((transfer?, client.labels, hands))
    })
}
