//! CRC-16/CCITT-FALSE: polynomial 0x1021, all ones at the start, nothing reflected or inverted at the end.
//!
//! Called by the packets. HT Table 2 gives the CRC two bytes and says no more.
//!
//! Invariant: the check value over `123456789` is 0x29b1.

const POLYNOMIAL: u16 = 0x1021;

/// The effect of one byte.
const TABLE: [u16; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ POLYNOMIAL };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

/// The CRC of `bytes`.
pub(super) fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0xffff, |crc: u16, byte| crc << 8 ^ TABLE[usize::from((crc >> 8) as u8 ^ byte)])
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_check_value_is_that_of_ccitt_false() {
        assert_eq!(super::crc16(b"123456789"), 0x29b1);
        assert_eq!(super::crc16(&[]), 0xffff);
    }
}
