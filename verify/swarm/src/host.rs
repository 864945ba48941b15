//! A host: an endpoint at an address that is driven as a program drives one, crashes, hangs and starts again.
//!
//! Owned by the swarm, which brings datagrams and applications to it. A host has a clock of its own: all its endpoint
//! is told is in its own time.
//!
//! Invariant: after whatever changes an endpoint the swarm settles the host, so that its deadline is up to date.

use crate::event::Place;
use crate::network::Arriving;
use crate::plan::HostPlan;
use segstream_base::endpoint::{Arrival, Ecn, Endpoint as _, Local};
use segstream_base::random::Seed;
use segstream_base::{Duration, Instant};
use segstream_proto::config::Config;
use segstream_proto::endpoint::{ConnectionId, Endpoint};
use segstream_secure::{Admission, Identity, Tls};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Datagrams that wait at the socket of a host that is not driven; further ones are dropped.
const SOCKET_MAX: usize = 200;

/// Makes an endpoint. This is the one place where it is decided how its connections are protected.
///
/// Keys are fresh in each run and are no part of its seed; nothing a run counts or compares depends on their bytes.
fn endpoint(config: &Config, identity: Option<&Identity>, seed: Seed) -> anyhow::Result<Endpoint> {
    let Some(identity) = identity else { return Ok(Endpoint::new(config.clone(), seed)?) };
    let tls = Tls::new(identity.clone(), Admission::anyone(), None)?;
    Ok(Endpoint::with_protection(config.clone(), Box::new(tls))?)
}

/// A host.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) number: usize,
    pub(crate) plan: HostPlan,
    seed: Seed,
    /// Its key, which outlives it; none in plain mode.
    identity: Option<Identity>,
    /// None while it is crashed.
    pub(crate) endpoint: Option<Endpoint>,
    /// How often it has started.
    pub(crate) life: u32,
    /// Until when it is not driven.
    pub(crate) paused: Option<Instant>,
    /// So many faults keep its applications from taking anything.
    pub(crate) deaf: u32,
    /// What waits at its socket, and since when.
    waiting: Vec<(Instant, SocketAddr, Arriving)>,
    /// When its endpoint wants to be called, in the swarm's time.
    pub(crate) deadline: Option<Instant>,
    /// Its sides that are not forgotten.
    pub(crate) sides: BTreeMap<ConnectionId, u32>,
}

impl Host {
    /// A host that has started.
    ///
    /// # Errors
    /// When its configuration cannot be, a fault of the plan, or no key can be made.
    pub(crate) fn new(number: usize, plan: HostPlan, encrypted: bool, seed: Seed) -> anyhow::Result<Self> {
        let seed = seed.child(&format!("host.{number}"));
        let identity = encrypted.then(Identity::generate).transpose()?;
        let endpoint = Some(endpoint(&plan.config, identity.as_ref(), seed)?);
        let (waiting, sides) = (Vec::new(), BTreeMap::new());
        Ok(Self { number, plan, seed, identity, endpoint, life: 0, paused: None, deaf: 0, waiting, deadline: None, sides })
    }

    /// What its clock shows.
    pub(crate) fn clock(&self, now: Instant) -> Instant {
        now + self.plan.clock
    }

    /// What the swarm's clock shows when its own shows `local`.
    pub(crate) fn swarm_time(&self, local: Instant) -> Instant {
        local - self.plan.clock
    }

    /// It loses everything.
    pub(crate) fn crash(&mut self) {
        self.endpoint = None;
        self.deadline = None;
        self.waiting.clear();
        self.sides.clear();
    }

    /// It starts again, if it is crashed, and remembers nothing.
    pub(crate) fn restart(&mut self) {
        if self.endpoint.is_none() {
            self.life += 1;
            // Why no error: the same configuration was good the first time.
            self.endpoint = endpoint(&self.plan.config, self.identity.as_ref(), self.seed.child(&format!("life.{}", self.life))).ok();
        }
    }

    /// A datagram has reached its socket. False when it has no ears.
    pub(crate) fn arrive(&mut self, now: Instant, from: SocketAddr, arriving: Arriving) -> bool {
        if self.paused.is_some() {
            let room = self.endpoint.is_some() && self.waiting.len() < SOCKET_MAX;
            if room {
                self.waiting.push((now, from, arriving));
            }
            return room;
        }
        self.hand_over(now, now, from, arriving);
        self.endpoint.is_some()
    }

    fn hand_over(&mut self, now: Instant, received: Instant, from: SocketAddr, mut arriving: Arriving) {
        let (now, received) = (self.clock(now), self.clock(received));
        if let Some(endpoint) = &mut self.endpoint {
            let ecn = arriving.marked.then_some(Ecn::CongestionExperienced);
            endpoint.handle_datagram(now, Arrival { from, to: Local::ANY, ecn, received }, &mut arriving.datagram);
        }
    }

    /// It is driven again after it was not: its clock has jumped, and its socket is full.
    pub(crate) fn resume(&mut self, now: Instant) {
        self.paused = None;
        if self.plan.timers_first {
            self.wake(now);
        }
        for (received, from, arriving) in core::mem::take(&mut self.waiting) {
            self.hand_over(now, received, from, arriving);
        }
        self.wake(now);
    }

    /// Its timers ring.
    pub(crate) fn wake(&mut self, now: Instant) {
        let now = self.clock(now);
        if let Some(endpoint) = &mut self.endpoint {
            endpoint.handle_timeout(now);
        }
    }

    /// When it wants to be woken.
    pub(crate) fn next_wake(&self) -> Option<Instant> {
        if self.paused.is_some() { None } else { self.deadline }
    }

    /// Asks its endpoint again when that wants to be called.
    pub(crate) fn ask_deadline(&mut self) {
        let deadline = self.endpoint.as_ref().and_then(|endpoint| endpoint.poll_deadline());
        self.deadline = deadline.map(|deadline| self.swarm_time(deadline.at));
    }

    /// How long set-up is tried here, and how long silence is borne.
    pub(crate) const fn patience(&self) -> (Duration, Duration) {
        (self.plan.config.connect_timeout, self.plan.config.limits.idle_timeout)
    }

    /// Where it is.
    pub(crate) const fn place(&self) -> Place {
        Place::Host(self.number)
    }
}
