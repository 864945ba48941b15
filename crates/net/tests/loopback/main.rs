//! Sockets and both drivers over the loopback interface, with endpoints small enough to see through.

#[cfg(feature = "tokio")]
mod asynchronous;
mod blocking;
mod pair;
mod socket;
