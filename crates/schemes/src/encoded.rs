//! Packets as bytes, for the tests of the formats.
//!
//! Called by those tests.
//!
//! Invariant: what is [`encoded`] fills its length exactly.

use segstream_base::codec::Writer;
use segstream_base::halves::Packet;

/// The bytes of a packet; they were not zero before.
pub(crate) fn encoded(packet: &impl Packet) -> Vec<u8> {
    let mut bytes = vec![0xaa; packet.encoded_len()];
    let mut writer = Writer::new(&mut bytes);
    packet.encode(&mut writer);
    assert_eq!(writer.finish(), Ok(packet.encoded_len()));
    bytes
}

/// Puts the right checksum at the end of a packet of which the first `covered` bytes are summed. The sum is made as RFC 1071 says
/// it and not as the crate does.
pub(crate) fn seal(bytes: &mut [u8], covered: usize) {
    if let Some((body, sum)) = bytes.split_last_chunk_mut::<2>() {
        let covered = &body[..body.len().min(covered)];
        let total = covered.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0))).sum::<u32>();
        *sum = (!(((total & 0xffff) + (total >> 16)) as u16)).to_be_bytes();
    }
}
