//! Shipments of a live transfer sent again, in another order and from other addresses; and forged ones with the right connection
//! identifier.
//!
//! Called through [`super::ATTACKS`]. Source: RFC 9000 9.3 (spoofed migration), 21.12; RFC 9001 6.6 (forgeries).
//!
//! Invariant: the attacker sees all, and has no key.

use super::{Siege, tampered};
use crate::attacker::Attacker;
use crate::forge::{noise, place};
use crate::outcome::{Bound, Outcome};
use crate::relay::{Hands, Way};
use segstream_base::random::{Random, Seed};
use segstream_wire::header::{HEADER_BYTES, UnprotectedHeader};
use std::time::Duration;

/// Shipments that may be sent again, or late.
const REMEMBERED: usize = 32;

struct Forger {
    random: Random,
    elsewhere: Attacker,
    remembered: Vec<Vec<u8>>,
    held: Option<(u32, Vec<u8>)>,
    replays: u64,
    made_up: u64,
}

impl Forger {
    /// Sees one shipment of the client or the victim; whether it is forwarded.
    fn see(&mut self, hands: &mut Hands, way: Way, datagram: &[u8]) -> bool {
        let Some(outside) = UnprotectedHeader::read(datagram).filter(|outside| outside.data) else { return true };
        for _ in 0..2 {
            let made_up = self.make_up(outside.connection);
            hands.forge(way, &made_up);
            self.made_up += u64::from(way == Way::Up);
        }
        if way == Way::Down {
            // A copy comes in front of the original, which is then the duplicate.
            hands.forge(way, datagram);
            return true;
        }
        match self.random.below(8) {
            0 => self.send_from_elsewhere(datagram),
            1 => {
                hands.forge(way, datagram);
                self.replays += 1;
            }
            2 if !self.remembered.is_empty() => {
                let at = place(&mut self.random, self.remembered.len());
                let old = self.remembered[at].clone();
                hands.forge(way, &old);
                self.send_from_elsewhere(&old);
                self.replays += 2;
            }
            _ => {}
        }
        self.remember(datagram);
        self.hold_or_let_go(hands, datagram)
    }

    fn make_up(&mut self, connection: u32) -> Vec<u8> {
        let length = HEADER_BYTES + 1 + place(&mut self.random, 1400);
        let mut made_up = noise(&mut self.random, length);
        // Of any level that has keys.
        made_up[0] = 0x40 | (1 + self.random.below(3) as u8) << 4 | (made_up[0] & 0x0f);
        made_up[1..5].copy_from_slice(&connection.to_be_bytes());
        if self.random.chance(0.5) {
            // A guess at the next number.
            made_up[5..HEADER_BYTES].copy_from_slice(&(self.random.below(2000) as u32).to_be_bytes());
        }
        made_up
    }

    fn send_from_elsewhere(&mut self, datagram: &[u8]) {
        let host = Attacker::host(self.random.below(64) as u32);
        // Why ignored: what is not sent is no attack; how much was, is counted.
        let _ = self.elsewhere.send(host, datagram).and_then(|()| self.elsewhere.hear(|_, _| ()));
    }

    fn remember(&mut self, datagram: &[u8]) {
        if self.remembered.len() < REMEMBERED {
            self.remembered.push(datagram.to_vec());
        } else {
            let at = place(&mut self.random, REMEMBERED);
            self.remembered[at] = datagram.to_vec();
        }
    }

    /// Now and then one goes five places later.
    fn hold_or_let_go(&mut self, hands: &mut Hands, datagram: &[u8]) -> bool {
        match self.held.take() {
            Some((0, held)) => hands.forge(Way::Up, &held),
            Some((left, held)) => self.held = Some((left - 1, held)),
            None if self.random.below(16) == 0 => {
                self.held = Some((5, datagram.to_vec()));
                return false;
            }
            None => {}
        }
        true
    }
}

/// Replayed, reordered and made up shipments in the middle of a transfer.
///
/// # Errors
/// When the victim fails.
pub fn shipments(siege: &Siege) -> anyhow::Result<Outcome> {
    let segments = if siege.small { 40 } else { 400 };
    let watch = siege.watch_transfers(segments)?;
    let mut forger = Forger {
        random: Seed(1).stream("forged"),
        elsewhere: Attacker::new(watch.address())?,
        remembered: Vec::new(),
        held: None,
        replays: 0,
        made_up: 0,
    };
    let (transfer, _, hands) = tampered(watch.address(), segments, |hands, _, way, datagram| forger.see(hands, way, datagram))?;
    forger.elsewhere.hear_for(Duration::from_millis(300), |_, _| ())?;
    let (elsewhere, replays, made_up) = (forger.elsewhere, forger.replays, forger.made_up);
    let tallies = (elsewhere.sent.plus(hands.forged), elsewhere.answered);
    let (mut outcome, before, after) = watch.end("forged", tallies, format!("during: {transfer}"))?;
    // RFC 9000 8.1: an address that seems to be the client's new one is asked with at most three times what came from it.
    // Why 1 MiB: the window of a transfer is what the one before it had; forgeries are not kept.
    let common = outcome.common_bounds(1024.0 * 1024.0, 3.0 * elsewhere.sent.bytes as f64);
    outcome.bounds.extend(common);
    outcome.bounds.push(Bound::so("the transfer is well", transfer.is_well()));
    let delivered = (after.segments_right - before.segments_right) as f64;
    outcome.bounds.push(Bound::least("segments delivered, at least", delivered, segments as f64));
    outcome.bounds.push(Bound::most("segments delivered, at most", delivered, segments as f64));
    outcome.bounds.push(Bound::most("segments changed", after.segments_wrong as f64, 0.0));
    outcome.bounds.push(Bound::most("shipments that opened and could not be read", after.malformed as f64, 0.0));
    // Why 0.9: some are lost on a busy machine.
    let broken = (after.authentication_failures + after.unmatched.unknown_connection + after.unmatched.not_ours) as f64;
    outcome.bounds.push(Bound::least("forgeries seen through", broken, 0.9 * made_up as f64));
    outcome.bounds.push(Bound::least("replays seen through", after.duplicates as f64, 0.9 * replays as f64));
    Ok(outcome)
}
