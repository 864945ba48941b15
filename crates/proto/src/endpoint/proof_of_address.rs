//! Tokens that prove an address: cookies in answer to a first request, and address tokens for a later connection.
//!
//! Called by the endpoint. A token is its kind, when it was made, and a message authentication code over that and the
//! address; whoever shows it has received it there. Nothing is kept for it (RFC 9000 8.1.2, 8.1.3).
//!
//! Invariant: a token is worth something only to the address it was made for, a cookie only for the request it answers,
//! and neither for long. When it was made is part of what is coded, so the codes of one span say nothing of another's.

use crate::session::{Protection, constant_time_eq};
use core::net::{IpAddr, SocketAddr};
use segstream_base::{Duration, Instant};

/// A cookie is taken in the span it was made in and in the next one.
const COOKIE_SPAN: Duration = Duration::from_secs(8);
/// An address token is taken for a day.
const TOKEN_SPAN: Duration = Duration::from_secs(3600);
const TOKEN_SPANS: u32 = 24;

const COOKIE: u8 = 1;
const ADDRESS_TOKEN: u8 = 2;

/// What an authenticated message is about, so that no code of one kind passes for one of another.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    Token = 1,
    Identifier = 2,
    Challenges = 3,
    Reset = 4,
    Share = 5,
    PeerReset = 6,
}

/// A code about something that is no address.
pub(super) fn code(protection: &dyn Protection, purpose: Purpose, about: &[u8]) -> [u8; 16] {
    protection.authenticate(&[&[purpose as u8][..], about].concat())
}

/// A message for a code about an address.
pub(super) fn message(purpose: Purpose, about: &[u8], address: SocketAddr, with_port: bool) -> Vec<u8> {
    let mut message = vec![purpose as u8];
    message.extend_from_slice(about);
    match address.ip() {
        IpAddr::V4(ip) => message.extend_from_slice(&ip.octets()),
        IpAddr::V6(ip) => message.extend_from_slice(&ip.octets()),
    }
    if with_port {
        message.extend_from_slice(&address.port().to_be_bytes());
    }
    message
}

fn span_of(now: Instant, span: Duration) -> u32 {
    u32::try_from(now.as_nanos() / span.as_nanos()).unwrap_or(u32::MAX)
}

fn token(protection: &dyn Protection, kind: u8, made: u32, from: SocketAddr, request: u64) -> Vec<u8> {
    let mut about = vec![kind];
    about.extend_from_slice(&made.to_be_bytes());
    if kind == COOKIE {
        about.extend_from_slice(&request.to_be_bytes());
    }
    let code = protection.authenticate(&message(Purpose::Token, &about, from, kind == COOKIE));
    [&[kind][..], &made.to_be_bytes(), &code].concat()
}

/// What `from` must show with its request `request`.
pub(super) fn cookie(protection: &dyn Protection, now: Instant, from: SocketAddr, request: u64) -> Vec<u8> {
    token(protection, COOKIE, span_of(now, COOKIE_SPAN), from, request)
}

/// What the host of `from` may show in a later request.
pub(super) fn address_token(protection: &dyn Protection, now: Instant, from: SocketAddr) -> Vec<u8> {
    token(protection, ADDRESS_TOKEN, span_of(now, TOKEN_SPAN), from, 0)
}

/// Whether `shown` proves that `from` receives what is sent to it.
pub(super) fn proves(protection: &dyn Protection, now: Instant, from: SocketAddr, request: u64, shown: &[u8]) -> bool {
    let Some((&kind, rest)) = shown.split_first() else { return false };
    let Some(made) = rest.first_chunk::<4>().map(|made| u32::from_be_bytes(*made)) else { return false };
    let (present, lasts) = match kind {
        COOKIE => (span_of(now, COOKIE_SPAN), 1),
        ADDRESS_TOKEN => (span_of(now, TOKEN_SPAN), TOKEN_SPANS),
        _ => return false,
    };
    if present.checked_sub(made).is_none_or(|age| age > lasts) {
        return false;
    }
    constant_time_eq(&token(protection, kind, made, from, request), shown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Plain;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn a_cookie_is_worth_something_to_its_address_and_request_alone_and_not_for_long() {
        let keys = Plain::new([3; 16]);
        let from: SocketAddr = "192.0.2.1:9".parse().unwrap();
        let cookie = cookie(&keys, at(20), from, 77);
        assert!(proves(&keys, at(20), from, 77, &cookie) && proves(&keys, at(28), from, 77, &cookie));
        assert!(!proves(&keys, at(40), from, 77, &cookie), "too old");
        assert!(!proves(&keys, at(3), from, 77, &cookie), "of the future");
        assert!(!proves(&keys, at(20), from, 78, &cookie), "another request");
        for other in ["192.0.2.2:9", "192.0.2.1:10", "[2001:db8::1]:9"] {
            assert!(!proves(&keys, at(20), other.parse().unwrap(), 77, &cookie), "{other}");
        }
        assert!(!proves(&Plain::new([4; 16]), at(20), from, 77, &cookie), "another endpoint's");
        for at_byte in 0..cookie.len() {
            let mut changed = cookie.clone();
            changed[at_byte] ^= 1;
            assert!(!proves(&keys, at(20), from, 77, &changed), "byte {at_byte}");
            assert!(!proves(&keys, at(20), from, 77, &cookie[..at_byte]), "cut at {at_byte}");
        }
    }

    #[test]
    fn an_address_token_is_worth_something_to_its_host_for_a_day() {
        let keys = Plain::new([3; 16]);
        let token = address_token(&keys, at(20), "192.0.2.1:9".parse().unwrap());
        let another_port = "192.0.2.1:4000".parse().unwrap();
        assert!(proves(&keys, at(20), another_port, 5, &token) && proves(&keys, at(86_000), another_port, 6, &token));
        assert!(!proves(&keys, at(91_000), another_port, 5, &token), "too old");
        assert!(!proves(&keys, at(20), "192.0.2.2:9".parse().unwrap(), 5, &token), "another host");
    }
}
