//! Stream segments over UDP with exactly the loss an application can live with.
//!
//! An application says how much of each piece of its data may be missing, and in how long runs. The transport repairs
//! only that far, and says of every piece, at both ends, whether the promise was met and where the holes are.
//!
//! # Nouns
//!
//! - A *segment* is the smallest piece of data an application uses on its own: a video frame, a slice of a
//!   simulation, a record. Segments of a stream are numbered from 0 and may differ in length.
//! - A *unit* is what may be missing of a segment: it has a fixed size, at most what fits a datagram of 1200 bytes
//!   ([`Builder::unit_bytes_max`]). The last one may be short.
//! - A *tolerance* (W, E, B) says: of every W units of a segment at most E may be missing, and no more than B in a row.
//!   (W, 0, 0) is a reliable transport, (W, W, W) sends nothing twice.
//! - A *stream* carries segments one way, under a [`Contract`]: unit size, tolerance, order, lifetime, window. A
//!   *connection* has streams in both directions; an *endpoint* is a socket with its connections.
//! - A [`Verdict`] is what became of a segment: *complete*, *within_tolerance*, *expired*, or, when the connection
//!   ended before the receiver's verdict came, *unknown*. *Holes* are the units that are missing.
//!
//! # Example
//!
//! Both ends in one program; each would usually have its own.
//!
//! ```
//! use segstream::blocking::Endpoint;
//! use segstream::{Contract, Error, Identity, StreamId, Tolerance};
//!
//! fn main() -> Result<(), Error> {
//!     // The sender's key, which the receiver is told: nobody else is served.
//!     let key = Identity::generate()?;
//!     let mut receiver = Endpoint::builder().allow(key.fingerprint()).listen(([127, 0, 0, 1], 0))?;
//!     let peer = receiver.peer();
//!     let receiving = std::thread::spawn(move || -> Result<(), Error> {
//!         let id = receiver.accept(None)?;
//!         while let Some(segment) = receiver.connection(id).recv(StreamId::FIRST, None)? {
//!             println!("{} bytes, {}, holes {:?}", segment.bytes.len(), segment.verdict, segment.holes);
//!         }
//!         receiver.close()
//!     });
//!
//!     let mut sender = Endpoint::builder().identity(key).bind(([127, 0, 0, 1], 0))?;
//!     // Of 64 units of 1 KiB two may be missing, no two side by side.
//!     let contract = Contract { tolerance: Tolerance::new(64, 2, 1)?, ..Contract::default() };
//!     let id = sender.connect(peer, vec![contract])?;
//!     let mut connection = sender.connection(id);
//!     let segment = connection.send(StreamId::FIRST, vec![7; 64 * 1024].into())?;
//!     println!("{}", connection.verdict(StreamId::FIRST, segment, None)?);
//!     connection.close(0, "done")?;
//!     receiving.join().expect("the receiving thread does not panic")
//! }
//! ```
//!
//! # What happens to a segment
//!
//! It is taken whole, or [opened](blocking::Connection::open_segment) and appended to while its first units are
//! already on their way. It waits in the send buffer until the peer's window and the rate admit it. Its units leave
//! in datagrams, under a partial tolerance in strided order, so that a burst of losses becomes isolated holes. The
//! receiver asks again for what is missing, but only where the tolerance is violated. As soon as what is missing is
//! certainly lost and within tolerance, or a lifetime has run out, the receiver judges the segment: the application
//! there gets it as [`Received`], bytes zero where units are missing, and the one here gets the same verdict and holes
//! as [`Judged`]. Whoever cannot wait that long reads a stream unit by unit, as [`Progress`].
//!
//! # Blocking or asynchronous
//!
//! - [`blocking`] works on the caller's own thread, without an executor. The network is served inside its calls and
//!   nowhere else, so a program that does other work for long must call it in between, or ask for a thread that drives the
//!   endpoint ([`Builder::driven_in_background`]).
//! - [`Endpoint`], [`Connection`], [`StreamSender`] and [`StreamReceiver`] are for tokio (feature `tokio`, on by default).
//!   One task in the background serves the network; handles can be cloned and sent to other tasks, and futures can be
//!   dropped at any time.
//!
//! # Rate
//!
//! Unless told otherwise a connection finds out what its path carries: it begins with a few datagrams a round trip,
//! grows by 70 % each until a queue forms, and keeps that queue short, so that others find room too ([`Rate::AUTO`]). An encoder
//! follows it: [`blocking::Connection::rate_changed`] waits for the next change, [`blocking::Connection::rate`] tells the present rate,
//! which counts whole IP packets. Datagrams begin with 1200 bytes and grow to what the path is found to carry
//! ([`DatagramSize::Discover`]).
//!
//! ```no_run
//! # use segstream::{Error, blocking::Connection};
//! # fn set_bitrate(_: u64) {}
//! # fn follow(mut connection: Connection) -> Result<(), Error> {
//! while let Ok(rate) = connection.rate_changed(None) {
//!     // A tenth is left for headers, repairs and what the picture takes more now and then.
//!     set_bitrate(rate.bits_per_second() / 10 * 9);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! On a path whose capacity is known and one's own, a fixed rate is better from the first packet
//! ([`Config::with_rate_megabits`]); a path that carries almost nothing of it ends the connection with
//! [`CloseReason::PathOverloaded`].
//!
//! # Limits and memory
//!
//! What is kept is bounded, whatever the peer or the application does:
//!
//! - For a stream of ours: at most two windows of units, one on its way and one waiting; then sending waits. A window
//!   is [`Contract::window_units`], lowered to what the peer grants; a segment must fit one. Of verdicts nobody asks
//!   for, the last 65,536 are kept.
//! - For a stream of the peer: at most one window of units, lowered to [`Config::stream_window_bytes`], plus a fixed
//!   state for each of at most [`Contract::window_segments`] segments that were not taken yet or whose verdicts are
//!   not confirmed. An application that pauses stops its peer; nothing is lost and nothing grows.
//! - [`Config::streams`] streams for each peer, [`Config::connections`] connections, and a fixed number of them whose
//!   peers have not shown yet that they are where they say.
//!
//! A connection that hears nothing of its peer for [`Config::idle_timeout`] ends with
//! [`CloseReason::TimedOut`]; what has no verdict then is *unknown*.
//!
//! # Copies
//!
//! A segment that is sent is a [`Bytes`], which a `Vec<u8>` becomes without a copy; it is kept as it is until its verdict, and
//! copied once, into datagrams. A segment that is received is a [`Bytes`] too: the buffer that it was put together in, which is
//! used again for a later segment when the last handle of it is dropped. It can be handed on or sent again without a copy.
//! `recv_into` copies once more, into a buffer of the application's.
//!
//! # Security
//!
//! Everything is encrypted and both ends prove who they are by keys; there is no way to fall back. An endpoint is known by
//! the fingerprint of its key ([`blocking::Endpoint::fingerprint`]). Whoever connects says which one it expects ([`Peer`]).
//! Whoever listens says which ones it serves ([`Builder::allow`]). A key that outlives the program is in a file
//! ([`Builder::identity_file`]). [`Builder::insecure`] turns all of it off and is for laboratories.
//!
//! The protocol itself is in `segstream_proto`, sockets are in `segstream_net`.
//!
//! Invariant: no type of a lower room that is not re-exported here is needed to use this crate.

#![forbid(unsafe_code)]
// The handles for tokio are named in this text, and are not there without the feature.
#![cfg_attr(not(feature = "tokio"), allow(rustdoc::broken_intra_doc_links))]

#[cfg(feature = "tokio")]
mod asynchronous;
pub mod blocking;
mod builder;
mod closing;
mod config;
mod error;
mod hub;
mod inbox;
mod progress;
mod security;
mod shards;
mod statistics;
mod verdicts;

#[cfg(feature = "tokio")]
pub use asynchronous::{Connection, Endpoint, SegmentWriter, StreamReceiver, StreamSender};
pub use builder::Builder;
pub use bytes::Bytes;
pub use config::Config;
pub use error::Error;
pub use progress::{Progress, Units};
pub use security::Peer;
/// A point in time on the clock of an endpoint, in nanoseconds since the clock was started: the source time of a segment, its first
/// arrival, its verdict. [`Clock::at`] makes one of a [`std::time::Instant`].
pub use segstream_base::Instant as Timestamp;
pub use segstream_base::halves::{SubmitError, Verdict};
pub use segstream_base::tolerance::{Tolerance, ToleranceError};
pub use segstream_base::{Bandwidth, SegmentNumber, StreamId};
pub use segstream_blocks::burst::RateSpec;
pub use segstream_blocks::congestion::{Algorithm, UnknownAlgorithm};
pub use segstream_net::bind::{SocketError, SocketWarning};
pub use segstream_net::clock::Clock;
pub use segstream_net::counters::SocketCounters;
pub use segstream_net::driver::{Polling, Threads};
pub use segstream_net::wake::Waker;
pub use segstream_proto::config::DatagramSize;
pub use segstream_proto::connection::{ConnectionEvent, Received};
pub use segstream_proto::endpoint::{ConnectionId, StrayCounters};
pub use segstream_proto::error::{CloseReason, ConnectError, OpenStreamError};
pub use segstream_proto::rate::{Rate, RateError};
pub use segstream_secure::{
    Admission, Authorities, AuthoritiesError, Fingerprint, Identity, IdentityError, KnownPeers, KnownPeersError, OneTimeCode,
    OneTimeCodeError, Trust,
};
pub use segstream_wire::Class;
pub use segstream_wire::contract::{Contract, ContractError, InterleaveChoice, Limits, Order};
pub use segstream_wire::report::RefuseReason;
pub use statistics::{Statistics, StreamStatistics};
pub use verdicts::Judged;
