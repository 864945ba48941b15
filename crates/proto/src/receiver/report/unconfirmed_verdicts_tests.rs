//! Confirmations of many verdicts in turns, of maps of holes in any order, and the memory that all that takes.

use super::*;
use crate::receiver::stream::judged_segment;
use segstream_base::halves::Verdict;
use segstream_wire::Contract;

const STREAM: StreamId = StreamId(0);

/// A stream without any segment.
fn one_stream() -> LiveStreams<RecvStream> {
    let contract = Contract { window_units: 1000, window_segments: 100, ..Contract::default() };
    let mut streams = LiveStreams::default();
    streams.insert(STREAM, RecvStream::new(contract, 1000, None));
    streams
}

/// Segment `number` of `units` units gets a verdict, which the sender has not confirmed.
fn judge(streams: &mut LiveStreams<RecvStream>, verdicts: &mut UnconfirmedVerdicts, number: u64, units: u32, verdict: Verdict) {
    judged_segment::judge(streams.get_mut(STREAM).unwrap(), SegmentNumber(number), units, verdict);
    verdicts.on_judged();
}

/// What a report carried of the segments `from..to`.
fn carried(report: u64, from: u64, to: u64, map: Option<core::ops::Range<u32>>) -> SentVerdicts {
    let map = map.and_then(|units| Run::new(UnitIndex(units.start), UnitIndex(units.end)));
    SentVerdicts { report: ReportNumber(report), stream: STREAM, from: SegmentNumber(from), to: SegmentNumber(to), map }
}

/// The sender confirms `reports`.
fn confirm_reports(reports: &[u64], streams: &mut LiveStreams<RecvStream>, verdicts: &mut UnconfirmedVerdicts, left: &mut u64) -> u64 {
    let mut confirmed = Confirmed::default();
    reports.iter().for_each(|&report| confirmed.insert(ReportNumber(report)));
    verdicts.on_confirmed(&confirmed, streams, left);
    assert_eq!(verdicts.unconfirmed(), streams.get(STREAM).unwrap().verdicts.unconfirmed, "the sum of what the streams count");
    verdicts.unconfirmed()
}

#[test]
fn what_a_turn_has_no_time_for_is_confirmed_in_further_turns() {
    let (mut streams, mut verdicts) = (one_stream(), UnconfirmedVerdicts::default());
    (0..10).for_each(|number| judge(&mut streams, &mut verdicts, number, 1, Verdict::Complete));
    verdicts.on_sent(carried(1, 0, 10, None));
    assert_eq!(confirm_reports(&[2], &mut streams, &mut verdicts, &mut 100), 10, "another report says nothing of them");
    assert_eq!((confirm_reports(&[2, 1], &mut streams, &mut verdicts, &mut 3), verdicts.is_behind()), (7, true));
    let mut turn = |mut left| {
        verdicts.go_on(&mut streams, &mut left);
        (verdicts.unconfirmed(), verdicts.is_behind(), left)
    };
    assert_eq!(turn(0), (7, true, 0));
    assert_eq!(turn(4), (3, true, 0));
    assert_eq!(turn(100), (0, false, 97));
    assert_eq!(turn(100), (0, false, 100));
}

#[test]
fn a_map_of_holes_counts_once_what_comes_before_it_is_confirmed_too() {
    let (mut streams, mut verdicts) = (one_stream(), UnconfirmedVerdicts::default());
    judge(&mut streams, &mut verdicts, 0, 40, Verdict::WithinTolerance);
    verdicts.on_sent(carried(1, 0, 1, Some(0..20)));
    verdicts.on_sent(carried(2, 0, 1, Some(20..40)));
    assert_eq!(confirm_reports(&[2], &mut streams, &mut verdicts, &mut 100), 1, "the sender lacks the first half");
    verdicts.on_sent(carried(3, 0, 1, Some(0..20)));
    assert_eq!(confirm_reports(&[2, 3], &mut streams, &mut verdicts, &mut 100), 1, "the second half is looked at before the first");
    assert_eq!(confirm_reports(&[2, 3, 4], &mut streams, &mut verdicts, &mut 100), 0);
}

#[test]
fn what_is_remembered_of_reports_is_counted_as_memory() {
    let (mut streams, mut verdicts) = (one_stream(), UnconfirmedVerdicts::default());
    assert_eq!(verdicts.kept_bytes(), 0);
    (0..100).for_each(|number| judge(&mut streams, &mut verdicts, number, 1, Verdict::Complete));
    (0..100).for_each(|number| verdicts.on_sent(carried(1, number, number + 1, None)));
    let sent = verdicts.kept_bytes();
    let least = 100 * size_of::<SentVerdicts>() as u64;
    assert!((least..3 * least).contains(&sent), "{sent} bytes for 100 frames of {least} bytes");
    confirm_reports(&[1], &mut streams, &mut verdicts, &mut 1);
    assert!(verdicts.is_behind() && verdicts.kept_bytes() > sent, "99 frames wait for another turn");
}
