//! The API for threads, without an executor.
//!
//! An [`Endpoint`] owns a socket and all its connections. The network is served inside [`Endpoint::wait`] and the calls of
//! [`Connection`] that wait or send, and nowhere else: no thread is started. A program that does other work for long must
//! call [`Endpoint::wait`] in between (with a timeout of zero if it likes), or peers will think it gone; or it asks for a
//! thread that drives the endpoint ([`Builder::driven_in_background`](crate::Builder::driven_in_background)).
//!
//! ```no_run
//! use segstream::blocking::Endpoint;
//! use segstream::{Config, Contract, Fingerprint, StreamId};
//!
//! # fn example(key: Fingerprint) -> Result<(), segstream::Error> {
//! let mut endpoint = Endpoint::builder().config(Config::default().with_rate_megabits(50)).bind(([0, 0, 0, 0], 0))?;
//! let id = endpoint.connect((([192, 0, 2, 1], 9000).into(), key), vec![Contract::default()])?;
//! let mut connection = endpoint.connection(id);
//! let segment = connection.send(StreamId::FIRST, "a segment".into())?;
//! println!("{}", connection.verdict(StreamId::FIRST, segment, None)?);
//! connection.close(0, "done")?;
//! # Ok(())
//! # }
//! ```
//!
//! A program can ask for one thing at a time ([`Connection::recv`], [`Connection::verdict`] and so on), or hear of
//! everything in one place ([`Endpoint::wait`]), or both: whatever happens is handed out once, to who asks first.
//!
//! Invariant: a call that is waiting for one thing keeps what else happens; the order of what happens to one stream
//! is kept.

mod background;
mod connection;
mod endpoint;
mod on_calls;
mod segment_writer;

pub use connection::Connection;
pub use endpoint::Endpoint;
pub use segment_writer::SegmentWriter;
