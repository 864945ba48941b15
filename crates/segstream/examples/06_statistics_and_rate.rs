//! Shows: statistics of both ends; a new rate at once, a new class when the peer has agreed.
//! Run: `cargo run -p segstream --example 06_statistics_and_rate`
//! Expect:
//! ```text
//! class 7 at a rate that was found: 400 units judged complete
//! class 7 at 400 Mbit/s: 400 units judged complete
//! class 3 at 400 Mbit/s: 400 units judged complete
//! sent 1200 units, * of them again, in * shipments of data and control
//! received 1200 units, * of them twice; round trip * ms
//! ```
#![allow(clippy::print_stdout)]

use segstream::blocking::{Connection, Endpoint};
use segstream::{Bandwidth, Class, ConnectionEvent, Contract, Error, Peer, RateSpec, Statistics, StreamId};
use std::thread;

const UNITS: u32 = 400;

fn main() -> Result<(), Error> {
    let receiver = Endpoint::builder().allow_anyone().listen(([127, 0, 0, 1], 0))?;
    let peer = receiver.peer();
    let receiving = thread::spawn(move || receive(receiver));
    let sent = send(peer)?;
    let received = receiving.join().expect("the receiving thread does not panic")?;
    println!(
        "sent {} units, {} of them again, in {} shipments of data and control",
        sent.units_sent - sent.units_retransmitted,
        sent.units_retransmitted,
        sent.shipments_sent
    );
    println!(
        "received {} units, {} of them twice; round trip {:.3} ms",
        received.units_received,
        received.units_duplicate,
        sent.rtt_ms_smoothed.unwrap_or(f64::NAN)
    );
    Ok(())
}

fn send(receiver: Peer) -> Result<Statistics, Error> {
    // Without a rate it is found as it goes.
    let mut endpoint = Endpoint::builder().bind(([127, 0, 0, 1], 0))?;
    let id = endpoint.connect(receiver, vec![Contract::default()])?;
    send_one(&mut endpoint.connection(id))?;

    endpoint.connection(id).set_rate(RateSpec::smooth(Bandwidth::from_megabits_per_second(400)))?;
    send_one(&mut endpoint.connection(id))?;

    // Flow control 2 and rate control 1, without error control 4: nothing is sent again from now on.
    let class = Class::new(3).unwrap_or_default();
    endpoint.connection(id).set_class(class)?;
    while !matches!(endpoint.wait(None)?, Some((_, ConnectionEvent::Reclassed(now))) if now == class) {}
    send_one(&mut endpoint.connection(id))?;

    endpoint.connection(id).close(0, "done")?;
    endpoint.connection(id).statistics()
}

fn send_one(connection: &mut Connection<'_>) -> Result<(), Error> {
    let segment = connection.send(StreamId::FIRST, vec![1; UNITS as usize * 1024].into())?;
    let judged = connection.verdict(StreamId::FIRST, segment, None)?;
    let now = connection.statistics()?;
    let rate = match now.phase {
        Some(_) => "a rate that was found".to_owned(),
        None => format!("{} Mbit/s", now.rate_bps.unwrap_or(0) / 1_000_000),
    };
    println!("class {} at {rate}: {} units judged {}", now.class, UNITS - judged.missing(), judged.verdict);
    Ok(())
}

fn receive(mut endpoint: Endpoint) -> Result<Statistics, Error> {
    let id = endpoint.accept(None)?;
    let mut connection = endpoint.connection(id);
    while connection.recv(StreamId::FIRST, None)?.is_some() {}
    connection.closed(None)?;
    let statistics = connection.statistics()?;
    endpoint.close()?;
    Ok(statistics)
}
