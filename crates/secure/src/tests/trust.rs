//! Who is trusted, and who is served.

use super::*;
use crate::OneTimeCode;

#[test]
fn a_peer_with_another_key_is_refused_and_its_key_is_told() {
    let (asking, asked) = (endpoint(Admission::nobody()), endpoint(Admission::anyone()));
    let expected = some_key();
    let error = initiator_error(connect(&asking, &Trust::Key(expected), &asked).unwrap_err());
    assert_eq!((error.code, error.untrusted), (0x131, Some(asked.fingerprint())));
    assert!(error.detail.contains(&expected.to_string()) && error.detail.contains(&asked.fingerprint().to_string()), "{}", error.detail);
}

#[test]
fn an_impostor_is_not_told_whom_it_was_taken_for() {
    let (asking, asked) = (endpoint(Admission::nobody()), endpoint(Admission::anyone()));
    for trust in [Trust::Key(some_key()), Trust::Nobody] {
        let error = initiator_error(connect(&asking, &trust, &asked).unwrap_err());
        assert_eq!(*error.told, *format!("the key {} is not trusted here", asked.fingerprint()), "{trust:?}");
    }
}

#[test]
fn whoever_serves_nobody_shows_nobody_its_certificate() {
    let admission = Admission::nobody();
    let (asking, asked) = (endpoint(Admission::nobody()), endpoint(admission.clone()));
    let flight = |asked: &Tls| {
        let (mut initiator, mut responder) = (asking.initiator(&Trust::Anyone, PROPOSED).unwrap(), asked.responder());
        let refused = carry(&mut initiator, &mut responder, usize::MAX).err();
        let bytes: usize = core::iter::from_fn(|| responder.write_handshake()).map(|(_, bytes)| bytes.len()).sum();
        (refused.map(|error| (error.code, error.told.into_string())), bytes)
    };
    assert_eq!(flight(&asked), (Some((0x131, "nobody is served here at present".to_owned())), 0));
    let code = OneTimeCode::generate().unwrap();
    admission.allow_once(&code).unwrap();
    let (refused, bytes) = flight(&asked);
    assert!(refused.is_none() && bytes > 300, "{refused:?}, {bytes}");
}

#[test]
fn an_initiator_that_trusts_nobody_learns_the_key_and_can_come_again_with_it() {
    let (asking, asked) = (endpoint(Admission::nobody()), endpoint(Admission::anyone()));
    let error = initiator_error(connect(&asking, &Trust::Nobody, &asked).unwrap_err());
    let key = error.untrusted.unwrap();
    assert!(error.detail.contains(&key.to_string()) && error.detail.contains("compare"), "{}", error.detail);
    connect(&asking, &Trust::Key(key), &asked).unwrap();
}

#[test]
fn an_initiator_that_is_not_allowed_is_refused_until_it_is() {
    let admission = Admission::nobody();
    let (asking, asked) = (endpoint(Admission::nobody()), endpoint(admission.clone()));
    admission.allow(some_key());
    let error = responder_error(connect(&asking, &Trust::Anyone, &asked).map(drop).unwrap_err());
    assert_eq!((error.code, error.untrusted), (0x131, Some(asking.fingerprint())));
    assert_eq!(*error.told, *error.detail, "the peer knows its own key");
    assert_eq!(error.detail, format!("the key {} is not allowed here", asking.fingerprint()));
    assert!(connect(&asking, &Trust::Anyone, &asked).is_err());
    admission.allow(asking.fingerprint());
    connect(&asking, &Trust::Anyone, &asked).unwrap();
    connect(&asking, &Trust::Anyone, &asked).unwrap();
}

#[test]
fn a_refused_peer_has_no_keys_for_data_and_is_not_told_as_the_peer() {
    let others = Admission::nobody();
    others.allow(some_key());
    let (asking, asked) = (endpoint(Admission::nobody()), endpoint(others));
    let mut initiator = asking.initiator(&Trust::Anyone, PROPOSED).unwrap();
    let mut responder = asked.responder();
    shake(&mut initiator, &mut responder, usize::MAX).unwrap_err();
    assert!(!responder.is_complete() && !responder.can_seal(Level::Data) && responder.peer().is_none());
    let early = send(&mut initiator, 3, b"data");
    assert_eq!(receive(&mut responder, 0, &early), None);
    let farewell = send_at(&mut responder, Level::Handshake, 4, b"refused");
    assert_eq!(receive(&mut initiator, 0, &farewell).as_deref(), Some(&b"refused"[..]), "the reason can still be told");
}

/// An endpoint that knows a one-time code.
fn holder(code: &OneTimeCode) -> Tls {
    Tls::new(Identity::of_code(code).unwrap(), Admission::nobody(), None).unwrap()
}

#[test]
fn a_one_time_code_lets_one_connection_in_and_no_second() {
    let code = OneTimeCode::generate().unwrap();
    let admission = Admission::nobody();
    admission.allow_once(&code).unwrap();
    admission.allow(some_key());
    let asked = endpoint(admission.clone());
    let wrong = holder(&OneTimeCode::generate().unwrap());
    assert!(connect(&wrong, &Trust::Anyone, &asked).is_err(), "another code");
    let spelled = code.to_string().to_uppercase().parse().unwrap();
    connect(&holder(&spelled), &Trust::Anyone, &asked).unwrap();
    let error = responder_error(connect(&holder(&code), &Trust::Anyone, &asked).map(drop).unwrap_err());
    assert_eq!(error.untrusted, Some(holder(&code).fingerprint()));
    admission.allow_once(&code).unwrap();
    connect(&holder(&code), &Trust::Anyone, &asked).unwrap();
}

#[test]
fn of_two_handshakes_with_one_code_the_first_to_complete_wins() {
    let code = OneTimeCode::generate().unwrap();
    let admission = Admission::nobody();
    admission.allow_once(&code).unwrap();
    let (asking, asked) = (holder(&code), endpoint(admission));
    let mut sessions: Vec<_> = (0..2).map(|_| (asking.initiator(&Trust::Anyone, PROPOSED).unwrap(), asked.responder())).collect();
    for (initiator, responder) in &mut sessions {
        carry(initiator, responder, usize::MAX).unwrap();
        carry(responder, initiator, usize::MAX).unwrap();
    }
    // The proof of the second arrives before the first is done; what is left is its last message.
    let (level, flight) = sessions[1].0.write_handshake().unwrap();
    let finished = flight.len() - 36;
    sessions[1].1.read_handshake(level, &flight[..finished]).unwrap();
    let (initiator, responder) = &mut sessions[0];
    carry(initiator, responder, usize::MAX).unwrap();
    assert!(responder.is_complete());
    let error = sessions[1].1.read_handshake(level, &flight[finished..]).unwrap_err();
    assert_eq!((error.code, error.untrusted), (0x131, Some(asking.fingerprint())));
    assert!(error.detail.contains("once"), "{}", error.detail);
    assert!(!sessions[1].1.is_complete() && !sessions[1].1.can_seal(Level::Data) && sessions[1].1.peer().is_none());
    let early = send(&mut sessions[1].0, 3, b"data");
    assert_eq!(receive(&mut sessions[1].1, 0, &early), None);
}

#[test]
fn a_handshake_that_is_not_finished_takes_no_place() {
    let code = OneTimeCode::generate().unwrap();
    let admission = Admission::nobody();
    admission.allow_once(&code).unwrap();
    let (asking, asked) = (holder(&code), endpoint(admission));
    let (mut initiator, mut responder) = (asking.initiator(&Trust::Anyone, PROPOSED).unwrap(), asked.responder());
    carry(&mut initiator, &mut responder, usize::MAX).unwrap();
    carry(&mut responder, &mut initiator, usize::MAX).unwrap();
    let (level, flight) = initiator.write_handshake().unwrap();
    responder.read_handshake(level, &flight[..flight.len() - 1]).unwrap();
    connect(&asking, &Trust::Anyone, &asked).unwrap();
}

#[test]
fn a_key_that_is_allowed_for_good_does_not_use_up_its_code() {
    let code = OneTimeCode::generate().unwrap();
    let admission = Admission::anyone();
    admission.allow_once(&code).unwrap();
    connect(&holder(&code), &Trust::Anyone, &endpoint(admission.clone())).unwrap();
    assert!(format!("{admission:?}").contains(&holder(&code).fingerprint().to_string()), "{admission:?}");
}

#[test]
fn one_key_has_no_more_connections_at_a_time_than_it_may() {
    let asked = endpoint(Admission::anyone()).with_connections_per_peer(2);
    let (asking, other) = (endpoint(Admission::nobody()), endpoint(Admission::nobody()));
    let first = connect(&asking, &Trust::Anyone, &asked).unwrap();
    let _second = connect(&asking, &Trust::Anyone, &asked).unwrap();
    let error = responder_error(connect(&asking, &Trust::Anyone, &asked).map(drop).unwrap_err());
    assert!(error.detail.contains("has 2 connections here already"), "{}", error.detail);
    let _others = connect(&other, &Trust::Anyone, &asked).unwrap();
    drop(first);
    let _again = connect(&asking, &Trust::Anyone, &asked).unwrap();
}
