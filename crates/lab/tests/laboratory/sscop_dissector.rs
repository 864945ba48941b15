//! SSCOP's bytes as another implementation of the standard reads them: the dissector of tshark.
//!
//! Skipped, and said so, where no tshark is installed, unless `SEGSTREAM_REQUIRE_TSHARK=1`.

use segstream_base::codec::Reader;
use segstream_base::halves::Packet;
use segstream_base::random::Seed;
use segstream_base::{Bandwidth, Duration};
use segstream_blocks::RateSpec;
use segstream_path::PathConfig;
use segstream_schemes::sscop::{Config, Feedback, Forward, Receiver, Sender};
use segstream_sim::pcap::SENDER;
use segstream_sim::{End, Pcap, Setup, Simulation, Source, Vantage};
use segstream_testbed::tshark;

/// What tshark prints of a packet, in this order.
const FIELDS: [&str; 12] = [
    "udp.srcport",
    "sscop.type",
    "sscop.source",
    "sscop.pad_length",
    "sscop.sq",
    "sscop.s",
    "sscop.ps",
    "sscop.mr",
    "sscop.r",
    "sscop.stat.s",
    "_ws.malformed",
    "_ws.expert",
];

/// 600 segments over a path that loses one packet in ten in each direction, as a capture at one end.
fn capture(vantage: Vantage, segment_bytes: u64, loss: &str) -> Vec<u8> {
    let rate = Bandwidth::from_megabits_per_second(10);
    // Lists of seven elements, so that some are cut, and a POLL after 40 SDs beside those of the timer.
    let config = Config {
        window: 120,
        rate: RateSpec::smooth(rate),
        timer_poll: Duration::from_millis(20),
        max_pd: Some(40),
        max_stat: 7,
        timer_cc: Duration::from_millis(50),
        ..Config::default()
    };
    let path = PathConfig { loss: loss.parse().unwrap(), bandwidth: Some(rate), ..PathConfig::default() };
    let setup = Setup { forward: path.clone(), back: path, check: true, ..Setup::default() };
    let (sender, receiver) = (Sender::new(config.clone(), Default::default()).unwrap(), Receiver::new(config, Default::default()).unwrap());
    let source = Source::Backlog { segments: 600, segment_bytes };
    let tap = Pcap::new(Vec::new(), vantage).unwrap();
    let mut run = Simulation::new(sender, receiver, source, &setup, Seed(5), tap).unwrap();
    assert_eq!(run.settle(), End::Settled);
    run.into_observer().finish().unwrap()
}

/// The UDP payloads of a capture as `sim` writes them, and whether each comes from the sender.
fn datagrams(mut capture: &[u8]) -> Vec<(bool, Vec<u8>)> {
    let mut take = |count: usize| {
        let (taken, rest) = capture.split_at_checked(count)?;
        capture = rest;
        Some(taken)
    };
    take(24).unwrap();
    let mut datagrams = Vec::new();
    while let Some(header) = take(16) {
        let frame = take(u32::from_le_bytes(header[8..12].try_into().unwrap()) as usize).unwrap();
        datagrams.push((u16::from_be_bytes([frame[20], frame[21]]) == SENDER.1, frame[28..].to_vec()));
    }
    datagrams
}

/// The line that tshark should print of a datagram.
fn expected((forward, bytes): &(bool, Vec<u8>)) -> String {
    let mut line = Line { port: if *forward { 4000 } else { 4001 }, ..Line::default() };
    let text = |number: u32| number.to_string();
    if *forward {
        match Forward::decode(&mut Reader::new(bytes)).unwrap() {
            Forward::Bgn { n_sq, n_mr } => (line.kind, line.pad, line.sq, line.mr) = (1, "0".to_owned(), n_sq.to_string(), text(n_mr)),
            Forward::End { by_sscop: false } => (line.kind, line.pad, line.source) = (3, "0".to_owned(), "User"),
            Forward::Sd { n_s, bytes } => {
                (line.kind, line.pad, line.s) = (8, text(bytes.next_multiple_of(4) as u32 - u32::from(bytes)), text(n_s));
            }
            Forward::Poll { n_ps, n_s } => (line.kind, line.ps, line.s) = (0xa, text(n_ps), text(n_s)),
            other => panic!("{other:?}"),
        }
    } else {
        let elements = |list: &[u32]| list.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        match Feedback::decode(&mut Reader::new(bytes)).unwrap() {
            Feedback::Bgak { n_mr } => (line.kind, line.pad, line.mr) = (2, "0".to_owned(), text(n_mr)),
            Feedback::Endak => line.kind = 4,
            Feedback::Stat { list, n_ps, n_mr, n_r } => {
                (line.kind, line.list, line.ps, line.mr, line.r) = (0xb, elements(&list), text(n_ps), text(n_mr), text(n_r));
            }
            Feedback::Ustat { list, n_mr, n_r } => (line.kind, line.list, line.mr, line.r) = (0xc, elements(&list), text(n_mr), text(n_r)),
        }
    }
    line.print()
}

#[derive(Default)]
struct Line {
    port: u16,
    kind: u8,
    source: &'static str,
    pad: String,
    sq: String,
    s: String,
    ps: String,
    mr: String,
    r: String,
    list: String,
}

impl Line {
    fn print(&self) -> String {
        let Self { port, kind, source, pad, sq, s, ps, mr, r, list } = self;
        format!("{port}|0x{kind:02x}|{source}|{pad}|{sq}|{s}|{ps}|{mr}|{r}|{list}||")
    }
}

/// What tshark prints of a capture; nothing where there is no tshark.
fn dissected(capture: &[u8]) -> Option<Vec<String>> {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("sscop.pcap");
    std::fs::write(&file, capture).unwrap();
    let decoding = ["-o", "sscop.payload:data", "-d", "udp.port==4000,sscop", "-d", "udp.port==4001,sscop"];
    let columns = ["-T", "fields", "-E", "separator=|", "-E", "aggregator=,"];
    let fields = FIELDS.iter().flat_map(|field| ["-e", field]);
    let printed = tshark::dissected(&file, decoding.into_iter().chain(columns).chain(fields))?;
    Some(printed.lines().map(str::to_owned).collect())
}

fn assert_read(capture: &[u8]) -> Option<Vec<String>> {
    let found = dissected(capture)?;
    let wanted: Vec<String> = datagrams(capture).iter().map(expected).collect();
    for (number, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
        assert_eq!(found, wanted, "packet {} of {}", number + 1, FIELDS.join("|"));
    }
    assert_eq!(found.len(), wanted.len());
    Some(found)
}

#[test]
fn another_dissector_reads_every_pdu_as_it_was_meant() {
    let capture_bytes = capture(Vantage::Receiver, 1019, "0.1");
    let Some(lines) = assert_read(&capture_bytes) else { return };
    for kind in ["01", "02", "03", "04", "08", "0a", "0b", "0c"] {
        assert!(lines.iter().any(|line| line.contains(&format!("|0x{kind}|"))), "no PDU of type {kind}");
    }
    let elements = |line: &String| line.split('|').nth(9).filter(|list| !list.is_empty()).map_or(0, |list| list.split(',').count());
    assert_eq!(lines.iter().map(elements).max(), Some(7), "a list was cut");
}

#[test]
fn a_capture_at_the_sender_and_other_lengths_are_read_too() {
    for (segment_bytes, loss) in [(1020, "0.05"), (1, "0.3"), (2, "none")] {
        let capture = capture(Vantage::Sender, segment_bytes, loss);
        if assert_read(&capture).is_none() {
            return;
        }
    }
}

#[test]
fn a_pdu_that_is_wrong_is_not_read_as_it_was_meant() {
    let mut bytes = capture(Vantage::Sender, 4, "none");
    let Some(found) = dissected(&bytes) else { return };
    // The first packet is the BGN: its N(SQ) stands behind 24 + 16 + 28 + 3 bytes.
    bytes[71] = 9;
    let changed = dissected(&bytes).unwrap();
    assert_ne!(found[0], changed[0]);
    assert_eq!((found.len(), &found[1..]), (changed.len(), &changed[1..]));
}
