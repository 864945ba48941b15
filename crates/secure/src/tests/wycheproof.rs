//! The test vectors of Project Wycheproof, for every seal and every signature that is accepted here.
//!
//! They hold what implementations have got wrong: edges of counters and polynomials, changed tags, signatures that are not canonical.

use crate::provider::provider;
use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use rustls::crypto::cipher::{AeadKey, Iv};
use rustls::quic::PacketKey;
use rustls::{CipherSuite, SignatureScheme};
use wycheproof::aead::{Test, TestName, TestSet};
use wycheproof::eddsa;

/// What a suite seals with under a key and a nonce.
enum Seal {
    /// As sessions use it, by the seal of a shipment with number 0, of which the nonce is the vector's own.
    Packet(Box<dyn PacketKey>),
    /// The cipher beneath. Why: rustls makes no key of a suite from 128 bits but from a handshake's secrets.
    Ring(Box<LessSafeKey>, [u8; 12]),
}

impl Seal {
    fn of(suite: CipherSuite, key: &[u8], nonce: &[u8]) -> Self {
        let nonce = nonce.try_into().expect("96 bits");
        let Ok(key) = <[u8; 32]>::try_from(key) else {
            return Self::Ring(Box::new(LessSafeKey::new(UnboundKey::new(&AES_128_GCM, key).unwrap())), nonce);
        };
        let suites = &provider().cipher_suites;
        let quic = suites.iter().find(|known| known.suite() == suite).and_then(|known| known.tls13()?.quic).unwrap();
        Self::Packet(quic.packet_key(AeadKey::from(key), Iv::from(nonce)))
    }

    fn open(&self, aad: &[u8], sealed: &mut [u8]) -> Option<Vec<u8>> {
        match self {
            Self::Packet(key) => key.decrypt_in_place(0, aad, sealed).ok().map(<[u8]>::to_vec),
            Self::Ring(key, nonce) => {
                key.open_in_place(Nonce::assume_unique_for_key(*nonce), Aad::from(aad), sealed).ok().map(|body| body.to_vec())
            }
        }
    }

    fn seal(&self, aad: &[u8], body: &mut [u8]) -> Vec<u8> {
        match self {
            Self::Packet(key) => key.encrypt_in_place(0, aad, body).unwrap().as_ref().to_vec(),
            Self::Ring(key, nonce) => {
                let tag = key.seal_in_place_separate_tag(Nonce::assume_unique_for_key(*nonce), Aad::from(aad), body);
                tag.unwrap().as_ref().to_vec()
            }
        }
    }
}

fn check(suite: CipherSuite, test: &Test) {
    let about = format!("{suite:?} {}: {}", test.tc_id, test.comment);
    let seal = Seal::of(suite, &test.key, &test.nonce);
    let opened = seal.open(&test.aad, &mut [&test.ct[..], &test.tag[..]].concat());
    if test.result.must_fail() {
        assert_eq!(opened, None, "{about}");
        return;
    }
    assert_eq!(opened.as_deref(), Some(&test.pt[..]), "{about}");
    let mut body = test.pt.to_vec();
    let tag = seal.seal(&test.aad, &mut body);
    assert_eq!((&body[..], &tag[..]), (&test.ct[..], &test.tag[..]), "{about}");
}

/// Checks the vectors with nonces of 96 and tags of 128 bits, and keys of so many bits; how many they are.
fn check_all(suite: CipherSuite, name: TestName, key_bits: usize) -> usize {
    let groups = TestSet::load(name).unwrap().test_groups;
    let ours = groups.iter().filter(|group| (group.key_size, group.nonce_size, group.tag_size) == (key_bits, 96, 128));
    ours.flat_map(|group| &group.tests).inspect(|test| check(suite, test)).count()
}

#[test]
fn seals_are_those_of_the_vectors_and_nothing_else_opens() {
    assert!(check_all(CipherSuite::TLS13_AES_128_GCM_SHA256, TestName::AesGcm, 128) >= 50);
    assert!(check_all(CipherSuite::TLS13_AES_256_GCM_SHA384, TestName::AesGcm, 256) >= 50);
    assert!(check_all(CipherSuite::TLS13_CHACHA20_POLY1305_SHA256, TestName::ChaCha20Poly1305, 256) >= 200);
}

#[test]
fn a_proof_of_an_ed25519_key_is_accepted_if_and_only_if_the_vectors_say_so() {
    let known = provider().signature_verification_algorithms.mapping;
    let (_, algorithms) = known.iter().find(|(scheme, _)| *scheme == SignatureScheme::ED25519).unwrap();
    let mut checked = 0;
    for group in &eddsa::TestSet::load(eddsa::TestName::Ed25519).unwrap().test_groups {
        for test in &group.tests {
            let verified = algorithms.iter().any(|algorithm| algorithm.verify_signature(&group.key.pk, &test.msg, &test.sig).is_ok());
            assert_eq!(verified, !test.result.must_fail(), "{}: {}", test.tc_id, test.comment);
            checked += 1;
        }
    }
    assert!(checked >= 100, "{checked} vectors");
}
