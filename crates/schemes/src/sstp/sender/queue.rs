//! XMTQ, the transmission queue: which packet leaves next.
//!
//! Called by the sending half for every packet. Source: EC 4.2, in the order of (segment, packet), new
//! packets and requested ones alike, so that requested packets of an older segment leave before newer
//! data.
//!
//! The queue holds no packets: a cursor stands for the new ones, and a sorted list of segments, each with
//! the bitmap in its control block, for those to be retransmitted.
//!
//! Invariant: every segment in `repeats` is [`Status::Queued`], has packets left, and lies below the cursor.

use super::control_block::{ControlBlocks, Status};
use segstream_blocks::Bitmap;
use std::collections::VecDeque;

/// The next packet of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Next {
    /// Its segment.
    pub segment: u64,
    /// Its number in the segment.
    pub packet: u32,
    /// Whether it is the last of its packet group.
    pub ends_group: bool,
}

/// The queue.
#[derive(Clone, Debug, Default)]
pub(super) struct TransmissionQueue {
    /// Segments with packets to be retransmitted, ascending.
    repeats: VecDeque<u64>,
    /// The next new packet.
    pub segment: u64,
    pub packet: u32,
    /// The first segment that is not eligible, by the window or because it was not submitted.
    pub eligible: u64,
    /// The segment of which a requested group has begun to leave.
    under_way: Option<u64>,
}

impl TransmissionQueue {
    /// Room for `segments` to be retransmitted.
    pub(super) fn new(segments: usize) -> Self {
        Self { repeats: VecDeque::with_capacity(segments), ..Self::default() }
    }

    /// Whether nothing may leave.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.repeats.is_empty() && self.segment >= self.eligible
    }

    /// Segments of which at least one packet has left.
    #[inline]
    pub(super) const fn begun(&self) -> u64 {
        if self.packet > 0 { self.segment + 1 } else { self.segment }
    }

    /// Segments with packets to be retransmitted.
    pub(super) fn repeating(&self) -> usize {
        self.repeats.len()
    }

    /// The first segment with packets to be retransmitted.
    #[inline]
    pub(super) fn first_repeat(&self) -> Option<u64> {
        self.repeats.front().copied()
    }

    /// The same where a group that has begun to leave is not interrupted.
    pub(super) fn first_repeat_between_groups(&self) -> Option<u64> {
        match (self.under_way, self.packet) {
            (Some(segment), _) => Some(segment),
            (None, 0) => self.first_repeat(),
            (None, _) => None,
        }
    }

    /// Takes the next packet to be retransmitted, of `segment`.
    pub(super) fn take_repeat(&mut self, blocks: &mut ControlBlocks, segment: u64) -> Option<Next> {
        let block = blocks.get_mut(segment);
        let Some(packet) = block.again.next_one(block.cursor, block.packets) else {
            // Cannot be by the invariant; an empty group must not block the queue all the same.
            block.status = Status::Waiting;
            self.remove(segment);
            return None;
        };
        block.cursor = packet + 1;
        block.left = block.left.saturating_sub(1);
        let ends_group = block.left == 0;
        if ends_group {
            self.remove(segment);
        } else {
            self.under_way = Some(segment);
        }
        Some(Next { segment, packet, ends_group })
    }

    /// Takes the next new packet, of a segment of `packets`.
    #[inline]
    pub(super) const fn take_new(&mut self, packets: u32) -> Next {
        let next = Next { segment: self.segment, packet: self.packet, ends_group: self.packet + 1 >= packets };
        if next.ends_group {
            self.segment += 1;
            self.packet = 0;
        } else {
            self.packet += 1;
        }
        next
    }

    /// Schedules the packets of `segment` that are requested, as far as they exist. `false` when none is.
    pub(super) fn schedule(&mut self, blocks: &mut ControlBlocks, segment: u64, request: &Bitmap) -> bool {
        let block = blocks.get_mut(segment);
        block.again.reset(block.packets);
        for run in request.one_runs(0, block.packets) {
            block.again.set_range(run.start(), run.len());
        }
        block.left = block.again.count_ones();
        block.cursor = 0;
        if block.left == 0 {
            return false;
        }
        block.status = Status::Queued;
        if let Err(at) = self.repeats.binary_search(&segment) {
            self.repeats.insert(at, segment);
        }
        true
    }

    /// Nothing of `segment` need be sent any more.
    pub(super) fn forget(&mut self, segment: u64) {
        self.remove(segment);
        if self.segment == segment {
            self.segment += 1;
            self.packet = 0;
        }
    }

    /// No group of `segment` is to be sent.
    fn remove(&mut self, segment: u64) {
        if let Ok(at) = self.repeats.binary_search(&segment) {
            self.repeats.remove(at);
        }
        self.under_way = self.under_way.filter(|under_way| *under_way != segment);
    }
}
