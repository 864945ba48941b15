//! The buffer pool: holds datagrams between arrival and departure.
//!
//! Called by the relay. Buffers are reused, so a link in steady state allocates nothing.
//!
//! Invariant: no more than [`DATAGRAMS_MAX`] datagrams and [`BYTES_MAX`] bytes are kept, whatever is sent.

/// The maximum number of datagrams: 1 Gbit/s of 1,100-byte datagrams for more than two seconds.
pub(super) const DATAGRAMS_MAX: usize = 262_144;

/// The maximum number of bytes.
pub(super) const BYTES_MAX: usize = 512 << 20;

/// A free buffer that has grown beyond this is deallocated. Why: otherwise one burst of large datagrams would occupy its memory
/// for the whole run.
const BUFFER_KEPT_BYTES: usize = 2048;

/// Identifies a datagram in the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Slot(usize);

impl Slot {
    /// Its number, below [`DATAGRAMS_MAX`].
    pub(super) const fn number(self) -> usize {
        self.0
    }
}

/// The pool.
#[derive(Debug, Default)]
pub(super) struct PacketBuffers {
    buffers: Vec<Vec<u8>>,
    free: Vec<Slot>,
    bytes: usize,
}

impl PacketBuffers {
    /// Stores a copy of `datagram`; `None` if the pool is full.
    pub(super) fn keep(&mut self, datagram: &[u8]) -> Option<Slot> {
        if self.len() >= DATAGRAMS_MAX || self.bytes + datagram.len() > BYTES_MAX {
            return None;
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.buffers.push(Vec::new());
            Slot(self.buffers.len() - 1)
        });
        self.bytes += datagram.len();
        let buffer = self.buffers.get_mut(slot.0)?;
        debug_assert!(buffer.is_empty(), "a free slot has a datagram");
        buffer.extend_from_slice(datagram);
        debug_assert!(self.len() <= DATAGRAMS_MAX && self.bytes <= BYTES_MAX);
        Some(slot)
    }

    /// The datagram in `slot`; empty after it was released.
    pub(super) fn datagram(&self, slot: Slot) -> &[u8] {
        self.buffers.get(slot.0).map_or(&[], Vec::as_slice)
    }

    /// The same, mutable.
    pub(super) fn datagram_mut(&mut self, slot: Slot) -> &mut [u8] {
        self.buffers.get_mut(slot.0).map_or(&mut [], Vec::as_mut_slice)
    }

    /// Stores a second copy of the datagram in `slot`; `None` if the pool is full.
    pub(super) fn copy(&mut self, slot: Slot) -> Option<Slot> {
        let datagram = self.datagram(slot).to_vec();
        self.keep(&datagram)
    }

    /// Flips bit `bit` of the datagram in `slot`, counted from the first byte's most significant one.
    pub(super) fn flip(&mut self, slot: Slot, bit: usize) {
        if let Some(byte) = self.buffers.get_mut(slot.0).and_then(|buffer| buffer.get_mut(bit / 8)) {
            *byte ^= 0x80 >> (bit % 8);
        }
    }

    /// Frees `slot`. Each slot is released once.
    pub(super) fn release(&mut self, slot: Slot) {
        let Some(buffer) = self.buffers.get_mut(slot.0) else { return };
        self.bytes -= buffer.len();
        buffer.clear();
        if buffer.capacity() > BUFFER_KEPT_BYTES {
            *buffer = Vec::new();
        }
        self.free.push(slot);
        debug_assert!(self.free.len() <= self.buffers.len(), "a slot is released twice");
        debug_assert!(self.len() > 0 || self.bytes == 0, "{} bytes of no datagram", self.bytes);
    }

    /// How many datagrams are stored.
    pub(super) fn len(&self) -> usize {
        self.buffers.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_store_refuses_and_takes_again_when_one_has_left() {
        let mut store = PacketBuffers::default();
        let slots: Vec<Slot> = (0..DATAGRAMS_MAX).map(|_| store.keep(&[7]).unwrap()).collect();
        assert_eq!(store.keep(&[8]), None);
        store.release(slots[5]);
        let again = store.keep(&[9]).unwrap();
        assert_eq!((again, store.datagram(again)), (slots[5], &[9][..]));
    }

    #[test]
    fn large_datagrams_are_bounded_by_their_bytes() {
        let mut store = PacketBuffers::default();
        let large = vec![0; 64 << 10];
        let kept = (0..DATAGRAMS_MAX).map_while(|_| store.keep(&large)).count();
        assert_eq!(kept, BYTES_MAX / large.len());
    }

    #[test]
    fn a_flip_changes_one_bit_and_stays_inside() {
        let mut store = PacketBuffers::default();
        let slot = store.keep(&[0, 0]).unwrap();
        store.flip(slot, 9);
        assert_eq!(store.datagram(slot), [0, 0x40]);
        store.flip(slot, 16);
        assert_eq!(store.datagram(slot), [0, 0x40]);
    }
}
