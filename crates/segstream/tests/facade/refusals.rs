//! What fails before anything is sent, and connections nobody answers.

use crate::loopback::{PATIENCE, any, at, ends, ends_async, impatient, seconds};
use segstream::{
    Class, CloseReason, Config, ConnectError, Contract, ContractError, Error, Rate, RateError, RateSpec, SocketError, blocking,
};
use std::net::{SocketAddr, UdpSocket};
use std::thread;

/// An address for documentation, which belongs to nobody (RFC 5737).
fn elsewhere() -> SocketAddr {
    at("192.0.2.1:9")
}

#[test]
fn a_port_in_use_is_named() {
    ends_async(async {
        let taken = UdpSocket::bind(any()).unwrap();
        let address = taken.local_addr().unwrap();
        let in_use =
            |error: Error| assert!(matches!(error, Error::Socket(SocketError::AddressInUse { address: of }) if of == address), "{error}");
        in_use(blocking::Endpoint::builder().allow_anyone().listen(address).unwrap_err());
        in_use(segstream::Endpoint::builder().allow_anyone().listen(address).unwrap_err());
    });
}

#[test]
fn an_automatic_rate_without_rate_control_or_with_false_bounds_is_refused_before_anything_is_sent() {
    ends_async(async {
        let six = Config { class: Class::new(6).unwrap(), ..Config::default() };
        let mut blocking = blocking::Endpoint::builder().config(six.clone()).bind(any()).unwrap();
        let error = blocking.connect(segstream::Peer::anyone(elsewhere()), vec![Contract::default()]).unwrap_err();
        assert!(matches!(error, Error::Connect(ConnectError::Rate(RateError::Uncontrolled(class))) if class == six.class), "{error}");
        let bounds = Rate::between(Rate::PEAK, Rate::FLOOR);
        let asynchronous = segstream::Endpoint::builder().config(Config { rate: bounds, ..Config::default() }).bind(any()).unwrap();
        let error = asynchronous.connect(segstream::Peer::anyone(elsewhere()), vec![]).await.unwrap_err();
        assert!(matches!(error, Error::Connect(ConnectError::Rate(RateError::Bounds { .. }))), "{error}");
        // Nothing is there that could send.
        blocking.close().unwrap();
        asynchronous.close().await.unwrap();
    });
}

#[test]
fn a_class_without_any_limit_and_a_contract_that_contradicts_itself_are_refused() {
    ends(|| {
        let unlimited = Config { class: Class::new(4).unwrap(), ..Config::default() };
        let mut endpoint = blocking::Endpoint::builder().config(unlimited).bind(any()).unwrap();
        let error = endpoint.connect(segstream::Peer::anyone(any()), vec![]).unwrap_err();
        assert!(matches!(error, Error::Connect(ConnectError::Unlimited(_))), "{error}");
        let mut endpoint = blocking::Endpoint::builder().bind(any()).unwrap();
        let wrong = Contract { unit_bytes: 0, ..Contract::default() };
        let error = endpoint.connect(segstream::Peer::anyone(any()), vec![wrong]).unwrap_err();
        assert!(matches!(error, Error::Connect(ConnectError::Contract(ContractError::UnitBytes(0)))), "{error}");
    });
}

#[test]
fn nobody_answers_within_the_connect_timeout() {
    ends_async(async {
        // A socket that takes everything and says nothing; and one that is closed, whose host says so by ICMP.
        let silent = UdpSocket::bind(any()).unwrap();
        let closed = UdpSocket::bind(any()).unwrap().local_addr().unwrap();
        for nobody in [silent.local_addr().unwrap(), closed] {
            let no_answer = |error: Error| {
                assert!(matches!(&error, Error::Closed { reason: CloseReason::NoAnswer(after), .. } if *after == seconds(1)), "{error}");
            };
            let asking = tokio::task::spawn_blocking(move || {
                let mut endpoint = blocking::Endpoint::builder().config(impatient()).bind(any()).unwrap();
                endpoint.connect(segstream::Peer::anyone(nobody), vec![]).unwrap_err()
            });
            let endpoint = segstream::Endpoint::builder().config(impatient()).bind(any()).unwrap();
            no_answer(endpoint.connect(segstream::Peer::anyone(nobody), vec![]).await.unwrap_err());
            no_answer(asking.await.unwrap());
        }
    });
}

#[test]
fn an_endpoint_that_only_makes_connections_refuses_them() {
    ends_async(async {
        let server = segstream::Endpoint::builder().bind(any()).unwrap();
        assert!(server.accept().await.unwrap().is_none());
        let client = segstream::Endpoint::builder().bind(any()).unwrap();
        let error = client.connect(segstream::Peer::anyone(server.local_addr()), vec![]).await.unwrap_err();
        assert!(matches!(&error, Error::Closed { reason: CloseReason::Rejected { .. }, .. }), "{error}");
        assert_eq!(server.unmatched().rejected, 1);
    });
}

#[test]
fn a_given_up_attempt_leaves_no_connection() {
    ends_async(async {
        let silent = UdpSocket::bind(any()).unwrap();
        let endpoint = segstream::Endpoint::builder().config(Config { connections: 1, ..Config::default() }).bind(any()).unwrap();
        for _ in 0..3 {
            loop {
                let attempt = endpoint.connect(segstream::Peer::anyone(silent.local_addr().unwrap()), vec![]);
                match tokio::time::timeout(std::time::Duration::from_millis(50), attempt).await {
                    Err(_) => break,
                    Ok(Err(Error::Connect(ConnectError::TooMany(1)))) => tokio::task::yield_now().await,
                    Ok(other) => panic!("nobody answers, and yet {other:?}"),
                }
            }
        }
        endpoint.close().await.unwrap();
    });
}

#[test]
fn outside_a_runtime_the_asynchronous_endpoint_says_so() {
    let error = segstream::Endpoint::builder().bind(any()).unwrap_err();
    assert!(matches!(error, Error::NoRuntime), "{error}");
}

#[test]
fn a_class_change_that_removes_every_limit_is_refused() {
    ends(|| {
        let mut server = blocking::Endpoint::builder().allow_anyone().listen(any()).unwrap();
        let to = server.local_addr();
        let serving = thread::spawn(move || {
            let id = server.accept(PATIENCE).unwrap();
            server.connection(id).closed(PATIENCE).unwrap();
        });
        let mut client = blocking::Endpoint::builder().bind(any()).unwrap();
        let id = client.connect(segstream::Peer::anyone(to), vec![Contract::default()]).unwrap();
        let mut connection = client.connection(id);
        assert!(matches!(connection.set_class(Class::new(4).unwrap()), Err(Error::Unlimited(_))));
        assert!(matches!(connection.set_class(Class::new(6).unwrap()), Err(Error::Rate(RateError::Uncontrolled(_)))));
        connection.set_rate(RateSpec::smooth(segstream::Bandwidth::from_megabits_per_second(7))).unwrap();
        let statistics = connection.statistics().unwrap();
        assert_eq!((statistics.rate_bps, statistics.phase), (Some(7_000_000), None));
        connection.set_class(Class::new(6).unwrap()).unwrap();
        assert!(matches!(connection.set_rate(Rate::AUTO), Err(Error::Rate(RateError::Uncontrolled(_)))));
        assert_eq!(connection.rate().unwrap().map(segstream::Bandwidth::bits_per_second), Some(7_000_000));
        connection.close(0, "").unwrap();
        serving.join().unwrap();
    });
}
