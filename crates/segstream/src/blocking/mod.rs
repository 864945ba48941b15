//! The API for threads, without an executor.
//!
//! An [`Endpoint`] owns a socket and all its connections. Only [`Endpoint::wait`] and the calls of [`Connection`] that wait or send serve
//! the network: no thread is started. A program that does other work for a long time must call [`Endpoint::wait`] in between (a
//! timeout of zero is enough), or its connections run into the idle timeout. Or it requests a background thread that drives the
//! endpoint ([`Builder::driven_in_background`](crate::Builder::driven_in_background)).
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
//! A program can wait for one thing at a time ([`Connection::recv`], [`Connection::verdict`] and so on), or for all events in one place
//! ([`Endpoint::wait`]), or both: each event is returned once, to the first call that asks for it.
//!
//! Invariant: a call that waits for one thing keeps all other events; events of one stream keep their order.

mod background;
mod batches;
mod call_driven;
mod connection;
mod endpoint;
mod segment_writer;

pub use connection::Connection;
pub use endpoint::Endpoint;
pub use segment_writer::SegmentWriter;
