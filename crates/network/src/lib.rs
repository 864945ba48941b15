//! A network of endpoints in virtual time: a test of a protocol over bad paths that takes milliseconds and can be repeated.
//!
//! A [`Network`] has hosts, each with an endpoint ([`segstream_base::endpoint::Endpoint`]: this project's, encrypted or plain, or
//! your own), and routes between them that do whatever a [`segstream_path::Path`] can do. Its clock moves only when nothing is left
//! to do. A [`Fault`] blocks routes, pauses or crashes hosts, or rebinds a NAT. A
//! [`Middlebox`] sees every datagram and may drop or change it; [`EventLog`] and [`Capture`] are two that write down what they see.
//! The same seed and the same calls give the same run.
//!
//! A protocol of its own, which repeats a number until it is acknowledged, over a path that loses every third datagram:
//!
//! ```
//! use core::net::SocketAddr;
//! use segstream_base::endpoint::{Arrival, Deadline, Endpoint, Local, Transmit};
//! use segstream_base::{Duration, Instant, random::Seed};
//! use segstream_network::{EventLog, Fault, Network};
//! use segstream_path::PathConfig;
//!
//! /// Sends 0, 1, 2 and so on to `peer`, each until it is acknowledged; acknowledges what it gets.
//! #[derive(Default)]
//! struct StopAndWait { peer: Option<SocketAddr>, next: u8, repeat_at: Instant, got: Vec<u8>, acknowledge: Option<(Arrival, u8)> }
//!
//! impl Endpoint for StopAndWait {
//!     fn handle_datagram(&mut self, now: Instant, arrival: Arrival, datagram: &mut [u8]) {
//!         match *datagram {
//!             [b'A', number] if number == self.next => (self.next, self.repeat_at) = (number + 1, now),
//!             [b'D', number] => {
//!                 if number as usize == self.got.len() { self.got.push(number); }
//!                 self.acknowledge = Some((arrival, number));
//!             }
//!             _ => {}
//!         }
//!     }
//!     fn poll_transmit(&mut self, now: Instant, _max: usize, out: &mut Vec<u8>) -> Option<Transmit> {
//!         if let Some((asked, number)) = self.acknowledge.take() {
//!             out.extend([b'A', number]);
//!             return Some(Transmit { to: asked.from, from: asked.to, datagram_bytes: 2, ecn: None });
//!         }
//!         let to = self.peer.filter(|_| self.next < 100 && self.repeat_at <= now)?;
//!         self.repeat_at = now + Duration::from_millis(100);
//!         out.extend([b'D', self.next]);
//!         Some(Transmit { to, from: Local::ANY, datagram_bytes: 2, ecn: None })
//!     }
//!     fn poll_deadline(&self) -> Option<Deadline> {
//!         self.peer.filter(|_| self.next < 100).map(|_| Deadline { at: self.repeat_at, timer: "repeat" })
//!     }
//!     fn handle_timeout(&mut self, _now: Instant) {}
//! }
//!
//! let (here, there): (SocketAddr, SocketAddr) = ("10.0.0.1:1000".parse()?, "10.0.0.2:2000".parse()?);
//! let mut network = Network::with_middlebox(Seed(7), EventLog::default());
//! let sender = network.add_host(StopAndWait { peer: Some(there), ..Default::default() }, here);
//! let receiver = network.add_host(StopAndWait::default(), there);
//! network.link(sender, receiver, &PathConfig { delay: Duration::from_millis(20), loss: "33%".parse()?, ..PathConfig::default() })?;
//! network.fault_at(Instant::ZERO + Duration::from_secs(1), Fault::Rebind { host: sender, inside: here, outside: "192.0.2.9:77".parse()? });
//! network.run_until(Instant::ZERO + Duration::from_secs(60));
//! assert_eq!(network[receiver].got, Vec::from_iter(0..100), "{}", network.middlebox().as_str());
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```
//!
//! - [`network`]: [`Network`], the hosts and the clock; `traffic`: forwarding of datagrams; `faults`: execution of faults.
//! - [`host`]: [`HostConfig`], what a host is besides its endpoint; `route`: a path and its faults.
//! - [`event`]: [`Event`] and [`Middlebox`], which sees events; [`event_log`], [`capture`]: a text log and a capture file.
//! - [`fault`]: [`Fault`], a fault besides those of the paths; [`event_queue`]: [`EventQueue`], the events to come.
//!
//! Used by tests of this project and of yours; calls `base` and `path`. It names no protocol.
//!
//! Invariant: no clock, socket, thread, entropy or order of a hash map is reachable from here.

#![forbid(unsafe_code)]

pub mod capture;
pub mod event;
pub mod event_log;
pub mod event_queue;
pub mod fault;
mod faults;
pub mod host;
pub mod network;
mod route;
mod traffic;

pub use capture::{Capture, CaptureFile};
pub use event::{Datagram, Event, Fate, Middlebox, Reception, Ruling};
pub use event_log::EventLog;
pub use event_queue::EventQueue;
pub use fault::Fault;
pub use host::{HostConfig, HostId};
pub use network::{Network, Parts, Step};
pub use route::HEADER_BYTES;
