//! Streams are handed over in their order: in order without a gap, or as accepted, each segment once, and nothing
//! after the end.
//!
//! One of the checkers. Source: spec 4.1 (order), 4.7 (end). Invariant: a stream is known by the side that receives it,
//! so that a connection made twice by a replayed request counts as two.

use super::{Checker, must};
use crate::event::{Event, StreamName};
use segstream_base::{Instant, SegmentNumber};
use segstream_wire::contract::Order;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug)]
struct Stream {
    order: Order,
    taken: BTreeSet<SegmentNumber>,
    ended: bool,
}

/// What has been handed over of each stream, by receiving side and name; and how much of it there is.
#[derive(Debug, Default)]
pub(super) struct OrderOfDelivery {
    streams: BTreeMap<(u32, StreamName), Stream>,
    submitted: BTreeMap<StreamName, u64>,
}

impl Checker for OrderOfDelivery {
    fn name(&self) -> &'static str {
        "order"
    }

    fn observe(&mut self, _now: Instant, event: &Event) -> Result<(), String> {
        match event {
            Event::Submitted { name, .. } => {
                let count = self.submitted.entry(name.stream).or_default();
                must!(name.segment == SegmentNumber(*count), "segment {name} was submitted as number {count} of its stream");
                *count += 1;
            }
            Event::Offered { at, name, order } => {
                let stream = Stream { order: *order, taken: BTreeSet::new(), ended: false };
                must!(self.streams.insert((*at, *name), stream).is_none(), "side {at} was told twice of stream {name}");
            }
            Event::Delivered(delivered) => {
                let (at, name) = (delivered.at, delivered.name);
                let Some(stream) = self.streams.get_mut(&(at, name.stream)) else {
                    return Err(format!("side {at} was handed {name} of a stream it was never told of"));
                };
                must!(!stream.ended, "side {at} was handed {name} after the end of its stream");
                let due = SegmentNumber(stream.taken.len() as u64);
                must!(stream.order == Order::AsAccepted || name.segment == due, "side {at} was handed {name} when {due} was due");
                must!(stream.taken.insert(name.segment), "side {at} was handed {name} twice");
            }
            Event::Ended { at, name, segments } => {
                let Some(stream) = self.streams.get_mut(&(*at, *name)) else {
                    return Err(format!("side {at} was told the end of stream {name}, of which it was never told"));
                };
                must!(!core::mem::replace(&mut stream.ended, true), "side {at} was told the end of {name} twice");
                let taken = stream.taken.len() as u64;
                must!(taken == *segments, "stream {name} has ended with {segments} segments, but {taken} were handed over");
                let submitted = self.submitted.get(name).copied().unwrap_or(0);
                must!(submitted == *segments, "stream {name} has ended with {segments} segments, but {submitted} were submitted");
            }
            _ => {}
        }
        Ok(())
    }
}
