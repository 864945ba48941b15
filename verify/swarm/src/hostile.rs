//! An on-path attacker who injects datagrams: noise, damaged copies, replays, fragments, reflections, and real ones from another
//! address.
//!
//! Called by the swarm whenever the plan says so. Invariant: nothing he makes carries a valid seal over changed bytes.
//! Limit: in plain mode anybody can make such a seal, and no receiver can tell; so he does not.

use crate::draw::{between, one_of};
use crate::event::Place;
use segstream_base::ShipmentNumber;
use segstream_base::codec::Reader;
use segstream_base::random::{Random, Seed};
use segstream_proto::session::Plain;
use segstream_wire::header::UnprotectedHeader;
use segstream_wire::{Header, Kind};

/// Datagrams he remembers.
const SEEN_MAX: usize = 64;

/// A datagram that he brings.
#[derive(Debug)]
pub(crate) struct Forged {
    pub(crate) to: usize,
    pub(crate) from: Place,
    pub(crate) datagram: Vec<u8>,
    /// Whether the host at its source address has made it as it is.
    pub(crate) genuine: bool,
}

#[derive(Debug)]
struct Seen {
    from: usize,
    to: Place,
    datagram: Vec<u8>,
}

/// The attacker.
#[derive(Debug)]
pub(crate) struct Attacker {
    random: Random,
    seen: Vec<Seen>,
    sent: u64,
    hosts: usize,
}

/// What he does with a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trick {
    Noise,
    Damage,
    Again,
    Piece,
    Reflect,
    Elsewhere,
}

impl Attacker {
    pub(crate) fn new(seed: Seed, hosts: usize) -> Self {
        Self { random: seed.stream("attacker"), seen: Vec::new(), sent: 0, hosts }
    }

    /// A datagram leaves: he remembers it, or not.
    pub(crate) fn see(&mut self, from: usize, to: Place, datagram: &[u8]) {
        self.sent += 1;
        let seen = || Seen { from, to, datagram: datagram.to_vec() };
        if self.seen.len() < SEEN_MAX {
            self.seen.push(seen());
        } else if self.sent.is_multiple_of(3) {
            let at = self.random.below(SEEN_MAX as u64) as usize;
            self.seen[at] = seen();
        }
    }

    /// The next datagram of his, and what it is.
    pub(crate) fn attack(&mut self) -> Option<(Forged, String)> {
        let trick = one_of(
            &mut self.random,
            &[Trick::Noise, Trick::Damage, Trick::Again, Trick::Again, Trick::Piece, Trick::Reflect, Trick::Elsewhere],
        );
        let elsewhere = Place::Elsewhere(between(&mut self.random, 1, 3) as u16);
        if trick == Trick::Noise || self.seen.is_empty() {
            return Some((self.noise(elsewhere), "noise".to_owned()));
        }
        let at = self.random.below(self.seen.len() as u64) as usize;
        let Seen { from, to: Place::Host(to), ref datagram } = self.seen[at] else { return None };
        let mut datagram = datagram.clone();
        let sealed = UnprotectedHeader::read(&datagram).is_some_and(|outside| outside.data);
        let name = if sealed { "a shipment" } else { kind(&datagram, false).map_or("?", Kind::name) };
        let what = format!("{trick:?} of {name} from h{from} to h{to}");
        let (source, target) = match trick {
            Trick::Reflect => (Place::Host(to), from),
            Trick::Elsewhere => (elsewhere, to),
            _ => (Place::Host(from), to),
        };
        match trick {
            Trick::Damage => self.damage(&mut datagram),
            Trick::Piece => datagram.truncate(self.random.below(datagram.len() as u64) as usize),
            _ => {}
        }
        let changed = matches!(trick, Trick::Damage | Trick::Piece);
        let genuine = trick == Trick::Again;
        let forged = Forged { to: target, from: source, datagram, genuine };
        (!changed || !is_sealed(&forged.datagram)).then_some((forged, what))
    }

    fn noise(&mut self, elsewhere: Place) -> Forged {
        let length = one_of(&mut self.random, &[0, 1, 8, 9, 13, 40, 200, 1200]);
        let mut datagram: Vec<u8> = (0..length).map(|_| self.random.bits() as u8).collect();
        if let Some(first) = datagram.first_mut().filter(|_| self.random.chance(0.7)) {
            // A first byte of ours, so that it is looked at further.
            *first = 0x40 | (*first & 0x37);
        }
        let (to, from) = (self.random.below(self.hosts as u64) as usize, self.random.below(self.hosts as u64) as usize);
        let from = if from == to { elsewhere } else { Place::Host(from) };
        Forged { to, from, datagram, genuine: false }
    }

    fn damage(&mut self, datagram: &mut [u8]) {
        for _ in 0..between(&mut self.random, 1, 4) {
            let at = self.random.below(datagram.len() as u64) as usize;
            if let Some(byte) = datagram.get_mut(at) {
                *byte ^= between(&mut self.random, 1, 255) as u8;
            }
        }
    }
}

/// What a datagram says that it is. Of an encrypted shipment of data only that can be seen that it is one.
pub(crate) fn kind(datagram: &[u8], encrypted: bool) -> Option<Kind> {
    if encrypted && UnprotectedHeader::read(datagram).is_some_and(|outside| outside.data) {
        return Some(Kind::Data);
    }
    Header::decode(&mut Reader::new(datagram)).ok().map(|header| header.kind)
}

/// Whether a plain seal opens under the number in the header, as anyone can make it.
fn is_sealed(datagram: &[u8]) -> bool {
    let header = Header::decode(&mut Reader::new(datagram));
    // Numbers of a run stay far below 2^32.
    header.is_ok_and(|header| Plain::open(ShipmentNumber(header.number.into()), datagram).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use segstream_base::codec::Writer;
    use segstream_wire::Level;
    use std::collections::BTreeSet;

    #[test]
    fn nothing_changed_is_sealed_and_every_trick_is_played() {
        let mut datagram = vec![7; 60];
        Header { level: Level::Data, kind: Kind::Data, connection: 5, number: 9 }.encode(&mut Writer::new(&mut datagram));
        Plain::seal(ShipmentNumber(9), &mut datagram);
        assert!(is_sealed(&datagram));
        let mut attacker = Attacker::new(Seed(1), 3);
        attacker.see(0, Place::Host(1), &datagram);
        let mut tricks = BTreeSet::new();
        for _ in 0..500 {
            let Some((forged, what)) = attacker.attack() else { continue };
            assert!(forged.datagram == datagram || !is_sealed(&forged.datagram), "{what}");
            tricks.insert(what.split(' ').next().unwrap().to_owned());
        }
        assert_eq!(tricks.len(), 6, "{tricks:?}");
    }
}
