//! The test vectors of the specification, written by the code and compared with `docs/spec`.
//!
//! `BLESS=1 cargo test -p segstream-proto --test protocol spec_vectors` writes `docs/spec/13-test-vectors.md` anew.
//! Every vector is opened and decoded again before it is printed, and its fields must cover all its bytes.

mod repair_units;
mod values;

use segstream_base::codec::{Reader, Writer};
use segstream_base::halves::Verdict;
use segstream_base::{
    Bandwidth, Duration, ExchangeNumber, Instant, Ordinal, Position, ReportNumber, Run, SegmentNumber, ShipmentNumber, StreamId, Tolerance,
    UnitIndex,
};
use segstream_proto::session::Plain;
use segstream_wire::contract::{InterleaveChoice, Limits};
use segstream_wire::handshake::{Confirm, Cookie, Disconnect, Fragment, Reject, RejectReason, Request, VERSION};
use segstream_wire::header::HEADER_BYTES;
use segstream_wire::proposal::{Agreement, Proposal};
use segstream_wire::report::{Arrived, RefuseReason, Runs};
use segstream_wire::state::{Confirmed, Finished};
use segstream_wire::{Class, Contract, Extensions, Header, Kind, Level, Order, Part, Report, ReportFrame, State, StateFrame};
use std::fmt::Write as _;
use std::path::Path;

/// Bytes of a dump in one line.
const LINE: usize = 8;
/// The identifiers the two ends of the example have chosen.
const INITIATOR: u32 = 0x7a31_0000;
const RESPONDER: u32 = 0x51c2_0000;
const REQUEST: u64 = 0x0123_4567_89ab_cdef;

/// A field of a shipment: its bytes, and what they say.
type Field = (usize, &'static str);

struct Vectors {
    text: String,
    count: usize,
}

impl Vectors {
    /// Adds the dump of one sealed shipment. `decodes` must decode the body again and compare it.
    fn shipment(
        &mut self,
        about: &str,
        (kind, connection, number): (Kind, u32, u64),
        encode: impl Fn(&mut Writer<'_>),
        decodes: impl Fn(&mut Reader<'_>) -> bool,
        body_fields: &[Field],
    ) {
        let level = if matches!(kind, Kind::Request | Kind::Cookie | Kind::Confirm | Kind::Reject) { Level::Initial } else { Level::Data };
        let header = Header { level, kind, connection, number: number as u32 };
        let mut bytes = vec![0; 1200];
        let mut writer = Writer::new(&mut bytes);
        header.encode(&mut writer);
        encode(&mut writer);
        let written = writer.finish().unwrap();
        bytes.truncate(written + Plain::SEAL_BYTES);
        Plain::seal(ShipmentNumber(number), &mut bytes);

        let end = Plain::open(ShipmentNumber(number), &bytes).expect("the seal opens");
        assert_eq!(Header::decode(&mut Reader::new(&bytes)), Ok(header), "{about}");
        let mut body = Reader::new(&bytes[HEADER_BYTES..end]);
        assert!(decodes(&mut body) && body.is_empty(), "{about}: the body comes back as it was");

        self.count += 1;
        writeln!(self.text, "\n## 13.{} {}: {about}\n", self.count, kind.name()).unwrap();
        writeln!(self.text, "Shipment number {number}, {} bytes.\n\n```text", bytes.len()).unwrap();
        let first: Field = (1, "form, level, kind");
        let mut fields = vec![first, (4, "connection identifier of the destination"), (4, "shipment number, low 32 bits")];
        fields.extend_from_slice(body_fields);
        fields.push((Plain::SEAL_BYTES, "seal"));
        self.dump(&bytes, &fields);
        self.text.push_str("```\n");
    }

    fn dump(&mut self, bytes: &[u8], fields: &[Field]) {
        let mut at = 0;
        for &(count, name) in fields {
            let field = bytes.get(at..at + count).unwrap_or_else(|| panic!("the field {name} at {at} goes beyond the shipment"));
            for (line, chunk) in field.chunks(LINE).enumerate() {
                let hex: Vec<String> = chunk.iter().map(|byte| format!("{byte:02x}")).collect();
                let row = format!("{:04x}  {:<24}  {}", at + line * LINE, hex.join(" "), if line == 0 { name } else { "" });
                writeln!(self.text, "{}", row.trim_end()).unwrap();
            }
            at += count;
        }
        assert_eq!(at, bytes.len(), "every byte belongs to a field");
    }
}

fn contract() -> Contract {
    Contract {
        unit_bytes: 8,
        tolerance: Tolerance::new(256, 8, 2).unwrap(),
        importance: 1,
        order: Order::AsAccepted,
        lifetime: Duration::from_millis(200).into(),
        interleave: InterleaveChoice::Depth(64),
        window_units: 16_384,
        window_segments: 16,
        weight: 1,
        label: "frames".into(),
    }
}

const CONTRACT_FIELDS: [Field; 13] = [
    (1, "contract: unit bytes = 8"),
    (2, "  W = 256"),
    (1, "  E = 8"),
    (1, "  B = 2"),
    (1, "  importance = 1"),
    (1, "  flags = 5: as accepted, depth follows"),
    (2, "  interleaving depth = 64"),
    (4, "  lifetime = 200,000 us"),
    (4, "  window = 16,384 units"),
    (1, "  window = 16 segments"),
    (1, "  weight = 1"),
    (1, "  label: 6 bytes"),
    (6, "  \"frames\""),
];

/// What a plain handshake carries: two bytes of length, then the parameters.
fn plain_fragment(encode: impl Fn(&mut Writer<'_>)) -> (usize, Fragment) {
    let mut parameters = vec![0; 1200];
    let mut writer = Writer::new(&mut parameters);
    encode(&mut writer);
    let length = writer.finish().unwrap();
    let mut bytes = (length as u16).to_be_bytes().to_vec();
    bytes.extend_from_slice(&parameters[..length]);
    (length, Fragment { offset: 0, bytes })
}

fn set_up(vectors: &mut Vectors) {
    let proposal = Proposal {
        version: VERSION,
        request: REQUEST,
        connection: INITIATOR,
        class: Class::ALL,
        rate: Bandwidth::from_megabits_per_second(100),
        limits: Limits::default(),
        streams: vec![contract()],
        extensions: Extensions::DURABLE,
    };
    let (length, fragment) = plain_fragment(|out| proposal.encode(out));
    assert_eq!((length, fragment.bytes.len()), (55, 57), "the dump says so");
    let token: Vec<u8> = (1..=21).collect();
    let request = Request { version: VERSION, request: REQUEST, connection: INITIATOR, protection: 0, token: token.clone(), fragment };
    let mut fields: Vec<Field> = vec![
        (2, "version = 4"),
        (8, "request identifier"),
        (4, "connection identifier of the initiator"),
        (1, "protection = 0, plain"),
        (1, "token: 21 bytes"),
        (21, "  the cookie"),
        (1, "fragment: offset 0"),
        (1, "  57 bytes"),
        (2, "  the proposal: 55 bytes"),
        (2, "  version = 4"),
        (8, "  request identifier"),
        (4, "  connection identifier of the initiator"),
        (1, "  class = 7"),
        (4, "  rate = 100,000,000 bit/s"),
        (2, "  limits: 256 streams"),
        (4, "    datagrams of 65,507 bytes"),
        (2, "    idle timeout = 10,000 ms"),
        (1, "  1 stream"),
    ];
    fields.extend_from_slice(&CONTRACT_FIELDS);
    fields.push((1, "  extensions = 2: takes DURABLE"));
    vectors.shipment(
        "asks for a connection with one stream, again with a cookie; its padding to 1200 bytes is left out here",
        (Kind::Request, 0, 1),
        |out| request.encode(out),
        |input| Request::decode(input).as_ref() == Ok(&request),
        &fields,
    );
    let cookie = Cookie { request: REQUEST, token };
    vectors.shipment(
        "asks for the request again with a cookie",
        (Kind::Cookie, INITIATOR, 0),
        |out| cookie.encode(out),
        |input| Cookie::decode(input).as_ref() == Ok(&cookie),
        &[(8, "request identifier"), (1, "token: 21 bytes"), (21, "  the cookie")],
    );
    let agreement = Agreement {
        request: REQUEST,
        connection: RESPONDER,
        class: Class::ALL,
        limits: Limits::default(),
        reset: None,
        token: Vec::new(),
        extensions: Extensions::DURABLE.with(Extensions::CONFIRMS),
        grants: vec![ReportFrame::Grant { stream: StreamId(0), segments: 16, units: 16_384, end_known: false }],
    };
    let (length, fragment) = plain_fragment(|out| agreement.encode(out));
    assert_eq!((length, fragment.bytes.len()), (33, 35), "the dump says so");
    let confirm = Confirm { request: REQUEST, connection: RESPONDER, fragment };
    let fields: &[Field] = &[
        (8, "request identifier"),
        (4, "connection identifier of the responder"),
        (1, "fragment: offset 0"),
        (1, "  35 bytes"),
        (2, "  the agreement: 33 bytes"),
        (8, "  request identifier"),
        (4, "  connection identifier of the responder"),
        (1, "  class = 7"),
        (2, "  limits: 256 streams"),
        (4, "    datagrams of 65,507 bytes"),
        (2, "    idle timeout = 10,000 ms"),
        (1, "  no reset"),
        (1, "  no token"),
        (1, "  EXTENSIONS"),
        (1, "    extensions = 6: takes DURABLE, confirms what it receives"),
        (1, "  GRANT"),
        (1, "    stream 0"),
        (1, "    segments below 16"),
        (4, "    16,384 units"),
        (1, "    end not known"),
    ];
    vectors.shipment(
        "confirms it and grants the stream a window",
        (Kind::Confirm, INITIATOR, 0),
        |out| confirm.encode(out),
        |input| Confirm::decode(input).as_ref() == Ok(&confirm),
        fields,
    );
    let reject = Reject { request: REQUEST, reason: RejectReason::Busy, version: VERSION, detail: "too many connections".into() };
    vectors.shipment(
        "refuses it",
        (Kind::Reject, INITIATOR, 0),
        |out| reject.encode(out),
        |input| Reject::decode(input).as_ref() == Ok(&reject),
        &[
            (8, "request identifier"),
            (1, "reason = 1, busy"),
            (2, "version spoken = 4"),
            (1, "detail: 20 bytes"),
            (20, "\"too many connections\""),
        ],
    );
}

fn part(segment: SegmentNumber, first: u32, count: u32, payload: &[u8]) -> Part {
    Part {
        stream: StreamId(0),
        segment,
        first: Position(first),
        count,
        retransmission: false,
        opened: false,
        length: Some(10),
        tolerance: None,
        source_time: Instant::from_nanos(40_000_000),
        payload_bytes: payload.len() as u32,
    }
}

fn data_shipment(vectors: &mut Vectors, about: &str, number: u64, parts: &[(Part, &[u8])], fields: &[Field]) {
    let encode = |out: &mut Writer<'_>| {
        for (part, payload) in parts {
            part.encode_header(out);
            out.bytes(payload);
        }
    };
    let decodes = |input: &mut Reader<'_>| parts.iter().all(|(part, payload)| Part::decode(input) == Ok((*part, *payload)));
    vectors.shipment(about, (Kind::Data, RESPONDER, number), encode, decodes, fields);
}

fn data(vectors: &mut Vectors) {
    let payload: &[u8] = b"Segstream!";
    let whole = [(part(SegmentNumber(2), 0, 2, payload), payload)];
    let fields: &[Field] = &[
        (1, "part flags = 2: the length follows"),
        (1, "stream 0"),
        (1, "segment 2"),
        (1, "first position = 0"),
        (1, "2 positions"),
        (4, "source time = 40,000 us"),
        (1, "segment length = 10 bytes"),
        (1, "10 bytes of payload"),
        (10, "payload: a unit of 8 bytes and one of 2"),
    ];
    data_shipment(vectors, "a whole segment of 10 bytes in two units of 8", 5, &whole, fields);
    data_shipment(vectors, "the same bytes under a number that is 2^32 higher; only the seal differs", (1 << 32) + 5, &whole, fields);
    let again: &[u8] = b"8 bytes.";
    let open: &[u8] = b"open and";
    let first = Part {
        retransmission: true,
        tolerance: Some(Tolerance::new(16, 4, 1).unwrap()),
        length: Some(128),
        ..part(SegmentNumber(3), 15, 1, again)
    };
    let second = Part { opened: true, length: None, source_time: Instant::ZERO, ..part(SegmentNumber(4), 0, 1, open) };
    data_shipment(
        vectors,
        "a unit sent again under a tolerance of its own, and the first unit of an open segment",
        6,
        &[(first, again), (second, open)],
        &[
            (1, "part flags = 7: again, length and tolerance follow"),
            (1, "stream 0"),
            (1, "segment 3"),
            (1, "first position = 15"),
            (1, "1 position"),
            (4, "source time = 40,000 us"),
            (2, "segment length = 128 bytes"),
            (1, "W = 16"),
            (1, "E = 4"),
            (1, "B = 1"),
            (1, "8 bytes of payload"),
            (8, "payload"),
            (1, "part flags = 8: opened before its length was known"),
            (1, "stream 0"),
            (1, "segment 4"),
            (1, "first position = 0"),
            (1, "1 position"),
            (1, "source time = 0 us"),
            (1, "8 bytes of payload"),
            (8, "payload"),
        ],
    );
}

fn state(vectors: &mut Vectors) {
    let finished = Finished {
        stream: StreamId(0),
        segment: SegmentNumber(3),
        opened: false,
        length: 128,
        source_time: Instant::from_nanos(40_000_000),
        tolerance: Some(Tolerance::new(16, 4, 1).unwrap()),
        last_shipment: Some(ShipmentNumber(6)),
    };
    let skipped = Finished {
        segment: SegmentNumber(4),
        opened: true,
        length: 8,
        source_time: Instant::ZERO,
        tolerance: None,
        last_shipment: None,
        ..finished
    };
    let state = State {
        sync: ExchangeNumber(2),
        time: 1_500_000,
        answer: true,
        exchange: true,
        confirmed: Confirmed { highest: Some(ReportNumber(4)), before: 0b1011 },
        frames: [
            StateFrame::Open { stream: StreamId(1), contract: Box::new(contract()) },
            StateFrame::Finished(finished),
            StateFrame::Skip(skipped),
            StateFrame::End { stream: StreamId(0), segments: 5 },
            StateFrame::Waiting { stream: StreamId(0) },
            StateFrame::Reclass { change: 1, class: Class::ALL, rate: Bandwidth::from_megabits_per_second(10) },
        ]
        .into_iter()
        .collect(),
    };
    let mut fields: Vec<Field> = vec![
        (1, "flags = 3: answer at once, tell its arrival"),
        (1, "SYNC = 2"),
        (4, "TIME = 1,500,000 ns"),
        (1, "confirmed + 1 = 5: report 4 has arrived"),
        (8, "  and of the 64 before it 3, 2 and 0"),
        (1, "OPEN"),
        (1, "  stream 1"),
    ];
    fields.extend_from_slice(&CONTRACT_FIELDS);
    fields.extend_from_slice(&[
        (1, "FINISHED"),
        (1, "  flags = 1: tolerance follows"),
        (1, "  stream 0"),
        (1, "  segment 3"),
        (2, "  length = 128 bytes"),
        (4, "  source time = 40,000 us"),
        (1, "  last shipment + 1 = 7"),
        (3, "  W = 16, E = 4, B = 1"),
        (1, "SKIP"),
        (1, "  flags = 2: opened before its length was known"),
        (1, "  stream 0"),
        (1, "  segment 4"),
        (1, "  length = 8 bytes"),
        (1, "  source time = 0 us"),
        (1, "  last shipment + 1 = 0: nothing was ever sent"),
        (1, "END"),
        (1, "  stream 0"),
        (1, "  5 segments"),
        (1, "WAITING"),
        (1, "  stream 0"),
        (1, "RECLASS"),
        (1, "  change 1"),
        (1, "  class 7"),
        (4, "  rate = 10,000,000 bit/s"),
    ]);
    vectors.shipment(
        "the sender's state with each of its frames",
        (Kind::State, RESPONDER, 7),
        |out| state.encode(out),
        |input| State::decode(input).as_ref() == Ok(&state),
        &fields,
    );
}

fn report(vectors: &mut Vectors) {
    let report = Report {
        number: ReportNumber(5),
        echo: Some(ShipmentNumber(7)),
        reorder: 3,
        time: Some(1_500_000),
        held: 20_000,
        frames: [
            ReportFrame::ReclassEcho { change: 1, class: Class::ALL },
            ReportFrame::Refused { stream: StreamId(300), reason: RefuseReason::TooManyStreams },
            ReportFrame::Grant { stream: StreamId(0), segments: 18, units: 16_386, end_known: true },
            ReportFrame::Request {
                stream: StreamId(0),
                segment: SegmentNumber(3),
                missing: runs(&[(2, 3), (5, 9)]),
                tail_from: Some(Position(12)),
                length_wanted: true,
            },
            ReportFrame::Complete { stream: StreamId(0), first: SegmentNumber(0), count: 2 },
            ReportFrame::Judged {
                stream: StreamId(0),
                segment: SegmentNumber(2),
                verdict: Verdict::WithinTolerance,
                units: 16,
                from: UnitIndex(0),
                to: UnitIndex(16),
                holes: runs(&[(1, 2), (9, 10)]),
            },
            ReportFrame::Arrival(Arrived { sync: ExchangeNumber(2), at: 901_500_000, bytes: 5_000, shipments: 7, lost: 1, marked: 0 }),
            ReportFrame::MaxStreams { streams: 300 },
            ReportFrame::Durable { stream: StreamId(0), segments: SegmentNumber(2), last: false },
        ]
        .into_iter()
        .collect(),
    };
    vectors.shipment(
        "the receiver's state with each of its frames",
        (Kind::Report, INITIATOR, 9),
        |out| report.encode(out),
        |input| Report::decode(input).as_ref() == Ok(&report),
        &[
            (1, "report number = 5"),
            (1, "echo + 1 = 8: shipment 7 is the highest received"),
            (1, "reordering threshold R = 3"),
            (4, "echoed TIME + 1"),
            (4, "held = 20,000 ns"),
            (1, "RECLASS_ECHO"),
            (1, "  change 1"),
            (1, "  class 7"),
            (1, "REFUSED"),
            (2, "  stream 300"),
            (1, "  reason = 0, too many streams"),
            (1, "GRANT"),
            (1, "  stream 0"),
            (1, "  segments below 18"),
            (4, "  16,386 units"),
            (1, "  end known"),
            (1, "REQUEST"),
            (1, "  flags = 3: tail, length wanted"),
            (1, "  stream 0"),
            (1, "  segment 3"),
            (1, "  2 runs"),
            (2, "    gap 2, length 1: position 2"),
            (2, "    gap 2, length 4: positions 5 to 8"),
            (1, "  everything from position 12 on"),
            (1, "COMPLETE"),
            (1, "  stream 0"),
            (1, "  from segment 0"),
            (1, "  2 segments"),
            (1, "JUDGED"),
            (1, "  stream 0"),
            (1, "  segment 2"),
            (1, "  verdict = 1, within tolerance"),
            (1, "  16 units"),
            (1, "  told from unit 0"),
            (1, "  to unit 16"),
            (1, "  2 runs"),
            (2, "    gap 1, length 1: unit 1"),
            (2, "    gap 7, length 1: unit 9"),
            (1, "ARRIVAL"),
            (1, "  of SYNC 2"),
            (4, "  at 901,500,000 ns"),
            (2, "  5,000 bytes had arrived"),
            (1, "  in 7 shipments"),
            (1, "  1 declared lost"),
            (1, "  0 marked"),
            (1, "MAX_STREAMS"),
            (2, "  300 streams in all"),
            (1, "DURABLE"),
            (3, "  of stream 0 below segment 2; more may follow"),
        ],
    );
}

fn close(vectors: &mut Vectors) {
    let close = Disconnect { code: 0, abort: false, detail: "done".into() };
    vectors.shipment(
        "asks to disconnect",
        (Kind::Disconnect, RESPONDER, 8),
        |out| close.encode(out),
        |input| Disconnect::decode(input).as_ref() == Ok(&close),
        &[(1, "no abort"), (1, "code = 0"), (1, "detail: 4 bytes"), (4, "\"done\"")],
    );
    vectors.shipment("confirms the disconnect", (Kind::DisconnectConfirm, INITIATOR, 10), |_| {}, |_| true, &[]);
}

fn runs<N: Ordinal>(list: &[(u32, u32)]) -> Runs<N> {
    list.iter().map(|&(start, end)| Run::new(N::of(start), N::of(end)).unwrap()).collect()
}

fn chapter() -> String {
    let mut vectors = Vectors { text: String::new(), count: 0 };
    vectors.text.push_str(
        "# 13 Test vectors\n\n\
         Written by the code, so do not edit: `BLESS=1 cargo test -p segstream-proto --test protocol spec_vectors` writes this\n\
         chapter anew, and without `BLESS` the test compares it. Each line of a dump is an offset, the bytes of a field\n\
         and what they say. All shipments are sealed in plain mode. The initiator is addressed by 7a310000, the responder\n\
         by 51c20000; data flows from the initiator to the responder.\n",
    );
    set_up(&mut vectors);
    data(&mut vectors);
    state(&mut vectors);
    report(&mut vectors);
    close(&mut vectors);
    let mut text = vectors.text;
    assert_eq!(vectors.count, 11, "the sections behind the shipments are numbered from 13.13 on, 13.12 says how to read");
    text.push_str(
        "\n## 13.12 Values\n\nThe sections that follow give single values: input and output of the rules in chapters\n\
         [2](02-shipments.md) and [8](08-tolerance.md).\n",
    );
    values::varints(&mut text);
    values::numbers(&mut text);
    values::orders(&mut text);
    values::seals(&mut text);
    let mut extensions = Vectors { text, count: 16 };
    repair_units::repair(&mut extensions);
    extensions.text
}

#[test]
fn the_test_vectors_of_the_specification_are_what_the_code_writes() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/spec/13-test-vectors.md");
    let built = chapter();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &built).unwrap();
        return;
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default().replace("\r\n", "\n");
    assert!(
        built == written,
        "docs/spec/13-test-vectors.md is not what the code writes; if the wire format was meant to change, run this test with BLESS=1 and read the difference"
    );
}
