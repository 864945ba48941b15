//! The packets, byte for byte.

use crate::encoded::assert_payload_is_covered;
use crate::htpnet::{
    Class, Control, Coverage, Data, Feedback, Forward, Pairs, RangeList, Reason, ReceiverState, Release, Step, Terms, TransmitterState,
};
use proptest::prelude::*;
use segstream_base::Duration;
use segstream_base::codec::{DecodeError, DecodeErrorKind, Reader, Writer};
use segstream_base::halves::{Packet, SegmentNumber};

fn encode<P: Packet>(packet: &P) -> Vec<u8> {
    let mut bytes = vec![0xaa; packet.encoded_len()];
    let mut writer = Writer::new(&mut bytes);
    packet.encode(&mut writer);
    assert_eq!(writer.finish(), Ok(packet.encoded_len()));
    bytes
}

fn decode<P: Packet>(bytes: &[u8]) -> Result<P, DecodeError> {
    P::decode(&mut Reader::new(bytes))
}

/// The bytes of `hex`, and behind them their CRC.
fn sealed(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(|byte| *byte != b' ').collect();
    let mut bytes: Vec<u8> = digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect();
    bytes.extend(super::super::checksum::crc16(&bytes).to_be_bytes());
    bytes
}

fn class(number: u8) -> Class {
    Class::new(number).unwrap()
}

fn ranges(room: Pairs, pairs: &[(u16, u16)]) -> RangeList {
    let mut list = RangeList::new(room);
    pairs.iter().for_each(|(bseq, eseq)| assert!(list.push(*bseq, *eseq)));
    list
}

/// HT 3.4: up to 300 received, 301 and 302 missing, 303 to 350 received.
fn example(room: Pairs) -> ReceiverState {
    ReceiverState {
        connection: 7,
        esync: 20,
        etime: 0x1234,
        spgap: 50,
        class: class(5),
        rate: 250,
        caack: 300,
        coverage: Coverage::Whole,
        ranges: ranges(room, &[(303, 350)]),
        credit: 64,
    }
}

#[test]
fn control_packets_have_the_fields_and_lengths_of_table_2() {
    let state = TransmitterState { connection: 7, sync: 20, time: 0x1234, lseq: 350, class: class(5), rate: 250 };
    let txs = encode(&Forward::State(state));
    assert_eq!(txs, sealed("07 01 0014 1234 015e 05 00fa"));
    assert_eq!(txs.len(), 13);
    let rxs = encode(&Feedback::State(example(Pairs::Four)));
    assert_eq!(rxs, sealed("07 02 0014 1234 0032 15 00fa 012c 012f015e 00000000 00000000 00000000 0040"));
    assert_eq!(rxs.len(), 33);
    let all = ranges(Pairs::Eight, &[(1, 2); 8]);
    let rxs = encode(&Feedback::State(ReceiverState { coverage: Coverage::Continued, ranges: all, ..example(Pairs::Eight) }));
    assert_eq!((rxs.len(), rxs[8]), (49, 0x8d), "eight pairs, a continuation, class 5");
    assert_eq!(encode(&Feedback::State(example(Pairs::Eight))).len(), 49);
}

#[test]
fn set_up_and_release_are_as_documented() {
    let terms = Terms { class: class(7), rate: 250, credit: 64, pairs: Pairs::Eight };
    let table = [
        (Control::Request { connection: 9, terms }, "09 03 07 00fa 0040 08"),
        (Control::Confirm { connection: 9, terms }, "09 04 07 00fa 0040 08"),
        (Control::Release { connection: 9, release: Release { lseq: 0xffff, segments: 2 } }, "09 05 ffff 00000002"),
        (Control::Released { connection: 9, step: Step::Answer }, "09 06 00"),
        (Control::Released { connection: 9, step: Step::Last }, "09 06 01"),
        (Control::Reject { connection: 9, reason: Reason::Class }, "09 07 02"),
    ];
    for (control, hex) in table {
        assert_eq!(encode(&Forward::Control(control)), sealed(hex));
        assert_eq!(encode(&Feedback::Control(control)), sealed(hex));
        assert_eq!(decode::<Feedback>(&sealed(hex)), Ok(Feedback::Control(control)));
    }
}

#[test]
fn a_data_packet_is_six_bytes_around_its_data_and_says_where_the_payload_belongs() {
    let data = Data { connection: 7, seq: 0xfffe, segment: 3, packet: 2, last: true, room: 2034, bytes: 5 };
    let bytes = encode(&Forward::Data(data));
    assert_eq!(&bytes[..12], [7, 0, 0xff, 0xfe, 0, 0, 0, 3, 0x80, 2, 0x07, 0xf2]);
    assert_eq!(&bytes[12..17], [0; 5], "the payload is the store's to fill in");
    assert_eq!(bytes.len(), 19);
    let packet: Forward = decode(&bytes).unwrap();
    assert_eq!(packet, Forward::Data(data));
    let span = packet.payload(0).unwrap();
    assert_eq!((span.at, span.bytes, span.segment, span.offset), (12, 5, SegmentNumber(3), 4068));
    assert!(packet.is_data() && packet.payload(1).is_none());
    assert_payload_is_covered(&packet);
}

#[test]
fn what_has_no_meaning_is_refused() {
    let refused = |hex: &str| decode::<Feedback>(&sealed(hex)).unwrap_err();
    assert_eq!(refused("07 09").kind, DecodeErrorKind::UnknownType(9));
    assert_eq!(refused("07 01 0014 1234 015e 05 00fa").kind, DecodeErrorKind::UnknownType(1), "a TXS does not come back");
    assert_eq!((refused("09 07 09").field, refused("09 06 02").field), ("REASON", "STEP"));
    assert_eq!(refused("09 03 08 0000 0000 04").field, "CLASS");
    assert_eq!(refused("09 03 07 0000 0000 05").field, "PAIRS");
    let five = "07 02 0014 1234 0032 55 00fa 012c 012f015e 00000000 00000000 00000000 0040";
    assert_eq!(refused(five).field, "CLASS", "five of four pairs");
    let unused = "07 02 0014 1234 0032 05 00fa 012c 012f015e 00000000 00000000 00000000 0040";
    assert_eq!(refused(unused).field, "RANGE", "a pair that is not used is (0, 0)");
    let mut short = encode(&Forward::Data(Data { connection: 7, seq: 1, segment: 0, packet: 0, last: false, room: 9, bytes: 9 }));
    short.truncate(short.len() - 3);
    short.extend(super::super::checksum::crc16(&short).to_be_bytes());
    assert_eq!(decode::<Forward>(&short).unwrap_err().field, "ROOM", "only the last packet may be short");
    assert_eq!(decode::<Forward>(&[7]).unwrap_err().kind, DecodeErrorKind::UnexpectedEnd);
}

#[test]
fn a_node_of_the_network_may_raise_the_gap_and_never_lower_it() {
    let mut state = TransmitterState { connection: 7, sync: 0, time: 0, lseq: 0, class: class(7), rate: 250 };
    state.raise_gap(Duration::from_micros(100));
    assert_eq!(state.rate, 250);
    state.raise_gap(Duration::from_nanos(300_001));
    assert_eq!(state.rate, 301);
}

proptest! {
    #[test]
    fn every_report_comes_back(
        fields in any::<(u8, u16, u16, u16, u16, u16, u16)>(),
        number in 0u8..8,
        eight in any::<bool>(),
        coverage in prop_oneof![Just(Coverage::Whole), Just(Coverage::Continued), Just(Coverage::Succeeding)],
        pairs in prop::collection::vec(any::<(u16, u16)>(), 0..8),
    ) {
        let room = if eight { Pairs::Eight } else { Pairs::Four };
        let mut list = RangeList::new(room);
        for (bseq, eseq) in pairs {
            list.push(bseq, eseq);
        }
        let coverage = if eight && coverage == Coverage::Succeeding { Coverage::Continued } else { coverage };
        let (connection, esync, etime, spgap, rate, caack, credit) = fields;
        let state = ReceiverState { connection, esync, etime, spgap, class: class(number), rate, caack, coverage, ranges: list, credit };
        prop_assert_eq!(decode::<Feedback>(&encode(&Feedback::State(state))), Ok(Feedback::State(state)));
    }

    #[test]
    fn no_damage_of_one_bit_passes_and_no_input_panics(
        bytes in prop::collection::vec(any::<u8>(), 0..60),
        bit in 0usize..33 * 8,
    ) {
        let _ = decode::<Forward>(&bytes);
        let _ = decode::<Feedback>(&bytes);
        let mut damaged = encode(&Feedback::State(example(Pairs::Four)));
        damaged[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(decode::<Feedback>(&damaged).is_err());
    }
}
