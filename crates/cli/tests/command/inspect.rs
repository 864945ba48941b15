//! Shipments of a capture, written here from shipments as they are encoded.

use crate::process::run;
use pcap_file::DataLink;
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use segstream_base::codec::Writer;
use segstream_base::{ExchangeNumber, Position, ReportNumber, SegmentNumber, ShipmentNumber, StreamId};
use segstream_proto::session::Plain;
use segstream_wire::handshake::{Confirm, Cookie, Fragment, Request, VERSION};
use segstream_wire::proposal::Proposal;
use segstream_wire::{Class, Contract, Header, Kind, Level, Limits, Part, Report, State};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A sealed shipment of `kind`.
fn shipment(kind: Kind, number: u32, body: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    shipment_of(Level::Data, kind, number, body)
}

/// A sealed shipment of `kind` at `level`.
pub(crate) fn shipment_of(level: Level, kind: Kind, number: u32, body: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut bytes = vec![0; 1200];
    let mut writer = Writer::new(&mut bytes);
    Header { level, kind, connection: 0xc0ffee, number }.encode(&mut writer);
    body(&mut writer);
    let written = writer.finish().unwrap();
    bytes.truncate(written + Plain::SEAL_BYTES);
    Plain::seal(ShipmentNumber(u64::from(number)), &mut bytes);
    bytes
}

pub(crate) fn data(number: u32) -> Vec<u8> {
    let part = Part {
        stream: StreamId(1),
        segment: SegmentNumber(7),
        first: Position(4),
        count: 2,
        retransmission: true,
        opened: false,
        length: Some(9000),
        tolerance: None,
        source_time: segstream_base::Instant::ZERO,
        payload_bytes: 3,
    };
    shipment(Kind::Data, number, |out| {
        part.encode_header(out);
        out.bytes(b"xyz");
    })
}

fn udp(payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() + 8) as u16;
    [&4400u16.to_be_bytes()[..], &4433u16.to_be_bytes(), &length.to_be_bytes(), &[0, 0], payload].concat()
}

pub(crate) fn ipv4(payload: &[u8]) -> Vec<u8> {
    let udp = udp(payload);
    let length = (udp.len() + 20) as u16;
    [&[0x45, 0][..], &length.to_be_bytes(), &[0, 0, 0x40, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2], &udp].concat()
}

fn ipv6(payload: &[u8]) -> Vec<u8> {
    let udp = udp(payload);
    let (mut from, mut to) = ([0; 16], [0; 16]);
    (from[15], to[15]) = (1, 2);
    [&[0x60, 0, 0, 0][..], &(udp.len() as u16).to_be_bytes(), &[17, 64], &from, &to, &udp].concat()
}

pub(crate) fn capture(directory: &Path, datalink: DataLink, packets: &[Vec<u8>]) -> PathBuf {
    let path = directory.join(format!("{datalink:?}.pcap"));
    let file = std::fs::File::create(&path).unwrap();
    let mut writer = PcapWriter::with_header(file, PcapHeader { datalink, ..PcapHeader::default() }).unwrap();
    for (index, packet) in packets.iter().enumerate() {
        let time = Duration::from_millis(1_700_000_000_000 + 250 * index as u64);
        writer.write_packet(&PcapPacket::new(time, packet.len() as u32, packet)).unwrap();
    }
    path
}

#[test]
fn shipments_are_found_behind_every_link_layer() {
    let directory = tempfile::tempdir().unwrap();
    let ethernet = |kind: [u8; 2], ip: Vec<u8>| [&[0; 12][..], &kind, &ip].concat();
    let sll = [&[0; 14][..], &[8, 0], &ipv4(&data(3))].concat();
    let sll2 = [&[0x86, 0xdd][..], &[0; 18], &ipv6(&data(3))].concat();
    for (link, packet, from) in [
        (DataLink::ETHERNET, ethernet([8, 0], ipv4(&data(3))), "192.0.2.1:4400"),
        (DataLink::ETHERNET, ethernet([0x86, 0xdd], ipv6(&data(3))), "[::1]:4400"),
        (DataLink::LINUX_SLL, sll, "192.0.2.1:4400"),
        (DataLink::LINUX_SLL2, sll2, "[::1]:4400"),
        (DataLink::RAW, ipv4(&data(3)), "192.0.2.1:4400"),
    ] {
        let file = capture(directory.path(), link, &[packet]);
        let ended = run(["inspect", file.to_str().unwrap()]).expect(0);
        let line = String::from_utf8(ended.stdout).unwrap();
        assert!(line.contains(from) && line.contains(" DT #3 connection 00c0ffee "), "{line}");
        assert!(line.contains("stream 1 segment 7 of 9000 bytes positions 4..6 again"), "{line}");
    }
}

pub(crate) fn request(protection: u8, bytes: Vec<u8>) -> Vec<u8> {
    let fragment = Fragment { offset: 0, bytes };
    let request = Request { version: VERSION, request: 5, connection: 0xabcd, protection, token: vec![1; 20], fragment };
    shipment_of(Level::Initial, Kind::Request, 0, |out| request.encode(out))
}

fn lines(directory: &Path, payloads: &[Vec<u8>]) -> Vec<String> {
    let packets: Vec<Vec<u8>> = payloads.iter().map(|payload| ipv4(payload)).collect();
    let file = capture(directory, DataLink::RAW, &packets);
    let ended = run(["inspect", file.to_str().unwrap()]).expect(0);
    String::from_utf8(ended.stdout).unwrap().lines().chain(ended.stderr.lines()).map(str::to_owned).collect()
}

#[test]
fn of_an_encrypted_connection_set_up_is_shown_and_of_the_rest_its_outside() {
    let directory = tempfile::tempdir().unwrap();
    let cookie = Cookie { request: 5, token: vec![7; 40] };
    let confirm = Confirm { request: 5, connection: 0xbeef, fragment: Fragment { offset: 0, bytes: vec![2; 90] } };
    let mut handshake = shipment_of(Level::Handshake, Kind::Handshake, 2, |out| out.bytes(&[0x5a; 60]));
    let mut sealed = data(3);
    // What hides a header leaves three bits of the first byte and the connection as they are.
    (sealed[0], handshake[30], sealed[6]) = (0x7f, 1, 0x99);
    let payloads = [
        request(1, vec![1; 200]),
        shipment_of(Level::Initial, Kind::Cookie, 0, |out| cookie.encode(out)),
        shipment_of(Level::Initial, Kind::Confirm, 1, |out| confirm.encode(out)),
        handshake.clone(),
        sealed.clone(),
    ];
    let lines = lines(directory.path(), &payloads);
    let expected = [
        "CR #0 connection 00c0ffee".to_owned(),
        "CK #0 connection 00c0ffee".to_owned(),
        "CC #1 connection 00c0ffee".to_owned(),
        format!("HS #2 sealed connection 00c0ffee {} bytes", handshake.len()),
        format!("data sealed connection 00c0ffee {} bytes", sealed.len()),
        "3 shipments, 2 sealed, 0 undecodable".to_owned(),
    ];
    for (line, expected) in lines.iter().zip(&expected) {
        assert!(line.contains(expected), "{expected}: {line}");
    }
    assert_eq!(lines.len(), expected.len());
    assert!(lines[0].contains("encrypted with TLS 1.3 answer to 0000abcd token of 20 bytes; handshake bytes 0..200"), "{}", lines[0]);
    assert!(lines[1].contains("a cookie of 40 bytes"), "{}", lines[1]);
    assert!(lines[2].contains("answer to 0000beef; handshake bytes 0..90"), "{}", lines[2]);
}

#[test]
fn in_the_clear_it_is_shown_what_is_agreed_on_and_what_is_damaged_is_not_taken_for_sealed() {
    let directory = tempfile::tempdir().unwrap();
    let streams = vec![Contract { label: "film".to_owned(), ..Contract::default() }];
    let rate = segstream::Bandwidth::from_megabits_per_second(5);
    let (class, limits) = (Class::ALL, Limits::default());
    let proposal = Proposal { version: VERSION, request: 5, connection: 0xabcd, class, rate, limits, streams, extensions: 0 };
    let mut bytes = vec![0; 400];
    let mut writer = Writer::new(&mut bytes);
    proposal.encode(&mut writer);
    let length = writer.finish().unwrap();
    let handshake = [&(length as u16).to_be_bytes()[..], &bytes[..length]].concat();
    let mut damaged = data(4);
    damaged[20] ^= 1;
    let challenge = shipment(Kind::Challenge, 5, |out| out.u64(0xfeed));
    let response = shipment(Kind::Response, 6, |out| out.u64(0xfeed));
    let lines = lines(directory.path(), &[request(0, handshake), damaged, challenge, response]);
    assert!(lines[0].contains("in the clear") && lines[0].contains("class 7 rate 5 Mbit/s; stream 0 \"film\""), "{}", lines[0]);
    assert!(lines[1].contains("PC #5") && lines[1].contains("asks for 000000000000feed"), "{}", lines[1]);
    assert!(lines[2].contains("PR #6") && lines[2].contains("answers 000000000000feed"), "{}", lines[2]);
    assert!(lines[3].contains("3 shipments, 0 sealed, 1 undecodable"), "{}", lines[3]);
}

#[test]
fn everything_is_counted_once() {
    let directory = tempfile::tempdir().unwrap();
    let mut broken = data(4);
    broken[20] ^= 1;
    let malformed = shipment(Kind::Data, 5, |out| out.bytes(&[0xff; 9]));
    let payloads = [
        data(3),
        shipment(Kind::State, 8, |out| State { sync: ExchangeNumber(2), answer: true, ..State::default() }.encode(out)),
        shipment(Kind::Report, 9, |out| {
            Report { number: ReportNumber(4), echo: Some(ShipmentNumber(8)), reorder: 3, ..Report::default() }.encode(out);
        }),
        broken,
        malformed,
        b"\x00\x01 a query".to_vec(),
    ];
    let mut packets: Vec<Vec<u8>> = payloads.iter().map(|payload| ipv4(payload)).collect();
    packets.push(vec![0x45, 0, 0]);
    let file = capture(directory.path(), DataLink::RAW, &packets);
    let report = run(["inspect", file.to_str().unwrap(), "--json"]).expect(0).json();
    let kinds: Vec<_> = report["shipments"].as_array().unwrap().iter().map(|shipment| shipment["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["DT", "TXS", "RXS"]);
    assert_eq!(report["shipments"][1]["parts"][0], "sync 2 wants an answer");
    assert_eq!(report["shipments"][2]["parts"][0], "report 4 echo #8 reorder 3");
    assert_eq!(report["shipments"][2]["seconds"], 0.5);
    let counts = ["shipments_read", "undecodable", "other_datagrams", "other_packets"].map(|key| report[key].as_u64().unwrap());
    assert_eq!(counts, [3, 2, 1, 1]);
}

#[test]
fn a_malformed_file_is_an_error_and_what_came_before_the_damage_is_shown() {
    let directory = tempfile::tempdir().unwrap();
    let file = capture(directory.path(), DataLink::RAW, &[ipv4(&data(3)), ipv4(&data(4))]);
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() - 5]).unwrap();
    let ended = run(["inspect", file.to_str().unwrap()]).expect(1);
    assert!(String::from_utf8(ended.stdout).unwrap().contains("DT #3"));
    assert!(ended.stderr.contains("damaged behind packet 1"), "{}", ended.stderr);

    for (bytes, expected) in
        [(&b"text, not a capture at all, and long"[..], "is not a pcap file"), (b"", "is not a pcap file"), (b"\n\r\r\n", "pcapng")]
    {
        std::fs::write(&file, bytes).unwrap();
        let ended = run(["inspect", file.to_str().unwrap()]).expect(1);
        assert!(ended.stderr.contains(expected), "{}", ended.stderr);
    }
    assert!(run(["inspect", "missing.pcap"]).expect(1).stderr.contains("missing.pcap cannot be read"));
}
