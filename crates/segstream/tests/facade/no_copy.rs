//! Segments are handed over without a copy: what is sent is kept as it is, what arrives is received in the buffer that it was
//! put together in.

use crate::loopback::{PATIENCE, any, ends, pattern};
use segstream::{Bytes, Contract, Peer, SegmentNumber, StreamId, blocking};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;

const SEGMENT_BYTES: usize = 500_000;

/// Bytes that say when their owner is dropped.
struct Owner {
    bytes: Vec<u8>,
    dropped: Arc<AtomicBool>,
}

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.dropped.store(true, Ordering::Release);
    }
}

#[test]
fn a_segment_keeps_the_memory_of_its_sender_until_its_verdict_and_a_received_one_is_its_own_buffer() {
    ends(|| {
        let mut receiver = blocking::Endpoint::builder().allow_anyone().listen(any()).unwrap();
        let to = receiver.local_addr();
        let (go_on, next) = channel();
        let sending = thread::spawn(move || {
            let mut sender = blocking::Endpoint::builder().bind(any()).unwrap();
            let id = sender.connect(Peer::anyone(to), vec![Contract::default()]).unwrap();
            let mut connection = sender.connection(id);
            for segment in 0..3 {
                let dropped = Arc::new(AtomicBool::new(false));
                let owner = Owner { bytes: pattern(segment, SEGMENT_BYTES).to_vec(), dropped: Arc::clone(&dropped) };
                connection.send(StreamId(0), Bytes::from_owner(owner)).unwrap();
                assert!(!dropped.load(Ordering::Acquire), "the bytes were copied when they were sent");
                connection.verdict(StreamId(0), SegmentNumber(segment), PATIENCE).unwrap();
                assert!(dropped.load(Ordering::Acquire), "the bytes are kept beyond the verdict");
                // The receiver has dropped its segment before the next one begins.
                next.recv().unwrap();
            }
            connection.close(0, "done").unwrap();
        });
        let id = receiver.accept(PATIENCE).unwrap();
        let mut places = Vec::new();
        while let Some(received) = receiver.connection(id).recv(StreamId(0), PATIENCE).unwrap() {
            assert_eq!(received.bytes, pattern(received.segment.0, SEGMENT_BYTES));
            // One that is handed on stays where it is.
            let place = received.bytes.as_ptr();
            let handed_on = received.bytes;
            assert_eq!(handed_on.as_ptr(), place);
            places.push(place as usize);
            drop(handed_on);
            // The verdict may still be on its way.
            go_on.send(()).unwrap();
        }
        assert_eq!(places.len(), 3);
        assert!(places.iter().all(|place| *place == places[0]), "a buffer is put together, received, and used again: {places:x?}");
        // The sender's close wants an answer, which a blocking endpoint gives while it is called.
        receiver.close().unwrap();
        sending.join().unwrap();
    });
}
