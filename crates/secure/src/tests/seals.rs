//! What a seal promises.

use super::*;
use segstream_base::ShipmentNumber;

/// A number whose upper half is not zero: the full number is sealed, not only what is sent.
const NUMBER: u64 = 9 << 32 | 0xfff0_0001;

#[test]
fn a_sealed_shipment_opens_at_the_peer_and_nowhere_else() {
    let (mut initiator, mut responder) = pair();
    for body in [&b""[..], b"x", &[7; 1160]] {
        let there = send(&mut initiator, NUMBER, body);
        assert_eq!(there.len(), HEADER_BYTES + body.len() + 16);
        assert_eq!(receive(&mut responder, 9, &there).as_deref(), Some(body));
        assert_eq!(receive(&mut initiator, 9, &there), None, "the sender's own");
        let back = send(&mut responder, NUMBER, body);
        assert_eq!(receive(&mut initiator, 9, &back).as_deref(), Some(body));
        assert_eq!(receive(&mut pair().1, 9, &there), None, "another connection's");
    }
}

#[test]
fn every_changed_bit_breaks_the_seal() {
    let (mut initiator, mut responder) = pair();
    for level in [Level::Handshake, Level::Data] {
        let shipment = send_at(&mut initiator, level, NUMBER, b"a body of some length");
        for bit in 0..shipment.len() * 8 {
            let mut changed = shipment.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(receive(&mut responder, 9, &changed), None, "{level:?} bit {bit}");
        }
        assert!(receive(&mut responder, 9, &shipment).is_some());
    }
}

#[test]
fn nothing_of_the_handshake_opens_once_the_peer_has_sealed_data() {
    let (mut initiator, mut responder) = pair();
    let late = send_at(&mut initiator, Level::Handshake, NUMBER, b"again");
    assert!(receive(&mut responder, 9, &late).is_some());
    let data = send(&mut initiator, NUMBER + 1, b"data");
    let mut forged = data.clone();
    forged[20] ^= 1;
    assert_eq!(receive(&mut responder, 9, &forged), None);
    assert!(receive(&mut responder, 9, &late).is_some(), "a forged shipment shows nothing");
    assert!(receive(&mut responder, 9, &data).is_some());
    assert_eq!(receive(&mut responder, 9, &late), None);
}

#[test]
fn another_number_and_another_level_break_the_seal() {
    let (mut initiator, mut responder) = pair();
    let shipment = send(&mut initiator, NUMBER, b"body");
    assert_eq!(receive(&mut responder, 8, &shipment), None, "the upper half of the number");
    let mut unprotected = shipment.clone();
    responder.unprotect_header(&mut unprotected);
    for level in [Level::Initial, Level::Handshake, Level::DataOdd] {
        assert_eq!(responder.open(level, ShipmentNumber(NUMBER), &mut unprotected.clone()), None, "{level:?}");
    }
    assert_eq!(responder.open(Level::Data, ShipmentNumber(NUMBER + 1), &mut unprotected.clone()), None);
    assert_eq!(responder.open(Level::Data, ShipmentNumber(NUMBER), &mut unprotected), Some(HEADER_BYTES + 4));
}

#[test]
fn every_cut_breaks_the_seal() {
    let (mut initiator, mut responder) = pair();
    let shipment = send(&mut initiator, NUMBER, b"body");
    for length in 0..shipment.len() {
        let mut cut = shipment[..length].to_vec();
        responder.unprotect_header(&mut cut);
        assert_eq!(responder.open(Level::Data, ShipmentNumber(NUMBER), &mut cut), None, "{length} bytes");
        assert_eq!(responder.open(Level::Handshake, ShipmentNumber(NUMBER), &mut cut), None, "{length} bytes");
    }
}

#[test]
fn kind_key_phase_and_number_of_data_are_hidden_and_the_connection_is_not() {
    let (mut initiator, responder) = pair();
    let mut firsts = [false; 32];
    let mut numbers = 0;
    for number in 0..2000 {
        let shipment = send(&mut initiator, number, b"body");
        assert_eq!(shipment[0] & 0xe0, 0x60, "a data level");
        assert_eq!(shipment[1..5], [0xde, 0xad, 0xbe, 0xef]);
        firsts[usize::from(shipment[0] & 0x1f)] = true;
        numbers += usize::from(shipment[5..9] == (number as u32).to_be_bytes());
        let mut unprotected = shipment.clone();
        responder.unprotect_header(&mut unprotected);
        assert_eq!(unprotected[..HEADER_BYTES], plain(Level::Data, number, b"")[..], "as it was without protection");
    }
    // Each of 32 values is missed by 2000 masks with a probability of (31/32)^2000, 3e-28.
    assert!(firsts.iter().all(|seen| *seen));
    assert!(numbers <= 1, "the number stays by chance once in 2^32");
}

#[test]
fn headers_of_the_handshake_level_are_not_hidden() {
    let (mut initiator, responder) = pair();
    let shipment = send_at(&mut initiator, Level::Handshake, NUMBER, b"body");
    assert_eq!(shipment[..HEADER_BYTES], plain(Level::Handshake, NUMBER, b"")[..]);
    let mut untouched = shipment.clone();
    responder.unprotect_header(&mut untouched);
    assert_eq!(untouched, shipment);
}

#[test]
fn what_cannot_be_sealed_leaves_as_zeros() {
    let (mut initiator, _responder) = pair();
    for level in [Level::Initial, Level::DataOdd] {
        assert!(send_at(&mut initiator, level, 1, b"secret").iter().all(|byte| *byte == 0), "{level:?}");
    }
    let mut short = [1; HEADER_BYTES + 15];
    initiator.seal(Level::Data, ShipmentNumber(1), &mut short);
    assert_eq!(short, [0; HEADER_BYTES + 15]);
}
