//! What the processes of the suite say to each other: a line of JSON each, over standard input and output.
//!
//! Written by [`crate::victim`] and [`crate::sender`], read through [`crate::process`].
//!
//! Invariant: every ask but the last is answered by exactly one report.

use crate::spent::Spent;
use segstream::StrayCounters;
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

/// What a process is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ask {
    /// How it is.
    Report,
    /// To serve the holder of this key.
    Admit(String),
    /// To connect to this address, whoever answers, and send until it is asked to end.
    SendTo(SocketAddr),
    /// To end, in order.
    End,
}

/// How a process is.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// What it has spent so far.
    pub spent: Spent,
    /// What arrived for no connection.
    #[serde(with = "Strays")]
    pub strays: StrayCounters,
    /// Connections that have been there, total.
    pub connected: u64,
    /// Connections that are there, now.
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

/// How [`StrayCounters`] travel.
#[derive(Serialize, Deserialize)]
#[serde(remote = "StrayCounters")]
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
        let strays = &self.strays;
        strays.not_ours
            + strays.unknown_connection
            + strays.bad_requests
            + strays.short_requests
            + self.authentication_failures
            + self.duplicates
    }

    /// Datagrams of strangers, whatever became of them.
    pub const fn heard_of_strangers(&self) -> u64 {
        self.refused_datagrams() + self.strays.cookies + self.strays.rejected
    }
}
