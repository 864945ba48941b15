//! Report frames whose fields mean nothing are refused, each at the first value beyond what is allowed.

use segstream_base::codec::{Reader, Writer};
use segstream_base::halves::Verdict;
use segstream_base::{Position, Run, SegmentNumber, StreamId, UnitIndex};
use segstream_wire::report::{REORDER_MAX, ReportFrame, Runs};
use segstream_wire::{Report, report};

/// A frame of these bytes.
fn frame(bytes: &[u8]) -> Option<ReportFrame> {
    ReportFrame::decode(&mut Reader::new(bytes)).ok()
}

/// What `write` writes.
fn written(write: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut buffer = vec![0; 60];
    let mut out = Writer::new(&mut buffer);
    write(&mut out);
    let count = out.finish().unwrap();
    buffer.truncate(count);
    buffer
}

#[test]
fn flags_and_codes_beyond_the_known_are_refused() {
    // The grant of stream 1: five segments, nine units.
    assert!(frame(&[0x11, 1, 5, 9, 1]).is_some() && frame(&[0x11, 1, 5, 9, 2]).is_none(), "end known");
    // The verdict on segment 5 of ten units, with no holes.
    assert!(frame(&[0x13, 1, 5, 2, 10, 0, 10, 0]).is_some() && frame(&[0x13, 1, 5, 3, 10, 0, 10, 0]).is_none(), "verdict");
    // A request for the tail and the length.
    assert!(frame(&[0x14, 3, 1, 5, 0, 7]).is_some() && frame(&[0x14, 4, 1, 5, 0]).is_none(), "request flags");
    assert!(frame(&[0x15, 1, 7]).is_some() && frame(&[0x15, 1, 200]).is_none(), "class");
    assert!(frame(&[0x16, 1, 1]).is_some() && frame(&[0x1c, 1, 1]).is_none(), "kind");
}

#[test]
fn each_flag_of_a_request_means_what_it_says() {
    let told = |flags, rest: &[u8]| match frame(&[&[0x14, flags, 1, 5, 0], rest].concat()) {
        Some(ReportFrame::Request { tail_from, length_wanted, .. }) => (tail_from, length_wanted),
        other => panic!("{other:?}"),
    };
    let all = [told(0, &[]), told(1, &[7]), told(2, &[]), told(3, &[7])];
    assert_eq!(all, [(None, false), (Some(Position(7)), false), (None, true), (Some(Position(7)), true)]);
}

#[test]
fn a_map_of_holes_speaks_of_its_own_units_only() {
    // Units 4 to 8 of ten, and one run of two holes that begins at `start`.
    let map = |start| frame(&[0x13, 1, 5, 1, 10, 4, 8, 1, start, 2]);
    assert!(map(3).is_none() && map(4).is_some() && map(6).is_some() && map(7).is_none());
    assert!(frame(&[0x13, 1, 5, 1, 10, 11, 11, 0]).is_none(), "it begins behind the segment");
    assert!(frame(&[0x13, 1, 5, 1, 10, 4, 11, 0]).is_none(), "it ends behind the segment");
    assert!(frame(&[0x13, 1, 5, 1, 10, 8, 4, 0]).is_none(), "it ends before it begins");
    assert!(frame(&[0x13, 1, 5, 1, 10, 4, 4, 0]).is_some(), "it may speak of nothing");
}

#[test]
fn the_number_of_runs_is_bounded_by_the_bytes_that_are_left() {
    // Two runs of two bytes each; then three that could not be there.
    assert!(frame(&[0x14, 0, 1, 5, 2, 0, 1, 1, 1]).is_some());
    let error = ReportFrame::decode(&mut Reader::new(&[0x14, 0, 1, 5, 3, 0, 1, 1])).unwrap_err();
    assert_eq!(error.field, "run count", "nothing is made room for that cannot be there");
}

#[test]
fn a_distance_beyond_what_receivers_remember_is_refused() {
    for (reorder, taken) in [(REORDER_MAX, true), (REORDER_MAX + 1, false)] {
        let bytes = written(|out| [0, 0, reorder, 0].into_iter().for_each(|value| out.varint(value)));
        let report = Report::decode(&mut Reader::new(&bytes)).ok();
        assert_eq!(report.map(|report| (report.echo, report.time, report.held)), taken.then_some((None, None, 0)), "{reorder}");
    }
}

#[test]
fn unknown_is_a_verdict_no_receiver_can_tell() {
    let told = ReportFrame::Judged {
        stream: StreamId(0),
        segment: SegmentNumber(0),
        verdict: Verdict::Unknown,
        units: 1,
        from: UnitIndex(0),
        to: UnitIndex(1),
        holes: Runs::new(),
    };
    assert_eq!(frame(&written(|out| told.encode(out))), None);
}

#[test]
fn runs_take_as_many_bytes_as_is_said_of_them() {
    // No run: its number alone. Then gaps and lengths, each a byte up to 63 and two from 64 on.
    let cases: [(&[(u32, u32)], usize); 5] =
        [(&[], 1), (&[(0, 63)], 3), (&[(0, 64)], 4), (&[(64, 65)], 4), (&[(1000, 1001), (1063, 1064), (1128, 1192)], 1 + 3 + 2 + 4)];
    for (runs, bytes) in cases {
        let runs: Vec<Run<u32>> = runs.iter().map(|&(start, end)| Run::new(start, end).unwrap()).collect();
        assert_eq!(report::runs_len(&runs), bytes, "{runs:?}");
    }
}
