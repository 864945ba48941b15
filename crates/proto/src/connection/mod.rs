//! One connection: set-up, the two halves, close. It dispatches; its parts decide.
//!
//! - `setup`: request, confirm, reject; `flight`: the transport of handshake bytes;
//! - `receive`: one call for each kind of shipment; `gro_batch`: shipments that arrived together;
//! - `transmit`: asks each part in turn for a shipment to send;
//! - `pmtu`: probes of the datagram size;
//! - `migration`: connection migration; `optimistic_feedback`: reports that violate the protocol;
//! - `close`: graceful and abrupt end, the idle timeout;
//! - `application`: the application's interface; `events`: its event queue; `tracing`: what the trace tells.
//!
//! Owned by the endpoint. Invariant: every sent shipment takes a new number from one counter; a received shipment is processed only after
//! its seal was opened and its number checked.

mod application;
mod close;
mod events;
mod flight;
mod gro_batch;
mod migration;
mod optimistic_feedback;
mod pmtu;
mod receive;
mod setup;
mod tracing;
mod transmit;

pub use application::{Received, SharedPath};
pub(crate) use setup::IssuedTokens;
pub use setup::Role;

use crate::config::{Config, DatagramSize};
use crate::endpoint::memory_budget::MemoryAccount;
use crate::error::CloseReason;
use crate::number::ShipmentCounter;
use crate::path::careful_resume::SavedCapacity;
use crate::path::{Addresses, Path};
use crate::receiver::{ReceiverConfig, RecvHalf};
use crate::sender::{Durable, SendHalf, SenderConfig, SenderHalfEvent};
use crate::session::{Fingerprint, Session, constant_time_eq};
use crate::store::{RecvStore, SendStore};
use close::Close;
use core::net::SocketAddr;
use core::ops::Range;
use events::Events;
use segstream_base::endpoint::Deadline;
use segstream_base::halves::Verdict;
use segstream_base::{Bandwidth, Duration, Instant, Run, SegmentNumber, StreamId, UnitIndex};
use segstream_blocks::timer::{TimerKey, TimerTable};
use segstream_wire::header::HEADER_BYTES;
use segstream_wire::proposal::{Proposal, agreed_idle_timeout};
use segstream_wire::report::RefuseReason;
use segstream_wire::{Class, Limits, Part};
use setup::Setup;
use std::sync::Arc;

/// An event of a connection for its application.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectionEvent {
    /// Set-up is complete; streams of the request have their windows.
    Connected,
    /// The peer has opened a stream.
    StreamOpened(StreamId),
    /// A stream of the peer has segments to take.
    Readable(StreamId),
    /// Units of a segment that is not judged yet, on a stream read progressively.
    Units {
        /// The stream.
        stream: StreamId,
        /// The segment.
        segment: SegmentNumber,
        /// The units.
        units: Run<UnitIndex>,
    },
    /// A stream of the peer has ended and all its segments were taken.
    Ended {
        /// The stream.
        stream: StreamId,
        /// How many segments it had.
        segments: u64,
    },
    /// A verdict on a segment of ours, or on a run of segments that are complete or *unknown*.
    Judged {
        /// The stream.
        stream: StreamId,
        /// The segment, or the run.
        segments: Range<SegmentNumber>,
        /// The verdict.
        verdict: Verdict,
        /// The holes, in ascending order.
        holes: Vec<Run<UnitIndex>>,
    },
    /// A submission refused as blocked may succeed now.
    Writable(StreamId),
    /// The peer has refused a stream of ours.
    Refused(StreamId, RefuseReason),
    /// Another stream may be opened, after [`Connection::open_stream`] has refused one as too many.
    StreamsAvailable,
    /// The peer's application has more of a stream of ours in safety, or will confirm no more of it. Only where it confirms what it
    /// receives, see [`Connection::peer_confirms`].
    Durable(StreamId, Durable),
    /// A new class is in force in our direction.
    Reclassed(Class),
    /// The rate in our direction has changed by more than 5 % since the last event; of an automatic rate there are at most ten events a
    /// second. An encoder should follow it.
    RateChanged(Bandwidth),
    /// The peer is closing; no new segments are accepted.
    PeerClosing,
    /// The connection has ended.
    Closed(CloseReason),
}

/// The named timers of a connection besides those of its halves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timer {
    /// The request or the confirm is repeated.
    SetupRetry,
    /// The set-up timeout.
    SetupDeadline,
    /// The disconnect is repeated.
    CloseRetry,
    /// The closing period ends.
    Drained,
    /// The idle timeout.
    Idle,
    /// The challenge of a new address is repeated.
    PathValidation,
}

impl TimerKey for Timer {
    const ALL: &'static [Self] =
        &[Self::SetupRetry, Self::SetupDeadline, Self::CloseRetry, Self::Drained, Self::Idle, Self::PathValidation];

    fn name(self) -> &'static str {
        match self {
            Self::SetupRetry => "setup.retry",
            Self::SetupDeadline => "setup.deadline",
            Self::CloseRetry => "close.retry",
            Self::Drained => "close.drained",
            Self::Idle => "idle",
            Self::PathValidation => "moved.challenge",
        }
    }
}

/// Counters of a connection beyond those of its halves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionCounters {
    /// Datagrams sent.
    pub datagrams_sent: u64,
    /// Bytes of datagrams sent.
    pub bytes_sent: u64,
    /// Authenticated datagrams received.
    pub datagrams_received: u64,
    /// Bytes of them.
    pub bytes_received: u64,
    /// Datagrams that failed authentication.
    pub authentication_failures: u64,
    /// Authenticated datagrams with a duplicate number.
    pub duplicates: u64,
    /// Authenticated datagrams that could not be decoded.
    pub malformed: u64,
    /// Migrations of the peer.
    pub migrations: u64,
}

/// The state of a connection, as its endpoint counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionState {
    /// Set-up of an incoming connection whose peer is not authenticated yet.
    SettingUp,
    /// The peer was refused; the connection stays to repeat the refusal.
    Refused,
    /// Any other that has not drained.
    Active,
    /// It has drained.
    Terminated,
}

/// Which end of which connection this is.
#[derive(Debug)]
struct Identity {
    role: Role,
    /// By which the peer addresses us.
    local_id: u32,
    /// By which we address the peer; zero until it is known.
    remote_id: u32,
}

/// The protection of shipments: the session with its keys, and the numbers, each of which is used once with a key.
#[derive(Debug)]
struct PacketProtection {
    session: Box<dyn Session>,
    counter: ShipmentCounter,
}

/// The peer's parameters (compare the transport parameters of RFC 9000 18.2).
#[derive(Debug)]
struct PeerParameters {
    limits: Limits,
    /// The peer's stateless reset token (RFC 9000 10.3).
    stateless_reset_token: Option<[u8; 16]>,
    /// The address token for a later request.
    address_token: Box<[u8]>,
}

/// The idle timeout (RFC 9000 10.1).
#[derive(Debug)]
struct Idle {
    last_heard: Instant,
    /// The smaller of both sides'.
    timeout: Duration,
}

/// The bytes behind the sending half.
#[derive(Debug, Default)]
struct Outgoing {
    store: SendStore,
    /// The parts of the shipment being written.
    parts: Vec<Part>,
    /// A datagram that did not fit the last batch, and whether it must be alone in its own.
    carried_over: Vec<u8>,
    carried_over_batching: transmit::Place,
}

/// The bytes behind the receiving half.
#[derive(Debug, Default)]
struct Incoming {
    store: RecvStore,
    /// Streams of the peer that the application reads unit by unit.
    progressive: Vec<StreamId>,
}

/// One connection.
#[derive(Debug)]
pub struct Connection {
    identity: Identity,
    /// The endpoint's, as it was when the connection came.
    config: Arc<Config>,
    protection: PacketProtection,
    setup: Setup,
    peer: PeerParameters,
    close: Close,
    idle: Idle,
    timers: TimerTable<Timer>,
    pub(crate) send: SendHalf,
    pub(crate) recv: RecvHalf,
    outgoing: Outgoing,
    incoming: Incoming,
    events: Events,
    /// Counters.
    pub counters: ConnectionCounters,
}

/// The parts of a new connection that the endpoint chooses.
pub(crate) struct Start {
    pub(crate) role: Role,
    pub(crate) addresses: Addresses,
    pub(crate) local_id: u32,
    /// The identifier by which the peer is addressed, if it is known.
    pub(crate) remote_id: u32,
    /// Ours, or what is known so far of the peer's.
    pub(crate) proposal: Proposal,
    pub(crate) protection: u8,
    /// An address token of an earlier connection, or nothing.
    pub(crate) token: Vec<u8>,
    pub(crate) issued_tokens: IssuedTokens,
    /// What the last connection to the peer found of the path.
    pub(crate) saved: Option<SavedCapacity>,
    /// Makes challenges.
    pub(crate) key: [u8; 16],
    /// What the connection is granted of the endpoint's budgets.
    pub(crate) memory: MemoryAccount,
    pub(crate) session: Box<dyn Session>,
}

impl Start {
    fn halves(&self, now: Instant, config: &Config, idle_timeout: Duration) -> (SendHalf, RecvHalf) {
        let class = self.proposal.class;
        let around = HEADER_BYTES + self.session.seal_bytes();
        let body_bytes = config.datagram_bytes.first() - around;
        let below = self.addresses.ip_udp_header_bytes() as usize;
        let sender = SenderConfig {
            class,
            body_bytes,
            overhead_bytes: around + below,
            rate: config.rate,
            epoch: config.epoch,
            circuit_breaker: config.circuit_breaker,
            pacing_quantum: config.pacing_quantum,
            keep_alive: idle_timeout / 4,
        };
        let receiver = ReceiverConfig {
            class,
            class_max: config.class,
            unlimited: config.unlimited,
            body_bytes,
            overhead_bytes: below,
            reorder: config.reorder,
            reorder_adapting: true,
            streams_max: config.limits.streams,
            stream_window_bytes: config.stream_window_bytes,
            connection_window_bytes: config.connection_window_bytes,
            window_segments_max: 65_536,
            buffer_bytes: None,
        };
        let discovers = config.datagram_bytes == DatagramSize::Discover;
        let mut path = Path::between(self.addresses, self.key, body_bytes, config.datagram_bytes.first(), discovers);
        path.saved = self.saved.map(Box::new);
        let mut recv = RecvHalf::new(receiver, now);
        if config.trace {
            recv.log_verdicts();
        }
        let mut send = SendHalf::on_path(path, sender, now);
        send.set_default_coding_target(config.coding.target());
        (send, recv)
    }
}

impl Connection {
    pub(crate) fn new(now: Instant, start: Start, config: &Arc<Config>) -> Self {
        let idle_timeout = agreed_idle_timeout(&config.limits, &start.proposal.limits);
        let (send, mut recv) = start.halves(now, config, idle_timeout);
        let Start { role, local_id, remote_id, proposal, protection, token, issued_tokens, memory, session, .. } = start;
        recv.set_memory(memory);
        let peer = PeerParameters { limits: proposal.limits, stateless_reset_token: None, address_token: Box::default() };
        let mut connection = Self {
            identity: Identity { role, local_id, remote_id },
            config: Arc::clone(config),
            protection: PacketProtection { session, counter: ShipmentCounter::default() },
            setup: Setup::new(now, role, protection, proposal, token, issued_tokens),
            peer,
            close: Close::default(),
            idle: Idle { last_heard: now, timeout: idle_timeout },
            timers: TimerTable::new(),
            send,
            recv,
            outgoing: Outgoing::default(),
            incoming: Incoming::default(),
            events: if config.trace { Events::traced(now) } else { Events::default() },
            counters: ConnectionCounters::default(),
        };
        connection.begin_setup(now);
        connection
    }

    /// The peer's address.
    pub const fn remote(&self) -> SocketAddr {
        self.send.path.addresses.remote
    }

    /// Who asked for the connection.
    pub const fn role(&self) -> Role {
        self.identity.role
    }

    /// The fingerprint of the peer's authenticated key; `None` in plain mode and before set-up is complete.
    pub fn peer(&self) -> Option<Fingerprint> {
        self.protection.session.peer()
    }

    /// Whether a shipment from another address may be the peer's.
    pub(crate) fn may_migrate(&self) -> bool {
        self.protection.session.authenticates_peer() && self.setup.is_settled() && !self.close.is_over()
    }

    /// How it stands.
    pub(crate) fn state(&self) -> ConnectionState {
        if self.close.is_drained() {
            ConnectionState::Terminated
        } else if self.is_setting_up() {
            ConnectionState::SettingUp
        } else if self.is_refused() {
            ConnectionState::Refused
        } else {
            ConnectionState::Active
        }
    }

    /// The peer's stateless reset token.
    pub(crate) const fn peer_reset(&self) -> Option<[u8; 16]> {
        self.peer.stateless_reset_token
    }

    /// Whether a datagram ends with the peer's stateless reset token.
    pub(crate) fn is_reset(&self, datagram: &[u8]) -> bool {
        let expected = self.peer.stateless_reset_token.filter(|_| !self.close.is_over());
        expected.zip(datagram.last_chunk::<16>()).is_some_and(|(expected, end)| constant_time_eq(&expected, end))
    }

    /// The peer has lost the connection.
    pub(crate) fn on_reset(&mut self, now: Instant) {
        self.on_peer_lost(now, CloseReason::ResetByPeer);
    }

    /// What the connection has found out about its path; what it began with if it has not used that.
    pub fn capacity(&self) -> Option<SavedCapacity> {
        self.send.capacity().or(self.send.path.saved.as_deref().copied())
    }

    /// Takes the address token for a later request.
    pub(crate) fn take_address_token(&mut self) -> Option<Vec<u8>> {
        (!self.peer.address_token.is_empty()).then(|| core::mem::take(&mut self.peer.address_token).into_vec())
    }

    pub(crate) const fn local_id(&self) -> u32 {
        self.identity.local_id
    }

    /// When and why the connection wants to be called.
    pub fn poll_timeout(&self) -> Option<Deadline> {
        let timers = self.timers.next();
        if !self.setup.is_done() || self.close.is_over() {
            return timers;
        }
        let halves = Deadline::earlier(self.send.poll_timeout(), self.recv.poll_timeout());
        Deadline::earlier(timers, halves)
    }

    /// Handles expired timers.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.trace_from(now);
        while let Some(timer) = self.timers.pop_expired(now) {
            match timer {
                Timer::SetupRetry => self.retry_setup(),
                Timer::SetupDeadline => self.give_up_setup(now),
                Timer::CloseRetry => self.retry_close(now),
                Timer::Drained => self.close.set_drained(),
                Timer::Idle => self.check_idle(now),
                Timer::PathValidation => self.retry_challenge(now),
            }
        }
        if self.setup.is_done() && !self.close.is_over() {
            self.send.handle_timeout(now);
            self.recv.handle_timeout(now);
        }
        self.after_input(now);
    }

    /// Moves the events of the halves into the application's queue, and advances the close.
    fn after_input(&mut self, now: Instant) {
        let mut broken = None;
        while let Some(event) = self.send.poll_event() {
            let event = match event {
                SenderHalfEvent::Judged { stream, segments, verdict, holes } => {
                    self.outgoing.store.remove(stream, segments.clone());
                    ConnectionEvent::Judged { stream, segments, verdict, holes }
                }
                SenderHalfEvent::WindowOpen(stream) => ConnectionEvent::Writable(stream),
                SenderHalfEvent::Refused(stream, reason) => ConnectionEvent::Refused(stream, reason),
                SenderHalfEvent::StreamsAvailable => ConnectionEvent::StreamsAvailable,
                SenderHalfEvent::Durable(stream, durable) => ConnectionEvent::Durable(stream, durable),
                SenderHalfEvent::Reclassed(class) => ConnectionEvent::Reclassed(class),
                SenderHalfEvent::RateChanged(rate) => ConnectionEvent::RateChanged(rate),
                SenderHalfEvent::CircuitBroken(told) => {
                    broken = Some(told);
                    continue;
                }
            };
            self.events.push(event);
        }
        self.trace_verdicts();
        while let Some(stream) = self.recv.poll_opened() {
            self.on_stream_opened(stream);
        }
        self.follow_windows();
        while let Some((stream, segment)) = self.recv.poll_dropped() {
            self.incoming.store.empty(stream, segment);
        }
        if self.recv.take_deliverable() {
            let mut place = 0;
            while let Some(stream) = self.recv.stream_at(place) {
                if self.recv.has_delivery(stream) {
                    self.events.push(ConnectionEvent::Readable(stream));
                }
                place += 1;
            }
            self.tell_ended(now);
        }
        self.advance_close(now);
        if let Some(broken) = broken {
            self.break_circuit(now, broken);
        }
    }

    fn tell_ended(&mut self, now: Instant) {
        let mut place = 0;
        while let Some(stream) = self.recv.stream_at(place) {
            if let Some(segments) = self.recv.poll_ended(now, stream) {
                self.events.push(ConnectionEvent::Ended { stream, segments });
            }
            place += 1;
        }
    }

    /// The store keeps what the windows of the peer's streams allow: those that are retired have none any more.
    fn follow_windows(&mut self) {
        if let Some(bytes) = self.recv.take_window_change() {
            self.incoming.store.set_granted(bytes);
        }
    }

    /// The peer has opened a stream: those that are retired have left.
    fn on_stream_opened(&mut self, stream: StreamId) {
        self.incoming.store.retain(|kept| self.recv.contract(kept).is_some());
        self.incoming.progressive.retain(|&read| self.recv.contract(read).is_some());
        self.recv.hold_until_announced(stream);
        self.events.push(ConnectionEvent::StreamOpened(stream));
    }

    /// Counts what there is to tell the application since this was last asked: so many events can be taken.
    pub(crate) fn count_events(&mut self) -> usize {
        let counted = self.events.count();
        let count = counted.len();
        for event in counted {
            if let ConnectionEvent::StreamOpened(stream) = *event {
                self.recv.on_announced(stream);
            }
        }
        count
    }

    /// The next counted event.
    pub(crate) fn poll_event(&mut self) -> Option<ConnectionEvent> {
        self.events.take()
    }

    /// Whether there are uncounted events.
    pub(crate) fn has_events(&self) -> bool {
        self.events.has_new()
    }

    /// Whether set-up is done and the connection is not closed.
    pub fn is_established(&self) -> bool {
        self.setup.is_done() && !self.close.is_over()
    }

    /// Whether the connection has ended and need not be driven any more.
    pub(crate) fn is_drained(&self) -> bool {
        self.close.is_drained()
    }
}
