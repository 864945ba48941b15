//! The eight bytes in front of every datagram of an adapter.
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
//! The low four bits of the magic byte are the version. *Detail* depends on the kind: in OPEN the number of
//! the try, which OPENED echoes, so that each answer is a sample of the round trip; in PACKET the low 16 bits
//! of the length of the segment that its first piece of payload belongs to, so that the receiver knows where
//! the last unit ends although it never came; in CLOSE 1 when the transfer is not complete; else 0.
//!
//! Called by both adapters.
//!
//! Invariant: anything decodes or is refused; nothing panics. The magic byte is none that a shipment of the
//! flagship begins with.
//!
//! Limit: plain, for laboratories. Anybody on the path can forge a datagram, and payload is guarded by UDP's
//! checksum alone unless the scheme has one of its own.

use segstream_base::codec::{DecodeError, DecodeErrorKind, Reader, Writer};

/// The length of an envelope in bytes.
pub const ENVELOPE_BYTES: usize = 8;

/// The most bytes of parameters an OPEN carries, so that it fits any path.
pub const PARAMETERS_BYTES_MAX: usize = 1_024;

/// The most bytes of a reason a REFUSED carries.
pub const REASON_BYTES_MAX: usize = 256;

/// The first byte: the adapter, version 1.
const MAGIC: u8 = 0xA1;

/// The detail of a CLOSE before everything was judged.
pub(super) const INCOMPLETE: u16 = 1;

/// What a datagram is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Sender to receiver: build a receiving half from these parameters. Repeated in a long silence.
    Open,
    /// Receiver to sender: it is built.
    Opened,
    /// A packet of the scheme, in either direction.
    Packet,
    /// The transfer is over.
    Close,
    /// That is understood.
    Closed,
    /// Receiver to sender: no half can be built from these parameters, and why.
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

/// The envelope of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// What the datagram is.
    pub kind: Kind,
    /// What the kind says it is.
    pub detail: u16,
    /// The connection, chosen by the sender.
    pub connection: u32,
}

impl Envelope {
    /// Appends the eight bytes to `out`.
    pub fn append(self, out: &mut Vec<u8>) {
        let mut bytes = [0; ENVELOPE_BYTES];
        let mut writer = Writer::new(&mut bytes);
        writer.u8(MAGIC);
        writer.u8(self.kind.number());
        writer.u16(self.detail);
        writer.u32(self.connection);
        out.extend_from_slice(&bytes);
    }

    /// Reads an envelope; what follows it is the body.
    ///
    /// # Errors
    ///
    /// When the bytes are too few, are not the adapter's, or are of a kind this version does not know.
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

/// A reason of a peer as it may be printed: no control characters, and not long.
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
            let envelope = Envelope { kind, detail: 0x1234, connection: 0xdead_beef };
            let mut bytes = Vec::new();
            envelope.append(&mut bytes);
            assert_eq!(bytes.len(), ENVELOPE_BYTES);
            bytes.push(7);
            assert_eq!(Envelope::decode(&bytes), Ok((envelope, &[7][..])));
        }
    }

    #[test]
    fn another_magic_another_version_and_another_kind_are_refused() {
        for bytes in [[0x41, 1, 0, 0, 0, 0, 0, 0], [0xA2, 1, 0, 0, 0, 0, 0, 0], [0xA1, 0, 0, 0, 0, 0, 0, 0], [0xA1, 7, 0, 0, 0, 0, 0, 0]] {
            assert!(Envelope::decode(&bytes).is_err(), "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..20)) {
            let _ = Envelope::decode(&bytes);
            prop_assert!(printable(&bytes).chars().all(|character| !character.is_control()));
        }
    }
}
