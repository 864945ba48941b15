//! One socket: what binding refuses, what sending drops, and how GSO batches are split.

use crate::pair::bind;
use segstream_base::endpoint::{Ecn, Local, Transmit};
use segstream_net::shards::bind_shards;
use segstream_net::{Clock, DropReason, Interest, ReceiveBatch, SendOutcome, Socket, SocketConfig, SocketError, SocketWarning};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

fn transmit(to: SocketAddr, datagram_bytes: usize) -> Transmit {
    Transmit { to, from: Local::ANY, datagram_bytes, ecn: Some(Ecn::Ect1) }
}

/// Receives `count` datagrams and returns their contents.
fn receive(socket: &Socket, count: usize) -> Vec<Vec<u8>> {
    let clock = Clock::start();
    let mut batch = ReceiveBatch::new(clock);
    let mut received = Vec::new();
    while received.len() < count {
        let ready = socket.wait(Some(Duration::from_secs(10)), Interest::Readable, &[]).expect("a wait");
        assert!(ready.readable, "only {} of {count} datagrams came", received.len());
        socket.receive(&mut batch).expect("a batch");
        let now = batch.now();
        for (datagram, arrival) in batch.datagrams() {
            assert!(arrival.received <= now);
            assert_eq!(arrival.ecn, Some(Ecn::Ect1));
            received.push(datagram.to_vec());
        }
    }
    received
}

#[test]
fn a_port_in_use_is_told_with_its_address_and_what_to_do() {
    let first = bind("127.0.0.1:0");
    let error = Socket::bind(first.local_addr(), &SocketConfig::default()).expect_err("the port is in use");
    assert!(matches!(error, SocketError::AddressInUse { address } if address == first.local_addr()));
    let told = error.to_string();
    assert!(told.contains(&first.local_addr().to_string()) && told.contains("already in use") && told.contains("port 0"), "{told}");
}

#[test]
fn an_address_of_another_machine_is_told_as_such() {
    let elsewhere = "192.0.2.1:0".parse().expect("an address");
    let error = Socket::bind(elsewhere, &SocketConfig::default()).expect_err("a documentation address (RFC 5737)");
    assert!(matches!(error, SocketError::AddressNotAvailable { .. }), "{error}");
    assert!(error.to_string().contains("192.0.2.1"), "{error}");
}

#[test]
fn sockets_that_agree_may_share_a_port() {
    let config = SocketConfig { share_port: true, ..SocketConfig::default() };
    let first = Socket::bind("127.0.0.1:0".parse().expect("an address"), &config).expect("a free port");
    let second = Socket::bind(first.local_addr(), &config).expect("the same port");
    assert_eq!(first.local_addr(), second.local_addr());
}

#[test]
fn a_buffer_that_is_not_granted_is_a_warning_that_names_the_setting() {
    let config = SocketConfig { receive_buffer_bytes: usize::MAX, ..SocketConfig::default() };
    let socket = Socket::bind("127.0.0.1:0".parse().expect("an address"), &config).expect("a socket all the same");
    let warning = socket.warnings().iter().find(|warning| matches!(warning, SocketWarning::ReceiveBuffer { .. }));
    let told = warning.expect("a warning").to_string();
    assert!(told.contains("net.core.rmem_max"), "{told}");
}

#[test]
fn without_offload_one_call_still_sends_and_fetches_many_datagrams_marks_included() {
    let config = SocketConfig { offload: false, ..SocketConfig::default() };
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let open = || Socket::bind(address.parse().expect("an address"), &config).expect("a free port");
        let (sender, receiver) = (open(), open());
        let sent: Vec<u8> = (0..150u8).flat_map(|number| vec![number; if number == 149 { 7 } else { 1_200 }]).collect();
        assert_eq!(sender.send(&transmit(receiver.local_addr(), 1_200), &sent), SendOutcome::Sent);
        let received = receive(&receiver, 150);
        assert_eq!(received.concat(), sent, "{address}");
        let (sent, fetched) = (sender.counters(), receiver.counters());
        assert_eq!((sent.datagrams_sent, sent.send_calls, sent.datagrams_dropped), (150, 3, 0), "{address}");
        assert_eq!(fetched.datagrams_received, 150, "{address}");
        assert!((5..=30).contains(&fetched.receive_calls), "{} calls", fetched.receive_calls);
    }
}

#[test]
fn without_offload_an_address_that_cannot_be_sent_to_costs_its_datagrams_and_ends() {
    let config = SocketConfig { offload: false, ..SocketConfig::default() };
    let socket = Socket::bind("127.0.0.1:0".parse().expect("an address"), &config).expect("a free port");
    let elsewhere: SocketAddr = "192.0.2.1:9".parse().expect("an address");
    let outcome = socket.send(&transmit(elsewhere, 100), &[0; 550]);
    assert!(matches!(outcome, SendOutcome::Dropped { datagrams: 6, .. }), "{outcome:?}");
}

#[test]
fn batches_longer_than_a_packet_arrive_whole_and_in_order() {
    for (address, size) in [("127.0.0.1:0", 1_200), ("[::1]:0", 1_200), ("127.0.0.1:0", 9_000), ("[::1]:0", 33)] {
        let (sender, receiver) = (bind(address), bind(address));
        let sent: Vec<u8> = (0..100u8).flat_map(|number| vec![number; if number == 99 { size / 3 } else { size }]).collect();
        let outcome = sender.send(&transmit(receiver.local_addr(), size), &sent);
        assert_eq!(outcome, SendOutcome::Sent);
        let received = receive(&receiver, 100);
        assert_eq!(received.concat(), sent, "{size} bytes over {address}");
        assert_eq!(received[99].len(), size / 3);
        assert_eq!((sender.counters().datagrams_sent, receiver.counters().datagrams_received), (100, 100));
    }
}

#[test]
fn what_cannot_be_sent_is_dropped_with_its_reason_and_counted() {
    let socket = bind("127.0.0.1:0");
    let listener = bind("127.0.0.1:0");
    let cases = [
        (SocketAddr::from(([127, 0, 0, 1], 0)), 10, DropReason::UnusableAddress),
        ("[::1]:9".parse().expect("an address"), 10, DropReason::UnusableAddress),
        (SocketAddr::from(([255, 255, 255, 255], 9)), 10, DropReason::Forbidden),
        (listener.local_addr(), 65_508, DropReason::TooBig),
    ];
    for (to, size, reason) in cases {
        let outcome = socket.send(&transmit(to, size), &vec![0; size]);
        assert!(matches!(outcome, SendOutcome::Dropped { datagrams: 1, reason: told } if told == reason), "{to}: {outcome:?}");
    }
    assert_eq!(socket.counters().datagrams_dropped, 4);
    assert!(socket.datagrams_per_send() == listener.datagrams_per_send(), "a bad address must not cost everybody the offload");
    assert_eq!(socket.send(&transmit(listener.local_addr(), 10), &[1; 10]), SendOutcome::Sent);
    assert_eq!(receive(&listener, 1), [[1; 10]]);
}

#[test]
fn a_datagram_goes_to_the_shard_it_names_from_whatever_address_it_comes() {
    let count = std::num::NonZeroU8::new(4).expect("four is not zero");
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let shards = bind_shards(address.parse().expect("an address"), &SocketConfig::default(), count, 1, 2).expect("a free port");
        let to = shards[0].local_addr();
        assert!(shards.iter().all(|shard| shard.local_addr() == to));
        let senders: Vec<Socket> = (0..20).map(|_| bind(address)).collect();
        for (number, sender) in senders.iter().enumerate() {
            for named in 0..8u8 {
                let datagram = [0x60, 9, named, 0, 0, number as u8, 0, 0, 0, 0];
                assert_eq!(sender.send(&transmit(to, 10), &datagram), SendOutcome::Sent);
            }
        }
        for (shard, socket) in shards.iter().enumerate() {
            let received = receive(socket, 40);
            assert!(received.iter().all(|datagram| usize::from(datagram[2]) % 4 == shard), "shard {shard} over {address}");
        }
        // Requests of strangers name none: each goes to one shard, and its repetition to the same.
        let (mut shared, mut requests) = (vec![0; 4], 0);
        for sender in &senders {
            let request = [0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            assert_eq!(sender.send(&transmit(to, 10), &[request, request].concat()), SendOutcome::Sent);
            let taken: Vec<usize> = shards.iter().map(taken).collect();
            assert_eq!(taken.iter().copied().max(), Some(2), "{taken:?}");
            requests += taken.iter().sum::<usize>();
            shared.iter_mut().zip(taken).for_each(|(all, here)| *all += here);
        }
        assert_eq!(requests, 40);
        assert!(shared.iter().filter(|&&count| count > 0).count() > 1, "all of {shared:?} went to one");
    }
}

/// How many datagrams wait on `socket`. On loopback they are there as soon as they are sent.
fn taken(socket: &Socket) -> usize {
    let mut batch = ReceiveBatch::new(Clock::start());
    std::iter::from_fn(|| socket.receive(&mut batch).ok().filter(|&count| count > 0)).sum()
}

/// What a socket bound to `wildcard` is told of a batch that comes to `asked`, and where its answer to that comes from.
fn ask(wildcard: &str, asked: &str, config: &SocketConfig) {
    let listener = Socket::bind(wildcard.parse().expect("an address"), config).expect("a free port");
    let asked = SocketAddr::new(asked.parse().expect("an address"), listener.local_addr().port());
    let here: IpAddr = if asked.is_ipv4() { [127, 0, 0, 1].into() } else { asked.ip() };
    let sender = Socket::bind((here, 0).into(), config).expect("a free port");
    let sent: Vec<u8> = (0..20u8).flat_map(|number| vec![number; 900]).collect();
    assert_eq!(sender.send(&transmit(asked, 900), &sent), SendOutcome::Sent);
    let (mut batch, mut received, mut to) = (ReceiveBatch::new(Clock::start()), Vec::new(), Local::ANY);
    while received.len() < sent.len() {
        assert!(listener.wait(Some(Duration::from_secs(10)), Interest::Readable, &[]).expect("a wait").readable);
        listener.receive(&mut batch).expect("a batch");
        let now = batch.now();
        for (arrival, gro) in batch.gro_batches() {
            // The receive time, the size of the datagrams, the mark and the address: nothing is cut off.
            assert!(arrival.received < now, "a time of the kernel");
            assert_eq!((arrival.from, arrival.ecn, gro.datagram_bytes), (sender.local_addr(), Some(Ecn::Ect1), 900), "{asked}");
            assert_eq!(arrival.to.address, Some(asked.ip()), "{asked}");
            assert!(arrival.to.interface.is_some(), "{asked}");
            received.extend_from_slice(gro.bytes);
            to = arrival.to;
        }
    }
    assert_eq!(received, sent);
    // The system hands what comes from elsewhere to nobody who has asked here alone.
    let client = UdpSocket::bind((here, 0)).expect("a free port");
    client.connect(asked).expect("a peer");
    client.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout");
    let answer = Transmit { from: to, ..transmit(client.local_addr().expect("its address"), 900) };
    assert_eq!(listener.send(&answer, &sent), SendOutcome::Sent);
    let mut datagram = [0; 2_000];
    for number in 0..20u8 {
        assert_eq!(client.recv(&mut datagram).expect("an answer from the address that was asked"), 900, "{asked}");
        assert!(datagram[..900].iter().all(|byte| *byte == number));
    }
    assert_eq!((listener.counters().datagrams_dropped, listener.counters().offload_failures), (0, 0));
}

#[test]
#[cfg(target_os = "linux")]
fn a_socket_of_all_addresses_tells_where_it_was_asked_and_answers_from_there() {
    for offload in [true, false] {
        let config = SocketConfig { offload, ..SocketConfig::default() };
        for asked in ["127.0.0.1", "127.0.0.2"] {
            ask("0.0.0.0:0", asked, &config);
            ask("[::]:0", asked, &config);
        }
        ask("[::]:0", "::1", &config);
    }
}

#[test]
fn a_socket_of_one_address_tells_that_one() {
    for address in ["127.0.0.2:0", "[::1]:0"] {
        let (sender, receiver) = (bind(address), bind(address));
        assert_eq!(sender.send(&transmit(receiver.local_addr(), 10), &[0; 10]), SendOutcome::Sent);
        let mut batch = ReceiveBatch::new(Clock::start());
        assert!(receiver.wait(Some(Duration::from_secs(10)), Interest::Readable, &[]).expect("a wait").readable);
        receiver.receive(&mut batch).expect("a batch");
        let told: Vec<Option<IpAddr>> = batch.gro_batches().map(|(arrival, _)| arrival.to.address).collect();
        assert_eq!(told, [Some(receiver.local_addr().ip())]);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn an_address_that_this_host_has_no_more_costs_its_datagrams_and_no_offload() {
    for (wildcard, gone, to) in
        [("0.0.0.0:0", "192.0.2.1", "127.0.0.1:9"), ("[::]:0", "192.0.2.1", "127.0.0.1:9"), ("[::]:0", "2001:db8::1", "[::1]:9")]
    {
        let socket = bind(wildcard);
        let batch_datagrams = socket.datagrams_per_send();
        let from = Local { address: Some(gone.parse().expect("an address")), interface: None };
        let transmit = Transmit { from, ..transmit(to.parse().expect("an address"), 100) };
        let outcome = socket.send(&transmit, &[0; 1_000]);
        assert!(matches!(outcome, SendOutcome::Dropped { datagrams: 10, .. }), "{gone}: {outcome:?}");
        assert_eq!((socket.datagrams_per_send(), socket.counters().offload_failures), (batch_datagrams, 0), "{gone}");
    }
}
