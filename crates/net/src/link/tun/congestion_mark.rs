//! The ECN field in IP headers: reading it, and setting it to CE.
//!
//! Called by the relay for every packet that enters a path.
//!
//! Source: RFC 3168 5 (the two bits), RFC 791 3.1 and RFC 8200 3 (where they are), RFC 1624 3 (incremental update of the
//! checksum).
//!
//! Invariant: a mark changes the two bits and the checksum of an IPv4 header, and a checksum that was right stays right.

use segstream_base::endpoint::Ecn;

/// Congestion experienced (CE).
const CE: u8 = Ecn::CongestionExperienced.bits();

/// The ECN codepoint of `packet`. `None` for Not-ECT and for what is not an IP packet.
pub(super) fn codepoint(packet: &[u8]) -> Option<Ecn> {
    Ecn::from_bits(ecn(packet)?)
}

/// Sets CE in `packet`; does nothing if it is not an IP packet.
pub(super) fn mark(packet: &mut [u8]) {
    match version(packet) {
        Some(4) => mark_ipv4(packet),
        Some(6) => {
            if let Some(byte) = packet.get_mut(1) {
                *byte |= CE << 4;
            }
        }
        _ => {}
    }
}

fn mark_ipv4(packet: &mut [u8]) {
    let Some([version, service, _, _, _, _, _, _, _, _, high, low]) = packet.first_chunk_mut::<12>() else { return };
    let before = u16::from_be_bytes([*version, *service]);
    *service |= CE;
    let after = u16::from_be_bytes([*version, *service]);
    let checksum = changed(u16::from_be_bytes([*high, *low]), before, after);
    [*high, *low] = checksum.to_be_bytes();
}

/// The checksum of a header in which the word `before` has become `after` (RFC 1624 equation 3).
fn changed(checksum: u16, before: u16, after: u16) -> u16 {
    let sum = u32::from(!checksum) + u32::from(!before) + u32::from(after);
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

/// The two bits of `packet`.
fn ecn(packet: &[u8]) -> Option<u8> {
    let service = *packet.get(1)?;
    match version(packet)? {
        4 => Some(service & CE),
        6 => Some(service >> 4 & CE),
        _ => None,
    }
}

fn version(packet: &[u8]) -> Option<u8> {
    packet.first().map(|byte| byte >> 4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A header of 20 bytes with its checksum in place.
    fn ipv4(mut header: [u8; 20], service: u8) -> [u8; 20] {
        (header[0], header[1], header[10], header[11]) = (0x45, service, 0, 0);
        let checksum = !sum(&header);
        [header[10], header[11]] = checksum.to_be_bytes();
        header
    }

    /// The sum in ones' complement of all 16-bit words: all ones for a header with the right checksum (RFC 1071).
    fn sum(header: &[u8]) -> u16 {
        let mut sum: u32 = header.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    proptest! {
        #[test]
        fn a_marked_ipv4_header_keeps_a_right_checksum(header: [u8; 20], service: u8) {
            let before = ipv4(header, service);
            let mut marked = before;
            mark(&mut marked);
            prop_assert_eq!(marked[1], service | CE);
            prop_assert_eq!(sum(&marked), 0xffff);
            prop_assert_eq!(&marked[2..10], &before[2..10]);
            prop_assert_eq!(&marked[12..], &before[12..]);
        }

        #[test]
        fn a_marked_ipv6_header_differs_in_the_two_bits_alone(mut header: [u8; 40]) {
            header[0] = 0x60 | header[0] & 0xf;
            let mut marked = header;
            mark(&mut marked);
            prop_assert_eq!(marked[1] & 0x30, 0x30);
            marked[1] = header[1];
            prop_assert_eq!(marked, header);
        }

        #[test]
        fn nothing_that_comes_out_of_a_device_is_too_strange(mut packet in proptest::collection::vec(any::<u8>(), 0..64)) {
            let length = packet.len();
            let _ = codepoint(&packet);
            mark(&mut packet);
            prop_assert_eq!(packet.len(), length);
        }
    }

    #[test]
    fn a_packet_has_the_codepoint_that_its_sender_gave_it() {
        for (bits, ecn) in [(0, None), (1, Some(Ecn::Ect1)), (2, Some(Ecn::Ect0)), (3, Some(Ecn::CongestionExperienced))] {
            assert_eq!(codepoint(&[0x45, 0xb8 | bits]), ecn);
            assert_eq!(codepoint(&[0x6b, 0x8f | bits << 4]), ecn);
        }
        assert_eq!([codepoint(&[]), codepoint(&[0x45]), codepoint(&[0x35, 3])], [None; 3]);
    }
}
