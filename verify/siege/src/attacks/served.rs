//! A peer whose key is admitted, and whose frames cost as much as frames can: small parts of a huge segment under a tolerance that depends on
//! where holes lie, duplicates of them, parts far ahead. An honest client of the same victim measures how long it waits meanwhile.
//!
//! Called through [`super::ATTACKS`]. Source: spec 11.4. Every number is the median of a hundred tries.
//!
//! Invariant: what the attacker sends is sealed by its own session; only bodies are not what an endpoint would say.

use super::Siege;
use super::tries::{self, BODY_BYTES, Peer};
use crate::labels::Forged;
use crate::outcome::Outcome;
use anyhow::Context as _;
use segstream::{Contract, Tolerance};
use segstream_base::codec::Writer;
use segstream_base::random::{Random, Seed};
use segstream_base::{Instant, Position, SegmentNumber};
use segstream_wire::contract::InterleaveChoice;
use segstream_wire::{Kind, Part};

/// The units of the attacked segment, of one byte each: a victim charges each with 64 bytes of its buffer of 64 MiB.
pub(super) const UNITS: u32 = 1 << 20;
/// A datagram full of parts of one unit each.
fn parts(segment: u64, again: bool, mut positions: impl FnMut() -> u32) -> Forged {
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
            return Forged { kind: Kind::Data, body, fill };
        }
        let mut out = Writer::new(&mut body[used..]);
        part.encode_header(&mut out);
        used += part.encoded_len();
    }
}

/// Fills a datagram with one part, of units that are there already or would be next to each other.
fn fill(rest: &mut [u8]) {
    let part = |count: u32| Part { count, retransmission: true, length: Some(UNITS.into()), payload_bytes: count, ..Part::default() };
    let most = rest.len() as u32;
    if let Some(part) = (most.saturating_sub(40)..most).map(part).find(|part| part.encoded_len() == rest.len()) {
        part.encode_header(&mut Writer::new(rest));
    }
}

/// The parts that the attacker sends in tries.
fn attacks(random: &mut Random, tried: usize) -> Forged {
    match tried % 3 {
        // Single units among those that are lost, new ones and duplicates.
        0 => parts(0, true, || random.below((UNITS / 2).into()) as u32),
        // Every other unit behind what is lost.
        1 => {
            let mut at = UNITS / 4 * 3 + 200 * tried as u32;
            parts(0, false, || {
                at += 2;
                at
            })
        }
        // The same units again and again.
        _ => parts(0, true, || 1),
    }
}

/// A contract under which a verdict depends on where the holes of a huge segment lie.
pub(super) fn contract() -> anyhow::Result<Contract> {
    let tolerance = Tolerance::new(UNITS, UNITS, UNITS - 2).context("a tolerance of the attack")?;
    let interleave = InterleaveChoice::Off;
    Ok(Contract { unit_bytes: 1, tolerance, interleave, window_units: 1 << 28, window_segments: 65_536, ..Contract::default() })
}

/// Sends parts of the huge segment so that half of a quarter of its units are there, and what lies between them and the last part is lost.
pub(super) fn make_holes(attacker: &mut Peer, siege: &Siege) -> anyhow::Result<()> {
    let mut at = 0;
    for _ in 0..if siege.small { 40 } else { 400 } {
        attacker.forge(parts(0, false, || {
            at += 2;
            at
        }))?;
    }
    for step in 0..8 {
        attacker.forge(parts(0, false, || UNITS / 4 * 3 + step))?;
    }
    Ok(())
}

/// Costly parts of a served peer.
///
/// # Errors
/// When the victim fails.
pub fn costly_parts(siege: &Siege) -> anyhow::Result<Outcome> {
    let victim = siege.process(&["victim", "--anyone"])?;
    let (mut attacker, mut honest) = (Peer::connect(&victim, contract()?)?, Peer::connect(&victim, Contract::default())?);
    honest.round_trip()?;
    make_holes(&mut attacker, siege)?;
    let mut random = Seed(1).stream("served");
    tries::run(siege, "served", (victim, attacker, honest), if siege.small { 4 } else { 100 }, |tried| attacks(&mut random, tried))
}
