//! The packets of cross traffic: full-sized data and acknowledgments.
//!
//! Called by every sender and receiver of [`super`].
//!
//! Invariant: data is [`DATA_BYTES`] long and an acknowledgment [`ACK_BYTES`], as an Ethernet carries them.

use segstream_base::codec::{DecodeError, Reader, Writer};
use segstream_base::endpoint::Ecn;
use segstream_base::halves::{Packet, PayloadSpan};

/// The length of a data packet with all headers from IP on.
pub const DATA_BYTES: usize = 1500;
/// What of it is the application's: IPv4 and TCP with timestamps take 52 bytes.
pub const PAYLOAD_BYTES: usize = DATA_BYTES - ACK_BYTES;
/// The length of an acknowledgment.
pub const ACK_BYTES: usize = 52;

const DATA_FIELDS: usize = 17;
const ACK_FIELDS: usize = 41;

/// A data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// Which transmission of the sender, counted from 0. TCP tells this by its timestamps.
    pub transmission: u64,
    /// Which packet of the stream, counted from 0.
    pub sequence: u64,
    /// Its ECN codepoint; `None` is Not-ECT.
    pub ecn: Option<Ecn>,
}

/// An acknowledgment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// The packets that have all arrived: those before this one.
    pub next: u64,
    /// The packet that caused it.
    pub sequence: u64,
    /// The transmission that brought it.
    pub transmission: u64,
    /// The packets around it that have arrived, from the first up to before the second (RFC 2018: the first block).
    pub block: (u64, u64),
    /// The packet was marked CE on the path (RFC 3168).
    pub marked: bool,
}

fn pad(out: &mut Writer<'_>, bytes: usize) {
    if let Some(room) = out.reserve(bytes) {
        room.fill(0);
    }
}

impl Packet for Data {
    fn encoded_len(&self) -> usize {
        DATA_BYTES
    }

    fn encode(&self, out: &mut Writer<'_>) {
        out.u64(self.transmission);
        out.u64(self.sequence);
        out.u8(self.ecn.map_or(0, Ecn::bits));
        pad(out, DATA_BYTES - DATA_FIELDS);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (transmission, sequence) = (input.u64("transmission")?, input.u64("sequence")?);
        let packet = Self { transmission, sequence, ecn: Ecn::from_bits(input.u8("ECN codepoint")?) };
        input.bytes(DATA_BYTES - DATA_FIELDS, "payload")?;
        Ok(packet)
    }

    fn is_data(&self) -> bool {
        true
    }

    /// Always `None`: nothing is carried.
    fn payload(&self, _index: usize) -> Option<PayloadSpan> {
        None
    }

    fn ecn(&self) -> Option<Ecn> {
        self.ecn
    }
}

impl Packet for Ack {
    fn encoded_len(&self) -> usize {
        ACK_BYTES
    }

    fn encode(&self, out: &mut Writer<'_>) {
        for number in [self.next, self.sequence, self.transmission, self.block.0, self.block.1] {
            out.u64(number);
        }
        out.u8(u8::from(self.marked));
        pad(out, ACK_BYTES - ACK_FIELDS);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let packet = Self {
            next: input.u64("next")?,
            sequence: input.u64("sequence")?,
            transmission: input.u64("transmission")?,
            block: (input.u64("block")?, input.u64("block")?),
            marked: input.u8("marked")? != 0,
        };
        input.bytes(ACK_BYTES - ACK_FIELDS, "options")?;
        Ok(packet)
    }

    fn is_data(&self) -> bool {
        false
    }

    fn payload(&self, _index: usize) -> Option<PayloadSpan> {
        None
    }
}
