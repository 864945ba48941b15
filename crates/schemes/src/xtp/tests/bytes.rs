//! The packets of XTP as bytes.

use crate::encoded::encoded;
use crate::xtp::{Feedback, Forward, Options, Place};
use proptest::prelude::*;
use segstream_base::codec::{DecodeErrorKind, Reader};
use segstream_base::halves::{Packet, SegmentNumber};

fn one_of(options: &'static [Options]) -> impl Strategy<Value = Options> {
    prop::collection::vec(any::<bool>(), options.len())
        .prop_map(move |set| options.iter().zip(set).fold(Options::NONE, |all, (option, set)| all.with_if(*option, set)))
}

fn data() -> impl Strategy<Value = Forward> {
    let options = one_of(&[Options::SREQ, Options::DREQ, Options::EOM, Options::WCLOSE]);
    (0u64..1 << 63, options, any::<u32>(), any::<u64>(), any::<[u32; 2]>(), 0u16..2000).prop_map(
        |(key, options, sync, sequence, [segment, offset], bytes)| {
            let place = Place { segment, offset };
            Forward::Data { key, options, sync, sequence, place, bytes }
        },
    )
}

fn control() -> impl Strategy<Value = Forward> {
    let options = one_of(&[Options::SREQ, Options::DREQ, Options::WCLOSE]);
    (0u64..1 << 63, options, any::<u32>(), any::<u64>()).prop_map(|(key, options, sync, sequence)| Forward::Control {
        key,
        options,
        sync,
        sequence,
    })
}

fn feedback() -> impl Strategy<Value = Feedback> {
    let steps = prop::collection::vec((1u64..5000, 1u64..5000), 0..40);
    let options = one_of(&[Options::FASTNAK, Options::RCLOSE]);
    (0u64..1 << 63, options, 0u64..1 << 40, 0u64..1000, any::<u32>(), steps, 0u64..1000).prop_map(
        |(key, options, rseq, behind, echo, steps, window)| {
            let mut at = rseq;
            let spans: Vec<_> = steps
                .into_iter()
                .map(|(gap, length)| {
                    let start = at + gap;
                    at = start + length;
                    start..at
                })
                .collect();
            Feedback { key, options, dseq: rseq.saturating_sub(behind), rseq, alloc: at + window, echo, spans }
        },
    )
}

#[test]
fn a_data_packet_costs_40_bytes_and_says_where_its_payload_goes() {
    let place = Place { segment: 5, offset: 1968 };
    let options = Options::SREQ.and(Options::EOM);
    let packet = Forward::Data { key: 0x0102, options, sync: 9, sequence: 17, place, bytes: 3 };
    let mut bytes = encoded(&packet);
    assert_eq!((bytes.len(), Forward::OVERHEAD_BYTES), (43, 40));
    let sum = [bytes[16], bytes[17]];
    let header = [
        [0, 0, 0, 0, 0, 0, 1, 2],           // KEY
        [0x40, 0x45, 0, 0x20, 0, 0, 0, 11], // CMD: NOCHECK, SREQ, EOM, BTAG, version 1, DATA; DLEN
        [sum[0], sum[1], 0, 0, 0, 0, 0, 9], // CHECK, SORT, SYNC
        [0, 0, 0, 0, 0, 0, 0, 17],          // SEQ
        [0, 0, 0, 5, 0, 0, 7, 0xb0],        // BTAG
    ];
    assert_eq!(bytes[..40], header.concat());
    let span = packet.payload(0).unwrap();
    assert_eq!((span.at, span.bytes, span.segment, span.offset), (40, 3, SegmentNumber(5), 1968));
    assert_eq!(packet.payload(1), None);
    // What the store writes there is not covered by the checksum and does not disturb the decoder.
    bytes[40..].fill(0x5a);
    assert_eq!(Forward::decode(&mut Reader::new(&bytes)), Ok(packet));
}

#[test]
fn a_cntl_of_the_receiver_has_the_return_bit_and_grows_by_spans() {
    let plain = Feedback { key: 3, options: Options::FASTNAK, dseq: 8, rseq: 9, alloc: 100, echo: 6, spans: Vec::new() };
    let bytes = encoded(&plain);
    assert_eq!((bytes.len(), bytes[0], bytes[9], bytes[11], bytes[31]), (52, 0x80, 0x80, 0x21, 8));
    assert_eq!(bytes[32..], [0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 100, 0, 0, 0, 6]);
    let gaps = Feedback { spans: vec![20..30, 40..50], ..plain };
    let bytes = encoded(&gaps);
    assert_eq!((bytes.len(), bytes[11]), (52 + 4 + 32, 0x23));
    assert_eq!(bytes[52..], [[0, 0, 0, 2].as_slice(), &[0; 7], &[20], &[0; 7], &[30], &[0; 7], &[40], &[0; 7], &[50]].concat());
}

#[test]
fn a_packet_of_the_other_direction_another_version_or_an_unknown_option_is_refused() {
    let state = Feedback { key: 3, options: Options::NONE, dseq: 0, rseq: 0, alloc: 0, echo: 0, spans: Vec::new() };
    let control = Forward::Control { key: 3, options: Options::SREQ, sync: 1, sequence: 0 };
    assert!(matches!(Forward::decode(&mut Reader::new(&encoded(&state))).unwrap_err().kind, DecodeErrorKind::OutOfRange(_)));
    assert!(matches!(Feedback::decode(&mut Reader::new(&encoded(&control))).unwrap_err().kind, DecodeErrorKind::OutOfRange(_)));
    for (at, to) in [(11, 0x41), (11, 0x27), (9, 0x04), (8, 0x40)] {
        let mut bytes = encoded(&control);
        bytes[at] = to;
        seal(&mut bytes);
        assert!(Forward::decode(&mut Reader::new(&bytes)).is_err(), "byte {at} is {to:#x}");
    }
}

#[test]
fn spans_that_overlap_touch_or_do_not_ascend_are_refused() {
    let state = |spans| Feedback { key: 3, options: Options::NONE, dseq: 0, rseq: 10, alloc: 100, echo: 0, spans };
    assert!(Feedback::decode(&mut Reader::new(&encoded(&state(vec![11..20, 21..30])))).is_ok());
    let lone = |span| core::iter::once(span).collect();
    let reversed = core::ops::Range { start: 20, end: 15 };
    for spans in
        [lone(10..20), lone(5..20), vec![11..20, 20..30], vec![11..20, 15..30], vec![30..40, 11..20], lone(reversed), lone(90..101)]
    {
        assert!(Feedback::decode(&mut Reader::new(&encoded(&state(spans.clone())))).is_err(), "{spans:?}");
    }
    let low = Feedback { dseq: 11, ..state(Vec::new()) };
    assert!(Feedback::decode(&mut Reader::new(&encoded(&low))).is_err(), "DSEQ is above RSEQ");
}

/// Puts the right checksum in, over the header alone if it says so.
fn seal(bytes: &mut [u8]) {
    bytes[16..18].fill(0);
    let covered = if bytes[8] & 0x40 == 0 { &bytes[..] } else { &bytes[..32] };
    let mut sum: u32 = covered.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0))).sum();
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    bytes[16..18].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

proptest! {
    #[test]
    fn every_packet_comes_back_from_its_bytes(data in data(), control in control(), state in feedback()) {
        for packet in [data, control] {
            prop_assert_eq!(Forward::decode(&mut Reader::new(&encoded(&packet))), Ok(packet));
        }
        prop_assert_eq!(Feedback::decode(&mut Reader::new(&encoded(&state))), Ok(state));
    }

    #[test]
    fn a_flipped_bit_in_the_header_or_a_state_is_found(data in data(), state in feedback(), at in any::<prop::sample::Index>(), bit in 0u8..8) {
        let mut bytes = encoded(&data);
        bytes[at.index(32)] ^= 1 << bit;
        prop_assert!(Forward::decode(&mut Reader::new(&bytes)).is_err());
        let mut bytes = encoded(&state);
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        prop_assert!(Feedback::decode(&mut Reader::new(&bytes)).is_err());
    }

    #[test]
    fn no_bytes_make_a_decoder_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..120), kind in 0u8..5, plain in any::<bool>(), repair in any::<bool>()) {
        if repair && bytes.len() >= 60 {
            (bytes[8], bytes[9]) = if kind == 0 { (0x40, 0x01) } else { (0, 0) };
            (bytes[10], bytes[11]) = (0, 0x20 | kind);
            if plain {
                bytes[0] |= 0x80;
            }
            let length = bytes.len() as u32 - 32;
            bytes[12..16].copy_from_slice(&length.to_be_bytes());
            bytes[18..20].fill(0);
            bytes[52..56].copy_from_slice(&((length - 24) / 16).to_be_bytes());
            seal(&mut bytes);
        }
        if let Ok(packet) = Forward::decode(&mut Reader::new(&bytes)) {
            prop_assert_eq!(packet.encoded_len(), bytes.len());
        }
        if let Ok(state) = Feedback::decode(&mut Reader::new(&bytes)) {
            prop_assert_eq!(state.encoded_len(), bytes.len());
        }
    }
}
