//! Shipments of the level initial: no keys exist yet, and a checksum seals them.
//!
//! Called by the endpoint for strangers and by connections in set-up.
//!
//! Invariant: what is written fits the smallest datagram every path must carry, and a CR fills it, so that no answer to
//! it can be longer than it (RFC 9000 8.1).

use crate::config::DATAGRAM_BYTES_MIN;
use crate::session::Plain;
use segstream_base::ShipmentNumber;
use segstream_base::codec::Writer;
use segstream_wire::header::HEADER_BYTES;
use segstream_wire::{Header, Kind, Level};

/// Appends a shipment to `out`.
pub(crate) fn write(kind: Kind, connection: u32, number: ShipmentNumber, out: &mut Vec<u8>, body: impl FnOnce(&mut Writer<'_>)) {
    const BODY_END_MAX: usize = DATAGRAM_BYTES_MIN - Plain::SEAL_BYTES;
    let start = out.len();
    out.resize(start + BODY_END_MAX, 0);
    let mut writer = Writer::new(&mut out[start..]);
    Header { level: Level::Initial, kind, connection, number: number.0 as u32 }.encode(&mut writer);
    body(&mut writer);
    // Invariant: every body is composed to fit; were one not, an empty shipment is harmless.
    let written = writer.finish().unwrap_or(HEADER_BYTES);
    let end = if kind == Kind::Request { BODY_END_MAX } else { written };
    out.truncate(start + end);
    out.extend_from_slice(&[0; Plain::SEAL_BYTES]);
    Plain::seal(number, &mut out[start..]);
}

/// The body of a shipment with this header, or `None` when the seal is broken.
pub(crate) fn open<'a>(header: &Header, datagram: &'a [u8]) -> Option<&'a [u8]> {
    let end = Plain::open(ShipmentNumber(header.number.into()), datagram)?;
    datagram.get(HEADER_BYTES..end)
}
