//! What seals shipments: the session.
//!
//! Called by connections for every shipment in and out. A session adds a fixed number of bytes behind the
//! body and checks them on arrival; the 64-bit shipment number is part of what is sealed, so a number
//! rebuilt wrongly fails the check.
//!
//! Invariant: whatever `open` accepts was sealed by the peer's session under the same number.

use core::fmt;

/// Seals and opens shipments. A shipment is header, body and, behind them, the seal.
pub trait Session: fmt::Debug + Send {
    /// The bytes the seal takes behind the body.
    fn seal_bytes(&self) -> usize;
    /// Seals in place: `shipment` ends with [`Session::seal_bytes`] bytes to be overwritten.
    fn seal(&mut self, number: u64, shipment: &mut [u8]);
    /// Opens in place. The length of header and body, or `None` when the seal is broken.
    fn open(&mut self, number: u64, shipment: &mut [u8]) -> Option<usize>;
}

/// Integrity only: CRC32C over the shipment and its full number. Anyone can read and forge it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plain;

impl Plain {
    /// The bytes of the seal.
    pub const SEAL_BYTES: usize = 4;

    pub(crate) fn checksum(number: u64, bytes: &[u8]) -> [u8; 4] {
        crc32c::crc32c_append(crc32c::crc32c(&number.to_be_bytes()), bytes).to_be_bytes()
    }
}

impl Session for Plain {
    fn seal_bytes(&self) -> usize {
        Self::SEAL_BYTES
    }

    fn seal(&mut self, number: u64, shipment: &mut [u8]) {
        if let Some((bytes, seal)) = shipment.split_last_chunk_mut::<4>() {
            *seal = Self::checksum(number, bytes);
        }
    }

    fn open(&mut self, number: u64, shipment: &mut [u8]) -> Option<usize> {
        let (bytes, seal) = shipment.split_last_chunk::<4>()?;
        (*seal == Self::checksum(number, bytes)).then_some(bytes.len())
    }
}

/// Integrity with the byte overhead of an AEAD, so that tests see the datagrams that encryption will make.
#[derive(Clone, Copy, Debug, Default)]
pub struct AeadSized;

impl AeadSized {
    /// The bytes of the seal: those of AES-GCM's and ChaCha20-Poly1305's tags.
    pub const SEAL_BYTES: usize = 16;
}

impl Session for AeadSized {
    fn seal_bytes(&self) -> usize {
        Self::SEAL_BYTES
    }

    fn seal(&mut self, number: u64, shipment: &mut [u8]) {
        if let Some((bytes, seal)) = shipment.split_last_chunk_mut::<16>() {
            *seal = [0; 16];
            seal[..4].copy_from_slice(&Plain::checksum(number, bytes));
        }
    }

    fn open(&mut self, number: u64, shipment: &mut [u8]) -> Option<usize> {
        let (bytes, seal) = shipment.split_last_chunk::<16>()?;
        (seal[..4] == Plain::checksum(number, bytes) && seal[4..] == [0; 12]).then_some(bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn a_broken_seal_is_found(session: &mut dyn Session) {
        let mut shipment = vec![7u8; 50];
        shipment.resize(50 + session.seal_bytes(), 0);
        session.seal(1 << 40, &mut shipment);
        assert_eq!(session.open(1 << 40, &mut shipment.clone()), Some(50));
        assert_eq!(session.open((1 << 40) + (1 << 32), &mut shipment.clone()), None, "another number");
        for at in 0..shipment.len() {
            let mut changed = shipment.clone();
            changed[at] ^= 0x10;
            assert_eq!(session.open(1 << 40, &mut changed), None, "byte {at}");
        }
        assert_eq!(session.open(0, &mut [1, 2]), None);
    }

    #[test]
    fn every_changed_byte_and_every_wrong_number_breaks_the_seal() {
        a_broken_seal_is_found(&mut Plain);
        a_broken_seal_is_found(&mut AeadSized);
    }
}
