//! A receiving application that pauses: its sender stops, and neither end keeps more than the windows.

use crate::loopback::{any, ends_async, pattern};
use segstream::{Config, Contract, SegmentNumber, Verdict};
use std::time::Duration;

const WINDOW: u64 = 64;
const SEGMENT_UNITS: u64 = 4;
const SEGMENTS: u64 = 200;

#[test]
fn a_pause_of_five_seconds_stops_the_sender_and_bounds_both_buffers() {
    ends_async(async {
        let config = Config { idle_timeout: Duration::from_secs(2), ..Config::default() };
        let server = segstream::Endpoint::builder().config(config.clone()).allow_anyone().listen(any()).unwrap();
        let client = segstream::Endpoint::builder().config(config).bind(any()).unwrap();
        let contract = Contract { window_units: WINDOW as u32, ..Contract::default() };
        let (connection, mut senders) = client.connect(segstream::Peer::anyone(server.local_addr()), vec![contract]).await.unwrap();
        let sender = senders.remove(0);
        let sending = tokio::spawn(async move {
            for segment in 0..SEGMENTS {
                sender.send(pattern(segment, 1024 * SEGMENT_UNITS as usize)).await.unwrap();
            }
            sender.finish();
            let mut complete = 0;
            while let Some(judged) = sender.next_verdict().await {
                complete += u64::from(judged.verdict == Verdict::Complete);
            }
            complete
        });
        let accepted = server.accept().await.unwrap().unwrap();
        let mut receiver = accepted.accept_stream().await.unwrap().unwrap();

        tokio::time::sleep(Duration::from_secs(5)).await;
        let (sent, received) = (connection.statistics(), accepted.statistics());
        assert!(!sending.is_finished());
        assert_eq!(sent.units_sent, WINDOW, "the sender goes up to the window and no further");
        assert_eq!(received.units_received, WINDOW);
        assert!(sent.units_buffered <= 2 * WINDOW, "{} units are kept", sent.units_buffered);

        for segment in 0..SEGMENTS {
            let received = receiver.recv().await.unwrap().unwrap();
            assert_eq!((received.segment, received.verdict), (SegmentNumber(segment), Verdict::Complete));
            assert_eq!(received.bytes, pattern(segment, 1024 * SEGMENT_UNITS as usize));
        }
        assert!(receiver.recv().await.unwrap().is_none());
        assert_eq!(sending.await.unwrap(), SEGMENTS);
        assert_eq!(connection.statistics().units_buffered, 0);
        connection.close(0, "").await.unwrap();
    });
}
