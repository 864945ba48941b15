//! TLS 1.3 as the protection of an endpoint.
//!
//! The library passes it to the endpoint; it makes a session for each connection.
//!
//! Invariant: TLS 1.3 only, mutual authentication, no resumption and no 0-RTT, so that no two connections share a secret.

use crate::handshake::{Accept, Handshake};
use crate::key_log::KeyLog;
use crate::peer_check::{PeerCheck, Wanted};
use crate::provider::{self, provider};
use crate::tls_session::TlsSession;
use crate::{Admission, Authorities, Fingerprint, Identity, IdentityError, Trust};
use core::fmt;
use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use rustls::quic::{ClientConnection, Connection, ServerConnection, Version};
use rustls::server::NoServerSessionStorage;
use rustls::sign::SingleCertAndKey;
use rustls::version::TLS13;
use rustls::{AlertDescription, ClientConfig, Error, ServerConfig};
use segstream_proto::session::{HandshakeError, Protection, Session};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// The name of the protocol (ALPN, RFC 7301).
const ALPN: &[u8] = b"segstream/2";

/// TLS 1.3: the protection of an endpoint.
pub struct Tls {
    certificate: Arc<SingleCertAndKey>,
    fingerprint: Fingerprint,
    admission: Admission,
    authorities: Option<Authorities>,
    key_log: Arc<dyn rustls::KeyLog>,
    key: provider::MacKey,
    lasting_key: provider::MacKey,
}

impl Tls {
    /// The number of this protection in requests.
    pub const MODE: u8 = 1;

    /// The protection of an endpoint that authenticates itself by `identity`, serves the peers of `admission`, and trusts `authorities` for
    /// peers that are trusted by name.
    ///
    /// # Errors
    /// [`IdentityError::Entropy`].
    pub fn new(identity: Identity, admission: Admission, authorities: Option<Authorities>) -> Result<Self, IdentityError> {
        let key = provider::mac_key(&provider::entropy()?);
        let lasting_key = provider::mac_key(identity.lasting_secret());
        let fingerprint = identity.fingerprint();
        let certificate = Arc::new(SingleCertAndKey::from(identity.into_certified_key()));
        Ok(Self { certificate, fingerprint, admission, authorities, key_log: KeyLog::of(None), key, lasting_key })
    }

    /// Writes the secrets of every connection to `log`.
    #[must_use]
    pub fn with_key_log(mut self, log: &KeyLog) -> Self {
        self.key_log = KeyLog::of(Some(log));
        self
    }

    /// Serves so many connections of one key at a time at most, over all endpoints that share the admission.
    #[must_use]
    pub fn with_connections_per_peer(self, most: usize) -> Self {
        self.admission.set_connections_per_peer(most);
        self
    }

    /// The fingerprint of the endpoint's key.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// The session of an initiator.
    pub(crate) fn initiator(&self, trust: &Trust, parameters: &[u8]) -> Result<TlsSession, HandshakeError> {
        let name = self.name_of(trust).map_err(|detail| unusable(&detail))?;
        let check = Arc::new(PeerCheck::new(Wanted::Peer(trust.clone(), self.authorities.clone())));
        let connection = self
            .client_config(Arc::clone(&check))
            .and_then(|config| ClientConnection::new(Arc::new(config), Version::V1, name, parameters.to_vec()))
            .map_err(|error| unusable(&format!("the handshake could not be started: {error}")))?;
        Ok(TlsSession::new(Handshake::initiate(Connection::Client(connection), check)))
    }

    /// The session of a responder.
    pub(crate) fn responder(&self) -> TlsSession {
        let check = Arc::new(PeerCheck::new(Wanted::Admitted(self.admission.clone())));
        let (certificate, server_check, key_log) = (Arc::clone(&self.certificate), Arc::clone(&check), Arc::clone(&self.key_log));
        let accept: Accept = Box::new(move |parameters| {
            let config = server_config(Arc::clone(&certificate), Arc::clone(&server_check), Arc::clone(&key_log))?;
            ServerConnection::new(Arc::new(config), Version::V1, parameters).map(Connection::Server)
        });
        TlsSession::new(Handshake::respond(accept, check))
    }

    /// The name that must be certified. If the trust is not by name, rustls gets one that is ignored.
    fn name_of(&self, trust: &Trust) -> Result<ServerName<'static>, String> {
        match trust {
            Trust::Certified(name) if self.authorities.is_none() => {
                Err(format!("no authority is configured that could certify {name}; load root certificates"))
            }
            Trust::Certified(name) => ServerName::try_from(name.clone())
                .map_err(|_| format!("\"{name}\" cannot be certified: it must be a host name or an IP address")),
            Trust::Anyone | Trust::Key(_) | Trust::Nobody => Ok(ServerName::from(IpAddr::from(Ipv4Addr::UNSPECIFIED))),
        }
    }

    fn client_config(&self, check: Arc<PeerCheck>) -> Result<ClientConfig, Error> {
        let mut config = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(check)
            .with_client_cert_resolver(Arc::<SingleCertAndKey>::clone(&self.certificate));
        config.alpn_protocols = vec![ALPN.to_vec()];
        config.resumption = Resumption::disabled();
        config.enable_early_data = false;
        // Why: a responder has one identity, so the name would only tell observers which peer we connect to.
        config.enable_sni = false;
        config.key_log = Arc::clone(&self.key_log);
        Ok(config)
    }
}

/// The error of an invalid local configuration.
fn unusable(detail: &str) -> HandshakeError {
    Handshake::error(AlertDescription::InternalError, detail)
}

fn server_config(
    certificate: Arc<SingleCertAndKey>,
    check: Arc<PeerCheck>,
    key_log: Arc<dyn rustls::KeyLog>,
) -> Result<ServerConfig, Error> {
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .with_client_cert_verifier(check)
        .with_cert_resolver(certificate);
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    config.max_early_data_size = 0;
    config.key_log = key_log;
    Ok(config)
}

impl Protection for Tls {
    fn mode(&self) -> u8 {
        Self::MODE
    }

    fn initiate(&mut self, _remote: SocketAddr, trust: &Trust, parameters: &[u8]) -> Result<Box<dyn Session>, HandshakeError> {
        Ok(Box::new(self.initiator(trust, parameters)?))
    }

    fn respond(&mut self, _remote: SocketAddr) -> Box<dyn Session> {
        Box::new(self.responder())
    }

    fn mac(&self, message: &[u8]) -> [u8; 16] {
        provider::mac(&self.key, message)
    }

    fn lasting_mac(&self, message: &[u8]) -> Option<[u8; 16]> {
        Some(provider::mac(&self.lasting_key, message))
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("fingerprint", &self.fingerprint).field("admission", &self.admission).finish_non_exhaustive()
    }
}
