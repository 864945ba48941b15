//! The link emulator between two network namespaces: every packet between programs in the two, whether TCP, UDP or another
//! protocol, crosses the two [`Path`](segstream_path::Path)s.
//!
//! Called by the command and by tests that run other programs, and the kernel's own transports, over the same path.
//!
//! In each namespace there is a TUN device, an interface whose packets a program reads and writes. A packet that is routed to the
//! device of the first namespace goes *forward* and comes out of the device of the second; answers go *back*. Each is charged as a
//! whole IP packet.
//!
//! - [`config`]: the configuration, and its errors.
//! - [`addresses`]: the addresses of the two ends.
//! - [`namespace`], `device`: where the ends are, and the interfaces in them.
//! - `congestion_mark`: the ECN field of a packet. `flow`: the flow of a packet. `offload`: several packets in one call.
//! - [`relay`]: the loop, on the caller's thread.
//!
//! Invariant: packets cross the path one by one, as they would on a wire, and with their checksums, so a flipped bit is revealed. That the
//! kernel hands over several at once is undone before they enter (`offload`).
//!
//! Source: the kernel's Documentation/networking/tuntap.rst; namespaces(7), network_namespaces(7).
//!
//! Limit: the kernel does not stamp packets at a TUN device, so a packet enters the path when it is read. The relay is woken for
//! every arrival; on a machine without a free processor a packet enters late.

pub mod addresses;
pub mod config;
mod congestion_mark;
mod device;
mod flow;
pub mod namespace;
mod offload;
pub mod relay;

pub use addresses::TunAddresses;
pub use config::{TunConfig, TunError};
pub use namespace::Namespace;
pub use relay::TunLink;
