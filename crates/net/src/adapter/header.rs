//! The header of every datagram of an adapter: eight bytes.
//!
//! ```text
//!  0               1               2               3
//! +---------------+---------------+-------------------------------+
//! |  magic 0xA1   |  kind         |  detail                       |
//! +---------------+---------------+-------------------------------+
//! |  connection                                                   |
//! +---------------------------------------------------------------+
//! |  body: parameters, a packet of the scheme, or a reason     ...|
//! +---------------------------------------------------------------+
//! ```
//!
//! The low four bits of the magic byte are the version. *Detail* depends on the kind. In OPEN it is the number of the attempt, which
//! OPENED echoes, so that each answer is an RTT sample. In PACKET it is the low 16 bits of the length of the segment that the first
//! piece of payload belongs to, so that the receiver knows where the last unit ends even if it never arrives. In CLOSE it is 1 if
//! the transfer is not complete. Otherwise it is 0.
//!
//! Called by both adapters.
//!
//! Invariant: any bytes decode or are refused; nothing panics. No shipment of the flagship begins with the magic byte.
//!
//! Limit: not authenticated, for laboratories. An attacker on the path can forge a datagram, and only UDP's checksum protects the
//! payload unless the scheme has its own.

use segstream_base::codec::{DecodeError, DecodeErrorKind, Reader, Writer};

/// The length of a header in bytes.
pub const HEADER_BYTES: usize = 8;

/// The maximum size of the parameters in an OPEN, so that it fits any path.
pub const PARAMETERS_BYTES_MAX: usize = 1_024;

/// The maximum size of the reason in a REFUSED.
pub const REASON_BYTES_MAX: usize = 256;

/// The first byte: the adapter, version 1.
const MAGIC: u8 = 0xA1;

/// The detail of a CLOSE before every segment was judged.
pub(super) const INCOMPLETE: u16 = 1;

/// What a datagram is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Sender to receiver: build a receiving half from these parameters. Repeated as a keep-alive in a long silence.
    Open,
    /// Receiver to sender: the half is built.
    Opened,
    /// A packet of the scheme, in either direction.
    Packet,
    /// The transfer is over.
    Close,
    /// Confirms CLOSE.
    Closed,
    /// Receiver to sender: no half can be built from these parameters; the body is the reason.
    Refused,
}

impl Kind {
    const ALL: [Self; 6] = [Self::Open, Self::Opened, Self::Packet, Self::Close, Self::Closed, Self::Refused];

    const fn number(self) -> u8 {
        self as u8 + 1
    }

    fn of(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }
}

/// The header of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdapterHeader {
    /// What the datagram is.
    pub kind: Kind,
    /// Its meaning depends on the kind.
    pub detail: u16,
    /// The connection, chosen by the sender.
    pub connection: u32,
}

impl AdapterHeader {
    /// Appends the eight bytes to `out`.
    pub fn append(self, out: &mut Vec<u8>) {
        let mut bytes = [0; HEADER_BYTES];
        let mut writer = Writer::new(&mut bytes);
        writer.u8(MAGIC);
        writer.u8(self.kind.number());
        writer.u16(self.detail);
        writer.u32(self.connection);
        out.extend_from_slice(&bytes);
    }

    /// Reads a header; what follows it is the body.
    ///
    /// # Errors
    ///
    /// If the bytes are too few, are not the adapter's, or are of a kind that this version does not know.
    pub fn decode(datagram: &[u8]) -> Result<(Self, &[u8]), DecodeError> {
        let mut reader = Reader::new(datagram);
        let unknown = |at, field, value: u8| DecodeError { at, field, kind: DecodeErrorKind::UnknownType(value.into()) };
        let magic = reader.u8("magic")?;
        if magic != MAGIC {
            return Err(unknown(0, "magic", magic));
        }
        let number = reader.u8("kind")?;
        let kind = Kind::of(number).ok_or(unknown(1, "kind", number))?;
        let detail = reader.u16("detail")?;
        let connection = reader.u32("connection")?;
        let body = reader.bytes(reader.remaining(), "body")?;
        Ok((Self { kind, detail, connection }, body))
    }
}

/// A reason from a peer, made safe to print: without control characters and not too long.
pub(super) fn printable(reason: &[u8]) -> String {
    let shown = reason.get(..REASON_BYTES_MAX).unwrap_or(reason);
    String::from_utf8_lossy(shown).chars().map(|character| if character.is_control() { '?' } else { character }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_kind_comes_back() {
        for kind in Kind::ALL {
            let header = AdapterHeader { kind, detail: 0x1234, connection: 0xdead_beef };
            let mut bytes = Vec::new();
            header.append(&mut bytes);
            assert_eq!(bytes.len(), HEADER_BYTES);
            bytes.push(7);
            assert_eq!(AdapterHeader::decode(&bytes), Ok((header, &[7][..])));
        }
    }

    #[test]
    fn another_magic_another_version_and_another_kind_are_refused() {
        for bytes in [[0x41, 1, 0, 0, 0, 0, 0, 0], [0xA2, 1, 0, 0, 0, 0, 0, 0], [0xA1, 0, 0, 0, 0, 0, 0, 0], [0xA1, 7, 0, 0, 0, 0, 0, 0]] {
            assert!(AdapterHeader::decode(&bytes).is_err(), "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..20)) {
            let _ = AdapterHeader::decode(&bytes);
            prop_assert!(printable(&bytes).chars().all(|character| !character.is_control()));
        }
    }
}
