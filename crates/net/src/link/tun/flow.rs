//! Which flow a packet belongs to: a hash of its addresses, its protocol and its ports.
//!
//! Called by the relay for every packet that enters a path.
//!
//! Source: RFC 791 3.1, RFC 8200 3 and 4 (where these are); RFC 8290 5.1.1 (the 5-tuple). A fragment that is not the first, and a
//! protocol without ports, is hashed by addresses and protocol only.
//!
//! Limit: all that is encrypted or tunnelled between two addresses is one flow.
//!
//! Invariant: any bytes have a flow.

/// The maximum number of IPv6 extension headers that are skipped to find the ports.
const EXTENSIONS_MAX: usize = 8;

/// The flow of `packet`; 0 if it is not an IP packet.
pub(super) fn of(packet: &[u8]) -> u64 {
    let fields = match packet.first().map(|byte| byte >> 4) {
        Some(4) => ipv4(packet),
        Some(6) => ipv6(packet),
        _ => None,
    };
    fields.map_or(0, |fields| hash(&fields))
}

/// The 5-tuple.
struct Fields<'a> {
    addresses: &'a [u8],
    protocol: u8,
    ports: &'a [u8],
}

fn ipv4(packet: &[u8]) -> Option<Fields<'_>> {
    let header_bytes = usize::from(packet.first()? & 0xf) * 4;
    let fragment = u16::from_be_bytes([*packet.get(6)?, *packet.get(7)?]) & 0x1fff;
    let protocol = *packet.get(9)?;
    let ports = if fragment == 0 { ports(protocol, packet.get(header_bytes..)) } else { &[] };
    Some(Fields { addresses: packet.get(12..20)?, protocol, ports })
}

fn ipv6(packet: &[u8]) -> Option<Fields<'_>> {
    let addresses = packet.get(8..40)?;
    let (mut protocol, mut rest) = (*packet.get(6)?, packet.get(40..)?);
    for _ in 0..EXTENSIONS_MAX {
        let bytes = match protocol {
            // Hop-by-hop options, routing, destination options.
            0 | 43 | 60 => (usize::from(*rest.get(1).unwrap_or(&0)) + 1) * 8,
            // A fragment, the first of which has the ports.
            44 if rest.get(2..4).is_some_and(|offset| u16::from_be_bytes([offset[0], offset[1]]) >> 3 == 0) => 8,
            _ => break,
        };
        let (Some(next), Some(behind)) = (rest.first(), rest.get(bytes..)) else { break };
        (protocol, rest) = (*next, behind);
    }
    Some(Fields { addresses, protocol, ports: ports(protocol, Some(rest)) })
}

/// The two ports, of TCP, UDP, DCCP, SCTP and UDP-Lite.
fn ports(protocol: u8, payload: Option<&[u8]>) -> &[u8] {
    match protocol {
        6 | 17 | 33 | 132 | 136 => payload.and_then(|payload| payload.get(..4)).unwrap_or(&[]),
        _ => &[],
    }
}

/// FNV-1a of 64 bits (RFC 9923).
fn hash(fields: &Fields<'_>) -> u64 {
    let bytes = fields.addresses.iter().chain([&fields.protocol]).chain(fields.ports);
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A packet of IPv4 with options, from 10.0.0.1 to 10.0.0.2.
    fn v4(protocol: u8, fragment: u16, ports: [u8; 4], service: u8) -> Vec<u8> {
        let [high, low] = fragment.to_be_bytes();
        let mut packet = vec![0x46, service, 0, 32, 7, 7, high, low, 64, protocol, 1, 2, 10, 0, 0, 1, 10, 0, 0, 2, 0, 0, 0, 0];
        packet.extend(ports);
        packet.extend([9; 8]);
        packet
    }

    /// The same over IPv6, behind these extension headers.
    fn v6(extensions: &[u8], first: u8, ports: [u8; 4]) -> Vec<u8> {
        let mut packet = vec![0x60, 0, 0, 0, 0, 8, first, 64];
        packet.extend(0..32);
        packet.extend(extensions);
        packet.extend(ports);
        packet
    }

    #[test]
    fn ports_and_protocols_tell_flows_apart_and_nothing_else_does() {
        let (here, there) = ([1, 2, 3, 4], [1, 2, 3, 5]);
        assert_eq!(of(&v4(6, 0, here, 0)), of(&v4(6, 0, here, 3)));
        assert_ne!(of(&v4(6, 0, here, 0)), of(&v4(6, 0, there, 0)));
        assert_ne!(of(&v4(6, 0, here, 0)), of(&v4(17, 0, here, 0)));
        // ICMP has no ports, and a later fragment does not have them.
        assert_eq!(of(&v4(1, 0, here, 0)), of(&v4(1, 0, there, 0)));
        assert_eq!(of(&v4(17, 1, here, 0)), of(&v4(17, 2, there, 0)));
        assert_eq!(of(&v4(17, 0x2000, here, 0)), of(&v4(17, 0x4000, here, 0)));
    }

    #[test]
    fn the_ports_are_found_behind_extension_headers() {
        let (here, there) = ([1, 2, 3, 4], [1, 2, 3, 5]);
        let plain = of(&v6(&[], 17, here));
        assert_ne!(plain, of(&v6(&[], 17, there)));
        let options = [17, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(plain, of(&v6(&options, 60, here)));
        let two = [43, 0, 0, 0, 0, 0, 0, 0, 17, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(plain, of(&v6(&two, 0, here)));
        // The first fragment has the ports, a later one has not.
        let fragment = |offset| [17, 0, 0, offset, 0, 0, 0, 1];
        assert_eq!(plain, of(&v6(&fragment(1), 44, here)));
        assert_eq!(of(&v6(&fragment(8), 44, here)), of(&v6(&fragment(16), 44, there)));
    }

    proptest! {
        #[test]
        fn any_bytes_have_a_flow(packet in proptest::collection::vec(any::<u8>(), 0..100), version in 0u8..8) {
            let _ = of(&packet);
            let mut packet = packet;
            if let Some(byte) = packet.first_mut() {
                *byte = version << 4 | *byte & 0xf;
            }
            let _ = of(&packet);
        }
    }
}
