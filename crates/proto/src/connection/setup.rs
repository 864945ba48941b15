//! Set-up: CR and CC (HT 3.1) carry the beginning of a handshake that contains proposal and agreement; HS carries the rest of it.
//!
//! ```text
//! initiator                                   responder
//!     | CR  first handshake bytes, padded         |
//!     |------------------------------------------>|  no state is kept
//!     |                           CK  a cookie    |
//!     |<------------------------------------------|
//!     | CR  the same with the cookie              |
//!     |------------------------------------------>|  the address is validated: a connection
//!     |        CC, HS  handshake bytes, agreement |
//!     |<------------------------------------------|
//!     | HS (when encrypted), TXS                  |
//!     |------------------------------------------>|  done on both sides
//! ```
//!
//! Called by the connection. Each side retransmits its handshake bytes with exponential backoff until a shipment of the peer implicitly
//! acknowledges them.
//!
//! Invariant: an answer is accepted only if it echoes the random identifier of the request; an agreement only if the session has
//! authenticated it.

use super::flight::Flight;
use super::{Connection, ConnectionEvent, Timer};
use crate::config::DATAGRAM_BYTES_MIN;
use crate::error::CloseReason;
use crate::session::{HandshakeError, Plain};
use segstream_base::codec::{Reader, Writer};
use segstream_base::{Duration, Instant, ShipmentNumber, StreamId};
use segstream_wire::handshake::{Confirm, Cookie, Disconnect, Fragment, Reject, RejectReason, Request, VERSION};
use segstream_wire::header::HEADER_BYTES;
use segstream_wire::proposal::{Agreement, Proposal, STREAMS_MAX, agreed_idle_timeout};
use segstream_wire::report::ReportFrame;
use segstream_wire::{Class, Extensions, Level};

/// The pause before the first repetition.
const RETRY: Duration = Duration::from_millis(200);

/// Shipments of set-up have one of the first numbers of their sender.
const SETUP_NUMBERS: u64 = 64;

/// How many cookies are accepted for one request: a cookie expires now and then, but not so often.
const COOKIES_MAX: u32 = 8;

/// The longest proposal or agreement.
const PARAMETERS_BYTES_MAX: usize = 48 * 1024;

/// Who asked for the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// We did.
    Initiator,
    /// The peer did.
    Responder,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The request is out.
    ExpectConfirm,
    /// The handshake is under way, or done here and not heard of there.
    ExpectFirstShipment,
    Done,
}

/// The tokens that a responder issues in its agreement.
#[derive(Clone, Debug, Default)]
pub(crate) struct IssuedTokens {
    /// The stateless reset token.
    pub(crate) reset: Option<[u8; 16]>,
    /// The address token for the initiator's next connection.
    pub(crate) token: Box<[u8]>,
}

/// The state of set-up.
#[derive(Debug)]
pub(super) struct Setup {
    stage: Stage,
    protection: u8,
    /// What we have proposed, or the peer has.
    proposal: Proposal,
    /// Whether the peer's side of the agreement has been taken.
    agreed: bool,
    token: Box<[u8]>,
    cookies: u32,
    /// Ours; `None` once set-up is complete.
    issued_tokens: Option<Box<IssuedTokens>>,
    flight: Flight,
    /// Boxed: a connection that is refused does not last, and each would carry its size.
    rejection: Option<Box<Reject>>,
    /// How often the handshake bytes were sent again.
    tries: u32,
    first_sent: Option<Instant>,
    /// The last rejection, if it was that the peer is busy.
    busy: Option<Box<str>>,
    began: Instant,
}

impl Setup {
    pub(super) fn new(now: Instant, role: Role, protection: u8, proposal: Proposal, token: Vec<u8>, issued_tokens: IssuedTokens) -> Self {
        let stage = match role {
            Role::Initiator => Stage::ExpectConfirm,
            Role::Responder => Stage::ExpectFirstShipment,
        };
        Self {
            stage,
            protection,
            proposal,
            agreed: false,
            token: token.into(),
            cookies: 0,
            issued_tokens: Some(Box::new(issued_tokens)),
            flight: Flight::default(),
            rejection: None,
            tries: 0,
            first_sent: None,
            busy: None,
            began: now,
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.stage == Stage::Done
    }

    /// Whether shipments of set-up can be ignored from now on.
    pub(super) fn is_settled(&self) -> bool {
        self.is_done() && self.flight.is_acknowledged()
    }
}

/// A shipment of set-up.
pub(super) enum SetupShipment {
    Request(Request),
    Confirm(Confirm),
    Handshake(Fragment),
    Reject(Reject),
}

impl Connection {
    pub(super) fn begin_setup(&mut self, now: Instant) {
        self.timers.set(Timer::SetupDeadline, now + self.config.connect_timeout);
        if self.identity.role == Role::Initiator {
            for contract in self.setup.proposal.streams.clone() {
                // Why ignored: the endpoint has validated every contract of the proposal.
                let _ = self.send.open_stream(now, contract);
            }
        }
    }

    /// What set-up wants to send now.
    pub(super) fn setup_shipment(&mut self, now: Instant) -> Option<SetupShipment> {
        if let Some(rejection) = self.setup.rejection.take() {
            return Some(SetupShipment::Reject(*rejection));
        }
        if self.close.is_over() {
            return None;
        }
        while let Some((level, bytes)) = self.protection.session.write_handshake() {
            self.setup.flight.push(level, &bytes);
        }
        let shipment = self.next_flight()?;
        self.setup.first_sent.get_or_insert(now);
        self.timers.set(Timer::SetupRetry, now + RETRY * (1 << self.setup.tries.min(4)));
        Some(shipment)
    }

    fn next_flight(&mut self) -> Option<SetupShipment> {
        let setup = &mut self.setup;
        let (request, connection) = (setup.proposal.request, self.identity.local_id);
        match self.identity.role {
            Role::Initiator => {
                // Why one only: a responder keeps no state before the address is validated, so the others would be lost.
                if !(setup.token.is_empty() && setup.flight.has_begun(Level::Initial)) {
                    let around = HEADER_BYTES + Plain::SEAL_BYTES + Request::overhead_bytes(setup.token.len());
                    if let Some(fragment) = setup.flight.next(Level::Initial, DATAGRAM_BYTES_MIN - around) {
                        let (protection, token) = (setup.protection, setup.token.clone());
                        return Some(SetupShipment::Request(Request {
                            version: VERSION,
                            request,
                            connection,
                            protection,
                            token: token.into(),
                            fragment,
                        }));
                    }
                }
            }
            Role::Responder => {
                let around = HEADER_BYTES + Plain::SEAL_BYTES + Confirm::OVERHEAD_BYTES;
                if let Some(fragment) = setup.flight.next(Level::Initial, DATAGRAM_BYTES_MIN - around) {
                    return Some(SetupShipment::Confirm(Confirm { request, connection, fragment }));
                }
            }
        }
        if !self.protection.session.can_seal(Level::Handshake) {
            return None;
        }
        let around = HEADER_BYTES + self.protection.session.seal_bytes() + 8;
        self.setup.flight.next(Level::Handshake, DATAGRAM_BYTES_MIN - around).map(SetupShipment::Handshake)
    }

    /// The retransmission timer has expired.
    pub(super) fn retry_setup(&mut self) {
        if !self.setup.flight.is_acknowledged() {
            self.setup.tries += 1;
            self.setup.flight.begin_again();
        }
    }

    pub(super) fn give_up_setup(&mut self, now: Instant) {
        if !self.setup.is_done() {
            let reason = match self.setup.busy.take() {
                Some(detail) => CloseReason::Rejected { reason: RejectReason::Busy, detail: detail.into_string() },
                None => CloseReason::NoAnswer(self.config.connect_timeout.into()),
            };
            self.end(now, reason);
        }
    }

    /// Datagrams are never larger than the peer accepts, and never smaller than every path carries.
    fn keep_to_peer_limits(&mut self) {
        let most = (self.peer.limits.datagram_bytes as usize).max(DATAGRAM_BYTES_MIN);
        if let Some(search) = &mut self.send.path.pmtu.search {
            search.limit(most);
        } else if most < self.send.path.pmtu.control_bytes {
            self.send.path.pmtu.control_bytes = most;
            let body_bytes = most - HEADER_BYTES - self.protection.session.seal_bytes();
            self.send.set_body_bytes(body_bytes);
            self.recv.set_body_bytes(body_bytes);
        }
        self.idle.timeout = agreed_idle_timeout(&self.config.limits, &self.peer.limits);
        self.send.set_keep_alive(self.idle.timeout / 4);
        self.send.refuse_beyond(self.peer.limits.streams);
    }

    /// A request of the peer whose address is validated, or a repetition of one.
    pub(crate) fn on_request(&mut self, now: Instant, number: ShipmentNumber, datagram_bytes: usize, request: &Request) {
        // A request can be replayed by anyone who has seen it.
        if !self.setup.is_done() {
            self.count_setup(now, number, datagram_bytes);
            self.on_fragment(now, Level::Initial, &request.fragment);
        }
    }

    /// A shipment of set-up counts like any other, so that it is not declared lost.
    fn count_setup(&mut self, now: Instant, number: ShipmentNumber, datagram_bytes: usize) {
        // Limit: it is not authenticated, and must not be able to make all later shipments look reordered.
        if number.0 < SETUP_NUMBERS {
            // What came before the first that counted was for an endpoint that kept nothing.
            self.recv.begin_at(number);
            self.recv.on_shipment(now, number, datagram_bytes as u64);
        }
    }

    /// Whether this is an incoming connection whose peer is not authenticated yet.
    pub(super) fn is_setting_up(&self) -> bool {
        self.setup.stage == Stage::ExpectFirstShipment && !self.close.is_over()
    }

    /// Whether the peer was refused, and the connection stays to repeat the refusal.
    pub(super) fn is_refused(&self) -> bool {
        self.identity.role == Role::Responder && self.close.is_over() && !self.setup.is_done() && !self.close.is_drained()
    }

    /// When set-up began.
    pub(crate) const fn setup_began(&self) -> Instant {
        self.setup.began
    }

    /// Evicts a set-up that takes long, because others need its place.
    pub(crate) fn give_way(&mut self, now: Instant) {
        self.end(now, CloseReason::NoAnswer(now.since(self.setup.began).into()));
        self.close.set_drained();
    }

    pub(super) fn on_cookie(&mut self, cookie: Cookie) {
        let setup = &mut self.setup;
        let expected = setup.stage == Stage::ExpectConfirm && cookie.request == setup.proposal.request && !setup.flight.has_read();
        if !expected || setup.cookies >= COOKIES_MAX || cookie.token.is_empty() {
            return;
        }
        setup.cookies += 1;
        setup.token = cookie.token.into();
        (setup.tries, setup.first_sent) = (0, None);
        setup.flight.begin_again();
    }

    pub(super) fn on_confirm(&mut self, now: Instant, number: ShipmentNumber, datagram_bytes: usize, confirm: &Confirm) {
        if self.setup.stage != Stage::ExpectConfirm || confirm.request != self.setup.proposal.request {
            return;
        }
        if self.setup.flight.has_read() && self.identity.remote_id != confirm.connection {
            return;
        }
        self.identity.remote_id = confirm.connection;
        self.count_setup(now, number, datagram_bytes);
        self.on_fragment(now, Level::Initial, &confirm.fragment);
    }

    /// Handshake bytes have arrived at `level`.
    pub(super) fn on_fragment(&mut self, now: Instant, level: Level, fragment: &Fragment) {
        if self.close.is_over() {
            self.repeat_refusal();
            return;
        }
        // Nothing of the initial level is expected once there are keys, and anyone can forge it.
        let expected = level == Level::Handshake || !self.protection.session.can_seal(Level::Handshake);
        let Some(bytes) = self.setup.flight.take(level, fragment).filter(|_| expected) else {
            if self.setup.is_done() && self.identity.role == Role::Responder {
                // The peer repeats its last bytes: our answer has not arrived there.
                self.send.request_immediate_state(now);
            }
            return;
        };
        if self.identity.role == Role::Initiator || level == Level::Handshake {
            // The answer implies that the peer has our bytes of this level.
            self.setup.flight.acknowledge(Level::Initial);
        }
        let read = self.protection.session.read_handshake(level, bytes);
        if let Err(error) = read.and_then(|()| self.take_parameters(now)) {
            self.fail_handshake(now, error);
        }
    }

    fn take_parameters(&mut self, now: Instant) -> Result<(), HandshakeError> {
        if self.setup.agreed {
            return Ok(());
        }
        match self.identity.role {
            Role::Initiator if self.protection.session.is_complete() => self.take_agreement(now),
            Role::Responder => self.take_proposal(now),
            Role::Initiator => Ok(()),
        }
    }

    /// The responder reads the proposal, and passes its agreement to the handshake.
    fn take_proposal(&mut self, now: Instant) -> Result<(), HandshakeError> {
        let Some(parameters) = self.protection.session.peer_parameters() else { return Ok(()) };
        let proposal = Proposal::decode(&mut Reader::new(parameters)).map_err(|_| broken("a proposal that cannot be read"))?;
        if (proposal.request, proposal.connection) != (self.setup.proposal.request, self.identity.remote_id) {
            return Err(broken("a proposal for another connection"));
        }
        self.setup.agreed = true;
        // Never more than was proposed, and never without flow control and rate control because the peer requests it.
        let agreed = Class::new(proposal.class.number() & self.config.class.number()).unwrap_or_default();
        if !agreed.is_limited(!proposal.rate.is_zero()) && !self.config.unlimited {
            self.reject(now, RejectReason::Unacceptable, "neither flow control nor rate control is not allowed here");
            return Ok(());
        }
        self.peer.limits = proposal.limits;
        self.keep_to_peer_limits();
        self.set_extensions(proposal.extensions);
        self.set_agreed_class(now, agreed);
        for (id, contract) in proposal.streams.iter().enumerate() {
            self.recv.open(now, StreamId(id as u32), contract);
        }
        self.setup.proposal = proposal;
        let agreement = self.agreement();
        let mut bytes = vec![0; PARAMETERS_BYTES_MAX];
        let mut writer = Writer::new(&mut bytes);
        agreement.encode(&mut writer);
        let written = writer.finish().unwrap_or(0);
        self.protection.session.answer(&bytes[..written])
    }

    fn agreement(&self) -> Agreement {
        let mut grants = self.recv.grants();
        grants.truncate(STREAMS_MAX);
        let issued = self.setup.issued_tokens.as_deref();
        Agreement {
            request: self.setup.proposal.request,
            connection: self.identity.local_id,
            class: self.recv.config.class,
            limits: self.config.limits,
            reset: issued.and_then(|issued| issued.reset),
            token: issued.map_or_else(Vec::new, |issued| issued.token.to_vec()),
            // Why not always: an end that names none may not know what an agreement says of them.
            extensions: if self.setup.proposal.extensions.is_empty() { Extensions::NONE } else { self.config.extensions() },
            grants,
        }
    }

    /// The initiator reads the agreement: its set-up is complete.
    fn take_agreement(&mut self, now: Instant) -> Result<(), HandshakeError> {
        let Some(parameters) = self.protection.session.peer_parameters() else { return Ok(()) };
        let agreement = Agreement::decode(&mut Reader::new(parameters)).map_err(|_| broken("an agreement that cannot be read"))?;
        if (agreement.request, agreement.connection) != (self.setup.proposal.request, self.identity.remote_id) {
            return Err(broken("an agreement for another connection"));
        }
        self.setup.agreed = true;
        self.peer.limits = agreement.limits;
        self.keep_to_peer_limits();
        self.set_extensions(agreement.extensions);
        self.peer.stateless_reset_token = agreement.reset;
        self.peer.address_token = agreement.token.into();
        // Never more than was proposed.
        let class = Class::new(agreement.class.number() & self.setup.proposal.class.number());
        self.set_agreed_class(now, class.unwrap_or_default());
        for frame in &agreement.grants {
            if matches!(frame, ReportFrame::Grant { .. } | ReportFrame::Refused { .. }) {
                self.send.handle_grant(now, frame);
            }
        }
        self.finish_setup(now);
        // The peer may send as soon as it has heard us under the agreed identifiers.
        self.send.request_immediate_state(now);
        Ok(())
    }

    /// What both ends support is in force from the start.
    fn set_extensions(&mut self, theirs: Extensions) {
        if self.config.confirms && theirs.contains(Extensions::DURABLE) {
            self.recv.set_confirms();
        }
        if theirs.contains(Extensions::CONFIRMS) {
            self.send.expect_confirmations(self.peer.limits.streams);
        }
        if theirs.contains(Extensions::REPAIR) && self.config.extensions().contains(Extensions::REPAIR) {
            self.send.set_coding();
            self.recv.set_coding();
        }
    }

    pub(super) fn set_agreed_class(&mut self, now: Instant, class: Class) {
        self.recv.config.class = class;
        self.send.set_agreed_class(now, class);
    }

    /// A shipment of the peer has opened at a data level, so it has all handshake bytes. A responder's set-up is complete.
    pub(super) fn on_data_level(&mut self, now: Instant) {
        if self.setup.is_settled() {
            return;
        }
        for level in [Level::Initial, Level::Handshake] {
            self.setup.flight.acknowledge(level);
        }
        self.timers.stop(Timer::SetupRetry);
        if self.setup.stage == Stage::ExpectFirstShipment {
            self.finish_setup(now);
        }
    }

    fn finish_setup(&mut self, now: Instant) {
        self.setup.stage = Stage::Done;
        // Why: a connection may last, and what it was proposed with is known to its halves.
        (self.setup.proposal.streams, self.setup.token, self.setup.issued_tokens) = Default::default();
        self.timers.stop(Timer::SetupDeadline);
        self.timers.set(Timer::Idle, now + self.idle.timeout);
        // A repetition makes the measurement ambiguous (Karn's rule).
        if let Some(sent) = self.setup.first_sent.filter(|_| self.setup.tries == 0) {
            self.send.on_rtt_sample(now, now.since(sent));
        }
        // RFC 9959 3.2: a loss in Reconnaissance ends it.
        self.send.path.saved = None;
        self.share_round_trip();
        if !self.recv.on_set_up(self.peer()) {
            self.end_over_memory_budget(now);
            return;
        }
        self.events.push(ConnectionEvent::Connected);
    }

    /// The handshake has failed: the peer gets the reason at the highest level that it can open, and the connection ends.
    fn fail_handshake(&mut self, now: Instant, error: HandshakeError) {
        if self.protection.session.can_seal(Level::Handshake) {
            self.close.refuse(Disconnect { code: error.code, abort: true, detail: error.told.to_string() });
        } else if self.identity.role == Role::Responder {
            self.setup.rejection = Some(Box::new(self.rejection(RejectReason::Handshake, &error.told)));
        }
        self.end(now, CloseReason::HandshakeFailed(error));
    }

    fn reject(&mut self, now: Instant, reason: RejectReason, detail: &str) {
        let rejection = self.rejection(reason, detail);
        self.setup.rejection = Some(Box::new(rejection));
        self.end(now, CloseReason::Rejected { reason, detail: detail.to_owned() });
    }

    fn rejection(&self, reason: RejectReason, detail: &str) -> Reject {
        Reject { request: self.setup.proposal.request, reason, version: VERSION, detail: detail.to_owned() }
    }

    pub(super) fn on_reject(&mut self, now: Instant, reject: Reject) {
        let expected = self.setup.stage == Stage::ExpectConfirm && !self.setup.flight.has_read();
        if !expected || reject.request != self.setup.proposal.request {
            return;
        }
        if reject.reason == RejectReason::Busy {
            // The request is repeated anyway, and may be accepted later.
            self.setup.busy = Some(reject.detail.into_boxed_str());
            return;
        }
        let mut detail = reject.detail;
        if reject.reason == RejectReason::Version {
            detail = format!("it speaks version {}, we speak {VERSION}; {detail}", reject.version);
        }
        self.end(now, CloseReason::Rejected { reason: reject.reason, detail });
    }
}

fn broken(what: &str) -> HandshakeError {
    let detail = format!("the peer has sent {what}");
    HandshakeError { code: 256 + 80, told: detail.as_str().into(), detail, untrusted: None }
}
