//! Identities in files, and what is refused.

use super::*;
use crate::tests::connect;
use crate::{Admission, Tls, Trust};
use data_encoding::BASE64;
use std::fs;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};

/// An RSA key that everybody knows: making one takes seconds.
const RSA: &[u8] = include_bytes!("public_rsa_key_for_tests.txt");

fn write_private(path: &Path, text: &[u8]) {
    use std::io::Write as _;
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path).unwrap();
    file.write_all(text).unwrap();
}

fn pem(label: &str, der: &[u8]) -> Vec<u8> {
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", BASE64.encode(der)).into_bytes()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn an_identity_is_made_once_for_its_owner_only_and_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/down/identity.pem");
    assert!(matches!(Identity::load(&path), Err(IdentityError::Read { .. })));
    let made = Identity::load_or_create(&path).unwrap();
    assert_eq!((mode(&path), mode(path.parent().unwrap()), mode(&folder.path().join("deep"))), (0o600, 0o700, 0o700));
    for again in [Identity::load_or_create(&path), Identity::load(&path)].map(Result::unwrap) {
        assert_eq!(again.fingerprint(), made.fingerprint());
        assert_eq!(again.lasting_secret(), made.lasting_secret());
    }
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn of_many_that_start_at_once_all_get_the_same_identity() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("identity.pem");
    let starts: Vec<_> = (0..8)
        .map(|_| {
            let path = path.clone();
            std::thread::spawn(move || Identity::load_or_create(&path).unwrap().fingerprint())
        })
        .collect();
    let found: Vec<_> = starts.into_iter().map(|start| start.join().unwrap()).collect();
    assert!(found.iter().all(|fingerprint| *fingerprint == Identity::load(&path).unwrap().fingerprint()));
}

#[test]
fn a_file_that_exists_is_not_written_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("identity.pem");
    let first = Identity::load_or_create(&path).unwrap();
    file::create_key(&path, &fresh_key().unwrap()).unwrap();
    assert_eq!(Identity::load(&path).unwrap().fingerprint(), first.fingerprint());
}

#[test]
fn a_key_that_others_may_read_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("identity.pem");
    Identity::load_or_create(&path).unwrap();
    for bits in [0o640, 0o604, 0o620, 0o601] {
        fs::set_permissions(&path, fs::Permissions::from_mode(bits)).unwrap();
        let error = Identity::load_or_create(&path).unwrap_err();
        assert!(matches!(error, IdentityError::Exposed { mode, .. } if mode == bits), "{error}");
        assert!(error.to_string().contains("chmod 600") && error.to_string().contains(&format!("0{bits:o}")), "{error}");
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
    Identity::load(&path).unwrap();
}

#[test]
fn keys_of_every_kind_are_read_and_can_sign_for_themselves() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("key.pem");
    let kinds = [&rcgen::PKCS_ED25519, &rcgen::PKCS_ECDSA_P256_SHA256, &rcgen::PKCS_ECDSA_P384_SHA384];
    let mut keys: Vec<_> = kinds.map(|kind| pem("PRIVATE KEY", &rcgen::KeyPair::generate_for(kind).unwrap().serialize_der())).to_vec();
    keys.push(RSA.to_vec());
    for key in keys {
        write_private(&path, &key);
        let identity = Identity::load(&path).unwrap();
        assert_eq!(provider::certificate_fingerprint(&identity.chain[0]).unwrap(), identity.fingerprint());
        let tls = Tls::new(identity.clone(), Admission::anyone(), None).unwrap();
        connect(&tls, &Trust::Key(identity.fingerprint()), &tls).unwrap();
    }
}

#[test]
fn garbage_is_refused_with_a_sentence_that_names_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("identity.pem");
    let other_form = pem("EC PRIVATE KEY", &[1, 2, 3]);
    for text in [&b""[..], b"\xff\x00garbage", b"-----BEGIN PRIVATE KEY-----\n", &other_form] {
        write_private(&path, text);
        let error = Identity::load(&path).unwrap_err();
        assert!(matches!(error, IdentityError::NoKey { .. }), "{error}");
        assert!(error.to_string().contains("identity.pem") && error.to_string().contains("openssl pkcs8"), "{error}");
    }
    write_private(&path, &pem("PRIVATE KEY", b"not a key"));
    let error = Identity::load(&path).unwrap_err().to_string();
    assert!(error.contains("identity.pem cannot be used") && error.contains("must be Ed25519"), "{error}");
}

#[test]
fn certificates_of_another_key_are_refused_and_both_keys_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chain.pem");
    let (ours, other) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    fs::write(&path, pem("CERTIFICATE", &other.chain[0])).unwrap();
    let error = ours.clone().with_certificates(&path).unwrap_err().to_string();
    assert!(error.contains(&ours.fingerprint().to_string()) && error.contains(&other.fingerprint().to_string()), "{error}");
    fs::write(&path, [pem("CERTIFICATE", &ours.chain[0]), pem("CERTIFICATE", &other.chain[0])].concat()).unwrap();
    assert_eq!(ours.clone().with_certificates(&path).unwrap().chain.len(), 2);
    for text in [&b""[..], b"garbage", &pem("CERTIFICATE", b"not one")] {
        fs::write(&path, text).unwrap();
        let error = ours.clone().with_certificates(&path).unwrap_err();
        assert!(matches!(error, IdentityError::Certificates { .. }), "{error}");
    }
}

#[test]
fn a_code_gives_the_same_key_everywhere_and_another_code_another() {
    let code: OneTimeCode = "k7qm-2xnp-9wdt-4rfh".parse().unwrap();
    // Computed by openssl and Python's hmac. A change of it breaks codes between versions.
    let known = "SHA256:QBMVTx4oEsvbIMtNarED21JwjO6_bn_UpWcJNhuSWug";
    assert_eq!(Identity::of_code(&code).unwrap().fingerprint().to_string(), known);
    let other = "k7qm-2xnp-9wdt-4rfj".parse().unwrap();
    assert_ne!(Identity::of_code(&other).unwrap().fingerprint().to_string(), known);
}

#[test]
fn debug_shows_the_fingerprint_and_nothing_secret() {
    let identity = Identity::generate().unwrap();
    let shown = format!("{identity:?}");
    assert!(shown.contains(&identity.fingerprint().to_string()), "{shown}");
    assert!(!shown.contains("key:") && !shown.contains("lasting"), "{shown}");
}
