//! The acknowledgments of adaptive acknowledgment as bytes.

use crate::adaptive_ack::Feedback;
use crate::encoded::{encoded, seal};
use proptest::prelude::*;
use segstream_base::codec::{DecodeErrorKind, Reader};
use segstream_base::halves::Packet as _;

fn acknowledgment() -> impl Strategy<Value = Feedback> {
    any::<[u32; 4]>().prop_map(|[connection, a, b, c]| {
        let mut numbers = [a, b, c];
        numbers.sort_unstable();
        let [cumulative, gap_in, gap_out] = numbers;
        Feedback { connection, cumulative, gap_in, gap_out }
    })
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
    let answer = |cumulative, gap_in, gap_out| encoded(&Feedback { connection: 0, cumulative, gap_in, gap_out });
    let refused = |bytes: Vec<u8>| Feedback::decode(&mut Reader::new(&bytes)).unwrap_err().kind;
    assert_eq!(refused(answer(5, 4, 6)), DecodeErrorKind::OutOfRange(4));
    assert_eq!(refused(answer(5, 9, 8)), DecodeErrorKind::OutOfRange(8));
    let mut bytes = answer(5, 6, 8);
    bytes[25] = 1;
    seal(&mut bytes);
    assert_eq!(refused(bytes), DecodeErrorKind::OutOfRange(1), "what is reserved is zero");
    let mut bytes = answer(5, 6, 8);
    bytes.push(0);
    bytes.push(0);
    seal(&mut bytes);
    assert_eq!(refused(bytes), DecodeErrorKind::TrailingBytes(2));
}

proptest! {
    #[test]
    fn every_acknowledgment_comes_back_from_its_bytes(answer in acknowledgment()) {
        prop_assert_eq!(Feedback::decode(&mut Reader::new(&encoded(&answer))), Ok(answer));
    }

    #[test]
    fn a_flipped_bit_is_found(answer in acknowledgment(), at in 0usize..32, bit in 0u8..8) {
        let mut bytes = encoded(&answer);
        bytes[at] ^= 1 << bit;
        prop_assert!(Feedback::decode(&mut Reader::new(&bytes)).is_err());
    }

    #[test]
    fn no_bytes_make_the_decoder_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..80), kind in 0u8..4, repair in any::<bool>()) {
        if bytes.len() >= 8 {
            (bytes[4], bytes[5]) = (0, kind);
        }
        if repair {
            seal(&mut bytes);
        }
        if let Ok(packet) = Feedback::decode(&mut Reader::new(&bytes)) {
            prop_assert_eq!(encoded(&packet), bytes);
        }
    }
}
