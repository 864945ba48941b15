//! The order in which the segments of an incoming stream are handed over (FC 3), and up to where they are judged and taken.
//!
//! Owned by the stream, which tells of verdicts and of what the application has taken.
//!
//! Invariant: each segment that is judged is handed over once; every segment before `lowest_unjudged` is judged, and every one before
//! `lowest_unreleased` taken.

use super::segment_queue::SegmentQueue;
use crate::receiver::segment::RecvSegment;
use segstream_base::SegmentNumber;
use segstream_wire::contract::Order;
use std::collections::VecDeque;

/// Which segment is handed over next.
#[derive(Debug)]
pub(super) struct DeliveryOrder {
    /// That of the contract.
    order: Order,
    /// The next segment to hand over, when they go in order.
    deliver_next: SegmentNumber,
    /// Segments judged and ready to be handed over, as accepted.
    ready: VecDeque<SegmentNumber>,
    /// No segment below this one is unreleased.
    pub(super) lowest_unreleased: SegmentNumber,
    /// No segment below this one is without a verdict.
    pub(super) lowest_unjudged: SegmentNumber,
}

impl DeliveryOrder {
    /// No segment is judged.
    pub(super) fn new(order: Order) -> Self {
        let first = SegmentNumber::FIRST;
        Self { order, deliver_next: first, ready: VecDeque::new(), lowest_unreleased: first, lowest_unjudged: first }
    }

    /// Segment `number` has got a verdict.
    pub(super) fn on_judged(&mut self, number: SegmentNumber, segments: &SegmentQueue) {
        while segments.get(self.lowest_unjudged).is_some_and(RecvSegment::judged) {
            self.lowest_unjudged += 1;
        }
        if self.order == Order::AsAccepted {
            self.ready.push_back(number);
        }
    }

    /// The application has taken a segment.
    pub(super) fn on_released(&mut self, segments: &SegmentQueue) {
        while segments.get(self.lowest_unreleased).is_some_and(|segment| segment.room.released) {
            self.lowest_unreleased += 1;
        }
    }

    /// Segments before `base` have left the queue.
    pub(super) fn on_left(&mut self, base: SegmentNumber) {
        self.lowest_unreleased = self.lowest_unreleased.max(base);
        self.lowest_unjudged = self.lowest_unjudged.max(base);
    }

    /// Takes the next segment to hand to the application.
    pub(super) fn next(&mut self, segments: &SegmentQueue) -> Option<SegmentNumber> {
        match self.order {
            Order::AsAccepted => self.ready.pop_front(),
            Order::InOrder => {
                let number = self.deliver_next;
                segments.get(number).filter(|segment| segment.judged())?;
                self.deliver_next += 1;
                Some(number)
            }
        }
    }

    /// Whether a segment can be handed over.
    pub(super) fn has_next(&self, segments: &SegmentQueue) -> bool {
        match self.order {
            Order::AsAccepted => !self.ready.is_empty(),
            Order::InOrder => segments.get(self.deliver_next).is_some_and(RecvSegment::judged),
        }
    }

    /// Whether all segments of a stream that ends at `end` have been judged and handed over.
    pub(super) fn is_drained(&self, end: SegmentNumber) -> bool {
        match self.order {
            Order::InOrder => self.deliver_next >= end,
            Order::AsAccepted => self.ready.is_empty() && self.lowest_unjudged >= end,
        }
    }

    /// The stream is retired: its buffers are free.
    pub(super) fn free(&mut self) {
        self.ready = VecDeque::new();
    }

    /// The memory that it takes, in bytes.
    pub(super) fn kept_bytes(&self) -> u64 {
        (self.ready.capacity() * size_of::<SegmentNumber>()) as u64
    }
}
