//! SSTP, the segment streaming transport protocol of EC (error control) and FC (two-level flow control):
//! loss found by the receiver through shipment numbers, an application's tolerance (W, E, B) checked for
//! each segment, selective retransmission on request, bursts below and a segment window above.
//!
//! - [`Config`]: what both halves agree on.
//! - [`Forward`], [`Feedback`]: the five packet types, and the oracle of the papers' figures (EC 4.1).
//! - [`Sender`]: transmission queue, segment control blocks, request filter (EC 4.2, FC 3.3, FC 3.4).
//! - [`Receiver`]: gap detection, tolerance checker, buffer, acknowledgments (EC 4.2, FC 3.4, FC 4.3).
//!
//! Called by the laboratory: by its registry and, through it, by the simulator and the adapter over UDP.
//! `README.md` beside this file maps the papers' sections and lists every decision where they are silent
//! or contradict themselves.
//!
//! Segments and packets count from 0 in this interface and from 1 on the wire, as the papers count.
//!
//! Invariant: the stream is always `StreamId(0)`; the halves read no clock and draw no entropy; neither
//! allocates for a packet once its rings have reached their size.

mod closing;
mod config;
mod keep_alive;
mod packet;
mod receiver;
mod sender;
mod settings;

pub use config::{Acknowledgment, Config, ConfigError, Discard, FeedbackMode, Repeats, Throttle, UnknownName};
pub use keep_alive::KeepAlive;
pub use packet::{Data, Feedback, Forward, Grant, Mark, Pack, Snak};
pub use receiver::Receiver;
pub use sender::Sender;
pub use settings::Settings;

#[cfg(test)]
mod tests;
