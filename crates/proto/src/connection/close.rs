//! The end of a connection: graceful, abrupt, or by a timeout (HT 3.1: symmetric graceful release).
//!
//! Called by the connection. A graceful close finishes every stream and waits until every segment is judged; then it sends a disconnect
//! request (DR). The peer finishes its own streams in the same way, and confirms (DC). Then it is in the closing state (RFC 9000
//! 10.2.1) for a while, to answer repetitions of the DR.
//!
//! Invariant: after a graceful close no segment accepted by either side is without a verdict.

use super::{Connection, ConnectionEvent, Timer};
use crate::error::{CloseReason, MEMORY_BUDGET_CODE, PATH_OVERLOADED_CODE};
use crate::sender::Broken;
use segstream_base::{Bytes, Duration, Instant};
use segstream_wire::Kind;
use segstream_wire::handshake::{Disconnect, RejectReason};

/// Repetitions of a DR to a silent peer before the connection ends.
const TRIES: u32 = 8;

/// The longest closing period. Why so short: an application may wait for its end.
const CLOSING_PERIOD_MAX: Duration = Duration::from_secs(2);

/// The closing period after a refused handshake, in which the refusal is repeated to a peer that repeats its handshake.
const REFUSAL_CLOSING_PERIOD: Duration = Duration::from_secs(1);

/// The stages of the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Open,
    /// We are closing, and finish our streams.
    Finishing,
    /// Our DR was sent.
    ExpectConfirm,
    /// The connection has ended; repetitions of the peer's DR are answered (RFC 9000 10.2.1).
    Closing,
    /// The closing period is over.
    Drained,
}

/// The state of the end.
#[derive(Debug, Default)]
pub(super) struct Close {
    stage: Stage,
    // Why boxed: most of the time there are none.
    ours: Option<Box<Disconnect>>,
    theirs: Option<Box<Disconnect>>,
    request_pending: bool,
    confirm_pending: bool,
    /// We have refused the handshake, by a DR that the peer may not have received.
    is_refusal: bool,
    /// Repetitions of our DR since the last shipment of the peer.
    tries: u32,
    requested_at: Instant,
}

impl Close {
    pub(super) fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Closing | Stage::Drained)
    }

    pub(super) fn is_drained(&self) -> bool {
        self.stage == Stage::Drained
    }

    pub(super) fn set_drained(&mut self) {
        self.stage = Stage::Drained;
    }

    /// Whether new segments are accepted.
    pub(super) fn accepts_segments(&self) -> bool {
        self.stage == Stage::Open && self.theirs.is_none()
    }

    /// The handshake has failed; the peer gets the reason.
    pub(super) fn refuse(&mut self, refusal: Disconnect) {
        self.ours = Some(Box::new(refusal));
        self.request_pending = true;
        self.is_refusal = true;
    }

    /// This end aborts the connection; the peer gets the reason.
    pub(super) fn abort_with(&mut self, disconnect: Disconnect) {
        self.ours = Some(Box::new(disconnect));
        self.request_pending = true;
    }

    /// The pending DC or DR, if there is one.
    pub(super) fn shipment(&mut self) -> Option<(Kind, Option<Disconnect>)> {
        if core::mem::take(&mut self.confirm_pending) {
            return Some((Kind::DisconnectConfirm, None));
        }
        if core::mem::take(&mut self.request_pending) {
            return Some((Kind::Disconnect, self.ours.as_deref().cloned()));
        }
        None
    }
}

impl Connection {
    /// Closes gracefully: accepted segments are judged first, and no new ones are accepted.
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

    /// Aborts the connection at once; segments without a verdict are *unknown*.
    pub fn abort(&mut self, now: Instant, code: u64, detail: &str) {
        if self.close.is_over() {
            return;
        }
        self.close.ours = Some(Box::new(Disconnect { code, abort: true, detail: detail.to_owned() }));
        self.close.request_pending = self.setup.is_done();
        self.end(now, CloseReason::AbortedHere);
    }

    /// The circuit breaker has opened: the path carries almost nothing of what is sent (RFC 8084).
    pub(super) fn break_circuit(&mut self, now: Instant, broken: Broken) {
        if self.close.is_over() {
            return;
        }
        let Broken { sent, received, span } = broken;
        let reason = CloseReason::PathOverloaded { sent: Bytes::new(sent), received: Bytes::new(received), span: span.into() };
        self.close.abort_with(Disconnect { code: PATH_OVERLOADED_CODE, abort: true, detail: reason.to_string() });
        self.end(now, reason);
    }

    /// The connections of the peer's key have been granted more memory than they may have together.
    pub(super) fn end_over_memory_budget(&mut self, now: Instant) {
        let reason = CloseReason::PeerOverMemoryBudget(self.config.memory_bytes_per_peer);
        self.close.abort_with(Disconnect { code: MEMORY_BUDGET_CODE, abort: true, detail: reason.to_string() });
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
        let is_closing = self.close.theirs.is_some() || self.close.stage == Stage::Finishing;
        if !is_closing || self.close.is_over() || !self.setup.is_done() || !self.send.is_over() {
            return;
        }
        if let Some(theirs) = &self.close.theirs {
            self.close.confirm_pending = true;
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
        self.close.request_pending = true;
        self.close.requested_at = now;
        self.close.tries += 1;
        self.timers.set(Timer::CloseRetry, now + self.retry_pause() * (1 << self.close.tries.min(4)) / 2);
    }

    fn retry_pause(&self) -> Duration {
        // Limit: the peer can falsify the round trip, which must not keep the connection for hours.
        (self.send.round_trip() * 2).max(Duration::from_millis(20)).min(self.idle.timeout)
    }

    pub(super) fn retry_close(&mut self, now: Instant) {
        if self.close.stage != Stage::ExpectConfirm {
            return;
        }
        if self.idle.last_heard > self.close.requested_at {
            // Why: a peer that still sends shipments but does not confirm has segments of its own that are not judged yet. We wait
            // for it without a limit.
            self.close.tries = self.close.tries.min(TRIES / 2);
        }
        if self.close.tries >= TRIES {
            self.on_peer_lost(now, CloseReason::ClosedHere);
        } else {
            self.request_disconnect(now);
        }
    }

    pub(super) fn on_disconnect(&mut self, now: Instant, disconnect: Disconnect) {
        if self.close.is_over() {
            self.close.confirm_pending = true;
            return;
        }
        if disconnect.abort {
            self.close.confirm_pending = true;
            self.end(now, CloseReason::AbortedByPeer { code: disconnect.code, detail: disconnect.detail });
            return;
        }
        if self.close.theirs.is_none() {
            self.close.theirs = Some(Box::new(disconnect));
            self.events.push(ConnectionEvent::PeerClosing);
            self.finish_all_streams(now);
        }
        // Why: the peer's DR would time out while we are still finishing. Why at once: at a low rate states are further apart than its
        // repetitions are.
        self.send.request_state_now(now);
    }

    /// The peer repeats its handshake: it has not received the refusal.
    pub(super) fn repeat_refusal(&mut self) {
        self.close.request_pending |= self.close.is_refusal && self.close.stage == Stage::Closing;
    }

    /// The peer has refused the handshake.
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

    /// Ends the connection: missing verdicts become *unknown*.
    pub(super) fn end(&mut self, now: Instant, reason: CloseReason) {
        if self.close.is_over() {
            return;
        }
        self.close.stage = Stage::Closing;
        for timer in [Timer::SetupRetry, Timer::SetupDeadline, Timer::CloseRetry, Timer::Idle] {
            self.timers.stop(timer);
        }
        self.timers.set(Timer::Drained, now + self.closing_period(&reason));
        self.send.abandon();
        self.after_input(now);
        self.recv.end_lost_run();
        self.events.push(ConnectionEvent::Closed(reason));
    }

    /// How long repetitions of the peer's DR are answered.
    fn closing_period(&self, reason: &CloseReason) -> Duration {
        // A peer that has confirmed our DR and sent none of its own has nothing to repeat.
        if self.close.is_refusal {
            return REFUSAL_CLOSING_PERIOD;
        }
        let confirmed = *reason == CloseReason::ClosedHere && self.close.theirs.is_none();
        if confirmed || !self.setup.is_done() { Duration::ZERO } else { (self.retry_pause() * 3).min(CLOSING_PERIOD_MAX) }
    }

    /// The peer is lost, for this `reason`. If our DR was sent, that counts as a graceful end.
    pub(super) fn on_peer_lost(&mut self, now: Instant, reason: CloseReason) {
        // Why: every segment of ours is judged, and a peer with segments of its own would still send; only its DC is missing.
        let reason = if self.close.stage == Stage::ExpectConfirm { CloseReason::ClosedHere } else { reason };
        self.end(now, reason);
    }

    pub(super) fn check_idle(&mut self, now: Instant) {
        let until = self.idle.last_heard + self.idle.timeout;
        if now >= until {
            self.on_peer_lost(now, CloseReason::TimedOut(self.idle.timeout.into()));
        } else {
            self.timers.set(Timer::Idle, until);
        }
    }
}
