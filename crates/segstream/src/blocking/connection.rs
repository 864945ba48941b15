//! One connection of a blocking endpoint, borrowed for a call or two.
//!
//! Called by applications and the command. Invariant: see [`super`].

use super::{Endpoint, SegmentWriter};
use crate::hub::Hub;
use crate::{
    Bandwidth, Bytes, Class, CloseReason, ConnectionId, Contract, Error, Fingerprint, Judged, Progress, Rate, Received, SegmentNumber,
    Statistics, StreamId, StreamStatistics, SubmitError, Timestamp, Tolerance,
};
use std::net::SocketAddr;
use std::task::Poll;
use std::time::Duration;

/// One connection. Calls that wait take a timeout: `None` waits for ever, zero serves the network once.
#[derive(Debug)]
pub struct Connection<'a> {
    pub(super) endpoint: &'a mut Endpoint,
    pub(super) id: ConnectionId,
}

impl<'a> Connection<'a> {
    pub(super) fn now(&self) -> Timestamp {
        self.endpoint.clock().now()
    }

    /// The connection's name at its endpoint.
    pub const fn id(&self) -> ConnectionId {
        self.id
    }

    /// The peer's address.
    pub fn remote(&mut self) -> Result<SocketAddr, Error> {
        self.endpoint.look(|hub| Ok(hub.inbox(self.id)?.remote))
    }

    /// Opens a stream. Segments can be sent at once; they leave when the peer has granted a window. Streams are opened one
    /// after another without end: one that is finished, judged and read by the peer makes room for the next.
    ///
    /// # Errors
    ///
    /// [`Error::OpenStream`] while as many streams are live as the peer allows.
    pub fn open_stream(&mut self, contract: Contract) -> Result<StreamId, Error> {
        let id = self.id;
        self.endpoint.change(|hub, now| hub.open_stream(now, id, contract))
    }

    /// Like [`Connection::open_stream`], but waits while as many streams are live as the peer allows.
    ///
    /// # Errors
    ///
    /// [`Error::TimedOut`] when `timeout` has passed.
    pub fn open_stream_when_allowed(&mut self, contract: &Contract, timeout: Option<Duration>) -> Result<StreamId, Error> {
        let id = self.id;
        self.endpoint.wait_for(timeout, |hub, now| hub.poll_open_stream(now, id, contract))
    }

    /// Waits for the next stream that the peer opens. `None` when the connection has ended as it should.
    ///
    /// # Errors
    ///
    /// [`Error::TimedOut`] when `timeout` has passed, [`Error::Closed`] when the connection has broken off.
    pub fn accept_stream(&mut self, timeout: Option<Duration>) -> Result<Option<StreamId>, Error> {
        let id = self.id;
        self.endpoint.wait_for(timeout, |hub, _| hub.poll_accept_stream(id))
    }

    /// Sends a whole segment whose source time is now; blocks while the send buffer is full, and serves the
    /// network once before it returns.
    pub fn send(&mut self, stream: StreamId, bytes: Bytes) -> Result<SegmentNumber, Error> {
        let now = self.now();
        self.send_from(now, stream, bytes, now, None)
    }

    /// Like [`Connection::send`] with a source time, and a tolerance (W, E, B) of its own if given.
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

    /// Sends a whole segment where it is `now`.
    fn send_from(
        &mut self,
        now: Timestamp,
        stream: StreamId,
        bytes: Bytes,
        source_time: Timestamp,
        tolerance: Option<Tolerance>,
    ) -> Result<SegmentNumber, Error> {
        let to = (self.id, stream);
        let send = move |hub: &mut Hub, now| hub.poll_send(now, to, bytes.clone(), source_time, tolerance);
        let (segment, _) = self.endpoint.wait_from(now, None, send)?;
        self.endpoint.serve()?;
        Ok(segment)
    }

    /// Like [`Connection::send_at`], but [`SubmitError::Blocked`] when the send buffer is full. It does not serve
    /// the network: nothing leaves before the next call that does. So it is the way for many short segments: they share
    /// datagrams and system calls.
    pub fn try_send(
        &mut self,
        stream: StreamId,
        bytes: Bytes,
        source_time: Timestamp,
        tolerance: Option<Tolerance>,
    ) -> Result<SegmentNumber, Error> {
        let to = (self.id, stream);
        match self.endpoint.change(|hub, now| hub.poll_send(now, to, bytes, source_time, tolerance)) {
            Poll::Ready(sent) => sent,
            Poll::Pending => Err(SubmitError::Blocked.into()),
        }
    }

    /// Whether a stream of ours gives up its oldest segment of which nothing has left yet when its send buffer is full and a new
    /// segment comes, instead of making the application wait. Default: it waits. For live media, where the newest segment is
    /// worth more than the oldest. The receiver is told as of a lifetime that has run out: such a segment is *expired* at both
    /// ends (or *within_tolerance* where everything may be missing), with all of its units as holes. Sending still waits while
    /// twice [`Contract::window_segments`] have no verdict, and an open segment waits for room.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] when there is no such stream.
    pub fn set_drop_oldest(&mut self, stream: StreamId, drops_oldest: bool) -> Result<(), Error> {
        let id = self.id;
        self.endpoint.change(|hub, _| hub.set_drop_oldest(id, stream, drops_oldest))
    }

    /// Opens a segment whose length is not known yet. Its first units leave before its last exist. Only one segment
    /// of a stream can be open.
    pub fn open_segment(&mut self, stream: StreamId) -> Result<SegmentWriter<'_, 'a>, Error> {
        let now = self.now();
        self.open_segment_at(stream, now, None)
    }

    /// Like [`Connection::open_segment`] with a source time, and a tolerance (W, E, B) of its own if given.
    pub fn open_segment_at(
        &mut self,
        stream: StreamId,
        source_time: Timestamp,
        tolerance: Option<Tolerance>,
    ) -> Result<SegmentWriter<'_, 'a>, Error> {
        let to = (self.id, stream);
        let segment = self.endpoint.wait_for(None, |hub, now| hub.poll_open(now, to, source_time, tolerance))?;
        Ok(SegmentWriter::new(self, stream, segment))
    }

    /// No more segments will come on `stream`.
    pub fn finish_stream(&mut self, stream: StreamId) -> Result<(), Error> {
        let id = self.id;
        self.endpoint.change(|hub, now| hub.finish_stream(now, id, stream))?;
        self.endpoint.serve()
    }

    /// Waits for the verdict on a segment, and hands it out once.
    ///
    /// # Errors
    ///
    /// [`Error::Unknown`] when the verdict was handed out already or the segment never was,
    /// [`Error::TimedOut`] when `timeout` has passed.
    pub fn verdict(&mut self, stream: StreamId, segment: SegmentNumber, timeout: Option<Duration>) -> Result<Judged, Error> {
        let id = self.id;
        self.endpoint.wait_for(timeout, |hub, _| hub.poll_verdict(id, stream, segment))
    }

    /// Waits for the next verdict of a stream, in the order in which they come. `None` when no more will come: the
    /// stream is finished or the connection closes, and every segment is judged.
    ///
    /// # Errors
    ///
    /// [`Error::TimedOut`] when `timeout` has passed.
    pub fn next_verdict(&mut self, stream: StreamId, timeout: Option<Duration>) -> Result<Option<Judged>, Error> {
        let id = self.id;
        self.endpoint.wait_for(timeout, |hub, _| hub.poll_next_verdict(id, stream))
    }

    /// Waits for the next judged segment of a stream of the peer. `None` when the stream has ended.
    ///
    /// # Errors
    ///
    /// [`Error::TimedOut`] when `timeout` has passed, [`Error::Closed`] when the connection has broken off.
    pub fn recv(&mut self, stream: StreamId, timeout: Option<Duration>) -> Result<Option<Received>, Error> {
        self.endpoint.recv(self.id, stream, timeout)
    }

    /// Like [`Connection::recv`] into a buffer of the caller's: copies what fits and gives the length of the
    /// segment in bytes together with its description, whose `bytes` are empty.
    pub fn recv_into(
        &mut self,
        stream: StreamId,
        buffer: &mut [u8],
        timeout: Option<Duration>,
    ) -> Result<Option<(usize, Received)>, Error> {
        let received = self.recv(stream, timeout)?;
        Ok(received.map(|received| crate::progress::copy_into(buffer, received)))
    }

    /// The next judged segment of a stream of the peer, if one is there. It does not serve the network.
    pub fn try_recv(&mut self, stream: StreamId) -> Option<Received> {
        let id = self.id;
        self.endpoint.take(|hub, now| hub.try_recv(now, id, stream))
    }

    /// Waits for the next units of a stream of the peer, or for a segment all of whose units have been told and
    /// which is judged now. `None` when the stream has ended. From the first call on the stream is read unit by
    /// unit; [`Connection::recv`] still gives whole segments.
    ///
    /// # Errors
    ///
    /// [`Error::TimedOut`] when `timeout` has passed, [`Error::Closed`] when the connection has broken off.
    pub fn next_units(&mut self, stream: StreamId, timeout: Option<Duration>) -> Result<Option<Progress>, Error> {
        let id = self.id;
        let (progress, now) = self.endpoint.wait_from(self.now(), timeout, |hub, now| hub.poll_progress(now, id, stream))?;
        self.endpoint.serve_if_due(now, id)?;
        Ok(progress)
    }

    /// Like [`Connection::next_units`] without waiting and without serving the network.
    pub fn try_next_units(&mut self, stream: StreamId) -> Result<Option<Progress>, Error> {
        let id = self.id;
        self.endpoint.take(|hub, now| hub.try_progress(now, id, stream))
    }

    /// Nobody will read the stream any more: what comes is thrown away, so that its window does not close.
    pub fn discard(&mut self, stream: StreamId) -> Result<(), Error> {
        let id = self.id;
        self.endpoint.change(|hub, now| {
            hub.inbox(id)?;
            hub.discard(now, id, stream);
            Ok(())
        })
    }

    /// The contract of a stream of the peer, with the window as granted.
    pub fn receiving_contract(&mut self, stream: StreamId) -> Result<Contract, Error> {
        self.endpoint.look(|hub| hub.receiving_contract(self.id, stream).cloned())
    }

    /// A new rate in our direction, in force at once: a [`crate::RateSpec`] fixes it, [`Rate::AUTO`] has it found.
    ///
    /// # Errors
    ///
    /// [`Error::Rate`] for an automatic rate whose bounds contradict each other, or under a class without rate control.
    pub fn set_rate(&mut self, rate: impl Into<Rate>) -> Result<(), Error> {
        let (id, rate) = (self.id, rate.into());
        self.endpoint.change(|hub, now| hub.set_rate(now, id, rate))
    }

    /// The fingerprint of the key the peer has proved to hold; `None` in plain mode.
    pub fn peer_fingerprint(&self) -> Option<Fingerprint> {
        self.endpoint.look(|hub| hub.peer_fingerprint(self.id))
    }

    /// The rate in force in our direction, in whole IP packets; `None` when unpaced.
    pub fn rate(&mut self) -> Result<Option<Bandwidth>, Error> {
        self.endpoint.look(|hub| hub.rate(self.id))
    }

    /// Waits until the rate has changed by more than a twentieth since this or [`Endpoint::wait`] told it last, and
    /// gives it. An automatic rate is told at most ten times a second; an encoder should follow it.
    ///
    /// # Errors
    ///
    /// [`Error::TimedOut`] when `timeout` has passed, [`Error::Closed`] when the connection has ended.
    pub fn rate_changed(&mut self, timeout: Option<Duration>) -> Result<Bandwidth, Error> {
        let id = self.id;
        self.endpoint.wait_for(timeout, |hub, _| hub.poll_rate_changed(id))
    }

    /// Asks for a new class in our direction; [`crate::ConnectionEvent::Reclassed`] tells when it is in force.
    ///
    /// # Errors
    ///
    /// [`Error::Unlimited`] for a class with neither flow control nor rate control, [`Error::Rate`] for one without rate
    /// control while the rate is automatic.
    pub fn set_class(&mut self, class: Class) -> Result<(), Error> {
        let id = self.id;
        self.endpoint.change(|hub, now| hub.set_class(now, id, class))
    }

    /// The statistics so far.
    pub fn statistics(&mut self) -> Result<Statistics, Error> {
        self.endpoint.look(|hub| hub.statistics(self.id))
    }

    /// The statistics of one stream of ours so far.
    pub fn stream_statistics(&mut self, stream: StreamId) -> Result<StreamStatistics, Error> {
        self.endpoint.look(|hub| hub.stream_statistics(self.id, stream))
    }

    /// Whether any segment of ours has no verdict yet.
    pub fn has_unjudged(&mut self) -> Result<bool, Error> {
        self.endpoint.look(|hub| hub.has_unjudged(self.id))
    }

    /// Serves the network for so long, where a sleep would leave it alone. What happens is kept.
    ///
    /// # Errors
    ///
    /// [`Error::Woken`] when a waker has ended the call.
    pub fn serve(&mut self, time: Duration) -> Result<(), Error> {
        self.endpoint.serve_for(time)
    }

    /// Closes gracefully: finishes every stream, waits until everything accepted at both ends is judged and the
    /// peer has confirmed. What the peer sends meanwhile is thrown away; to receive it, use
    /// [`Connection::begin_close`]. Verdicts and statistics stay until [`Endpoint::forget`].
    ///
    /// # Errors
    ///
    /// [`Error::Closed`] when the connection broke off instead.
    pub fn close(self, code: u64, detail: &str) -> Result<(), Error> {
        let id = self.id;
        self.endpoint.change(|hub, now| {
            hub.close(now, id, code, detail)?;
            hub.discard_all(now, id);
            Ok::<_, Error>(())
        })?;
        self.endpoint.wait_for(None, |hub, _| match hub.poll_closed(id) {
            Poll::Ready(Ok(_)) if hub.protocol.is_forgotten(id) => hub.closed_well(id),
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            _ => Poll::Pending,
        })
    }

    /// Begins a graceful close; [`crate::ConnectionEvent::Closed`] tells when it is done.
    pub fn begin_close(&mut self, code: u64, detail: &str) -> Result<(), Error> {
        let id = self.id;
        self.endpoint.change(|hub, now| hub.close(now, id, code, detail))
    }

    /// Waits until the connection has ended, and says why. What arrives stays to be received.
    ///
    /// # Errors
    ///
    /// [`Error::TimedOut`] when `timeout` has passed.
    pub fn closed(&mut self, timeout: Option<Duration>) -> Result<CloseReason, Error> {
        let id = self.id;
        self.endpoint.wait_for(timeout, |hub, _| hub.poll_closed(id))
    }

    /// Breaks off at once; what has no verdict is *unknown*.
    pub fn abort(self, code: u64, detail: &str) -> Result<(), Error> {
        let id = self.id;
        self.endpoint.change(|hub, now| hub.abort(now, id, code, detail))?;
        self.endpoint.serve()
    }

    /// Waits until a connection that has ended has drained (RFC 9000 10.2.2): until then it answers a close that its peer repeats
    /// because the answer was lost.
    pub fn drained(&mut self) -> Result<(), Error> {
        let id = self.id;
        self.endpoint.wait_for(None, |hub, _| if hub.protocol.is_forgotten(id) { Poll::Ready(Ok(())) } else { Poll::Pending })
    }
}
