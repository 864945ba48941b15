//! What one connection has told and its application has not heard yet.
//!
//! Called by the hub, which fills it from the protocol's events and empties it for both interfaces. Things of
//! which only the present state matters (a stream is readable, a window is open) are kept once, however often they
//! are told.
//!
//! Invariant: what is kept is bounded by the streams, the windows and the verdicts kept ([`crate::verdicts`]),
//! whatever the application leaves unread.

use crate::progress::Progressive;
use crate::verdicts::Verdicts;
use crate::{Bandwidth, Class, CloseReason, ConnectionEvent, Contract, RefuseReason, StreamId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;

/// A stream of ours.
#[derive(Debug)]
pub(crate) struct Sending {
    pub(crate) verdicts: Verdicts,
    pub(crate) refused: Option<RefuseReason>,
    /// No more segments will come.
    pub(crate) finished: bool,
    /// The open segment was given up by its writer while the send buffer was full.
    pub(crate) end_owed: bool,
}

impl Sending {
    pub(crate) const fn new(stream: StreamId) -> Self {
        Self { verdicts: Verdicts::new(stream), refused: None, finished: false, end_owed: false }
    }

    /// Whether no more verdicts will come.
    const fn has_ended(&self) -> bool {
        (self.finished || self.refused.is_some()) && !self.verdicts.has_expected()
    }
}

/// Ended streams of ours that are kept while their verdicts are unread or their refusal may be asked for; then the oldest are
/// forgotten.
const ENDED_KEPT: usize = 1024;

/// A stream of the peer.
#[derive(Debug, Default)]
pub(crate) struct Receiving {
    /// Its contract, for as long as it may be asked for after the stream has ended.
    pub(crate) contract: Option<Box<Contract>>,
    /// Everything has been handed over.
    pub(crate) ended: bool,
    /// Nobody will read it: what comes is thrown away, so that the peer's window does not close.
    pub(crate) discarded: bool,
    /// It is read unit by unit.
    // Why boxed: few streams are.
    pub(crate) progress: Option<Box<Progressive>>,
}

/// Whom an event concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// The connection as a whole.
    Connection,
    /// A stream of ours.
    Sending(StreamId),
    /// A stream of the peer.
    Receiving(StreamId),
    /// Everybody.
    All,
}

/// What one connection has told.
#[derive(Debug)]
pub(crate) struct Inbox {
    pub(crate) remote: SocketAddr,
    /// The peer asked for the connection.
    pub(crate) incoming: bool,
    pub(crate) connected: bool,
    /// A close has begun here.
    pub(crate) closing: bool,
    pub(crate) peer_closing: bool,
    pub(crate) closed: Option<CloseReason>,
    /// Streams the peer opens from now on are thrown away.
    pub(crate) takes_no_streams: bool,
    /// Nobody holds the connection any more.
    pub(crate) released: bool,
    /// It is in the hub's queue of connections with something to tell.
    pub(crate) queued: bool,
    pub(crate) class_asked: Option<Class>,
    pub(crate) sending: BTreeMap<StreamId, Sending>,
    /// One more than the highest stream of ours; those below that are not in `sending` have ended, and all was read.
    sending_next: StreamId,
    pub(crate) receiving: BTreeMap<StreamId, Receiving>,
    /// Streams of the peer the application has not been given.
    pub(crate) opened: VecDeque<StreamId>,
    untold: Untold,
}

/// What [`Inbox::next_event`] has not told yet.
#[derive(Debug, Default)]
struct Untold {
    connected: bool,
    refused: VecDeque<(StreamId, RefuseReason)>,
    streams_available: bool,
    writable: BTreeSet<StreamId>,
    judged: BTreeSet<StreamId>,
    readable: BTreeSet<StreamId>,
    ended: VecDeque<(StreamId, u64)>,
    reclassed: Option<Class>,
    rate: Option<Bandwidth>,
    peer_closing: bool,
    closed: bool,
}

impl Inbox {
    pub(crate) fn new(remote: SocketAddr, incoming: bool) -> Self {
        Self {
            remote,
            incoming,
            connected: false,
            closing: false,
            peer_closing: false,
            closed: None,
            takes_no_streams: false,
            released: false,
            queued: false,
            class_asked: None,
            sending: BTreeMap::new(),
            sending_next: StreamId::FIRST,
            receiving: BTreeMap::new(),
            opened: VecDeque::new(),
            untold: Untold::default(),
        }
    }

    /// A stream of ours is opened; those that have ended make room.
    pub(crate) fn on_opened(&mut self, stream: StreamId) {
        self.sending.retain(|_, kept| !kept.has_ended() || kept.refused.is_some() || kept.verdicts.has_unread());
        let ended = self.sending.values().filter(|kept| kept.has_ended()).count();
        if ended > ENDED_KEPT
            && let Some(oldest) = self.sending.iter().find(|(_, kept)| kept.has_ended()).map(|(&oldest, _)| oldest)
        {
            self.sending.remove(&oldest);
        }
        self.sending.insert(stream, Sending::new(stream));
        self.sending_next = self.sending_next.max(stream + 1);
    }

    /// Streams of the peer that have `retired` are forgotten, but for those that the application has not been given or not
    /// read.
    pub(crate) fn forget_received(&mut self, retired: impl Fn(StreamId) -> bool) {
        let unread = |kept: &Receiving| kept.progress.as_deref().is_some_and(Progressive::has_held);
        let opened = &self.opened;
        self.receiving.retain(|stream, kept| !retired(*stream) || opened.contains(stream) || unread(kept));
    }

    /// Whether a stream of ours has ended and nothing is kept of it.
    pub(crate) fn has_forgotten(&self, stream: StreamId) -> bool {
        stream < self.sending_next && !self.sending.contains_key(&stream)
    }

    /// Keeps what the connection tells; says whom it concerns.
    pub(crate) fn take(&mut self, event: ConnectionEvent) -> News {
        match event {
            ConnectionEvent::Connected => {
                self.connected = true;
                self.untold.connected = true;
            }
            ConnectionEvent::StreamOpened(stream) => {
                self.receiving.entry(stream).or_default();
                self.opened.push_back(stream);
            }
            ConnectionEvent::Readable(stream) => {
                self.untold.readable.insert(stream);
                return News::Receiving(stream);
            }
            ConnectionEvent::Units { stream, segment, first, count } => {
                if let Some(progress) = self.receiving.entry(stream).or_default().progress.as_mut() {
                    progress.on_units(segment, first, count);
                    self.untold.readable.insert(stream);
                }
                return News::Receiving(stream);
            }
            ConnectionEvent::Ended { stream, segments } => {
                self.receiving.entry(stream).or_default().ended = true;
                self.untold.ended.push_back((stream, segments));
                return News::Receiving(stream);
            }
            ConnectionEvent::PeerClosing => {
                self.peer_closing = true;
                self.untold.peer_closing = true;
                return News::All;
            }
            ConnectionEvent::Closed(reason) => {
                self.closed = Some(reason);
                self.untold.closed = true;
                return News::All;
            }
            event => return self.take_of_sending(event),
        }
        News::Connection
    }

    /// Keeps what the connection tells of our own direction.
    fn take_of_sending(&mut self, event: ConnectionEvent) -> News {
        match event {
            ConnectionEvent::Judged { stream, segments, verdict, holes } => {
                if let Some(sending) = self.sending.get_mut(&stream) {
                    sending.verdicts.settle(segments, verdict, holes);
                    self.untold.judged.insert(stream);
                }
                return News::Sending(stream);
            }
            ConnectionEvent::Writable(stream) => {
                self.untold.writable.insert(stream);
                return News::Sending(stream);
            }
            ConnectionEvent::Refused(stream, reason) => {
                if let Some(sending) = self.sending.get_mut(&stream) {
                    sending.refused = Some(reason);
                }
                self.untold.refused.push_back((stream, reason));
                return News::Sending(stream);
            }
            ConnectionEvent::StreamsAvailable => self.untold.streams_available = true,
            ConnectionEvent::Reclassed(class) => self.untold.reclassed = Some(class),
            ConnectionEvent::RateChanged(rate) => self.untold.rate = Some(rate),
            _ => {}
        }
        News::Connection
    }

    /// The next thing to tell an application that hears of everything in one place. The end comes last.
    pub(crate) fn next_event(&mut self) -> Option<ConnectionEvent> {
        let untold = &mut self.untold;
        if core::mem::take(&mut untold.connected) {
            return Some(ConnectionEvent::Connected);
        }
        if let Some(stream) = self.opened.pop_front() {
            return Some(ConnectionEvent::StreamOpened(stream));
        }
        if let Some((stream, reason)) = untold.refused.pop_front() {
            return Some(ConnectionEvent::Refused(stream, reason));
        }
        if core::mem::take(&mut untold.streams_available) {
            return Some(ConnectionEvent::StreamsAvailable);
        }
        if let Some(stream) = untold.writable.pop_first() {
            return Some(ConnectionEvent::Writable(stream));
        }
        while let Some(&stream) = untold.judged.first() {
            match self.sending.get_mut(&stream).and_then(|sending| sending.verdicts.take_run()) {
                Some((segments, judged)) => {
                    return Some(ConnectionEvent::Judged { stream, segments, verdict: judged.verdict, holes: judged.holes });
                }
                None => _ = untold.judged.pop_first(),
            }
        }
        if let Some(stream) = untold.readable.pop_first() {
            return Some(ConnectionEvent::Readable(stream));
        }
        if let Some((stream, segments)) = untold.ended.pop_front() {
            return Some(ConnectionEvent::Ended { stream, segments });
        }
        if let Some(class) = untold.reclassed.take() {
            return Some(ConnectionEvent::Reclassed(class));
        }
        if let Some(rate) = untold.rate.take() {
            return Some(ConnectionEvent::RateChanged(rate));
        }
        if core::mem::take(&mut untold.peer_closing) {
            return Some(ConnectionEvent::PeerClosing);
        }
        let closed = core::mem::take(&mut untold.closed);
        closed.then(|| self.closed.clone().map(ConnectionEvent::Closed)).flatten()
    }

    /// The application knows that the connection is there.
    pub(crate) fn take_connected(&mut self) -> bool {
        core::mem::take(&mut self.untold.connected)
    }

    /// The rate, if it has changed since this was asked or told.
    pub(crate) fn take_rate(&mut self) -> Option<Bandwidth> {
        self.untold.rate.take()
    }

    /// Whether the connection ended as it should.
    pub(crate) fn closed_gracefully(&self) -> bool {
        matches!(self.closed, Some(CloseReason::ClosedHere | CloseReason::ClosedByPeer { .. }))
    }

    /// Whether segments of the stream would be thrown away.
    pub(crate) fn discards(&self, stream: StreamId) -> bool {
        self.released || self.receiving.get(&stream).is_some_and(|receiving| receiving.discarded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SegmentNumber, Verdict};

    fn inbox() -> Inbox {
        let mut inbox = Inbox::new(SocketAddr::from(([127, 0, 0, 1], 1)), false);
        inbox.on_opened(StreamId(0));
        inbox
    }

    #[test]
    fn what_is_told_often_is_heard_once_and_the_end_comes_last() {
        let mut inbox = inbox();
        inbox.sending.get_mut(&StreamId(0)).unwrap().verdicts.expect();
        inbox.take(ConnectionEvent::Connected);
        for _ in 0..1000 {
            inbox.take(ConnectionEvent::Readable(StreamId(7)));
            inbox.take(ConnectionEvent::Writable(StreamId(0)));
            inbox.take(ConnectionEvent::StreamsAvailable);
        }
        inbox.take(ConnectionEvent::Closed(CloseReason::AbortedHere));
        inbox.take(ConnectionEvent::Judged {
            stream: StreamId(0),
            segments: SegmentNumber(0)..SegmentNumber(1),
            verdict: Verdict::Unknown,
            holes: vec![],
        });
        let told: Vec<_> = core::iter::from_fn(|| inbox.next_event()).collect();
        assert_eq!(told.len(), 6);
        assert_eq!(told[..2], [ConnectionEvent::Connected, ConnectionEvent::StreamsAvailable]);
        assert!(matches!(told[3], ConnectionEvent::Judged { verdict: Verdict::Unknown, .. }));
        assert_eq!(told[5], ConnectionEvent::Closed(CloseReason::AbortedHere));
    }

    #[test]
    fn a_thousand_streams_that_were_read_leave_nothing_and_unread_ones_are_bounded() {
        let mut inbox = inbox();
        for stream in 1..=1000 {
            inbox.on_opened(StreamId(stream));
            let sending = inbox.sending.get_mut(&StreamId(stream)).unwrap();
            sending.verdicts.expect();
            sending.finished = true;
            inbox.take(ConnectionEvent::Judged {
                stream: StreamId(stream),
                segments: SegmentNumber(0)..SegmentNumber(1),
                verdict: Verdict::Complete,
                holes: vec![],
            });
            assert!(matches!(
                inbox.sending.get_mut(&StreamId(stream)).unwrap().verdicts.take(SegmentNumber(0)),
                crate::verdicts::Lookup::Judged(_)
            ));
        }
        assert_eq!(inbox.sending.keys().copied().collect::<Vec<_>>(), [0, 1000].map(StreamId), "the first is not finished");
        assert!(inbox.has_forgotten(StreamId(1)) && !inbox.has_forgotten(StreamId(0)) && !inbox.has_forgotten(StreamId(1001)));
        for stream in 1001..=1001 + 2 * ENDED_KEPT as u32 {
            inbox.on_opened(StreamId(stream));
            let sending = inbox.sending.get_mut(&StreamId(stream)).unwrap();
            sending.verdicts.expect();
            sending.finished = true;
            inbox.take(ConnectionEvent::Judged {
                stream: StreamId(stream),
                segments: SegmentNumber(0)..SegmentNumber(1),
                verdict: Verdict::Complete,
                holes: vec![],
            });
        }
        assert!(inbox.sending.len() <= ENDED_KEPT + 3, "{} streams are kept", inbox.sending.len());
    }

    #[test]
    fn a_verdict_taken_by_number_is_not_told_again() {
        let mut inbox = inbox();
        inbox.sending.get_mut(&StreamId(0)).unwrap().verdicts.expect();
        inbox.take(ConnectionEvent::Judged {
            stream: StreamId(0),
            segments: SegmentNumber(0)..SegmentNumber(1),
            verdict: Verdict::Complete,
            holes: vec![],
        });
        inbox.sending.get_mut(&StreamId(0)).unwrap().verdicts.take(SegmentNumber(0));
        assert_eq!(inbox.next_event(), None);
    }
}
