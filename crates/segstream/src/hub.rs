//! The protocol's endpoint with an inbox for each connection: all that both interfaces share.
//!
//! Called by [`crate::blocking`] on the caller's thread and by the asynchronous handles under a lock. Neither waits
//! nor sends: what cannot be had yet is [`Poll::Pending`], and the caller decides how to wait.
//!
//! - `hub`: connections, from the request until they have drained (RFC 9000 10.2.2);
//! - `hub/sending`, `hub/receiving`: what is done with streams.
//!
//! Invariant: every event of the protocol is taken into an inbox; a connection nobody holds any more goes as soon
//! as it has drained.

mod receiving;
mod sending;

use crate::builder::Parts;
use crate::inbox::{Inbox, News, Receiving};
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

/// The events that the hub itself responds to.
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

/// An endpoint without its socket.
#[derive(Debug)]
pub(crate) struct Hub {
    pub(crate) protocol: Protocol,
    /// That of our key.
    pub(crate) fingerprint: Option<Fingerprint>,
    config: Config,
    // Why boxed: a node of the map has room for more than it holds.
    inboxes: BTreeMap<ConnectionId, Box<Inbox>>,
    /// Connections of peers the application has not been given.
    incoming: VecDeque<ConnectionId>,
    /// Connections with something to tell.
    news: VecDeque<ConnectionId>,
}

impl Hub {
    /// A hub without connections, for one of the endpoints on a port.
    pub(crate) fn new(parts: Parts, shard: Shard) -> Result<Self, Error> {
        let (protection, fingerprint) = crate::security::protection(&parts.security)?;
        let Parts { config, accept, .. } = parts;
        Ok(Self {
            protocol: Protocol::with_protection(config.protocol(accept, shard), protection)?,
            fingerprint,
            config,
            inboxes: BTreeMap::new(),
            incoming: VecDeque::new(),
            news: VecDeque::new(),
        })
    }

    /// Asks for a connection. Nothing is sent when this fails.
    pub(crate) fn connect(&mut self, now: Timestamp, peer: &Peer, streams: Vec<Contract>) -> Result<ConnectionId, Error> {
        let end = StreamId(streams.len() as u32);
        let id = self.protocol.connect(now, peer.address, &peer.trust, streams)?;
        let mut inbox = Inbox::new(peer.address, false);
        StreamId::FIRST.up_to(end).for_each(|stream| inbox.on_opened(stream));
        self.inboxes.insert(id, Box::new(inbox));
        Ok(id)
    }

    /// Whether the connection asked for is there.
    pub(crate) fn poll_connected(&mut self, id: ConnectionId) -> Poll<Result<(), Error>> {
        let Some(inbox) = self.inboxes.get_mut(&id) else { return Poll::Ready(Err(Error::Unknown("connection"))) };
        if inbox.closed.is_some() {
            return Poll::Ready(Err(ended(inbox)));
        }
        if !inbox.connected {
            return Poll::Pending;
        }
        inbox.take_connected();
        Poll::Ready(Ok(()))
    }

    /// The next connection of a peer.
    pub(crate) fn poll_accept(&mut self) -> Poll<ConnectionId> {
        while let Some(id) = self.incoming.pop_front() {
            // Why: whoever hears of everything in one place may have been told of it there.
            if self.inboxes.get_mut(&id).is_some_and(|inbox| inbox.take_connected()) {
                return Poll::Ready(id);
            }
        }
        Poll::Pending
    }

    /// Takes what the protocol tells, and says whom it concerns. Returns whether it has changed anything in the
    /// protocol.
    pub(crate) fn absorb(&mut self, now: Timestamp, mut tell: impl FnMut(ConnectionId, News)) -> bool {
        let mut changed = false;
        while let Some((id, event)) = self.protocol.poll_event() {
            let Some(connection) = self.protocol.connection(id) else { continue };
            let (remote, incoming) = (connection.remote(), connection.role() == Role::Responder);
            let inbox = self.inboxes.entry(id).or_insert_with(|| Box::new(Inbox::new(remote, incoming)));
            let cause = Cause::of(&event);
            let opened = if let ConnectionEvent::StreamOpened(stream) = event { Some(stream) } else { None };
            if opened.is_some() {
                inbox.forget_received(|stream| connection.has_retired(stream));
            }
            let news = inbox.take(event);
            if let Some(receiving) = opened.and_then(|stream| inbox.receiving.get_mut(&stream)) {
                receiving.contract = opened.and_then(|stream| connection.receiving_contract(stream)).cloned().map(Box::new);
            }
            if !core::mem::replace(&mut inbox.queued, true) {
                self.news.push_back(id);
            }
            changed |= self.respond(now, id, cause);
            tell(id, news);
        }
        // One that is still held is forgotten when it is released.
        while let Some(id) = self.protocol.poll_forgotten() {
            self.forget_if_ended(id);
        }
        changed
    }

    /// Does what an event makes necessary without the application. Returns whether the protocol was changed.
    fn respond(&mut self, now: Timestamp, id: ConnectionId, cause: Cause) -> bool {
        let Some(inbox) = self.inboxes.get_mut(&id) else { return false };
        match cause {
            Cause::Connected if inbox.incoming => self.incoming.push_back(id),
            // A peer that asked for a connection and never came back was nobody's connection yet.
            Cause::Closed if inbox.incoming && !inbox.connected => {
                inbox.released = true;
            }
            Cause::Writable(stream) => return self.end_owed(now, id, stream),
            Cause::Opened if inbox.takes_no_streams => {
                self.discard_unaccepted(now, id);
                return true;
            }
            Cause::Readable(stream) if inbox.discards(stream) => {
                self.throw_away(now, id, stream);
                return true;
            }
            _ => {}
        }
        false
    }

    /// Nobody holds the connection any more: it is closed gracefully, what its peer still sends is thrown away, and
    /// it is forgotten when it has drained.
    pub(crate) fn release(&mut self, now: Timestamp, id: ConnectionId) {
        let Some(inbox) = self.inboxes.get_mut(&id) else { return };
        inbox.released = true;
        let streams: Vec<StreamId> = inbox.receiving.keys().copied().collect();
        if let Some(connection) = self.protocol.connection_mut(id) {
            connection.close(now, 0, "no longer needed");
        }
        for stream in streams {
            self.throw_away(now, id, stream);
        }
        self.forget_if_ended(id);
    }

    /// Forgets a connection that nobody holds and that has drained.
    fn forget_if_ended(&mut self, id: ConnectionId) {
        let held = self.inboxes.get(&id).is_some_and(|inbox| !inbox.released);
        if !held && self.protocol.is_forgotten(id) {
            self.protocol.forget(id);
            self.inboxes.remove(&id);
        }
    }

    /// No connection is accepted from now on; those nobody was given yet are closed. Returns whether there were any.
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
    pub(crate) fn is_quiet(&mut self) -> bool {
        self.protocol.is_quiet()
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

    /// The next thing any connection tells, connection by connection.
    pub(crate) fn next_event(&mut self) -> Option<(ConnectionId, ConnectionEvent)> {
        while let Some(&id) = self.news.front() {
            let inbox = self.inboxes.get_mut(&id).filter(|inbox| !inbox.released);
            if let Some(event) = inbox.and_then(|inbox| inbox.next_event()) {
                return Some((id, event));
            }
            self.news.pop_front();
            if let Some(inbox) = self.inboxes.get_mut(&id) {
                inbox.queued = false;
            }
        }
        None
    }

    /// What a connection has told.
    pub(crate) fn inbox(&self, id: ConnectionId) -> Result<&Inbox, Error> {
        self.inboxes.get(&id).map(|inbox| &**inbox).filter(|inbox| !inbox.released).ok_or(Error::Unknown("connection"))
    }

    /// A connection and what it has told.
    fn parts(&mut self, id: ConnectionId) -> Result<(&mut Connection, &mut Inbox), Error> {
        let inbox = self.inboxes.get_mut(&id).map(|inbox| &mut **inbox).filter(|inbox| !inbox.released);
        self.protocol.connection_mut(id).zip(inbox).ok_or(Error::Unknown("connection"))
    }

    /// Begins a graceful close.
    pub(crate) fn close(&mut self, now: Timestamp, id: ConnectionId, code: u64, detail: &str) -> Result<(), Error> {
        let (connection, inbox) = self.parts(id)?;
        inbox.closing = true;
        connection.close(now, code, detail);
        Ok(())
    }

    /// Breaks off at once.
    pub(crate) fn abort(&mut self, now: Timestamp, id: ConnectionId, code: u64, detail: &str) -> Result<(), Error> {
        let (connection, inbox) = self.parts(id)?;
        inbox.closing = true;
        connection.abort(now, code, detail);
        Ok(())
    }

    /// Breaks every connection off but those in `except`.
    pub(crate) fn abort_others(&mut self, now: Timestamp, except: &[ConnectionId], detail: &str) {
        for id in self.connections() {
            if let Some(connection) = self.protocol.connection_mut(id).filter(|_| !except.contains(&id)) {
                connection.abort(now, 0, detail);
            }
        }
    }

    /// Closes every connection gracefully on which nothing can be lost any more. Those, and those that have ended gracefully
    /// and still answer their peers.
    pub(crate) fn close_settled(&mut self, now: Timestamp) -> Vec<ConnectionId> {
        let settled: Vec<ConnectionId> = self.connections().into_iter().filter(|id| self.is_settled(*id)).collect();
        settled.iter().for_each(|id| self.release(now, *id));
        settled
    }

    /// Whether every stream of the connection has ended, and everything sent is judged.
    fn is_settled(&self, id: ConnectionId) -> bool {
        let (Some(connection), Some(inbox)) = (self.protocol.connection(id), self.inboxes.get(&id)) else { return false };
        let is_read = |receiving: &Receiving| receiving.ended || receiving.discarded;
        match inbox.closed {
            Some(_) => inbox.closed_gracefully(),
            None => inbox.connected && !connection.has_unjudged() && (inbox.released || inbox.receiving.values().all(is_read)),
        }
    }

    /// Whether the connection has not been forgotten.
    pub(crate) fn is_known(&self, id: ConnectionId) -> bool {
        self.protocol.connection(id).is_some()
    }

    /// Why the connection is no more.
    pub(crate) fn poll_closed(&self, id: ConnectionId) -> Poll<Result<CloseReason, Error>> {
        match self.inbox(id) {
            Err(error) => Poll::Ready(Err(error)),
            Ok(inbox) => inbox.closed.clone().map_or(Poll::Pending, |reason| Poll::Ready(Ok(reason))),
        }
    }

    /// Whether an ended connection ended as it should.
    pub(crate) fn closed_well(&self, id: ConnectionId) -> Poll<Result<(), Error>> {
        Poll::Ready(self.inbox(id).and_then(|inbox| if inbox.closed_gracefully() { Ok(()) } else { Err(ended(inbox)) }))
    }

    /// Who to connect to at `address`, where this endpoint is.
    pub(crate) fn peer(&self, address: SocketAddr) -> Peer {
        Peer { address, trust: self.fingerprint.map_or(Trust::Anyone, Trust::Key) }
    }

    /// The key the peer has proved to hold.
    pub(crate) fn peer_fingerprint(&self, id: ConnectionId) -> Option<Fingerprint> {
        self.protocol.connection(id).and_then(Connection::peer)
    }

    /// Whether any segment of ours has no verdict yet.
    pub(crate) fn has_unjudged(&self, id: ConnectionId) -> Result<bool, Error> {
        self.protocol.connection(id).map(Connection::has_unjudged).ok_or(Error::Unknown("connection"))
    }

    /// A new rate, in force at once.
    pub(crate) fn set_rate(&mut self, now: Timestamp, id: ConnectionId, rate: Rate) -> Result<(), Error> {
        let (connection, _) = self.parts(id)?;
        Ok(connection.set_rate(now, rate)?)
    }

    /// The rate in force; `None` when unpaced.
    pub(crate) fn rate(&self, id: ConnectionId) -> Result<Option<Bandwidth>, Error> {
        self.protocol.connection(id).map(Connection::rate).ok_or(Error::Unknown("connection"))
    }

    /// The rate, if it has changed since the application heard of it.
    pub(crate) fn poll_rate_changed(&mut self, id: ConnectionId) -> Poll<Result<Bandwidth, Error>> {
        let (_, inbox) = match self.parts(id) {
            Ok(parts) => parts,
            Err(error) => return Poll::Ready(Err(error)),
        };
        match inbox.take_rate() {
            Some(rate) => Poll::Ready(Ok(rate)),
            None if inbox.closed.is_some() => Poll::Ready(Err(ended(inbox))),
            None => Poll::Pending,
        }
    }

    /// Asks for a new class.
    pub(crate) fn set_class(&mut self, now: Timestamp, id: ConnectionId, class: Class) -> Result<(), Error> {
        if !class.is_limited(true) && !self.config.unlimited {
            return Err(Error::Unlimited(class));
        }
        let (connection, inbox) = self.parts(id)?;
        if inbox.closed.is_some() {
            return Err(ended(inbox));
        }
        connection.set_class(now, class)?;
        inbox.class_asked = Some(class);
        Ok(())
    }

    /// Whether `class` is in force, or another one has been asked for since.
    #[cfg(feature = "tokio")]
    pub(crate) fn poll_class(&mut self, id: ConnectionId, class: Class) -> Poll<Result<(), Error>> {
        let (connection, inbox) = match self.parts(id) {
            Ok(parts) => parts,
            Err(error) => return Poll::Ready(Err(error)),
        };
        if connection.class() == class || inbox.class_asked != Some(class) {
            return Poll::Ready(Ok(()));
        }
        if inbox.closed.is_some() { Poll::Ready(Err(ended(inbox))) } else { Poll::Pending }
    }

    /// The statistics so far.
    pub(crate) fn statistics(&self, id: ConnectionId) -> Result<Statistics, Error> {
        self.protocol.connection(id).map(Statistics::of).ok_or(Error::Unknown("connection"))
    }

    /// The statistics of one stream of ours.
    pub(crate) fn stream_statistics(&self, id: ConnectionId, stream: StreamId) -> Result<StreamStatistics, Error> {
        let connection = self.protocol.connection(id).ok_or(Error::Unknown("connection"))?;
        connection.stream_counters(stream).map(StreamStatistics::of).ok_or(Error::Unknown("stream"))
    }
}

/// The connection is no more, as an error.
fn ended(inbox: &Inbox) -> Error {
    Error::Closed { remote: inbox.remote, reason: inbox.closed.clone().unwrap_or(CloseReason::AbortedHere) }
}

impl Endpoint for Hub {
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
        self.protocol.poll_deadline()
    }

    fn handle_timeout(&mut self, now: Timestamp) {
        self.protocol.handle_timeout(now);
    }
}
