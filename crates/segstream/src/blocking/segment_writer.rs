//! An open segment: its units are sent while the application still appends to it.
//!
//! Called by applications. Invariant: at most one segment of a stream is open.

use super::Connection;
use crate::endpoint_state::or_blocked;
use crate::{Error, SegmentNumber, StreamId, Verdict};
use std::time::Duration;

/// An open segment. Dropping it without [`SegmentWriter::finish`] ends it at its present length.
#[derive(Debug)]
pub struct SegmentWriter<'c, 'a> {
    connection: &'c mut Connection<'a>,
    stream: StreamId,
    segment: SegmentNumber,
    finished: bool,
}

impl<'c, 'a> SegmentWriter<'c, 'a> {
    pub(super) const fn new(connection: &'c mut Connection<'a>, stream: StreamId, segment: SegmentNumber) -> Self {
        Self { connection, stream, segment, finished: false }
    }

    /// The segment's number.
    pub const fn segment(&self) -> SegmentNumber {
        self.segment
    }

    /// Appends bytes; blocks while the send buffer is full, and serves the network once. Returns `Some(verdict)` if the segment was judged
    /// or abandoned in the meantime and the bytes were not accepted.
    pub fn append(&mut self, bytes: &[u8]) -> Result<Option<Verdict>, Error> {
        self.push(bytes, false)
    }

    /// Like [`SegmentWriter::append`], but fails with [`SubmitError::Blocked`](crate::SubmitError::Blocked) if the send buffer is full, and does not serve the
    /// network.
    pub fn try_append(&mut self, bytes: &[u8]) -> Result<Option<Verdict>, Error> {
        let to = (self.connection.id, self.stream);
        or_blocked(self.connection.endpoint.change(|endpoint_state, now| endpoint_state.poll_append(now, to, bytes, false)))
    }

    /// Serves the network for `time`: call it in place of a sleep while the next bytes are produced. Events are kept.
    ///
    /// # Errors
    ///
    /// [`Error::Woken`] when a waker has ended the call.
    pub fn serve(&mut self, time: Duration) -> Result<(), Error> {
        self.connection.endpoint.serve_for(time)
    }

    /// Ends the segment and returns its number. [`Connection::verdict`] waits for its verdict.
    pub fn finish(mut self) -> Result<SegmentNumber, Error> {
        self.push(&[], true)?;
        self.finished = true;
        Ok(self.segment)
    }

    /// Leaves the segment open and returns its number: [`Connection::resume_segment`] goes on with it. For programs that cannot keep a
    /// borrow of the connection while the segment is open.
    pub fn detach(mut self) -> SegmentNumber {
        self.finished = true;
        self.segment
    }

    fn push(&mut self, bytes: &[u8], last: bool) -> Result<Option<Verdict>, Error> {
        let to = (self.connection.id, self.stream);
        let endpoint = &mut *self.connection.endpoint;
        let verdict = endpoint.wait_for(None, |endpoint_state, now| endpoint_state.poll_append(now, to, bytes, last))?;
        endpoint.serve()?;
        Ok(verdict)
    }
}

impl Drop for SegmentWriter<'_, '_> {
    fn drop(&mut self) {
        if !self.finished {
            let (id, stream) = (self.connection.id, self.stream);
            self.connection.endpoint.change(|endpoint_state, now| endpoint_state.end_segment(now, id, stream));
        }
    }
}
