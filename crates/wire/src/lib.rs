//! The flagship's bytes: shipments, parts and frames as values.
//!
//! - [`header`]: the nine bytes in front of every shipment.
//! - [`class`]: error control, flow control and rate control as three bits (HT Table 1).
//! - [`contract`]: what a stream promises, and the limits of an endpoint.
//! - [`part`]: a run of units of one segment; data shipments are nothing but parts.
//! - [`repair`]: repair units of a segment, an extension.
//! - [`state`]: the sender's state (TXS), and its frames.
//! - [`report`]: the receiver's state (RXS), and its frames.
//! - [`runs`]: runs of units, as reports name them.
//! - [`handshake`]: request, cookie, confirm, reject, handshake bytes, and the words of the close.
//! - [`proposal`]: what the two sides agree on inside the handshake; [`extensions`]: what each of them supports.
//!
//! Called by `proto` and by the packet inspector. The drawings are in `docs/spec`.
//!
//! Invariant: decoding never panics and never allocates more than the input is long; encoding writes
//! exactly `encoded_len` bytes; what is decoded encodes to the same value again.

#![forbid(unsafe_code)]

pub mod class;
pub mod contract;
pub mod extensions;
pub mod handshake;
pub mod header;
pub mod part;
pub mod proposal;
pub mod repair;
pub mod report;
pub mod runs;
pub mod state;

pub use class::Class;
pub use contract::{Contract, Limits, Order};
pub use extensions::Extensions;
pub use header::{Header, Kind, Level};
pub use part::Part;
pub use repair::Repair;
pub use report::{Report, ReportFrame};
pub use state::{State, StateFrame};
