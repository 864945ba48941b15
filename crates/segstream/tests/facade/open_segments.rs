//! Segments that are sent while they are made.

use crate::loopback::{PATIENCE, any, ends, ends_async, pattern};
use segstream::{Contract, Error, SegmentNumber, StreamId, SubmitError, UnitIndex, Verdict, blocking};
use std::thread;

const PIECES: [usize; 5] = [10, 5_000, 1, 0, 70_000];

fn whole() -> Vec<u8> {
    PIECES.iter().enumerate().flat_map(|(number, &length)| pattern(number as u64, length)).collect()
}

#[test]
fn a_blocking_writer_gives_one_segment_and_an_abandoned_one_ends_where_it_stands() {
    ends(|| {
        let mut server = blocking::Endpoint::builder().allow_anyone().listen(any()).unwrap();
        let to = server.local_addr();
        let serving = thread::spawn(move || {
            let id = server.accept(PATIENCE).unwrap();
            let mut connection = server.connection(id);
            assert_eq!(connection.recv(StreamId(0), PATIENCE).unwrap().unwrap().bytes, whole());
            assert_eq!(connection.recv(StreamId(0), PATIENCE).unwrap().unwrap().bytes, pattern(9, 3_000));
            assert_eq!(connection.recv(StreamId(0), PATIENCE).unwrap().unwrap().bytes, b"after"[..]);
            assert!(connection.recv(StreamId(0), PATIENCE).unwrap().is_none());
            server.close().unwrap();
        });
        let mut client = blocking::Endpoint::builder().bind(any()).unwrap();
        let id = client.connect(segstream::Peer::anyone(to), vec![Contract::default()]).unwrap();
        let mut connection = client.connection(id);
        let mut writer = connection.open_segment(StreamId(0)).unwrap();
        for (number, length) in PIECES.into_iter().enumerate() {
            assert_eq!(writer.append(&pattern(number as u64, length)).unwrap(), None);
        }
        let segment = writer.finish().unwrap();
        let mut writer = connection.open_segment(StreamId(0)).unwrap();
        writer.append(&pattern(9, 3_000)).unwrap();
        drop(writer);
        assert_eq!(connection.verdict(StreamId(0), segment, PATIENCE).unwrap().verdict, Verdict::Complete);
        connection.send(StreamId(0), "after".into()).unwrap();
        assert_eq!(connection.verdict(StreamId(0), SegmentNumber(1), PATIENCE).unwrap().verdict, Verdict::Complete);
        connection.close(0, "").unwrap();
        serving.join().unwrap();
    });
}

#[test]
fn an_asynchronous_writer_gives_one_segment_and_no_other_is_taken_meanwhile() {
    ends_async(async {
        let server = segstream::Endpoint::builder().allow_anyone().listen(any()).unwrap();
        let client = segstream::Endpoint::builder().bind(any()).unwrap();
        let to = server.local_addr();
        let serving = tokio::spawn(async move {
            let connection = server.accept().await.unwrap().unwrap();
            let mut receiver = connection.accept_stream().await.unwrap().unwrap();
            assert_eq!(receiver.recv().await.unwrap().unwrap().bytes, whole());
            assert_eq!(receiver.recv().await.unwrap().unwrap().bytes, pattern(9, 3_000));
            assert!(receiver.recv().await.unwrap().is_none());
            server.close().await.unwrap();
        });
        let (connection, senders) = client.connect(segstream::Peer::anyone(to), vec![Contract::default()]).await.unwrap();
        let sender = &senders[0];
        let mut writer = sender.open_segment().await.unwrap();
        for (number, length) in PIECES.into_iter().enumerate() {
            writer.append(&pattern(number as u64, length)).await.unwrap();
        }
        assert!(matches!(sender.send("no".into()).await, Err(Error::Submit(SubmitError::SegmentOpen))));
        let segment = writer.finish().await.unwrap();
        let mut writer = sender.open_segment().await.unwrap();
        writer.append(&pattern(9, 3_000)).await.unwrap();
        drop(writer);
        assert_eq!(sender.verdict(segment).await.unwrap().verdict, Verdict::Complete);
        assert_eq!(sender.verdict(segment + 1).await.unwrap().verdict, Verdict::Complete);
        connection.close(0, "").await.unwrap();
        serving.await.unwrap();
    });
}

#[test]
fn the_first_units_arrive_before_the_segment_is_finished() {
    ends_async(async {
        let server = segstream::Endpoint::builder().allow_anyone().listen(any()).unwrap();
        let client = segstream::Endpoint::builder().bind(any()).unwrap();
        let (_connection, senders) = client.connect(segstream::Peer::anyone(server.local_addr()), vec![Contract::default()]).await.unwrap();
        let mut writer = senders[0].open_segment().await.unwrap();
        writer.append(&pattern(0, 1024)).await.unwrap();
        let accepted = server.accept().await.unwrap().unwrap();
        let mut receiver = accepted.accept_stream().await.unwrap().unwrap();
        let Some(segstream::Progress::Units(units)) = receiver.next_units().await.unwrap() else { panic!("the segment is still open") };
        assert_eq!(
            (units.segment, units.run.start(), units.run.len(), units.bytes.as_slice()),
            (SegmentNumber(0), UnitIndex(0), 1, &pattern(0, 1024)[..])
        );
        writer.append(b"end").await.unwrap();
        writer.finish().await.unwrap();
        let Some(segstream::Progress::Units(units)) = receiver.next_units().await.unwrap() else { panic!("the last unit is not told yet") };
        assert_eq!((units.run.start(), units.offset, units.bytes.as_slice()), (UnitIndex(1), 1024, &b"end"[..]));
        let Some(segstream::Progress::Judged(received)) = receiver.next_units().await.unwrap() else { panic!("all units are told") };
        assert_eq!((received.verdict, received.bytes.len()), (Verdict::Complete, 1027));
    });
}
