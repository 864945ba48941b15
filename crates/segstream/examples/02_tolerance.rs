//! Shows: what a tolerance is worth on a path that loses packets: fewer repairs, and isolated holes.
//! Run: `cargo run -p segstream --example 02_tolerance`
//! Expect:
//! ```text
//! Each segment has 64 units; the path loses packets 12, 13 and 40 of each run.
//! nothing may be missing:               complete,         0 units missing, longest hole 0, * units to repair it
//! 4 of 64 may be missing, none adjoin:  within_tolerance, 3 units missing, longest hole 1, 0 units to repair it
//! anything may be missing:              within_tolerance, 3 units missing, longest hole 2, 0 units to repair it
//! ```
#![allow(clippy::print_stdout)]

use segstream::blocking::Endpoint;
use segstream::{Config, Contract, DatagramSize, Error, Peer, StreamId, Tolerance};
use segstream_net::link::{Link, LinkConfig};
use segstream_path::PathConfig;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const UNITS: u32 = 64;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("Each segment has {UNITS} units; the path loses packets 12, 13 and 40 of each run.");
    // (W, E, B): of every W units at most E may be missing, and at most B in a row.
    run("nothing may be missing:", Tolerance::reliable(UNITS))?;
    run("4 of 64 may be missing, none adjoin:", Tolerance::new(UNITS, 4, 1)?)?;
    run("anything may be missing:", Tolerance::any(UNITS))?;
    Ok(())
}

fn run(title: &str, tolerance: Tolerance) -> Result<(), Box<dyn std::error::Error>> {
    let receiver = Endpoint::builder().allow_anyone().listen(([127, 0, 0, 1], 0))?;
    let peer = receiver.peer();
    let contract = Contract { tolerance, ..Contract::default() };

    // A relay between the two that loses exactly these packets on the way there.
    let forward = PathConfig { loss: "list:12,13,40".parse()?, ..PathConfig::default() };
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let link = Link::bind(&LinkConfig { forward, ..LinkConfig::new(any, receiver.local_addr()) })?;
    let (path, stop) = (Peer { address: link.local_addr(), ..peer }, AtomicBool::new(false));

    let line = thread::scope(|scope| {
        scope.spawn(|| link.run(&stop));
        let receiving = scope.spawn(|| receive(receiver));
        let line = send(path, contract);
        let received = receiving.join().expect("the receiving thread does not panic");
        stop.store(true, Ordering::Relaxed);
        received.and(line)
    })?;
    println!("{title:<38}{line}");
    Ok(())
}

fn send(path: Peer, contract: Contract) -> Result<String, Error> {
    // At this rate the segment leaves in one run, a unit in each datagram, so that the packets are numbered as expected.
    let config = Config { datagram_bytes: DatagramSize::Fixed(1200), ..Config::default().with_rate_megabits(1_000) };
    let mut endpoint = Endpoint::builder().config(config).bind(([127, 0, 0, 1], 0))?;
    let unit_bytes = contract.unit_bytes;
    let id = endpoint.connect(path, vec![contract])?;
    let mut connection = endpoint.connection(id);
    let bytes = vec![1; (UNITS * unit_bytes) as usize];
    let segment = connection.send(StreamId::FIRST, bytes.into())?;
    let judged = connection.verdict(StreamId::FIRST, segment, None)?;
    let longest = judged.holes.iter().map(|hole| hole.len()).max().unwrap_or(0);
    // Lost units are sent again, or repair units for them: any so many restore what is missing, and a few more leave in case some are lost.
    let statistics = connection.statistics()?;
    let repairs = statistics.units_retransmitted + statistics.repair_units_sent;
    connection.close(0, "done")?;
    let verdict = format!("{},", judged.verdict);
    Ok(format!("{verdict:<17} {} units missing, longest hole {longest}, {repairs} units to repair it", judged.missing()))
}

fn receive(mut endpoint: Endpoint) -> Result<(), Error> {
    let id = endpoint.accept(None)?;
    let mut connection = endpoint.connection(id);
    while let Some(segment) = connection.recv(StreamId::FIRST, None)? {
        // Both ends name the same holes; the bytes of a hole are zero.
        for unit in segment.holes.iter().flatten() {
            let start = (unit.0 * segment.unit_bytes) as usize;
            assert_eq!(segment.bytes[start], 0);
        }
    }
    endpoint.close()
}
