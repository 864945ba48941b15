//! The TLS handshake of one connection: it exchanges bytes of two levels, and gives keys and transport parameters.
//!
//! Called by [`crate::tls_session::TlsSession`]. rustls does the handshake. This file adds the levels, the responder's parameters that
//! depend on the peer's, the admission at the end, and readable errors.
//!
//! Invariant: it is complete only when the peer has authenticated itself by an accepted key, both sides have agreed on the parameters that
//! were used, and a responder has admitted the peer. A failed handshake stays failed; bytes after the end make it fail.
//!
//! Source: RFC 9001 4.1 (the interface), 4.8 (codes of failures), 8.2 (parameters).

use crate::Fingerprint;
use crate::admission::Place;
use crate::client_hello::{CLIENT_HELLO_BYTES_MAX, Found, find_parameters};
use crate::peer_check::PeerCheck;
use rustls::quic::{Connection, KeyChange, Keys, Secrets};
use rustls::{AlertDescription, Error};
use segstream_proto::session::HandshakeError;
use segstream_wire::Level;
use std::collections::VecDeque;
use std::sync::Arc;

/// The maximum size of a handshake message in bytes: room for a long chain of certificates.
const MESSAGE_BYTES_MAX: usize = 64 * 1024;
/// Type and length in front of every handshake message (RFC 8446 4).
const MESSAGE_HEAD_BYTES: usize = 4;

/// Makes a responder's connection with its transport parameters.
pub(crate) type Accept = Box<dyn Fn(Vec<u8>) -> Result<Connection, Error> + Send>;

/// New keys that the session has not taken yet.
#[derive(Default)]
pub(crate) struct NewKeys {
    /// Of the handshake level.
    pub(crate) handshake: Option<Keys>,
    /// Of the data levels: key phase 0, and the secrets of key phase 1.
    // Why boxed: they are here for a short time, but their room would last as long as the connection.
    pub(crate) data: Option<Box<(Keys, Secrets)>>,
}

/// The handshake of one connection.
pub(crate) struct Handshake {
    stage: Stage,
    /// `None` once the handshake is complete.
    check: Option<Arc<PeerCheck>>,
    /// The level of the next bytes to send, and of the next bytes to read.
    level: Level,
    /// Bytes of a message that is not complete yet, or not processed yet.
    arrived: Vec<u8>,
    outgoing: VecDeque<(Level, Vec<u8>)>,
    /// The peer's transport parameters: at a responder as found in the ClientHello, otherwise as agreed.
    parameters: Option<Vec<u8>>,
    new_keys: NewKeys,
    /// Of an admitted peer.
    place: Option<Place>,
}

enum Stage {
    /// A responder that waits for the peer's parameters, or for its own.
    Waiting(Accept),
    Running(Box<Connection>),
    /// Complete. The key of the peer; the state of rustls is freed.
    Complete(Option<Fingerprint>),
    Failed(HandshakeError),
}

impl Handshake {
    /// An initiator's.
    pub(crate) fn initiate(connection: Connection, check: Arc<PeerCheck>) -> Self {
        let mut handshake = Self::new(Stage::Running(Box::new(connection)), check);
        handshake.collect();
        handshake
    }

    /// A responder's.
    pub(crate) fn respond(accept: Accept, check: Arc<PeerCheck>) -> Self {
        Self::new(Stage::Waiting(accept), check)
    }

    fn new(stage: Stage, check: Arc<PeerCheck>) -> Self {
        Self {
            stage,
            check: Some(check),
            level: Level::Initial,
            arrived: Vec::new(),
            outgoing: VecDeque::new(),
            parameters: None,
            new_keys: NewKeys::default(),
            place: None,
        }
    }

    /// Processes the next bytes of the peer.
    pub(crate) fn read(&mut self, level: Level, bytes: &[u8]) -> Result<(), HandshakeError> {
        if let Stage::Failed(error) = &self.stage {
            return Err(error.clone());
        }
        if self.is_complete() || level != self.level {
            // RFC 9001 4.1.3: no bytes of an earlier level, and none after the end.
            return Err(self.fail(AlertDescription::UnexpectedMessage, &format!("bytes came at level {level:?}, which is not its turn")));
        }
        self.arrived.extend_from_slice(bytes);
        if matches!(self.stage, Stage::Waiting(_)) { self.read_proposal() } else { self.advance() }
    }

    /// Sets a responder's parameters, and processes the ClientHello that waits for them.
    pub(crate) fn answer(&mut self, parameters: &[u8]) -> Result<(), HandshakeError> {
        // Why before the answer: it contains our certificate, and TLS 1.3 has it sent before the peer must show its own.
        if matches!(self.stage, Stage::Waiting(_)) && self.check.as_ref().is_some_and(|check| check.serves_nobody()) {
            return Err(self.fail(AlertDescription::AccessDenied, "nobody is served here at present"));
        }
        let made = match &self.stage {
            Stage::Waiting(accept) => accept(parameters.to_vec()),
            Stage::Failed(error) => return Err(error.clone()),
            Stage::Running(_) | Stage::Complete(_) => return Ok(()),
        };
        match made {
            Ok(connection) => self.stage = Stage::Running(Box::new(connection)),
            Err(error) => return Err(self.fail(AlertDescription::InternalError, &error.to_string())),
        }
        self.advance()
    }

    /// The next bytes to send.
    pub(crate) fn write(&mut self) -> Option<(Level, Vec<u8>)> {
        let next = self.outgoing.pop_front();
        if next.is_none() {
            // Why freed: the connection may last long, and there is seldom more to send.
            self.outgoing = VecDeque::new();
        }
        next
    }

    /// Takes the new keys since the last call.
    pub(crate) fn take_keys(&mut self) -> NewKeys {
        core::mem::take(&mut self.new_keys)
    }

    /// The peer's transport parameters, once they are known.
    pub(crate) fn peer_parameters(&self) -> Option<&[u8]> {
        match &self.stage {
            Stage::Running(connection) if self.parameters.is_none() => connection.quic_transport_parameters(),
            _ => self.parameters.as_deref(),
        }
    }

    /// Whether the peer is authenticated and admitted, and both sides have agreed on the parameters.
    pub(crate) fn is_complete(&self) -> bool {
        matches!(self.stage, Stage::Complete(_))
    }

    /// The key of the peer, once the handshake is complete.
    pub(crate) const fn peer(&self) -> Option<Fingerprint> {
        match self.stage {
            Stage::Complete(peer) => peer,
            _ => None,
        }
    }

    fn read_proposal(&mut self) -> Result<(), HandshakeError> {
        match find_parameters(&self.arrived) {
            Ok(Found::Parameters(parameters)) => self.parameters = Some(parameters.to_vec()),
            Ok(Found::Nothing) => return Err(self.fail(AlertDescription::MissingExtension, "the peer proposes no parameters")),
            Ok(Found::More) => {}
            Err(error) => return Err(self.fail(AlertDescription::DecodeError, &error.to_string())),
        }
        if self.arrived.len() > MESSAGE_HEAD_BYTES + CLIENT_HELLO_BYTES_MAX {
            return Err(self.fail(AlertDescription::UnexpectedMessage, "the peer says more before it has heard our answer"));
        }
        Ok(())
    }

    /// Passes complete messages to rustls one by one, because keys may change after each (RFC 9001 4.1.3).
    fn advance(&mut self) -> Result<(), HandshakeError> {
        while let Some(message) = self.next_message()? {
            let level = self.level;
            let Stage::Running(connection) = &mut self.stage else { return Ok(()) };
            if let Err(error) = connection.read_hs(&message) {
                let alert = connection.alert().unwrap_or(AlertDescription::InternalError);
                return Err(self.fail(alert, &sentence(&error)));
            }
            self.collect();
            self.complete()?;
            if !self.arrived.is_empty() && (self.is_complete() || self.level != level) {
                return Err(self.fail(AlertDescription::UnexpectedMessage, "bytes are left at the end of a level"));
            }
        }
        Ok(())
    }

    fn next_message(&mut self) -> Result<Option<Vec<u8>>, HandshakeError> {
        let Some(&[_, high, middle, low]) = self.arrived.first_chunk::<MESSAGE_HEAD_BYTES>() else { return Ok(None) };
        let length = MESSAGE_HEAD_BYTES + u32::from_be_bytes([0, high, middle, low]) as usize;
        if length > MESSAGE_BYTES_MAX {
            return Err(self.fail(AlertDescription::DecodeError, &format!("a message of {length} bytes is too long")));
        }
        if self.arrived.len() < length {
            return Ok(None);
        }
        let rest = self.arrived.split_off(length);
        Ok(Some(core::mem::replace(&mut self.arrived, rest)))
    }

    /// Collects the bytes that rustls wants to send with their levels, and the new keys between them.
    fn collect(&mut self) {
        let Stage::Running(connection) = &mut self.stage else { return };
        loop {
            let mut bytes = Vec::new();
            let change = connection.write_hs(&mut bytes);
            if !bytes.is_empty() {
                self.outgoing.push_back((self.level, bytes));
            }
            match change {
                Some(KeyChange::Handshake { keys }) => {
                    self.level = Level::Handshake;
                    self.new_keys.handshake = Some(keys);
                }
                Some(KeyChange::OneRtt { keys, next }) => self.new_keys.data = Some(Box::new((keys, next))),
                None => break,
            }
        }
    }

    /// Completes the handshake once rustls has: the parameters used must be those agreed, and the peer is admitted.
    fn complete(&mut self) -> Result<(), HandshakeError> {
        let Stage::Running(connection) = &self.stage else { return Ok(()) };
        if connection.is_handshaking() {
            return Ok(());
        }
        let agreed = connection.quic_transport_parameters().map(<[u8]>::to_vec);
        if agreed.is_none() || self.parameters.is_some() && self.parameters != agreed {
            return Err(self.fail(AlertDescription::IllegalParameter, "the parameters are not those that were proposed"));
        }
        match self.check.as_ref().map(|check| check.admit()) {
            Some(Ok(place)) => self.place = place,
            Some(Err(why)) => return Err(self.fail(AlertDescription::AccessDenied, &why)),
            None => {}
        }
        self.parameters = agreed;
        self.stage = Stage::Complete(self.check.take().and_then(|check| check.key()));
        Ok(())
    }

    /// Makes the handshake fail permanently.
    fn fail(&mut self, alert: AlertDescription, detail: &str) -> HandshakeError {
        let check = self.check.as_ref();
        let refusal = check.and_then(|check| check.refusal());
        let untrusted = check.filter(|_| refusal.is_some()).and_then(|check| check.key());
        let mut error = Self::error(alert, refusal.as_ref().map_or(detail, |refusal| &refusal.detail));
        if let Some(refusal) = refusal {
            error.told = refusal.told.into();
        }
        error.untrusted = untrusted;
        self.outgoing.clear();
        self.arrived = Vec::new();
        self.stage = Stage::Failed(error.clone());
        error
    }

    /// The error of an alert.
    pub(crate) fn error(alert: AlertDescription, detail: &str) -> HandshakeError {
        // RFC 9001 4.8: the code of a TLS alert is 0x0100 plus its number.
        HandshakeError { code: 0x100 + u64::from(u8::from(alert)), detail: detail.to_owned(), told: detail.into(), untrusted: None }
    }
}

/// A readable message: what has failed and what the user can do.
fn sentence(error: &Error) -> String {
    match error {
        Error::NoApplicationProtocol => "the peer runs another protocol or another version of this one; run the same version at both \
                                         ends"
            .to_owned(),
        Error::NoCertificatesPresented => "the peer has presented no key; it needs an identity too".to_owned(),
        Error::InvalidCertificate(cause) => format!("the peer's certificate or its proof is not valid: {cause}"),
        Error::PeerIncompatible(cause) => {
            format!("the TLS of the peer and of this end have no parameters in common ({cause:?}); run the same version at both ends")
        }
        other => format!("{other}: the bytes were changed on the path, or the peer's program is faulty"),
    }
}

#[cfg(test)]
impl Handshake {
    /// As if the first message had been misread.
    pub(crate) fn pretend_proposed(&mut self, parameters: &[u8]) {
        self.parameters = Some(parameters.to_vec());
    }
}
