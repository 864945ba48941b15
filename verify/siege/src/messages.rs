//! The messages between the processes of the suite: a line of JSON each, over standard input and output.
//!
//! Written by [`crate::victim`] and [`crate::sender`], read through [`crate::process`].
//!
//! Invariant: every request but the last is answered by exactly one report.

use crate::resource_usage::ResourceUsage;
use segstream::UnmatchedCounters;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// The first line of a process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Hello {
    /// Where it is.
    pub address: SocketAddr,
    /// The fingerprint of its key.
    pub key: String,
}

/// A request to a process.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Report the counters.
    Report,
    /// Admit the holder of this key.
    Admit(String),
    /// Connect to this address with any key, and send until the request to end.
    SendTo(SocketAddr),
    /// End gracefully.
    End,
}

/// The state of a process.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// The resources it has used so far.
    pub spent: ResourceUsage,
    /// Unmatched datagrams.
    #[serde(with = "Strays")]
    pub unmatched: UnmatchedCounters,
    /// Connections that have been there, total.
    pub connected: u64,
    /// Connections that are established now.
    pub connections: u64,
    /// Segments received whose bytes are those sent, total.
    pub segments_right: u64,
    /// Segments received whose bytes are not, total.
    pub segments_wrong: u64,
    /// Bytes of the right ones, total.
    pub bytes_right: u64,
    /// Segments of its own that were judged complete, total.
    pub verdicts_complete: u64,
    /// Segments of its own that were judged otherwise, total.
    pub verdicts_other: u64,
    /// Shipments for a connection that did not open, total.
    pub authentication_failures: u64,
    /// Shipments for a connection that opened and had been seen before, total.
    pub duplicates: u64,
    /// Shipments for a connection that opened and could not be read, total.
    pub malformed: u64,
    /// Why its connection has ended, of a sender.
    pub ended: Option<String>,
    /// Shipments it has sent: some of each kind.
    pub samples: Vec<Vec<u8>>,
}

/// How [`UnmatchedCounters`] travel.
#[derive(Serialize, Deserialize)]
#[serde(remote = "UnmatchedCounters")]
struct Strays {
    not_ours: u64,
    unknown_connection: u64,
    bad_requests: u64,
    rejected: u64,
    short_requests: u64,
    cookies: u64,
    setups_full: u64,
    handshakes_refused: u64,
    connections_full: u64,
    answers_full: u64,
    resets: u64,
    resets_refused: u64,
}

impl Report {
    /// Datagrams that came to nothing: for no connection, or for one whose seal did not hold.
    pub const fn refused_datagrams(&self) -> u64 {
        let unmatched = &self.unmatched;
        unmatched.not_ours
            + unmatched.unknown_connection
            + unmatched.bad_requests
            + unmatched.short_requests
            + self.authentication_failures
            + self.duplicates
    }

    /// Datagrams of unknown peers, whatever became of them.
    pub const fn heard_of_strangers(&self) -> u64 {
        self.refused_datagrams() + self.unmatched.cookies + self.unmatched.rejected
    }
}
