//! Many segments with one call.
//!
//! Called by applications. Invariant: what is left in the queue was not sent.

use super::Connection;
use crate::endpoint_state::{EndpointState, or_blocked};
use crate::{Bytes, Error, Received, SegmentNumber, StreamId};
use core::ops::Range;
use std::collections::VecDeque;
use std::time::Duration;

impl Connection<'_> {
    /// Sends segments from the front of `segments` with the present source time: as many as the send buffer has room for, no more than
    /// 1024. They are taken out of the queue, and their numbers returned, which follow each other; of an empty queue nothing is sent. As
    /// [`Connection::try_send`] it does not serve the network. An endpoint that a background thread drives is locked and woken once for
    /// all of them.
    ///
    /// # Errors
    ///
    /// [`SubmitError::Blocked`](crate::SubmitError::Blocked) when the send buffer has no room for the first, or another error if the first is refused; it stays in the
    /// queue. A segment behind others that can be sent is refused by the next call.
    pub fn try_send_many(&mut self, stream: StreamId, segments: &mut VecDeque<Bytes>) -> Result<Range<SegmentNumber>, Error> {
        let to = (self.id, stream);
        or_blocked(self.endpoint.change(|endpoint_state, now| endpoint_state.poll_send_many(now, to, segments)))
    }

    /// Waits for judged segments of a stream of the peer and appends those that are there to `into`, no more than `most` or 1024; how
    /// many. 0 when the stream has ended.
    ///
    /// # Errors
    ///
    /// [`Error::TimedOut`] when `timeout` has passed, [`Error::Closed`] if the connection was not closed gracefully.
    pub fn recv_many(
        &mut self,
        stream: StreamId,
        into: &mut Vec<Received>,
        most: usize,
        timeout: Option<Duration>,
    ) -> Result<usize, Error> {
        let from = (self.id, stream);
        let receive = |endpoint_state: &mut EndpointState, now| endpoint_state.poll_recv_many(now, from, into, most);
        let (count, now) = self.endpoint.wait_from(self.now(), timeout, receive)?;
        self.endpoint.serve_if_due(now, self.id)?;
        Ok(count)
    }
}
