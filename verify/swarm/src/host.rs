//! A host: its part of the plan, its key, and its sides of connections. The network owns its endpoint.
//!
//! Owned by the swarm, which brings applications to it.

use crate::event::Place;
use crate::plan::HostPlan;
use crate::turncoat::Turncoat;
use segstream_base::random::Seed;
use segstream_base::{Duration, Instant};
use segstream_network::HostId;
use segstream_proto::endpoint::{ConnectionId, Endpoint};
use segstream_proto::session::{Plain, Protection};
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
    is_turncoat: bool,
    /// How often it has started.
    pub(crate) life: u32,
    /// Until when it is not driven.
    pub(crate) paused: Option<Instant>,
    /// This many faults keep its applications from taking anything.
    pub(crate) deaf: u32,
    /// Its sides that are not forgotten.
    pub(crate) sides: BTreeMap<ConnectionId, u32>,
}

impl Host {
    /// A host that has not started.
    ///
    /// # Errors
    /// When no key can be made.
    pub(crate) fn new(number: usize, plan: HostPlan, (encrypted, is_turncoat): (bool, bool), seed: Seed) -> anyhow::Result<Self> {
        let seed = seed.child(&format!("host.{number}"));
        let identity = encrypted.then(Identity::generate).transpose()?;
        Ok(Self { number, plan, seed, identity, is_turncoat, life: 0, paused: None, deaf: 0, sides: BTreeMap::new() })
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
        let protection: Box<dyn Protection> = match &self.identity {
            None if !self.is_turncoat => return Ok(Endpoint::new(config, seed)?),
            None => Box::new(Plain::new(seed.0.to_be_bytes().repeat(2).try_into().unwrap_or_default())),
            Some(identity) => Box::new(Tls::new(identity.clone(), Admission::anyone(), None)?),
        };
        let protection = if self.is_turncoat { Box::new(Turncoat::new(protection, seed)) } else { protection };
        Ok(Endpoint::with_protection(config, protection)?)
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
