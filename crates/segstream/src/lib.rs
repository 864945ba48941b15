//! Stream segments over UDP with exactly the loss an application can live with.
//!
//! An application says how much of each piece of its data may be missing, and in how long runs. The transport repairs only what that
//! tolerance requires. For every piece it tells both ends whether the tolerance was met and where the holes are.
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
//! - A [`Verdict`] is the outcome of a segment: *complete*, *within_tolerance*, *expired*, or *unknown* if the connection ended before
//!   the receiver's verdict arrived. *Holes* are the missing units, as [`Run`]s of [`UnitIndex`]es.
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
//!     // The sender's key; the receiver serves only this one.
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
//! An application submits it whole, or [opens](blocking::Connection::open_segment) it and appends to it while its first units are already
//! on their way. It waits in the send buffer until the peer's window and the rate admit it. Its units leave in datagrams. With a
//! partial tolerance they are interleaved, so that a burst of losses becomes isolated holes. The receiver requests missing
//! units again only where the tolerance is violated. When all missing units are declared lost and are within tolerance, or the
//! lifetime has passed, the receiver judges the segment. The receiving application gets it as [`Received`], with zeros in
//! the holes; the sending application gets the same verdict and holes as [`Judged`]. An application that cannot wait that
//! long reads a stream unit by unit, as [`Progress`].
//!
//! # Blocking or asynchronous
//!
//! - [`blocking`] works on the caller's own thread, without an executor. Only its calls serve the network, so a program that does other
//!   work for a long time must call it in between, or request a background thread that drives the endpoint
//!   ([`Builder::driven_in_background`]). A program with an event loop of its own watches the endpoint's socket, and asks
//!   [`blocking::Endpoint::serve_after`] when to call [`blocking::Endpoint::process`].
//! - [`Endpoint`], [`Connection`], [`StreamSender`] and [`StreamReceiver`] are for tokio (feature `tokio`, on by default).
//!   One task in the background serves the network; handles can be cloned and sent to other tasks, and futures can be
//!   dropped at any time. For many short segments [`StreamSender::send_many`] and [`StreamReceiver::recv_many`] pass batches.
//!
//! # Rate
//!
//! By default a congestion controller sets the rate ([`Rate::AUTO`]): it begins with a few datagrams per round trip, grows by 70 % per
//! round trip until a queue forms, and keeps that queue short, so that it shares the path with other flows. An encoder should follow
//! the rate: [`blocking::Connection::rate_changed`] waits for the next change, and [`blocking::Connection::rate`] returns the
//! present rate, which counts whole IP packets. Datagrams begin with 1200 bytes; path MTU discovery finds larger ones
//! ([`DatagramSize::Discover`]).
//!
//! ```no_run
//! # use segstream::{Error, blocking::Connection};
//! # fn set_bitrate(_: u64) {}
//! # fn follow(mut connection: Connection) -> Result<(), Error> {
//! while let Ok(rate) = connection.rate_changed(None) {
//!     // A tenth is left for headers, retransmissions and variations of the encoder.
//!     set_bitrate(rate.bits_per_second() / 10 * 9);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! On a path whose capacity is known and not shared, a fixed rate uses all of it from the first packet
//! ([`Config::with_rate_megabits`]). If the path carries almost nothing of that rate, a circuit breaker ends the connection with
//! [`CloseReason::PathOverloaded`].
//!
//! # Repair units
//!
//! What is requested is answered by repair units of an erasure code, any of which stands for any unit that is missing, with some spare ones
//! where much is lost ([`Coding::Hedged`], the default). [`Coding::Auto`] sends them ahead too, where a round of retransmission would miss
//! the latency that it names; [`Coding::Off`] sends the units again. [`Config::coding`] chooses.
//!
//! # Confirmations
//!
//! A verdict says that a segment has arrived. What is *safe* at the other end, on disk or processed, only the receiving application
//! knows: with [`Config::confirms`] it tells so by [`blocking::Connection::confirm`], and the sender waits for it with
//! [`blocking::Connection::confirmed`] or reads it with [`blocking::Connection::durable`]. A stream then counts as live until all of it is
//! confirmed, or [`blocking::Connection::confirm_no_more`] lets go of it. Closing a connection does not wait for confirmations.
//!
//! # Limits and memory
//!
//! Memory is bounded, whatever the peer or the application does:
//!
//! - For a stream of ours: at most two windows of units, one in flight and one waiting; then sending waits. A window is
//!   [`Contract::window_units`], or less if the peer grants less; a segment must fit one. The last 65,536 unread verdicts are kept.
//! - For a stream of the peer: at most one window of units, limited by [`Config::stream_window_bytes`], plus a fixed state for each of at
//!   most [`Contract::window_segments`] segments that the application has not taken or whose verdicts are not confirmed. If the
//!   application pauses, its peer stops; nothing is lost and no memory grows.
//! - For all peers together [`Config::memory_bytes`], and [`Config::memory_bytes_per_peer`] for the connections of one key: a stream is
//!   granted a part of what is left, so windows become smaller as a budget fills.
//! - [`Config::streams`] live streams for each peer, [`Config::connections`] connections, and a fixed number of connections whose peers
//!   are not authenticated yet.
//!
//! A connection that receives nothing from its peer for [`Config::idle_timeout`] ends with [`CloseReason::TimedOut`]; segments without a
//! verdict are then *unknown*.
//!
//! # Copies
//!
//! A segment to send is a [`Bytes`], into which a `Vec<u8>` is converted without a copy. It is kept until its verdict, and copied once,
//! into datagrams. A received segment is a [`Bytes`] too: its reassembly buffer, which is reused for a later segment when the last
//! handle is dropped. It can be passed on or sent again without a copy. `recv_into` makes one more copy, into a buffer of the
//! application.
//!
//! # Security
//!
//! Everything is encrypted, and both ends authenticate each other by their keys; there is no downgrade. An endpoint is identified by the
//! fingerprint of its key ([`blocking::Endpoint::fingerprint`]). An endpoint that connects says which key it expects ([`Peer`]); one
//! that listens says which keys it serves ([`Builder::allow`]). A key that must outlive the program is in a file
//! ([`Builder::identity_file`]). [`Builder::insecure`] disables all of this and is for laboratories.
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
mod code_tables;
mod config;
pub mod congestion;
#[cfg(any(feature = "metrics", feature = "recorder"))]
mod connection_numbers;
mod connection_state;
mod endpoint_state;
mod error;
mod histogram;
#[cfg(feature = "metrics")]
pub mod metrics;
mod progress;
#[cfg(feature = "recorder")]
pub mod recorder;
mod security;
mod shards;
mod statistics;
mod verdicts;
pub mod vocabulary;

#[cfg(feature = "tokio")]
pub use asynchronous::{Connection, Endpoint, SegmentWriter, StreamReceiver, StreamSender};
pub use builder::Builder;
pub use bytes::Bytes;
pub use config::Config;
pub use error::Error;
pub use histogram::Histogram;
pub use progress::{Progress, Units};
pub use security::Peer;
/// A point in time on the clock of an endpoint, in nanoseconds since the clock was started: the source time of a segment, its first
/// arrival, its verdict. [`Clock::at`] makes one of a [`std::time::Instant`].
pub use segstream_base::Instant as Timestamp;
pub use segstream_base::halves::{SubmitError, Verdict};
pub use segstream_base::tolerance::{Tolerance, ToleranceError};
pub use segstream_base::{Bandwidth, Run, SegmentNumber, StreamId, UnitIndex};
pub use segstream_blocks::burst::RateSpec;
pub use segstream_blocks::congestion::{Algorithm, UnknownAlgorithm};
pub use segstream_net::bind::{SocketError, SocketWarning};
pub use segstream_net::clock::Clock;
pub use segstream_net::counters::SocketCounters;
pub use segstream_net::driver::{Polling, Threads};
pub use segstream_net::wake::Waker;
pub use segstream_proto::coding_choice::{Coding, ParseCodingError};
pub use segstream_proto::config::DatagramSize;
pub use segstream_proto::connection::{ConnectionEvent, Received};
pub use segstream_proto::endpoint::{ConnectionId, SavedCapacity, UnmatchedCounters};
pub use segstream_proto::error::{CloseReason, ConfirmError, ConnectError, OpenStreamError};
pub use segstream_proto::rate::{Rate, RateError};
pub use segstream_proto::sender::{CodingTarget, Durable};
pub use segstream_secure::{
    Admission, Authorities, AuthoritiesError, Fingerprint, Identity, IdentityError, KeyLog, KnownPeers, KnownPeersError, OneTimeCode,
    OneTimeCodeError, Trust,
};
pub use segstream_wire::Class;
pub use segstream_wire::contract::{Contract, ContractError, InterleaveChoice, Order};
pub use segstream_wire::report::RefuseReason;
pub use statistics::{Statistics, StreamStatistics};
pub use verdicts::Judged;
