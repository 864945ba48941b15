//! The packets of TCP: numbered data and its end forward, acknowledgments back.
//!
//! Called by both halves and by the endpoint adapter. The formats are ours: what HT's comparison needs and nothing
//! else. Forward they are those of [`crate::numbered_packet`]. Integers are big-endian.
//!
//! ```text
//! ack   CID 4  TYPE 2  NEXT 4  CHECKSUM 2
//! ```
//!
//! Invariant: no input makes `decode` panic.

use crate::envelope::{CHECKSUM_BYTES, Sealing, opened_as};
use crate::numbered_packet::ACK;
use segstream_base::codec::{DecodeError, Reader, Writer};
use segstream_base::halves::{Packet, PayloadSpan};

pub use crate::numbered_packet::{Forward, Place};

/// Bytes of an acknowledgment in front of its checksum.
const ACK_BYTES: usize = 10;

/// A cumulative acknowledgment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feedback {
    /// The connection.
    pub connection: u32,
    /// The first packet that has not arrived: all before it have.
    pub next: u32,
}

impl Packet for Feedback {
    #[inline]
    fn encoded_len(&self) -> usize {
        ACK_BYTES + CHECKSUM_BYTES
    }

    fn encode(&self, out: &mut Writer<'_>) {
        let mut sealing = Sealing::start(out, self.connection, ACK);
        sealing.u32(self.next);
        sealing.finish();
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (connection, mut body) = opened_as(input, ACK)?;
        let next = body.u32("next")?;
        body.finish("acknowledgment")?;
        Ok(Self { connection, next })
    }

    #[inline]
    fn is_data(&self) -> bool {
        false
    }

    fn payload(&self, _index: usize) -> Option<PayloadSpan> {
        None
    }
}
