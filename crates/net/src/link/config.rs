//! The configuration of a link, and its errors.
//!
//! Used by every program that starts a [`Link`](super::Link).
//!
//! Invariant: an error names the address or direction and says what to do.

use crate::bind::SocketError;
use segstream_base::Duration;
use segstream_base::random::Seed;
use segstream_path::{PathConfig, SpecError};
use std::io;
use std::net::SocketAddr;

/// A link to emulate.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkConfig {
    /// The address that clients send to. Port 0 takes any free port.
    pub listen: SocketAddr,
    /// Where their datagrams go.
    pub to: SocketAddr,
    /// The path from the clients to [`LinkConfig::to`]. Default: a perfect one.
    pub forward: PathConfig,
    /// The path from [`LinkConfig::to`] to the clients. Default: a perfect one.
    pub back: PathConfig,
    /// The seed of all random choices; the directions are called `forward` and `back`. Default: 1.
    pub seed: Seed,
    /// The interval for coalescing departures: those closer together than this leave together, with one wake-up and one system
    /// call. Most of them are late by up to this interval. Sparser departures are not affected. Zero disables coalescing.
    /// Default: [`LinkConfig::GRAIN`].
    pub grain: Duration,
    /// For how long the relay spins before an isolated departure instead of sleeping, so that waking up does not make it late.
    /// Default: [`LinkConfig::SPIN`].
    pub spin: Duration,
    /// Whether processors are kept out of deep sleep states while datagrams are on their way, if the system permits it. Costs
    /// energy. Default: yes.
    pub keep_awake: bool,
    /// The limit of lateness: the link kept up if 999 of 1000 datagrams left within it. Default: 1 ms.
    pub lateness_limit: Duration,
}

impl LinkConfig {
    /// The default of [`LinkConfig::grain`]: small beside the delay of any path worth emulating.
    pub const GRAIN: Duration = Duration::from_micros(100);
    /// The default of [`LinkConfig::spin`]: about the time of a wake-up.
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
    /// The configuration of a path is not valid.
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
    /// The system failed in a way that a retry cannot solve.
    #[error("the link cannot go on because the system refused to {step}: {source}")]
    System {
        /// What the system was asked to do.
        step: &'static str,
        /// What it answered.
        source: io::Error,
    },
}
