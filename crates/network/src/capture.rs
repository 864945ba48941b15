//! Capture files: datagrams as UDP over IPv4 or IPv6, as Wireshark and `segstream inspect` open them.
//!
//! [`CaptureFile`] writes one; [`Capture`] is a middlebox that captures at one host of a network. Also used by the simulator of
//! halves.
//!
//! Invariant: the same run gives the same bytes on every platform; timestamps never go backward. Time is in nanoseconds since
//! the start of the run.
//!
//! Limit: marks of congestion are not written.
//!
//! Source: the pcap format with nanoseconds, link type RAW (tcpdump.org); RFC 768, RFC 791, RFC 8200.

use crate::event::{Event, Middlebox, Reception};
use crate::host::HostId;
use core::net::SocketAddr;
use etherparse::PacketBuilder;
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::{DataLink, Endianness, PcapError, TsResolution};
use segstream_base::Instant;
use std::io::{self, Write};

/// The most that fits a UDP datagram over IPv4.
pub const PAYLOAD_MAX: usize = 65_507;
const TTL: u8 = 64;

/// A capture file that is being written.
#[derive(Debug)]
pub struct CaptureFile<W: Write> {
    writer: PcapWriter<W>,
    frame: Vec<u8>,
}

impl<W: Write> CaptureFile<W> {
    /// A capture without a datagram.
    ///
    /// # Errors
    /// The writer's.
    pub fn new(out: W) -> io::Result<Self> {
        let header = PcapHeader {
            snaplen: u32::from(u16::MAX),
            datalink: DataLink::RAW,
            ts_resolution: TsResolution::NanoSecond,
            endianness: Endianness::Little,
            ..PcapHeader::default()
        };
        let writer = PcapWriter::with_header(out, header).map_err(as_io)?;
        Ok(Self { writer, frame: Vec::new() })
    }

    /// Adds a datagram.
    ///
    /// # Errors
    /// The writer's; or that the addresses are of two families, or the payload is longer than [`PAYLOAD_MAX`].
    pub fn write(&mut self, now: Instant, from: SocketAddr, to: SocketAddr, payload: &[u8]) -> io::Result<()> {
        if payload.len() > PAYLOAD_MAX {
            let what = format!("a packet of {} bytes fits no datagram; capture packets of at most {PAYLOAD_MAX} bytes", payload.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let builder = match (from, to) {
            (SocketAddr::V4(from), SocketAddr::V4(to)) => PacketBuilder::ipv4(from.ip().octets(), to.ip().octets(), TTL),
            (SocketAddr::V6(from), SocketAddr::V6(to)) => PacketBuilder::ipv6(from.ip().octets(), to.ip().octets(), TTL),
            _ => {
                let what = format!("{from} and {to} are addresses of two families; no IP packet has both");
                return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
            }
        };
        self.frame.clear();
        builder.udp(from.port(), to.port()).write(&mut self.frame, payload).map_err(io::Error::other)?;
        let timestamp = core::time::Duration::from_nanos(now.as_nanos());
        let length = u32::try_from(self.frame.len()).unwrap_or(u32::MAX);
        self.writer.write_packet(&PcapPacket::new(timestamp, length, &self.frame)).map(|_| ()).map_err(as_io)
    }

    /// The file, once the run is over.
    ///
    /// # Errors
    /// The writer's.
    pub fn finish(self) -> io::Result<W> {
        let mut out = self.writer.into_writer();
        out.flush()?;
        Ok(out)
    }
}

/// A middlebox that captures what one host sends and receives. What the path will lose is captured too; what a paused or crashed
/// host drops is not.
#[derive(Debug)]
pub struct Capture<W: Write> {
    host: HostId,
    file: CaptureFile<W>,
    failed: Option<io::Error>,
}

impl<W: Write> Capture<W> {
    /// A capture at `host`.
    ///
    /// # Errors
    /// The writer's.
    pub fn new(host: HostId, out: W) -> io::Result<Self> {
        Ok(Self { host, file: CaptureFile::new(out)?, failed: None })
    }

    /// The capture, once the run is over.
    ///
    /// # Errors
    /// The first error of [`CaptureFile::write`]. Nothing was written after it.
    pub fn finish(self) -> io::Result<W> {
        self.failed.map_or_else(|| self.file.finish(), Err)
    }
}

impl<W: Write> Middlebox for Capture<W> {
    fn observe(&mut self, now: Instant, event: &Event<'_>) {
        let (from, to, bytes) = match *event {
            Event::Sent { host, from, to, bytes, .. } if host == self.host => (from, to, bytes),
            Event::Arrived { host, from, to, bytes, reception: Reception::Handled | Reception::Buffered, .. } if host == self.host => {
                (from, to, bytes)
            }
            _ => return,
        };
        if self.failed.is_none() {
            self.failed = self.file.write(now, from, to, bytes).err();
        }
    }
}

fn as_io(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        error => io::Error::other(error),
    }
}
