//! The end of a connection: graceful, abrupt, or by silence (HT 3.1: symmetric graceful release).
//!
//! Called by the connection. A graceful close finishes every stream and waits until every segment is
//! judged; then it asks to disconnect (DR). The peer finishes its own streams in the same way, then
//! confirms (DC) and stays a while to answer repetitions.
//!
//! Invariant: after a graceful close no segment accepted by either side is without a verdict.

use super::{Connection, ConnectionEvent, Timer};
use crate::error::{CloseReason, PATH_OVERLOADED_CODE};
use crate::sender::Broken;
use segstream_base::{Bytes, Duration, Instant};
use segstream_wire::Kind;
use segstream_wire::handshake::{Disconnect, RejectReason};

/// Repetitions of a disconnect to a silent peer before it is taken for gone.
const TRIES: u32 = 8;

/// The longest time in which repetitions of the peer's DR are answered: an application waits for it.
const LINGER_MAX: Duration = Duration::from_secs(2);

/// How long a refusal in the handshake is repeated to a peer that repeats its handshake.
const REFUSAL_LINGER: Duration = Duration::from_secs(1);

/// How far the end has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Open,
    /// We want to close and finish our streams.
    Finishing,
    /// Our DR is out.
    ExpectConfirm,
    /// Over; repetitions of the peer's DR are still answered.
    Draining,
    Forgotten,
}

/// The state of the end.
#[derive(Debug, Default)]
pub(super) struct Close {
    stage: Stage,
    // Why boxed: they are not there for most of the time.
    ours: Option<Box<Disconnect>>,
    theirs: Option<Box<Disconnect>>,
    request_owed: bool,
    confirm_owed: bool,
    /// We ended in the handshake, by a DR that the peer may not have.
    is_refusal: bool,
    /// Repetitions of our DR since the peer was last heard.
    tries: u32,
    requested_at: Instant,
}

impl Close {
    pub(super) fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Draining | Stage::Forgotten)
    }

    pub(super) fn is_forgotten(&self) -> bool {
        self.stage == Stage::Forgotten
    }

    pub(super) fn forget(&mut self) {
        self.stage = Stage::Forgotten;
    }

    /// Whether new segments are still taken.
    pub(super) fn takes_segments(&self) -> bool {
        self.stage == Stage::Open && self.theirs.is_none()
    }

    /// The handshake has failed, and the peer is to hear why.
    pub(super) fn refuse(&mut self, refusal: Disconnect) {
        self.ours = Some(Box::new(refusal));
        self.request_owed = true;
        self.is_refusal = true;
    }

    /// What the end wants to send now.
    pub(super) fn shipment(&mut self) -> Option<(Kind, Option<Disconnect>)> {
        if core::mem::take(&mut self.confirm_owed) {
            return Some((Kind::DisconnectConfirm, None));
        }
        if core::mem::take(&mut self.request_owed) {
            return Some((Kind::Disconnect, self.ours.as_deref().cloned()));
        }
        None
    }
}

impl Connection {
    /// Closes gracefully: what was accepted is judged first. Nothing new is taken.
    pub fn close(&mut self, now: Instant, code: u64, detail: &str) {
        if self.close.stage != Stage::Open {
            return;
        }
        if !self.setup.is_done() {
            self.end(now, CloseReason::AbortedHere);
            return;
        }
        self.close.stage = Stage::Finishing;
        self.close.ours = Some(Box::new(Disconnect { code, abort: false, detail: detail.to_owned() }));
        self.finish_all_streams(now);
        self.advance_close(now);
    }

    /// Breaks the connection off at once; what has no verdict is *unknown*.
    pub fn abort(&mut self, now: Instant, code: u64, detail: &str) {
        if self.close.is_over() {
            return;
        }
        self.close.ours = Some(Box::new(Disconnect { code, abort: true, detail: detail.to_owned() }));
        self.close.request_owed = self.setup.is_done();
        self.end(now, CloseReason::AbortedHere);
    }

    /// The path carries almost nothing of what is sent: it is left alone (RFC 8084).
    pub(super) fn break_circuit(&mut self, now: Instant, broken: Broken) {
        if self.close.is_over() {
            return;
        }
        let Broken { sent, received, span } = broken;
        let reason = CloseReason::PathOverloaded { sent: Bytes::new(sent), received: Bytes::new(received), span };
        self.close.ours = Some(Box::new(Disconnect { code: PATH_OVERLOADED_CODE, abort: true, detail: reason.to_string() }));
        self.close.request_owed = true;
        self.end(now, reason);
    }

    fn finish_all_streams(&mut self, now: Instant) {
        let mut place = 0;
        while let Some(stream) = self.send.stream_at(place) {
            self.send.finish(now, stream);
            place += 1;
        }
    }

    /// Takes the next step of a close when the halves allow it.
    pub(super) fn advance_close(&mut self, now: Instant) {
        let wanted = self.close.theirs.is_some() || self.close.stage == Stage::Finishing;
        if !wanted || self.close.is_over() || !self.setup.is_done() || !self.send.is_over() {
            return;
        }
        if let Some(theirs) = &self.close.theirs {
            self.close.confirm_owed = true;
            let reason = match self.close.stage {
                Stage::Open => CloseReason::ClosedByPeer { code: theirs.code, detail: theirs.detail.clone() },
                _ => CloseReason::ClosedHere,
            };
            self.end(now, reason);
        } else if self.close.stage == Stage::Finishing {
            self.close.stage = Stage::ExpectConfirm;
            self.request_disconnect(now);
        }
    }

    fn request_disconnect(&mut self, now: Instant) {
        self.close.request_owed = true;
        self.close.requested_at = now;
        self.close.tries += 1;
        self.timers.set(Timer::CloseRetry, now + self.retry_pause() * (1 << self.close.tries.min(4)) / 2);
    }

    fn retry_pause(&self) -> Duration {
        // Limit: the round trip is the peer's word; a false one must not keep the connection for hours.
        (self.send.round_trip() * 2).max(Duration::from_millis(20)).min(self.idle.timeout)
    }

    pub(super) fn retry_close(&mut self, now: Instant) {
        if self.close.stage != Stage::ExpectConfirm {
            return;
        }
        if self.idle.last_heard > self.close.requested_at {
            // Why: a peer that is heard but does not confirm has segments of its own that are not judged yet. It
            // is waited for, however long they take.
            self.close.tries = self.close.tries.min(TRIES / 2);
        }
        if self.close.tries >= TRIES {
            self.lose_peer(now, CloseReason::ClosedHere);
        } else {
            self.request_disconnect(now);
        }
    }

    pub(super) fn on_disconnect(&mut self, now: Instant, disconnect: Disconnect) {
        if self.close.is_over() {
            self.close.confirm_owed = true;
            return;
        }
        if disconnect.abort {
            self.close.confirm_owed = true;
            self.end(now, CloseReason::AbortedByPeer { code: disconnect.code, detail: disconnect.detail });
            return;
        }
        if self.close.theirs.is_none() {
            self.close.theirs = Some(Box::new(disconnect));
            self.events.push(ConnectionEvent::PeerClosing);
            self.finish_all_streams(now);
        }
        // Why: whoever asks takes a silent peer for gone; we are still finishing.
        self.send.hasten_state(now);
    }

    /// The peer repeats its handshake: it has not heard that it was refused.
    pub(super) fn repeat_refusal(&mut self) {
        self.close.request_owed |= self.close.is_refusal && self.close.stage == Stage::Draining;
    }

    /// The peer ends the connection in the handshake.
    pub(super) fn on_refusal(&mut self, now: Instant, disconnect: Disconnect) {
        if !self.setup.is_settled() {
            self.end(now, CloseReason::Rejected { reason: RejectReason::Handshake, detail: disconnect.detail });
        }
    }

    pub(super) fn on_disconnect_confirm(&mut self, now: Instant) {
        if self.close.stage == Stage::ExpectConfirm {
            self.end(now, CloseReason::ClosedHere);
        }
    }

    /// The connection is over: verdicts that are missing are *unknown*.
    pub(super) fn end(&mut self, now: Instant, reason: CloseReason) {
        if self.close.is_over() {
            return;
        }
        self.close.stage = Stage::Draining;
        for timer in [Timer::SetupRetry, Timer::SetupDeadline, Timer::CloseRetry, Timer::Idle] {
            self.timers.stop(timer);
        }
        self.timers.set(Timer::Drained, now + self.linger(&reason));
        self.send.abandon();
        self.after_input(now);
        self.events.push(ConnectionEvent::Closed(reason));
    }

    /// How long repetitions of the peer's DR are still answered.
    fn linger(&self, reason: &CloseReason) -> Duration {
        // A peer that has confirmed our DR and sent none of its own has nothing to repeat.
        if self.close.is_refusal {
            return REFUSAL_LINGER;
        }
        let confirmed = *reason == CloseReason::ClosedHere && self.close.theirs.is_none();
        if confirmed || !self.setup.is_done() { Duration::ZERO } else { (self.retry_pause() * 3).min(LINGER_MAX) }
    }

    /// Nothing more will be heard of the peer, for this `reason`. When our DR is out it is no loss.
    pub(super) fn lose_peer(&mut self, now: Instant, reason: CloseReason) {
        // Why: every segment of ours is judged, and a peer with segments of its own would be heard; only its
        // goodbye is missing.
        let reason = if self.close.stage == Stage::ExpectConfirm { CloseReason::ClosedHere } else { reason };
        self.end(now, reason);
    }

    pub(super) fn check_idle(&mut self, now: Instant) {
        let until = self.idle.last_heard + self.idle.timeout;
        if now >= until {
            self.lose_peer(now, CloseReason::TimedOut(self.idle.timeout));
        } else {
            self.timers.set(Timer::Idle, until);
        }
    }
}
