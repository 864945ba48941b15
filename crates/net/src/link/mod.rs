//! The link emulator: a UDP relay whose two directions are two [`Path`](segstream_path::Path)s.
//!
//! Called by the command, by tests and by side-by-side measurements; the simulator uses the same path
//! model in virtual time.
//!
//! Datagrams from clients go *forward* to one destination, its answers go *back*. Every client gets a socket
//! of its own towards the destination, so that answers find their way; all clients share the two paths. A
//! datagram is charged as the whole IP packet it came in: 28 bytes more on IPv4, 48 on IPv6. It enters the
//! path at the kernel's receive time where the system tells it, else when it was read, so reading late
//! does not delay it, only being late at the departure does.
//!
//! - [`config`]: what to relay, and what can be wrong with it.
//! - [`relay`]: the loop, on the caller's thread.
//! - `emulation`: the two paths and what is on its way on them, whatever is read and written.
//! - `clients`, `departures`, `store`: who sends, what leaves when, where it lies until then.
//! - `pace`, [`priority`], `awake`: when to sleep, a better place on the processor, and a processor that wakes at once.
//! - `tun` (Linux): the same between two network namespaces, for the packets of any program.
//! - `queueing`: how long what passed has waited in the emulated queues.
//! - [`lateness`], `overflow`, [`report`]: how true the emulation was.
//!
//! Invariant: the report tells when the emulation was not true: how late datagrams left, what the system
//! dropped, and every datagram that did not get through by its cause.
//!
//! Explicit congestion notification (RFC 3168) passes through where the system tells and takes it: a datagram from an
//! ECN-capable sender may leave marked where another would be dropped.

mod awake;
mod clients;
pub mod config;
mod departures;
mod emulation;
pub mod lateness;
mod overflow;
mod pace;
pub mod priority;
mod queueing;
pub mod relay;
pub mod report;
mod store;
#[cfg(target_os = "linux")]
pub mod tun;

pub use config::{LinkConfig, LinkError};
pub use lateness::Lateness;
pub use priority::Priority;
pub use queueing::Queueing;
pub use relay::Link;
pub use report::{LinkReport, RelayCounters};
