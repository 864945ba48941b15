//! Buffers of incoming segments, used again: a large one that comes fresh from the system costs more than all that is
//! copied into it.
//!
//! Called by the packet store. The application gets a segment as [`Bytes`]; when it drops the last of them, on whatever
//! thread, the buffer comes back.
//!
//! Invariant: a buffer belongs to one segment at a time; none is kept for a segment shorter than half of it. Buffers in use and spare ones
//! together stay within what the store was granted: see [`SegmentBuffers::take`].

use bytes::Bytes;
use std::sync::{Arc, Mutex, PoisonError};

/// From this size on the buffers of received segments are used again, and one may have twice the room of its segment. Smaller
/// ones come from the allocator, which is as fast there, and fit.
pub const RECYCLED_BYTES_MIN: usize = 16 << 10;
/// The most buffers that are kept without a segment, and the most bytes of them.
const SPARE_BUFFERS_MAX: usize = 32;
const SPARE_BYTES_MAX: usize = 32 << 20;

/// Where buffers come from, and go back to.
#[derive(Clone, Debug, Default)]
pub(crate) struct SegmentBuffers {
    /// None as long as no segment was large enough.
    spare: Option<Arc<Mutex<Spare>>>,
}

#[derive(Debug)]
struct Spare {
    buffers: Vec<Vec<u8>>,
    bytes: usize,
    bytes_max: usize,
}

impl Default for Spare {
    fn default() -> Self {
        Self { buffers: Vec::new(), bytes: 0, bytes_max: SPARE_BYTES_MAX }
    }
}

impl Spare {
    fn take(&mut self, length: usize, most: usize) -> Option<Vec<u8>> {
        let fits = |buffer: &Vec<u8>| (length..=length.saturating_mul(2).min(most)).contains(&buffer.capacity());
        // Why from the end: the buffer used last is the likeliest to be in a cache.
        let at = self.buffers.iter().rposition(fits)?;
        let buffer = self.buffers.swap_remove(at);
        self.bytes -= buffer.capacity();
        self.debug_assert_bounds();
        Some(buffer)
    }

    fn put(&mut self, buffer: Vec<u8>) {
        if self.buffers.len() < SPARE_BUFFERS_MAX && self.bytes + buffer.capacity() <= self.bytes_max {
            self.bytes += buffer.capacity();
            self.buffers.push(buffer);
            self.debug_assert_bounds();
        }
    }

    /// There is room for so many bytes of spare buffers, now and of those that come back.
    fn set_room(&mut self, bytes: usize) {
        self.bytes_max = bytes.min(SPARE_BYTES_MAX);
        while self.bytes > self.bytes_max
            && let Some(buffer) = self.buffers.pop()
        {
            self.bytes -= buffer.capacity();
        }
        self.debug_assert_bounds();
    }

    /// The bytes are those of the buffers, and both within their bounds.
    fn debug_assert_bounds(&self) {
        debug_assert_eq!(self.bytes, self.buffers.iter().map(Vec::capacity).sum::<usize>(), "spare bytes are miscounted");
        debug_assert!(self.buffers.len() <= SPARE_BUFFERS_MAX && self.bytes <= self.bytes_max);
    }
}

/// The bytes of one segment, lent to the application.
struct Lent {
    buffer: Vec<u8>,
    home: Arc<Mutex<Spare>>,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.buffer
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let buffer = core::mem::take(&mut self.buffer);
        self.home.lock().unwrap_or_else(PoisonError::into_inner).put(buffer);
    }
}

impl SegmentBuffers {
    /// A buffer of `length` bytes of any value: zeros, or what an earlier segment left. It and the spare ones take `room` bytes at most, or
    /// `length` if that is more.
    pub(crate) fn take(&self, length: usize, room: usize) -> Vec<u8> {
        let spare = self.spare.as_ref().filter(|_| length >= RECYCLED_BYTES_MIN);
        let used = spare.and_then(|spare| {
            let mut spare = spare.lock().unwrap_or_else(PoisonError::into_inner);
            let used = spare.take(length, room);
            spare.set_room(room.saturating_sub(used.as_ref().map_or(length, Vec::capacity)));
            used
        });
        match used {
            Some(mut buffer) => {
                buffer.resize(length, 0);
                buffer
            }
            // Why: fresh zeros come from the system already zeroed.
            None => vec![0; length],
        }
    }

    /// There is room for so many bytes of spare buffers from now on.
    pub(crate) fn set_room(&self, bytes: usize) {
        if let Some(spare) = &self.spare {
            spare.lock().unwrap_or_else(PoisonError::into_inner).set_room(bytes);
        }
    }

    /// Bytes of buffers without a segment.
    pub(crate) fn spare_bytes(&self) -> usize {
        self.spare.as_ref().map_or(0, |spare| spare.lock().unwrap_or_else(PoisonError::into_inner).bytes)
    }

    /// Lends a filled buffer to the application.
    pub(crate) fn lend(&mut self, buffer: Vec<u8>) -> Bytes {
        if buffer.capacity() < RECYCLED_BYTES_MIN {
            return buffer.into();
        }
        let home = self.spare.get_or_insert_default().clone();
        Bytes::from_owner(Lent { buffer, home })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_buffer_comes_back_when_the_application_drops_it() {
        let mut buffers = SegmentBuffers::default();
        let first = buffers.take(100_000, usize::MAX);
        let place = first.as_ptr();
        let lent = buffers.lend(first);
        let part = lent.slice(10..20);
        drop(lent);
        let other = buffers.take(100_000, usize::MAX);
        assert_ne!(other.as_ptr(), place, "part of it is still in use");
        std::thread::spawn(move || drop(part)).join().unwrap();
        let again = buffers.take(70_000, usize::MAX);
        assert_eq!(again.as_ptr(), place);
    }

    #[test]
    fn a_short_segment_does_not_keep_a_long_buffer() {
        let mut buffers = SegmentBuffers::default();
        let long = buffers.take(100_000, usize::MAX);
        drop(buffers.lend(long));
        assert!(buffers.take(20_000, usize::MAX).capacity() < 100_000);
    }

    #[test]
    fn spare_buffers_are_bounded() {
        let mut buffers = SegmentBuffers::default();
        let lent: Vec<Bytes> = (0..100)
            .map(|_| {
                let buffer = buffers.take(RECYCLED_BYTES_MIN, usize::MAX);
                buffers.lend(buffer)
            })
            .collect();
        drop(lent);
        let spare = buffers.spare.unwrap();
        let spare = spare.lock().unwrap();
        assert_eq!((spare.buffers.len(), spare.bytes), (SPARE_BUFFERS_MAX, SPARE_BUFFERS_MAX * RECYCLED_BYTES_MIN));
    }

    #[test]
    fn buffers_in_use_and_spare_ones_stay_within_what_there_is_room_for() {
        let mut buffers = SegmentBuffers::default();
        let lent: Vec<Bytes> = (0..3).map(|_| buffers.lend(vec![0; 100_000])).collect();
        drop(lent);
        assert!(buffers.take(60_000, 90_000).capacity() < 90_000, "one of 100,000 takes more than there is room for");
        let spare = buffers.spare.unwrap();
        assert_eq!(spare.lock().unwrap().bytes, 0, "30,000 bytes are left for spare ones");
    }
}
