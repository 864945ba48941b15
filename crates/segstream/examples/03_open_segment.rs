//! Shows: a segment that is sent while it is made; its first units arrive before its last exist.
//! Run: `cargo run -p segstream --example 03_open_segment`
//! Expect:
//! ```text
//! appended  step 0 of a run; it is there while the segment is open
//! appended  step 1 of a run; it is there while the segment is open
//! appended  step 2 of a run; it is there while the segment is open
//! finished segment 0: complete
//! received 3 units, 48 bytes
//! ```
#![allow(clippy::print_stdout)]

use segstream::blocking::Endpoint;
use segstream::{Contract, Error, Peer, Progress, Received, StreamId};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

/// A unit holds one step.
const UNIT_BYTES: usize = 16;

fn main() -> Result<(), Error> {
    let receiver = Endpoint::builder().allow_anyone().listen(([127, 0, 0, 1], 0))?;
    let peer = receiver.peer();
    let (arrivals, arrived) = channel();
    let receiving = thread::spawn(move || receive(receiver, &arrivals));
    send(peer, &arrived)?;
    let segment = receiving.join().expect("the receiving thread does not panic")?;
    println!("received {} units, {} bytes", segment.units, segment.bytes.len());
    Ok(())
}

fn send(receiver: Peer, arrived: &Receiver<Vec<u8>>) -> Result<(), Error> {
    let mut endpoint = Endpoint::builder().bind(([127, 0, 0, 1], 0))?;
    let contract = Contract { unit_bytes: UNIT_BYTES as u32, ..Contract::default() };
    let id = endpoint.connect(receiver, vec![contract])?;
    let mut connection = endpoint.connection(id);

    let mut writer = connection.open_segment(StreamId::FIRST)?;
    for step in 0..3 {
        let made = format!("step {step} of a run");
        // Only whole units leave while the segment is open; the last one may be short.
        writer.append(&[made.as_bytes(), &[0; UNIT_BYTES]].concat()[..UNIT_BYTES])?;
        // While the next bytes are made, the network wants to be served.
        let there = loop {
            writer.serve(Duration::from_millis(1))?;
            if let Ok(there) = arrived.try_recv() {
                break there;
            }
        };
        assert!(there.starts_with(made.as_bytes()));
        println!("appended  {made}; it is there while the segment is open");
    }
    let segment = writer.finish()?;
    println!("finished {}", connection.verdict(StreamId::FIRST, segment, None)?);
    connection.close(0, "done")
}

/// Tells of every unit as it comes; gives the segment as a whole.
fn receive(mut endpoint: Endpoint, arrivals: &Sender<Vec<u8>>) -> Result<Received, Error> {
    let id = endpoint.accept(None)?;
    let mut connection = endpoint.connection(id);
    let mut whole = None;
    while let Some(progress) = connection.next_units(StreamId::FIRST, None)? {
        match progress {
            Progress::Units(units) => _ = arrivals.send(units.bytes),
            Progress::Judged(segment) => whole = Some(segment),
            _ => {}
        }
    }
    endpoint.close()?;
    whole.ok_or(Error::Unknown("segment"))
}
