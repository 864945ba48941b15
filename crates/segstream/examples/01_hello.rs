//! Shows: sending a segment, its verdict at the sender, the segment at the receiver, a graceful end.
//! Run: `cargo run -p segstream --example 01_hello`
//! Expect:
//! ```text
//! received segment 0: complete, "hello"
//! judged   segment 0: complete
//! received segment 1: complete, "world"
//! judged   segment 1: complete
//! the sender has ended it: closed by the peer: done (code 0)
//! ```
#![allow(clippy::print_stdout)]

use segstream::blocking::Endpoint;
use segstream::{Contract, Error, Peer, StreamId};
use std::sync::mpsc::{Sender, channel};
use std::thread;

fn main() -> Result<(), Error> {
    // Port 0 takes any free port.
    let receiver = Endpoint::builder().allow_anyone().listen(([127, 0, 0, 1], 0))?;
    let peer = receiver.peer();
    let (lines, printed) = channel();
    let receiving = thread::spawn(move || receive(receiver, &lines));

    send(peer, || println!("{}", printed.recv().unwrap_or_default()))?;
    let end = receiving.join().expect("the receiving thread does not panic")?;
    println!("the sender has ended it: {end}");
    Ok(())
}

fn send(receiver: Peer, print_received: impl Fn()) -> Result<(), Error> {
    let mut endpoint = Endpoint::builder().bind(([127, 0, 0, 1], 0))?;
    // One stream, with the default contract: every unit must arrive. Streams are numbered from 0.
    let id = endpoint.connect(receiver, vec![Contract::default()])?;
    let mut connection = endpoint.connection(id);
    for text in ["hello", "world"] {
        let segment = connection.send(StreamId::FIRST, text.into())?;
        // Waits for the receiver's judgement; `None` is no limit of time.
        let judged = connection.verdict(StreamId::FIRST, segment, None)?;
        print_received();
        println!("judged   {judged}");
    }
    // Everything is delivered before this returns.
    connection.close(0, "done")
}

fn receive(mut endpoint: Endpoint, lines: &Sender<String>) -> Result<String, Error> {
    let id = endpoint.accept(None)?;
    let mut connection = endpoint.connection(id);
    // `None` is the end of the stream.
    while let Some(segment) = connection.recv(StreamId::FIRST, None)? {
        let text = String::from_utf8_lossy(&segment.bytes);
        // The receiving thread's lines are printed by the other one, so that their order is always the same.
        let _ = lines.send(format!("received segment {}: {}, {text:?}", segment.segment, segment.verdict));
    }
    let end = connection.closed(None)?;
    endpoint.close()?;
    Ok(end.to_string())
}
