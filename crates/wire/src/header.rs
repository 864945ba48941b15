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
    /// The keys of the data phase, even generations of them.
    Data,
    /// The keys of the data phase, odd generations of them.
    DataOdd,
}

/// What a shipment is (HT 3.1: the eight packet types).
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
}

impl Kind {
    const ALL: [Self; 8] =
        [Self::Request, Self::Confirm, Self::Reject, Self::Disconnect, Self::DisconnectConfirm, Self::Data, Self::State, Self::Report];

    /// The name used in traces and in the specification.
    pub const fn name(self) -> &'static str {
        ["CR", "CC", "RJ", "DR", "DC", "DT", "TXS", "RXS"][self as usize]
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
    fn other_protocols_are_told_apart_by_the_first_byte() {
        for first in [0x00, 0x80, 0xc3, 0x4f] {
            assert!(Header::decode(&mut Reader::new(&[first, 0, 0, 0, 0, 0, 0, 0, 0])).is_err(), "{first:#x}");
        }
    }
}
