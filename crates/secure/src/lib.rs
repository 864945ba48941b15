//! What Segstream seals with: TLS 1.3 sessions, the identities that prove themselves in them, and whom they admit.
//!
//! - [`Tls`]: the protection of an endpoint; makes the sessions of its connections.
//! - [`Identity`]: a key pair and its certificates. Kept in a file, fresh for one run, or derived from a [`OneTimeCode`].
//! - [`Admission`]: whom a responder serves. [`Trust`]: whom an initiator takes for its peer.
//! - [`Authorities`]: root certificates, for those who trust names and not keys.
//! - [`KnownPeers`]: the file of keys that have been met before.
//!
//! Used by the library and the command. It implements the protocol's contract (`segstream_proto::session`); of ours it
//! calls base's reader and wire's levels and headers besides.
//!
//! Invariant: trust is in keys. Certificates carry them; only where an authority is trusted does one say more.
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
pub use key_phases::SEAL_BYTES;
pub use known_peers::{KnownPeers, KnownPeersError};
pub use one_time_code::{OneTimeCode, OneTimeCodeError};
pub use segstream_proto::session::{Fingerprint, Trust};
pub use tls::Tls;
