//! Compares a study's points with its expected table.
//!
//! Called by `study run --quick`.
//!
//! Invariant: the same sources and the same seed give the same table, to the six digits it has.

use segstream_lab::study::Finished;

/// A sentence for each study that differs.
pub(super) fn differences(finished: &[Finished]) -> Vec<String> {
    finished.iter().filter_map(difference).collect()
}

fn difference(finished: &Finished) -> Option<String> {
    let (measured, expected) = (finished.measured.csv(), finished.study.expected);
    let nothing_run = finished.measured.points.is_empty() && finished.measured.shared.is_empty() && finished.measured.stages.is_empty();
    if nothing_run || measured == expected {
        return None;
    }
    let id = finished.study.id;
    let (ours, theirs) = (measured.lines().count(), expected.lines().count());
    let first = measured.lines().zip(expected.lines()).find(|(ours, theirs)| ours != theirs);
    Some(match first {
        Some((got, wanted)) => format!("{id} differs from studies/{id}/expected.csv: expected {wanted}, got {got}"),
        None => format!("{id} has {ours} lines, studies/{id}/expected.csv has {theirs}"),
    })
}
