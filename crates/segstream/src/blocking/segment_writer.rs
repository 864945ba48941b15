//! A segment that is written while it is sent.
//!
//! Called by applications. Invariant: at most one segment of a stream is open.

use super::Connection;
use crate::{Error, SegmentNumber, StreamId, Verdict};
use std::time::Duration;

/// An open segment. Dropped without [`SegmentWriter::finish`], it ends where it stands.
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

    /// Appends bytes; blocks while the send buffer is full, and serves the network once. `Some(verdict)` when the
    /// segment has been judged or given up meanwhile, and the bytes were not taken.
    pub fn append(&mut self, bytes: &[u8]) -> Result<Option<Verdict>, Error> {
        self.push(bytes, false)
    }

    /// Serves the network for so long, where a sleep would leave it alone: call it while the next bytes are made.
    /// What happens is kept.
    ///
    /// # Errors
    ///
    /// [`Error::Woken`] when a waker has ended the call.
    pub fn serve(&mut self, time: Duration) -> Result<(), Error> {
        self.connection.endpoint.serve_for(time)
    }

    /// Fixes the segment's length and gives its number. The verdict is asked for with
    /// [`Connection::verdict`].
    pub fn finish(mut self) -> Result<SegmentNumber, Error> {
        self.push(&[], true)?;
        self.finished = true;
        Ok(self.segment)
    }

    fn push(&mut self, bytes: &[u8], last: bool) -> Result<Option<Verdict>, Error> {
        let to = (self.connection.id, self.stream);
        let endpoint = &mut *self.connection.endpoint;
        let verdict = endpoint.wait_for(None, |hub, now| hub.poll_append(now, to, bytes, last))?;
        endpoint.serve()?;
        Ok(verdict)
    }
}

impl Drop for SegmentWriter<'_, '_> {
    fn drop(&mut self) {
        if !self.finished {
            let (id, stream) = (self.connection.id, self.stream);
            self.connection.endpoint.change(|hub, now| hub.end_segment(now, id, stream));
        }
    }
}
