//! Test vectors of the extension *repair*.

use super::{INITIATOR, RESPONDER, Vectors};
use segstream_base::{ReportNumber, SegmentNumber, ShipmentNumber, StreamId};
use segstream_wire::{Kind, Repair, Report, ReportFrame};

pub(super) fn repair(vectors: &mut Vectors) {
    let repair = Repair { stream: StreamId(0), segment: SegmentNumber(3), every: 3, first: 2, count: 2, payload_bytes: 16 };
    let units = *b"repaired repairs";
    vectors.shipment(
        "repair units 2 and 3 of a segment of which every third unit is protected (an extension)",
        (Kind::Repair, RESPONDER, 10),
        |out| {
            repair.encode_header(out);
            out.bytes(&units);
        },
        |input| Repair::decode(input) == Ok((repair, &units[..])),
        &[
            (1, "stream"),
            (1, "segment"),
            (1, "every = 3"),
            (1, "first repair unit"),
            (1, "2 repair units"),
            (1, "16 bytes"),
            (16, "payload"),
        ],
    );
    let report = Report {
        number: ReportNumber(6),
        echo: Some(ShipmentNumber(14)),
        reorder: 3,
        time: None,
        held: 0,
        frames: [
            ReportFrame::Losses { judged: 11, lost: 4, runs: 2 },
            ReportFrame::AnyRepairs { stream: StreamId(0), segment: SegmentNumber(3), lost: 3, held: 2 },
        ]
        .into_iter()
        .collect(),
    };
    vectors.shipment(
        "what the path has lost, and how many repair units are here (an extension)",
        (Kind::Report, INITIATOR, 11),
        |out| report.encode(out),
        |input| Report::decode(input).as_ref() == Ok(&report),
        &[
            (1, "report number = 6"),
            (1, "echo + 1 = 15"),
            (1, "reordering threshold R = 3"),
            (1, "no TXS has come"),
            (1, "LOSSES"),
            (1, "  11 shipments are judged"),
            (1, "  4 of them are lost"),
            (1, "  in 2 runs"),
            (1, "ANY_REPAIRS"),
            (1, "  stream"),
            (1, "  segment"),
            (1, "  3 protected units are lost"),
            (1, "  2 repair units are here"),
        ],
    );
}
