//! Endpoints that a program's own event loop drives: it watches their sockets and asks how long it may sleep.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use segstream::blocking::Endpoint;
use segstream::{ConnectionEvent, ConnectionId, Contract, Peer, StreamId};
use std::os::fd::AsFd as _;
use std::time::Duration;

/// Longer than any of these loops should ever sleep.
const AT_A_LOSS: Duration = Duration::from_secs(20);

/// Sleeps as an application would; whether anything but [`AT_A_LOSS`] has ended the sleep.
fn sleep(endpoints: [&Endpoint; 2]) -> bool {
    let after = endpoints.iter().filter_map(|endpoint| endpoint.serve_after()).min();
    let timeout = Timespec::try_from(after.unwrap_or(AT_A_LOSS).min(AT_A_LOSS)).expect("it is short");
    let mut watched = endpoints.map(|endpoint| PollFd::from_borrowed_fd(endpoint.as_fd(), PollFlags::IN));
    poll(&mut watched, Some(&timeout)).expect("poll works") > 0 || after.is_some_and(|after| after < AT_A_LOSS)
}

fn events(endpoint: &mut Endpoint) -> Vec<(ConnectionId, ConnectionEvent)> {
    std::iter::from_fn(|| endpoint.wait(Some(Duration::ZERO)).expect("the network can be served")).collect()
}

#[test]
fn one_thread_drives_both_ends_by_their_sockets_and_deadlines() {
    let mut receiver = Endpoint::builder().allow_anyone().listen(([127, 0, 0, 1], 0)).unwrap();
    let mut sender = Endpoint::builder().bind(([127, 0, 0, 1], 0)).unwrap();
    let to: Peer = receiver.peer();
    let connection = sender.begin_connect(to, vec![Contract::default()]).unwrap();
    assert_eq!(sender.serve_after(), Some(Duration::ZERO), "the request has not left");
    let (mut received, mut judged) = (Vec::new(), 0);
    while received.len() < 3 || judged < 3 {
        for (id, event) in events(&mut sender) {
            match event {
                ConnectionEvent::Connected => {
                    for byte in [1, 2] {
                        let segment = vec![byte; 300_000].into();
                        sender.connection(id).try_send(StreamId::FIRST, segment, segstream::Timestamp::ZERO, None).unwrap();
                    }
                    let mut connection = sender.connection(id);
                    let mut open = connection.open_segment(StreamId::FIRST).unwrap();
                    assert_eq!(open.try_append(&[3; 1000]).unwrap(), None);
                    let segment = open.detach();
                    connection.resume_segment(StreamId::FIRST, segment).finish().unwrap();
                }
                ConnectionEvent::Judged { segments, .. } => judged += segments.end.0 - segments.start.0,
                _ => {}
            }
        }
        for (id, event) in events(&mut receiver) {
            if let ConnectionEvent::Readable(stream) = event {
                received.extend(std::iter::from_fn(|| receiver.connection(id).try_recv(stream)).map(|segment| segment.bytes));
            }
        }
        assert!(sleep([&sender, &receiver]), "nothing would ever happen again: {received:?} {judged}");
    }
    let seen: Vec<(u8, usize)> = received.iter().map(|bytes| (bytes[0], bytes.len())).collect();
    assert_eq!(seen, [(1, 300_000), (2, 300_000), (3, 1000)]);
    assert_eq!(sender.connection(connection).statistics().unwrap().segments_skipped, 0);
}

#[test]
fn a_loop_may_sleep_until_a_deadline_or_a_datagram_while_there_is_nothing_to_do() {
    let mut idle = Endpoint::builder().bind(([127, 0, 0, 1], 0)).unwrap();
    assert!(events(&mut idle).is_empty());
    assert_eq!(idle.serve_after(), None, "an endpoint without connections has no deadline");
    let nobody = std::net::UdpSocket::bind(("127.0.0.1", 0)).unwrap();
    idle.begin_connect(Peer::anyone(nobody.local_addr().unwrap()), Vec::new()).unwrap();
    let mut served = 0;
    while idle.serve_after() == Some(Duration::ZERO) {
        assert!(events(&mut idle).is_empty());
        served += 1;
        assert!(served < 5, "the loop turns without need");
    }
    let after = idle.serve_after().expect("the request will be repeated");
    assert!(after > Duration::ZERO && after < AT_A_LOSS, "{after:?}");
}

#[test]
fn an_endpoint_with_a_thread_of_its_own_needs_no_serving() {
    let mut endpoint = Endpoint::builder().driven_in_background().bind(([127, 0, 0, 1], 0)).unwrap();
    endpoint.begin_connect(Peer::anyone(([127, 0, 0, 1], 9).into()), Vec::new()).unwrap();
    assert_eq!(endpoint.serve_after(), None);
}
