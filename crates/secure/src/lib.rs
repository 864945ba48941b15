//! The encryption of Segstream: TLS 1.3 sessions, the identities that they authenticate, and admission.
//!
//! - [`Tls`]: the protection of an endpoint; makes the sessions of its connections.
//! - [`Identity`]: a key pair and its certificates. Kept in a file, fresh for one run, or derived from a [`OneTimeCode`].
//! - [`Admission`]: whom a responder serves. [`Trust`]: which peer an initiator accepts.
//! - [`Authorities`]: root certificates, for users that trust names and not keys.
//! - [`KnownPeers`]: the file of known keys.
//! - [`KeyLog`]: the secrets of connections, for tools that read captures.
//!
//! Used by the library and the command. It implements the protocol's contract (`segstream_proto::session`), and uses base's reader and
//! wire's levels and headers.
//!
//! Invariant: trust is in keys. A certificate only carries a key, unless an authority is trusted.
//!
//! Source: RFC 8446 (TLS 1.3), and RFC 9001 for how a transport uses its keys.

// Why: ring and not aws-lc-rs: both seal and open 1160 bytes under AES-128-GCM in 0.22 to 0.28 us (with VAES), and ring
// builds in less than half of the time. aws-lc-rs makes some 40 % more handshakes a second, and has a post-quantum key
// exchange, whose ClientHello would fill more than one shipment.

#![forbid(unsafe_code)]

mod admission;
mod authorities;
mod client_hello;
mod handshake;
mod header_protection;
mod identity;
mod key_log;
mod key_phases;
mod known_peers;
mod one_time_code;
mod peer_check;
mod provider;
mod tls;
mod tls_session;

#[cfg(test)]
mod tests;

pub use admission::Admission;
pub use authorities::{Authorities, AuthoritiesError};
pub use identity::{Identity, IdentityError};
pub use key_log::KeyLog;
pub use key_phases::SEAL_BYTES;
pub use known_peers::{KnownPeers, KnownPeersError};
pub use one_time_code::{OneTimeCode, OneTimeCodeError};
pub use segstream_proto::session::{Fingerprint, Trust};
pub use tls::Tls;
