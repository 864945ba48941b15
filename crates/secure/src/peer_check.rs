//! Verifies the peer of one handshake.
//!
//! Called by rustls, with the certificate that the peer presents and with the signature that proves possession of the key. The session
//! reads the peer's key afterwards.
//!
//! Invariant: no key is accepted, refused or reported before the peer has proved possession of it. So a peer cannot make another peer's
//! fingerprint appear in a message.
//!
//! Source: RFC 8446 4.4.2 and 4.4.3.

use crate::admission::{Place, Refused};
use crate::provider::{certificate_fingerprint, provider};
use crate::{Admission, Authorities, Fingerprint, Trust};
use core::fmt;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, PeerIncompatible, SignatureScheme};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Which peers this side of a handshake accepts.
#[derive(Debug)]
pub(crate) enum Wanted {
    /// An initiator's peer, and the authorities for a trusted name.
    Peer(Trust, Option<Authorities>),
    /// The peers that a responder serves.
    Admitted(Admission),
}

/// The verifier of one handshake.
pub(crate) struct PeerCheck {
    wanted: Wanted,
    algorithms: WebPkiSupportedAlgorithms,
    seen: Mutex<Seen>,
}

/// The results so far.
#[derive(Clone, Debug, Default)]
struct Seen {
    /// Whether an authority has certified the peer, or why not.
    certified: Option<Result<(), String>>,
    /// The key that the peer has proved to possess.
    key: Option<Fingerprint>,
    /// Why that key is refused.
    refusal: Option<Refusal>,
}

/// Why a key is refused.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    /// For the user of this end.
    pub(crate) detail: String,
    /// For the peer, who may be an impostor: about its own key alone.
    pub(crate) told: String,
}

impl PeerCheck {
    pub(crate) fn new(wanted: Wanted) -> Self {
        Self { wanted, algorithms: provider().signature_verification_algorithms, seen: Mutex::default() }
    }

    /// The peer's key, once it has proved possession.
    pub(crate) fn key(&self) -> Option<Fingerprint> {
        self.seen().key
    }

    /// Why the peer's key was refused, if it was.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        self.seen().refusal.clone()
    }

    /// Whether no peer at all would be admitted by this responder.
    pub(crate) fn serves_nobody(&self) -> bool {
        matches!(&self.wanted, Wanted::Admitted(admission) if admission.serves_nobody())
    }

    /// Admits the peer at the end of the handshake, or returns why not.
    pub(crate) fn admit(&self) -> Result<Option<Place>, String> {
        let Wanted::Admitted(admission) = &self.wanted else { return Ok(None) };
        let seen = self.seen().clone();
        let key = seen.key.ok_or_else(|| "the peer has shown no key".to_owned())?;
        admission.admit(key, matches!(seen.certified, Some(Ok(())))).map(Some).map_err(|refused| {
            let why = match refused {
                Refused::UsedUp => format!("the key {key} was allowed once, and another connection has used it"),
                Refused::Full(count) => format!("the key {key} has {count} connections here already, and may have no more at a time"),
            };
            self.refuse(key, why)
        })
    }

    fn refuse(&self, key: Fingerprint, why: String) -> String {
        let told = match &self.wanted {
            Wanted::Peer(..) => format!("the key {key} is not trusted here"),
            Wanted::Admitted(_) => why.clone(),
        };
        self.seen().refusal = Some(Refusal { detail: why.clone(), told });
        why
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Verifies the signature, then whether the key is accepted.
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
                self.refuse(key, why);
                Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
            }
        }
    }

    /// Why this key is refused.
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

/// TLS 1.2 is not supported.
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
    /// Any certificate is acceptable: only its key counts.
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
