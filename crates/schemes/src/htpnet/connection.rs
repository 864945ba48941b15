//! Set-up and release of a connection (HT 3.2): CR, CC and the first data or state packet; DR, DC and a last DC.
//!
//! Called by Tx2 and Rx2, which use the same machine from its two ends, and tests. HT says "similar to that of TCP" and
//! names what is negotiated; the rest is ours:
//!
//! - The class is what both sides have, buffers and pairs the smaller number, the gap the larger one.
//! - CR, CC, DR and the first DC are repeated on a timer that starts at two round trips and doubles up to a second, ten times.
//!   A connection that is not answered fails; a release that is not answered has been made.
//! - DR is sent when everything has been acknowledged, and DC when everything DR speaks of has been received; both sides
//!   may begin, at the same time too.
//!
//! Invariant: no packet that is lost, repeated or late opens a connection twice or leaves a side waiting forever.

use super::Config;
use super::message::ConnectionNews;
use super::packet::{Control, Reason, Release, Step, Terms};
use segstream_base::{Duration, Instant};
use std::collections::VecDeque;

/// How often a packet is repeated before it is given up.
const REPEATS_MAX: u32 = 10;
/// The shortest wait for an answer.
const WAIT_MIN: Duration = Duration::from_millis(10);
/// The longest one.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// Where a side is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Waits for a CR.
    Listening,
    /// Has sent CR.
    Requesting,
    /// Has sent CC.
    Confirming,
    Open,
    /// Has sent DR.
    Releasing,
    /// Has answered DR with DC.
    Answering,
    Released,
    Failed,
}

/// One side of a connection.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    connection: u8,
    own: Terms,
    required: super::Class,
    phase: Phase,
    /// What the peer offered.
    offered: Option<Terms>,
    terms: Terms,
    /// The release to be asked for.
    release: Option<Release>,
    wait: Duration,
    repeats: u32,
    due: Instant,
    outbox: VecDeque<Control>,
    news: VecDeque<ConnectionNews>,
}

impl Connection {
    /// The side that asks for the connection, at once; or both sides of an established one.
    pub(super) fn initiator(config: &Config, now: Instant) -> Self {
        let mut side = Self::new(config, Phase::Requesting);
        if config.connect {
            side.repeat_from(now);
            side.send_current();
        } else {
            side.open(side.own);
        }
        side
    }

    /// The side that waits for it.
    pub(super) fn responder(config: &Config) -> Self {
        let mut side = Self::new(config, Phase::Listening);
        if !config.connect {
            side.open(side.own);
        }
        side
    }

    fn new(config: &Config, phase: Phase) -> Self {
        let own = Terms { class: config.class, rate: config.rate_field(), credit: config.credit, pairs: config.ranges.pairs() };
        Self {
            connection: config.connection,
            own,
            required: config.class_required,
            phase,
            offered: None,
            terms: own,
            release: None,
            wait: (config.rtt * 2).clamp(WAIT_MIN, WAIT_MAX),
            repeats: 0,
            due: Instant::FAR_FUTURE,
            outbox: VecDeque::new(),
            news: VecDeque::new(),
        }
    }

    /// Whether data can pass.
    pub(super) const fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Open | Phase::Confirming)
    }

    /// The next packet to be sent.
    pub(super) fn poll(&mut self) -> Option<Control> {
        self.outbox.pop_front()
    }

    /// The next event.
    pub(super) fn poll_news(&mut self) -> Option<ConnectionNews> {
        self.news.pop_front()
    }

    /// When there is something to send or to tell, or [`Connection::handle_timeout`] is wanted.
    pub(super) fn due(&self) -> Instant {
        if self.outbox.is_empty() && self.news.is_empty() { self.due } else { Instant::ZERO }
    }

    /// Sends again what was not answered.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if now < self.due {
            return;
        }
        if self.repeats < REPEATS_MAX {
            self.repeats += 1;
            self.due = now + (self.wait * (1 << self.repeats)).min(WAIT_MAX);
            self.send_current();
            return;
        }
        match self.phase {
            Phase::Requesting => self.fail(Reason::Silent),
            // The CR was an old one, or its sender is gone.
            Phase::Confirming => self.rest_in(Phase::Listening),
            _ => self.released(),
        }
    }

    /// Everything has been sent and acknowledged: asks for the release, once the connection is open.
    pub(super) fn close(&mut self, now: Instant, release: Release) {
        self.release = Some(release);
        if self.phase == Phase::Open {
            self.phase = Phase::Releasing;
            self.repeat_from(now);
            self.send_current();
        }
    }

    /// A data or state packet has come: the third part of the set-up.
    pub(super) const fn heard(&mut self) {
        if matches!(self.phase, Phase::Confirming) {
            self.rest_in(Phase::Open);
        }
    }

    /// Takes a packet of the peer. `settled` tells of a DR whether all it speaks of has been received. Returns whether the
    /// peer waits for a data or state packet.
    pub(super) fn handle(&mut self, now: Instant, control: &Control, settled: bool) -> bool {
        match control {
            Control::Request { terms, .. } => self.on_request(now, *terms),
            Control::Confirm { terms, .. } => return self.on_confirm(now, *terms),
            Control::Reject { reason, .. } => {
                if matches!(self.phase, Phase::Requesting | Phase::Confirming) {
                    self.fail(*reason);
                }
            }
            Control::Release { .. } => self.on_release(now, settled),
            Control::Released { step, .. } => self.on_released(*step),
        }
        false
    }

    fn on_request(&mut self, now: Instant, offered: Terms) {
        match self.phase {
            Phase::Listening => match self.agree(offered) {
                Ok(terms) => {
                    self.offered = Some(offered);
                    self.phase = Phase::Confirming;
                    self.terms = terms;
                    self.news.push_back(ConnectionNews::Open(terms));
                    self.repeat_from(now);
                    self.send_current();
                }
                Err(reason) => self.outbox.push_back(Control::Reject { connection: self.connection, reason }),
            },
            // The CR was repeated because the CC was lost or slow.
            Phase::Confirming | Phase::Open if self.offered == Some(offered) => {
                self.outbox.push_back(Control::Confirm { connection: self.connection, terms: self.terms });
            }
            Phase::Confirming | Phase::Open => {
                self.outbox.push_back(Control::Reject { connection: self.connection, reason: Reason::InUse });
            }
            // An old one.
            _ => {}
        }
    }

    fn on_confirm(&mut self, now: Instant, granted: Terms) -> bool {
        if self.phase == Phase::Open && self.offered.is_none() {
            // The third part was lost or is in flight.
            return true;
        }
        if self.phase != Phase::Requesting {
            return false;
        }
        match self.agree(granted) {
            Ok(terms) => {
                self.rest_in(Phase::Open);
                self.open(terms);
                if let Some(release) = self.release {
                    self.close(now, release);
                }
                true
            }
            Err(reason) => {
                self.outbox.push_back(Control::Reject { connection: self.connection, reason });
                self.fail(reason);
                false
            }
        }
    }

    fn on_release(&mut self, now: Instant, settled: bool) {
        match self.phase {
            // Why no answer: data are missing, so it is an old one, or the peer will repeat it.
            _ if !settled => {}
            Phase::Open | Phase::Confirming => {
                self.phase = Phase::Answering;
                self.repeat_from(now);
                self.send_current();
            }
            // Both have asked, or the answer was lost.
            Phase::Releasing | Phase::Released | Phase::Answering => self.send_released(Step::Answer),
            Phase::Listening | Phase::Requesting | Phase::Failed => {}
        }
    }

    fn on_released(&mut self, step: Step) {
        match (step, self.phase) {
            (Step::Answer, Phase::Releasing | Phase::Answering | Phase::Released) => {
                self.send_released(Step::Last);
                self.released();
            }
            (Step::Last, Phase::Answering) => self.released(),
            _ => {}
        }
    }

    /// What both sides can hold to.
    fn agree(&self, other: Terms) -> Result<Terms, Reason> {
        let own = &self.own;
        let pairs = if other.pairs.count() < own.pairs.count() { other.pairs } else { own.pairs };
        let (credit, rate) = (own.credit.min(other.credit), own.rate.max(other.rate));
        let terms = Terms { class: own.class.and(other.class), rate, credit, pairs };
        if !terms.class.includes(self.required) {
            return Err(Reason::Class);
        }
        if terms.class.has_flow_control() && terms.credit == 0 {
            return Err(Reason::NoBuffers);
        }
        Ok(terms)
    }

    fn open(&mut self, terms: Terms) {
        self.phase = Phase::Open;
        self.terms = terms;
        self.news.push_back(ConnectionNews::Open(terms));
    }

    fn fail(&mut self, reason: Reason) {
        self.rest_in(Phase::Failed);
        self.news.push_back(ConnectionNews::Refused(reason));
    }

    fn released(&mut self) {
        if self.phase != Phase::Released {
            self.rest_in(Phase::Released);
            self.news.push_back(ConnectionNews::Released);
        }
    }

    /// Nothing is repeated in `phase`.
    const fn rest_in(&mut self, phase: Phase) {
        self.phase = phase;
        self.due = Instant::FAR_FUTURE;
    }

    fn repeat_from(&mut self, now: Instant) {
        self.repeats = 0;
        self.due = now + self.wait;
    }

    fn send_released(&mut self, step: Step) {
        self.outbox.push_back(Control::Released { connection: self.connection, step });
    }

    /// Sends what the phase waits for an answer to.
    fn send_current(&mut self) {
        let connection = self.connection;
        match (self.phase, self.release) {
            (Phase::Requesting, _) => self.outbox.push_back(Control::Request { connection, terms: self.own }),
            (Phase::Confirming, _) => self.outbox.push_back(Control::Confirm { connection, terms: self.terms }),
            (Phase::Releasing, Some(release)) => self.outbox.push_back(Control::Release { connection, release }),
            (Phase::Answering, _) => self.send_released(Step::Answer),
            _ => {}
        }
    }
}
