//! The link emulator between two network namespaces: whatever a program in one of them sends to the other, over
//! TCP, UDP or anything else, crosses the two [`Path`](segstream_path::Path)s.
//!
//! Called by the command and by tests that put other programs and the kernel's own transports on the same path.
//!
//! In each namespace there is a TUN device, an interface whose packets a program reads and writes. A packet that is
//! routed to the device of the first namespace goes *forward* and comes out of the device of the second, answers go *back*. It is
//! charged as it is, a whole IP packet.
//!
//! - [`config`]: what to connect, and what can be wrong with it.
//! - [`addresses`]: what the two ends are called.
//! - [`namespace`], `device`: where the ends are, and the interfaces in them.
//! - `congestion_mark`: which packets can be marked instead of dropped, and the mark. `flow`: which belong together.
//! - [`relay`]: the loop, on the caller's thread.
//!
//! Invariant: the kernel hands over and gets packets one by one as they would be on a wire, neither joined nor with
//! checksums to be filled in, so that every packet meets the path by itself and a flipped bit is noticed by whoever checks.
//!
//! Source: the kernel's Documentation/networking/tuntap.rst; namespaces(7), network_namespaces(7).
//!
//! Limit: the kernel does not note when a packet came to a TUN device, so it enters the path when it is read. The relay
//! is woken for every packet; on a machine without a free processor a packet enters late.

pub mod addresses;
pub mod config;
mod congestion_mark;
mod device;
mod flow;
pub mod namespace;
pub mod relay;

pub use addresses::TunAddresses;
pub use config::{TunConfig, TunError};
pub use namespace::Namespace;
pub use relay::TunLink;
