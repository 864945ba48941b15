//! The acknowledgments of TCP as bytes.

use crate::encoded::{encoded, seal};
use crate::tcp::Feedback;
use proptest::prelude::*;
use segstream_base::codec::Reader;
use segstream_base::halves::Packet as _;

proptest! {
    #[test]
    fn every_acknowledgment_comes_back_from_its_bytes(connection in any::<u32>(), next in any::<u32>()) {
        let answer = Feedback { connection, next };
        prop_assert_eq!(Feedback::decode(&mut Reader::new(&encoded(&answer))), Ok(answer));
    }

    #[test]
    fn a_flipped_bit_is_found(next in any::<u32>(), at in 0usize..12, bit in 0u8..8) {
        let mut bytes = encoded(&Feedback { connection: 1, next });
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
        let _ = Feedback::decode(&mut Reader::new(&bytes));
    }
}
