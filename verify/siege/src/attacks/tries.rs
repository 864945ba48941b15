//! What the attacks of an admitted peer have in common: what each of its datagrams costs the victim, and how long an honest client of the same
//! victim waits meanwhile.
//!
//! Called by the attacks whose frames cost as much as frames can. Every number is the median of a hundred tries.
//!
//! Invariant: the victim is idle between two datagrams of the attacker, so that what it spends belongs to the datagram.

use super::Siege;
use crate::attacker::Tally;
use crate::client::Client;
use crate::labels::Forged;
use crate::messages::Report;
use crate::outcome::{Bound, Outcome};
use crate::process::Process;
use crate::victim::any;
use segstream::{ConnectionId, Contract};
use segstream_base::{Bandwidth, Duration};
use segstream_proto::connection::ConnectionEvent;

/// The longest body that is forged.
pub(super) const BODY_BYTES: usize = 1060;
/// The payload of a datagram that is forged: its part header and what the forged body leaves give room to fill.
const PAYLOAD_BYTES: usize = 1100;
/// Datagrams of a try.
const DATAGRAMS: usize = 8;
/// Between two datagrams of the attacker. Why: the victim is to be idle again.
const PAUSE: Duration = Duration::from_millis(1);
/// Of the honest client between two segments.
const REST: Duration = Duration::from_millis(20);

/// A client with one connection.
pub(super) struct Peer {
    pub(super) client: Client,
    pub(super) id: ConnectionId,
}

impl Peer {
    pub(super) fn connect(victim: &Process, contract: Contract) -> anyhow::Result<Self> {
        let mut client = Client::bind(any(), Bandwidth::from_megabits_per_second(400))?;
        let id = client.connect_under(victim.address(), contract)?;
        for _ in 0..200 {
            let events = client.serve(Duration::from_millis(20))?;
            if events.iter().any(|(_, event)| matches!(event, ConnectionEvent::Connected)) {
                return Ok(Self { client, id });
            }
        }
        anyhow::bail!("the victim has not let a peer in")
    }

    /// Sends a datagram that says this.
    pub(super) fn forge(&mut self, forged: Forged) -> anyhow::Result<()> {
        self.client.labels.forge(forged);
        self.client.send(self.id, PAYLOAD_BYTES)?;
        self.client.serve(PAUSE)?;
        Ok(())
    }

    /// How long a small segment takes until its verdict is known here, in seconds.
    pub(super) fn round_trip(&mut self) -> anyhow::Result<f64> {
        let began = std::time::Instant::now();
        self.client.send(self.id, 100)?;
        for _ in 0..100 {
            let events = self.client.serve(Duration::from_millis(20))?;
            if events.iter().any(|(_, event)| matches!(event, ConnectionEvent::Judged { .. })) {
                return Ok(began.elapsed().as_secs_f64());
            }
        }
        anyhow::bail!("an honest segment has no verdict")
    }
}

/// What the victim spends on a try, in seconds of processor time; `work` is what the attacker does.
fn spent(victim: &mut Process, work: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<f64> {
    let before = victim.report()?.spent.cpu_seconds;
    work()?;
    Ok(victim.report()?.spent.cpu_seconds - before)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// Fills a body with frames of this type, whose one field is 0: in two bytes each, and in three where the length is odd. Forged bodies leave
/// more room than one byte.
pub(super) fn fill_with_frames(rest: &mut [u8], frame: u8) {
    let (odd, even) = rest.split_at_mut(if rest.len() % 2 == 1 && rest.len() > 2 { 3 } else { 0 });
    odd.iter_mut().zip([frame, 0x40, 0x00]).for_each(|(byte, with)| *byte = with);
    even.chunks_mut(2).for_each(|pair| pair.iter_mut().zip([frame, 0x00]).for_each(|(byte, with)| *byte = with));
}

/// Times of an honest client, with and without an attack, and what the victim spends on each datagram of it.
#[derive(Default)]
struct Measured {
    idle: Vec<f64>,
    spent: Vec<f64>,
    quiet: Vec<f64>,
    loud: Vec<f64>,
}

/// Tries what `forge` makes: given the number of the try, one datagram.
pub(super) fn run(
    siege: &Siege,
    attack: &'static str,
    (mut victim, mut attacker, mut honest): (Process, Peer, Peer),
    tries: usize,
    mut forge: impl FnMut(usize) -> Forged,
) -> anyhow::Result<Outcome> {
    let (before, mut measured) = (victim.report()?, Measured::default());
    for tried in 0..tries {
        measured.idle.push(spent(&mut victim, || {
            std::thread::sleep(std::time::Duration::from_millis(DATAGRAMS as u64));
            Ok(())
        })?);
        measured.spent.push(spent(&mut victim, || (0..DATAGRAMS).try_for_each(|_| attacker.forge(forge(tried))))?);
        // Why a rest before both: reports of segments that follow each other closely are spaced out.
        honest.client.serve(REST)?;
        measured.quiet.push(honest.round_trip()?);
        honest.client.serve(REST)?;
        attacker.forge(forge(tried))?;
        measured.loud.push(honest.round_trip()?);
    }
    let after = victim.report()?;
    anyhow::ensure!(after.connections == 2, "a connection has ended: {} are left", after.connections);
    let malformed = after.malformed - before.malformed;
    anyhow::ensure!(malformed == 0, "{malformed} forged datagrams could not be read, so that they show nothing");
    let tallies = attacker.client.tallies();
    victim.end()?;
    Ok(outcome(siege, attack, measured, tallies, (&before, &after)))
}

fn outcome(
    siege: &Siege,
    attack: &'static str,
    measured: Measured,
    (sent, answered): (Tally, Tally),
    (before, after): (&Report, &Report),
) -> Outcome {
    let datagram_us = (median(measured.spent) - median(measured.idle)) / DATAGRAMS as f64 * 1e6;
    let (quiet_ms, loud_ms) = (median(measured.quiet) * 1e3, median(measured.loud) * 1e3);
    let memory_growth_bytes = after.spent.growth_bytes(&before.spent);
    let effect = format!("{datagram_us:.0} us a datagram; an honest segment takes {quiet_ms:.2} ms without, {loud_ms:.2} ms with");
    let cpu_seconds = after.spent.cpu_seconds - before.spent.cpu_seconds;
    let mut outcome = Outcome { attack, sent, answered, memory_growth_bytes, cpu_seconds, effect, bounds: Vec::new() };
    // The grants of both peers, state included, are at most what a connection may take.
    outcome.bounds.push(Bound::most("memory growth, bytes", memory_growth_bytes as f64, (2 * ((64 << 20) + (1 << 20))) as f64));
    if !siege.small {
        outcome.bounds.push(Bound::most("processor time of a datagram, us", datagram_us, 100.0));
        outcome.bounds.push(Bound::most("delay of another connection, ms", loud_ms - quiet_ms, 1.0));
    }
    outcome
}
