//! Reports come back as they were, and what no report can say is refused.

use super::*;
use proptest::prelude::*;
use segstream_base::{Ordinal, Run};

fn runs<N: Ordinal>(list: &[(u32, u32)]) -> Runs<N> {
    list.iter().map(|&(start, end)| Run::new(N::of(start), N::of(end)).unwrap()).collect()
}

#[test]
fn a_report_comes_back_as_it_was() {
    let report = Report {
        number: ReportNumber(3),
        echo: Some(ShipmentNumber(1 << 33)),
        reorder: 256,
        time: Some(77),
        held: 1000,
        frames: [
            ReportFrame::Grant { stream: StreamId(0), segments: 16, units: 4096, end_known: true },
            ReportFrame::Complete { stream: StreamId(0), first: SegmentNumber(3), count: 900 },
            ReportFrame::Judged {
                stream: StreamId(1),
                segment: SegmentNumber(2),
                verdict: Verdict::WithinTolerance,
                units: 256,
                from: UnitIndex(0),
                to: UnitIndex(256),
                holes: runs(&[(0, 1), (7, 9)]),
            },
            ReportFrame::Request {
                stream: StreamId(1),
                segment: SegmentNumber(4),
                missing: runs(&[(1, 2), (100, 256)]),
                tail_from: Some(Position(300)),
                length_wanted: true,
            },
            ReportFrame::Request {
                stream: StreamId(1),
                segment: SegmentNumber(5),
                missing: runs(&[]),
                tail_from: None,
                length_wanted: false,
            },
            ReportFrame::ReclassEcho { change: 1, class: Class::ALL },
            ReportFrame::Refused { stream: StreamId(300), reason: RefuseReason::TooManyStreams },
            ReportFrame::Arrival(Arrived { sync: ExchangeNumber(70), at: 1 << 40, bytes: 1 << 33, shipments: 20_000, lost: 3, marked: 1 }),
            ReportFrame::MaxStreams { streams: 1 << 33 },
            ReportFrame::Durable { stream: StreamId(70), segments: SegmentNumber(1 << 20), last: true },
            ReportFrame::Losses { judged: 70_000, lost: 100, runs: 20 },
            ReportFrame::AnyRepairs { stream: StreamId(1), segment: SegmentNumber(5), lost: 70, held: 3 },
        ]
        .into_iter()
        .collect(),
    };
    let mut buffer = [0; 600];
    let mut writer = Writer::new(&mut buffer);
    report.encode(&mut writer);
    let count = writer.finish().unwrap();
    assert_eq!(count, report.encoded_len());
    assert_eq!(Report::decode(&mut Reader::new(&buffer[..count])), Ok(report));
}

#[test]
fn holes_outside_the_named_units_are_refused() {
    let frame = ReportFrame::Judged {
        stream: StreamId(0),
        segment: SegmentNumber(0),
        verdict: Verdict::Expired,
        units: 10,
        from: UnitIndex(0),
        to: UnitIndex(5),
        holes: runs(&[(4, 6)]),
    };
    let mut buffer = [0; 60];
    let mut writer = Writer::new(&mut buffer);
    frame.encode(&mut writer);
    let count = writer.finish().unwrap();
    assert!(ReportFrame::decode(&mut Reader::new(&buffer[..count])).is_err());
}

/// A report of every frame, with `value` in every field that can hold it.
fn report_of(value: u64) -> Report {
    let short = value.min(u64::from(u32::MAX)) as u32;
    let (stream, segment) = (StreamId(short), SegmentNumber(value));
    let (from, to) = (UnitIndex(short), UnitIndex(short.saturating_add(3)));
    let holes: Runs<UnitIndex> = Run::new(from, to).into_iter().collect();
    let missing: Runs<Position> = Run::new(Position(short), Position(to.0)).into_iter().collect();
    let judged = |verdict| ReportFrame::Judged { stream, segment, verdict, units: to.0, from, to, holes: holes.clone() };
    let frames = [
        ReportFrame::Grant { stream, segments: value, units: value, end_known: value.is_multiple_of(2) },
        ReportFrame::Complete { stream, first: segment, count: value },
        judged(Verdict::Complete),
        judged(Verdict::Expired),
        ReportFrame::Request { stream, segment, missing, tail_from: Some(Position(short)), length_wanted: false },
        ReportFrame::ReclassEcho { change: value, class: Class::ALL },
        ReportFrame::Refused { stream, reason: RefuseReason::NotWanted },
        ReportFrame::Arrival(Arrived {
            sync: ExchangeNumber(value),
            at: value,
            bytes: value,
            shipments: value,
            lost: value,
            marked: value,
        }),
        ReportFrame::MaxStreams { streams: value },
        ReportFrame::Durable { stream, segments: segment, last: value.is_multiple_of(3) },
    ];
    let reorder = value.min(REORDER_MAX) as u32;
    Report {
        number: ReportNumber(value),
        echo: Some(ShipmentNumber(value)),
        reorder,
        time: Some(value),
        held: value,
        frames: frames.into_iter().collect(),
    }
}

#[test]
fn a_report_is_as_long_as_it_says_wherever_a_number_gets_longer() {
    let borders = [0x40, 0x4000, 0x4000_0000, 1 << 32].into_iter().flat_map(|border| border - 3..border + 2);
    for value in (0..3).chain(borders).chain([(1 << 62) - 2]) {
        let report = report_of(value);
        let mut buffer = [0; 600];
        let mut writer = Writer::new(&mut buffer);
        report.encode(&mut writer);
        let count = writer.finish().unwrap();
        assert_eq!(count, report.encoded_len(), "{value:#x}");
        assert_eq!(Report::decode(&mut Reader::new(&buffer[..count])), Ok(report));
    }
    let bare = Report { frames: SmallVec::new(), ..report_of((1 << 62) - 2) };
    assert_eq!(bare.encoded_len(), Report::PRELUDE_BYTES_MAX);
}

proptest! {
    #[test]
    fn no_bytes_make_the_decoder_panic(input in proptest::collection::vec(any::<u8>(), 0..80)) {
        let _ = Report::decode(&mut Reader::new(&input));
    }
}
