//! Peers that an authority of the tests has certified.

use super::*;
use crate::Authorities;
use data_encoding::BASE64;
use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use tempfile::TempDir;

/// An authority with its files in a folder of its own.
struct Authority {
    folder: TempDir,
    issuer: Issuer<'static, KeyPair>,
}

fn pem(label: &str, der: &[u8]) -> String {
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", BASE64.encode(der))
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut root = CertificateParams::default();
        root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("roots.pem"), pem("CERTIFICATE", root.self_signed(&key).unwrap().der())).unwrap();
        Self { folder, issuer: Issuer::new(root, key) }
    }

    fn authorities(&self) -> Authorities {
        Authorities::load(&self.folder.path().join("roots.pem")).unwrap()
    }

    /// An identity whose certificate says this name.
    fn certify(&self, name: &str, change: impl Fn(&mut CertificateParams)) -> Identity {
        let path = |what: &str| -> PathBuf { self.folder.path().join(format!("{name}.{what}")) };
        let key = KeyPair::generate().unwrap();
        fs::write(path("key"), pem("PRIVATE KEY", &key.serialize_der())).unwrap();
        fs::set_permissions(path("key"), fs::Permissions::from_mode(0o600)).unwrap();
        let mut certificate = CertificateParams::new(vec![name.to_owned()]).unwrap();
        change(&mut certificate);
        fs::write(path("crt"), pem("CERTIFICATE", certificate.signed_by(&key, &self.issuer).unwrap().der())).unwrap();
        Identity::load(&path("key")).unwrap().with_certificates(&path("crt")).unwrap()
    }
}

fn certified(name: &str) -> Trust {
    Trust::Certified(name.to_owned())
}

#[test]
fn peers_that_an_authority_has_certified_find_each_other_by_name() {
    let authority = Authority::new();
    let admission = Admission::nobody();
    admission.allow_certified(authority.authorities());
    let asking = Tls::new(authority.certify("client.example", |_| {}), Admission::nobody(), Some(authority.authorities())).unwrap();
    let asked = Tls::new(authority.certify("server.example", |_| {}), admission.clone(), None).unwrap();
    let (initiator, responder) = connect(&asking, &certified("server.example"), &asked).unwrap();
    assert_eq!((initiator.peer(), responder.peer()), (Some(asked.fingerprint()), Some(asking.fingerprint())));

    let error = initiator_error(connect(&asking, &certified("other.example"), &asked).map(drop).unwrap_err());
    assert_eq!((error.code, error.untrusted), (0x131, Some(asked.fingerprint())));
    assert!(error.detail.contains("other.example"), "{}", error.detail);

    let stranger = endpoint(Admission::nobody());
    let error = responder_error(connect(&stranger, &Trust::Anyone, &asked).map(drop).unwrap_err());
    assert_eq!(error.untrusted, Some(stranger.fingerprint()));
}

#[test]
fn the_word_of_another_authority_and_a_self_signed_certificate_do_not_count() {
    let (ours, other) = (Authority::new(), Authority::new());
    let admission = Admission::nobody();
    admission.allow_certified(ours.authorities());
    let asking = Tls::new(other.certify("client.example", |_| {}), Admission::nobody(), Some(ours.authorities())).unwrap();
    let certified_elsewhere = Tls::new(other.certify("server.example", |_| {}), Admission::anyone(), None).unwrap();
    for asked in [certified_elsewhere, endpoint(Admission::anyone())] {
        let error = initiator_error(connect(&asking, &certified("server.example"), &asked).map(drop).unwrap_err());
        assert_eq!(error.untrusted, Some(asked.fingerprint()));
    }
    let asked = Tls::new(ours.certify("server.example", |_| {}), admission, None).unwrap();
    let error = responder_error(connect(&asking, &certified("server.example"), &asked).map(drop).unwrap_err());
    assert_eq!(error.detail, format!("the key {} is not allowed here", asking.fingerprint()));
}

#[test]
fn a_certificate_that_has_ended_or_is_for_another_use_does_not_count() {
    let authority = Authority::new();
    let asking = Tls::new(Identity::generate().unwrap(), Admission::nobody(), Some(authority.authorities())).unwrap();
    let ended = authority.certify("server.example", |certificate| certificate.not_after = rcgen::date_time_ymd(2001, 1, 1));
    let client =
        authority.certify("server.example", |certificate| certificate.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth]);
    for identity in [ended, client] {
        let asked = Tls::new(identity, Admission::anyone(), None).unwrap();
        let error = initiator_error(connect(&asking, &certified("server.example"), &asked).map(drop).unwrap_err());
        assert!(error.detail.starts_with("no trusted authority has certified"), "{}", error.detail);
        connect(&asking, &Trust::Key(asked.fingerprint()), &asked).expect("the key is trusted, whatever the certificate says");
    }
}

#[test]
fn a_name_without_an_authority_and_what_is_no_name_are_refused_at_once() {
    let error = endpoint(Admission::nobody()).initiator(&certified("server.example"), PROPOSED).unwrap_err();
    assert!(error.detail.contains("load root certificates"), "{}", error.detail);
    let authority = Authority::new();
    let asking = Tls::new(Identity::generate().unwrap(), Admission::nobody(), Some(authority.authorities())).unwrap();
    let error = asking.initiator(&certified("no name"), PROPOSED).unwrap_err();
    assert!(error.detail.contains("\"no name\""), "{}", error.detail);
    assert!(asking.initiator(&certified("192.0.2.7"), PROPOSED).is_ok());
}

#[test]
fn a_file_without_certificates_gives_no_authorities() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("roots.pem");
    assert!(Authorities::load(&path).unwrap_err().to_string().contains("cannot be read"));
    for text in ["", "garbage", &pem("CERTIFICATE", b"not one")] {
        fs::write(&path, text).unwrap();
        let error = Authorities::load(&path).unwrap_err().to_string();
        assert!(error.contains("roots.pem contains no usable root certificates"), "{error}");
    }
}
