//! The packet store: a lock-free pool of reference-counted payload buffers, which stages pass by number (HT 3.1).
//!
//! Shared by the stages at the ends of a run: the host's end copies payload in, the stages pass the number of the slot, the other
//! end copies it out. The stages of the protocol never see its bytes.
//!
//! Invariant: payload is copied once in and once out, and no lock is taken. A slot is reused only after all its holders have released
//! it. A number that was not handed out reads nothing or other bytes. That is not undefined behaviour, because every byte is
//! read and written atomically.

use crossbeam_queue::ArrayQueue;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The number of a slot: what stages pass instead of payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u32);

/// Slots of one size for payload.
#[derive(Debug)]
pub struct PacketStore {
    slots: Box<[Place]>,
    free: ArrayQueue<u32>,
    slot_bytes: usize,
}

#[derive(Debug)]
struct Place {
    holders: AtomicU32,
    bytes: AtomicU32,
    words: Box<[AtomicU64]>,
}

const WORD: usize = size_of::<u64>();

impl PacketStore {
    /// A store of `slots` slots of `slot_bytes` bytes each; at least one of one byte.
    pub fn new(slots: u32, slot_bytes: u32) -> Self {
        let (slots, slot_bytes) = (slots.max(1), slot_bytes.max(1) as usize);
        let free = ArrayQueue::new(slots as usize);
        let place = |number: u32| {
            // Why the result is ignored: the queue has room for exactly these.
            let _ = free.push(number);
            let words = (0..slot_bytes.div_ceil(WORD)).map(|_| AtomicU64::new(0)).collect();
            Place { holders: AtomicU32::new(0), bytes: AtomicU32::new(0), words }
        };
        Self { slots: (0..slots).map(place).collect(), free, slot_bytes }
    }

    /// Copies `payload` into a free slot, which the caller then holds. `None` if no slot is free, or if the payload is longer than a
    /// slot.
    pub fn put(&self, payload: &[u8]) -> Option<Slot> {
        if payload.len() > self.slot_bytes {
            return None;
        }
        let number = self.free.pop()?;
        let place = self.slots.get(number as usize)?;
        let (words, tail) = payload.as_chunks::<WORD>();
        for (word, bytes) in place.words.iter().zip(words) {
            word.store(u64::from_le_bytes(*bytes), Ordering::Relaxed);
        }
        if let (Some(word), false) = (place.words.get(words.len()), tail.is_empty()) {
            let mut last = [0; WORD];
            last[..tail.len()].copy_from_slice(tail);
            word.store(u64::from_le_bytes(last), Ordering::Relaxed);
        }
        place.bytes.store(payload.len() as u32, Ordering::Relaxed);
        // Why relaxed is enough: the message with the number is sent after this, so its receiver sees the bytes.
        place.holders.store(1, Ordering::Release);
        Some(Slot(number))
    }

    /// Appends the payload of `slot` to `out` and returns its length. `None` if the slot is free.
    pub fn copy_out(&self, slot: Slot, out: &mut Vec<u8>) -> Option<usize> {
        let place = self.held(slot)?;
        let bytes = place.bytes.load(Ordering::Relaxed) as usize;
        let from = out.len();
        out.reserve(place.words.len() * WORD);
        for word in &place.words[..bytes.div_ceil(WORD).min(place.words.len())] {
            out.extend_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
        }
        out.truncate(from + bytes);
        Some(out.len() - from)
    }

    /// The length of the payload of `slot`; `None` if it is free.
    pub fn bytes(&self, slot: Slot) -> Option<u32> {
        Some(self.held(slot)?.bytes.load(Ordering::Relaxed))
    }

    /// Adds a holder of `slot`; called by a holder. Returns whether it was held.
    pub fn share(&self, slot: Slot) -> bool {
        let place = self.slots.get(slot.0 as usize);
        let more = |holders: u32| if holders == 0 { None } else { holders.checked_add(1) };
        place.is_some_and(|place| place.holders.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok())
    }

    /// Releases `slot`; without other holders it becomes free. Returns whether it was held.
    pub fn release(&self, slot: Slot) -> bool {
        let Some(place) = self.slots.get(slot.0 as usize) else {
            return false;
        };
        let fewer = |holders: u32| holders.checked_sub(1);
        let Ok(holders) = place.holders.fetch_update(Ordering::AcqRel, Ordering::Relaxed, fewer) else {
            return false;
        };
        if holders == 1 {
            // Why the result is ignored: a slot becomes free once for each time it was taken, so the queue has room.
            let _ = self.free.push(slot.0);
        }
        true
    }

    /// The number of free slots.
    pub fn free(&self) -> usize {
        self.free.len()
    }

    fn held(&self, slot: Slot) -> Option<&Place> {
        self.slots.get(slot.0 as usize).filter(|place| place.holders.load(Ordering::Acquire) > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payload_of_any_length_comes_out_as_it_went_in() {
        let store = PacketStore::new(2, 21);
        for bytes in 0..=21u8 {
            let payload: Vec<u8> = (1..=bytes).collect();
            let slot = store.put(&payload).unwrap();
            let mut out = vec![0xff];
            assert_eq!(store.copy_out(slot, &mut out), Some(payload.len()));
            assert_eq!(out[1..], payload);
            assert!(store.release(slot));
        }
        assert_eq!(store.put(&[0; 22]), None);
        assert_eq!(store.free(), 2);
    }

    #[test]
    fn a_slot_is_handed_out_again_only_when_all_have_let_it_go() {
        let store = PacketStore::new(1, 8);
        let slot = store.put(b"first").unwrap();
        assert!(store.share(slot));
        assert!(store.release(slot));
        assert_eq!(store.put(b"second"), None);
        assert!(store.release(slot));
        assert_eq!(store.put(b"second"), Some(slot));
    }

    #[test]
    fn a_number_nobody_handed_out_reads_nothing_and_frees_nothing() {
        let store = PacketStore::new(1, 8);
        for slot in [Slot(0), Slot(7)] {
            assert_eq!(store.copy_out(slot, &mut Vec::new()), None);
            assert!(!store.share(slot));
            assert!(!store.release(slot));
        }
        assert_eq!(store.free(), 1);
    }
}
