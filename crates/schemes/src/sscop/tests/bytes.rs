//! The PDUs of SSCOP as bytes.

use crate::encoded::encoded;
use crate::sscop::{Feedback, Forward};
use proptest::prelude::*;
use segstream_base::codec::{DecodeErrorKind, Reader};
use segstream_base::halves::{Packet, SegmentNumber};

#[test]
fn the_bytes_are_those_of_the_standard() {
    let forward = |packet: Forward| encoded(&packet);
    assert_eq!(forward(Forward::Bgn { n_sq: 5, n_mr: 0x01_0203 }), [0, 0, 0, 5, 0x01, 1, 2, 3]);
    assert_eq!(forward(Forward::Poll { n_ps: 0xfe_dcba, n_s: 0x01_0203 }), [0, 0xfe, 0xdc, 0xba, 0x0a, 1, 2, 3]);
    assert_eq!(forward(Forward::End { by_sscop: false }), [0, 0, 0, 0, 0x03, 0, 0, 0]);
    assert_eq!(forward(Forward::End { by_sscop: true }), [0, 0, 0, 0, 0x13, 0, 0, 0]);
    assert_eq!(forward(Forward::Sd { n_s: 0x0a_0b0c, bytes: 0 }), [0x08, 0x0a, 0x0b, 0x0c]);
    assert_eq!(forward(Forward::Sd { n_s: 1, bytes: 4 }), [0, 0, 0, 0, 0x08, 0, 0, 1]);
    let back = |packet: Feedback| encoded(&packet);
    assert_eq!(back(Feedback::Bgak { n_mr: 400 }), [0, 0, 0, 0, 0x02, 0, 1, 0x90]);
    assert_eq!(back(Feedback::Endak), [0, 0, 0, 0, 0x04, 0, 0, 0]);
    let stat = |list: Vec<u32>| Feedback::Stat { list, n_ps: 1, n_mr: 2, n_r: 3 };
    assert_eq!(back(stat(vec![])), [0, 0, 0, 1, 0, 0, 0, 2, 0x0b, 0, 0, 3]);
    assert_eq!(back(stat(vec![3, 5])), [0, 0, 0, 3, 0, 0, 0, 5, 0, 0, 0, 1, 0, 0, 0, 2, 0x0b, 0, 0, 3]);
    assert_eq!(back(Feedback::Ustat { list: [7, 9], n_mr: 2, n_r: 3 }), [0, 0, 0, 7, 0, 0, 0, 9, 0, 0, 0, 2, 0x0c, 0, 0, 3]);
}

#[test]
fn an_sd_is_padded_to_whole_words_and_says_by_how_much() {
    for (bytes, first, padding) in [(1u16, 0xc8, 3), (2, 0x88, 2), (3, 0x48, 1), (4, 0x08, 0)] {
        let packet = Forward::Sd { n_s: 17, bytes };
        let encoded = encoded(&packet);
        assert_eq!((encoded.len(), encoded[4]), (8, first));
        assert_eq!(usize::from(bytes) + padding, 4);
        let span = packet.payload(0).unwrap();
        assert_eq!((span.at, span.bytes, span.segment, span.offset), (0, usize::from(bytes), SegmentNumber(17), 0));
        assert_eq!(packet.payload(1), None);
        // What the store writes there does not disturb the decoder.
        let mut filled = encoded;
        filled[..usize::from(bytes)].fill(0x5a);
        assert_eq!(Forward::decode(&mut Reader::new(&filled)), Ok(packet));
    }
}

#[test]
fn what_is_no_pdu_of_its_direction_is_refused() {
    let forward = |bytes: &[u8]| Forward::decode(&mut Reader::new(bytes)).unwrap_err().kind;
    let back = |bytes: &[u8]| Feedback::decode(&mut Reader::new(bytes)).unwrap_err().kind;
    assert_eq!(forward(&[]), DecodeErrorKind::UnexpectedEnd);
    assert_eq!(forward(&[0x08, 0, 0]), DecodeErrorKind::OutOfRange(3));
    assert_eq!(forward(&[0x48, 0, 0, 0]), DecodeErrorKind::OutOfRange(1), "padding without payload");
    assert_eq!(forward(&[0x0a, 0, 0, 0]), DecodeErrorKind::UnexpectedEnd, "a POLL without N(PS)");
    assert_eq!(forward(&[0, 0, 0, 0, 0, 0, 0, 0, 0x01, 0, 0, 0]), DecodeErrorKind::TrailingBytes(4), "user-to-user data");
    assert_eq!(forward(&[0, 0, 0, 0, 0, 0, 0, 0, 0x0b, 0, 0, 0]), DecodeErrorKind::UnknownType(0xb), "a STAT");
    assert_eq!(back(&[0, 0, 0, 0, 0x0b, 0, 0, 0]), DecodeErrorKind::UnexpectedEnd, "a STAT without N(MR)");
    assert_eq!(back(&[0, 0, 0, 0, 0x08, 0, 0, 0]), DecodeErrorKind::UnknownType(8), "an SD");
    assert_eq!(back(&[0; 16]), DecodeErrorKind::UnknownType(0));
    assert_eq!(back(&[0, 0, 0, 1, 0, 0, 0, 2, 0x0c, 0, 0, 0]), DecodeErrorKind::UnexpectedEnd, "a USTAT of one element");
    assert_eq!(forward(&[0; 65_544]), DecodeErrorKind::UnknownType(0));
    let mut long = vec![0; 65_544];
    long[65_540] = 0x08;
    assert_eq!(forward(&long), DecodeErrorKind::OutOfRange(65_540));
}

proptest! {
    #[test]
    fn every_pdu_comes_back_from_its_bytes(
        numbers in prop::array::uniform4(0u32..1 << 24), n_sq in any::<u8>(), bytes in any::<u16>(), flag in any::<bool>(),
        list in prop::collection::vec(0u32..1 << 24, 0..70),
    ) {
        let [a, b, c, d] = numbers;
        let forward = [Forward::Bgn { n_sq, n_mr: a }, Forward::Sd { n_s: a, bytes }, Forward::Poll { n_ps: a, n_s: b }, Forward::End { by_sscop: flag }];
        for packet in forward {
            prop_assert_eq!(Forward::decode(&mut Reader::new(&encoded(&packet))), Ok(packet));
        }
        let ustat = Feedback::Ustat { list: [a, b], n_mr: c, n_r: d };
        for packet in [Feedback::Bgak { n_mr: a }, Feedback::Stat { list, n_ps: a, n_mr: b, n_r: c }, ustat, Feedback::Endak] {
            prop_assert_eq!(Feedback::decode(&mut Reader::new(&encoded(&packet))), Ok(packet));
        }
    }

    #[test]
    fn no_bytes_make_a_decoder_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..80), kind in any::<u8>()) {
        let length = bytes.len();
        if length >= 4 {
            bytes[length - 4] = kind;
        }
        if let Ok(packet) = Forward::decode(&mut Reader::new(&bytes)) {
            prop_assert_eq!(packet.encoded_len(), length);
        }
        if let Ok(packet) = Feedback::decode(&mut Reader::new(&bytes)) {
            prop_assert_eq!(packet.encoded_len(), length);
        }
    }
}
