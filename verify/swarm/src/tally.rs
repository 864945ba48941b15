//! Counts of events, so that a run of many seeds shows that it has reached every case.
//!
//! Counted by [`crate::watch`], added up by [`crate::runner`], printed by the command. Invariant: counts only grow.

use crate::event::{Event, Fate};
use segstream_base::halves::Verdict;
use segstream_proto::error::CloseReason;
use serde::Serialize;
use std::collections::BTreeMap;

/// Counts by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Tally(BTreeMap<&'static str, u64>);

impl Tally {
    /// Every name that a thousand seeds are sure to count; besides these there is the rare *path overloaded*.
    pub const NAMES: &'static [&'static str] = &[
        "connections",
        "connections established",
        "streams",
        "streams refused",
        "segments",
        "segments opened",
        "delivered complete",
        "delivered within_tolerance",
        "delivered expired",
        "told complete",
        "told within_tolerance",
        "told expired",
        "told unknown",
        "closed here",
        "closed by peer",
        "aborted here",
        "aborted by peer",
        "timed out",
        "no answer",
        "rejected",
        "datagrams",
        "datagrams lost",
        "datagrams blocked",
        "datagrams damaged",
        "datagrams hostile",
        "crashes",
        "pauses",
        "class changes",
    ];

    /// Counts an event.
    pub(crate) fn count(&mut self, event: &Event) {
        match event {
            Event::Appeared { .. } => self.add("connections"),
            Event::Established { .. } => self.add("connections established"),
            Event::ClassAsked { .. } => self.add("class changes"),
            Event::Opened { .. } => self.add("streams"),
            Event::Refused(_) => self.add("streams refused"),
            Event::Submitted { bytes, .. } => self.add(if bytes.is_some() { "segments" } else { "segments opened" }),
            Event::Delivered(delivered) => self.add(match delivered.verdict {
                Verdict::Complete => "delivered complete",
                Verdict::WithinTolerance => "delivered within_tolerance",
                _ => "delivered expired",
            }),
            Event::Told { verdict, .. } => self.add(match verdict {
                Verdict::Complete => "told complete",
                Verdict::WithinTolerance => "told within_tolerance",
                Verdict::Expired => "told expired",
                Verdict::Unknown => "told unknown",
            }),
            Event::Closed { reason, .. } => self.add(ending(reason)),
            Event::Sent { fate, .. } => {
                self.add("datagrams");
                match fate {
                    Fate::Lost => self.add("datagrams lost"),
                    Fate::Blocked => self.add("datagrams blocked"),
                    Fate::Damaged(_) => self.add("datagrams damaged"),
                    _ => {}
                }
            }
            Event::Arrived { hostile: true, .. } => self.add("datagrams hostile"),
            Event::Crashed(_) => self.add("crashes"),
            Event::Resumed(_) => self.add("pauses"),
            _ => {}
        }
    }

    /// How often `name` was counted.
    pub fn get(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// All counts, by name.
    pub fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.0.iter().map(|(&name, &count)| (name, count))
    }

    /// Adds the counts of another run.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (name, count) in &other.0 {
            *self.0.entry(name).or_default() += count;
        }
    }

    fn add(&mut self, name: &'static str) {
        *self.0.entry(name).or_default() += 1;
    }
}

/// The name of an end.
fn ending(reason: &CloseReason) -> &'static str {
    match reason {
        CloseReason::ClosedHere => "closed here",
        CloseReason::ClosedByPeer { .. } => "closed by peer",
        CloseReason::AbortedHere => "aborted here",
        CloseReason::AbortedByPeer { .. } => "aborted by peer",
        CloseReason::TimedOut(_) => "timed out",
        CloseReason::NoAnswer(_) => "no answer",
        CloseReason::Rejected { .. } => "rejected",
        CloseReason::PathOverloaded { .. } => "path overloaded",
        _ => "ended otherwise",
    }
}
