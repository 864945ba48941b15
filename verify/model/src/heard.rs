//! What an application of a model knows: all that properties of what is promised to applications look at.
//!
//! Kept by the [`world`](crate::world), one for each end. Invariant: it is part of a state, because properties depend on it.

use segstream_base::halves::Verdict;
use segstream_base::{SegmentNumber, StreamId};
use segstream_proto::error::CloseReason;
use segstream_wire::Class;

/// What the application of one end has done and heard, in order.
#[derive(Clone, Debug, Default)]
pub struct Heard {
    /// How often it heard that a connection is there.
    pub connected: u32,
    /// Segments that were accepted from it.
    pub accepted: Vec<(StreamId, SegmentNumber)>,
    /// Verdicts on them.
    pub judged: Vec<(StreamId, SegmentNumber, Verdict)>,
    /// Segments of the peer that it has taken.
    pub taken: Vec<(StreamId, SegmentNumber, Verdict)>,
    /// A segment taken whole that is not what was sent.
    pub mangled: bool,
    /// Classes that came in force in its direction.
    pub reclassed: Vec<Class>,
    /// The ends of its connections.
    pub ended: Vec<CloseReason>,
}
