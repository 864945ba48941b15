//! The API for tokio: handles that share an endpoint with one background task.
//!
//! - [`endpoint`]: bind, connect, accept;
//! - [`connection`]: streams in both directions, rate and class, the end;
//! - [`stream_sender`], [`segment_writer`]: sending segments, whole or while they are produced;
//! - [`stream_receiver`]: receiving segments, whole or unit by unit;
//! - [`shared_state`]: the lock, the background task, and the notifications.
//!
//! Invariant: no lock is held across an await; futures are cancel safe unless their documentation says otherwise.

mod connection;
mod endpoint;
mod segment_writer;
mod shared_state;
mod stream_receiver;
mod stream_sender;

pub use connection::Connection;
pub use endpoint::Endpoint;
pub use segment_writer::SegmentWriter;
pub use stream_receiver::StreamReceiver;
pub use stream_sender::StreamSender;
