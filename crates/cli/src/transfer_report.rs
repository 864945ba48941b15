//! The result of a transfer, as `send` and `recv` print it with `--json` and tell it to people.
//!
//! Filled by both verbs while they run.
//!
//! Invariant: the counts are of the application's data; the records about files are taken out where they can be told
//! apart (bytes, segments, units).

use segstream::{Run, Statistics, StreamStatistics, UnitIndex, Verdict};
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
    /// Its name, with the directories that were sent with it.
    pub(crate) name: String,
    /// Its length as far as it was sent or received.
    pub(crate) bytes: u64,
    /// So much of it was at the receiver before, from a transfer that was interrupted.
    pub(crate) resumed_from: u64,
    /// Whether it was not sent, because the receiver has the same content.
    pub(crate) same: bool,
    /// Whether it was not sent, because the receiver has a newer file.
    pub(crate) newer: bool,
    /// BLAKE3 of what this end has; null when it has holes or is not whole.
    pub(crate) blake3: Option<String>,
    /// Whether both ends computed the same; null when they could not be compared.
    pub(crate) hash_agrees: Option<bool>,
    /// Whether it would survive a power cut at the receiver; null where nobody has said so.
    pub(crate) durable: Option<bool>,
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
    /// Repair units this end has sent, and those of them ahead of any request; no part of `units_sent`.
    pub(crate) repair_units_sent: u64,
    pub(crate) repair_units_ahead: u64,
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
    /// Repair units this end has received and kept, units that they restored, and segments that they saved a round trip.
    pub(crate) repair_units_received: u64,
    pub(crate) units_restored: u64,
    pub(crate) round_trips_saved: u64,
    /// Units this end has received more than once.
    pub(crate) units_duplicate: u64,
    /// Where the other end is.
    pub(crate) address: Option<String>,
    /// The fingerprint of the key it has proved to have; null in the clear, and when no connection came about.
    pub(crate) peer: Option<String>,
    /// How many files, directories and links there were.
    pub(crate) files_total: u64,
    /// How many of them failed.
    pub(crate) files_failed: u64,
    /// How many of them were not sent, because the receiver has the same or a newer one.
    pub(crate) files_skipped: u64,
    /// The first 65536 of them, and so many of those that failed.
    pub(crate) files: Vec<FileReport>,
    /// What went wrong; null when all is well.
    pub(crate) error: Option<String>,
    /// Whether people have been told `error`.
    #[serde(skip)]
    pub(crate) is_told: bool,
    /// What is counted of files, listed or not.
    #[serde(skip)]
    pub(crate) tally: Tally,
}

/// The most files that are listed one by one, and the most that are because they failed.
const FILES_LISTED_MAX: usize = 65_536;

/// What is counted of files, listed or not.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Tally {
    agree: u64,
    differ: u64,
    durable: u64,
    first_error: Option<String>,
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
    pub(crate) fn count(&mut self, verdict: Verdict, length: u64, unit_bytes: u32, holes: &[Run<UnitIndex>]) {
        self.verdicts.count(verdict);
        if verdict.is_met() {
            self.bytes += length - missing_bytes(length, unit_bytes, holes).min(length);
        }
        self.holes += holes.iter().map(|hole| u64::from(hole.len())).sum::<u64>();
    }

    /// Takes over what the library has counted; `records` is the part of it that were records about files.
    pub(crate) fn take(&mut self, statistics: &Statistics, records: StreamStatistics) {
        self.shipments_sent = statistics.shipments_sent;
        self.datagram_bytes = Some(statistics.datagram_bytes);
        self.units_sent = statistics.units_sent - records.units_sent;
        self.units_retransmitted = statistics.units_retransmitted - records.units_retransmitted;
        self.segments_repaired = statistics.segments_repaired - records.segments_repaired;
        self.repair_units_sent = statistics.repair_units_sent - records.repair_units_sent;
        self.repair_units_ahead = statistics.repair_units_ahead - records.repair_units_ahead;
        self.repair_units_received = statistics.repair_units_received;
        self.units_restored = statistics.units_restored;
        self.round_trips_saved = statistics.round_trips_saved;
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

    /// Adds a file that is settled.
    pub(crate) fn add_file(&mut self, file: FileReport) {
        self.files_total += 1;
        self.files_failed += u64::from(file.error.is_some());
        self.files_skipped += u64::from(file.same || file.newer);
        match file.hash_agrees {
            Some(true) => self.tally.agree += 1,
            Some(false) => self.tally.differ += 1,
            None => {}
        }
        self.tally.durable += u64::from(file.durable == Some(true));
        if self.tally.first_error.is_none() {
            self.tally.first_error.clone_from(&file.error);
        }
        if self.files.len() < FILES_LISTED_MAX || (file.error.is_some() && self.files_failed as usize <= FILES_LISTED_MAX) {
            self.files.push(file);
        }
    }

    /// Fixes what follows from the rest, when the transfer took `span`.
    pub(crate) fn conclude(&mut self, span: Duration) {
        self.seconds = span.as_secs_f64();
        self.goodput_bps = (self.seconds > 0.0 && self.bytes > 0).then(|| self.bytes as f64 * 8.0 / self.seconds);
        self.hash_agrees = match &self.tally {
            Tally { differ: 1.., .. } => Some(false),
            Tally { agree, .. } => (*agree == self.files_total && *agree > 0).then_some(true),
        };
        if self.error.is_none() {
            self.error.clone_from(&self.tally.first_error);
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

    /// What is still to be said of what went wrong.
    pub(crate) fn untold_error(&self) -> Option<&str> {
        self.error.as_deref().filter(|_| !self.is_told)
    }

    /// The sender's line for people; only the sender knows what was retransmitted. `None` when the transfer failed before
    /// anything was sent: then the error says everything.
    pub(crate) fn sentence_of_sender(&self) -> Option<String> {
        let sentence = self.sentence("sent", "to")?;
        Some(format!("{sentence}; {} units retransmitted{}{}", self.units_retransmitted, self.agreement_words(), self.durability_words()))
    }

    /// The receiver's line for people; `None` as for the sender.
    pub(crate) fn sentence_of_receiver(&self) -> Option<String> {
        Some(format!("{}{}", self.sentence("received", "from")?, self.agreement_words()))
    }

    const fn agreement_words(&self) -> &'static str {
        match self.hash_agrees {
            Some(true) => "; the hashes agree",
            Some(false) => "; THE HASHES DIFFER",
            None => "",
        }
    }

    /// What the sender is told of the receiver's disk.
    const fn durability_words(&self) -> &'static str {
        let sent = self.files_total - self.files_failed - self.files_skipped;
        if sent > 0 && self.tally.durable >= sent && self.files_failed == 0 { "; on disk at the receiver" } else { "" }
    }

    fn sentence(&self, done: &str, with: &str) -> Option<String> {
        if self.error.is_some() && self.segments == 0 && self.bytes == 0 && self.files_skipped == 0 {
            return None;
        }
        let goodput = self.goodput_bps.map_or(String::new(), |bits| format!(", {:.2} Mbit/s", bits / 1e6));
        let peer = self.address.as_ref().map_or(String::new(), |address| format!(" {with} {address}"));
        let mut sentence = format!("{done} {}{peer}: {} bytes in {:.3} s{goodput}", self.what(), self.bytes, self.seconds);
        for (count, words) in [(self.files_failed, "failed"), (self.files_skipped, "were there already")] {
            if count > 0 && self.files_total > 1 {
                sentence += &format!("; {count} {words}");
            }
        }
        let Verdicts { within_tolerance, expired, unknown, .. } = self.verdicts;
        for (count, words) in [(within_tolerance, "within tolerance"), (expired, "expired"), (unknown, "without a verdict")] {
            if count > 0 {
                sentence += &format!("; {count} of {} segments {words}", self.segments);
            }
        }
        Some(sentence)
    }

    /// The file, or how many.
    fn what(&self) -> String {
        let whole = self.files_total - self.files_failed;
        match (self.files_total, self.files.first()) {
            (1, Some(file)) if file.error.is_some() => format!("a part of {}", file.name),
            (1, Some(file)) if file.same => format!("nothing, because {} is there already", file.name),
            (1, Some(file)) if !file.name.is_empty() => file.name.clone(),
            (0 | 1, _) => "a stream".to_owned(),
            (total, _) if whole < total => format!("{whole} of {total} files"),
            (total, _) => format!("{total} files"),
        }
    }
}

/// The bytes of the units in `holes`; only the last unit of a segment may be short.
pub(crate) fn missing_bytes(length: u64, unit_bytes: u32, holes: &[Run<UnitIndex>]) -> u64 {
    let bytes = holes.iter().map(|hole| hole.byte_range(unit_bytes, length));
    bytes.map(|missing| missing.end - missing.start).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_those_of_units_that_arrived() {
        let mut report = TransferReport::default();
        let hole = |start, end| Run::new(UnitIndex(start), UnitIndex(end)).unwrap();
        // Units of 10, the last of 5; the holes are one unit and the last.
        report.count(Verdict::WithinTolerance, 95, 10, &[hole(2, 3), hole(9, 10)]);
        report.count(Verdict::Expired, 95, 10, &[hole(0, 10)]);
        report.count(Verdict::Complete, 7, 10, &[]);
        assert_eq!((report.bytes, report.holes), (95 - 15 + 7, 12));
        assert_eq!(report.verdicts, Verdicts { complete: 1, within_tolerance: 1, expired: 1, unknown: 0 });
    }

    fn of(files: &[(Option<bool>, Option<&str>)]) -> TransferReport {
        let mut report = TransferReport { segments: 1, bytes: 1, ..TransferReport::default() };
        for (hash_agrees, error) in files {
            let error = error.map(str::to_owned);
            report.add_file(FileReport { name: "a".into(), hash_agrees: *hash_agrees, error, ..FileReport::default() });
        }
        report.verdicts.complete = 1;
        report.conclude(Duration::from_secs(1));
        report
    }

    #[test]
    fn one_file_that_differs_outweighs_all_that_agree() {
        let agreement = |files: &[Option<bool>]| of(&files.iter().map(|agrees| (*agrees, None)).collect::<Vec<_>>()).hash_agrees;
        assert_eq!(agreement(&[]), None);
        assert_eq!(agreement(&[Some(true), Some(true)]), Some(true));
        assert_eq!(agreement(&[Some(true), None]), None);
        assert_eq!(agreement(&[Some(false), None]), Some(false));
    }

    #[test]
    fn a_failure_never_stands_beside_the_word_complete() {
        let failed = of(&[(Some(true), None), (None, Some("full"))]);
        let sentence = failed.sentence_of_receiver().unwrap();
        assert!(sentence.contains("1 of 2 files") && sentence.contains("1 failed") && !sentence.contains("complete"), "{sentence}");
        assert!(!failed.is_success());
        assert!(of(&[(None, Some("full"))]).sentence_of_receiver().unwrap().contains("a part of a"));
        assert!(of(&[(Some(true), None)]).sentence_of_sender().unwrap().starts_with("sent a: 1 bytes"));
    }

    #[test]
    fn any_number_of_files_is_counted_and_a_bounded_one_listed() {
        let mut report = TransferReport::default();
        (0..3 * FILES_LISTED_MAX).for_each(|_| report.add_file(FileReport::default()));
        (0..3 * FILES_LISTED_MAX).for_each(|_| report.add_file(FileReport { error: Some("x".into()), ..FileReport::default() }));
        assert_eq!((report.files_total, report.files.len()), (6 * FILES_LISTED_MAX as u64, 2 * FILES_LISTED_MAX));
    }
}
