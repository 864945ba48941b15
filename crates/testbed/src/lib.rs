//! Where real programs and the kernel's own transports meet one emulated path: for tests and measurements only.
//!
//! - [`process`]: a program as a child that never outlives whoever started it;
//! - [`ends`]: two network namespaces, and what can be done inside them;
//! - [`testbed`]: the same with `segstream link --tun` between them;
//! - [`kernel_tcp`]: a transfer over the kernel's TCP, and how much of it arrived when;
//! - [`probe`]: how long packets wait for the link, over time.
//!
//! Used by the tests of `cli` and by `bench`; nothing that is shipped may depend on it.
//!
//! Invariant: what goes wrong with the tools themselves is a panic, as in a test; only a missing right is an error.

pub mod process;

#[cfg(target_os = "linux")]
pub mod ends;
#[cfg(target_os = "linux")]
pub mod kernel_tcp;
#[cfg(target_os = "linux")]
pub mod probe;
#[cfg(target_os = "linux")]
pub mod testbed;

#[cfg(target_os = "linux")]
pub use ends::{Ends, Refused, Side};
#[cfg(target_os = "linux")]
pub use testbed::Testbed;
