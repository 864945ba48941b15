//! A host: what the plan says of it, its key, and the sides of connections that live there. Its endpoint is the network's.
//!
//! Owned by the swarm, which brings applications to it.

use crate::event::Place;
use crate::plan::HostPlan;
use segstream_base::random::Seed;
use segstream_base::{Duration, Instant};
use segstream_network::HostId;
use segstream_proto::endpoint::{ConnectionId, Endpoint};
use segstream_secure::{Admission, Identity, Tls};
use std::collections::BTreeMap;

/// A host.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) number: usize,
    pub(crate) plan: HostPlan,
    seed: Seed,
    /// Its key, which outlives it; none in plain mode.
    identity: Option<Identity>,
    /// How often it has started.
    pub(crate) life: u32,
    /// Until when it is not driven.
    pub(crate) paused: Option<Instant>,
    /// So many faults keep its applications from taking anything.
    pub(crate) deaf: u32,
    /// Its sides that are not forgotten.
    pub(crate) sides: BTreeMap<ConnectionId, u32>,
}

impl Host {
    /// A host that has not started.
    ///
    /// # Errors
    /// When no key can be made.
    pub(crate) fn new(number: usize, plan: HostPlan, encrypted: bool, seed: Seed) -> anyhow::Result<Self> {
        let seed = seed.child(&format!("host.{number}"));
        let identity = encrypted.then(Identity::generate).transpose()?;
        Ok(Self { number, plan, seed, identity, life: 0, paused: None, deaf: 0, sides: BTreeMap::new() })
    }

    /// The endpoint of its present life. This is the one place where it is decided how its connections are protected.
    ///
    /// Keys are fresh in each run and are no part of its seed; nothing a run counts or compares depends on their bytes.
    ///
    /// # Errors
    /// When its configuration cannot be: a fault of the plan.
    pub(crate) fn endpoint(&self) -> anyhow::Result<Endpoint> {
        let config = self.plan.config.clone();
        let seed = if self.life == 0 { self.seed } else { self.seed.child(&format!("life.{}", self.life)) };
        let Some(identity) = &self.identity else { return Ok(Endpoint::new(config, seed)?) };
        let tls = Tls::new(identity.clone(), Admission::anyone(), None)?;
        Ok(Endpoint::with_protection(config, Box::new(tls))?)
    }

    /// How long set-up is tried here, and how long silence is borne.
    pub(crate) const fn patience(&self) -> (Duration, Duration) {
        (self.plan.config.connect_timeout, self.plan.config.limits.idle_timeout)
    }

    /// Which host of the network it is.
    pub(crate) const fn id(&self) -> HostId {
        HostId(self.number)
    }

    /// Where it is.
    pub(crate) const fn place(&self) -> Place {
        Place::Host(self.number)
    }
}
