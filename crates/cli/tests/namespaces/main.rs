//! The link between network namespaces from outside: the real binary, the kernel's own transports on both sides of it.
//!
//! The tests make namespaces, which takes the administrator and /dev/net/tun. Where that is not allowed they say so and
//! pass; with SEGSTREAM_REQUIRE_NAMESPACES=1 they fail instead.
#![cfg(target_os = "linux")]

mod congestion_marks;
mod corruption;
mod counters;
mod demo_capture;
mod echo;
mod local_address;
#[expect(dead_code, reason = "it has more than these tests need")]
#[path = "../command/process.rs"]
mod process;
mod refusals;
mod shared_link;
mod testbed;
mod throughput;
