//! A peer whose key is admitted, and whose frames cost as much as frames can: small parts of a huge segment under a tolerance that depends on
//! where holes lie, duplicates of them, parts far ahead. An honest client of the same victim measures how long it waits meanwhile.
//!
//! Called through [`super::ATTACKS`]. Source: spec 11.4. Every number is the median of a hundred tries.
//!
//! Invariant: what the attacker sends is sealed by its own session; only bodies are not what an endpoint would say.

use super::Siege;
use crate::attacker::Tally;
use crate::client::Client;
use crate::outcome::{Bound, Outcome};
use crate::process::Process;
use crate::victim::any;
use anyhow::Context as _;
use segstream::{ConnectionId, Contract, Tolerance};
use segstream_base::codec::Writer;
use segstream_base::random::{Random, Seed};
use segstream_base::{Bandwidth, Duration, Instant, Position, SegmentNumber};
use segstream_proto::connection::ConnectionEvent;
use segstream_wire::Part;
use segstream_wire::contract::InterleaveChoice;

/// The units of the attacked segment, of one byte each: a victim charges each with 64 bytes of its buffer of 64 MiB.
const UNITS: u32 = 1 << 20;
/// The body of a datagram that is forged.
pub(super) const BODY_BYTES: usize = 1100;
/// Datagrams of a try.
pub(super) const DATAGRAMS: usize = 8;
/// Between two datagrams of the attacker. Why: the victim is to be idle again.
pub(super) const PAUSE: Duration = Duration::from_millis(1);
/// Of the honest client between two segments.
pub(super) const REST: Duration = Duration::from_millis(20);

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

    /// Sends datagrams with these bodies, one after another.
    fn forge(&mut self, bodies: impl IntoIterator<Item = Vec<u8>>) -> anyhow::Result<()> {
        for body in bodies {
            self.client.labels.forge(body);
            self.client.send(self.id, BODY_BYTES)?;
            self.client.serve(PAUSE)?;
        }
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

/// A body full of parts of one unit each.
fn body(segment: u64, again: bool, mut positions: impl FnMut() -> u32) -> Vec<u8> {
    let (mut body, mut used) = (vec![0; BODY_BYTES], 0);
    loop {
        let part = Part {
            segment: SegmentNumber(segment),
            first: Position(positions() % UNITS),
            count: 1,
            retransmission: again,
            length: Some(UNITS.into()),
            source_time: Instant::ZERO,
            payload_bytes: 1,
            ..Part::default()
        };
        if used + part.encoded_len() > BODY_BYTES {
            body.truncate(used);
            return body;
        }
        let mut out = Writer::new(&mut body[used..]);
        part.encode_header(&mut out);
        used += part.encoded_len();
    }
}

/// What the victim spends on a try, in seconds of processor time; `work` is what the attacker does.
pub(super) fn spent(victim: &mut Process, work: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<f64> {
    let before = victim.report()?.spent.cpu_seconds;
    work()?;
    Ok(victim.report()?.spent.cpu_seconds - before)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// Times of an honest client, with and without an attack, and what the victim spends on each datagram of it.
#[derive(Default)]
pub(super) struct Measured {
    pub(super) idle: Vec<f64>,
    pub(super) spent: Vec<f64>,
    pub(super) quiet: Vec<f64>,
    pub(super) loud: Vec<f64>,
}

/// The parts that the attacker sends in tries.
fn attacks(random: &mut Random, tried: usize) -> Vec<u8> {
    match tried % 3 {
        // Single units among those that are lost, new ones and duplicates.
        0 => body(0, true, || random.below((UNITS / 2).into()) as u32),
        // Every other unit behind what is lost.
        1 => {
            let mut at = UNITS / 4 * 3 + 200 * tried as u32;
            body(0, false, || {
                at += 2;
                at
            })
        }
        // The same units again and again.
        _ => body(0, true, || 1),
    }
}

/// Costly parts of a served peer.
///
/// # Errors
/// When the victim fails.
pub fn costly_parts(siege: &Siege) -> anyhow::Result<Outcome> {
    let tries = if siege.small { 4 } else { 100 };
    let mut victim = siege.process(&["victim", "--anyone"])?;
    let tolerance = Tolerance::new(UNITS, UNITS, UNITS - 2).context("a tolerance of the attack")?;
    let interleave = InterleaveChoice::Off;
    let contract = Contract { unit_bytes: 1, tolerance, interleave, window_units: 1 << 28, window_segments: 65_536, ..Contract::default() };
    let (mut attacker, mut honest) = (Peer::connect(&victim, contract)?, Peer::connect(&victim, Contract::default())?);
    honest.round_trip()?;
    let before = victim.report()?;
    // Half of a quarter of the units are here, and what lies between them and the last part is lost.
    let mut at = 0;
    attacker.forge((0..if siege.small { 40 } else { 400 }).map(|_| {
        body(0, false, || {
            at += 2;
            at
        })
    }))?;
    attacker.forge((0..8).map(|step| body(0, false, || UNITS / 4 * 3 + step)))?;
    let (mut measured, mut random) = (Measured::default(), Seed(1).stream("served"));
    for tried in 0..tries {
        measured.idle.push(spent(&mut victim, || {
            std::thread::sleep(std::time::Duration::from_millis(DATAGRAMS as u64));
            Ok(())
        })?);
        let bodies: Vec<_> = (0..DATAGRAMS).map(|_| attacks(&mut random, tried)).collect();
        measured.spent.push(spent(&mut victim, || attacker.forge(bodies))?);
        // Why a rest before both: reports of segments that follow each other closely are spaced out.
        honest.client.serve(REST)?;
        measured.quiet.push(honest.round_trip()?);
        honest.client.serve(REST)?;
        attacker.forge([attacks(&mut random, tried)])?;
        measured.loud.push(honest.round_trip()?);
    }
    let after = victim.report()?;
    let (sent, answered) = attacker.client.tallies();
    victim.end()?;
    Ok(outcome(siege, "served", measured, (sent, answered), (&before, &after)))
}

pub(super) fn outcome(
    siege: &Siege,
    attack: &'static str,
    measured: Measured,
    (sent, answered): (Tally, Tally),
    (before, after): (&crate::messages::Report, &crate::messages::Report),
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
