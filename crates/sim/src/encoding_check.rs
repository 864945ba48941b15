//! Check mode: every packet is encoded and decoded.
//!
//! Called by `channel` when [`crate::Setup::check`] is set.
//!
//! Invariant: a packet that passes is what its bytes say; a run with check mode differs from one without in
//! nothing but time.

use crate::end::EncodingFault;
use segstream_base::codec::{Reader, Writer};
use segstream_base::halves::Packet;

/// The buffer packets are encoded into.
#[derive(Clone, Debug, Default)]
pub(crate) struct EncodingCheck {
    buffer: Vec<u8>,
}

impl EncodingCheck {
    /// What `packet` is after it has been encoded and decoded.
    pub(crate) fn recode<P: Packet>(&mut self, packet: &P) -> Result<P, EncodingFault> {
        let announced = packet.encoded_len();
        self.buffer.clear();
        self.buffer.resize(announced, 0);
        let mut writer = Writer::new(&mut self.buffer);
        packet.encode(&mut writer);
        let written = writer.position();
        if written != announced {
            return Err(EncodingFault::Length { announced, written });
        }
        let mut reader = Reader::new(&self.buffer);
        let decoded = P::decode(&mut reader).map_err(EncodingFault::Undecodable)?;
        reader.finish("packet").map_err(EncodingFault::Undecodable)?;
        Ok(decoded)
    }

    /// Flips a bit of the packet that was encoded last and decodes it. The result is discarded, as behind a
    /// checksum: what counts is that no input makes a decoder fail in any other way than by its error.
    pub(crate) fn decode_flipped<P: Packet>(&mut self, bit: u64) {
        let at = usize::try_from(bit / 8).unwrap_or(usize::MAX);
        if let Some(byte) = self.buffer.get_mut(at) {
            *byte ^= 0x80 >> (bit % 8);
            let _ = P::decode(&mut Reader::new(&self.buffer));
        }
    }
}
