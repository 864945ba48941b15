//! Runs real programs and the kernel's transports over an emulated path, for tests and measurements.
//!
//! - [`process`]: a program as a child that never outlives whoever started it;
//! - [`ends`]: two network namespaces, and what can be done inside them;
//! - [`testbed`]: the same with `segstream link --tun` between them;
//! - [`kernel_tcp`]: a transfer over the kernel's TCP, and its arrivals over time;
//! - [`probe`]: the queueing delay of the link over time;
//! - [`tshark`]: what Wireshark reads in a capture.
//!
//! Used by the tests of `cli`, `lab` and `secure`, and by `bench`; nothing that is shipped may depend on it.
//!
//! Invariant: a failure of the tools is a panic, as in a test; only a missing privilege is an error.

pub mod process;
pub mod tshark;

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
