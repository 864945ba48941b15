//! A peer that goes without a word, and one that says so: the other end hears of it in time.

use crate::loopback::{PATIENCE, any, ends, ends_async, impatient, pattern, seconds};
use segstream::{CloseReason, Contract, Error, StreamId, SubmitError, Verdict, blocking};
use std::thread;
use std::time::Duration;

fn assert_timed_out(error: &Error) {
    assert!(matches!(error, Error::Closed { reason: CloseReason::TimedOut(after), .. } if *after == seconds(1)), "{error}");
    assert!(error.to_string().contains("nothing came from the peer for 1"), "{error}");
}

#[test]
fn a_sender_whose_receiver_is_killed_hears_unknown_within_the_idle_timeout() {
    ends(|| {
        let mut server = blocking::Endpoint::builder().config(impatient()).allow_anyone().listen(any()).unwrap();
        let to = server.local_addr();
        let serving = thread::spawn(move || {
            let id = server.accept(PATIENCE).unwrap();
            assert!(server.connection(id).recv(StreamId(0), PATIENCE).unwrap().is_some());
            // The verdict leaves; then the socket stays, and nobody looks at it any more.
            while server.wait(Some(Duration::from_millis(200))).unwrap().is_some() {}
            std::mem::forget(server);
        });
        let mut client = blocking::Endpoint::builder().config(impatient()).bind(any()).unwrap();
        let id = client.connect(segstream::Peer::anyone(to), vec![Contract::default()]).unwrap();
        let mut connection = client.connection(id);
        let first = connection.send(StreamId(0), "heard".into()).unwrap();
        assert_eq!(connection.verdict(StreamId(0), first, PATIENCE).unwrap().verdict, Verdict::Complete);
        serving.join().unwrap();
        let second = connection.send(StreamId(0), pattern(0, 10_000)).unwrap();
        let judged = connection.verdict(StreamId(0), second, Some(seconds(5))).unwrap();
        assert_eq!(judged.verdict, Verdict::Unknown);
        assert_timed_out(&connection.send(StreamId(0), "too late".into()).unwrap_err());
        assert_timed_out(&connection.open_stream(Contract::default()).unwrap_err());
        assert!(connection.next_verdict(StreamId(0), Some(seconds(5))).unwrap().is_none());
        assert_timed_out(&connection.close(0, "").unwrap_err());
        client.release(id);
        assert!(matches!(client.connection(id).statistics(), Err(Error::Unknown("connection"))));
    });
}

#[test]
fn a_receiver_whose_sender_is_killed_hears_an_error_and_not_an_end() {
    ends(|| {
        let mut server = blocking::Endpoint::builder().config(impatient()).allow_anyone().listen(any()).unwrap();
        let to = server.local_addr();
        let sending = thread::spawn(move || {
            let mut client = blocking::Endpoint::builder().config(impatient()).bind(any()).unwrap();
            let id = client.connect(segstream::Peer::anyone(to), vec![Contract::default()]).unwrap();
            let mut connection = client.connection(id);
            let segment = connection.send(StreamId(0), "heard".into()).unwrap();
            connection.verdict(StreamId(0), segment, PATIENCE).unwrap();
            std::mem::forget(client);
        });
        let id = server.accept(PATIENCE).unwrap();
        let mut connection = server.connection(id);
        sending.join().unwrap_or(());
        assert_eq!(connection.recv(StreamId(0), PATIENCE).unwrap().unwrap().bytes, b"heard"[..]);
        assert_timed_out(&connection.recv(StreamId(0), Some(seconds(5))).unwrap_err());
        assert_timed_out(
            &connection.accept_stream(Some(seconds(5))).map(|_| ()).and_then(|()| connection.recv(StreamId(0), PATIENCE)).unwrap_err(),
        );
    });
}

#[test]
fn a_dropped_endpoint_says_so_at_once() {
    ends(|| {
        let mut server = blocking::Endpoint::builder().config(impatient()).allow_anyone().listen(any()).unwrap();
        let mut client = blocking::Endpoint::builder().config(impatient()).bind(any()).unwrap();
        let to = server.local_addr();
        let serving = thread::spawn(move || {
            server.accept(PATIENCE).unwrap();
        });
        let id = client.connect(segstream::Peer::anyone(to), vec![Contract::default()]).unwrap();
        let reason = client.connection(id).closed(Some(seconds(5))).unwrap();
        assert_eq!(reason.to_string(), "aborted by the peer: the application is gone (code 0)");
        serving.join().unwrap();
    });
}

#[test]
fn an_asynchronous_peer_hears_the_same() {
    ends_async(async {
        let mut server = blocking::Endpoint::builder().config(impatient()).allow_anyone().listen(any()).unwrap();
        let to = server.local_addr();
        let serving = thread::spawn(move || {
            let id = server.accept(PATIENCE).unwrap();
            assert!(server.connection(id).recv(StreamId(0), PATIENCE).unwrap().is_some());
            std::mem::forget(server);
        });
        let client = segstream::Endpoint::builder().config(impatient()).bind(any()).unwrap();
        let (connection, senders) = client.connect(segstream::Peer::anyone(to), vec![Contract::default()]).await.unwrap();
        let sender = senders[0].clone();
        sender.send("heard".into()).await.unwrap();
        tokio::task::spawn_blocking(|| serving.join().unwrap()).await.unwrap();
        let lost = sender.send(pattern(0, 10_000)).await.unwrap();
        assert_eq!(sender.verdict(lost).await.unwrap().verdict, Verdict::Unknown);
        assert_eq!(connection.closed().await, CloseReason::TimedOut(seconds(1)));
        assert_timed_out(&sender.send("too late".into()).await.unwrap_err());
        assert_timed_out(&connection.accept_stream().await.map(|_| ()).unwrap_err());
        assert_timed_out(&connection.close(0, "").await.unwrap_err());
        while sender.next_verdict().await.is_some() {}
        client.close().await.unwrap();
        assert!(matches!(client.connect(segstream::Peer::anyone(to), vec![]).await.map(|_| ()), Err(Error::EndpointClosed)));
    });
}

#[test]
fn handles_of_a_runtime_that_has_been_shut_down_get_errors_and_do_not_hang() {
    ends(|| {
        let runtime = || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (driving, asking) = (runtime(), runtime());
        let mut server = blocking::Endpoint::builder().config(impatient()).allow_anyone().listen(any()).unwrap();
        let to = server.local_addr();
        let serving = thread::spawn(move || {
            let id = server.accept(PATIENCE).unwrap();
            server.connection(id).closed(Some(seconds(5))).unwrap()
        });
        let (connection, senders) = driving.block_on(async {
            let client = segstream::Endpoint::builder().config(impatient()).bind(any()).unwrap();
            client.connect(segstream::Peer::anyone(to), vec![Contract::default()]).await.unwrap()
        });
        driving.shutdown_background();
        asking.block_on(async {
            connection.closed().await;
            let error = senders[0].send("lost".into()).await.unwrap_err();
            assert!(error.to_string().contains("runtime that drove the endpoint has been shut down"), "{error}");
            assert_eq!(senders[0].next_verdict().await, None);
        });
        // Nothing was sent and nothing is lost, so the peer is told of a graceful end.
        assert!(matches!(serving.join().unwrap(), CloseReason::ClosedByPeer { code: 0, .. }));
    });
}

#[test]
fn an_aborted_connection_leaves_no_verdict_open() {
    ends_async(async {
        let server = segstream::Endpoint::builder().config(impatient()).allow_anyone().listen(any()).unwrap();
        let client = segstream::Endpoint::builder().config(impatient()).bind(any()).unwrap();
        let contract = Contract { window_units: 4, ..Contract::default() };
        let (connection, senders) = client.connect(segstream::Peer::anyone(server.local_addr()), vec![contract]).await.unwrap();
        let accepted = server.accept().await.unwrap().unwrap();
        // The first fills the window of a receiver that takes nothing. It is judged; those behind it never leave.
        for segment in 0..3 {
            senders[0].send(pattern(segment, 4096)).await.unwrap();
        }
        let blocked = senders[0].try_send(pattern(3, 4096), client.clock().now(), None);
        assert!(matches!(blocked, Err(Error::Submit(SubmitError::Blocked))));
        let waiting = tokio::spawn({
            let sender = senders[0].clone();
            async move { sender.send(pattern(3, 4096)).await }
        });
        tokio::task::yield_now().await;
        accepted.abort(42, "enough");
        let reason = CloseReason::AbortedByPeer { code: 42, detail: "enough".into() };
        assert_eq!(connection.closed().await, reason);
        assert!(matches!(waiting.await.unwrap(), Err(Error::Closed { reason: CloseReason::AbortedByPeer { code: 42, .. }, .. })));
        let mut verdicts = 0;
        while senders[0].next_verdict().await.is_some() {
            verdicts += 1;
        }
        assert_eq!(verdicts, 3);
    });
}
