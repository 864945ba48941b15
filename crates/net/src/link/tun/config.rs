//! The configuration of a link between two namespaces, and its errors.
//!
//! Used by every program that starts a [`TunLink`](super::TunLink).
//!
//! Invariant: an error names the namespace and says what to do.

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
    /// The namespace of the first end: its name, as `ip netns` shows it, or its path, such as `/proc/4711/ns/net`.
    pub first: String,
    /// The namespace of the second end.
    pub second: String,
    /// The addresses of the ends. Default: 10.77.0.1 and 10.77.0.2.
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
    /// The MTU of the interfaces.
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
    /// The configuration of a path is not valid, or the link cannot go on.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// There is no such namespace.
    #[error("there is no network namespace {name} ({path} does not exist); `ip netns list` shows those there are, `ip netns add {name}` makes one", path = path.display())]
    NoSuchNamespace {
        /// The given name.
        name: String,
        /// The path that does not exist.
        path: PathBuf,
    },
    /// The name or path is not a network namespace.
    #[error("{name} is not a network namespace; give a name that `ip netns list` shows, or a path such as /proc/4711/ns/net")]
    NoNamespace {
        /// The given name.
        name: String,
    },
    /// Both names are of the same namespace.
    #[error("{first} and {second} are the same network namespace, and packets inside one namespace do not cross the link; give two")]
    SameNamespace {
        /// The first.
        first: String,
        /// The second.
        second: String,
    },
    /// The user lacks the privilege.
    #[error(
        "this user may not {step} in the network namespace {name}; run as the administrator, or with the capabilities CAP_SYS_ADMIN and CAP_NET_ADMIN"
    )]
    NotPermitted {
        /// What the system was asked to do.
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
        /// What the system was asked to do.
        step: &'static str,
        /// The namespace.
        name: String,
        /// What it answered.
        source: io::Error,
    },
}
