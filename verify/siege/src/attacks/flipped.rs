//! Copies of every kind of shipment with each byte changed, sent before the original; datagrams that are truncated, too long or
//! empty.
//!
//! Called through [`super::ATTACKS`]. Source: RFC 9001 5.4 and 5.5 (what the seal covers).
//!
//! Invariant: the changed ones come first, so that one that was believed would take the original's place.

use super::{Siege, tampered};
use crate::attacker::Attacker;
use crate::forge::noise;
use crate::labels::Labels;
use crate::outcome::{Bound, Outcome};
use crate::relay::{Hands, Way};
use segstream_base::random::Seed;
use std::collections::BTreeMap;
use std::time::Duration;

/// The largest UDP payload over IPv4.
const DATAGRAM_BYTES_MAX: usize = 65_507;
/// All kinds but RJ, which no transfer that goes well has.
const KINDS: [&str; 11] = ["CC", "CK", "CR", "DC", "DR", "DT", "HS", "PC", "PR", "RXS", "TXS"];

/// Shipments of a kind, going up, that are changed; and all going down, whose kinds only their receiver can tell.
const SAMPLES: u64 = 3;

/// Single bits, in every byte of all kinds.
///
/// # Errors
/// When the victim fails.
pub fn bits(siege: &Siege) -> anyhow::Result<Outcome> {
    let (segments, down) = if siege.small { (30, 40) } else { (120, 400) };
    let watch = siege.watch_transfers(segments)?;
    let mut attacked = Attacked::default();
    let (transfer, labels, hands) = tampered(watch.address(), segments, |hands, labels, way, datagram| {
        if attacked.wants(labels, way, datagram, down) {
            flip_every_byte(hands, way, datagram, &mut attacked);
        }
        attacked.datagrams += 1;
        if attacked.datagrams == 300 {
            // From here on the victim and the client ask and answer: PC and PR.
            return hands.rebind().is_ok();
        }
        true
    })?;
    let kinds = attacked.kinds(&labels);
    let (mut outcome, before, after) =
        watch.end("flipped", (hands.forged, crate::attacker::Tally::default()), format!("during: {transfer}"))?;
    // Why: what is broken is dropped; answers go to the client and cannot be told from honest ones, so they are not
    // counted here. Lost connections are told by at most 100 resets of 33 bytes a second.
    outcome.bounds.push(Bound::most("memory growth, bytes", outcome.memory_growth_bytes as f64, 1024.0 * 1024.0));
    outcome.bounds.push(Bound::least("kinds of shipments changed", kinds.len() as f64, KINDS.len() as f64));
    outcome.bounds.push(Bound::so("the transfer is well", transfer.is_well()));
    outcome.bounds.push(Bound::most("connections made", (after.connected - before.connected) as f64, 1.0));
    outcome.bounds.push(Bound::most("segments changed", after.segments_wrong as f64, 0.0));
    outcome.bounds.push(Bound::most("shipments that opened and could not be read", after.malformed as f64, 0.0));
    let refused = (after.refused_datagrams() - before.refused_datagrams()) as f64;
    // Why 0.9: some are lost on a busy machine; those of the handshake's level have no key to break once it is over.
    outcome.bounds.push(Bound::least("changes seen through by the victim", refused, 0.9 * attacked.up as f64));
    siege.progress(&format!("kinds changed: {}; of the victim's {}, refused by it {refused}", kinds.join(" "), attacked.up));
    Ok(outcome)
}

#[derive(Default)]
struct Attacked {
    datagrams: u64,
    kinds_up: BTreeMap<&'static str, u64>,
    downs: u64,
    first_downs: Vec<Vec<u8>>,
    up: u64,
}

impl Attacked {
    fn wants(&mut self, labels: &Labels, way: Way, datagram: &[u8], down: u64) -> bool {
        if way == Way::Down {
            self.downs += 1;
            if self.first_downs.len() < 8 {
                self.first_downs.push(datagram.to_vec());
            }
            // Why the later ones too: DC and PC come late, and are short.
            return self.downs <= down || datagram.len() < 64;
        }
        let Some(kind) = labels.of(datagram) else { return false };
        let seen = self.kinds_up.entry(kind).or_default();
        *seen += 1;
        *seen <= SAMPLES
    }

    /// The kinds that were changed: going up by label; going down as the client has opened them, or as they show.
    fn kinds(&self, labels: &Labels) -> Vec<&'static str> {
        let shown = self.first_downs.iter().filter_map(|datagram| labels.of(datagram));
        let mut kinds: Vec<_> = self.kinds_up.keys().copied().chain(labels.kinds()).chain(shown).collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds.retain(|kind| KINDS.contains(kind));
        kinds
    }
}

fn flip_every_byte(hands: &mut Hands, way: Way, datagram: &[u8], attacked: &mut Attacked) {
    let mut changed = datagram.to_vec();
    for at in 0..changed.len() {
        let bit = 1 << (at % 8);
        changed[at] ^= bit;
        hands.forge(way, &changed);
        changed[at] ^= bit;
        attacked.up += u64::from(way == Way::Up);
    }
}

/// Datagrams of every wrong length.
///
/// # Errors
/// When the victim fails.
pub fn lengths(siege: &Siege) -> anyhow::Result<Outcome> {
    let (segments, oversized) = if siege.small { (30, 20) } else { (120, 400) };
    let watch = siege.watch_transfers(segments)?;
    let mut random = Seed(1).stream("lengths");
    let mut elsewhere = Attacker::new(watch.address())?.with_pace(4_000);
    let mut kinds: BTreeMap<&'static str, u64> = BTreeMap::new();
    let (transfer, _, hands) = tampered(watch.address(), segments, |hands, labels, way, datagram| {
        let kind = labels.of(datagram).filter(|_| way == Way::Up);
        let seen = kind.map_or(u64::MAX, |kind| {
            let seen = kinds.entry(kind).or_default();
            *seen += 1;
            *seen
        });
        if seen <= 2 {
            for length in 0..datagram.len() {
                hands.forge(way, &datagram[..length]);
            }
            for longer in [1, 2, 16, 400] {
                hands.forge(way, &[datagram, &noise(&mut random, longer)].concat());
            }
        }
        if seen <= 20 {
            let mut blown_up = datagram.to_vec();
            blown_up.extend(noise(&mut random, DATAGRAM_BYTES_MAX - datagram.len()));
            hands.forge(way, &blown_up);
        }
        true
    })?;
    for at in 0..oversized {
        // Why ignored: what is not sent is no attack; how much was, is counted.
        let _ = elsewhere.send(Attacker::host(at), &noise(&mut random, DATAGRAM_BYTES_MAX));
        let _ = elsewhere.send(Attacker::host(at), &[]);
    }
    elsewhere.hear_for(Duration::from_millis(300), |_, _| ())?;
    let tallies = (hands.forged.plus(elsewhere.sent), elsewhere.answered);
    let (mut outcome, before, after) = watch.end("misshapen", tallies, format!("during: {transfer}"))?;
    // Why 1 MiB: the largest datagram is received into buffers that exist already.
    let common = outcome.common_bounds(1024.0 * 1024.0, elsewhere.sent.bytes as f64);
    outcome.bounds.extend(common);
    outcome.bounds.push(Bound::so("the transfer is well", transfer.is_well()));
    outcome.bounds.push(Bound::most("connections made", (after.connected - before.connected) as f64, 1.0));
    outcome.bounds.push(Bound::most("segments changed", after.segments_wrong as f64, 0.0));
    outcome.bounds.push(Bound::most("shipments that opened and could not be read", after.malformed as f64, 0.0));
    Ok(outcome)
}
