//! Packets as bytes, for the tests of the formats.
//!
//! Called by those tests.
//!
//! Invariant: what is [`encoded`] fills its length exactly.

use segstream_base::codec::{Reader, Writer};
use segstream_base::halves::Packet;

/// The bytes of a packet; they were not zero before.
pub(crate) fn encoded(packet: &impl Packet) -> Vec<u8> {
    let mut bytes = vec![0xaa; packet.encoded_len()];
    let mut writer = Writer::new(&mut bytes);
    packet.encode(&mut writer);
    assert_eq!(writer.finish(), Ok(packet.encoded_len()));
    bytes
}

/// Puts the right checksum at the end of a packet. The sum is made as RFC 1071 says it and not as the crate does.
pub(crate) fn seal(bytes: &mut [u8]) {
    if let Some((covered, sum)) = bytes.split_last_chunk_mut::<2>() {
        let total = covered.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0))).sum::<u32>();
        *sum = (!(((total & 0xffff) + (total >> 16)) as u16)).to_be_bytes();
    }
}

/// Fills the payload of a packet in, as a store does, and holds that the packet reads back once it is sealed and, whatever byte then
/// changes, no more.
pub(crate) fn assert_payload_is_covered<P: Packet + PartialEq>(packet: &P) {
    let mut bytes = encoded(packet);
    let span = packet.payload(0).unwrap();
    for (at, byte) in bytes[span.at..span.at + span.bytes].iter_mut().enumerate() {
        *byte = (at as u8).wrapping_mul(7).wrapping_add(0x5a);
    }
    assert!(P::decode(&mut Reader::new(&bytes)).is_err(), "a payload without its checksum");
    packet.seal(&mut bytes);
    assert_eq!(P::decode(&mut Reader::new(&bytes)).as_ref(), Ok(packet));
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << bit;
            assert!(P::decode(&mut Reader::new(&damaged)).is_err(), "bit {bit} of byte {at}");
        }
    }
}
