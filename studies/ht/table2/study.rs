//! HT Table 2: the fields and their lengths, read off packets as they are encoded; and what a lost state costs.
//!
//! Called through [`super::STUDIES`].
//!
//! Invariant: a length is the number of bytes that change in an encoded packet when every bit of the field does.
//! Source: HT 3.2, HT 4, Table 2.

use super::end_system::Who;
use super::table1;
use crate::black_box::random;
use segstream_base::Duration;
use segstream_base::codec::Writer;
use segstream_base::halves::Packet;
use segstream_lab::claim::{Claim, Finding, Part};
use segstream_lab::figure::TextTable;
use segstream_lab::measured::Measured;
use segstream_lab::scenario::Scenario;
use segstream_lab::study::{Study, StudyPoint};
use segstream_path::LossSpec;
use segstream_schemes::htpnet::{
    self, Class, Coverage, Data, Feedback, Forward, Pairs, RangeList, Ranges, ReceiverState, TransmitterState,
};
use segstream_schemes::snr;

/// The study.
pub(super) static STUDY: Study = Study {
    id: "ht/table2",
    title: "Fields, and what a lost state costs",
    source: "HT 3.2, Table 2; HT 4",
    summary: "The fields of the table with the lengths that packets have here.\n\nHT 4 says of SNR, whose states are its clock, that a lost \
              one delays every repetition that waits, and that the delays add up; HTPNET goes by numbers, and a lost state is made \
              good by the next one. The third table loses a growing share of the states and tells how long after its first \
              transmission a lost packet is there. SNR stands there twice: with the count of intervals in its states, which HT \
              describes too, and without.",
    parameters: &[
        ("lengths", "HT Table 2; DATA has 8 bytes here that say where its payload belongs"),
        ("round trip, exchange", "40 ms, 5 ms (chosen)"),
        ("load", "10 packets a second, so that repairs do not meet; one in twenty is lost (chosen)"),
        ("states lost", "0 to 0.5 of them, in both directions (chosen)"),
        ("run length", "a hundredth of the preset's packets"),
    ],
    points,
    shortened: 100,
    tables,
    claims: &[Claim {
        id: "HT-C8",
        text: "In SNR a lost state delays all repetitions that wait, and the delays add up; HTPNET's are not (HT 4)",
        check: slip,
    }],
    expected: include_str!("expected.csv"),
    ..Study::NONE
};

const RTT: Duration = Duration::from_millis(40);
const PERIOD: Duration = Duration::from_millis(5);
/// Data packets that are lost.
const ERRORS: f64 = 0.05;
/// New packets a second.
const OFFERED: u32 = 10;
const STATES_LOST: [f64; 5] = [0.0, 0.1, 0.2, 0.3, 0.5];
/// The curves, and what they are called.
const CURVES: [(&str, &str); 4] = [
    ("htpnet", "HTPNET"),
    ("snr counting", "SNR, intervals counted"),
    ("snr slipping", "SNR, each state one interval"),
    ("segstream", "Segstream"),
];

fn scenario(curve: &str, errors: &LossSpec, lost: f64) -> Scenario {
    let scenario = match curve {
        "htpnet" => {
            Who::Htpnet(Ranges::Eight).over(RTT, 64, errors).with_settings(|it: &mut htpnet::Settings| it.sync_period = Some(PERIOD))
        }
        "segstream" => Who::Segstream.over(RTT, 64, errors),
        _ => table1::snr(RTT, PERIOD, 1, 64, errors).with_settings(|it: &mut snr::Settings| it.slip = curve == "snr slipping"),
    };
    let control_loss = Some(if lost > 0.0 { random(lost) } else { LossSpec::None });
    scenario.with(|it| {
        it.workload.offered = Some(OFFERED);
        it.black_box.control_loss = control_loss;
        it.black_box.loss_back = LossSpec::None;
    })
}

fn without_errors(curve: &str) -> String {
    format!("{curve}, no errors")
}

fn points() -> Vec<StudyPoint> {
    let mut points = Vec::new();
    for (curve, _) in CURVES {
        points.push(StudyPoint { curve: without_errors(curve), x: 0.0, scenario: scenario(curve, &LossSpec::None, 0.0) });
        points.extend(STATES_LOST.map(|lost| StudyPoint {
            curve: curve.to_owned(),
            x: lost,
            scenario: scenario(curve, &random(ERRORS), lost),
        }));
    }
    points
}

/// How much later a packet comes for each time it is lost, in milliseconds.
fn added_ms(points: &Measured, curve: &str, lost: f64) -> Option<f64> {
    let least = points.at(&without_errors(curve), 0.0)?.delay_ms_mean().mean;
    let found = points.at(curve, lost)?;
    let losses = found.total(|one| one.packets_retransmitted) as f64 / found.total(|one| one.segments_delivered).max(1) as f64;
    Some((found.delay_ms_mean().mean - least) / losses)
}

/// A field: its name, the packet it is read off, its length in HT, and two packets that differ in it alone.
struct Field {
    name: &'static str,
    packet: &'static str,
    paper: usize,
    found: usize,
}

fn bytes(packet: &impl Packet) -> Vec<u8> {
    let mut buffer = vec![0; packet.encoded_len()];
    packet.encode(&mut Writer::new(&mut buffer));
    buffer
}

/// The last two bytes of every packet.
const CRC: usize = 2;

/// How many bytes differ, the CRC aside.
fn changed(one: &impl Packet, other: &impl Packet) -> usize {
    let (one, other) = (bytes(one), bytes(other));
    let fields = one.len().min(other.len()).saturating_sub(CRC);
    one[..fields].iter().zip(&other[..fields]).filter(|(one, other)| one != other).count()
}

const ALL_ONES: u16 = u16::MAX;

fn data(bytes: u16) -> Data {
    Data { connection: 0, seq: 0, segment: 0, packet: 0, last: true, room: bytes, bytes }
}

fn transmitter() -> TransmitterState {
    TransmitterState { connection: 0, sync: 0, time: 0, lseq: 0, class: Class::NONE, rate: 0 }
}

fn range(pairs: Pairs, number: u16) -> RangeList {
    let mut list = RangeList::new(pairs);
    while list.push(number, number) {}
    list
}

fn receiver() -> ReceiverState {
    ReceiverState {
        connection: 0,
        esync: 0,
        etime: 0,
        spgap: 0,
        class: Class::NONE,
        rate: 0,
        caack: 0,
        coverage: Coverage::Whole,
        ranges: range(Pairs::Four, 0),
        credit: 0,
    }
}

fn fields() -> Vec<Field> {
    let dt = |changes: Data| changed(&Forward::Data(data(0)), &Forward::Data(changes));
    let txs = |changes: TransmitterState| changed(&Forward::State(transmitter()), &Forward::State(changes));
    let rxs = |changes: ReceiverState| changed(&Feedback::State(receiver()), &Feedback::State(changes));
    let types = changed(&Forward::State(transmitter()), &Feedback::State(receiver()));
    let field = |name, packet, paper, found| Field { name, packet, paper, found };
    vec![
        field("CI", "all", 1, dt(Data { connection: u8::MAX, ..data(0) })),
        field("TI", "all", 1, types.min(1)),
        field("SEQ", "DT", 2, dt(Data { seq: ALL_ONES, ..data(0) })),
        field("SYNC", "TXS", 2, txs(TransmitterState { sync: ALL_ONES, ..transmitter() })),
        field("TIME", "TXS", 2, txs(TransmitterState { time: ALL_ONES, ..transmitter() })),
        field("LSEQ", "TXS", 2, txs(TransmitterState { lseq: ALL_ONES, ..transmitter() })),
        field("CLASS", "TXS", 1, txs(TransmitterState { class: Class::ALL, ..transmitter() })),
        field("RATE", "TXS", 2, txs(TransmitterState { rate: ALL_ONES, ..transmitter() })),
        field("ESYNC", "RXS", 2, rxs(ReceiverState { esync: ALL_ONES, ..receiver() })),
        field("ETIME", "RXS", 2, rxs(ReceiverState { etime: ALL_ONES, ..receiver() })),
        field("SPGAP", "RXS", 2, rxs(ReceiverState { spgap: ALL_ONES, ..receiver() })),
        field("CLASS", "RXS", 1, rxs(ReceiverState { class: Class::ALL, ..receiver() })),
        field("RATE", "RXS", 2, rxs(ReceiverState { rate: ALL_ONES, ..receiver() })),
        field("CAACK", "RXS", 2, rxs(ReceiverState { caack: ALL_ONES, ..receiver() })),
        field("RANGE", "RXS", 16, rxs(ReceiverState { ranges: range(Pairs::Four, ALL_ONES), ..receiver() })),
        field("CREDIT", "RXS", 2, rxs(ReceiverState { credit: ALL_ONES, ..receiver() })),
    ]
}

fn lengths() -> Vec<Vec<String>> {
    let eight = ReceiverState { ranges: RangeList::new(Pairs::Eight), ..receiver() };
    let row = |name: &str, paper: &str, found: usize| vec![name.to_owned(), paper.to_owned(), found.to_string()];
    vec![
        row("DT, without its data", "6", bytes(&Forward::Data(data(0))).len()),
        row("TXS", "13", bytes(&Forward::State(transmitter())).len()),
        row("RXS, four pairs", "33", bytes(&Feedback::State(receiver())).len()),
        row("RXS, eight pairs", "not stated", bytes(&Feedback::State(eight)).len()),
    ]
}

fn tables(points: &Measured) -> Vec<TextTable> {
    let row = |field: Field| vec![field.name.to_owned(), field.packet.to_owned(), field.paper.to_string(), field.found.to_string()];
    let columns = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<String>>();
    let mut heads = columns(&["share of states lost"]);
    heads.extend(STATES_LOST.map(|lost| lost.to_string()));
    let delays = CURVES.map(|(curve, label)| {
        let mut row = vec![label.to_owned()];
        row.extend(STATES_LOST.map(|lost| added_ms(points, curve, lost).map_or_else(String::new, |added| format!("{added:.1}"))));
        row
    });
    vec![
        TextTable {
            title: "Fields, bytes".to_owned(),
            columns: columns(&["field", "read off", "HT", "here"]),
            rows: fields().into_iter().map(row).collect(),
        },
        TextTable { title: "Packets, bytes".to_owned(), columns: columns(&["packet", "HT", "here"]), rows: lengths() },
        TextTable { title: "Delay that each loss of a packet adds (ms)".to_owned(), columns: heads, rows: delays.to_vec() },
    ]
}

fn slip(points: &Measured) -> Option<Finding> {
    let row = |curve: &str| STATES_LOST.iter().map(|lost| added_ms(points, curve, *lost)).collect::<Option<Vec<f64>>>();
    let [htpnet, counting, slipping, segstream] = CURVES.map(|(curve, _)| row(curve));
    let (htpnet, counting, slipping, segstream) = (htpnet?, counting?, slipping?, segstream?);
    let period_ms = PERIOD.as_secs_f64() * 1e3;
    // A third of the states lost: a clock of states runs at two thirds, so a wait of RTD + T becomes half as long again.
    let (at, lost) = (3, STATES_LOST[3]);
    let grown = |row: &[f64]| row[at] - row[0];
    let slipped = grown(&slipping) >= 0.8 * (RTT + PERIOD).as_secs_f64() * 1e3 * lost / (1.0 - lost);
    // One exchange more for each that fails, there or back.
    let failing = 1.0 / ((1.0 - lost) * (1.0 - lost)) - 1.0;
    let covered = grown(&htpnet) <= 1.2 * period_ms * failing;
    let parts = [
        Part::point("HTPNET's waits do not add up", covered),
        Part::also("SNR slips where a state is one interval", slipped && grown(&htpnet) < 0.5 * grown(&slipping)),
        Part::also("SNR as HT describes it, with the count, slips", grown(&htpnet) < grown(&counting)),
    ];
    let told = |row: &[f64]| row.iter().map(|added| format!("{added:.1}")).collect::<Vec<_>>().join(" / ");
    let measured = format!(
        "each loss of a packet adds, with 0 / 0.1 / 0.2 / 0.3 / 0.5 of the states lost: HTPNET {} ms, SNR {} ms without the count of \
         intervals and {} ms with it; Segstream {} ms",
        told(&htpnet),
        told(&slipping),
        told(&counting),
        told(&segstream)
    );
    Some(Finding::of(parts, measured).because(
        "HTPNET waits for the next exchange that succeeds, one period for each that fails in a row, whatever failed before; SNR without \
         the count waits for as many states as ever, each that is lost one period. With the count, which HT describes as part of SNR, \
         a lost state costs SNR no more than HTPNET, and less where the way there loses states too.",
    ))
}
