//! How a handshake goes, whole and in pieces.

use super::*;
use crate::handshake::Handshake;
use crate::peer_check::{PeerCheck, Wanted};
use crate::provider::provider;
use rustls::ClientConfig;
use rustls::quic::{ClientConnection, Connection, Version};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::version::TLS13;
use segstream_proto::session::Protection;
use std::sync::Arc;

#[test]
fn a_handshake_in_pieces_of_one_byte_brings_both_parameters_across() {
    for piece in [1, 7, 1200, usize::MAX] {
        let (asking, asked) = (endpoint(Admission::nobody()), endpoint(Admission::anyone()));
        let mut initiator = asking.initiator(&Trust::Key(asked.fingerprint()), PROPOSED).unwrap();
        let mut responder = asked.responder();
        assert!(!initiator.is_complete() && initiator.peer_parameters().is_none() && responder.peer_parameters().is_none());
        shake(&mut initiator, &mut responder, piece).unwrap();
        assert!(initiator.is_complete() && responder.is_complete());
        assert_eq!((initiator.peer_parameters(), responder.peer_parameters()), (Some(AGREED), Some(PROPOSED)));
        assert_eq!((initiator.peer(), responder.peer()), (Some(asked.fingerprint()), Some(asking.fingerprint())));
        assert_eq!(initiator.write_handshake(), None);
        assert_eq!(responder.write_handshake(), None, "no tickets");
    }
}

#[test]
fn each_side_writes_at_the_levels_of_the_protocol() {
    let (asking, asked) = (endpoint(Admission::nobody()), endpoint(Admission::anyone()));
    let mut initiator = asking.initiator(&Trust::Anyone, PROPOSED).unwrap();
    let mut responder = asked.responder();
    let (level, hello) = initiator.write_handshake().unwrap();
    assert_eq!((level, initiator.write_handshake()), (Level::Initial, None));
    assert!(!initiator.can_seal(Level::Handshake));
    responder.read_handshake(level, &hello).unwrap();
    assert_eq!(responder.peer_parameters(), Some(PROPOSED));
    assert_eq!(responder.write_handshake(), None, "it waits for the answer");
    responder.answer(AGREED).unwrap();
    let flight: Vec<_> = core::iter::from_fn(|| responder.write_handshake()).collect();
    assert_eq!(flight.iter().map(|(level, _)| *level).collect::<Vec<_>>(), [Level::Initial, Level::Handshake]);
    assert!(responder.can_seal(Level::Handshake) && !responder.can_seal(Level::Data));
    for (level, bytes) in &flight {
        initiator.read_handshake(*level, bytes).unwrap();
    }
    let (level, finish) = initiator.write_handshake().unwrap();
    assert_eq!((level, initiator.write_handshake()), (Level::Handshake, None));
    assert!(initiator.is_complete() && initiator.can_seal(Level::Data) && !responder.is_complete());
    responder.read_handshake(level, &finish).unwrap();
    assert!(responder.is_complete() && responder.can_seal(Level::Data) && responder.authenticates_peer());
}

#[test]
fn nothing_of_the_data_levels_opens_before_the_responder_knows_its_peer() {
    let (asking, asked) = (endpoint(Admission::nobody()), endpoint(Admission::anyone()));
    let mut initiator = asking.initiator(&Trust::Anyone, PROPOSED).unwrap();
    let mut responder = asked.responder();
    carry(&mut initiator, &mut responder, usize::MAX).unwrap();
    carry(&mut responder, &mut initiator, usize::MAX).unwrap();
    let early = send(&mut initiator, 3, b"too early");
    let mut still = early.clone();
    responder.unprotect_header(&mut still);
    assert_eq!(still, early, "its header stays protected, to be tried again");
    assert_eq!(receive(&mut responder, 0, &early), None);
    let leaving = send(&mut responder, 3, b"secret words");
    assert!(leaving.iter().all(|byte| *byte == 0), "what cannot be sealed leaves as zeros");
    carry(&mut initiator, &mut responder, usize::MAX).unwrap();
    assert_eq!(receive(&mut responder, 0, &early).as_deref(), Some(&b"too early"[..]));
}

#[test]
fn bytes_at_a_level_that_is_over_or_not_yet_begun_end_the_handshake() {
    let (asking, asked) = (endpoint(Admission::nobody()), endpoint(Admission::anyone()));
    let mut initiator = asking.initiator(&Trust::Anyone, PROPOSED).unwrap();
    let mut responder = asked.responder();
    assert!(asked.responder().read_handshake(Level::Handshake, &[1]).is_err());
    assert!(asked.responder().read_handshake(Level::Data, &[1]).is_err());
    carry(&mut initiator, &mut responder, usize::MAX).unwrap();
    let error = responder.read_handshake(Level::Initial, &[0]).unwrap_err();
    assert_eq!((error.code, error.untrusted), (0x10a, None));
    assert_eq!(responder.read_handshake(Level::Handshake, &[0]).unwrap_err().code, 0x10a, "and stays ended");
    assert!(!responder.is_complete() && responder.write_handshake().is_none());

    let (mut initiator, mut responder) = pair();
    assert!(initiator.read_handshake(Level::Handshake, &[4]).is_err());
    assert!(responder.read_handshake(Level::Initial, &[4]).is_err());
}

#[test]
fn bytes_of_the_next_level_behind_the_last_of_the_one_before_are_refused() {
    let (asking, asked) = (endpoint(Admission::nobody()), endpoint(Admission::anyone()));
    let mut initiator = asking.initiator(&Trust::Anyone, PROPOSED).unwrap();
    let mut responder = asked.responder();
    carry(&mut initiator, &mut responder, usize::MAX).unwrap();
    let both: Vec<u8> = core::iter::from_fn(|| responder.write_handshake()).flat_map(|(_, bytes)| bytes).collect();
    assert_eq!(initiator.read_handshake(Level::Initial, &both).unwrap_err().code, 0x10a);
}

#[test]
fn garbage_and_endless_messages_end_the_handshake_with_a_sentence() {
    let asked = endpoint(Admission::anyone());
    let error = asked.responder().read_handshake(Level::Initial, b"GET / HTTP/1.1").unwrap_err();
    assert_eq!((error.code, error.detail.is_empty()), (0x132, false));
    assert!(asked.responder().read_handshake(Level::Initial, &[1, 0xff, 0xff, 0xff]).is_err(), "a hello of 16 MB");
    let mut initiator = endpoint(Admission::nobody()).initiator(&Trust::Anyone, PROPOSED).unwrap();
    assert!(initiator.read_handshake(Level::Initial, &[2, 0xff, 0xff, 0xff]).is_err());
}

#[test]
fn every_changed_byte_of_a_handshake_is_found_by_one_of_the_two() {
    let (asking, asked) = (endpoint(Admission::nobody()), endpoint(Admission::anyone()));
    for at in 0..400 {
        let mut initiator = asking.initiator(&Trust::Key(asked.fingerprint()), PROPOSED).unwrap();
        let mut responder = asked.responder();
        let (level, mut hello) = initiator.write_handshake().unwrap();
        let Some(byte) = hello.get_mut(at) else { return };
        *byte ^= 1;
        let _ = responder.read_handshake(level, &hello).and_then(|()| responder.answer(AGREED));
        let _ = carry(&mut responder, &mut initiator, usize::MAX).and_then(|()| carry(&mut initiator, &mut responder, usize::MAX));
        assert!(!initiator.is_complete() && !responder.is_complete(), "byte {at}");
    }
}

/// An initiator of another make, with this ALPN, that shows this certificate or none.
fn stranger(alpn: &[u8], certificate: Option<CertifiedKey>) -> TlsSession {
    let check = Arc::new(PeerCheck::new(Wanted::Peer(Trust::Anyone, None)));
    let config = ClientConfig::builder_with_provider(provider()).with_protocol_versions(&[&TLS13]).unwrap();
    let config = config.dangerous().with_custom_certificate_verifier(Arc::<PeerCheck>::clone(&check));
    let mut config = match certificate {
        Some(certificate) => config.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(certificate))),
        None => config.with_no_client_auth(),
    };
    config.alpn_protocols = vec![alpn.to_vec()];
    let connection = ClientConnection::new(Arc::new(config), Version::V1, "name".try_into().unwrap(), PROPOSED.to_vec()).unwrap();
    TlsSession::new(Handshake::initiate(Connection::Client(connection), check))
}

fn fresh() -> CertifiedKey {
    Identity::generate().unwrap().into_certified_key()
}

#[test]
fn another_protocol_and_a_peer_without_a_key_are_refused() {
    let asked = endpoint(Admission::anyone());
    let meet = |mut stranger: TlsSession| shake(&mut stranger, &mut asked.responder(), usize::MAX);
    meet(stranger(b"segstream/2", Some(fresh()))).unwrap();
    let error = responder_error(meet(stranger(b"h3", Some(fresh()))).unwrap_err());
    assert_eq!(error.code, 0x178, "no_application_protocol");
    assert!(error.detail.contains("the same version"), "{}", error.detail);
    let error = responder_error(meet(stranger(b"segstream/2", None)).unwrap_err());
    assert_eq!(error.code, 0x174, "certificate_required");
    assert!(error.detail.contains("needs an identity"), "{}", error.detail);
}

#[test]
fn a_certificate_without_its_key_proves_nothing_and_tells_no_fingerprint() {
    let admission = Admission::nobody();
    let victim = Identity::generate().unwrap();
    admission.allow(victim.fingerprint());
    let asked = endpoint(admission);
    let stolen = CertifiedKey::new(victim.into_certified_key().cert, fresh().key);
    let failure = shake(&mut stranger(b"segstream/2", Some(stolen)), &mut asked.responder(), usize::MAX).unwrap_err();
    let error = responder_error(failure);
    assert_eq!((error.code, error.untrusted), (0x133, None), "decrypt_error: {}", error.detail);
}

#[test]
fn parameters_that_are_not_those_acted_on_end_the_handshake() {
    let (asking, asked) = (endpoint(Admission::nobody()), endpoint(Admission::anyone()));
    let mut initiator = asking.initiator(&Trust::Anyone, PROPOSED).unwrap();
    let mut responder = asked.responder();
    carry(&mut initiator, &mut responder, usize::MAX).unwrap();
    responder.handshake.pretend_proposed(b"something else");
    let failure = shake(&mut initiator, &mut responder, usize::MAX).unwrap_err();
    assert_eq!(responder_error(failure).code, 0x12f, "illegal_parameter");
    assert!(!responder.is_complete() && !responder.can_seal(Level::Data));
}

#[test]
fn a_session_can_be_used_from_another_thread() {
    fn is_send<T: Send>() {}
    is_send::<TlsSession>();
    is_send::<Tls>();
}

#[test]
fn codes_of_an_endpoint_are_its_own_and_lasting_ones_are_its_identitys() {
    let identity = Identity::generate().unwrap();
    let tls = || Tls::new(identity.clone(), Admission::nobody(), None).unwrap();
    let (first, second, other) = (tls(), tls(), endpoint(Admission::nobody()));
    assert_eq!(first.mac(b"cookie"), first.mac(b"cookie"));
    assert_ne!(first.mac(b"cookie"), first.mac(b"cookif"));
    assert_ne!(first.mac(b"cookie"), second.mac(b"cookie"));
    assert!(first.lasting_mac(b"reset").is_some());
    assert_eq!(first.lasting_mac(b"reset"), second.lasting_mac(b"reset"));
    assert_ne!(first.lasting_mac(b"reset"), other.lasting_mac(b"reset"));
    assert_ne!(first.lasting_mac(b"cookie"), Some(first.mac(b"cookie")));
}
