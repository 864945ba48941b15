//! Units fit the smallest datagram whatever stands in front of them, or their stream is refused.

use crate::loopback::{PATIENCE, any, ends, pattern};
use segstream::{
    Builder, Config, Contract, ContractError, DatagramSize, Error, Peer, StreamId, SubmitError, Timestamp, Tolerance, blocking,
};
use std::thread;

/// The first position of a unit, and the length of its segment, are as long as a window of so many units makes them.
const WINDOW_UNITS: u32 = 1 << 14;

fn contract(builder: &Builder<blocking::Endpoint>) -> Contract {
    let usual = Contract { window_units: WINDOW_UNITS, ..Contract::default() };
    Contract { unit_bytes: builder.unit_bytes_max(StreamId(0), &usual), ..usual }
}

#[test]
fn a_segment_of_the_largest_units_from_the_end_of_time_arrives_in_the_smallest_datagrams() {
    ends(|| {
        let builder = blocking::Endpoint::builder;
        for (builder, wanted) in [(builder().insecure(), 1160), (builder().allow_anyone(), 1148)] {
            let config = Config { datagram_bytes: DatagramSize::Fixed(1200), ..Config::default() }.with_rate_megabits(2_000);
            let builder = builder.config(config);
            let contract = contract(&builder);
            assert_eq!(contract.unit_bytes, wanted);
            let bytes = pattern(0, (WINDOW_UNITS * wanted) as usize);
            let server = builder.clone().listen(any()).unwrap();
            let to = server.local_addr();
            let taking = thread::spawn(move || {
                let mut server = server;
                let id = server.accept(PATIENCE).unwrap();
                let received = server.connection(id).recv(StreamId(0), PATIENCE).unwrap().unwrap();
                server.connection(id).closed(PATIENCE).unwrap();
                received.bytes
            });
            let mut client = builder.bind(any()).unwrap();
            let id = client.connect(Peer::anyone(to), vec![contract]).unwrap();
            client.connection(id).send_at(StreamId(0), bytes.clone(), Timestamp::from_nanos(u64::MAX), None).unwrap();
            client.connection(id).close(0, "done").unwrap();
            assert!(taking.join().unwrap() == bytes);
        }
    });
}

#[test]
fn units_that_would_not_fit_are_refused_with_what_would() {
    ends(|| {
        let server = blocking::Endpoint::builder().allow_anyone().listen(any()).unwrap();
        let to = server.local_addr();
        let mut client = blocking::Endpoint::builder().bind(any()).unwrap();
        let largest = contract(&blocking::Endpoint::builder());
        let longer = Contract { unit_bytes: largest.unit_bytes + 1, ..largest.clone() };
        let wider = Contract { window_units: WINDOW_UNITS + 1, ..largest.clone() };
        let refused = |error: Error| match error {
            Error::Contract(ContractError::UnitRoom { fits, .. }) => fits,
            Error::Connect(segstream::ConnectError::Contract(ContractError::UnitRoom { fits, .. })) => fits,
            other => panic!("{other}"),
        };
        assert_eq!(refused(client.connect(Peer::anyone(to), vec![longer.clone()]).unwrap_err()), 1148);
        let serving = thread::spawn(move || {
            let mut server = server;
            let id = server.accept(PATIENCE).unwrap();
            server.connection(id).closed(PATIENCE).unwrap();
        });
        let id = client.connect(Peer::anyone(to), vec![largest]).unwrap();
        let mut connection = client.connection(id);
        assert_eq!(refused(connection.open_stream(longer).unwrap_err()), 1148);
        assert_eq!(refused(connection.open_stream(wider).unwrap_err()), 1146);
        let now = Timestamp::ZERO;
        let error = connection.send_at(StreamId(0), pattern(0, 9), now, Some(Tolerance::new(64, 4, 1).unwrap())).unwrap_err();
        assert!(matches!(error, Error::Submit(SubmitError::NoRoom { unit_bytes: 1148, fits: 1144 })), "{error}");
        // What was refused has changed nothing.
        assert_eq!(connection.open_stream(Contract::default()).unwrap(), StreamId(1));
        connection.send(StreamId(0), pattern(0, 9)).unwrap();
        connection.close(0, "done").unwrap();
        serving.join().unwrap();
    });
}
