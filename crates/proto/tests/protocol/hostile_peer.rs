//! What a peer that keeps to the wire format, but to nothing else, can make an endpoint do: nothing that panics,
//! grows without end or takes long.

use core::net::SocketAddr;
use segstream_base::codec::{Reader, Writer};
use segstream_base::endpoint::{Arrival, Endpoint as _, Local};
use segstream_base::halves::Verdict;
use segstream_base::random::Seed;
use segstream_base::{
    Bandwidth, Duration, ExchangeNumber, Instant, Position, Run, SegmentNumber, ShipmentNumber, StreamId, Tolerance, UnitIndex,
};
use segstream_proto::config::Config;
use segstream_proto::connection::{Connection, ConnectionEvent};
use segstream_proto::endpoint::{ConnectionId, Endpoint};
use segstream_proto::session::Plain;
use segstream_wire::contract::{Contract, InterleaveChoice, Limits, SEGMENT_UNITS_MAX};
use segstream_wire::handshake::{Confirm, Cookie, Disconnect, Fragment, Request, VERSION};
use segstream_wire::header::HEADER_BYTES;
use segstream_wire::proposal::Proposal;
use segstream_wire::report::Arrived;
use segstream_wire::state::Finished;
use segstream_wire::{Class, Header, Kind, Level, Part, Report, ReportFrame, State, StateFrame};

/// The largest number that travels.
const HUGE: u64 = (1 << 62) - 1;

/// An endpoint, and what its peer must know to send whatever it likes.
struct Victim {
    endpoint: Endpoint,
    id: ConnectionId,
    local_id: u32,
    number: u64,
    now: Instant,
}

fn peer() -> SocketAddr {
    "10.0.0.9:9".parse().unwrap()
}

impl Victim {
    /// An endpoint with a connection of the peer, which has opened `streams`.
    fn new(streams: Vec<Contract>) -> Self {
        let mut endpoint = Endpoint::new(Config { accept: true, ..Config::default() }, Seed(1)).unwrap();
        ask(&mut endpoint, Instant::ZERO, 7, streams);
        let mut out = Vec::new();
        endpoint.poll_transmit(Instant::ZERO, 1, &mut out).unwrap();
        let number = Header::decode(&mut Reader::new(&out)).unwrap().number;
        let end = Plain::open(ShipmentNumber(u64::from(number)), &out).unwrap();
        let confirm = Confirm::decode(&mut Reader::new(&out[HEADER_BYTES..end])).unwrap();
        let id = endpoint.connections().next().unwrap();
        Self { endpoint, id, local_id: confirm.connection, number: 0, now: Instant::ZERO }
    }

    fn send(&mut self, kind: Kind, body: impl Fn(&mut Writer<'_>)) {
        self.number += 1;
        self.now += Duration::from_micros(10);
        let mut datagram = shipment(Level::Data, kind, self.local_id, self.number, body);
        let arrival = Arrival { from: peer(), to: Local::ANY, ecn: None, received: self.now };
        self.endpoint.handle_datagram(self.now, arrival, &mut datagram);
    }

    fn state(&mut self, frames: &[StateFrame]) {
        let state = State { sync: ExchangeNumber(self.number), frames: frames.iter().cloned().collect(), ..State::default() };
        self.send(Kind::State, |out| state.encode(out));
    }

    fn part(&mut self, part: Part) {
        let payload = vec![1; part.payload_bytes as usize];
        self.send(Kind::Data, |out| {
            part.encode_header(out);
            out.bytes(&payload);
        });
    }

    fn connection(&mut self) -> &mut Connection {
        self.endpoint.connection_mut(self.id).unwrap()
    }
}

/// Asks for a connection, twice: the second time with the cookie that answers the first.
fn ask(endpoint: &mut Endpoint, now: Instant, request: u64, streams: Vec<Contract>) {
    let (limits, rate) = (Limits::default(), Bandwidth::from_megabits_per_second(1));
    let proposal = Proposal { version: VERSION, request, connection: 5, class: Class::ALL, rate, limits, streams, extensions: 0 };
    let mut parameters = vec![0; 1000];
    let mut out = Writer::new(&mut parameters);
    proposal.encode(&mut out);
    let length = out.finish().unwrap();
    let mut bytes = (length as u16).to_be_bytes().to_vec();
    bytes.extend_from_slice(&parameters[..length]);
    let fragment = Fragment { offset: 0, bytes };
    let mut asked = Request { version: VERSION, request, connection: 5, protection: 0, token: Vec::new(), fragment };
    while endpoint.poll_transmit(now, 1, &mut Vec::new()).is_some() {}
    send_request(endpoint, now, &asked);
    let mut out = Vec::new();
    endpoint.poll_transmit(now, 1, &mut out).unwrap();
    let end = Plain::open(ShipmentNumber(0), &out).unwrap();
    asked.token = Cookie::decode(&mut Reader::new(&out[HEADER_BYTES..end])).unwrap().token;
    send_request(endpoint, now, &asked);
}

fn send_request(endpoint: &mut Endpoint, now: Instant, request: &Request) {
    let arrival = Arrival { from: peer(), to: Local::ANY, ecn: None, received: now };
    let mut datagram = shipment(Level::Initial, Kind::Request, 0, 0, |out| {
        request.encode(out);
        out.bytes(&[0; 1200]);
    });
    endpoint.handle_datagram(now, arrival, &mut datagram);
}

fn shipment(level: Level, kind: Kind, connection: u32, number: u64, body: impl Fn(&mut Writer<'_>)) -> Vec<u8> {
    let mut datagram = vec![0; 3000];
    let mut out = Writer::new(&mut datagram);
    Header { level, kind, connection, number: number as u32 }.encode(&mut out);
    body(&mut out);
    let written = out.finish().unwrap();
    datagram.truncate(written + Plain::SEAL_BYTES);
    Plain::seal(ShipmentNumber(number), &mut datagram);
    datagram
}

fn part(segment: SegmentNumber, first: u32, length: Option<u64>) -> Part {
    let opened = length.is_none();
    let (source_time, payload_bytes) = (Instant::ZERO, if length == Some(1) { 1 } else { 1024 });
    Part {
        stream: StreamId(0),
        segment,
        first: Position(first),
        count: 1,
        retransmission: false,
        opened,
        length,
        tolerance: None,
        source_time,
        payload_bytes,
    }
}

#[test]
fn streams_opened_without_end_keep_no_more_than_may_be_live() {
    let streams_max = Limits::default().streams;
    let kept = |victim: &mut Victim| victim.connection().streams_kept().1;
    // They end at once, without a segment.
    let mut victim = Victim::new(vec![]);
    for stream in 0..5000 {
        let open = StateFrame::Open { stream: StreamId(stream), contract: Box::new(Contract::default()) };
        victim.state(&[open, StateFrame::End { stream: StreamId(stream), segments: 0 }]);
        while victim.endpoint.poll_event().is_some() {}
        assert!(kept(&mut victim) <= 1);
    }
    assert!(victim.connection().has_retired(StreamId(0)) && !victim.connection().has_retired(StreamId(5000)));
    // Each has a segment, whose verdict is never confirmed.
    let mut victim = Victim::new(vec![]);
    for stream in 0..2000 {
        victim.state(&[StateFrame::Open { stream: StreamId(stream), contract: Box::new(Contract::default()) }]);
        victim.part(Part { stream: StreamId(stream), ..part(SegmentNumber(0), 0, Some(1)) });
        victim.state(&[StateFrame::End { stream: StreamId(stream), segments: 1 }]);
        let now = victim.now;
        while victim.connection().recv(now, StreamId(stream)).is_some() {}
        while victim.endpoint.poll_transmit(now, 1, &mut Vec::new()).is_some() {}
        while victim.endpoint.poll_event().is_some() {}
    }
    assert_eq!(kept(&mut victim), streams_max as usize);
    // Numbers far apart.
    let mut victim = Victim::new(vec![]);
    for stream in (0..100_000_u32).map(|step| step * 40_000) {
        let open = StateFrame::Open { stream: StreamId(stream), contract: Box::new(Contract::default()) };
        victim.state(&[open, StateFrame::End { stream: StreamId(stream), segments: 0 }]);
        while victim.endpoint.poll_event().is_some() {}
    }
    assert!(kept(&mut victim) <= 1);
    // The application does not hear of any.
    let mut victim = Victim::new(vec![]);
    for stream in 0..2000 {
        let open = StateFrame::Open { stream: StreamId(stream), contract: Box::new(Contract::default()) };
        victim.state(&[open, StateFrame::End { stream: StreamId(stream), segments: 0 }]);
    }
    assert_eq!(kept(&mut victim), streams_max as usize);
    assert!(victim.connection().receiving_contract(StreamId(0)).is_some(), "what the application is told of is still there");
}

#[test]
fn what_comes_late_for_a_stream_that_has_retired_changes_nothing() {
    let mut victim = Victim::new(vec![]);
    for stream in 0..2 {
        let open = StateFrame::Open { stream: StreamId(stream), contract: Box::new(Contract::default()) };
        victim.state(&[open, StateFrame::End { stream: StreamId(stream), segments: 0 }]);
        while victim.endpoint.poll_event().is_some() {}
    }
    let refused = |victim: &mut Victim| victim.connection().receiver_counters().parts_refused;
    assert!(victim.connection().has_retired(StreamId(0)));
    while victim.endpoint.poll_event().is_some() {}
    let before = refused(&mut victim);
    victim.part(part(SegmentNumber(0), 0, Some(1)));
    victim.state(&[StateFrame::Open { stream: StreamId(0), contract: Box::new(Contract::default()) }]);
    victim.state(&[StateFrame::End { stream: StreamId(0), segments: 9 }, StateFrame::Waiting { stream: StreamId(0) }]);
    assert!(victim.connection().has_retired(StreamId(0)), "it is not opened again");
    assert_eq!((refused(&mut victim), victim.endpoint.poll_event().map(|(_, event)| event)), (before, None));
}

#[test]
fn a_segment_given_up_unsent_costs_neither_memory_nor_time_however_long_it_is_said_to_be() {
    let nearly_any = Tolerance::new(SEGMENT_UNITS_MAX, SEGMENT_UNITS_MAX, SEGMENT_UNITS_MAX - 1).unwrap();
    let mut victim = Victim::new(vec![Contract { tolerance: nearly_any, ..Contract::default() }]);
    for (round, length) in (0..).zip([HUGE, u64::from(SEGMENT_UNITS_MAX) * 1024, 1 << 40].repeat(200)) {
        let skip = Finished {
            stream: StreamId(0),
            segment: SegmentNumber(round),
            opened: false,
            length,
            source_time: Instant::ZERO,
            tolerance: Some(Tolerance::new(SEGMENT_UNITS_MAX, SEGMENT_UNITS_MAX - 1, SEGMENT_UNITS_MAX - 1).unwrap()),
            last_shipment: None,
        };
        victim.state(&[StateFrame::Skip(skip)]);
        let now = victim.now;
        let received = victim.connection().recv(now, StreamId(0)).unwrap();
        assert_eq!((received.segment.0, received.verdict, received.bytes.len()), (round, Verdict::Expired, 0));
    }
}

#[test]
fn a_part_of_a_segment_of_impossible_length_is_refused() {
    let mut victim = Victim::new(vec![Contract::default()]);
    victim.part(part(SegmentNumber(0), u32::MAX - 1, Some(HUGE)));
    assert_eq!(victim.connection().receiver_counters().parts_refused, 1);
}

#[test]
fn an_interleaved_open_segment_takes_no_more_memory_than_the_window() {
    let deep = |depth| Contract { interleave: InterleaveChoice::Depth(depth), window_units: 4096, ..Contract::default() };
    let mut victim = Victim::new(vec![deep(SEGMENT_UNITS_MAX)]);
    victim.part(part(SegmentNumber(0), 1, None));
    assert_eq!(victim.connection().peek(StreamId(0), SegmentNumber(0)).len(), 0, "its second unit is number 16384");
    let mut victim = Victim::new(vec![deep(4096)]);
    for segment in 0..100 {
        victim.part(part(SegmentNumber(segment), 4095, None));
    }
    let bytes: usize = (0..100).map(|segment| victim.connection().peek(StreamId(0), SegmentNumber(segment)).len()).sum();
    assert_eq!(bytes, 4096 * 1024, "one block fills the window");
}

#[test]
fn a_sender_that_never_confirms_a_verdict_is_not_served_for_ever() {
    let mut victim = Victim::new(vec![Contract { window_segments: 1500, ..Contract::default() }]);
    let mut taken = 0;
    for segment in 0..8000 {
        victim.part(part(SegmentNumber(segment), 0, Some(1)));
        let now = victim.now;
        taken += u64::from(victim.connection().recv(now, StreamId(0)).is_some());
    }
    assert_eq!(taken, 4 * 1500);
}

#[test]
fn a_false_echo_of_time_cannot_hold_an_ended_connection() {
    let mut victim = Victim::new(vec![]);
    victim.now += Duration::from_secs(1_000_000);
    let report = Report { time: Some(0), ..Report::default() };
    victim.send(Kind::Report, |out| report.encode(out));
    let now = victim.now;
    victim.connection().abort(now, 0, "enough");
    victim.endpoint.handle_timeout(now + Duration::from_secs(60));
    assert!(victim.endpoint.is_drained(victim.id));
}

#[test]
fn a_report_of_what_cannot_be_ends_the_connection_with_a_reason() {
    let arrived = |change: fn(&mut Arrived)| {
        let mut arrived = Arrived { shipments: 1, bytes: 100, ..Arrived::default() };
        change(&mut arrived);
        Report { frames: [ReportFrame::Arrival(arrived)].into_iter().collect(), ..Report::default() }
    };
    let cases = [
        ("a shipment that never left", Report { echo: Some(ShipmentNumber(1)), ..Report::default() }),
        ("a time that has not come", Report { time: Some(HUGE), ..Report::default() }),
        ("more bytes", arrived(|arrived| arrived.bytes = 10_000_000)),
        ("more shipments", arrived(|arrived| arrived.shipments = 1000)),
        ("more shipments", arrived(|arrived| arrived.lost = HUGE)),
        ("more shipments", arrived(|arrived| arrived.marked = 2)),
    ];
    for (part, report) in cases {
        let mut victim = Victim::new(vec![]);
        victim.send(Kind::Report, |out| Report { echo: Some(ShipmentNumber(0)), ..Report::default() }.encode(out));
        victim.send(Kind::Report, |out| arrived(|_| {}).encode(out));
        let ended = |(_, event)| matches!(event, ConnectionEvent::Closed(_));
        assert!(!core::iter::from_fn(|| victim.endpoint.poll_event()).any(ended), "what can be is believed");
        victim.send(Kind::Report, |out| report.encode(out));
        let events = core::iter::from_fn(|| victim.endpoint.poll_event()).map(|(_, event)| event);
        let reason =
            events.filter_map(|event| if let ConnectionEvent::Closed(reason) = event { Some(reason.to_string()) } else { None }).last();
        let told = reason.expect(part);
        assert!(told.starts_with("the peer violated the protocol: it ") && told.contains(part), "{told}");
        let mut out = Vec::new();
        victim.endpoint.poll_transmit(victim.now, 1, &mut out).expect("the peer hears of it");
        assert_eq!(Header::decode(&mut Reader::new(&out)).map(|header| header.kind), Ok(Kind::Disconnect));
    }
}

#[test]
fn maps_of_holes_that_contradict_each_other_make_one_map() {
    let mut victim = Victim::new(vec![]);
    victim.state(&[]);
    let now = victim.now;
    let stream = victim.connection().open_stream(now, Contract::default()).unwrap();
    victim.connection().send(now, stream, vec![0; 10 * 1024].into(), now, None).unwrap();
    let hole = |start, end| Run::new(UnitIndex(start), UnitIndex(end)).unwrap();
    let judged = |units, from, to, hole| ReportFrame::Judged {
        stream,
        segment: SegmentNumber(0),
        verdict: Verdict::WithinTolerance,
        units,
        from: UnitIndex(from),
        to: UnitIndex(to),
        holes: [hole].into_iter().collect(),
    };
    let frames = [
        judged(u32::MAX, 5, u32::MAX, hole(5, u32::MAX)),
        judged(10, 5, 10, hole(5, 10)),
        judged(10, 4, 10, hole(4, 10)),
        judged(10, 0, 4, hole(1, 2)),
    ];
    let report = Report { frames: frames.into_iter().collect(), ..Report::default() };
    victim.send(Kind::Report, |out| report.encode(out));
    let events = core::iter::from_fn(|| victim.endpoint.poll_event()).map(|(_, event)| event);
    let maps: Vec<_> =
        events.filter_map(|event| if let ConnectionEvent::Judged { holes, .. } = event { Some(holes) } else { None }).collect();
    assert_eq!(maps, [[hole(1, 2), hole(4, 10)]]);
}

#[test]
fn units_of_a_segment_that_was_taken_as_a_whole_are_not_told_after_it() {
    let mut victim = Victim::new(vec![Contract::default()]);
    let _ = victim.connection().read_progressively(StreamId(0));
    victim.part(part(SegmentNumber(0), 0, Some(1)));
    let now = victim.now;
    assert!(victim.connection().recv(now, StreamId(0)).is_some());
    let units = core::iter::from_fn(|| victim.endpoint.poll_event()).filter(|(_, event)| matches!(event, ConnectionEvent::Units { .. }));
    assert_eq!(units.count(), 0);
}

#[test]
fn set_ups_that_were_given_up_leave_room_for_new_ones() {
    let mut endpoint = Endpoint::new(Config { accept: true, ..Config::default() }, Seed(1)).unwrap();
    for request in 0..17 {
        ask(&mut endpoint, Instant::ZERO, request, vec![]);
    }
    assert_eq!((endpoint.unmatched.rejected, endpoint.connections().count()), (1, 16));
    let later = Instant::ZERO + Config::default().connect_timeout;
    endpoint.handle_timeout(later);
    ask(&mut endpoint, later, 17, vec![]);
    assert_eq!((endpoint.unmatched.rejected, endpoint.connections().count()), (1, 17));
}

#[test]
fn a_peer_that_never_stops_saying_goodbye_does_not_keep_the_connection() {
    let mut victim = Victim::new(vec![]);
    victim.state(&[]);
    let now = victim.now;
    victim.connection().abort(now, 0, "enough");
    let mut goodbyes = 0;
    while !victim.endpoint.is_drained(victim.id) && goodbyes < 600 {
        goodbyes += 1;
        victim.now += Duration::from_millis(10);
        let now = victim.now;
        victim.endpoint.handle_timeout(now);
        victim.send(Kind::Disconnect, |out| Disconnect { code: 0, abort: true, detail: String::new() }.encode(out));
        while victim.endpoint.poll_transmit(now, 1, &mut Vec::new()).is_some() {}
    }
    assert!((2..=200).contains(&goodbyes), "the first are answered, and after two seconds at most it is forgotten: {goodbyes}");
}
