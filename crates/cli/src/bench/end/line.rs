//! What an end says, in lines of JSON: where it listens, then what it has counted.
//!
//! Written by the ends of this program and of others, read by [`crate::bench::child`].
//!
//! Invariant: times and counts are those of the transfer itself, set-up and tear-down aside.

use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// The first line of the end that is connected to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::bench) struct Listening {
    /// Where, with the port the system chose.
    pub(in crate::bench) listening: SocketAddr,
    /// What the other end must know to take it for the one it is; empty when it proves nothing.
    #[serde(default)]
    pub(in crate::bench) trust: String,
}

/// The last line of an end.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(in crate::bench) struct Outcome {
    /// Payload handed to the application (`serve`), or sent (`run`).
    pub(in crate::bench) bytes: u64,
    /// From the first byte to the last (`serve`), from the first submission to the final confirmation (`run`).
    pub(in crate::bench) seconds: f64,
    /// Processor time of this process in that span, of the system for it included.
    pub(in crate::bench) cpu_seconds: f64,
    /// Round trips in microseconds.
    pub(in crate::bench) round_trips_us: Option<Vec<f64>>,
    /// From when a segment was due to when it was handed to the application.
    pub(in crate::bench) delays_ms: Option<Vec<f64>>,
    /// Segments, messages, round trips or connections that came through as promised.
    pub(in crate::bench) complete: u64,
    /// Those that did not; of bare UDP datagrams that were lost.
    pub(in crate::bench) incomplete: u64,
    /// How many connections there were at once, and the units this end has sent again; of many connections only.
    pub(in crate::bench) connections: u64,
    pub(in crate::bench) sent_again: u64,
    /// Whole IP packets this end has sent.
    pub(in crate::bench) wire_bytes: Option<u64>,
    /// By how much the memory of this process has grown; of idle connections only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::bench) memory_bytes: Option<u64>,
    /// Anything worth knowing.
    pub(in crate::bench) note: String,
}

/// The last line of an end that has failed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::bench) struct Failure {
    /// A sentence.
    pub(in crate::bench) error: String,
}

/// A transport, as a program lists those it can be an end of.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::bench) struct Known {
    /// Its name on the command line.
    pub(in crate::bench) name: String,
    /// The version measured.
    pub(in crate::bench) version: String,
    /// Whether what it carries is encrypted.
    pub(in crate::bench) encrypts: bool,
    /// How it is set up, in a sentence.
    #[serde(default)]
    pub(in crate::bench) settings: String,
    /// Whether this program was built with it.
    #[serde(default)]
    pub(in crate::bench) available: bool,
    /// If not, what it lacks.
    #[serde(default)]
    pub(in crate::bench) why: Option<String>,
}
