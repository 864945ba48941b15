//! Segmentation offload at a TUN device: the kernel hands over TCP and UDP packets of one flow as one, and takes them so.
//!
//! Called by [`super::device`]. The cost of a TUN device is that of its system calls, and behind each of the kernel's whole network stack. With
//! offload a burst crosses in one call. On the path every packet is by itself: what is read is cut before it enters, and only packets that
//! are due together are joined, as the interrupt moderation and GRO of a network interface do.
//!
//! Source: the kernel's `virtio_net.h` and `if_tun.h` (`IFF_VNET_HDR`, `TUNSETOFFLOAD`).
//!
//! Invariant: the packets are those that a device without offload would hand over, byte for byte, with their checksums. A packet whose
//! checksum is wrong is not joined, so a flipped bit is revealed.

use std::io;
use tun_rs::{GROTable, VIRTIO_NET_HDR_LEN, VirtioNetHdr, checksum, gso_split};

/// The longest IP packet, behind the header of the device.
const WHOLE_BYTES: usize = VIRTIO_NET_HDR_LEN + (64 << 10);
/// No segment is longer: the MTU of the interface, rounded up.
const SEGMENT_BYTES: usize = 2048;
/// The most segments of a packet: 64 KiB with the smallest MSS of Linux, 48 bytes.
const SEGMENTS_MAX: usize = (64 << 10) / 48 + 1;
/// `VIRTIO_NET_HDR_F_NEEDS_CSUM`: the checksum is of the pseudo-header alone.
const NEEDS_CHECKSUM: u8 = 1;
/// The bit that says that CWR is set; the kinds are without it.
const GSO_ECN: u8 = 0x80;
/// `VIRTIO_NET_HDR_GSO_UDP_L4`: UDP datagrams of one length.
const GSO_UDP: u8 = 5;
/// Where the length of a TCP header is in it.
const TCP_LENGTH_AT: usize = 12;

/// Where packets are read to: as the kernel hands them over, and cut into those of the path.
pub(super) struct ReadBuffers {
    pub(super) whole: Vec<u8>,
    segments: Vec<Vec<u8>>,
    lengths: Vec<usize>,
}

impl ReadBuffers {
    pub(super) fn new() -> Self {
        Self { whole: vec![0; WHOLE_BYTES], segments: Vec::new(), lengths: Vec::new() }
    }

    /// Hands the packets that the first `length` bytes of `whole` are to `take`, in order; returns how many there were. What the kernel would not
    /// write is none.
    pub(super) fn cut(&mut self, length: usize, mut take: impl FnMut(&[u8])) -> usize {
        let Some((header, packet)) = self.whole.get_mut(..length).and_then(|whole| whole.split_at_mut_checked(VIRTIO_NET_HDR_LEN)) else {
            return 0;
        };
        let Ok(header) = VirtioNetHdr::decode(header) else { return 0 };
        if header.gso_type == 0 {
            if header.flags & NEEDS_CHECKSUM != 0 && complete_checksum(packet, &header).is_none() {
                return 0;
            }
            take(packet);
            return 1;
        }
        let Some(header) = with_header_length(packet, header) else { return 0 };
        let payload = packet.len().saturating_sub(usize::from(header.hdr_len));
        let count = payload.div_ceil(usize::from(header.gso_size).max(1)).min(SEGMENTS_MAX);
        if self.segments.len() < count {
            self.segments.resize_with(count, || vec![0; SEGMENT_BYTES]);
            self.lengths.resize(count, 0);
        }
        let is_v6 = packet.first().is_some_and(|first| first >> 4 == 6);
        let (Some(segments), Some(lengths)) = (self.segments.get_mut(..count), self.lengths.get_mut(..count)) else { return 0 };
        let Ok(cut) = gso_split(packet, header, segments, lengths, 0, is_v6) else { return 0 };
        for (segment, length) in segments.iter().zip(lengths.iter()).take(cut) {
            take(segment.get(..*length).unwrap_or_default());
        }
        cut
    }
}

/// The header with the length of IP and transport header. Why not as it comes: for a forwarded packet the kernel gives the whole length.
fn with_header_length(packet: &[u8], header: VirtioNetHdr) -> Option<VirtioNetHdr> {
    let transport = usize::from(header.csum_start);
    let length = match header.gso_type & !GSO_ECN {
        GSO_UDP => 8,
        _ => u16::from(packet.get(transport + TCP_LENGTH_AT)? >> 4) * 4,
    };
    Some(VirtioNetHdr { hdr_len: header.csum_start.checked_add(length)?, ..header })
}

/// Completes a checksum that is of the pseudo-header alone.
fn complete_checksum(packet: &mut [u8], header: &VirtioNetHdr) -> Option<()> {
    let transport = packet.get_mut(usize::from(header.csum_start)..)?;
    let at = usize::from(header.csum_offset);
    let field = transport.get_mut(at..at + 2)?;
    let pseudo = u16::from_be_bytes([*field.first()?, *field.get(1)?]);
    field.fill(0);
    let sum = !checksum(transport, u64::from(pseudo));
    // RFC 768: a computed zero is sent as all ones. In TCP the two are the same number.
    let sum = if sum == 0 { u16::MAX } else { sum };
    transport.get_mut(at..at + 2)?.copy_from_slice(&sum.to_be_bytes());
    Some(())
}

/// Packets that leave together, with room before each for the header of the device.
pub(super) struct WriteBatch {
    frames: Vec<Vec<u8>>,
    count: usize,
    table: GROTable,
}

impl WriteBatch {
    pub(super) fn new() -> Self {
        Self { frames: Vec::new(), count: 0, table: GROTable::new() }
    }

    pub(super) fn clear(&mut self) {
        self.count = 0;
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    pub(super) fn add(&mut self, packet: &[u8]) {
        if self.frames.len() == self.count {
            self.frames.push(Vec::with_capacity(VIRTIO_NET_HDR_LEN + SEGMENT_BYTES));
        }
        if let Some(frame) = self.frames.get_mut(self.count) {
            frame.clear();
            frame.resize(VIRTIO_NET_HDR_LEN, 0);
            frame.extend_from_slice(packet);
            self.count += 1;
        }
    }

    /// Joins the packets of each flow that continue each other, and hands all to `tun`.
    pub(super) fn write(&mut self, tun: &tun_rs::SyncDevice) -> io::Result<()> {
        let frames = self.frames.get_mut(..self.count).unwrap_or_default();
        tun.send_multiple(&mut self.table, frames, VIRTIO_NET_HDR_LEN).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An IPv4 packet of UDP with this payload; its checksum is of the pseudo-header alone.
    fn udp(payload: &[u8]) -> Vec<u8> {
        let length = 8 + payload.len() as u16;
        let mut packet = vec![0x45, 0, 0, 0, 0, 1, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        packet[2..4].copy_from_slice(&(20 + length).to_be_bytes());
        let header = !checksum(&packet, 0);
        packet[10..12].copy_from_slice(&header.to_be_bytes());
        packet.extend([0x10, 0, 0x20, 0]);
        packet.extend(length.to_be_bytes());
        packet.extend(pseudo(&packet, length).to_be_bytes());
        packet.extend_from_slice(payload);
        packet
    }

    /// The sum of the pseudo-header.
    fn pseudo(packet: &[u8], length: u16) -> u16 {
        let mut words = packet[12..20].to_vec();
        words.extend([0, 17]);
        words.extend(length.to_be_bytes());
        checksum(&words, 0)
    }

    fn is_whole(packet: &[u8]) -> bool {
        let length = u16::from_be_bytes([packet[24], packet[25]]);
        usize::from(length) + 20 == packet.len()
            && checksum(&packet[..20], 0) == u16::MAX
            && checksum(&packet[20..], u64::from(pseudo(packet, length))) == u16::MAX
    }

    fn read(header: VirtioNetHdr, packet: &[u8]) -> Vec<Vec<u8>> {
        let mut buffers = ReadBuffers::new();
        header.encode(&mut buffers.whole).unwrap();
        buffers.whole[VIRTIO_NET_HDR_LEN..][..packet.len()].copy_from_slice(packet);
        let mut packets = Vec::new();
        let count = buffers.cut(VIRTIO_NET_HDR_LEN + packet.len(), |packet| packets.push(packet.to_vec()));
        assert_eq!(count, packets.len());
        packets
    }

    fn header(gso_type: u8, gso_size: u16) -> VirtioNetHdr {
        VirtioNetHdr { flags: NEEDS_CHECKSUM, gso_type, hdr_len: 999, gso_size, csum_start: 20, csum_offset: 6 }
    }

    #[test]
    fn a_packet_alone_has_its_checksum_when_it_enters_the_path() {
        let packets = read(header(0, 0), &udp(&[7; 101]));
        assert_eq!(packets.len(), 1);
        assert!(is_whole(&packets[0]) && packets[0][28..] == [7; 101]);
    }

    #[test]
    fn datagrams_that_are_handed_over_as_one_enter_the_path_one_by_one() {
        let payload: Vec<u8> = (0..250).collect();
        let packets = read(header(GSO_UDP, 100), &udp(&payload));
        assert!(packets.iter().all(|packet| is_whole(packet)));
        assert_eq!(packets.iter().map(|packet| packet[28..].to_vec()).collect::<Vec<_>>(), payload.chunks(100).collect::<Vec<_>>());
    }

    #[test]
    fn what_the_kernel_would_not_write_is_no_packet() {
        for (header, packet) in [
            (header(GSO_UDP, 0), udp(&[1; 50])),
            (header(GSO_UDP, 10), vec![0x45; 12]),
            (header(1, 10), vec![0x45; 25]),
            (header(0, 0), vec![0x45; 21]),
            (header(7, 10), udp(&[1; 50])),
        ] {
            assert!(read(header, &packet).is_empty(), "{header:?}");
        }
        assert_eq!(ReadBuffers::new().cut(3, |_| panic!("a packet of three bytes")), 0);
    }
}
