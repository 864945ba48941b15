//! The result of a transfer, as `send` and `recv` print it with `--json` and tell it to people.
//!
//! Filled by both verbs while they run.
//!
//! Invariant: the counts are of the application's data; the records about files are taken out where they can be told
//! apart (bytes, segments, units).

use segstream::{Statistics, StreamStatistics, Verdict};
use segstream_base::Duration;
use serde::Serialize;

/// How many segments had which verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Verdicts {
    /// No holes.
    pub(crate) complete: u64,
    /// Holes, all of them tolerated.
    pub(crate) within_tolerance: u64,
    /// The promise was not kept.
    pub(crate) expired: u64,
    /// The connection ended first.
    pub(crate) unknown: u64,
}

/// One file of a transfer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct FileReport {
    /// Its name at the sender, without folders.
    pub(crate) name: String,
    /// Its length as far as it was sent or received.
    pub(crate) bytes: u64,
    /// BLAKE3 of what this end has; null when it has holes or is not whole.
    pub(crate) blake3: Option<String>,
    /// Whether both ends computed the same; null when they could not be compared.
    pub(crate) hash_agrees: Option<bool>,
    /// What went wrong with it.
    pub(crate) error: Option<String>,
}

/// The result of a transfer.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct TransferReport {
    /// Application bytes delivered: those of units that arrived, in segments whose promise was kept.
    pub(crate) bytes: u64,
    /// From the request for a connection to the last verdict (`send`), from the first data to the last delivery (`recv`).
    pub(crate) seconds: f64,
    /// `bytes` in `seconds`; null when there was nothing to measure.
    pub(crate) goodput_bps: Option<f64>,
    /// Segments sent or received.
    pub(crate) segments: u64,
    /// Datagrams this end has sent, control included.
    pub(crate) shipments_sent: u64,
    /// The largest datagrams that data left in at the end.
    pub(crate) datagram_bytes: Option<u64>,
    /// Units this end has sent, new and again.
    pub(crate) units_sent: u64,
    /// Units this end has sent again.
    pub(crate) units_retransmitted: u64,
    /// Segments of which this end has sent any unit again.
    pub(crate) segments_repaired: u64,
    /// The smallest round trip seen; null when none was measured.
    pub(crate) rtt_ms_min: Option<f64>,
    /// Verdicts.
    pub(crate) verdicts: Verdicts,
    /// Whether both ends have the same content; null when that could not be compared for all files.
    pub(crate) hash_agrees: Option<bool>,
    /// Missing units in segments that were judged.
    pub(crate) holes: u64,
    /// Datagrams this end has received.
    pub(crate) shipments_received: u64,
    /// Units this end has received for the first time.
    pub(crate) units_received: u64,
    /// Units this end has received more than once.
    pub(crate) units_duplicate: u64,
    /// Where the other end is.
    pub(crate) address: Option<String>,
    /// The fingerprint of the key it has proved to have; null in the clear, and when no connection came about.
    pub(crate) peer: Option<String>,
    /// The files.
    pub(crate) files: Vec<FileReport>,
    /// What went wrong; null when all is well.
    pub(crate) error: Option<String>,
}

impl Verdicts {
    /// Counts a verdict.
    pub(crate) const fn count(&mut self, verdict: Verdict) {
        let counter = match verdict {
            Verdict::Complete => &mut self.complete,
            Verdict::WithinTolerance => &mut self.within_tolerance,
            Verdict::Expired => &mut self.expired,
            Verdict::Unknown => &mut self.unknown,
        };
        *counter += 1;
    }
}

impl TransferReport {
    /// Counts a judged segment of `length` bytes in units of `unit_bytes` with holes.
    pub(crate) fn count(&mut self, verdict: Verdict, length: u64, unit_bytes: u32, holes: &[(u32, u32)]) {
        self.verdicts.count(verdict);
        if verdict.is_met() {
            self.bytes += length - missing_bytes(length, unit_bytes, holes).min(length);
        }
        self.holes += holes.iter().map(|(start, end)| u64::from(end - start)).sum::<u64>();
    }

    /// Takes over what the library has counted; `records` is the part of it that were records about files.
    pub(crate) fn take(&mut self, statistics: &Statistics, records: StreamStatistics) {
        self.shipments_sent = statistics.shipments_sent;
        self.datagram_bytes = Some(statistics.datagram_bytes);
        self.units_sent = statistics.units_sent - records.units_sent;
        self.units_retransmitted = statistics.units_retransmitted - records.units_retransmitted;
        self.segments_repaired = statistics.segments_repaired - records.segments_repaired;
        self.shipments_received = statistics.shipments_received;
        self.units_received = statistics.units_received;
        self.units_duplicate = statistics.units_duplicate;
        self.note_round_trip(statistics.rtt_ms_min);
    }

    /// Takes note of a round trip. Why: the library forgets the smallest one after a while.
    pub(crate) fn note_round_trip(&mut self, rtt_ms_min: Option<f64>) {
        self.rtt_ms_min = match (self.rtt_ms_min, rtt_ms_min) {
            (Some(before), Some(now)) => Some(before.min(now)),
            (before, now) => before.or(now),
        };
    }

    /// Fixes what follows from the rest, when the transfer took `span`.
    pub(crate) fn conclude(&mut self, span: Duration) {
        self.seconds = span.as_secs_f64();
        self.goodput_bps = (self.seconds > 0.0 && self.bytes > 0).then(|| self.bytes as f64 * 8.0 / self.seconds);
        self.hash_agrees = agreement(&self.files);
        if let Some(failed) = self.files.iter().find(|file| file.error.is_some()).filter(|_| self.error.is_none()) {
            self.error = failed.error.clone();
        }
        self.fail_if_expired();
    }

    /// Makes expired segments the error, if there is no other.
    pub(crate) fn fail_if_expired(&mut self) {
        let expired = self.verdicts.expired;
        if expired > 0 && self.error.is_none() {
            self.error = Some(format!(
                "{expired} of {} segments expired: more is missing of them than was tolerated; send slower, or allow more time or holes",
                self.segments
            ));
        }
    }

    /// Whether every promise was kept and nothing went wrong.
    pub(crate) fn is_success(&self) -> bool {
        self.error.is_none() && self.verdicts.expired == 0 && self.verdicts.unknown == 0 && self.hash_agrees != Some(false)
    }

    /// The sender's line for people; only the sender knows what was retransmitted. `None` when the transfer failed before
    /// anything was sent: then the error says everything.
    pub(crate) fn sentence_of_sender(&self) -> Option<String> {
        let sentence = self.sentence("sent")?;
        Some(format!("{sentence}; {} units retransmitted{}", self.units_retransmitted, self.agreement_words()))
    }

    /// The receiver's line for people; `None` as for the sender.
    pub(crate) fn sentence_of_receiver(&self) -> Option<String> {
        Some(format!("{}{}", self.sentence("received")?, self.agreement_words()))
    }

    const fn agreement_words(&self) -> &'static str {
        match self.hash_agrees {
            Some(true) => "; the hashes agree",
            Some(false) => "; THE HASHES DIFFER",
            None => "",
        }
    }

    fn sentence(&self, done: &str) -> Option<String> {
        if self.error.is_some() && self.segments == 0 && self.bytes == 0 {
            return None;
        }
        let Verdicts { complete, within_tolerance, expired, unknown } = self.verdicts;
        let goodput = self.goodput_bps.map_or(String::new(), |bits| format!(", {:.2} Mbit/s", bits / 1e6));
        Some(format!(
            "{done} {} bytes in {:.3} s{goodput}; segments: {complete} complete, {within_tolerance} within tolerance, {expired} expired, \
             {unknown} unknown",
            self.bytes, self.seconds
        ))
    }
}

/// False when any file differs, true when all agree.
fn agreement(files: &[FileReport]) -> Option<bool> {
    if files.iter().any(|file| file.hash_agrees == Some(false)) {
        return Some(false);
    }
    (!files.is_empty() && files.iter().all(|file| file.hash_agrees == Some(true))).then_some(true)
}

/// The bytes of the units in `holes`; only the last unit of a segment may be short.
fn missing_bytes(length: u64, unit_bytes: u32, holes: &[(u32, u32)]) -> u64 {
    let place = |unit: u32| (u64::from(unit) * u64::from(unit_bytes)).min(length);
    holes.iter().map(|&(start, end)| place(end) - place(start)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_those_of_units_that_arrived() {
        let mut report = TransferReport::default();
        // Units of 10, the last of 5; the holes are one unit and the last.
        report.count(Verdict::WithinTolerance, 95, 10, &[(2, 3), (9, 10)]);
        report.count(Verdict::Expired, 95, 10, &[(0, 10)]);
        report.count(Verdict::Complete, 7, 10, &[]);
        assert_eq!((report.bytes, report.holes), (95 - 15 + 7, 12));
        assert_eq!(report.verdicts, Verdicts { complete: 1, within_tolerance: 1, expired: 1, unknown: 0 });
    }

    #[test]
    fn one_file_that_differs_outweighs_all_that_agree() {
        let file = |hash_agrees| FileReport { hash_agrees, ..FileReport::default() };
        assert_eq!(agreement(&[]), None);
        assert_eq!(agreement(&[file(Some(true)), file(Some(true))]), Some(true));
        assert_eq!(agreement(&[file(Some(true)), file(None)]), None);
        assert_eq!(agreement(&[file(Some(false)), file(None)]), Some(false));
    }
}
