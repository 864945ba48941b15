//! The state of an endpoint: the protocol's endpoint, and a [`ConnectionState`] for each connection. Both interfaces share it.
//!
//! Called by [`crate::blocking`] on the caller's thread and by the asynchronous handles under a lock. Nothing here waits or sends: a
//! result that is not there yet is [`Poll::Pending`], and the caller decides how to wait.
//!
//! - `endpoint_state`: connections, from the request until they have drained (RFC 9000 10.2.2);
//! - `endpoint_state/sending`, `endpoint_state/receiving`: the operations on streams; `endpoint_state/confirming`: confirmations.
//!
//! Invariant: every event of the protocol is stored in a connection's state; a connection without handles is removed as soon as it has
//! drained.

mod confirming;
mod receiving;
mod sending;

pub(crate) use sending::or_blocked;

use crate::builder::Parts;
use crate::connection_state::{ConnectionState, EventScope, Receiving};
use crate::{
    Bandwidth, Class, CloseReason, Config, ConnectionEvent, ConnectionId, Contract, Error, Peer, Rate, Statistics, StreamId,
    StreamStatistics, Timestamp, Trust,
};
use segstream_base::endpoint::{Arrival, Deadline, Endpoint, Transmit};
use segstream_proto::config::Shard;
use segstream_proto::connection::{Connection, Role};
use segstream_proto::endpoint::Endpoint as Protocol;
use segstream_proto::session::Fingerprint;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::task::Poll;

/// The events that the endpoint state itself handles.
#[derive(Clone, Copy, Debug)]
enum Cause {
    Connected,
    Closed,
    Opened,
    Writable(StreamId),
    Readable(StreamId),
    Other,
}

impl Cause {
    const fn of(event: &ConnectionEvent) -> Self {
        match *event {
            ConnectionEvent::Connected => Self::Connected,
            ConnectionEvent::Closed(_) => Self::Closed,
            ConnectionEvent::StreamOpened(_) => Self::Opened,
            ConnectionEvent::Writable(stream) => Self::Writable(stream),
            ConnectionEvent::Readable(stream) => Self::Readable(stream),
            _ => Self::Other,
        }
    }
}

/// How many segments one call passes.
///
/// Why: whoever drives the endpoint waits for its lock meanwhile, some 0.3 ms for so many short segments.
pub(crate) const BATCH_SEGMENTS_MAX: usize = 1024;

/// An endpoint without its socket.
#[derive(Debug)]
pub(crate) struct EndpointState {
    pub(crate) protocol: Protocol,
    /// The fingerprint of our key.
    pub(crate) fingerprint: Option<Fingerprint>,
    config: Config,
    // Why boxed: a node of the map has spare room.
    states: BTreeMap<ConnectionId, Box<ConnectionState>>,
    /// Incoming connections that the application has not accepted.
    incoming: VecDeque<ConnectionId>,
    /// Connections with pending events.
    with_events: VecDeque<ConnectionId>,
    /// How metrics and records name the connections.
    #[cfg(any(feature = "metrics", feature = "recorder"))]
    numbers: crate::connection_numbers::ConnectionNumbers,
    /// What was published of the connections, if that is wanted.
    #[cfg(feature = "metrics")]
    publisher: Option<crate::metrics::Publisher>,
    /// What connections do, if that is wanted.
    #[cfg(feature = "recorder")]
    recording: Option<crate::recorder::Recording>,
}

impl EndpointState {
    /// The state of an endpoint without connections, whose socket is bound to `listener`; one of the shards of a port.
    pub(crate) fn new(parts: Parts, listener: SocketAddr, shard: Shard) -> Result<Self, Error> {
        let (protection, fingerprint) = crate::security::protection(&parts.security, parts.config.connections_per_peer)?;
        #[cfg(feature = "metrics")]
        let publisher = parts.metrics.map(|wanted| crate::metrics::Publisher::new(wanted.demand));
        #[cfg(feature = "recorder")]
        let recording = parts.recorder.map(|recorder| crate::recorder::Recording::new(recorder, parts.clock.epoch()));
        let Parts { config, accept, clock, .. } = parts;
        let protocol = config.protocol(accept, shard, listener, clock.epoch().into());
        #[cfg(feature = "recorder")]
        let protocol = segstream_proto::config::Config { trace: recording.is_some(), ..protocol };
        Ok(Self {
            protocol: Protocol::with_protection(protocol, protection)?,
            fingerprint,
            config,
            states: BTreeMap::new(),
            incoming: VecDeque::new(),
            with_events: VecDeque::new(),
            #[cfg(any(feature = "metrics", feature = "recorder"))]
            numbers: Default::default(),
            #[cfg(feature = "metrics")]
            publisher,
            #[cfg(feature = "recorder")]
            recording,
        })
    }

    /// Starts a connection. If this fails, nothing is sent.
    pub(crate) fn connect(&mut self, now: Timestamp, peer: &Peer, streams: Vec<Contract>) -> Result<ConnectionId, Error> {
        let end = StreamId(streams.len() as u32);
        let id = self.protocol.connect(now, peer.address, &peer.trust, streams)?;
        let mut connection_state = ConnectionState::new(peer.address, false);
        StreamId::FIRST.up_to(end).for_each(|stream| connection_state.on_opened(stream, |_| false));
        self.states.insert(id, Box::new(connection_state));
        Ok(id)
    }

    /// Whether an outgoing connection is established.
    pub(crate) fn poll_connected(&mut self, id: ConnectionId) -> Poll<Result<(), Error>> {
        let Some(connection_state) = self.states.get_mut(&id) else { return Poll::Ready(Err(Error::Unknown("connection"))) };
        if connection_state.closed.is_some() {
            return Poll::Ready(Err(ended(connection_state)));
        }
        if !connection_state.connected {
            return Poll::Pending;
        }
        connection_state.take_connected();
        Poll::Ready(Ok(()))
    }

    /// The next incoming connection.
    pub(crate) fn poll_accept(&mut self) -> Poll<ConnectionId> {
        while let Some(id) = self.incoming.pop_front() {
            // Why skipped otherwise: the application may have got it as an event.
            if self.states.get_mut(&id).is_some_and(|connection_state| connection_state.take_connected()) {
                return Poll::Ready(id);
            }
        }
        Poll::Pending
    }

    /// Stores the protocol's events and calls `notify` with the scope of each. Returns whether it has changed anything in the
    /// protocol.
    pub(crate) fn process_events(&mut self, now: Timestamp, mut notify: impl FnMut(ConnectionId, EventScope)) -> bool {
        let mut changed = false;
        while let Some((id, event)) = self.protocol.poll_event() {
            let Some(connection) = self.protocol.connection(id) else { continue };
            let (remote, incoming) = (connection.remote(), connection.role() == Role::Responder);
            let connection_state = self.states.entry(id).or_insert_with(|| Box::new(ConnectionState::new(remote, incoming)));
            let cause = Cause::of(&event);
            #[cfg(feature = "metrics")]
            if let (Some(publisher), ConnectionEvent::Judged { stream, segments, verdict, .. }) = (&mut self.publisher, &event) {
                publisher.on_judged(id, *stream, segments.end.0 - segments.start.0, *verdict);
            }
            let opened = if let ConnectionEvent::StreamOpened(stream) = event { Some(stream) } else { None };
            if opened.is_some() {
                connection_state.remove_retired(|stream| connection.has_retired(stream));
            }
            let scope = connection_state.on_event(event);
            if let Some(receiving) = opened.and_then(|stream| connection_state.receiving.get_mut(&stream)) {
                receiving.contract = opened.and_then(|stream| connection.receiving_contract(stream)).cloned().map(Box::new);
            }
            if !core::mem::replace(&mut connection_state.queued, true) {
                self.with_events.push_back(id);
            }
            changed |= self.respond(now, id, cause);
            notify(id, scope);
        }
        #[cfg(feature = "recorder")]
        self.record();
        // A drained connection that still has handles is removed when it is released.
        while let Some(id) = self.protocol.poll_drained() {
            self.remove_if_drained(id);
        }
        changed
    }

    /// Records what connections have done.
    #[cfg(feature = "recorder")]
    fn record(&mut self) {
        let Some(recording) = &mut self.recording else { return };
        while let Some((id, events)) = self.protocol.poll_trace() {
            if let Some(connection) = self.protocol.connection(id) {
                recording.record(self.numbers.of(id), connection, events);
            }
        }
    }

    /// Handles an event without the application where that is necessary. Returns whether the protocol was changed.
    fn respond(&mut self, now: Timestamp, id: ConnectionId, cause: Cause) -> bool {
        if matches!(cause, Cause::Connected) && self.protocol.connection(id).is_some_and(Connection::has_repair_units) {
            crate::code_tables::prepare();
        }
        let Some(connection_state) = self.states.get_mut(&id) else { return false };
        #[cfg(feature = "metrics")]
        if let (Cause::Connected, Some(publisher)) = (cause, &mut self.publisher) {
            publisher.on_established(now, id, self.numbers.of(id));
        }
        match cause {
            Cause::Connected if connection_state.incoming => self.incoming.push_back(id),
            // The set-up of an incoming connection has failed; the application has not seen it.
            Cause::Closed if connection_state.incoming && !connection_state.connected => {
                connection_state.released = true;
            }
            Cause::Writable(stream) => return self.end_pending(now, id, stream),
            Cause::Opened if connection_state.refuses_streams => {
                self.discard_unaccepted(now, id);
                return true;
            }
            Cause::Readable(stream) if connection_state.discards(stream) => {
                self.discard_received(now, id, stream);
                return true;
            }
            _ => {}
        }
        false
    }

    /// The last handle was dropped: the connection is closed gracefully, what its peer still sends is discarded, and it is removed when
    /// it has drained.
    pub(crate) fn release(&mut self, now: Timestamp, id: ConnectionId) {
        let Some(connection_state) = self.states.get_mut(&id) else { return };
        connection_state.released = true;
        let streams: Vec<StreamId> = connection_state.receiving.keys().copied().collect();
        if let Some(connection) = self.protocol.connection_mut(id) {
            connection.close(now, 0, "no longer needed");
        }
        for stream in streams {
            self.discard_received(now, id, stream);
        }
        self.remove_if_drained(id);
    }

    /// Removes a connection that has drained and has no handles.
    fn remove_if_drained(&mut self, id: ConnectionId) {
        let held = self.states.get(&id).is_some_and(|connection_state| !connection_state.released);
        if !held && self.protocol.is_drained(id) {
            #[cfg(feature = "metrics")]
            if let (Some(publisher), Some(connection)) = (&mut self.publisher, self.protocol.connection(id)) {
                publisher.on_removed(id, connection.remote(), &Statistics::of(connection));
            }
            #[cfg(feature = "recorder")]
            {
                self.record();
                if let Some(recording) = &mut self.recording {
                    recording.end(self.numbers.of(id));
                }
            }
            #[cfg(any(feature = "metrics", feature = "recorder"))]
            self.numbers.forget(id);
            self.protocol.release(id);
            self.states.remove(&id);
        }
    }

    /// Accepts no connection from now on, and closes those that were not accepted yet. Returns whether there were any.
    pub(crate) fn stop_accepting(&mut self, now: Timestamp) -> bool {
        self.protocol.set_accepting(false);
        let mut any = false;
        while let Poll::Ready(id) = self.poll_accept() {
            self.release(now, id);
            any = true;
        }
        any
    }

    /// Whether every connection has ended and drained.
    pub(crate) fn all_drained(&mut self) -> bool {
        self.protocol.all_drained()
    }

    /// Whether there is no connection at all.
    #[cfg(feature = "tokio")]
    pub(crate) fn is_empty(&self) -> bool {
        self.protocol.connection_count() == 0
    }

    /// All connections.
    pub(crate) fn connections(&self) -> Vec<ConnectionId> {
        self.protocol.connections().collect()
    }

    /// The next event of any connection, connection by connection.
    pub(crate) fn next_event(&mut self) -> Option<(ConnectionId, ConnectionEvent)> {
        while let Some(&id) = self.with_events.front() {
            let connection_state = self.states.get_mut(&id).filter(|connection_state| !connection_state.released);
            if let Some(event) = connection_state.and_then(|connection_state| connection_state.next_event()) {
                return Some((id, event));
            }
            self.with_events.pop_front();
            if let Some(connection_state) = self.states.get_mut(&id) {
                connection_state.queued = false;
            }
        }
        None
    }

    /// The state of a connection.
    pub(crate) fn connection_state(&self, id: ConnectionId) -> Result<&ConnectionState, Error> {
        self.states
            .get(&id)
            .map(|connection_state| &**connection_state)
            .filter(|connection_state| !connection_state.released)
            .ok_or(Error::Unknown("connection"))
    }

    /// A connection of the protocol, also after its release until it has drained.
    fn connection(&self, id: ConnectionId) -> Result<&Connection, Error> {
        self.protocol.connection(id).ok_or(Error::Unknown("connection"))
    }

    /// A connection of the protocol and its state here.
    fn parts(&mut self, id: ConnectionId) -> Result<(&mut Connection, &mut ConnectionState), Error> {
        let connection_state =
            self.states.get_mut(&id).map(|connection_state| &mut **connection_state).filter(|connection_state| !connection_state.released);
        self.protocol.connection_mut(id).zip(connection_state).ok_or(Error::Unknown("connection"))
    }

    /// Begins a graceful close.
    pub(crate) fn close(&mut self, now: Timestamp, id: ConnectionId, code: u64, detail: &str) -> Result<(), Error> {
        let (connection, connection_state) = self.parts(id)?;
        connection_state.closing = true;
        connection.close(now, code, detail);
        Ok(())
    }

    /// Aborts the connection.
    pub(crate) fn abort(&mut self, now: Timestamp, id: ConnectionId, code: u64, detail: &str) -> Result<(), Error> {
        let (connection, connection_state) = self.parts(id)?;
        connection_state.closing = true;
        connection.abort(now, code, detail);
        Ok(())
    }

    /// Aborts every connection but those in `except`.
    pub(crate) fn abort_others(&mut self, now: Timestamp, except: &[ConnectionId], detail: &str) {
        for id in self.connections() {
            if let Some(connection) = self.protocol.connection_mut(id).filter(|_| !except.contains(&id)) {
                connection.abort(now, 0, detail);
            }
        }
    }

    /// Closes every settled connection gracefully. Returns those, and those that were closed gracefully before and still answer their
    /// peers.
    pub(crate) fn close_settled(&mut self, now: Timestamp) -> Vec<ConnectionId> {
        let settled: Vec<ConnectionId> = self.connections().into_iter().filter(|id| self.is_settled(*id)).collect();
        settled.iter().for_each(|id| self.release(now, *id));
        settled
    }

    /// Whether every stream of the connection has ended, and everything sent is judged.
    fn is_settled(&self, id: ConnectionId) -> bool {
        let (Some(connection), Some(connection_state)) = (self.protocol.connection(id), self.states.get(&id)) else { return false };
        let is_read = |receiving: &Receiving| receiving.ended || receiving.discarded;
        match connection_state.closed {
            Some(_) => connection_state.closed_gracefully(),
            None => {
                connection_state.connected
                    && !connection.has_unjudged()
                    && (connection_state.released || connection_state.receiving.values().all(is_read))
            }
        }
    }

    /// Whether the connection has not been removed.
    pub(crate) fn is_known(&self, id: ConnectionId) -> bool {
        self.protocol.connection(id).is_some()
    }

    /// Why the connection has ended.
    pub(crate) fn poll_closed(&self, id: ConnectionId) -> Poll<Result<CloseReason, Error>> {
        self.connection_state(id)?.closed.clone().map_or(Poll::Pending, |reason| Poll::Ready(Ok(reason)))
    }

    /// Whether an ended connection was closed gracefully.
    pub(crate) fn graceful_end(&self, id: ConnectionId) -> Poll<Result<(), Error>> {
        Poll::Ready(
            self.connection_state(id)
                .and_then(|connection_state| if connection_state.closed_gracefully() { Ok(()) } else { Err(ended(connection_state)) }),
        )
    }

    /// This endpoint, at `address`, as a peer to connect to.
    pub(crate) fn peer(&self, address: SocketAddr) -> Peer {
        Peer { address, trust: self.fingerprint.map_or(Trust::Anyone, Trust::Key) }
    }

    /// The fingerprint of the key by which the peer has authenticated itself.
    pub(crate) fn peer_fingerprint(&self, id: ConnectionId) -> Option<Fingerprint> {
        self.protocol.connection(id).and_then(Connection::peer)
    }

    /// Whether any segment of ours has no verdict yet.
    pub(crate) fn has_unjudged(&self, id: ConnectionId) -> Result<bool, Error> {
        self.connection(id).map(Connection::has_unjudged)
    }

    /// A new rate, in force at once.
    pub(crate) fn set_rate(&mut self, now: Timestamp, id: ConnectionId, rate: Rate) -> Result<(), Error> {
        let (connection, _) = self.parts(id)?;
        Ok(connection.set_rate(now, rate)?)
    }

    /// The rate in force; `None` when unpaced.
    pub(crate) fn rate(&self, id: ConnectionId) -> Result<Option<Bandwidth>, Error> {
        self.connection(id).map(Connection::rate)
    }

    /// The rate, if it has changed since the application last got it.
    pub(crate) fn poll_rate_changed(&mut self, id: ConnectionId) -> Poll<Result<Bandwidth, Error>> {
        let (_, connection_state) = self.parts(id)?;
        match connection_state.take_rate() {
            Some(rate) => Poll::Ready(Ok(rate)),
            None if connection_state.closed.is_some() => Poll::Ready(Err(ended(connection_state))),
            None => Poll::Pending,
        }
    }

    /// Requests a class change.
    pub(crate) fn set_class(&mut self, now: Timestamp, id: ConnectionId, class: Class) -> Result<(), Error> {
        if !class.is_limited(true) && !self.config.unlimited {
            return Err(Error::Unlimited(class));
        }
        let (connection, connection_state) = self.parts(id)?;
        if connection_state.closed.is_some() {
            return Err(ended(connection_state));
        }
        connection.set_class(now, class)?;
        connection_state.class_asked = Some(class);
        Ok(())
    }

    /// Whether `class` is in force, or another one was requested since.
    #[cfg(feature = "tokio")]
    pub(crate) fn poll_class(&mut self, id: ConnectionId, class: Class) -> Poll<Result<(), Error>> {
        let (connection, connection_state) = self.parts(id)?;
        if connection.class() == class || connection_state.class_asked != Some(class) {
            return Poll::Ready(Ok(()));
        }
        if connection_state.closed.is_some() { Poll::Ready(Err(ended(connection_state))) } else { Poll::Pending }
    }

    /// The statistics so far.
    pub(crate) fn statistics(&self, id: ConnectionId) -> Result<Statistics, Error> {
        self.connection(id).map(Statistics::of)
    }

    /// The statistics of one stream of ours.
    pub(crate) fn stream_statistics(&self, id: ConnectionId, stream: StreamId) -> Result<StreamStatistics, Error> {
        self.connection(id)?.stream_counters(stream).map(StreamStatistics::of).ok_or(Error::Unknown("stream"))
    }
}

/// The error of an ended connection.
fn ended(connection_state: &ConnectionState) -> Error {
    Error::Closed { remote: connection_state.remote, reason: connection_state.closed.clone().unwrap_or(CloseReason::AbortedHere) }
}

impl Endpoint for EndpointState {
    fn handle_datagram(&mut self, now: Timestamp, arrival: Arrival, datagram: &mut [u8]) {
        self.protocol.handle_datagram(now, arrival, datagram);
    }

    fn handle_batch(&mut self, now: Timestamp, arrival: Arrival, datagrams: &mut [u8], datagram_bytes: usize) {
        self.protocol.handle_batch(now, arrival, datagrams, datagram_bytes);
    }

    fn poll_transmit(&mut self, now: Timestamp, max_datagrams: usize, out: &mut Vec<u8>) -> Option<Transmit> {
        self.protocol.poll_transmit(now, max_datagrams, out)
    }

    fn poll_deadline(&self) -> Option<Deadline> {
        let protocol = self.protocol.poll_deadline();
        #[cfg(feature = "metrics")]
        let publication = self.publisher.as_ref().and_then(crate::metrics::Publisher::due).map(|at| Deadline { at, timer: "metrics" });
        #[cfg(feature = "metrics")]
        let protocol = protocol.into_iter().chain(publication).min_by_key(|deadline| deadline.at);
        protocol
    }

    fn handle_timeout(&mut self, now: Timestamp) {
        self.protocol.handle_timeout(now);
        #[cfg(feature = "metrics")]
        if let Some(publisher) = &mut self.publisher {
            let of = |id| self.protocol.connection(id).map(|connection| (id, connection.remote(), Statistics::of(connection)));
            publisher.publish(now, &self.protocol.unmatched, self.protocol.memory(), self.protocol.connections().filter_map(of));
        }
    }
}
