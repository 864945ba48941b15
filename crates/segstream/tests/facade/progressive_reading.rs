//! Streams read unit by unit: every unit once, then the verdict on its segment.

use crate::loopback::{PATIENCE, any, ends, ends_async, pattern, through_link, tolerant};
use segstream::{Contract, Order, Progress, Received, SegmentNumber, StreamId, UnitIndex, Verdict, blocking};
use std::collections::BTreeMap;
use std::thread;

const SEGMENTS: u64 = 10;
const LENGTH: usize = 64 * 1024 - 100;

/// What was told of segments that are not judged yet.
#[derive(Default)]
struct Told(BTreeMap<u64, Vec<u8>>, usize);

impl Told {
    fn take(&mut self, progress: Progress) -> Option<Received> {
        match progress {
            Progress::Units(units) => {
                let told = self.0.entry(units.segment.0).or_insert_with(|| vec![0; 64]);
                for unit in units.run {
                    told[unit.0 as usize] += 1;
                }
                let (start, end) = (units.offset as usize, units.offset as usize + units.bytes.len());
                assert_eq!(units.bytes, pattern(units.segment.0, LENGTH)[start..end]);
                self.1 += 1;
                None
            }
            Progress::Judged(received) => {
                let told = self.0.remove(&received.segment.0).unwrap_or_else(|| vec![0; 64]);
                for (unit, times) in told.into_iter().enumerate() {
                    let hole = received.holes.iter().any(|hole| hole.contains(UnitIndex(unit as u32)));
                    assert_eq!(times, u8::from(!hole), "segment {}, unit {unit}", received.segment);
                }
                Some(received)
            }
            other => panic!("{other:?} is new here"),
        }
    }
}

fn read_all(contract: Contract, loss: &str) -> Vec<Received> {
    let mut server = blocking::Endpoint::builder().allow_anyone().listen(any()).unwrap();
    let to = server.local_addr();
    let reading = thread::spawn(move || {
        let id = server.accept(PATIENCE).unwrap();
        let mut connection = server.connection(id);
        let (mut told, mut judged) = (Told::default(), Vec::new());
        while let Some(progress) = connection.next_units(StreamId(0), PATIENCE).unwrap() {
            judged.extend(told.take(progress));
        }
        assert!(told.0.is_empty(), "units of a segment without a verdict");
        assert!(told.1 > judged.len(), "segments of 64 units came in one piece each");
        server.close().unwrap();
        judged
    });
    through_link(to, loss, |link| {
        let mut client = blocking::Endpoint::builder().config(segstream::Config::default().with_rate_megabits(50)).bind(any()).unwrap();
        let id = client.connect(segstream::Peer::anyone(link), vec![contract]).unwrap();
        let mut connection = client.connection(id);
        for segment in 0..SEGMENTS {
            connection.send(StreamId(0), pattern(segment, LENGTH)).unwrap();
        }
        connection.close(0, "").unwrap();
    });
    reading.join().unwrap()
}

#[test]
fn in_order_with_repairs() {
    ends(|| {
        let judged = read_all(Contract::default(), "5%");
        assert_eq!(judged.iter().map(|received| received.segment.0).collect::<Vec<_>>(), (0..SEGMENTS).collect::<Vec<_>>());
        assert!(judged.iter().all(|received| received.verdict == Verdict::Complete));
    });
}

#[test]
fn interleaved_with_holes_and_as_accepted() {
    ends(|| {
        let judged = read_all(Contract { order: Order::AsAccepted, ..tolerant(6) }, "3%");
        assert_eq!(judged.len() as u64, SEGMENTS);
        assert!(judged.iter().all(|received| received.verdict.is_met()));
        assert!(judged.iter().any(|received| !received.holes.is_empty()));
    });
}

#[test]
fn reading_may_begin_late_and_change_to_whole_segments() {
    ends_async(async {
        let server = segstream::Endpoint::builder().allow_anyone().listen(any()).unwrap();
        let client = segstream::Endpoint::builder().bind(any()).unwrap();
        let (connection, senders) = client.connect(segstream::Peer::anyone(server.local_addr()), vec![Contract::default()]).await.unwrap();
        for segment in 0..SEGMENTS {
            senders[0].send(pattern(segment, LENGTH)).await.unwrap();
        }
        for segment in 0..SEGMENTS {
            assert_eq!(senders[0].verdict(SegmentNumber(segment)).await.unwrap().verdict, Verdict::Complete);
        }
        // Everything is judged before the first look.
        let accepted = server.accept().await.unwrap().unwrap();
        let mut receiver = accepted.accept_stream().await.unwrap().unwrap();
        let mut told = Told::default();
        let first = loop {
            if let Some(received) = told.take(receiver.next_units().await.unwrap().unwrap()) {
                break received;
            }
        };
        assert_eq!(first.segment, SegmentNumber(0));
        assert!(matches!(receiver.next_units().await.unwrap().unwrap(), Progress::Units(units) if units.segment == SegmentNumber(1)));
        for segment in 1..SEGMENTS {
            assert_eq!(receiver.recv().await.unwrap().unwrap().bytes, pattern(segment, LENGTH));
        }
        senders[0].finish();
        assert!(receiver.next_units().await.unwrap().is_none());
        connection.close(0, "").await.unwrap();
    });
}
