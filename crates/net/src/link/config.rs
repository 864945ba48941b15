//! What to relay, and what can be wrong with it.
//!
//! Called by whoever starts a [`Link`](super::Link).
//!
//! Invariant: an error says which address or direction is meant and what to do.

use crate::bind::SocketError;
use segstream_base::Duration;
use segstream_base::random::Seed;
use segstream_path::{PathConfig, SpecError};
use std::io;
use std::net::SocketAddr;

/// A link to emulate.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkConfig {
    /// Where clients send to. Port 0 takes any free one.
    pub listen: SocketAddr,
    /// Where their datagrams go.
    pub to: SocketAddr,
    /// The path from the clients to [`LinkConfig::to`]. Default: a perfect one.
    pub forward: PathConfig,
    /// The path from [`LinkConfig::to`] to the clients. Default: a perfect one.
    pub back: PathConfig,
    /// The seed of all random choices; the directions are called `forward` and `back`. Default: 1.
    pub seed: Seed,
    /// Departures that are closer together than this leave together: most will be late by up to as much, and one
    /// wake-up and one system call serve them all. Sparser ones are not affected. Zero lets each leave by
    /// itself. Default: [`LinkConfig::GRAIN`].
    pub grain: Duration,
    /// For how long before a departure that stands alone the processor is kept busy instead of sleeping, which
    /// spares the time of waking up. Default: [`LinkConfig::SPIN`].
    pub spin: Duration,
    /// Whether the processors are kept from sleeping deeply while datagrams are on their way, where the system lets the
    /// link. Costs energy. Default: yes.
    pub keep_awake: bool,
    /// How late one datagram in a thousand may leave for the report to say that the link kept up. Default:
    /// 1 ms.
    pub lateness_limit: Duration,
}

impl LinkConfig {
    /// The default of [`LinkConfig::grain`]: small beside the delay of any path worth emulating.
    pub const GRAIN: Duration = Duration::from_micros(100);
    /// The default of [`LinkConfig::spin`]: about what waking up takes.
    pub const SPIN: Duration = Duration::from_micros(50);

    /// A perfect link from `listen` to `to`.
    pub fn new(listen: SocketAddr, to: SocketAddr) -> Self {
        Self {
            listen,
            to,
            forward: PathConfig::default(),
            back: PathConfig::default(),
            seed: Seed(1),
            grain: Self::GRAIN,
            spin: Self::SPIN,
            keep_awake: true,
            lateness_limit: Duration::from_millis(1),
        }
    }
}

/// Why a link cannot be emulated, or cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// A path cannot be as it was described.
    #[error("the {direction} path cannot be emulated: {source}")]
    Path {
        /// `forward` or `back`.
        direction: &'static str,
        /// What is wrong.
        source: SpecError,
    },
    /// The listening address cannot be used.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// The destination is no host or no port.
    #[error("nothing can be sent to {to}; name the address and the port of a host, such as 127.0.0.1:4433")]
    UnusableDestination {
        /// The destination.
        to: SocketAddr,
    },
    /// The destination is the link itself.
    #[error("the link would relay to itself at {to}; choose another destination or another address to listen on")]
    RelaysToItself {
        /// The destination.
        to: SocketAddr,
    },
    /// The system failed in a way that no later try would mend.
    #[error("the link cannot go on because the system refused to {step}: {source}")]
    System {
        /// What was asked of the system.
        step: &'static str,
        /// What it answered.
        source: io::Error,
    },
}
