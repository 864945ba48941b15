//! GRO batches that no sender of ours makes, and those that a network makes of late datagrams: processed as their datagrams
//! would be one by one.

use segstream_base::codec::Writer;
use segstream_base::endpoint::{Arrival, Endpoint as _, Local};
use segstream_base::random::Seed;
use segstream_base::{Duration, Instant, Position, SegmentNumber, ShipmentNumber, StreamId, Tolerance, UnitIndex};
use segstream_proto::config::Config;
use segstream_proto::connection::{ConnectionEvent, Received};
use segstream_proto::endpoint::{ConnectionId, Endpoint};
use segstream_proto::rate::Rate;
use segstream_proto::session::{Plain, Trust};
use segstream_wire::contract::InterleaveChoice;
use segstream_wire::{Class, Contract, Header, Kind, Level, Part};
use std::net::SocketAddr;

const UNIT_BYTES: u32 = 1000;

/// A receiver whose peer has only made the connection; the rest of what comes from there is crafted.
struct Receiver {
    endpoint: Endpoint,
    id: ConnectionId,
    now: Instant,
    arrival: Arrival,
    /// The connection as datagrams to the receiver name it, and the highest number that has come.
    connection: u32,
    number: u64,
}

impl Receiver {
    fn new(tolerance: Tolerance) -> Self {
        let addresses: [SocketAddr; 2] = ["10.0.0.1:1".parse().unwrap(), "10.0.0.2:2".parse().unwrap()];
        let config = Config {
            class: Class::new(6).unwrap(),
            rate: Rate::Unpaced,
            epoch: Duration::ZERO,
            circuit_breaker: false,
            unlimited: true,
            accept: true,
            ..Config::default()
        };
        let mut ends = [Endpoint::new(config.clone(), Seed(1)).unwrap(), Endpoint::new(config, Seed(2)).unwrap()];
        let contract = Contract { unit_bytes: UNIT_BYTES, tolerance, interleave: InterleaveChoice::Off, ..Contract::default() };
        ends[0].connect(Instant::ZERO, addresses[1], &Trust::Anyone, vec![contract]).unwrap();
        let (mut names, mut id, mut now) = (None, None, Instant::ZERO);
        for step in 0..20 {
            now = Instant::ZERO + Duration::from_millis(step);
            for from in [0, 1] {
                ends[from].handle_timeout(now);
                let mut out = Vec::new();
                while ends[from].poll_transmit(now, 1, &mut out).is_some() {
                    let header = Header::decode(&mut segstream_base::codec::Reader::new(&out)).unwrap();
                    if from == 0 && header.level == Level::Data {
                        names = Some((header.connection, u64::from(header.number)));
                    }
                    ends[1 - from].handle_datagram(
                        now,
                        Arrival { from: addresses[from], to: Local::ANY, ecn: None, received: now },
                        &mut out,
                    );
                    out.clear();
                }
                while let Some((connection, _)) = ends[from].poll_event() {
                    id = Some(connection).filter(|_| from == 1).or(id);
                }
            }
        }
        let ((connection, number), [_, endpoint]) = (names.expect("a state of the sender"), ends);
        let arrival = Arrival { from: addresses[0], to: Local::ANY, ecn: None, received: now };
        Self { endpoint, id: id.expect("a connection"), now, arrival, connection, number }
    }

    /// A datagram of the peer, with its number counted from those of set-up.
    fn datagram(&self, number: u64, part: Part, byte: u8) -> Vec<u8> {
        let number = self.number + number;
        let mut datagram = vec![0; 4000];
        let mut writer = Writer::new(&mut datagram);
        Header { level: Level::Data, kind: Kind::Data, connection: self.connection, number: number as u32 }.encode(&mut writer);
        part.encode_header(&mut writer);
        writer.bytes(&vec![byte; part.payload_bytes as usize]);
        let length = writer.finish().unwrap();
        datagram.truncate(length + Plain::SEAL_BYTES);
        Plain::seal(ShipmentNumber(number), &mut datagram);
        datagram
    }

    fn hand_over(&mut self, datagrams: &[Vec<u8>], as_batch: bool) {
        let size = datagrams[0].len();
        assert!(datagrams.iter().all(|datagram| datagram.len() == size));
        if as_batch {
            self.endpoint.handle_batch(self.now, self.arrival, &mut datagrams.concat(), size);
        } else {
            datagrams.iter().for_each(|datagram| self.endpoint.handle_datagram(self.now, self.arrival, &mut datagram.clone()));
        }
    }

    fn alone(&mut self, datagram: Vec<u8>) {
        self.hand_over(&[datagram], false);
    }

    /// The units that its application is told of.
    fn told(&mut self) -> Vec<UnitIndex> {
        let mut told = Vec::new();
        while let Some((_, event)) = self.endpoint.poll_event() {
            if let ConnectionEvent::Units { units, .. } = event {
                told.extend(units);
            }
        }
        told
    }

    fn recv(&mut self) -> Option<Received> {
        self.endpoint.connection_mut(self.id).unwrap().recv(self.now, StreamId(0))
    }
}

fn unit(segment: SegmentNumber, first: u32, length: u64, payload_bytes: u32) -> Part {
    Part { segment, first: Position(first), count: 1, length: Some(length), payload_bytes, ..Part::default() }
}

#[test]
fn units_that_are_too_short_are_refused_in_a_batch_that_would_have_their_sum() {
    let outcomes = [false, true].map(|as_batch| {
        let mut receiver = Receiver::new(Tolerance::reliable(256));
        for at in 0..20 {
            let datagram = receiver.datagram(1 + u64::from(at), unit(SegmentNumber(0), at, 20_000, 1000), 0xAA);
            receiver.alone(datagram);
        }
        // Its buffer is used again for the next segment.
        drop(receiver.recv().expect("segment 0"));
        for at in 0..4 {
            let datagram = receiver.datagram(21 + u64::from(at), unit(SegmentNumber(1), at, 19_600, 1000), 0xBB);
            receiver.alone(datagram);
        }
        // Sixteen units of which the last is short by 400 bytes have as much payload as sixteen times 975.
        let crafted: Vec<Vec<u8>> =
            (4..20).map(|at| receiver.datagram(21 + u64::from(at), unit(SegmentNumber(1), at, 19_600, 975), 0xCC)).collect();
        receiver.hand_over(&crafted, as_batch);
        let refused = receiver.endpoint.connection(receiver.id).unwrap().receiver_counters().parts_refused;
        (receiver.recv(), refused)
    });
    assert_eq!(outcomes, [(None, 16), (None, 16)]);
}

#[test]
fn units_that_come_late_are_judged_in_a_batch_as_one_by_one() {
    let outcomes = [false, true].map(|as_batch| {
        let mut receiver = Receiver::new(Tolerance::new(20, 10, 5).unwrap());
        receiver.endpoint.connection_mut(receiver.id).unwrap().read_progressively(StreamId(0));
        for at in (0..8).chain(24..40) {
            let datagram = receiver.datagram(1 + u64::from(at), unit(SegmentNumber(0), at, 40_000, 1000), 1);
            receiver.alone(datagram);
        }
        let repair = receiver.datagram(42, Part { retransmission: true, ..unit(SegmentNumber(0), 8, 40_000, 1000) }, 1);
        receiver.alone(repair);
        let late: Vec<Vec<u8>> =
            (8..24).map(|at| receiver.datagram(1 + u64::from(at), unit(SegmentNumber(0), at, 40_000, 1000), 1)).collect();
        receiver.hand_over(&late, as_batch);
        let told = receiver.told();
        (receiver.recv().expect("a verdict"), told)
    });
    let [(one_by_one, told), batch] = outcomes;
    assert!(!one_by_one.holes.is_empty(), "it was good enough before the last of them came");
    assert!(told.windows(2).all(|pair| pair[0] != pair[1]));
    assert_eq!((one_by_one, told), batch);
}

#[test]
fn of_a_part_whose_middle_has_come_before_only_the_rest_is_told() {
    let mut receiver = Receiver::new(Tolerance::reliable(256));
    receiver.endpoint.connection_mut(receiver.id).unwrap().read_progressively(StreamId(0));
    let middle = receiver.datagram(1, Part { retransmission: true, ..unit(SegmentNumber(0), 1, 40_000, 1000) }, 1);
    let whole = receiver.datagram(2, Part { count: 3, ..unit(SegmentNumber(0), 0, 40_000, 3000) }, 1);
    receiver.alone(middle);
    receiver.alone(whole);
    assert_eq!(receiver.told(), [1, 0, 2].map(UnitIndex));
}
