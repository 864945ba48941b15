//! The packets of adaptive acknowledgment as bytes.

use crate::adaptive_ack::{Feedback, Forward, Place};
use proptest::prelude::*;
use segstream_base::codec::{DecodeErrorKind, Reader, Writer};
use segstream_base::halves::{Packet, SegmentNumber};

fn encoded(packet: &impl Packet) -> Vec<u8> {
    let mut bytes = vec![0xaa; packet.encoded_len()];
    let mut writer = Writer::new(&mut bytes);
    packet.encode(&mut writer);
    assert_eq!(writer.finish(), Ok(packet.encoded_len()));
    bytes
}

/// Puts the right checksum behind a packet of which the first `covered` bytes are summed.
fn seal(bytes: &mut [u8], covered: usize) {
    if let Some((body, sum)) = bytes.split_last_chunk_mut::<2>() {
        let covered = &body[..body.len().min(covered)];
        let total = covered.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0))).sum::<u32>();
        *sum = (!(((total & 0xffff) + (total >> 16)) as u16)).to_be_bytes();
    }
}

fn data() -> impl Strategy<Value = Forward> {
    (any::<[u32; 3]>(), 1u16.., any::<prop::sample::Index>(), 0u16..2000, 0u16..2000).prop_map(
        |([connection, sequence, segment], packets, index, stride, short)| {
            let place = Place { segment, packet: index.index(usize::from(packets)) as u16, packets };
            let bytes = if place.is_last() { stride.min(short) } else { stride };
            Forward::Data { connection, sequence, place, stride, bytes }
        },
    )
}

fn acknowledgment() -> impl Strategy<Value = Feedback> {
    any::<[u32; 4]>().prop_map(|[connection, a, b, c]| {
        let mut numbers = [a, b, c];
        numbers.sort_unstable();
        let [cumulative, gap_in, gap_out] = numbers;
        Feedback { connection, cumulative, gap_in, gap_out }
    })
}

#[test]
fn a_data_packet_costs_22_bytes_and_says_where_its_payload_goes() {
    let place = Place { segment: 5, packet: 2, packets: 3 };
    let packet = Forward::Data { connection: 1, sequence: 17, place, stride: 1002, bytes: 40 };
    let bytes = encoded(&packet);
    assert_eq!((bytes.len(), Forward::OVERHEAD_BYTES), (62, 22));
    let span = packet.payload(0).unwrap();
    assert_eq!((span.at, span.bytes, span.segment, span.offset), (20, 40, SegmentNumber(5), 2004));
    assert_eq!(packet.payload(1), None);
    // What the store writes there is not covered by the checksum and does not disturb the decoder.
    let mut filled = bytes;
    filled[span.at..span.at + span.bytes].fill(0x5a);
    assert_eq!(Forward::decode(&mut Reader::new(&filled)), Ok(packet));
}

#[test]
fn an_acknowledgment_has_the_32_bytes_of_table_1() {
    let answer = Feedback { connection: 0x0102_0304, cumulative: 2, gap_in: 7, gap_out: 8 };
    let bytes = encoded(&answer);
    assert_eq!(bytes.len(), 32);
    assert_eq!(bytes[..18], [1, 2, 3, 4, 0, 2, 0, 0, 0, 2, 0, 0, 0, 7, 0, 0, 0, 8]);
    assert_eq!(bytes[18..30], [0; 12]);
    assert!(!answer.is_data() && answer.payload(0).is_none());
}

#[test]
fn what_contradicts_itself_does_not_decode() {
    let packet = |packet, packets, stride, bytes| {
        let place = Place { segment: 0, packet, packets };
        encoded(&Forward::Data { connection: 0, sequence: 0, place, stride, bytes })
    };
    let refused = |bytes: Vec<u8>| Forward::decode(&mut Reader::new(&bytes)).unwrap_err().kind;
    assert_eq!(refused(packet(3, 3, 0, 0)), DecodeErrorKind::OutOfRange(3));
    assert_eq!(refused(packet(1, 3, 9, 4)), DecodeErrorKind::OutOfRange(4));
    let answer = |cumulative, gap_in, gap_out| encoded(&Feedback { connection: 0, cumulative, gap_in, gap_out });
    let refused = |bytes: Vec<u8>| Feedback::decode(&mut Reader::new(&bytes)).unwrap_err().kind;
    assert_eq!(refused(answer(5, 4, 6)), DecodeErrorKind::OutOfRange(4));
    assert_eq!(refused(answer(5, 9, 8)), DecodeErrorKind::OutOfRange(8));
    let mut bytes = answer(5, 6, 8);
    bytes[25] = 1;
    seal(&mut bytes, 30);
    assert_eq!(refused(bytes), DecodeErrorKind::OutOfRange(1), "what is reserved is zero");
    let mut bytes = answer(5, 6, 8);
    bytes.push(0);
    bytes.push(0);
    seal(&mut bytes, 32);
    assert_eq!(refused(bytes), DecodeErrorKind::TrailingBytes(2));
}

proptest! {
    #[test]
    fn every_packet_comes_back_from_its_bytes(data in data(), answer in acknowledgment(), numbers in any::<[u32; 2]>()) {
        let [connection, number] = numbers;
        for packet in [data, Forward::End { connection, sequence: number }] {
            prop_assert_eq!(Forward::decode(&mut Reader::new(&encoded(&packet))), Ok(packet));
        }
        prop_assert_eq!(Feedback::decode(&mut Reader::new(&encoded(&answer))), Ok(answer));
    }

    #[test]
    fn a_flipped_bit_in_front_of_the_payload_is_found(data in data(), answer in acknowledgment(), at in 0usize..32, bit in 0u8..8) {
        let mut bytes = encoded(&data);
        bytes[at % 20] ^= 1 << bit;
        prop_assert!(Forward::decode(&mut Reader::new(&bytes)).is_err());
        let mut bytes = encoded(&answer);
        bytes[at] ^= 1 << bit;
        prop_assert!(Feedback::decode(&mut Reader::new(&bytes)).is_err());
    }

    #[test]
    fn no_bytes_make_a_decoder_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..80), kind in 0u8..4, repair in any::<bool>()) {
        if bytes.len() >= 8 {
            (bytes[4], bytes[5]) = (0, kind);
        }
        if repair {
            seal(&mut bytes, if kind == 0 { 20 } else { 80 });
        }
        if let Ok(packet) = Forward::decode(&mut Reader::new(&bytes)) {
            prop_assert_eq!(packet.encoded_len(), bytes.len());
        }
        if let Ok(packet) = Feedback::decode(&mut Reader::new(&bytes)) {
            prop_assert_eq!(encoded(&packet), bytes);
        }
    }
}
