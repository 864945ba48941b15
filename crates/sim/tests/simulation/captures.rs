//! A capture of a run, read again with the libraries that others read it with.

use crate::arq::{Forward, Mode, PACKET_BYTES, Settings, backlog, pair, setup};
use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use pcap_file::pcap::PcapReader;
use pcap_file::{DataLink, TsResolution};
use segstream_base::codec::Reader;
use segstream_base::halves::Packet;
use segstream_sim::{End, Pcap, Vantage, pcap};
use std::io;

#[derive(Debug, PartialEq, Eq)]
struct Datagram {
    nanos: u128,
    from: ([u8; 4], u16),
    to: ([u8; 4], u16),
    payload: Vec<u8>,
}

fn read(capture: &[u8]) -> Vec<Datagram> {
    let mut reader = PcapReader::new(capture).unwrap();
    assert_eq!((reader.header().datalink, reader.header().ts_resolution), (DataLink::RAW, TsResolution::NanoSecond));
    let mut datagrams = Vec::new();
    while let Some(packet) = reader.next_packet() {
        let packet = packet.unwrap();
        let sliced = SlicedPacket::from_ip(&packet.data).unwrap();
        let (Some(NetSlice::Ipv4(ip)), Some(TransportSlice::Udp(udp))) = (&sliced.net, &sliced.transport) else { panic!("{sliced:?}") };
        let sum = udp.to_header().calc_checksum_ipv4(&ip.header().to_header(), udp.payload()).unwrap();
        assert_eq!(udp.checksum(), sum);
        datagrams.push(Datagram {
            nanos: packet.timestamp.as_nanos(),
            from: (ip.header().source(), udp.source_port()),
            to: (ip.header().destination(), udp.destination_port()),
            payload: udp.payload().to_vec(),
        });
    }
    datagrams
}

fn capture(vantage: Vantage) -> Vec<Datagram> {
    let mut setup = setup(2);
    setup.forward.loss = "list:1".parse().unwrap();
    let mut run = pair(&Settings::filling(Mode::GoBackN, 2), backlog(4), &setup, 1, Pcap::new(Vec::new(), vantage).unwrap());
    assert_eq!(run.settle(), End::Settled);
    read(&run.into_observer().finish().unwrap())
}

#[test]
fn a_capture_at_the_sender_has_what_it_sent_and_what_reached_it() {
    let datagrams = capture(Vantage::Sender);
    let (forward, back): (Vec<_>, Vec<_>) = datagrams.iter().partition(|datagram| datagram.from == pcap::SENDER);
    // Packets 0 1 2 3, of which 1 is lost, then 1 2 3 again.
    let numbers: Vec<u64> = forward
        .iter()
        .map(|datagram| {
            assert_eq!((datagram.to, datagram.payload.len()), (pcap::RECEIVER, PACKET_BYTES as usize));
            match Forward::decode(&mut Reader::new(&datagram.payload)).unwrap() {
                Forward::Data { number, .. } => number,
                other => panic!("{other:?}"),
            }
        })
        .collect();
    assert_eq!(numbers, [0, 1, 2, 3, 1, 2, 3]);
    assert!(forward.iter().enumerate().all(|(slot, datagram)| datagram.nanos == slot as u128 * 1_000_000));
    assert_eq!(back.len(), 6);
    assert!(back.iter().all(|datagram| datagram.from == pcap::RECEIVER && datagram.to == pcap::SENDER));
    assert!(datagrams.is_sorted_by_key(|datagram| datagram.nanos));
}

#[test]
fn a_capture_at_the_receiver_lacks_what_was_lost() {
    let datagrams = capture(Vantage::Receiver);
    let (forward, back): (Vec<_>, Vec<_>) = datagrams.iter().partition(|datagram| datagram.from == pcap::SENDER);
    assert_eq!((forward.len(), back.len()), (6, 6));
    assert_eq!(forward[0].nanos, 2_000_000);
    assert_eq!(back[0].nanos, 2_000_000);
}

#[test]
fn an_error_of_the_writer_comes_out_at_the_end() {
    struct Full(usize);
    impl io::Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or_else(|| io::Error::other("the disk is full"))?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let settings = Settings::filling(Mode::GoBackN, 2);
    let mut run = pair(&settings, backlog(4), &setup(2), 1, Pcap::new(Full(3000), Vantage::Sender).unwrap());
    assert_eq!(run.settle(), End::Settled);
    assert_eq!(run.into_observer().finish().err().unwrap().to_string(), "the disk is full");
    assert!(Pcap::new(Full(3), Vantage::Sender).is_err());
}
