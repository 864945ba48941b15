//! Shows: the API for tokio: streams in both directions, tasks that send and tasks that take verdicts.
//! Run: `cargo run -p segstream --example 05_async`
//! Expect:
//! ```text
//! request 0 of stream 0 was answered with "READ THE THERMOMETER"
//! request 1 of stream 0 was answered with "READ IT AGAIN"
//! request 0 of stream 1 was answered with "OPEN THE VALVE"
//! request 1 of stream 1 was answered with "CLOSE THE VALVE"
//! 4 requests judged, all of them complete
//! ```
#![allow(clippy::print_stdout)]

use segstream::{Connection, Contract, Endpoint, Error, StreamReceiver, StreamSender, Verdict};
use std::net::SocketAddr;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let server = Endpoint::builder().allow_anyone().listen(any)?;
    let peer = server.peer();
    let serving = tokio::spawn(serve(server));

    let client = Endpoint::builder().bind(any)?;
    let contracts = vec![Contract::default(), Contract::default()];
    let (connection, senders) = client.connect(peer, contracts).await?;
    let verdicts: Vec<_> = senders.iter().map(|sender| tokio::spawn(count_complete(sender.clone()))).collect();

    let requests = [["read the thermometer", "read it again"], ["open the valve", "close the valve"]];
    for (sender, requests) in senders.iter().zip(requests) {
        // The server answers each stream on a stream of its own.
        let mut answers: Option<StreamReceiver> = None;
        for request in requests {
            let segment = sender.send(request.into()).await?;
            if answers.is_none() {
                answers = connection.accept_stream().await?;
            }
            let stream = answers.as_mut().ok_or("the server opens a stream for its answers")?;
            let answer = stream.recv().await?.ok_or("every request is answered")?;
            let text = String::from_utf8_lossy(&answer.bytes).into_owned();
            println!("request {segment} of stream {} was answered with {text:?}", sender.stream());
        }
    }

    // Finishes the streams, which ends the tasks that take the verdicts.
    connection.close(0, "done").await?;
    let mut complete = 0;
    for task in verdicts {
        complete += task.await?;
    }
    println!("{complete} requests judged, all of them complete");
    client.close().await?;
    serving.await??;
    Ok(())
}

async fn count_complete(sender: StreamSender) -> u32 {
    let mut complete = 0;
    while let Some(judged) = sender.next_verdict().await {
        assert_eq!(judged.verdict, Verdict::Complete);
        complete += 1;
    }
    complete
}

async fn serve(server: Endpoint) -> Result<(), Error> {
    if let Some(connection) = server.accept().await? {
        while let Some(stream) = connection.accept_stream().await? {
            tokio::spawn(answer(connection.clone(), stream));
        }
    }
    // Waits until every connection has ended and drained; the runtime may go then.
    server.close().await
}

async fn answer(connection: Connection, mut requests: StreamReceiver) -> Result<(), Error> {
    let mut answers = None;
    while let Some(request) = requests.recv().await? {
        let sender = match &answers {
            Some(sender) => sender,
            None => answers.insert(connection.open_stream(Contract::default())?),
        };
        sender.send(request.bytes.to_ascii_uppercase().into()).await?;
    }
    Ok(())
}
