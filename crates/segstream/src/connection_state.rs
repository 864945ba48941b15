//! The state of one connection for the application: its streams and its pending events.
//!
//! Called by the endpoint state, which stores the protocol's events here and takes them out for both interfaces. Events of which only
//! the present state matters (a stream is readable, a window is open) are coalesced.
//!
//! Invariant: the memory is bounded by the streams, the windows and the stored verdicts ([`crate::verdicts`]), whatever the
//! application does not read.

use crate::progress::Progressive;
use crate::verdicts::Verdicts;
use crate::{Bandwidth, Class, CloseReason, ConnectionEvent, Contract, Durable, RefuseReason, StreamId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;

/// A stream of ours.
#[derive(Debug)]
pub(crate) struct Sending {
    pub(crate) verdicts: Verdicts,
    pub(crate) refused: Option<RefuseReason>,
    /// The application has finished the stream.
    pub(crate) finished: bool,
    /// What the peer's application has confirmed, and whether that is news to ours.
    pub(crate) durable: Durable,
    pub(crate) durable_unread: bool,
    /// The writer of the open segment was dropped while the send buffer was full; its end is pending.
    pub(crate) end_pending: bool,
}

impl Sending {
    pub(crate) const fn new(stream: StreamId) -> Self {
        Self {
            verdicts: Verdicts::new(stream),
            refused: None,
            finished: false,
            durable: Durable::NONE,
            durable_unread: false,
            end_pending: false,
        }
    }

    /// Whether no more verdicts will come.
    const fn has_ended(&self) -> bool {
        (self.finished || self.refused.is_some()) && !self.verdicts.has_pending()
    }
}

/// The maximum number of ended streams of ours whose verdicts or refusal are kept for the application; beyond it the oldest are removed.
const ENDED_STREAMS_MAX: usize = 1024;

/// A stream of the peer.
#[derive(Debug, Default)]
pub(crate) struct Receiving {
    /// Its contract, so that the application can read it after the stream has ended.
    pub(crate) contract: Option<Box<Contract>>,
    /// Every segment was delivered to the application.
    pub(crate) ended: bool,
    /// It will not be read: what arrives is discarded, so that the peer's window does not close.
    pub(crate) discarded: bool,
    /// It is read unit by unit.
    // Why boxed: few streams are.
    pub(crate) progress: Option<Box<Progressive>>,
}

/// What an event concerns, so which tasks to notify.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventScope {
    /// The connection as a whole.
    Connection,
    /// A stream of ours.
    Sending(StreamId),
    /// A stream of the peer.
    Receiving(StreamId),
    /// The connection and all its streams.
    All,
}

/// The state of one connection.
#[derive(Debug)]
pub(crate) struct ConnectionState {
    pub(crate) remote: SocketAddr,
    /// It is an incoming connection.
    pub(crate) incoming: bool,
    pub(crate) connected: bool,
    /// A close has begun here.
    pub(crate) closing: bool,
    pub(crate) peer_closing: bool,
    pub(crate) closed: Option<CloseReason>,
    /// Streams that the peer opens from now on are discarded.
    pub(crate) refuses_streams: bool,
    /// The application has no handle of it any more.
    pub(crate) released: bool,
    /// It is in the queue of connections with pending events.
    pub(crate) queued: bool,
    pub(crate) class_asked: Option<Class>,
    pub(crate) sending: BTreeMap<StreamId, Sending>,
    /// One more than the highest stream of ours; those below that are not in `sending` have ended, and all their verdicts were read.
    sending_next: StreamId,
    pub(crate) receiving: BTreeMap<StreamId, Receiving>,
    /// Streams of the peer that the application has not accepted.
    pub(crate) opened: VecDeque<StreamId>,
    pending: PendingEvents,
}

/// The events that [`ConnectionState::next_event`] has not returned yet.
#[derive(Debug, Default)]
struct PendingEvents {
    connected: bool,
    refused: VecDeque<(StreamId, RefuseReason)>,
    streams_available: bool,
    writable: BTreeSet<StreamId>,
    judged: BTreeSet<StreamId>,
    durable: BTreeSet<StreamId>,
    readable: BTreeSet<StreamId>,
    ended: VecDeque<(StreamId, u64)>,
    reclassed: Option<Class>,
    rate: Option<Bandwidth>,
    peer_closing: bool,
    closed: bool,
}

impl ConnectionState {
    pub(crate) fn new(remote: SocketAddr, incoming: bool) -> Self {
        Self {
            remote,
            incoming,
            connected: false,
            closing: false,
            peer_closing: false,
            closed: None,
            refuses_streams: false,
            released: false,
            queued: false,
            class_asked: None,
            sending: BTreeMap::new(),
            sending_next: StreamId::FIRST,
            receiving: BTreeMap::new(),
            opened: VecDeque::new(),
            pending: PendingEvents::default(),
        }
    }

    /// Adds a stream of ours, and removes ended ones but those of which `awaits` says that the peer has yet to confirm them.
    pub(crate) fn on_opened(&mut self, stream: StreamId, awaits: impl Fn(StreamId) -> bool) {
        self.sending.retain(|id, kept| {
            !kept.has_ended() || kept.refused.is_some() || kept.durable_unread || kept.verdicts.has_unread() || awaits(*id)
        });
        let is_spare = |(id, kept): &(&StreamId, &Sending)| kept.has_ended() && !awaits(**id);
        if self.sending.iter().filter(is_spare).count() > ENDED_STREAMS_MAX
            && let Some(oldest) = self.sending.iter().find(is_spare).map(|(&oldest, _)| oldest)
        {
            self.sending.remove(&oldest);
        }
        self.sending.insert(stream, Sending::new(stream));
        self.sending_next = self.sending_next.max(stream + 1);
    }

    /// Removes streams of the peer that have `retired`, except those that the application has not accepted or not read.
    pub(crate) fn remove_retired(&mut self, retired: impl Fn(StreamId) -> bool) {
        let unread = |kept: &Receiving| kept.progress.as_deref().is_some_and(Progressive::has_judged);
        let opened = &self.opened;
        self.receiving.retain(|stream, kept| !retired(*stream) || opened.contains(stream) || unread(kept));
    }

    /// Whether a stream of ours has ended and was removed.
    pub(crate) fn has_removed(&self, stream: StreamId) -> bool {
        stream < self.sending_next && !self.sending.contains_key(&stream)
    }

    /// Stores an event; returns what it concerns.
    pub(crate) fn on_event(&mut self, event: ConnectionEvent) -> EventScope {
        match event {
            ConnectionEvent::Connected => {
                self.connected = true;
                self.pending.connected = true;
            }
            ConnectionEvent::StreamOpened(stream) => {
                self.receiving.entry(stream).or_default();
                self.opened.push_back(stream);
            }
            ConnectionEvent::Readable(stream) => {
                self.pending.readable.insert(stream);
                return EventScope::Receiving(stream);
            }
            ConnectionEvent::Units { stream, segment, units } => {
                if let Some(progress) = self.receiving.entry(stream).or_default().progress.as_mut() {
                    progress.on_units(segment, units);
                    self.pending.readable.insert(stream);
                }
                return EventScope::Receiving(stream);
            }
            ConnectionEvent::Ended { stream, segments } => {
                self.receiving.entry(stream).or_default().ended = true;
                self.pending.ended.push_back((stream, segments));
                return EventScope::Receiving(stream);
            }
            ConnectionEvent::PeerClosing => {
                self.peer_closing = true;
                self.pending.peer_closing = true;
                return EventScope::All;
            }
            ConnectionEvent::Closed(reason) => {
                self.closed = Some(reason);
                self.pending.closed = true;
                return EventScope::All;
            }
            event => return self.on_sending_event(event),
        }
        EventScope::Connection
    }

    /// Stores an event of our own direction.
    fn on_sending_event(&mut self, event: ConnectionEvent) -> EventScope {
        match event {
            ConnectionEvent::Judged { stream, segments, verdict, holes } => {
                if let Some(sending) = self.sending.get_mut(&stream) {
                    sending.verdicts.record(segments, verdict, holes);
                    self.pending.judged.insert(stream);
                }
                return EventScope::Sending(stream);
            }
            ConnectionEvent::Writable(stream) => {
                self.pending.writable.insert(stream);
                return EventScope::Sending(stream);
            }
            ConnectionEvent::Refused(stream, reason) => {
                if let Some(sending) = self.sending.get_mut(&stream) {
                    sending.refused = Some(reason);
                }
                self.pending.refused.push_back((stream, reason));
                return EventScope::Sending(stream);
            }
            ConnectionEvent::Durable(stream, durable) => {
                if let Some(sending) = self.sending.get_mut(&stream) {
                    (sending.durable, sending.durable_unread) = (durable, true);
                    self.pending.durable.insert(stream);
                }
                return EventScope::Sending(stream);
            }
            ConnectionEvent::StreamsAvailable => self.pending.streams_available = true,
            ConnectionEvent::Reclassed(class) => self.pending.reclassed = Some(class),
            ConnectionEvent::RateChanged(rate) => self.pending.rate = Some(rate),
            _ => {}
        }
        EventScope::Connection
    }

    /// The next pending event, for an application that waits for all of them in one place. [`ConnectionEvent::Closed`] comes last.
    pub(crate) fn next_event(&mut self) -> Option<ConnectionEvent> {
        let pending = &mut self.pending;
        if core::mem::take(&mut pending.connected) {
            return Some(ConnectionEvent::Connected);
        }
        if let Some(stream) = self.opened.pop_front() {
            return Some(ConnectionEvent::StreamOpened(stream));
        }
        if let Some((stream, reason)) = pending.refused.pop_front() {
            return Some(ConnectionEvent::Refused(stream, reason));
        }
        if core::mem::take(&mut pending.streams_available) {
            return Some(ConnectionEvent::StreamsAvailable);
        }
        if let Some(stream) = pending.writable.pop_first() {
            return Some(ConnectionEvent::Writable(stream));
        }
        while let Some(&stream) = pending.judged.first() {
            match self.sending.get_mut(&stream).and_then(|sending| sending.verdicts.take_run()) {
                Some((segments, judged)) => {
                    return Some(ConnectionEvent::Judged { stream, segments, verdict: judged.verdict, holes: judged.holes });
                }
                None => _ = pending.judged.pop_first(),
            }
        }
        while let Some(stream) = pending.durable.pop_first() {
            if let Some(sending) = self.sending.get_mut(&stream).filter(|sending| sending.durable_unread) {
                sending.durable_unread = false;
                return Some(ConnectionEvent::Durable(stream, sending.durable));
            }
        }
        if let Some(stream) = pending.readable.pop_first() {
            return Some(ConnectionEvent::Readable(stream));
        }
        if let Some((stream, segments)) = pending.ended.pop_front() {
            return Some(ConnectionEvent::Ended { stream, segments });
        }
        if let Some(class) = pending.reclassed.take() {
            return Some(ConnectionEvent::Reclassed(class));
        }
        if let Some(rate) = pending.rate.take() {
            return Some(ConnectionEvent::RateChanged(rate));
        }
        if core::mem::take(&mut pending.peer_closing) {
            return Some(ConnectionEvent::PeerClosing);
        }
        let closed = core::mem::take(&mut pending.closed);
        closed.then(|| self.closed.clone().map(ConnectionEvent::Closed)).flatten()
    }

    /// Takes the event that the connection is established.
    pub(crate) fn take_connected(&mut self) -> bool {
        core::mem::take(&mut self.pending.connected)
    }

    /// Takes the new rate, if it has changed since it was last taken.
    pub(crate) fn take_rate(&mut self) -> Option<Bandwidth> {
        self.pending.rate.take()
    }

    /// Whether the connection was closed gracefully.
    pub(crate) fn closed_gracefully(&self) -> bool {
        matches!(self.closed, Some(CloseReason::ClosedHere | CloseReason::ClosedByPeer { .. }))
    }

    /// Whether segments of the stream are discarded.
    pub(crate) fn discards(&self, stream: StreamId) -> bool {
        self.released || self.receiving.get(&stream).is_some_and(|receiving| receiving.discarded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SegmentNumber, Verdict};

    fn connection_state() -> ConnectionState {
        let mut connection_state = ConnectionState::new(SocketAddr::from(([127, 0, 0, 1], 1)), false);
        connection_state.on_opened(StreamId(0), |_| false);
        connection_state
    }

    /// The first segment of `stream` is judged.
    fn first_judged(stream: StreamId, verdict: Verdict) -> ConnectionEvent {
        ConnectionEvent::Judged { stream, segments: SegmentNumber(0)..SegmentNumber(1), verdict, holes: vec![] }
    }

    /// Opens a stream that has one segment, finishes it, and judges its segment.
    fn finish_with_one_verdict(connection_state: &mut ConnectionState, stream: StreamId) {
        connection_state.on_opened(stream, |_| false);
        let sending = connection_state.sending.get_mut(&stream).unwrap();
        sending.verdicts.expect();
        sending.finished = true;
        connection_state.on_event(first_judged(stream, Verdict::Complete));
    }

    #[test]
    fn what_is_told_often_is_heard_once_and_the_end_comes_last() {
        let mut connection_state = connection_state();
        connection_state.sending.get_mut(&StreamId(0)).unwrap().verdicts.expect();
        connection_state.on_event(ConnectionEvent::Connected);
        for _ in 0..1000 {
            connection_state.on_event(ConnectionEvent::Readable(StreamId(7)));
            connection_state.on_event(ConnectionEvent::Writable(StreamId(0)));
            connection_state.on_event(ConnectionEvent::StreamsAvailable);
        }
        connection_state.on_event(ConnectionEvent::Closed(CloseReason::AbortedHere));
        connection_state.on_event(first_judged(StreamId(0), Verdict::Unknown));
        let told: Vec<_> = core::iter::from_fn(|| connection_state.next_event()).collect();
        assert_eq!(told.len(), 6);
        assert_eq!(told[..2], [ConnectionEvent::Connected, ConnectionEvent::StreamsAvailable]);
        assert!(matches!(told[3], ConnectionEvent::Judged { verdict: Verdict::Unknown, .. }));
        assert_eq!(told[5], ConnectionEvent::Closed(CloseReason::AbortedHere));
    }

    #[test]
    fn a_thousand_streams_that_were_read_leave_nothing_and_unread_ones_are_bounded() {
        let mut connection_state = connection_state();
        for stream in 1..=1000 {
            finish_with_one_verdict(&mut connection_state, StreamId(stream));
            assert!(matches!(
                connection_state.sending.get_mut(&StreamId(stream)).unwrap().verdicts.take(SegmentNumber(0)),
                crate::verdicts::Lookup::Judged(_)
            ));
        }
        assert_eq!(connection_state.sending.keys().copied().collect::<Vec<_>>(), [0, 1000].map(StreamId), "the first is not finished");
        assert!(
            connection_state.has_removed(StreamId(1))
                && !connection_state.has_removed(StreamId(0))
                && !connection_state.has_removed(StreamId(1001))
        );
        for stream in 1001..=1001 + 2 * ENDED_STREAMS_MAX as u32 {
            finish_with_one_verdict(&mut connection_state, StreamId(stream));
        }
        assert!(connection_state.sending.len() <= ENDED_STREAMS_MAX + 3, "{} streams are kept", connection_state.sending.len());
    }

    #[test]
    fn a_verdict_taken_by_number_is_not_told_again() {
        let mut connection_state = connection_state();
        connection_state.sending.get_mut(&StreamId(0)).unwrap().verdicts.expect();
        connection_state.on_event(first_judged(StreamId(0), Verdict::Complete));
        connection_state.sending.get_mut(&StreamId(0)).unwrap().verdicts.take(SegmentNumber(0));
        assert_eq!(connection_state.next_event(), None);
    }
}
