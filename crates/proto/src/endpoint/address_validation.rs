//! Address validation by tokens: cookies in answer to a first request, and address tokens for a later connection.
//!
//! Called by the endpoint. A token contains its kind, its time, and a MAC over both, the listener and the peer's address; a peer that
//! returns it has received it at that address. No state is kept for it (RFC 9000 8.1.2, 8.1.3).
//!
//! Invariant: a token is valid only at the listener that made it, also after a restart, and only for the address that it was made for, a
//! cookie only for the request that it answers, and both for a limited time, which the MAC covers.

use crate::session::{Protection, constant_time_eq};
use core::net::{IpAddr, SocketAddr};
use segstream_base::{Duration, Instant};

/// A cookie is valid for so long.
const COOKIE_LIFETIME: Duration = Duration::from_secs(16);
/// An address token is valid for a day.
const TOKEN_LIFETIME: Duration = Duration::from_secs(24 * 3600);
/// The measure of the round trip in an address token.
const ROUND_TRIP_STEP: Duration = Duration::from_millis(20);

const COOKIE: u8 = 1;
const ADDRESS_TOKEN: u8 = 2;

/// The kind of an authenticated message, so that a MAC of one kind is not valid for another (domain separation).
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    Token = 1,
    Identifier = 2,
    Challenges = 3,
    Reset = 4,
    Share = 5,
    PeerReset = 6,
}

/// The kinds of messages without an address.
pub(super) fn code(protection: &dyn Protection, purpose: Purpose, about: &[u8]) -> [u8; 16] {
    protection.mac(&[&[purpose as u8][..], about].concat())
}

/// A message for a MAC over an address, at a listener.
pub(super) fn message(purpose: Purpose, listener: Option<SocketAddr>, about: &[u8], address: SocketAddr, with_port: bool) -> Vec<u8> {
    let mut message = vec![purpose as u8];
    // RFC 9000 21.11: endpoints that share a key must not make codes for each other.
    message.extend_from_slice(&listener.map_or([0; 16], |listener| octets(listener.ip())));
    message.extend_from_slice(&listener.map_or(0, |listener| listener.port()).to_be_bytes());
    message.extend_from_slice(about);
    message.extend_from_slice(&octets(address.ip()));
    if with_port {
        message.extend_from_slice(&address.port().to_be_bytes());
    }
    message
}

/// An address in 16 bytes, IPv4 as RFC 4291 2.5.5.2 maps it.
pub(super) fn octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    }
    .octets()
}

/// What a token has shown of its bearer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Validated {
    /// How long the path takes, at most: for a cookie to come back, or as measured when the address token was made.
    pub(super) round_trip: Duration,
}

/// Makes the tokens of a listener and knows them again.
#[derive(Clone, Copy, Debug)]
pub(super) struct TokenIssuer<'a> {
    pub(super) protection: &'a dyn Protection,
    pub(super) listener: Option<SocketAddr>,
    /// The time of day in milliseconds, so that a token outlives a restart.
    time_ms: u64,
}

impl<'a> TokenIssuer<'a> {
    /// At `now` of a clock that began at `epoch` of the time of day.
    pub(super) fn new(protection: &'a dyn Protection, listener: Option<SocketAddr>, epoch: Duration, now: Instant) -> Self {
        let time_ms = epoch.as_nanos().saturating_add(now.as_nanos()) / 1_000_000;
        Self { protection, listener, time_ms }
    }

    /// The cookie for `from` and its request `request`.
    pub(super) fn cookie(&self, from: SocketAddr, request: u64) -> Vec<u8> {
        self.token(COOKIE, self.time_ms, &[], from, request)
    }

    /// The address token for the host of `from`, whose path takes `round_trip`.
    pub(super) fn address_token(&self, from: SocketAddr, round_trip: Duration) -> Vec<u8> {
        let steps = round_trip.as_nanos().div_ceil(ROUND_TRIP_STEP.as_nanos());
        self.token(ADDRESS_TOKEN, self.time_ms, &[u8::try_from(steps).unwrap_or(u8::MAX)], from, 0)
    }

    /// Kind, low half of the time, what else it carries, MAC.
    fn token(&self, kind: u8, made_ms: u64, carried: &[u8], from: SocketAddr, request: u64) -> Vec<u8> {
        let mut about = vec![kind];
        about.extend_from_slice(&made_ms.to_be_bytes());
        about.extend_from_slice(carried);
        if kind == COOKIE {
            about.extend_from_slice(&request.to_be_bytes());
        }
        let message = message(Purpose::Token, self.listener, &about, from, kind == COOKIE);
        let code = self.protection.lasting_mac(&message).unwrap_or_else(|| self.protection.mac(&message));
        [&[kind][..], &(made_ms as u32).to_be_bytes(), carried, &code].concat()
    }

    /// What the token `shown` says of the address `from`; nothing if it does not validate it.
    pub(super) fn verify(&self, from: SocketAddr, request: u64, shown: &[u8]) -> Option<Validated> {
        let (&kind, rest) = shown.split_first()?;
        let (made, rest) = rest.split_first_chunk::<4>()?;
        let age_ms = (self.time_ms as u32).wrapping_sub(u32::from_be_bytes(*made));
        // The MAC covers the whole time, so the low half cannot come round again.
        let made_ms = self.time_ms.checked_sub(age_ms.into())?;
        let age = Duration::from_millis(age_ms.into());
        let (carried, lifetime, round_trip) = match kind {
            COOKIE => (&[][..], COOKIE_LIFETIME, age),
            ADDRESS_TOKEN => (rest.get(..1)?, TOKEN_LIFETIME, ROUND_TRIP_STEP * u64::from(*rest.first()?)),
            _ => return None,
        };
        let is_ours = constant_time_eq(&self.token(kind, made_ms, carried, from, request), shown);
        (age <= lifetime && is_ours).then_some(Validated { round_trip })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Plain;

    fn at_listener<'a>(keys: &'a Plain, listener: &str, seconds: u64) -> TokenIssuer<'a> {
        let now = Instant::ZERO + Duration::from_secs(seconds);
        TokenIssuer::new(keys, Some(listener.parse().unwrap()), Duration::from_secs(1_700_000_000), now)
    }

    fn at(keys: &Plain, seconds: u64) -> TokenIssuer<'_> {
        at_listener(keys, "198.51.100.1:4433", seconds)
    }

    #[test]
    fn a_cookie_is_worth_something_to_its_address_and_request_alone_and_not_for_long() {
        let keys = Plain::new([3; 16]);
        let from: SocketAddr = "192.0.2.1:9".parse().unwrap();
        let cookie = at(&keys, 20).cookie(from, 77);
        assert_eq!(at(&keys, 20).verify(from, 77, &cookie), Some(Validated { round_trip: Duration::ZERO }));
        assert_eq!(at(&keys, 28).verify(from, 77, &cookie), Some(Validated { round_trip: Duration::from_secs(8) }));
        let valid = |keys: &Plain, seconds, from, request, shown: &[u8]| at(keys, seconds).verify(from, request, shown).is_some();
        assert!(!valid(&keys, 37, from, 77, &cookie), "too old");
        assert!(!valid(&keys, 19, from, 77, &cookie), "of the future");
        assert!(!valid(&keys, 20 + (1 << 32) / 1000, from, 77, &cookie), "the low half of its time has come round");
        assert!(!valid(&keys, 20, from, 78, &cookie), "another request");
        for other in ["192.0.2.2:9", "192.0.2.1:10", "[2001:db8::1]:9"] {
            assert!(!valid(&keys, 20, other.parse().unwrap(), 77, &cookie), "{other}");
        }
        assert!(!valid(&Plain::new([4; 16]), 20, from, 77, &cookie), "another endpoint's");
        for at_byte in 0..cookie.len() {
            let mut changed = cookie.clone();
            changed[at_byte] ^= 1;
            assert!(!valid(&keys, 20, from, 77, &changed), "byte {at_byte}");
            assert!(!valid(&keys, 20, from, 77, &cookie[..at_byte]), "cut at {at_byte}");
        }
    }

    #[test]
    fn an_address_token_is_worth_something_to_its_host_for_a_day_and_says_how_long_the_path_is() {
        let keys = Plain::new([3; 16]);
        let token = at(&keys, 20).address_token("192.0.2.1:9".parse().unwrap(), Duration::from_millis(601));
        let another_port = "192.0.2.1:4000".parse().unwrap();
        let expected = Some(Validated { round_trip: Duration::from_millis(620) });
        assert_eq!(at(&keys, 20).verify(another_port, 5, &token), expected);
        assert_eq!(at(&keys, 86_000).verify(another_port, 6, &token), expected);
        assert_eq!(at(&keys, 91_000).verify(another_port, 5, &token), None, "too old");
        assert_eq!(at(&keys, 20).verify("192.0.2.2:9".parse().unwrap(), 5, &token), None, "another host");
        for at_byte in 0..token.len() {
            let mut changed = token.clone();
            changed[at_byte] ^= 1;
            assert_eq!(at(&keys, 20).verify(another_port, 5, &changed), None, "byte {at_byte}");
        }
    }

    #[test]
    fn a_token_is_worth_nothing_at_another_listener_with_the_same_key() {
        let keys = Plain::new([3; 16]);
        let from: SocketAddr = "192.0.2.1:9".parse().unwrap();
        for token in [at(&keys, 20).cookie(from, 77), at(&keys, 20).address_token(from, Duration::ZERO)] {
            assert!(at(&keys, 20).verify(from, 77, &token).is_some());
            for other in ["198.51.100.1:4434", "198.51.100.2:4433", "0.0.0.0:4433", "[::]:4433"] {
                assert_eq!(at_listener(&keys, other, 20).verify(from, 77, &token), None, "{other}");
            }
            let nowhere = TokenIssuer { listener: None, ..at(&keys, 20) };
            assert_eq!(nowhere.verify(from, 77, &token), None, "an endpoint that knows no address of its own");
        }
    }
}
