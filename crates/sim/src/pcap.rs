//! An observer that writes a capture file, like a packet capture at one end of the path.
//!
//! Called by [`crate::Simulation`] as its observer. `segstream inspect` and Wireshark open what it writes; the file itself is a
//! [`segstream_network::CaptureFile`].
//!
//! Every packet is encoded, with zeros for its payload, and framed as UDP over IPv4: the sender is
//! 10.0.0.1:4000, the receiver 10.0.0.2:4001. Time is in nanoseconds since the start of the run.
//!
//! Invariant: the same run gives the same bytes on every platform; timestamps never go backward.
//!
//! Limit: the frame's 28 bytes are not charged to the path, which counts bare packets.

use crate::observer::{Direction, Moment, Observer, PacketEvent};
use core::net::SocketAddr;
use segstream_base::Instant;
use segstream_base::codec::Writer;
use segstream_base::halves::Packet;
use segstream_network::CaptureFile;
use std::io::{self, Write};

/// Address and port of the sender in a capture.
pub const SENDER: ([u8; 4], u16) = ([10, 0, 0, 1], 4000);
/// Address and port of the receiver in a capture.
pub const RECEIVER: ([u8; 4], u16) = ([10, 0, 0, 2], 4001);

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
    file: CaptureFile<W>,
    vantage: Vantage,
    payload: Vec<u8>,
    failed: Option<io::Error>,
}

impl<W: Write> Pcap<W> {
    /// A capture without a packet.
    ///
    /// # Errors
    /// The writer's.
    pub fn new(out: W, vantage: Vantage) -> io::Result<Self> {
        Ok(Self { file: CaptureFile::new(out)?, vantage, payload: Vec::new(), failed: None })
    }

    /// The capture, once the run is over.
    ///
    /// # Errors
    /// The first error: the writer's, or a packet that fits no datagram. Nothing was written after it.
    pub fn finish(self) -> io::Result<W> {
        self.failed.map_or_else(|| self.file.finish(), Err)
    }

    fn write<P: Packet>(&mut self, now: Instant, direction: Direction, packet: &P) -> io::Result<()> {
        self.payload.clear();
        self.payload.resize(packet.encoded_len(), 0);
        packet.encode(&mut Writer::new(&mut self.payload));
        let (from, to) = match direction {
            Direction::Forward => (SENDER, RECEIVER),
            Direction::Back => (RECEIVER, SENDER),
        };
        self.file.write(now, SocketAddr::from(from), SocketAddr::from(to), &self.payload)
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
