//! What to connect, and what can be wrong with it.
//!
//! Called by whoever starts a [`TunLink`](super::TunLink).
//!
//! Invariant: an error says which namespace is meant and what to do.

use super::addresses::TunAddresses;
use crate::link::config::{LinkConfig, LinkError};
use segstream_base::Duration;
use segstream_base::random::Seed;
use segstream_path::PathConfig;
use std::io;
use std::path::PathBuf;

/// A link between two network namespaces.
#[derive(Clone, Debug, PartialEq)]
pub struct TunConfig {
    /// Where the first end is: the name of a namespace, as `ip netns` shows it, or a path to one, such as
    /// `/proc/4711/ns/net`.
    pub first: String,
    /// Where the second end is.
    pub second: String,
    /// What the ends are called. Default: 10.77.0.1 and 10.77.0.2.
    pub addresses: TunAddresses,
    /// The path from the first to the second. Default: a perfect one.
    pub forward: PathConfig,
    /// The path from the second to the first. Default: a perfect one.
    pub back: PathConfig,
    /// The seed of all random choices; the directions are called `forward` and `back`. Default: 1.
    pub seed: Seed,
    /// See [`LinkConfig::grain`].
    pub grain: Duration,
    /// See [`LinkConfig::spin`].
    pub spin: Duration,
    /// See [`LinkConfig::keep_awake`].
    pub keep_awake: bool,
    /// See [`LinkConfig::lateness_limit`].
    pub lateness_limit: Duration,
}

impl TunConfig {
    /// The longest packet the interfaces take, in bytes.
    pub const MTU: u16 = 1500;

    /// A perfect link between two namespaces.
    pub fn new(first: impl Into<String>, second: impl Into<String>) -> Self {
        Self {
            first: first.into(),
            second: second.into(),
            addresses: TunAddresses::default(),
            forward: PathConfig::default(),
            back: PathConfig::default(),
            seed: Seed(1),
            grain: LinkConfig::GRAIN,
            spin: LinkConfig::SPIN,
            keep_awake: true,
            lateness_limit: Duration::from_millis(1),
        }
    }
}

/// Why two namespaces cannot be connected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TunError {
    /// A path cannot be as it was described, or the link cannot go on.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// There is no such namespace.
    #[error("there is no network namespace {name} ({path} does not exist); `ip netns list` shows those there are, `ip netns add {name}` makes one", path = path.display())]
    NoSuchNamespace {
        /// What it was called.
        name: String,
        /// Where it was looked for.
        path: PathBuf,
    },
    /// What is there is something else.
    #[error("{name} is not a network namespace; give a name that `ip netns list` shows, or a path such as /proc/4711/ns/net")]
    NoNamespace {
        /// What it was called.
        name: String,
    },
    /// Both names mean one namespace.
    #[error("{first} and {second} are the same network namespace, and packets inside one namespace do not cross the link; give two")]
    SameNamespace {
        /// The first.
        first: String,
        /// The second.
        second: String,
    },
    /// The user lacks the right.
    #[error(
        "this user may not {step} in the network namespace {name}; run as the administrator, or with the capabilities CAP_SYS_ADMIN and CAP_NET_ADMIN"
    )]
    NotPermitted {
        /// What was asked of the system.
        step: &'static str,
        /// The namespace.
        name: String,
    },
    /// The system has no TUN devices.
    #[error(
        "this system has no TUN devices, which the link is made of: /dev/net/tun cannot be opened ({source}); load the module with `modprobe tun`, or give the container this device"
    )]
    NoTunDevices {
        /// What the system answered.
        source: io::Error,
    },
    /// The system refused for another reason.
    #[error("the system refused to {step} in the network namespace {name}: {source}")]
    System {
        /// What was asked of it.
        step: &'static str,
        /// The namespace.
        name: String,
        /// What it answered.
        source: io::Error,
    },
}
