//! One run: sender, emulated path and receiver on threads of their own, over real UDP sockets.
//!
//! Called by the verb for each way and loss process. The three share a clock, so a slice's latency is
//! measured from when it was due at the source to when the viewer holds it.
//!
//! Invariant: nothing is computed during a run but the transfer itself; slices exist before it and are
//! scored after it.

use super::way::{self, Way};
use anyhow::{Context as _, Result, anyhow, bail};
use segstream::blocking::Endpoint;
use segstream::{
    Builder, Bytes, Clock, Config, ConnectionEvent, DatagramSize, Identity, KeyLog, Peer, Rate, Received, Statistics, StreamId,
};
use segstream_base::{Duration, Instant};
use segstream_net::link::{Link, LinkReport};
use segstream_path::LossSpec;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Set-up, the first report and the paced start are over before the first slice is due.
const LEAD: Duration = Duration::from_millis(150);
/// A run whose slices are not all judged so long after the last was due has failed.
const PATIENCE: Duration = Duration::from_secs(20);

/// A slice at the viewer.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) received: Received,
    /// When the viewer held it.
    pub(crate) at: Instant,
}

/// What one run gave.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Slices by number; `None` for one that was never handed over.
    pub(crate) slices: Vec<Option<Shown>>,
    /// When the first slice was due.
    pub(crate) start: Instant,
    pub(crate) sender: Statistics,
    pub(crate) receiver: Statistics,
    pub(crate) link: LinkReport,
}

/// Sends `slices` in the given way over a path with the given loss process.
pub(crate) fn run(way: &Way, loss: &LossSpec, slices: &[Bytes], key_log: Option<&KeyLog>) -> Result<Outcome> {
    let clock = Clock::start();
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    // Each end has a key of its own for this run, and knows the other's.
    let sender_key = Identity::generate()?;
    // Why fixed: the emulated path loses packets by number, so the pictures compare ways only while they send alike.
    let config = Config { datagram_bytes: DatagramSize::Fixed(1200), ..Config::default() };
    // One end's secrets open what both send.
    let viewer = Endpoint::builder().config(config.clone()).allow(sender_key.fingerprint()).clock(clock);
    let viewer = key_log.cloned().into_iter().fold(viewer, Builder::key_log).listen(any)?;
    let link = Link::bind(&way::link(loss, viewer.local_addr()))?;
    let through = Peer { address: link.local_addr(), ..viewer.peer() };
    let config = Config { rate: Rate::smooth(way::BANDWIDTH), coding: way.coding, ..config };
    let sender = Endpoint::builder().config(config).identity(sender_key).clock(clock).bind(any)?;
    let (stop, count) = (AtomicBool::new(false), slices.len());
    thread::scope(|scope| {
        let relay = scope.spawn(|| link.run(&stop));
        let viewing = scope.spawn(move || view(viewer, count));
        let sent = send(way, slices, sender, through);
        if sent.is_err() {
            // The viewer would wait for the idle timeout; its error says less than the sender's.
            stop.store(true, Ordering::Relaxed);
        }
        let seen = viewing.join().map_err(|_| anyhow!("the viewer's thread failed"))?;
        stop.store(true, Ordering::Relaxed);
        let link = relay.join().map_err(|_| anyhow!("the emulated path's thread failed"))??;
        let (start, sender) = sent.context("sending the slices failed")?;
        let (slices, receiver) = seen.context("receiving the slices failed")?;
        Ok(Outcome { slices, start, sender, receiver, link })
    })
}

fn send(way: &Way, slices: &[Bytes], mut endpoint: Endpoint, through: Peer) -> Result<(Instant, Statistics)> {
    let clock = endpoint.clock();
    let id = endpoint.connect(through, vec![way.contract()])?;
    let start = clock.now() + LEAD;
    let mut due = start;
    for slice in slices {
        serve_until(&mut endpoint, due)?;
        endpoint.connection(id).send_at(StreamId(0), slice.clone(), due, None)?;
        due += way::slice_period();
    }
    let mut connection = endpoint.connection(id);
    connection.begin_close(0, "all slices sent")?;
    let give_up = due + PATIENCE;
    loop {
        match endpoint.wait(Some(Duration::from_millis(100).into()))? {
            Some((_, ConnectionEvent::Closed(_))) => break,
            _ if endpoint.clock().now() > give_up => bail!("not every slice was judged within {PATIENCE} of the last one"),
            _ => {}
        }
    }
    let mut connection = endpoint.connection(id);
    let statistics = connection.statistics()?;
    connection.drained()?;
    Ok((start, statistics))
}

/// Serves the network until `due`.
fn serve_until(endpoint: &mut Endpoint, due: Instant) -> Result<()> {
    loop {
        let now = endpoint.clock().now();
        if now >= due {
            return Ok(());
        }
        if let Some((_, ConnectionEvent::Closed(reason))) = endpoint.wait(Some(due.since(now).into()))? {
            bail!("the connection has ended: {reason}");
        }
    }
}

fn view(mut endpoint: Endpoint, count: usize) -> Result<(Vec<Option<Shown>>, Statistics)> {
    let mut slices: Vec<Option<Shown>> = Vec::new();
    slices.resize_with(count, || None);
    let clock = endpoint.clock();
    loop {
        let Some((id, event)) = endpoint.wait(Some(PATIENCE.into()))? else { bail!("no slice came for {PATIENCE}") };
        match event {
            ConnectionEvent::Readable(stream) => {
                let mut connection = endpoint.connection(id);
                while let Some(received) = connection.try_recv(stream) {
                    let slot = slices.get_mut(received.segment.0 as usize).ok_or_else(|| anyhow!("a slice nobody sent"))?;
                    *slot = Some(Shown { received, at: clock.now() });
                }
            }
            ConnectionEvent::Closed(_) => {
                let mut connection = endpoint.connection(id);
                let statistics = connection.statistics()?;
                connection.drained()?;
                return Ok((slices, statistics));
            }
            _ => {}
        }
    }
}
