//! Verdicts and holes as both ends hear of them, over a path that loses chosen packets.

use crate::loopback::{PATIENCE, any, ends, pattern, through_link, tolerant};
use segstream::{Contract, Judged, Received, Statistics, StreamId, Timestamp, Tolerance, UnitIndex, Verdict, blocking};
use std::thread;

const UNITS: usize = 64;
const UNIT_BYTES: usize = 1024;

/// Sends one segment of 64 units through a link with `loss`: what the sender and the receiver hear of it.
fn one_segment(contract: Contract, loss: &str) -> (Judged, Received, Statistics) {
    let mut server = blocking::Endpoint::builder().allow_anyone().listen(any()).unwrap();
    let to = server.local_addr();
    let receiving = thread::spawn(move || {
        let id = server.accept(PATIENCE).unwrap();
        let mut connection = server.connection(id);
        let received = connection.recv(StreamId(0), PATIENCE).unwrap().unwrap();
        assert!(connection.recv(StreamId(0), PATIENCE).unwrap().is_none());
        server.close().unwrap();
        received
    });
    let (judged, statistics) = through_link(to, loss, |link| {
        let mut client = blocking::Endpoint::builder().config(segstream::Config::default().with_rate_megabits(1_000)).bind(any()).unwrap();
        let id = client.connect(segstream::Peer::anyone(link), vec![contract]).unwrap();
        let mut connection = client.connection(id);
        let segment = connection.send(StreamId(0), pattern(1, UNITS * UNIT_BYTES)).unwrap();
        let judged = connection.verdict(StreamId(0), segment, PATIENCE).unwrap();
        let statistics = connection.statistics().unwrap();
        connection.close(0, "").unwrap();
        (judged, statistics)
    });
    (judged, receiving.join().unwrap(), statistics)
}

fn assert_bytes_are_zero_in_the_holes_only(received: &Received) {
    let expected = pattern(1, UNITS * UNIT_BYTES);
    for unit in 0..UNITS {
        let range = unit * UNIT_BYTES..(unit + 1) * UNIT_BYTES;
        let hole = received.holes.iter().any(|hole| hole.contains(UnitIndex(unit as u32)));
        if hole {
            assert!(received.bytes[range].iter().all(|&byte| byte == 0), "unit {unit} is a hole");
        } else {
            assert_eq!(received.bytes[range.clone()], expected[range], "unit {unit} is there");
        }
    }
}

/// Packet 0 is the request, 1 the state that follows it; at this rate the units of the segment follow in one run.
const LOST: &str = "list:10,20,30";

#[test]
fn holes_within_tolerance_stay_and_both_ends_name_the_same() {
    ends(|| {
        let (judged, received, statistics) = one_segment(tolerant(4), LOST);
        assert_eq!(judged.verdict, Verdict::WithinTolerance);
        assert_eq!(received.verdict, Verdict::WithinTolerance);
        assert_eq!(judged.holes, received.holes);
        assert_eq!(judged.missing(), 3);
        assert!(judged.holes.iter().all(|hole| hole.len() == 1), "interleaving keeps losses apart: {:?}", judged.holes);
        assert_eq!(statistics.units_retransmitted, 0, "a repair that was not needed");
        assert_eq!(judged.to_string(), "segment 0: within_tolerance, 3 units missing");
        assert_bytes_are_zero_in_the_holes_only(&received);
    });
}

#[test]
fn without_tolerance_the_same_losses_are_repaired() {
    ends(|| {
        let (judged, received, statistics) = one_segment(Contract::default(), LOST);
        assert_eq!((judged.verdict, received.verdict), (Verdict::Complete, Verdict::Complete));
        assert_eq!((judged.missing(), received.holes.len()), (0, 0));
        // A hedge on top: the loss was 3 of some 60, and more may be lost of what repairs them.
        let repairs = statistics.units_retransmitted + statistics.repair_units_sent;
        assert!((3..=8).contains(&repairs), "{repairs} units for three that were lost");
        assert_bytes_are_zero_in_the_holes_only(&received);
    });
}

#[test]
fn too_many_holes_are_repaired_until_the_tolerance_holds() {
    ends(|| {
        let (judged, received, statistics) = one_segment(tolerant(1), LOST);
        assert!(judged.verdict.is_met());
        assert_eq!(judged.holes, received.holes);
        assert!(statistics.units_retransmitted >= 2);
        let holes = received.holes.iter().flatten();
        assert!(Tolerance::new(64, 1, 1).unwrap().allows(holes, 0));
        assert_bytes_are_zero_in_the_holes_only(&received);
    });
}

#[test]
fn a_segment_may_have_a_tolerance_of_its_own() {
    ends(|| {
        let mut server = blocking::Endpoint::builder().allow_anyone().listen(any()).unwrap();
        let to = server.local_addr();
        through_link(to, LOST, |link| {
            let mut client =
                blocking::Endpoint::builder().config(segstream::Config::default().with_rate_megabits(1_000)).bind(any()).unwrap();
            let serving = thread::spawn(move || {
                let id = server.accept(PATIENCE).unwrap();
                server.connection(id).closed(PATIENCE).unwrap();
            });
            let id = client.connect(segstream::Peer::anyone(link), vec![Contract::default()]).unwrap();
            let mut connection = client.connection(id);
            let segment =
                connection.send_at(StreamId(0), pattern(1, UNITS * UNIT_BYTES), Timestamp::ZERO, Some(Tolerance::any(64))).unwrap();
            let judged = connection.verdict(StreamId(0), segment, PATIENCE).unwrap();
            assert_eq!((judged.verdict, judged.missing()), (Verdict::WithinTolerance, 3));
            connection.close(0, "").unwrap();
            serving.join().unwrap();
        });
    });
}
