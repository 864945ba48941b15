//! Single values: input and output of the rules.

use segstream_base::codec::{Reader, Writer, varint_len};
use segstream_base::sequence::expand;
use segstream_base::{Position, ShipmentNumber, UnitIndex};
use segstream_blocks::interleave::SendingOrder;
use segstream_proto::session::Plain;
use std::fmt::Write as _;

pub(super) fn varints(text: &mut String) {
    text.push_str("\n## 13.13 Varints\n\n| value | bytes |\n|---:|---|\n");
    for value in [0u64, 63, 64, 16_383, 16_384, (1 << 30) - 1, 1 << 30, (1 << 62) - 1] {
        let mut buffer = [0; 8];
        let mut writer = Writer::new(&mut buffer);
        writer.varint(value);
        let count = writer.finish().unwrap();
        assert_eq!((count, Reader::new(&buffer[..count]).varint("value")), (varint_len(value), Ok(value)));
        let hex: Vec<String> = buffer[..count].iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(text, "| {value} | `{}` |", hex.join(" ")).unwrap();
    }
}

pub(super) fn numbers(text: &mut String) {
    text.push_str("\n## 13.14 Shipment numbers rebuilt\n\n| expected | low 32 bits | number |\n|---:|---:|---:|\n");
    let wrap = 1u64 << 32;
    for (expected, low) in [(0, 0), (0, wrap - 1), (5, 3), (wrap - 1, 2), (wrap + 2, wrap - 1), (wrap, wrap / 2), (wrap, wrap / 2 + 1)] {
        writeln!(text, "| {expected} | {low} | {} |", expand(low, 32, expected)).unwrap();
    }
}

pub(super) fn orders(text: &mut String) {
    text.push_str("\n## 13.15 Sending orders\n\n| units | block | stride | unit at position 0, 1, 2, .. |\n|---:|---:|---:|---|\n");
    for (units, block, stride) in [(16, 0, 4), (10, 0, 4), (10, 0, 3), (12, 8, 3), (5, 0, 1)] {
        let order = SendingOrder { block, stride };
        let sequence: Vec<UnitIndex> = (0..units).map(|position| order.unit_at(Position(position), units)).collect();
        for (position, &unit) in sequence.iter().enumerate() {
            assert_eq!(order.position_of(unit, units), Position(position as u32));
        }
        let sequence: Vec<String> = sequence.iter().map(UnitIndex::to_string).collect();
        writeln!(text, "| {units} | {block} | {stride} | {} |", sequence.join(" ")).unwrap();
    }
}

pub(super) fn seals(text: &mut String) {
    text.push_str("\n## 13.16 Seals\n\nOf the nine bytes `52 00 00 00 01 00 00 00 02`.\n\n| number | seal |\n|---:|---|\n");
    for number in [2u64, (1 << 32) + 2] {
        let body = [0x52, 0, 0, 0, 1, 0, 0, 0, 2];
        let mut shipment = body.to_vec();
        shipment.resize(body.len() + Plain::SEAL_BYTES, 0);
        Plain::seal(ShipmentNumber(number), &mut shipment);
        let hex: Vec<String> = shipment[body.len()..].iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(text, "| {number} | `{}` |", hex.join(" ")).unwrap();
    }
}
