//! The segment control blocks: what the sender knows of each segment it still keeps.
//!
//! Called by the sending half. Source: EC 4.2, sender operations: status, retransmission bitmap and the
//! time when the last packet of the segment's latest packet group left.
//!
//! Invariant: block `n` is that of segment `n` for every segment from S_l to the last submitted one; there
//! are never more of them than the ring holds, so a block is reused and nothing is allocated.

use segstream_base::Instant;
use segstream_blocks::Bitmap;

/// The state of a segment at the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) enum Status {
    /// Submitted, or in transmission for the first time.
    #[default]
    New,
    /// All of its latest group has left; its answer is awaited.
    Waiting,
    /// Packets that were requested are in the transmission queue.
    Queued,
    /// Firmly acknowledged: nothing of it is needed any more.
    Released,
}

/// What is known of one segment.
#[derive(Clone, Debug, Default)]
pub(super) struct ControlBlock {
    /// Its length in packets, at least 1.
    pub packets: u32,
    /// Bytes of data in its last packet.
    pub last_bytes: u16,
    /// Where it is.
    pub status: Status,
    /// Whether an answer to its latest group has been seen, or the group was a repetition: either way it
    /// gives no sample of the round trip.
    pub answered: bool,
    /// The receiver holds it but may discard it.
    pub soft: bool,
    /// When the last packet of its latest group left.
    pub last_left: Instant,
    /// The highest control sequence number of its requests.
    pub newest_request: u64,
    /// The packets of the group in the queue.
    pub again: Bitmap,
    /// The packet of that group to look for next.
    pub cursor: u32,
    /// How many of that group have not left.
    pub left: u32,
}

/// The blocks of all segments that the sender keeps.
#[derive(Clone, Debug)]
pub(super) struct ControlBlocks {
    ring: Box<[ControlBlock]>,
    mask: usize,
}

impl ControlBlocks {
    /// Room for at least `segments`.
    pub(super) fn new(segments: usize) -> Self {
        let size = segments.max(1).next_power_of_two();
        Self { ring: vec![ControlBlock::default(); size].into_boxed_slice(), mask: size - 1 }
    }

    /// The block of `segment`.
    #[inline]
    pub(super) fn get(&self, segment: u64) -> &ControlBlock {
        &self.ring[segment as usize & self.mask]
    }

    /// The block of `segment`, to be changed.
    #[inline]
    pub(super) fn get_mut(&mut self, segment: u64) -> &mut ControlBlock {
        &mut self.ring[segment as usize & self.mask]
    }

    /// Makes the block that of a new segment; the bitmap keeps its memory.
    pub(super) fn begin(&mut self, segment: u64, packets: u32, last_bytes: u16) {
        let block = self.get_mut(segment);
        let again = core::mem::take(&mut block.again);
        *block = ControlBlock { packets, last_bytes, again, ..ControlBlock::default() };
    }
}
