//! From a capture file to UDP payloads.
//!
//! Called by the verb.
//!
//! Invariant: a malformed packet is something else, a malformed file is an error with its place; neither panics.
//!
//! Source: the pcap format and its link types (tcpdump.org), Linux cooked headers `LINUX_SLL` and `LINUX_SLL2`.

use anyhow::{Context as _, Result, anyhow, bail};
use etherparse::{EtherType, LaxNetSlice, LaxSlicedPacket, TransportSlice};
use pcap_file::pcap::PcapReader;
use pcap_file::{DataLink, PcapError};
use std::fs::File;
use std::io::{BufReader, Read as _, Seek as _};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

/// What a file of the newer format begins with.
const PCAPNG_MAGIC: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
/// The length of a Linux cooked header, and where in it the type of what follows stands.
const SLL: (usize, usize) = (16, 14);
/// The same in the second version.
const SLL2: (usize, usize) = (20, 0);

/// A capture, packet by packet.
pub(super) struct Capture {
    reader: PcapReader<BufReader<File>>,
    link: DataLink,
    name: String,
    packets: u64,
    start: Option<Duration>,
}

/// A packet.
pub(super) enum Found {
    /// UDP.
    Datagram(Datagram),
    /// Anything else.
    Other,
}

/// A UDP datagram.
pub(super) struct Datagram {
    /// Since the first packet of the capture.
    pub(super) since: Duration,
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    pub(super) payload: Vec<u8>,
    /// Whether the capture has all of it.
    pub(super) whole: bool,
}

impl Capture {
    /// Opens a capture and reads its header.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let mut file = File::open(path).with_context(|| format!("{name} cannot be read"))?;
        let mut magic = [0; 4];
        let begun = file.read_exact(&mut magic);
        if begun.is_ok() && magic == PCAPNG_MAGIC {
            bail!("{name} is a pcapng file; convert it with `editcap -F pcap {name} trace.pcap`");
        }
        file.rewind().with_context(|| format!("{name} cannot be read"))?;
        let reader = PcapReader::new(BufReader::new(file))
            .map_err(|error| anyhow!("{name} is not a pcap file ({}); capture with `tcpdump -w`", describe(&error)))?;
        let link = reader.header().datalink;
        let known = [DataLink::ETHERNET, DataLink::LINUX_SLL, DataLink::LINUX_SLL2, DataLink::RAW, DataLink::IPV4, DataLink::IPV6];
        if !known.contains(&link) {
            bail!("{name} has packets of the link type {link:?}; capture on an Ethernet interface, or on all (`tcpdump -i any`)");
        }
        Ok(Self { reader, link, name, packets: 0, start: None })
    }

    /// The next packet; an error ends the capture.
    pub(super) fn next(&mut self) -> Option<Result<Found>> {
        let packet = match self.reader.next_packet()? {
            Ok(packet) => packet,
            Err(error) => {
                return Some(Err(anyhow!("{} is damaged behind packet {}: {}", self.name, self.packets, describe(&error))));
            }
        };
        self.packets += 1;
        let start = *self.start.get_or_insert(packet.timestamp);
        let since = packet.timestamp.saturating_sub(start);
        let whole = packet.orig_len as usize <= packet.data.len();
        Some(Ok(datagram(self.link, &packet.data, since, whole).map_or(Found::Other, Found::Datagram)))
    }
}

fn datagram(link: DataLink, packet: &[u8], since: Duration, whole: bool) -> Option<Datagram> {
    let packet = match link {
        DataLink::ETHERNET => LaxSlicedPacket::from_ethernet(packet).ok()?,
        DataLink::LINUX_SLL => cooked(packet, SLL)?,
        DataLink::LINUX_SLL2 => cooked(packet, SLL2)?,
        _ => LaxSlicedPacket::from_ip(packet).ok()?,
    };
    let (from, to): (IpAddr, IpAddr) = match packet.net.as_ref()? {
        LaxNetSlice::Ipv4(ip) => (ip.header().source_addr().into(), ip.header().destination_addr().into()),
        LaxNetSlice::Ipv6(ip) => (ip.header().source_addr().into(), ip.header().destination_addr().into()),
        LaxNetSlice::Arp(_) => return None,
    };
    let Some(TransportSlice::Udp(udp)) = packet.transport.as_ref() else { return None };
    Some(Datagram {
        since,
        from: (from, udp.source_port()).into(),
        to: (to, udp.destination_port()).into(),
        payload: udp.payload().to_vec(),
        whole,
    })
}

/// What is behind a Linux cooked header.
fn cooked(packet: &[u8], (length, type_at): (usize, usize)) -> Option<LaxSlicedPacket<'_>> {
    let protocol = packet.get(type_at..)?.first_chunk::<2>()?;
    Some(LaxSlicedPacket::from_ether_type(EtherType(u16::from_be_bytes(*protocol)), packet.get(length..)?))
}

fn describe(error: &PcapError) -> String {
    match error {
        PcapError::IncompleteBuffer => "it ends in the middle".to_owned(),
        PcapError::IoError(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => "it ends in the middle".to_owned(),
        PcapError::IoError(error) => error.to_string(),
        error => error.to_string(),
    }
}
