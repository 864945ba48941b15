//! Real UDP for state machines: batched sockets, the clock, and the drivers of any
//! [`segstream_base::endpoint::Endpoint`].
//!
//! - [`clock`]: converts the standard clock and the kernel's receive timestamps to an [`Instant`](segstream_base::Instant).
//! - [`socket`]: one UDP socket, many datagrams per system call (GSO and GRO); errors of the network are counted and never fatal.
//!   Opened by [`bind`], read through [`receive`].
//! - [`shards`]: several sockets on one port, each with the connections of one shard.
//! - [`wake`]: how another thread wakes a driver that sleeps.
//! - [`driver`]: the event loop around an endpoint, on the caller's own thread or on tokio.
//! - [`adapter`]: any pair of halves over UDP, without encryption, for laboratories.
//! - [`link`]: the link emulator, a path with bandwidth, delay and loss between real sockets.
//! - [`staged`]: the processes of a protocol that is parallel by function, spread over threads.
//!
//! Called by the facade, the laboratory, the command and the benchmarks; calls `base`, and `path` for the emulator.
//!
//! Invariant: this is the only crate that uses a clock, a socket or a thread; everything it drives gets time as an argument.
//!
//! Limit: Unix only. Segmentation offload, kernel receive times and precise timers of the asynchronous driver need Linux; elsewhere
//! the crate works without them.

#[cfg(feature = "adapter")]
pub mod adapter;
pub mod bind;
pub mod clock;
pub mod counters;
pub mod driver;
#[cfg(feature = "link")]
pub mod link;
mod parker;
#[cfg(any(all(feature = "link", target_os = "linux"), feature = "staged"))]
mod pinning;
pub mod receive;
mod receive_many;
mod send_from;
mod send_many;
pub mod shards;
pub mod socket;
#[cfg(feature = "staged")]
pub mod staged;
mod sync;
pub mod wake;

pub use bind::{SocketConfig, SocketError, SocketWarning};
pub use clock::Clock;
pub use counters::SocketCounters;
pub use receive::ReceiveBatch;
pub use socket::{DropReason, Interest, Readiness, SendOutcome, Socket};
pub use wake::Waker;
