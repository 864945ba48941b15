//! How the keys of the data levels follow one another.

use super::*;
use crate::key_phases::{KeyPhases, Limits};

const LIMITS: Limits = Limits { update_after: 100, sealed_max: 200, refused_max: 1000 };

/// Two sessions whose keys last for 100 shipments.
fn short_lived() -> (TlsSession, TlsSession) {
    let (mut initiator, mut responder) = pair();
    initiator.key_phases().limit(LIMITS);
    responder.key_phases().limit(LIMITS);
    (initiator, responder)
}

impl TlsSession {
    fn key_phases(&mut self) -> &mut KeyPhases {
        &mut self.data_keys.as_mut().unwrap().key_phases
    }
}

/// Sends so many shipments from a number on, and gives them all as they left.
fn send_all(from: &mut TlsSession, first: u64, count: u64) -> Vec<Vec<u8>> {
    (first..first + count).map(|number| send(from, number, &number.to_be_bytes())).collect()
}

fn assert_opens(to: &mut TlsSession, shipment: &[u8]) {
    assert!(receive(to, 0, shipment).is_some());
}

#[test]
fn keys_are_updated_over_many_key_phases_with_reordering_across_each() {
    let (mut initiator, mut responder) = short_lived();
    let mut number = 0;
    let mut waiting: Vec<Vec<u8>> = Vec::new();
    let mut levels = Vec::new();
    for _ in 0..400 {
        for _ in 0..7 {
            levels.push(initiator.data_level());
            waiting.push(send(&mut initiator, number, &number.to_be_bytes()));
            number += 1;
        }
        // Eight wait at most, and the newest overtake them: less than a key phase.
        waiting.reverse();
        for shipment in waiting.split_off(waiting.len().min(8)) {
            assert_opens(&mut responder, &shipment);
        }
        let report = send(&mut responder, number, b"report");
        assert_eq!(receive(&mut initiator, 0, &report).as_deref(), Some(&b"report"[..]));
    }
    assert!(initiator.key_phases().phase() >= 25, "{}", initiator.key_phases().phase());
    assert!(levels.contains(&Level::Data) && levels.contains(&Level::DataOdd));
    assert!(!initiator.aead_limit_reached() && !responder.aead_limit_reached());
}

#[test]
fn no_update_is_begun_before_the_peer_is_heard() {
    let (mut initiator, mut responder) = short_lived();
    let shipments = send_all(&mut initiator, 0, 150);
    assert_eq!((initiator.key_phases().phase(), initiator.data_level()), (0, Level::Data));
    shipments.iter().for_each(|shipment| assert_opens(&mut responder, shipment));
    let report = send(&mut responder, 0, b"");
    assert_opens(&mut initiator, &report);
    assert_eq!((initiator.key_phases().phase(), initiator.data_level()), (1, Level::DataOdd));
    let next = send(&mut initiator, 150, b"");
    assert_eq!(responder.key_phases().phase(), 0);
    assert_opens(&mut responder, &next);
    assert_eq!((responder.key_phases().phase(), responder.data_level()), (1, Level::DataOdd), "both directions move on");
}

#[test]
fn late_shipments_of_the_key_phase_before_open_and_of_the_one_before_that_do_not() {
    let (mut initiator, mut responder) = short_lived();
    let report = send(&mut responder, 0, b"");
    assert_opens(&mut initiator, &report);
    let old = send_all(&mut initiator, 0, 100);
    let new = send_all(&mut initiator, 100, 1);
    assert_opens(&mut responder, &new[0]);
    assert_eq!(responder.key_phases().phase(), 1);
    assert_opens(&mut responder, &old[98]);
    assert_opens(&mut responder, &old[0]);
    let report = send(&mut responder, 1, b"");
    assert_opens(&mut initiator, &report);
    let odd = send_all(&mut initiator, 101, 99);
    let newest = send_all(&mut initiator, 200, 1);
    assert_opens(&mut responder, &newest[0]);
    assert_eq!(responder.key_phases().phase(), 2);
    assert_opens(&mut responder, &odd[5]);
    assert_eq!(receive(&mut responder, 0, &old[50]), None);
    assert_eq!(responder.key_phases().phase(), 2);
}

#[test]
fn an_update_that_both_begin_at_once_is_one() {
    let (mut initiator, mut responder) = short_lived();
    let (there, back) = (send(&mut initiator, 0, b""), send(&mut responder, 0, b""));
    assert_opens(&mut responder, &there);
    assert_opens(&mut initiator, &back);
    let (there, back) = (send_all(&mut initiator, 1, 100), send_all(&mut responder, 1, 100));
    assert_eq!((initiator.key_phases().phase(), responder.key_phases().phase()), (1, 1));
    there.iter().for_each(|shipment| assert_opens(&mut responder, shipment));
    back.iter().for_each(|shipment| assert_opens(&mut initiator, shipment));
    assert_eq!((initiator.key_phases().phase(), responder.key_phases().phase()), (1, 1));
}

#[test]
fn a_forged_key_phase_changes_nothing() {
    let (mut initiator, mut responder) = short_lived();
    let first = send(&mut initiator, 0, b"");
    assert_opens(&mut responder, &first);
    for number in 1..90 {
        let mut forged = send(&mut initiator, number, b"body");
        forged[0] ^= 0x10;
        assert_eq!(receive(&mut responder, 0, &forged), None);
        assert_eq!((responder.key_phases().phase(), responder.data_level()), (0, Level::Data));
    }
    let honest = send(&mut initiator, 90, b"body");
    assert_opens(&mut responder, &honest);
}

#[test]
fn a_key_that_has_sealed_as_much_as_it_may_seals_no_more() {
    let (mut initiator, mut responder) = short_lived();
    let shipments = send_all(&mut initiator, 0, 199);
    assert!(!initiator.aead_limit_reached());
    assert_opens(&mut responder, &shipments[198]);
    send_all(&mut initiator, 199, 1);
    assert!(initiator.aead_limit_reached());
    assert!(send(&mut initiator, 200, b"one too many").iter().all(|byte| *byte == 0));
}

#[test]
fn too_many_forgeries_wear_a_connection_out() {
    let (mut initiator, mut responder) = short_lived();
    let honest = send(&mut initiator, 0, b"");
    let mut forged = honest.clone();
    *forged.last_mut().unwrap() ^= 1;
    for _ in 0..999 {
        assert_eq!(receive(&mut responder, 0, &forged), None);
    }
    assert_opens(&mut responder, &honest);
    assert!(!responder.aead_limit_reached());
    assert_eq!(receive(&mut responder, 0, &forged), None);
    assert!(responder.aead_limit_reached());
    assert_eq!(receive(&mut responder, 0, &honest), None);
}

#[test]
fn the_limits_are_those_of_the_suite() {
    let (mut initiator, _responder) = pair();
    // RFC 9001 6.6: AES-GCM seals 2^23 shipments, and 2^52 may fail to open.
    assert_eq!(initiator.key_phases().limits(), Limits { update_after: 1 << 22, sealed_max: 1 << 23, refused_max: 1 << 52 });
}
