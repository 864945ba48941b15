//! Shows: reading a stream unit by unit. A viewer draws what is there, and repairs the picture as units come late.
//! Run: `cargo run -p segstream --example 04_progressive`
//! Expect:
//! ```text
//! picture 0: 32 rows came one by one, then the verdict: complete
//! picture 1: 32 rows came one by one, then the verdict: complete
//! picture 2: 32 rows came one by one, then the verdict: complete
//! no row came twice
//! ```
#![allow(clippy::print_stdout)]

use segstream::{Bytes, Contract, Endpoint, Error, Peer, Progress, SegmentNumber, StreamReceiver};
use segstream_net::link::{Link, LinkConfig};
use segstream_path::PathConfig;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const ROWS: u32 = 32;
const ROW_BYTES: u32 = 640;
const PICTURES: u8 = 3;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let viewer = Endpoint::builder().allow_anyone().listen(any)?;

    let peer = viewer.peer();

    // One packet in ten is lost on the way there.
    let forward = PathConfig { loss: "10%".parse()?, ..PathConfig::default() };
    let link = Link::bind(&LinkConfig { forward, ..LinkConfig::new(any, viewer.local_addr()) })?;
    let (path, stop) = (Peer { address: link.local_addr(), ..peer }, Arc::new(AtomicBool::new(false)));
    let stopping = Arc::clone(&stop);
    let relay = tokio::task::spawn_blocking(move || link.run(&stopping));

    let viewing = tokio::spawn(async move {
        let connection = viewer.accept().await?.ok_or(Error::EndpointClosed)?;
        let stream = connection.accept_stream().await?.ok_or(Error::EndpointClosed)?;
        view(stream).await?;
        viewer.close().await
    });
    send(any, path).await?;
    viewing.await??;
    stop.store(true, Ordering::Relaxed);
    relay.await??;
    Ok(())
}

async fn send(any: SocketAddr, path: Peer) -> Result<(), Error> {
    let endpoint = Endpoint::builder().bind(any)?;
    // A unit is a row.
    let contract = Contract { unit_bytes: ROW_BYTES, ..Contract::default() };
    let (connection, senders) = endpoint.connect(path, vec![contract]).await?;
    for picture in 0..PICTURES {
        senders[0].send(Bytes::from(vec![picture; (ROWS * ROW_BYTES) as usize])).await?;
    }
    connection.close(0, "all pictures sent").await?;
    endpoint.close().await
}

async fn view(mut stream: StreamReceiver) -> Result<(), Error> {
    let mut rows: BTreeMap<SegmentNumber, u32> = BTreeMap::new();
    let mut twice = 0;
    while let Some(progress) = stream.next_units().await? {
        match progress {
            // Rows of several pictures may come in between one another.
            Progress::Units(units) => *rows.entry(units.segment).or_default() += units.run.len(),
            Progress::Judged(picture) => {
                let came = rows.remove(&picture.segment).unwrap_or(0);
                twice += came.saturating_sub(picture.units);
                println!("picture {}: {came} rows came one by one, then the verdict: {}", picture.segment, picture.verdict);
            }
            _ => {}
        }
    }
    println!("{} row came twice", if twice == 0 { "no".to_owned() } else { twice.to_string() });
    Ok(())
}
