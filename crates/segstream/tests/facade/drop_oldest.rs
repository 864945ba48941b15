//! A stream that gives up its oldest segment for a new one never makes its sender wait, and says what it gave up.

use crate::loopback::{PATIENCE, any, ends, pattern};
use segstream::{Contract, Peer, Run, SegmentNumber, StreamId, UnitIndex, Verdict, blocking};
use std::sync::mpsc::channel;
use std::thread;

const WINDOW_UNITS: u32 = 64;
const SEGMENT_UNITS: u32 = 4;
const SEGMENT_BYTES: usize = 1024 * SEGMENT_UNITS as usize;
const SEGMENTS: u64 = 200;
/// As many as fit the window. At least so many of the newest are never given up, because two windows are kept.
const VERDICTS_MAX: u64 = (WINDOW_UNITS / SEGMENT_UNITS) as u64;

#[test]
fn a_full_send_buffer_gives_up_the_oldest_unsent_segment_and_both_ends_are_told() {
    ends(|| {
        let mut receiver = blocking::Endpoint::builder().allow_anyone().driven_in_background().listen(any()).unwrap();
        let to = receiver.local_addr();
        let (all_sent, told) = channel();
        let sending = thread::spawn(move || {
            let mut sender = blocking::Endpoint::builder().driven_in_background().bind(any()).unwrap();
            let contract = Contract { window_units: WINDOW_UNITS, ..Contract::default() };
            let id = sender.connect(Peer::anyone(to), vec![contract]).unwrap();
            let mut connection = sender.connection(id);
            connection.set_drop_oldest(StreamId(0), true).unwrap();
            // The receiver takes nothing meanwhile, so without the policy this would never end.
            for segment in 0..SEGMENTS {
                assert_eq!(connection.send(StreamId(0), pattern(segment, SEGMENT_BYTES)).unwrap(), SegmentNumber(segment));
            }
            assert!(connection.statistics().unwrap().units_buffered <= 2 * u64::from(WINDOW_UNITS));
            all_sent.send(()).unwrap();
            connection.finish_stream(StreamId(0)).unwrap();
            let verdicts: Vec<_> =
                (0..SEGMENTS).map(|segment| connection.verdict(StreamId(0), SegmentNumber(segment), PATIENCE).unwrap()).collect();
            connection.close(0, "done").unwrap();
            verdicts
        });
        let id = receiver.accept(PATIENCE).unwrap();
        told.recv().unwrap();
        let mut connection = receiver.connection(id);
        let mut received = Vec::new();
        while let Some(segment) = connection.recv(StreamId(0), PATIENCE).unwrap() {
            received.push(segment);
        }
        let judged = sending.join().unwrap();
        assert_eq!(received.len() as u64, SEGMENTS);
        for (received, judged) in received.iter().zip(&judged) {
            assert_eq!((received.segment, received.verdict, &received.holes), (judged.segment, judged.verdict, &judged.holes));
            match received.verdict {
                Verdict::Complete => assert_eq!(received.bytes, pattern(received.segment.0, SEGMENT_BYTES)),
                Verdict::Expired => assert_eq!(received.holes, Vec::from_iter(Run::new(UnitIndex(0), UnitIndex(SEGMENT_UNITS)))),
                other => panic!("segment {} is {other}", received.segment),
            }
        }
        assert!(
            received.iter().rev().take(VERDICTS_MAX as usize).all(|segment| segment.verdict == Verdict::Complete),
            "the newest are sent"
        );
        let given_up = received.iter().filter(|segment| segment.verdict == Verdict::Expired).count() as u64;
        assert!(given_up >= SEGMENTS - 3 * VERDICTS_MAX, "only {given_up} were given up");
    });
}
