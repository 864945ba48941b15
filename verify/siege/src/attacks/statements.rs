//! A peer whose key is admitted, and whose states cost a receiver as much as states can: a finished segment stated again and again, with
//! another last shipment each time, while its verdict depends on where its holes lie; the ends of segments of which nothing was sent; ends far
//! ahead; changes of class; streams that are open already; what waits.
//!
//! Called through [`super::ATTACKS`]. Source: spec 11.4.
//!
//! Invariant: what the attacker sends is sealed by its own session; a state is a data shipment of its own whose kind and body were changed
//! before it was sealed. Each one asks for a report at once.

use super::Siege;
use super::served::{UNITS, contract, make_holes};
use super::tries::{self, BODY_BYTES, Peer};
use crate::labels::Forged;
use crate::outcome::Outcome;
use segstream::{Contract, StreamId, Tolerance};
use segstream_base::codec::Writer;
use segstream_base::random::{Random, Seed};
use segstream_base::{Bandwidth, ExchangeNumber, Instant, Position, SegmentNumber, ShipmentNumber};
use segstream_wire::state::{Confirmed, Finished, Reached};
use segstream_wire::{Class, Kind, State, StateFrame};

/// The stream of the attacker.
const STREAM: StreamId = StreamId(0);
/// Shipments that have left before: what a statement names as its last must have.
const SENT: u64 = 40;
/// The states of the attacker's own endpoint have lower numbers.
const NUMBER_FIRST: u64 = 1 << 20;
/// The kinds of states that are tried.
const KINDS: usize = 7;

/// What is said of a segment.
fn finished(segment: u64, length: u64, random: &mut Random) -> Finished {
    Finished {
        stream: STREAM,
        segment: SegmentNumber(segment),
        opened: false,
        length,
        source_time: Instant::ZERO,
        tolerance: None,
        last_shipment: Some(ShipmentNumber(random.below(SENT))),
    }
}

/// The next frame of a state of the kind that is tried.
fn frame(contract: &Contract, random: &mut Random, tried: usize, at: u64) -> StateFrame {
    let huge = u64::from(UNITS);
    match tried % KINDS {
        // The segment with the holes is over, by another shipment each time.
        0 => StateFrame::Finished(finished(0, huge, random)),
        // Segments of which nothing was sent, each with a tolerance of its own.
        1 => {
            let tolerance = Tolerance::new(UNITS, UNITS, UNITS - 3).ok();
            StateFrame::Finished(Finished { tolerance, ..finished(1 + random.below(65_000), huge, random) })
        }
        // They are given up, in turn.
        2 => StateFrame::Skip(finished(1 + at, huge, random)),
        // An open segment far ahead pauses, at another place each time.
        3 => StateFrame::Reached(Reached {
            stream: STREAM,
            segment: SegmentNumber(65_000 + random.below(8)),
            position: Position(random.below(huge) as u32),
            source_time: Instant::ZERO,
            tolerance: None,
            last_shipment: ShipmentNumber(random.below(SENT)),
        }),
        // Every segment is looked at anew when the class changes.
        4 => {
            let class = Class::new((at % 4 * 2 + 1) as u8).unwrap_or(Class::ALL);
            StateFrame::Reclass { change: at, class, rate: Bandwidth::from_megabits_per_second(1 + at % 9) }
        }
        // A stream that is open already.
        5 => StateFrame::Open { stream: STREAM, contract: Box::new(contract.clone()) },
        _ => StateFrame::Waiting { stream: STREAM },
    }
}

/// The body of a state, full of frames; `stated` counts them.
fn body(contract: &Contract, random: &mut Random, tried: usize, stated: &mut u64) -> Vec<u8> {
    let (mut frames, mut used) = (Vec::new(), State::PRELUDE_BYTES_MAX);
    loop {
        let frame = frame(contract, random, tried, *stated);
        used += frame.encoded_len();
        if used > BODY_BYTES {
            break;
        }
        frames.push(frame);
        *stated += 1;
    }
    let number = NUMBER_FIRST + *stated;
    let (sync, frames) = (ExchangeNumber(number), frames.into_iter().collect());
    let state = State { sync, time: number, answer: true, exchange: true, confirmed: Confirmed::default(), frames };
    let mut body = vec![0; state.encoded_len()];
    state.encode(&mut Writer::new(&mut body));
    body
}

/// Costly states of a served peer.
///
/// # Errors
/// When the victim fails.
pub fn costly_states(siege: &Siege) -> anyhow::Result<Outcome> {
    let victim = siege.process(&["victim", "--anyone"])?;
    let contract = contract()?;
    let (mut attacker, mut honest) = (Peer::connect(&victim, contract.clone())?, Peer::connect(&victim, Contract::default())?);
    honest.round_trip()?;
    make_holes(&mut attacker, siege)?;
    let (mut random, mut stated) = (Seed(3).stream("statements"), 0);
    tries::run(siege, "statements", (victim, attacker, honest), if siege.small { 2 * KINDS } else { 100 }, |tried| {
        // Filled up with WAITING.
        let body = body(&contract, &mut random, tried, &mut stated);
        Forged { kind: Kind::State, body, fill: |rest| tries::fill_with_frames(rest, 0x05) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use segstream_base::codec::Reader;

    #[test]
    fn every_state_of_the_attack_can_be_read() {
        let (contract, mut random, mut stated) = (contract().unwrap(), Seed(3).stream("statements"), 0);
        for tried in 0..100 {
            let body = body(&contract, &mut random, tried, &mut stated);
            let state = State::decode(&mut Reader::new(&body));
            assert!(state.is_ok_and(|state| state.frames.len() > 5), "state {tried}: {:?}", tried % KINDS);
        }
    }
}
