//! Collects packets of a half into GSO batches: datagrams of equal size, which one system call sends.
//!
//! Called by both adapters.
//!
//! Invariant: packets leave in the order in which the half returns them, each once; a packet longer than those before it waits for
//! the next GSO batch.

use super::header::{AdapterHeader, HEADER_BYTES};
use crate::socket::SEND_BYTES_MAX;
use segstream_base::codec::Writer;
use segstream_base::halves::Packet;

/// Makes GSO batches, and holds the packet that did not fit the last one.
#[derive(Debug)]
pub(super) struct GsoBatches<P> {
    held: Option<P>,
}

/// The announced length of a packet that cannot be put into a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooLong(pub(super) usize);

impl<P: Packet> GsoBatches<P> {
    pub(super) const fn new() -> Self {
        Self { held: None }
    }

    /// Appends up to `max` datagrams of equal size, the last of which may be shorter, from the packets of `next`. `write` appends
    /// one packet as a datagram. Returns the size, or `None` if there was nothing to send.
    pub(super) fn append(
        &mut self,
        max: usize,
        out: &mut Vec<u8>,
        mut next: impl FnMut() -> Option<P>,
        mut write: impl FnMut(&P, &mut Vec<u8>) -> Result<(), TooLong>,
    ) -> Result<Option<usize>, TooLong> {
        let mut size = None;
        for _ in 0..max.max(1) {
            let Some(packet) = self.held.take().or_else(&mut next) else { break };
            let bytes = packet.encoded_len().saturating_add(HEADER_BYTES);
            let first = *size.get_or_insert(bytes);
            if bytes > first {
                self.held = Some(packet);
                break;
            }
            write(&packet, out)?;
            if bytes < first {
                break;
            }
        }
        Ok(size)
    }
}

/// Appends `packet` in its header; where the packet begins in `out`.
pub(super) fn append_packet<P: Packet>(packet: &P, header: AdapterHeader, out: &mut Vec<u8>) -> Result<usize, TooLong> {
    let start = out.len();
    let bytes = packet.encoded_len();
    if bytes > SEND_BYTES_MAX - HEADER_BYTES {
        return Err(TooLong(bytes));
    }
    header.append(out);
    let at = out.len();
    out.resize(at + bytes, 0);
    let mut writer = Writer::new(out.get_mut(at..).unwrap_or_default());
    packet.encode(&mut writer);
    if writer.finish() != Ok(bytes) {
        out.truncate(start);
        return Err(TooLong(bytes));
    }
    Ok(at)
}
