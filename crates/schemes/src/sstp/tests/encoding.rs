//! The bytes of the packets (EC 4.1).

use super::*;
use crate::encoded::assert_payload_is_covered;
use proptest::prelude::*;
use segstream_base::codec::{DecodeError, Reader, Writer};
use segstream_base::halves::Packet;
use segstream_blocks::Bitmap;

fn bytes_of<P: Packet>(packet: &P) -> Vec<u8> {
    let mut buffer = vec![0xaa; packet.encoded_len()];
    let mut writer = Writer::new(&mut buffer);
    packet.encode(&mut writer);
    assert_eq!(writer.finish(), Ok(packet.encoded_len()));
    buffer
}

fn read<P: Packet>(bytes: &[u8]) -> Result<P, DecodeError> {
    P::decode(&mut Reader::new(bytes))
}

fn forward() -> impl Strategy<Value = Forward> {
    let data = (any::<u32>(), any::<u32>(), 0..u32::MAX, 0..u16::MAX, 1u16..2000, any::<u16>(), any::<bool>()).prop_map(
        |(connection, shipment, segment, packet, room, less, last)| {
            Forward::Data(Data { connection, shipment, segment, packet, room, bytes: room - less % (room + 1), last })
        },
    );
    let mark = (any::<u32>(), any::<u32>(), 1u32.., 1u16..).prop_map(|(connection, shipment, segments, packets)| Mark {
        connection,
        shipment,
        segments,
        packets,
    });
    prop_oneof![
        3 => data,
        1 => mark.clone().prop_map(Forward::KeepAlive),
        1 => mark.clone().prop_map(Forward::EndStream),
        1 => mark.prop_map(Forward::GroupEnd),
    ]
}

fn any_feedback() -> impl Strategy<Value = Feedback> {
    let grant = (any::<u32>(), any::<u32>(), 0..u32::MAX, 0..u32::MAX, any::<u32>())
        .prop_map(|(connection, control, segment, accepted, limit)| Grant { connection, control, segment: Some(segment), accepted, limit });
    let pack = (grant.clone(), any::<[bool; 3]>()).prop_map(|(grant, [soft, holes, end])| Feedback::Pack(Pack { grant, soft, holes, end }));
    let snak = (grant, prop::collection::vec(any::<bool>(), 1..600)).prop_map(|(grant, bits)| {
        let mut request = Bitmap::new();
        request.reset(bits.len() as u32);
        for (at, _) in bits.iter().enumerate().filter(|bit| *bit.1) {
            request.set(at as u32);
        }
        Feedback::Snak(Snak { grant, request })
    });
    prop_oneof![pack, snak]
}

#[test]
fn the_layout_is_18_bytes_around_the_data_and_counts_from_1() {
    let data = Data { connection: 0x0102_0304, shipment: 9, segment: 4, packet: 6, bytes: 3, room: 3, last: false };
    let bytes = bytes_of(&Forward::Data(data));
    assert_eq!(bytes.len(), 3 + 18);
    assert_eq!(bytes[..16], [1, 2, 3, 4, 0, 0, 0, 7, 0, 0, 0, 9, 0, 0, 0, 5]);
    let mut request = Bitmap::new();
    request.reset(10);
    request.set(0);
    request.set(9);
    let grant = Grant { connection: 1, control: 2, segment: Some(3), accepted: 3, limit: 8 };
    let bytes = bytes_of(&Feedback::Snak(Snak { grant, request }));
    assert_eq!(bytes[4..8], [0, 4, 0, 10]);
    assert_eq!(bytes[12..24], [0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 8]);
    assert_eq!(bytes[24..28], [0b0111_1111, 0b1011_1111, 0xff, 0xff], "a 0 asks, the first packet is the highest bit");
    let update = Pack { grant: Grant { segment: None, accepted: 0, ..grant }, soft: true, holes: false, end: false };
    assert_eq!(bytes_of(&Feedback::Pack(update))[4..20], [1, 3, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 1]);
}

#[test]
fn the_payload_lies_behind_the_header_at_its_place_in_the_segment() {
    let data = Data { connection: 1, shipment: 0, segment: 4, packet: 6, bytes: 70, room: 100, last: true };
    let span = Forward::Data(data).payload(0).unwrap();
    assert_eq!((span.at, span.bytes, span.segment.0, span.offset), (16, 70, 4, 600));
    assert!(Forward::Data(data).payload(1).is_none());
    assert!(Forward::Data(Data { bytes: 0, ..data }).payload(0).is_none());
    for (bytes, room) in [(70, 100), (70, 101), (99, 100), (100, 100), (101, 101), (5, 101)] {
        assert_payload_is_covered(&Forward::Data(Data { bytes, room, ..data }));
    }
}

proptest! {
    #[test]
    fn a_packet_of_the_sender_reads_back(packet in forward()) {
        prop_assert_eq!(read::<Forward>(&bytes_of(&packet)), Ok(packet));
    }

    #[test]
    fn a_packet_of_the_receiver_reads_back(packet in any_feedback()) {
        prop_assert_eq!(read::<Feedback>(&bytes_of(&packet)), Ok(packet));
    }

    #[test]
    fn a_damaged_or_shortened_header_is_refused(packet in any_feedback(), at in 0usize..24, flip in 1u8.., cut in 1usize..30) {
        let mut bytes = bytes_of(&packet);
        prop_assert!(read::<Feedback>(&bytes[..bytes.len() - cut.min(bytes.len())]).is_err());
        bytes[at] ^= flip;
        prop_assert!(read::<Feedback>(&bytes).is_err());
    }

    #[test]
    fn a_damaged_header_of_a_data_packet_is_refused(packet in forward(), at in 0usize..16, flip in 1u8..) {
        let mut bytes = bytes_of(&packet);
        bytes[at] ^= flip;
        prop_assert!(read::<Forward>(&bytes).is_err());
    }

    #[test]
    fn garbage_is_refused_or_harmless(bytes in prop::collection::vec(any::<u8>(), 0..80), packets in prop::collection::vec(forward(), 0..20), answers in prop::collection::vec(any_feedback(), 0..20)) {
        let _ = (read::<Forward>(&bytes), read::<Feedback>(&bytes));
        for config in [small(), Config { acknowledgment: Acknowledgment::SoftEager, buffer: 2, reorder: 3, ..small() }, operating_point(4, 4)] {
            let mut sender = Sender::new(config, Instant::ZERO).unwrap();
            let mut receiver = Receiver::new(config, Instant::ZERO).unwrap();
            sender.submit(Instant::ZERO, whole_segment(&config)).unwrap();
            let mut now = Instant::ZERO;
            drain(&mut sender, &mut now);
            for packet in &packets {
                let mut packet = *packet;
                match &mut packet {
                    Forward::Data(data) => data.connection = config.connection,
                    Forward::KeepAlive(mark) | Forward::EndStream(mark) | Forward::GroupEnd(mark) => mark.connection = config.connection,
                }
                receiver.handle_forward(now, &packet);
                feedback(&mut receiver, now);
                receiver.handle_timeout(now);
            }
            for answer in &answers {
                let mut answer = answer.clone();
                match &mut answer {
                    Feedback::Pack(pack) => pack.grant.connection = config.connection,
                    Feedback::Snak(snak) => snak.grant.connection = config.connection,
                }
                sender.handle_feedback(now, &answer);
                drain(&mut sender, &mut now);
            }
        }
    }
}
