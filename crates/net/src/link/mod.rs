//! The link emulator: a UDP relay whose two directions are two [`Path`](segstream_path::Path)s.
//!
//! Called by the command, by tests and by side-by-side measurements. The simulator uses the same path model in virtual time.
//!
//! Datagrams from clients go *forward* to one destination, its answers go *back*. Every client gets a socket of its own towards the
//! destination, so that answers can be told apart; all clients share the two paths. A datagram is charged as a whole IP packet:
//! 28 bytes more on IPv4, 48 on IPv6. It enters the path at the kernel's receive timestamp if there is one, otherwise when it was
//! read. So reading late does not delay a datagram; only a late departure does.
//!
//! - [`config`]: the configuration of a link, and its errors.
//! - [`relay`]: the loop, on the caller's thread.
//! - `emulation`: the two paths and the packets on them, for every kind of link.
//! - `client_table`, `departure_queue`, `packet_buffers`: the clients, the datagrams by departure time, and their bytes.
//! - `wait_policy`, [`priority`], `cpu_latency`, `idle_poll`: when to sleep, real-time scheduling, and low wake-up latency.
//! - `tun` (Linux): the same between two network namespaces, for the packets of any program.
//! - `queueing`: how long packets have waited in the emulated queues.
//! - [`lateness`], `socket_drops`, [`report`]: how exact the emulation was; [`watch`]: the same while it runs.
//!
//! Invariant: the report tells where the emulation was not exact: how late datagrams left, what the system dropped, and every
//! datagram that did not get through, by cause.
//!
//! The ECN field (RFC 3168) passes through where the system supports it: a datagram of an ECN-capable sender may be marked where
//! another one would be dropped.

mod client_table;
pub mod config;
mod cpu_latency;
mod departure_queue;
mod emulation;
mod idle_poll;
pub mod lateness;
mod packet_buffers;
pub mod priority;
mod queueing;
pub mod relay;
pub mod report;
mod socket_drops;
mod stolen_time;
#[cfg(target_os = "linux")]
pub mod tun;
mod wait_policy;
pub mod watch;

pub use config::{LinkConfig, LinkError};
pub use lateness::Lateness;
pub use priority::Priority;
pub use queueing::Queueing;
pub use relay::Link;
pub use report::{LinkReport, RelayCounters};
pub use watch::LinkWatch;
