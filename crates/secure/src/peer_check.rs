//! Decides, in one handshake, whether the peer is who it should be.
//!
//! Called by rustls, for the certificate a peer shows and for the signature that proves it has the key; asked by the
//! session afterwards whom it has met.
//!
//! Invariant: nothing is decided, or told as the peer's key, before the peer has proved that it has the key. So nobody
//! can get another's fingerprint shown to a person, refused or allowed.
//!
//! Source: RFC 8446 4.4.2 and 4.4.3.

use crate::provider::{certificate_fingerprint, provider};
use crate::{Admission, Authorities, Fingerprint, Trust};
use core::fmt;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, PeerIncompatible, SignatureScheme};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Whom this side of a handshake wants.
#[derive(Debug)]
pub(crate) enum Wanted {
    /// An initiator's peer, and the authorities to ask when a name is wanted.
    Peer(Trust, Option<Authorities>),
    /// Whoever a responder serves.
    Admitted(Admission),
}

/// Decides in one handshake.
pub(crate) struct PeerCheck {
    wanted: Wanted,
    algorithms: WebPkiSupportedAlgorithms,
    seen: Mutex<Seen>,
}

/// What this handshake has shown so far.
#[derive(Clone, Debug, Default)]
struct Seen {
    /// Why no authority's word counts for the certificate, or that one does.
    certified: Option<Result<(), String>>,
    /// The key, proved.
    key: Option<Fingerprint>,
    /// Why the holder of that key is not wanted.
    refusal: Option<String>,
}

impl PeerCheck {
    pub(crate) fn new(wanted: Wanted) -> Self {
        Self { wanted, algorithms: provider().signature_verification_algorithms, seen: Mutex::default() }
    }

    /// The peer's key, once it has proved it.
    pub(crate) fn key(&self) -> Option<Fingerprint> {
        self.seen().key
    }

    /// Why the peer was refused, if it was for its key.
    pub(crate) fn refusal(&self) -> Option<String> {
        self.seen().refusal.clone()
    }

    /// Lets the peer in at the end of the handshake, or says why not.
    pub(crate) fn admit(&self) -> Result<(), String> {
        let Wanted::Admitted(admission) = &self.wanted else { return Ok(()) };
        let seen = self.seen().clone();
        let key = seen.key.ok_or_else(|| "the peer has shown no key".to_owned())?;
        let admitted = admission.admit(key, matches!(seen.certified, Some(Ok(()))));
        if admitted { Ok(()) } else { Err(self.refuse(format!("the key {key} was allowed once, and another connection has used it"))) }
    }

    fn refuse(&self, why: String) -> String {
        self.seen().refusal = Some(why.clone());
        why
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks the proof, then whether the one who has given it is wanted.
    fn check_proof(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let valid = verify_tls13_signature(message, certificate, signature, &self.algorithms)?;
        let key = certificate_fingerprint(certificate)?;
        let certified = {
            let mut seen = self.seen();
            seen.key = Some(key);
            seen.certified.clone()
        };
        match self.objection(key, certified) {
            None => Ok(valid),
            Some(why) => {
                self.refuse(why);
                Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
            }
        }
    }

    /// Why the holder of this key is not wanted.
    fn objection(&self, key: Fingerprint, certified: Option<Result<(), String>>) -> Option<String> {
        match &self.wanted {
            Wanted::Peer(Trust::Anyone, _) => None,
            Wanted::Peer(Trust::Key(expected), _) if *expected == key => None,
            Wanted::Peer(Trust::Key(expected), _) => Some(format!(
                "the peer's key is {key}, but {expected} is the one that is trusted: the peer has another key now, or somebody else \
                 answers in its place; ask its owner before you trust the new one"
            )),
            Wanted::Peer(Trust::Nobody, _) => Some(format!(
                "the peer's key {key} is not known yet: compare it with the fingerprint that its owner sees, and trust it if they are \
                 the same"
            )),
            Wanted::Peer(Trust::Certified(name), _) => match certified {
                Some(Ok(())) => None,
                Some(Err(why)) => Some(format!("no trusted authority has certified the key {key} for {name}: {why}")),
                None => Some(format!("no authority is configured that could certify the key {key} for {name}")),
            },
            Wanted::Admitted(admission) if admission.would_admit(key, matches!(certified, Some(Ok(())))) => None,
            Wanted::Admitted(_) => Some(format!("the key {key} is not allowed here")),
        }
    }
}

impl fmt::Debug for PeerCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeerCheck").field("wanted", &self.wanted).field("seen", &*self.seen()).finish_non_exhaustive()
    }
}

/// Our peers speak nothing older.
fn refuse_tls12() -> Result<HandshakeSignatureValid, Error> {
    Err(Error::PeerIncompatible(PeerIncompatible::Tls12NotOffered))
}

impl ServerCertVerifier for PeerCheck {
    fn verify_server_cert(
        &self,
        first: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if let Wanted::Peer(Trust::Certified(_), Some(authorities)) = &self.wanted {
            let certified = authorities.check_responder(first, others, name, now);
            self.seen().certified = Some(certified.map_err(|error| error.to_string()));
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        refuse_tls12()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_proof(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

impl ClientCertVerifier for PeerCheck {
    /// Any certificate will do: it is the key that counts.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        first: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        if let Wanted::Admitted(admission) = &self.wanted {
            let certified = admission.authorities().iter().any(|known| known.check_initiator(first, others, now).is_ok());
            self.seen().certified = Some(if certified { Ok(()) } else { Err("no authority has certified it".to_owned()) });
        }
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        refuse_tls12()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_proof(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
