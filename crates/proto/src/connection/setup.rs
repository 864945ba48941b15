//! Set-up: CR, CC and the first sealed shipment, as three legs (HT 3.1).
//!
//! Called by the connection. The initiator repeats its request with doubling pauses until the confirm
//! arrives; the responder answers every request, and nothing but a request makes it send a confirm.
//!
//! Invariant: an answer counts only if it echoes the random identifier of the request.

use super::{Connection, ConnectionEvent, Timer};
use crate::error::CloseReason;
use segstream_base::{Duration, Instant};
use segstream_wire::handshake::{Confirm, Reject, RejectReason, Request};
use segstream_wire::report::ReportFrame;

/// The pause before the first repetition.
const RETRY: Duration = Duration::from_millis(200);

/// A request has one of the first numbers of its sender.
const REQUEST_NUMBERS: u64 = 64;

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
    /// The confirm is out.
    ExpectFirstShipment,
    Done,
}

/// The state of set-up.
#[derive(Debug)]
pub(super) struct Setup {
    stage: Stage,
    request: Request,
    /// The request or the confirm is to be sent.
    owed: bool,
    sent: u32,
    first_sent: Option<Instant>,
}

impl Setup {
    pub(super) const fn new(role: Role, request: Request) -> Self {
        let stage = match role {
            Role::Initiator => Stage::ExpectConfirm,
            Role::Responder => Stage::ExpectFirstShipment,
        };
        Self { stage, request, owed: true, sent: 0, first_sent: None }
    }

    pub(super) fn is_done(&self) -> bool {
        self.stage == Stage::Done
    }

    pub(super) const fn request(&self) -> &Request {
        &self.request
    }
}

impl Connection {
    pub(super) fn begin_setup(&mut self, now: Instant) {
        self.timers.set(Timer::SetupDeadline, now + self.config.connect_timeout);
        let streams = core::mem::take(&mut self.setup.request.streams);
        match self.role {
            Role::Initiator => {
                for contract in &streams {
                    // Why: the endpoint has validated every contract of the request.
                    let _ = self.send.open_stream(now, contract.clone());
                }
                self.setup.request.streams = streams;
            }
            Role::Responder => {
                self.remote_id = self.setup.request.connection;
                self.keep_to_peer_limits();
                for (id, contract) in streams.iter().enumerate() {
                    self.recv.open(now, id as u32, contract);
                }
            }
        }
    }

    /// What set-up wants to send now: a request or a confirm.
    pub(super) fn setup_shipment(&mut self, now: Instant) -> Option<SetupShipment> {
        if !self.setup.owed || self.setup.is_done() || self.close.is_over() {
            return None;
        }
        self.setup.owed = false;
        self.setup.sent += 1;
        self.setup.first_sent.get_or_insert(now);
        if self.setup.stage != Stage::ExpectConfirm {
            // Why no repetition: the address is not proved, so a confirm leaves only when a request comes;
            // the initiator repeats its request for as long as it has no confirm.
            return Some(SetupShipment::Confirm(self.confirm()));
        }
        self.timers.set(Timer::SetupRetry, now + RETRY * (1 << self.setup.sent.min(5)) / 2);
        Some(SetupShipment::Request(self.setup.request.clone()))
    }

    fn confirm(&self) -> Confirm {
        let mut grants = self.recv.grants();
        grants.truncate(segstream_wire::handshake::STREAMS_MAX);
        Confirm {
            request: self.setup.request.request,
            connection: self.local_id,
            class: self.recv.config.class,
            limits: self.limits,
            grants,
        }
    }

    pub(super) fn retry_setup(&mut self, _now: Instant) {
        self.setup.owed = !self.setup.is_done();
    }

    pub(super) fn give_up_setup(&mut self, now: Instant) {
        if !self.setup.is_done() {
            self.end(now, CloseReason::NoAnswer(self.config.connect_timeout));
        }
    }

    /// Datagrams are never larger than the peer accepts, and never smaller than every path carries.
    fn keep_to_peer_limits(&mut self) {
        let most = (self.peer_limits.datagram_bytes as usize).max(crate::config::DATAGRAM_BYTES_MIN);
        if most < self.config.datagram_bytes {
            self.config.datagram_bytes = most;
            let body_bytes = most - segstream_wire::header::HEADER_BYTES - self.session.seal_bytes();
            self.send.set_body_bytes(body_bytes);
            self.recv.set_body_bytes(body_bytes);
        }
    }

    /// The same request again: the confirm was lost.
    pub(crate) fn on_repeated_request(&mut self) {
        self.setup.owed |= self.setup.stage == Stage::ExpectFirstShipment;
    }

    /// A request of the peer has arrived as shipment `number`: it counts like any other, so that it is not held lost.
    pub(crate) fn count_request(&mut self, now: Instant, number: u64, datagram_bytes: usize) {
        // Limit: a request is not authentic, and must not be able to make all that follows look late.
        if number < REQUEST_NUMBERS {
            self.recv.on_shipment(now, number, datagram_bytes as u64);
        }
    }

    /// Whether the peer has not shown yet that it receives what we send to its address.
    pub(crate) fn is_unproven(&self) -> bool {
        self.setup.stage == Stage::ExpectFirstShipment && !self.close.is_over()
    }

    /// Whether `request` is the one this connection answers.
    pub(crate) fn answers(&self, from: core::net::SocketAddr, request: u64) -> bool {
        self.role == Role::Responder && self.remote == from && self.setup.request().request == request
    }

    pub(super) fn on_confirm(&mut self, now: Instant, confirm: &Confirm) {
        if self.setup.stage != Stage::ExpectConfirm || confirm.request != self.setup.request.request {
            return;
        }
        self.remote_id = confirm.connection;
        self.peer_limits = confirm.limits;
        self.keep_to_peer_limits();
        self.idle_timeout = segstream_wire::handshake::agreed_idle_timeout(&self.limits, &confirm.limits);
        self.send.set_keep_alive(self.idle_timeout / 4);
        // Never more than was proposed.
        let class = segstream_wire::Class::new(confirm.class.number() & self.setup.request.class.number());
        self.set_agreed_class(now, class.unwrap_or_default());
        for frame in &confirm.grants {
            if matches!(frame, ReportFrame::Grant { .. } | ReportFrame::Refused { .. }) {
                self.send.handle_grant(now, frame);
            }
        }
        self.finish_setup(now);
        // The third leg: the peer may send as soon as it has heard us under the agreed identifiers.
        self.send.hasten_state(now);
    }

    pub(super) fn set_agreed_class(&mut self, now: Instant, class: segstream_wire::Class) {
        self.recv.config.class = class;
        self.send.set_agreed_class(now, class);
    }

    /// The responder has heard the initiator under the agreed identifiers.
    pub(super) fn on_first_shipment(&mut self, now: Instant) {
        if self.setup.stage == Stage::ExpectFirstShipment {
            self.finish_setup(now);
        }
    }

    fn finish_setup(&mut self, now: Instant) {
        self.setup.stage = Stage::Done;
        self.timers.stop(Timer::SetupRetry);
        self.timers.stop(Timer::SetupDeadline);
        self.timers.set(Timer::Idle, now + self.idle_timeout);
        // A repeated request or confirm makes the measurement ambiguous (Karn's rule).
        if let Some(sent) = self.setup.first_sent.filter(|_| self.setup.sent == 1) {
            self.send.on_rtt_sample(now, now.since(sent));
        }
        self.share_round_trip();
        self.events.push_back(ConnectionEvent::Connected);
    }

    pub(super) fn on_reject(&mut self, now: Instant, reject: Reject) {
        if self.setup.stage != Stage::ExpectConfirm || reject.request != self.setup.request.request {
            return;
        }
        let mut detail = reject.detail;
        if reject.reason == RejectReason::Version {
            detail = format!("it speaks version {}, we speak {}; {detail}", reject.version, segstream_wire::handshake::VERSION);
        }
        self.end(now, CloseReason::Rejected { reason: reject.reason, detail });
    }
}

/// A shipment of set-up.
pub(super) enum SetupShipment {
    Request(Request),
    Confirm(Confirm),
}
