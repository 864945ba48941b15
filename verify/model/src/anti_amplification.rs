//! Counts what one end has received from each address and sent there, until the address has answered a challenge: the
//! anti-amplification limit of RFC 9000 8.1 as an observer sees it.
//!
//! Called by the world for every datagram that arrives or leaves. It reads the wire and does not look into endpoints.
//!
//! Invariant: it changes nothing. Its counts are part of a state, because properties depend on them. The peer's first address,
//! which set-up has validated, is not counted, and neither is one that has answered a challenge.

use core::net::SocketAddr;
use segstream_base::codec::Reader;
use segstream_wire::header::HEADER_BYTES;
use segstream_wire::{Header, Kind};
use std::collections::BTreeMap;

/// How many times the bytes received from an address may be sent there before it has answered (spec 6.11, RFC 9000 8.1).
const AMPLIFICATION_MAX: u64 = 3;

/// The counts of one address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Bytes of datagrams received from it.
    pub came_bytes: u64,
    /// Bytes of datagrams sent to it.
    pub left_bytes: u64,
    /// The challenges that were sent to it.
    pub challenges: Vec<u64>,
    /// It has answered one of them.
    pub answered: bool,
}

/// The addresses of the peer and of others, as one end has met them.
#[derive(Clone, Debug)]
pub struct AntiAmplification {
    first: SocketAddr,
    /// Every address but the first.
    pub accounts: BTreeMap<SocketAddr, Account>,
    /// What left for an address and should not have.
    pub fault: Option<String>,
}

/// What a challenge or an answer says.
fn proof(kind: Kind, datagram: &[u8]) -> Option<u64> {
    Header::decode(&mut Reader::new(datagram)).ok().filter(|header| header.kind == kind)?;
    datagram.get(HEADER_BYTES..)?.first_chunk().map(|proof| u64::from_be_bytes(*proof))
}

impl AntiAmplification {
    /// The counts of an end whose peer is at `first` when set-up begins.
    pub const fn new(first: SocketAddr) -> Self {
        Self { first, accounts: BTreeMap::new(), fault: None }
    }

    /// The account of an address that has not answered yet.
    fn open_account(&mut self, address: SocketAddr) -> Option<&mut Account> {
        let is_open = address != self.first;
        is_open.then(|| self.accounts.entry(address).or_default()).filter(|account| !account.answered)
    }

    /// A datagram has arrived.
    pub fn on_arrival(&mut self, from: SocketAddr, datagram: &[u8]) {
        let Some(account) = self.open_account(from) else { return };
        account.came_bytes += datagram.len() as u64;
        account.answered = proof(Kind::Response, datagram).is_some_and(|proof| account.challenges.contains(&proof));
    }

    /// A datagram leaves.
    pub fn on_departure(&mut self, to: SocketAddr, datagram: &[u8]) {
        let Some(account) = self.open_account(to) else { return };
        account.left_bytes += datagram.len() as u64;
        let Account { came_bytes, left_bytes, .. } = *account;
        match proof(Kind::Challenge, datagram) {
            Some(proof) => account.challenges.push(proof),
            None => self.fault = Some(format!("{} leaves for {to}, which has not answered a challenge", crate::tap::name(datagram))),
        }
        if left_bytes > came_bytes * AMPLIFICATION_MAX {
            self.fault = Some(format!("{left_bytes} bytes have left for {to}, from where {came_bytes} came"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use segstream_base::codec::Writer;
    use segstream_wire::Level;

    const FIRST: SocketAddr = SocketAddr::new(core::net::IpAddr::V4(core::net::Ipv4Addr::new(10, 0, 0, 1)), 1);
    const OTHER: SocketAddr = SocketAddr::new(core::net::IpAddr::V4(core::net::Ipv4Addr::new(10, 0, 0, 7)), 1);

    fn shipment(kind: Kind, proof: u64) -> Vec<u8> {
        let mut bytes = vec![0; HEADER_BYTES + 8];
        let mut writer = Writer::new(&mut bytes);
        Header { level: Level::Data, kind, connection: 1, number: 1 }.encode(&mut writer);
        writer.u64(proof);
        writer.finish().unwrap();
        bytes
    }

    #[test]
    fn data_for_an_address_that_has_not_answered_its_own_challenge_is_a_fault() {
        let mut anti_amplification = AntiAmplification::new(FIRST);
        anti_amplification.on_departure(FIRST, &shipment(Kind::Data, 0));
        anti_amplification.on_arrival(OTHER, &shipment(Kind::Data, 0));
        anti_amplification.on_departure(OTHER, &shipment(Kind::Challenge, 5));
        anti_amplification.on_arrival(OTHER, &shipment(Kind::Response, 6));
        assert_eq!(anti_amplification.fault, None);
        let mut answered = anti_amplification.clone();
        anti_amplification.on_departure(OTHER, &shipment(Kind::Data, 0));
        assert!(anti_amplification.fault.is_some_and(|fault| fault.contains("DT 1 leaves")), "the answer was wrong");
        answered.on_arrival(OTHER, &shipment(Kind::Response, 5));
        answered.on_departure(OTHER, &shipment(Kind::Data, 0));
        assert_eq!(answered.fault, None);
    }

    #[test]
    fn a_fourth_challenge_for_as_many_bytes_is_a_fault() {
        let mut anti_amplification = AntiAmplification::new(FIRST);
        anti_amplification.on_arrival(OTHER, &shipment(Kind::Data, 0));
        (0..3).for_each(|proof| anti_amplification.on_departure(OTHER, &shipment(Kind::Challenge, proof)));
        assert_eq!(anti_amplification.fault, None);
        anti_amplification.on_departure(OTHER, &shipment(Kind::Challenge, 3));
        assert!(anti_amplification.fault.is_some_and(|fault| fault.contains("from where 17 came")));
    }
}
