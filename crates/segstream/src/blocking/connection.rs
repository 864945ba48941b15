//! One connection of a blocking endpoint, borrowed from it.
//!
//! Called by applications and the command. Invariant: see [`super`].

use super::{Endpoint, SegmentWriter};
use crate::endpoint_state::{EndpointState, or_blocked};
use crate::{
    Bandwidth, Bytes, Class, CloseReason, ConnectionId, Contract, Durable, Error, Fingerprint, Judged, Progress, Rate, Received,
    SegmentNumber, Statistics, StreamId, StreamStatistics, Timestamp, Tolerance,
};
use std::net::SocketAddr;
use std::task::{Poll, ready};
use std::time::Duration;

/// One connection. Calls that wait take a timeout: `None` is no timeout, zero serves the network once.
#[derive(Debug)]
pub struct Connection<'a> {
    pub(super) endpoint: &'a mut Endpoint,
    pub(super) id: ConnectionId,
}

impl<'a> Connection<'a> {
    pub(super) fn now(&self) -> Timestamp {
        self.endpoint.clock().now()
    }

    /// The identifier of the connection at its endpoint.
    pub const fn id(&self) -> ConnectionId {
        self.id
    }

    /// The peer's address.
    pub fn remote(&mut self) -> Result<SocketAddr, Error> {
        self.endpoint.read(|endpoint_state| Ok(endpoint_state.connection_state(self.id)?.remote))
    }

    /// Opens a stream. Segments can be sent at once; they leave when the peer has granted a window. The number of streams in total is
    /// not limited: one that is finished, judged and read by the peer makes room for the next.
    ///
    /// # Errors
    ///
    /// [`Error::OpenStream`] while as many streams are live as the peer allows.
    pub fn open_stream(&mut self, contract: Contract) -> Result<StreamId, Error> {
        let id = self.id;
        self.endpoint.change(|endpoint_state, now| endpoint_state.open_stream(now, id, contract))
    }

    /// Like [`Connection::open_stream`], but waits while as many streams are live as the peer allows.
    ///
    /// # Errors
    ///
    /// [`Error::TimedOut`] when `timeout` has passed.
    pub fn open_stream_when_allowed(&mut self, contract: &Contract, timeout: Option<Duration>) -> Result<StreamId, Error> {
        let id = self.id;
        self.endpoint.wait_for(timeout, |endpoint_state, now| endpoint_state.poll_open_stream(now, id, contract))
    }

    /// Waits for the next stream that the peer opens. `None` if the connection was closed gracefully.
    ///
    /// # Errors
    ///
    /// [`Error::TimedOut`] when `timeout` has passed, [`Error::Closed`] if the connection ended in another way.
    pub fn accept_stream(&mut self, timeout: Option<Duration>) -> Result<Option<StreamId>, Error> {
        let id = self.id;
        self.endpoint.wait_for(timeout, |endpoint_state, _| endpoint_state.poll_accept_stream(id))
    }

    /// Sends a whole segment with the present source time; blocks while the send buffer is full, and serves the network once before it
    /// returns.
    pub fn send(&mut self, stream: StreamId, bytes: Bytes) -> Result<SegmentNumber, Error> {
        let now = self.now();
        self.send_from(now, stream, bytes, now, None)
    }

    /// Like [`Connection::send`] with a source time, and a tolerance (W, E, B) for this segment if given.
    pub fn send_at(
        &mut self,
        stream: StreamId,
        bytes: Bytes,
        source_time: Timestamp,
        tolerance: Option<Tolerance>,
    ) -> Result<SegmentNumber, Error> {
        let now = self.now();
        self.send_from(now, stream, bytes, source_time, tolerance)
    }

    /// Sends a whole segment at `now`.
    fn send_from(
        &mut self,
        now: Timestamp,
        stream: StreamId,
        bytes: Bytes,
        source_time: Timestamp,
        tolerance: Option<Tolerance>,
    ) -> Result<SegmentNumber, Error> {
        let to = (self.id, stream);
        let send = move |endpoint_state: &mut EndpointState, now| endpoint_state.poll_send(now, to, bytes.clone(), source_time, tolerance);
        let (segment, _) = self.endpoint.wait_from(now, None, send)?;
        self.endpoint.serve()?;
        Ok(segment)
    }

    /// Like [`Connection::send_at`], but fails with [`SubmitError::Blocked`](crate::SubmitError::Blocked) if the send buffer is full. It does not serve the network:
    /// nothing leaves before the next call that does. Use it for many short segments, which then share datagrams and system calls.
    pub fn try_send(
        &mut self,
        stream: StreamId,
        bytes: Bytes,
        source_time: Timestamp,
        tolerance: Option<Tolerance>,
    ) -> Result<SegmentNumber, Error> {
        let to = (self.id, stream);
        or_blocked(self.endpoint.change(|endpoint_state, now| endpoint_state.poll_send(now, to, bytes, source_time, tolerance)))
    }

    /// Sets drop-oldest for a stream of ours: when the send buffer is full, a new segment does not wait but replaces the oldest segment
    /// of which nothing has been sent yet. Off by default. For live media, where the newest segment is worth more than the oldest.
    /// A dropped segment is *expired* at both ends (or *within_tolerance* if everything may be missing), with all of its units as
    /// holes. Sending still waits while twice [`Contract::window_segments`] have no verdict, and an open segment waits for room.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] if there is no such stream.
    pub fn set_drop_oldest(&mut self, stream: StreamId, drops_oldest: bool) -> Result<(), Error> {
        let id = self.id;
        self.endpoint.change(|endpoint_state, _| endpoint_state.set_drop_oldest(id, stream, drops_oldest))
    }

    /// Opens a segment whose length is not known yet. Its first units leave before its last ones exist. Only one segment of a stream can
    /// be open.
    pub fn open_segment(&mut self, stream: StreamId) -> Result<SegmentWriter<'_, 'a>, Error> {
        let now = self.now();
        self.open_segment_at(stream, now, None)
    }

    /// Like [`Connection::open_segment`] with a source time, and a tolerance (W, E, B) for this segment if given.
    pub fn open_segment_at(
        &mut self,
        stream: StreamId,
        source_time: Timestamp,
        tolerance: Option<Tolerance>,
    ) -> Result<SegmentWriter<'_, 'a>, Error> {
        let to = (self.id, stream);
        let segment = self.endpoint.wait_for(None, |endpoint_state, now| endpoint_state.poll_open(now, to, source_time, tolerance))?;
        Ok(SegmentWriter::new(self, stream, segment))
    }

    /// Goes on with a segment that [`SegmentWriter::detach`] has left open. If it is not the open one, appending to it appends to
    /// the one that is, or fails with [`SubmitError`](crate::SubmitError).
    pub const fn resume_segment(&mut self, stream: StreamId, segment: SegmentNumber) -> SegmentWriter<'_, 'a> {
        SegmentWriter::new(self, stream, segment)
    }

    /// Finishes the stream: no more segments will be sent on it.
    pub fn finish_stream(&mut self, stream: StreamId) -> Result<(), Error> {
        let id = self.id;
        self.endpoint.change(|endpoint_state, now| endpoint_state.finish_stream(now, id, stream))?;
        self.endpoint.serve()
    }

    /// Waits for the verdict on a segment. Each verdict is returned once.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] if the verdict was returned before or there is no such segment, [`Error::TimedOut`] when `timeout` has passed.
    pub fn verdict(&mut self, stream: StreamId, segment: SegmentNumber, timeout: Option<Duration>) -> Result<Judged, Error> {
        let id = self.id;
        self.endpoint.wait_for(timeout, |endpoint_state, _| endpoint_state.poll_verdict(id, stream, segment))
    }

    /// Waits for the next verdict of a stream, in order of arrival. `None` if no more will come: the stream is finished or the connection
    /// closes, and every segment is judged.
    ///
    /// # Errors
    ///
    /// [`Error::TimedOut`] when `timeout` has passed.
    pub fn next_verdict(&mut self, stream: StreamId, timeout: Option<Duration>) -> Result<Option<Judged>, Error> {
        let id = self.id;
        self.endpoint.wait_for(timeout, |endpoint_state, _| endpoint_state.poll_next_verdict(id, stream))
    }

    /// Waits for the next judged segment of a stream of the peer. `None` if the stream has ended.
    ///
    /// # Errors
    ///
    /// [`Error::TimedOut`] when `timeout` has passed, [`Error::Closed`] if the connection was not closed gracefully.
    pub fn recv(&mut self, stream: StreamId, timeout: Option<Duration>) -> Result<Option<Received>, Error> {
        self.endpoint.recv(self.id, stream, timeout)
    }

    /// Like [`Connection::recv`] into a buffer of the caller: copies what fits, and returns the length of the segment in bytes and its
    /// description, whose `bytes` are empty.
    pub fn recv_into(
        &mut self,
        stream: StreamId,
        buffer: &mut [u8],
        timeout: Option<Duration>,
    ) -> Result<Option<(usize, Received)>, Error> {
        let received = self.recv(stream, timeout)?;
        Ok(received.map(|received| crate::progress::copy_into(buffer, received)))
    }

    /// The next judged segment of a stream of the peer, if there is one. It does not serve the network.
    pub fn try_recv(&mut self, stream: StreamId) -> Option<Received> {
        let id = self.id;
        self.endpoint.take(|endpoint_state, now| endpoint_state.try_recv(now, id, stream))
    }

    /// Waits for the next units of a stream of the peer, or for a segment that is judged and whose units were all returned. `None` if the
    /// stream has ended. From the first call on the stream is read unit by unit; [`Connection::recv`] still returns whole segments.
    ///
    /// # Errors
    ///
    /// [`Error::TimedOut`] when `timeout` has passed, [`Error::Closed`] if the connection was not closed gracefully.
    pub fn next_units(&mut self, stream: StreamId, timeout: Option<Duration>) -> Result<Option<Progress>, Error> {
        let id = self.id;
        let (progress, now) =
            self.endpoint.wait_from(self.now(), timeout, |endpoint_state, now| endpoint_state.poll_progress(now, id, stream))?;
        self.endpoint.serve_if_due(now, id)?;
        Ok(progress)
    }

    /// Like [`Connection::next_units`] without waiting and without serving the network.
    pub fn try_next_units(&mut self, stream: StreamId) -> Result<Option<Progress>, Error> {
        let id = self.id;
        self.endpoint.take(|endpoint_state, now| endpoint_state.try_progress(now, id, stream))
    }

    /// Tells the peer that all segments of one of its streams below `segments` are safe with this application: on disk, processed, or
    /// whatever the two mean by it. [`Config::confirms`](crate::Config::confirms) must be set. Lower numbers than before change nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Confirm`] if not all of them were taken, there is no such stream, or the peer does not know confirmations.
    pub fn confirm(&mut self, stream: StreamId, segments: SegmentNumber) -> Result<(), Error> {
        let id = self.id;
        self.endpoint.change(|endpoint_state, now| endpoint_state.confirm(now, id, stream, segments))
    }

    /// No more of a stream of the peer will be confirmed: the peer is told, and the stream can end.
    pub fn confirm_no_more(&mut self, stream: StreamId) -> Result<(), Error> {
        let id = self.id;
        self.endpoint.change(|endpoint_state, now| endpoint_state.confirm_no_more(now, id, stream))
    }

    /// Whether the peer's application confirms what it receives; known once the connection is established.
    pub fn peer_confirms(&mut self) -> Result<bool, Error> {
        self.endpoint.read(|endpoint_state| endpoint_state.peer_confirms(self.id))
    }

    /// What the peer's application has confirmed of a stream of ours so far. It can be read until it was, and another stream is opened
    /// after the stream has ended.
    ///
    /// # Errors
    ///
    /// [`Error::NotConfirming`] if the peer confirms nothing.
    pub fn durable(&mut self, stream: StreamId) -> Result<Durable, Error> {
        let id = self.id;
        self.endpoint.change(|endpoint_state, _| endpoint_state.durable(id, stream))
    }

    /// Waits until the peer's application has confirmed all segments of a stream of ours below `segments`, or has said that it will confirm
    /// no more of it: then [`Durable::last`] is set, and [`Durable::segments`] may be less.
    ///
    /// # Errors
    ///
    /// [`Error::TimedOut`] when `timeout` has passed, [`Error::Closed`] if the connection ended first, [`Error::NotConfirming`] if the peer
    /// confirms nothing.
    pub fn confirmed(&mut self, stream: StreamId, segments: SegmentNumber, timeout: Option<Duration>) -> Result<Durable, Error> {
        let id = self.id;
        self.endpoint.wait_for(timeout, |endpoint_state, _| endpoint_state.poll_durable(id, stream, segments))
    }

    /// Discards what arrives on the stream from now on, so that its window does not close.
    pub fn discard(&mut self, stream: StreamId) -> Result<(), Error> {
        let id = self.id;
        self.endpoint.change(|endpoint_state, now| {
            endpoint_state.connection_state(id)?;
            endpoint_state.discard(now, id, stream);
            Ok(())
        })
    }

    /// The contract of a stream of the peer, with the window as granted.
    pub fn receiving_contract(&mut self, stream: StreamId) -> Result<Contract, Error> {
        self.endpoint.read(|endpoint_state| endpoint_state.receiving_contract(self.id, stream).cloned())
    }

    /// Sets the rate in our direction, in force at once: a [`crate::RateSpec`] is a fixed rate, [`Rate::AUTO`] is
    /// congestion-controlled.
    ///
    /// # Errors
    ///
    /// [`Error::Rate`] for an automatic rate whose bounds contradict each other, or under a class without rate control.
    pub fn set_rate(&mut self, rate: impl Into<Rate>) -> Result<(), Error> {
        let (id, rate) = (self.id, rate.into());
        self.endpoint.change(|endpoint_state, now| endpoint_state.set_rate(now, id, rate))
    }

    /// The fingerprint of the peer's authenticated key; `None` in plain mode.
    pub fn peer_fingerprint(&self) -> Option<Fingerprint> {
        self.endpoint.read(|endpoint_state| endpoint_state.peer_fingerprint(self.id))
    }

    /// The rate in force in our direction, in whole IP packets; `None` when unpaced.
    pub fn rate(&mut self) -> Result<Option<Bandwidth>, Error> {
        self.endpoint.read(|endpoint_state| endpoint_state.rate(self.id))
    }

    /// Waits until the rate has changed by more than 5 % since this or [`Endpoint::wait`] last returned it, and returns it. An automatic
    /// rate is reported at most ten times a second; an encoder should follow it.
    ///
    /// # Errors
    ///
    /// [`Error::TimedOut`] when `timeout` has passed, [`Error::Closed`] when the connection has ended.
    pub fn rate_changed(&mut self, timeout: Option<Duration>) -> Result<Bandwidth, Error> {
        let id = self.id;
        self.endpoint.wait_for(timeout, |endpoint_state, _| endpoint_state.poll_rate_changed(id))
    }

    /// Requests a class change in our direction; [`crate::ConnectionEvent::Reclassed`] is the event that it is in force.
    ///
    /// # Errors
    ///
    /// [`Error::Unlimited`] for a class with neither flow control nor rate control, [`Error::Rate`] for one without rate
    /// control while the rate is automatic.
    pub fn set_class(&mut self, class: Class) -> Result<(), Error> {
        let id = self.id;
        self.endpoint.change(|endpoint_state, now| endpoint_state.set_class(now, id, class))
    }

    /// The statistics so far.
    pub fn statistics(&mut self) -> Result<Statistics, Error> {
        self.endpoint.read(|endpoint_state| endpoint_state.statistics(self.id))
    }

    /// The statistics of one stream of ours so far.
    pub fn stream_statistics(&mut self, stream: StreamId) -> Result<StreamStatistics, Error> {
        self.endpoint.read(|endpoint_state| endpoint_state.stream_statistics(self.id, stream))
    }

    /// Whether any segment of ours has no verdict yet.
    pub fn has_unjudged(&mut self) -> Result<bool, Error> {
        self.endpoint.read(|endpoint_state| endpoint_state.has_unjudged(self.id))
    }

    /// Serves the network for `time`; use it in place of a sleep. Events are kept.
    ///
    /// # Errors
    ///
    /// [`Error::Woken`] when a waker has ended the call.
    pub fn serve(&mut self, time: Duration) -> Result<(), Error> {
        self.endpoint.serve_for(time)
    }

    /// Closes gracefully: finishes every stream, and waits until every segment accepted at both ends is judged and the peer has
    /// confirmed. What the peer sends in the meantime is discarded; to receive it, use [`Connection::begin_close`]. Verdicts and
    /// statistics can be read until [`Endpoint::release`].
    ///
    /// # Errors
    ///
    /// [`Error::Closed`] if the connection ended in another way.
    pub fn close(self, code: u64, detail: &str) -> Result<(), Error> {
        let id = self.id;
        self.endpoint.change(|endpoint_state, now| {
            endpoint_state.close(now, id, code, detail)?;
            endpoint_state.discard_all(now, id);
            Ok::<_, Error>(())
        })?;
        self.endpoint.wait_for(None, |endpoint_state, _| {
            ready!(endpoint_state.poll_closed(id))?;
            if endpoint_state.protocol.is_drained(id) { endpoint_state.graceful_end(id) } else { Poll::Pending }
        })
    }

    /// Begins a graceful close; [`crate::ConnectionEvent::Closed`] is the event of its end.
    pub fn begin_close(&mut self, code: u64, detail: &str) -> Result<(), Error> {
        let id = self.id;
        self.endpoint.change(|endpoint_state, now| endpoint_state.close(now, id, code, detail))
    }

    /// Waits until the connection has ended, and returns the reason. What arrives can still be received.
    ///
    /// # Errors
    ///
    /// [`Error::TimedOut`] when `timeout` has passed.
    pub fn closed(&mut self, timeout: Option<Duration>) -> Result<CloseReason, Error> {
        let id = self.id;
        self.endpoint.wait_for(timeout, |endpoint_state, _| endpoint_state.poll_closed(id))
    }

    /// Aborts the connection at once; segments without a verdict are *unknown*.
    pub fn abort(self, code: u64, detail: &str) -> Result<(), Error> {
        let id = self.id;
        self.endpoint.change(|endpoint_state, now| endpoint_state.abort(now, id, code, detail))?;
        self.endpoint.serve()
    }

    /// Waits until a connection that has ended has drained (RFC 9000 10.2.2). Until then it answers a close that its peer repeats because
    /// an answer was lost.
    pub fn drained(&mut self) -> Result<(), Error> {
        let id = self.id;
        self.endpoint
            .wait_for(None, |endpoint_state, _| if endpoint_state.protocol.is_drained(id) { Poll::Ready(Ok(())) } else { Poll::Pending })
    }
}
