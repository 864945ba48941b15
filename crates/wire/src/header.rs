//! The nine bytes in front of every shipment (spec 2.1).
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---+---+-------+-----------------------------------------------+
//! |0 1|lvl| kind  |  connection identifier of the destination     |
//! +---+---+-------+-----------------------------------------------+
//! |               |  shipment number, low 32 bits                 |
//! +---------------+-----------------------------------------------+
//! |               |  body ...                                seal |
//! +---------------+-----------------------------------------------+
//! ```
//!
//! Called by connections and by the inspector. Invariant: the header is never changed on the way, and
//! the seal covers it.

use segstream_base::codec::{DecodeError, DecodeErrorKind, Reader, Writer};

/// The length of a header in bytes.
pub const HEADER_BYTES: usize = 9;

/// Which keys seal a shipment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// No keys yet: an integrity check only.
    Initial,
    /// The keys of the handshake.
    Handshake,
    /// The keys of the data phase, even key phases.
    Data,
    /// The keys of the data phase, odd key phases.
    DataOdd,
}

/// What a shipment is: the eight packet types of HT 3.1, four for set-up and moved addresses, and repair units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// CR: asks for a connection.
    Request,
    /// CC: confirms it.
    Confirm,
    /// RJ: refuses it, with a reason.
    Reject,
    /// DR: asks to disconnect.
    Disconnect,
    /// DC: confirms that.
    DisconnectConfirm,
    /// DT: data parts.
    Data,
    /// TXS: the sender's state.
    State,
    /// RXS: the receiver's state.
    Report,
    /// CK: asks for a request again, with a cookie.
    Cookie,
    /// HS: bytes of the handshake.
    Handshake,
    /// PC: asks whether the peer receives at an address.
    Challenge,
    /// PR: says that it does.
    Response,
    /// RP: repair units of a segment (an extension, spec 12.2).
    Repair,
}

impl Kind {
    /// Every kind, in the order of their numbers on the wire.
    pub const ALL: [Self; 13] = [
        Self::Request,
        Self::Confirm,
        Self::Reject,
        Self::Disconnect,
        Self::DisconnectConfirm,
        Self::Data,
        Self::State,
        Self::Report,
        Self::Cookie,
        Self::Handshake,
        Self::Challenge,
        Self::Response,
        Self::Repair,
    ];

    /// The name used in traces and in the specification.
    pub const fn name(self) -> &'static str {
        ["CR", "CC", "RJ", "DR", "DC", "DT", "TXS", "RXS", "CK", "HS", "PC", "PR", "RP"][self as usize]
    }
}

/// The header of a shipment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Which keys seal it.
    pub level: Level,
    /// What it is.
    pub kind: Kind,
    /// The identifier its destination has chosen for the connection; 0 in a request.
    pub connection: u32,
    /// The low 32 bits of the shipment number.
    pub number: u32,
}

/// The part of a shipment's header that header protection does not hide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnprotectedHeader {
    /// Whether it is of a data level, where kind, number and key phase may be hidden.
    pub data: bool,
    /// The identifier its destination has chosen for the connection.
    pub connection: u32,
}

impl UnprotectedHeader {
    /// Reads it; `None` when the datagram is no shipment.
    #[inline]
    pub fn read(datagram: &[u8]) -> Option<Self> {
        let (header, _) = datagram.split_first_chunk::<HEADER_BYTES>()?;
        let connection = u32::from_be_bytes([header[1], header[2], header[3], header[4]]);
        (header[0] & 0xc0 == 0x40).then_some(Self { data: header[0] & 0x20 != 0, connection })
    }
}

impl Header {
    /// Writes the nine bytes.
    #[inline]
    pub fn encode(&self, out: &mut Writer<'_>) {
        out.u8(0x40 | (self.level as u8) << 4 | self.kind as u8);
        out.u32(self.connection);
        out.u32(self.number);
    }

    /// Reads the nine bytes.
    #[inline]
    pub fn decode(input: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let first = input.u8("shipment type")?;
        let unknown = DecodeError { at: 0, field: "shipment type", kind: DecodeErrorKind::UnknownType(u64::from(first)) };
        if first & 0xc0 != 0x40 {
            return Err(unknown);
        }
        let level = match (first >> 4) & 3 {
            0 => Level::Initial,
            1 => Level::Handshake,
            2 => Level::Data,
            _ => Level::DataOdd,
        };
        let kind = *Kind::ALL.get(usize::from(first & 0x0f)).ok_or(unknown)?;
        Ok(Self { level, kind, connection: input.u32("connection identifier")?, number: input.u32("shipment number")? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_and_level_comes_back() {
        for kind in Kind::ALL {
            for level in [Level::Initial, Level::Handshake, Level::Data, Level::DataOdd] {
                let header = Header { level, kind, connection: 0xdead_beef, number: 7 };
                let mut buffer = [0; HEADER_BYTES];
                let mut writer = Writer::new(&mut buffer);
                header.encode(&mut writer);
                assert_eq!(writer.finish(), Ok(HEADER_BYTES));
                assert_eq!(Header::decode(&mut Reader::new(&buffer)), Ok(header));
            }
        }
    }

    #[test]
    fn whatever_is_hidden_the_level_s_kind_and_the_connection_can_be_read() {
        for hidden in 0..32 {
            let datagram = [0x60 | hidden, 0xde, 0xad, 0xbe, 0xef, 1, 2, 3, 4, 5];
            assert_eq!(UnprotectedHeader::read(&datagram), Some(UnprotectedHeader { data: true, connection: 0xdead_beef }));
        }
        assert_eq!(UnprotectedHeader::read(&[0x40, 0, 0, 0, 1, 0, 0, 0, 0]), Some(UnprotectedHeader { data: false, connection: 1 }));
        assert_eq!((UnprotectedHeader::read(&[0x40; 8]), UnprotectedHeader::read(&[0x80; 20])), (None, None));
    }

    #[test]
    fn other_protocols_are_told_apart_by_the_first_byte() {
        for first in [0x00, 0x80, 0xc3, 0x4d, 0x4f] {
            assert!(Header::decode(&mut Reader::new(&[first, 0, 0, 0, 0, 0, 0, 0, 0])).is_err(), "{first:#x}");
        }
    }
}
