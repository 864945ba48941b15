//! The packets of adaptive acknowledgment: numbered data and its end forward, acknowledgments back.
//!
//! Called by both halves and by the endpoint adapter. AA 2 names the fields, AA Table 1 the lengths (1024 bytes of DATA,
//! 32 of ACK); the order and width of the fields are ours. Forward they are those of [`crate::numbered_packet`]. Integers
//! are big-endian.
//!
//! ```text
//! ack   CID 4  TYPE 2  CUMULATIVE 4  GAP-IN 4  GAP-OUT 4  zeros 12  CHECKSUM 2
//! ```
//!
//! Invariant: no input makes `decode` panic; an acknowledgment that decodes has its gap, if it names one, at or above the
//! cumulative number, and encodes to the same bytes.

use crate::envelope::{Sealing, opened_as};
use crate::numbered_packet::ACK;
use segstream_base::codec::{DecodeError, DecodeErrorKind, Reader, Writer};
use segstream_base::halves::{Packet, PayloadSpan};

pub use crate::numbered_packet::{Forward, Place};

/// Bytes of an acknowledgment, checksum included (AA Table 1).
const ACK_BYTES: usize = 32;
/// The fields of two bytes that fill an acknowledgment up to that.
const ACK_ZEROS: usize = 6;

/// An acknowledgment, which names at most one gap (AA 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feedback {
    /// The connection.
    pub connection: u32,
    /// Cumulative ack number: the first packet that has not arrived in order; all before it have.
    pub cumulative: u32,
    /// Gap-in number: the first packet of the gap.
    pub gap_in: u32,
    /// Gap-out number: the packet behind the gap, which has arrived. Equal to gap-in when no gap is named.
    pub gap_out: u32,
}

impl Feedback {
    /// Whether packets are requested again.
    #[inline]
    pub const fn names_gap(&self) -> bool {
        self.gap_in != self.gap_out
    }
}

impl Packet for Feedback {
    #[inline]
    fn encoded_len(&self) -> usize {
        ACK_BYTES
    }

    fn encode(&self, out: &mut Writer<'_>) {
        let mut sealing = Sealing::start(out, self.connection, ACK);
        sealing.u32(self.cumulative);
        sealing.u32(self.gap_in);
        sealing.u32(self.gap_out);
        for _ in 0..ACK_ZEROS {
            sealing.u16(0);
        }
        sealing.finish();
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (connection, mut body) = opened_as(input, ACK)?;
        let cumulative = body.u32("cumulative")?;
        let gap_in = body.u32("gap-in")?;
        if gap_in < cumulative {
            return Err(body.error("gap-in", DecodeErrorKind::OutOfRange(u64::from(gap_in))));
        }
        let gap_out = body.u32("gap-out")?;
        if gap_out < gap_in {
            return Err(body.error("gap-out", DecodeErrorKind::OutOfRange(u64::from(gap_out))));
        }
        for _ in 0..ACK_ZEROS {
            match body.u16("zeros")? {
                0 => {}
                other => return Err(body.error("zeros", DecodeErrorKind::OutOfRange(u64::from(other)))),
            }
        }
        body.finish("acknowledgment")?;
        Ok(Self { connection, cumulative, gap_in, gap_out })
    }

    #[inline]
    fn is_data(&self) -> bool {
        false
    }

    fn payload(&self, _index: usize) -> Option<PayloadSpan> {
        None
    }
}
