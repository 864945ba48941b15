//! The networks that an address is in, for limits that unknown peers share.
//!
//! Called for each set-up that a peer begins, and by the counts of set-ups.
//!
//! Invariant: whoever holds one network of a length gets the share of one, however many addresses of it are used.
//!
//! Source: RFC 6177 (a site gets a prefix of 48 bits, or somewhat longer), RFC 4291 2.5.4 (a link has one of 64); providers get prefixes
//! of 32 bits (RIPE-738 5.1). The IPv4 prefixes are the longest that is routed, and a provider's.

use core::net::{IpAddr, SocketAddr};

/// How many lengths of networks there are.
pub(super) const NETWORKS: usize = 3;
/// The lengths in bytes: of a host, a site, a provider.
const IPV6_BYTES: [usize; NETWORKS] = [8, 6, 4];
const IPV4_BYTES: [usize; NETWORKS] = [4, 3, 2];

/// A network: how narrow it is, its family and its prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NetworkPrefix {
    length: u8,
    family: u8,
    prefix: [u8; 8],
}

impl NetworkPrefix {
    /// Its bytes, for a hash.
    pub(super) fn bytes(self) -> [u8; 10] {
        core::array::from_fn(|at| match at {
            0 => self.length,
            1 => self.family,
            _ => self.prefix[at - 2],
        })
    }
}

/// The host of an address, its site and its provider. A host is an IPv4 address, or an IPv6 network of 64 bits, of which a host has all
/// addresses.
pub(super) fn networks_of(address: SocketAddr) -> [NetworkPrefix; NETWORKS] {
    let prefix = |family, lengths: [usize; NETWORKS], octets: &[u8]| {
        lengths.map(|length| NetworkPrefix {
            length: length as u8,
            family,
            prefix: core::array::from_fn(|at| if at < length { octets.get(at).copied().unwrap_or(0) } else { 0 }),
        })
    };
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => prefix(4, IPV4_BYTES, &ip.octets()),
        IpAddr::V6(ip) => prefix(6, IPV6_BYTES, &ip.octets()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(one: &str, other: &str) -> [bool; NETWORKS] {
        let networks = |address: &str| networks_of(address.parse().unwrap());
        let (one, other) = (networks(one), networks(other));
        core::array::from_fn(|at| one[at] == other[at])
    }

    #[test]
    fn addresses_share_the_networks_that_they_are_both_in() {
        assert_eq!(shared("[2001:db8:1:2::1]:1", "[2001:db8:1:2:ffff::9]:2"), [true, true, true]);
        assert_eq!(shared("[2001:db8:1:2::1]:1", "[2001:db8:1:3::1]:1"), [false, true, true]);
        assert_eq!(shared("[2001:db8:1:2::1]:1", "[2001:db8:2:2::1]:1"), [false, false, true]);
        assert_eq!(shared("[2001:db8:1:2::1]:1", "[2001:db9:1:2::1]:1"), [false, false, false]);
        assert_eq!(shared("192.0.2.1:1", "192.0.2.1:2"), [true, true, true]);
        assert_eq!(shared("192.0.2.1:1", "192.0.2.2:1"), [false, true, true]);
        assert_eq!(shared("192.0.2.1:1", "192.0.3.1:1"), [false, false, true]);
        assert_eq!(shared("192.0.2.1:1", "192.1.2.1:1"), [false, false, false]);
        assert_eq!(shared("192.0.2.1:1", "[::ffff:192.0.2.1]:1"), [true, true, true], "one host, whatever the socket is");
        assert_eq!(shared("192.0.2.1:1", "[c000:201::]:1"), [false, false, false], "the same bytes of another family");
    }
}
