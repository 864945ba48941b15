//! A tap that writes a capture file, as a capture at one end of the path would look.
//!
//! Called by [`crate::Simulation`] as its observer. `segstream inspect` and Wireshark open what it writes.
//!
//! Every packet is encoded, with zeros for its payload, and framed as UDP over IPv4: the sender is
//! 10.0.0.1:4000, the receiver 10.0.0.2:4001. Time is in nanoseconds since the start of the run.
//!
//! Invariant: the same run gives the same bytes on every platform; timestamps never go backward.
//!
//! Limit: the frame's 28 bytes are not charged to the path, which counts bare packets.
//!
//! Source: the pcap format with nanoseconds, link type RAW (tcpdump.org); RFC 768, RFC 791.

use crate::observer::{Direction, Moment, Observer, PacketEvent};
use etherparse::PacketBuilder;
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::{DataLink, Endianness, PcapError, TsResolution};
use segstream_base::Instant;
use segstream_base::codec::Writer;
use segstream_base::halves::Packet;
use std::io::{self, Write};

/// Address and port of the sender in a capture.
pub const SENDER: ([u8; 4], u16) = ([10, 0, 0, 1], 4000);
/// Address and port of the receiver in a capture.
pub const RECEIVER: ([u8; 4], u16) = ([10, 0, 0, 2], 4001);

/// The most that fits a UDP datagram over IPv4.
const PAYLOAD_MAX: usize = 65_507;
const TTL: u8 = 64;

/// Where the capture is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Vantage {
    /// At the sender: everything it sends, also what the path will lose, and everything that reaches it.
    #[default]
    Sender,
    /// At the receiver.
    Receiver,
}

/// Writes a capture of a run.
#[derive(Debug)]
pub struct Pcap<W: Write> {
    writer: PcapWriter<W>,
    vantage: Vantage,
    payload: Vec<u8>,
    frame: Vec<u8>,
    failed: Option<io::Error>,
}

impl<W: Write> Pcap<W> {
    /// A capture without a packet.
    ///
    /// # Errors
    /// The writer's.
    pub fn new(out: W, vantage: Vantage) -> io::Result<Self> {
        let header = PcapHeader {
            snaplen: u32::from(u16::MAX),
            datalink: DataLink::RAW,
            ts_resolution: TsResolution::NanoSecond,
            endianness: Endianness::Little,
            ..PcapHeader::default()
        };
        let writer = PcapWriter::with_header(out, header).map_err(as_io)?;
        Ok(Self { writer, vantage, payload: Vec::new(), frame: Vec::new(), failed: None })
    }

    /// The capture, once the run is over.
    ///
    /// # Errors
    /// The first error: the writer's, or a packet that fits no datagram. Nothing was written after it.
    pub fn finish(self) -> io::Result<W> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let mut out = self.writer.into_writer();
        out.flush()?;
        Ok(out)
    }

    fn write<P: Packet>(&mut self, now: Instant, direction: Direction, packet: &P) -> io::Result<()> {
        let bytes = packet.encoded_len();
        if bytes > PAYLOAD_MAX {
            let what = format!("a packet of {bytes} bytes fits no datagram; capture packets of at most {PAYLOAD_MAX} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        self.payload.clear();
        self.payload.resize(bytes, 0);
        packet.encode(&mut Writer::new(&mut self.payload));
        let (from, to) = match direction {
            Direction::Forward => (SENDER, RECEIVER),
            Direction::Back => (RECEIVER, SENDER),
        };
        self.frame.clear();
        let builder = PacketBuilder::ipv4(from.0, to.0, TTL).udp(from.1, to.1);
        builder.write(&mut self.frame, &self.payload).map_err(io::Error::other)?;
        let timestamp = core::time::Duration::from_nanos(now.as_nanos());
        let length = u32::try_from(self.frame.len()).unwrap_or(u32::MAX);
        self.writer.write_packet(&PcapPacket::new(timestamp, length, &self.frame)).map(|_| ()).map_err(as_io)
    }
}

impl<W: Write> Observer for Pcap<W> {
    const PACKETS: bool = true;

    fn packet<P: Packet>(&mut self, event: PacketEvent<'_, P>) {
        let seen = match (self.vantage, event.direction) {
            (Vantage::Sender, Direction::Forward) | (Vantage::Receiver, Direction::Back) => event.moment != Moment::Arrived,
            (Vantage::Sender, Direction::Back) | (Vantage::Receiver, Direction::Forward) => event.moment == Moment::Arrived,
        };
        if seen && self.failed.is_none() {
            self.failed = self.write(event.now, event.direction, event.packet).err();
        }
    }
}

fn as_io(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        error => io::Error::other(error),
    }
}
