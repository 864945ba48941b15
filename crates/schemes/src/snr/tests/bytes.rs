//! The packets of SNR as bytes.

use crate::encoded::{assert_payload_is_covered, encoded, seal};
use crate::snr::{Feedback, Forward, Received, SenderState};
use proptest::prelude::*;
use segstream_base::codec::{DecodeErrorKind, Reader};
use segstream_base::halves::{Packet, SegmentNumber};

fn data() -> impl Strategy<Value = Forward> {
    (any::<u32>(), any::<u32>(), 1u16.., any::<prop::sample::Index>(), 0u16..2000, 0u16..2000).prop_map(
        |(connection, block, packets, index, stride, short)| {
            let packet = index.index(usize::from(packets)) as u16;
            let bytes = if packet + 1 == packets { stride.min(short) } else { stride };
            Forward::Data { connection, block, packet, packets, stride, bytes }
        },
    )
}

fn sender_state() -> impl Strategy<Value = Forward> {
    (any::<u32>(), any::<u32>(), any::<u32>(), any::<u16>(), any::<u16>(), any::<bool>()).prop_map(
        |(connection, interval, blocks, a, b, end)| {
            Forward::State(SenderState { connection, interval, blocks, sent: a.min(b), packets: a.max(b), end })
        },
    )
}

fn receiver_state() -> impl Strategy<Value = Feedback> {
    (any::<u32>(), any::<u32>(), any::<u32>(), any::<bool>(), 0u16..=512, prop::collection::vec(0u16..600, 0..40)).prop_map(
        |(connection, interval, cumulative, ended, count, marks)| {
            let mut received = Received::new(count);
            marks.into_iter().for_each(|mark| received.mark(mark));
            Feedback { connection, interval, cumulative, ended, received }
        },
    )
}

#[test]
fn a_data_packet_costs_18_bytes_and_says_where_its_payload_goes() {
    let packet = Forward::Data { connection: 1, block: 5, packet: 2, packets: 3, stride: 1006, bytes: 40 };
    let bytes = encoded(&packet);
    assert_eq!((bytes.len(), Forward::OVERHEAD_BYTES), (58, 18));
    let span = packet.payload(0).unwrap();
    assert_eq!((span.at, span.bytes, span.segment, span.offset), (16, 40, SegmentNumber(5), 2012));
    assert_eq!(packet.payload(1), None);
    assert_payload_is_covered(&packet);
}

#[test]
fn a_state_for_36_blocks_has_26_bytes() {
    let state = Feedback { connection: 1, interval: 2, cumulative: 3, ended: false, received: Received::new(36) };
    assert_eq!(encoded(&state).len(), 26);
}

#[test]
fn a_packet_outside_its_block_is_refused() {
    let bytes = encoded(&Forward::Data { connection: 0, block: 0, packet: 3, packets: 3, stride: 0, bytes: 0 });
    assert_eq!(Forward::decode(&mut Reader::new(&bytes)).unwrap_err().kind, DecodeErrorKind::OutOfRange(3));
    let bytes = encoded(&Forward::Data { connection: 0, block: 0, packet: 1, packets: 3, stride: 9, bytes: 4 });
    assert_eq!(Forward::decode(&mut Reader::new(&bytes)).unwrap_err().kind, DecodeErrorKind::OutOfRange(4));
}

proptest! {
    #[test]
    fn every_packet_comes_back_from_its_bytes(data in data(), state in sender_state(), report in receiver_state()) {
        prop_assert_eq!(Forward::decode(&mut Reader::new(&encoded(&data))), Ok(data));
        prop_assert_eq!(Forward::decode(&mut Reader::new(&encoded(&state))), Ok(state));
        prop_assert_eq!(Feedback::decode(&mut Reader::new(&encoded(&report))), Ok(report));
    }

    #[test]
    fn a_flipped_bit_in_front_of_the_payload_is_found(data in data(), report in receiver_state(), at in 0usize..16, bit in 0u8..8) {
        let mut bytes = encoded(&data);
        bytes[at] ^= 1 << bit;
        prop_assert!(Forward::decode(&mut Reader::new(&bytes)).is_err());
        let mut bytes = encoded(&report);
        bytes[at] ^= 1 << bit;
        prop_assert!(Feedback::decode(&mut Reader::new(&bytes)).is_err());
    }

    #[test]
    fn no_bytes_make_a_decoder_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..80), kind in 0u8..4, repair in any::<bool>()) {
        if bytes.len() >= 8 {
            (bytes[4], bytes[5]) = (0, kind);
        }
        if repair {
            seal(&mut bytes);
        }
        if let Ok(packet) = Forward::decode(&mut Reader::new(&bytes)) {
            prop_assert_eq!(packet.encoded_len(), bytes.len());
        }
        let _ = Feedback::decode(&mut Reader::new(&bytes));
    }
}
