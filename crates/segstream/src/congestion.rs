//! What a congestion control of your own is made of, and those there are.
//!
//! A [`Controller`] is told what the path does with each report of the receiver, and answers how fast packets may leave and how many
//! bytes may be in flight. An [`Algorithm`] is its name and how one begins; [`crate::Config::with_congestion`] takes it as it takes one of
//! [`ALGORITHMS`]. The example `07_own_congestion_control` is a whole one.

/// A count of bytes, as a controller counts them: those of whole IP packets.
pub use segstream_base::Bytes;
pub use segstream_base::halves::Probe;
pub use segstream_base::random::Seed;
pub use segstream_base::{Bandwidth, Duration, Instant};
pub use segstream_blocks::congestion::{
    ALGORITHMS, Algorithm, Bounds, Clock, CongestionEvent, Controller, DeliverySample, Exchange, Limit, Report, Silence, Start,
    exchange_period,
};
