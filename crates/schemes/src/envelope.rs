//! The common format of packets whose papers give none: CID 4, TYPE 2, fields of two and four bytes, CHECKSUM 2.
//!
//! Called by the packets of SNR, TCP and adaptive acknowledgment, whose papers give no format. Integers are big-endian; type 0 is data.
//!
//! Invariant: what [`Sealing`] writes [`opened`] accepts, and a packet with a changed byte it does not.
//!
//! The checksum covers the payload too, which is filled in after `encode`: zeros add nothing to the sum, and
//! [`crate::checksum::seal`] makes it anew when the payload is there.

pub(crate) use crate::checksum::CHECKSUM_BYTES;
use crate::checksum::Checksum;
use segstream_base::codec::{DecodeError, DecodeErrorKind, Reader, Writer};

/// The TYPE of a data packet, in every format.
pub(crate) const DATA: u16 = 0;

/// Writes the fields of a packet and sums them up.
#[derive(Debug)]
pub(crate) struct Sealing<'a, 'b> {
    out: &'a mut Writer<'b>,
    sum: Checksum,
}

impl<'a, 'b> Sealing<'a, 'b> {
    /// Begins a packet of type `kind`.
    pub(crate) fn start(out: &'a mut Writer<'b>, connection: u32, kind: u16) -> Self {
        let mut sealing = Self { out, sum: Checksum::default() };
        sealing.u32(connection);
        sealing.u16(kind);
        sealing
    }

    /// Writes a field of two bytes.
    pub(crate) fn u16(&mut self, value: u16) {
        self.out.u16(value);
        self.sum = self.sum.with(&value.to_be_bytes());
    }

    /// Writes a field of four bytes.
    pub(crate) fn u32(&mut self, value: u32) {
        self.out.u32(value);
        self.sum = self.sum.with(&value.to_be_bytes());
    }

    /// Ends the packet with its checksum.
    pub(crate) fn finish(self) {
        self.out.u16(self.sum.finish());
    }

    /// Ends a data packet: zeros in place of a payload of `bytes`, then the checksum.
    pub(crate) fn finish_behind_payload(self, bytes: u16) {
        if let Some(room) = self.out.reserve(usize::from(bytes)) {
            room.fill(0);
        }
        self.finish();
    }
}

/// What lies in front of the checksum, once that is found right.
///
/// # Errors
/// A packet too short for a checksum, or one whose checksum is wrong.
pub(crate) fn opened<'a>(input: &mut Reader<'a>) -> Result<Reader<'a>, DecodeError> {
    let bytes = input.bytes(input.remaining().saturating_sub(CHECKSUM_BYTES), "packet")?;
    let found = input.u16("checksum")?;
    if Checksum::default().with(bytes).finish() == found {
        Ok(Reader::new(bytes))
    } else {
        Err(input.error("checksum", DecodeErrorKind::BadChecksum))
    }
}

/// The same for a packet that must be of type `kind`: its connection, and what follows.
///
/// # Errors
/// Those of [`opened`], or another type.
pub(crate) fn opened_as<'a>(input: &mut Reader<'a>, kind: u16) -> Result<(u32, Reader<'a>), DecodeError> {
    let mut body = opened(input)?;
    let connection = body.u32("connection")?;
    match body.u16("type")? {
        found if found == kind => Ok((connection, body)),
        other => Err(body.error("type", DecodeErrorKind::UnknownType(u64::from(other)))),
    }
}
