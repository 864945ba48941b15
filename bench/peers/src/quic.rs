//! The workloads over streams of QUIC.
//!
//! Called by [`crate::quinn_end`] and [`crate::s2n_end`], inside a runtime of one thread.
//!
//! `throughput` and `ping-pong` use one stream in both directions. `schedule` has a stream for each segment, the older one
//! first where the stack knows priorities.
//!
//! Invariant: neither side waits forever; see [`crate::byte_stream`].

use crate::byte_stream::{LAST, PING_BYTES, STALL};
use crate::options::{Options, Side, Workload};
use crate::outcome::{Meter, Outcome};
use crate::schedule::{Arrivals, HEAD_BYTES, Schedule, TIMEOUT};
use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::task::spawn_local;
use tokio::time::{sleep_until, timeout, timeout_at};

/// Streams that may be open at once.
pub(crate) const STREAMS_MAX: u32 = 1 << 14;
/// What may be in flight on a stream, and what the sending side keeps.
pub(crate) const STREAM_WINDOW_BYTES: u32 = 16 << 20;
/// What may be in flight on a connection.
pub(crate) const WINDOW_BYTES: u32 = 32 << 20;
/// The buffers of a UDP socket.
pub(crate) const SOCKET_BUFFER_BYTES: usize = 4 << 20;

/// How much longer than the serving side the running side goes on.
const GRACE: Duration = Duration::from_secs(2);

/// A connection of a stack.
pub(crate) trait Connection {
    type Sender: Sender + 'static;
    type Receiver: Receiver + 'static;
    /// Opens a stream for both directions.
    async fn open(&mut self) -> Result<(Self::Sender, Self::Receiver)>;
    /// Takes a stream for both directions.
    async fn accept(&mut self) -> Result<(Self::Sender, Self::Receiver)>;
    /// Opens a stream for one direction.
    async fn open_one_way(&mut self) -> Result<Self::Sender>;
    /// Takes a stream of one direction; an error when the connection has ended.
    async fn accept_one_way(&mut self) -> Result<Self::Receiver>;
    /// Ends the connection at once.
    fn close(&self);
    /// Bytes sent in datagrams, if the stack tells.
    fn wire_bytes(&self) -> Option<u64>;
}

/// The sending half of a stream.
pub(crate) trait Sender {
    /// Gives bytes, and waits until there is room for them.
    async fn send(&mut self, bytes: Bytes) -> Result<()>;
    /// Ends the stream behind what was given.
    fn finish(&mut self) -> Result<()>;
    /// Says that segments of lower numbers go first.
    fn give_number(&mut self, number: u64) -> Result<()>;
}

/// The receiving half of a stream.
pub(crate) trait Receiver {
    /// Takes what is there; nothing at its end.
    async fn receive(&mut self) -> Result<Option<Bytes>>;
}

/// One side of a workload.
pub(crate) async fn run<C: Connection>(connection: &mut C, options: &Options) -> Result<Outcome> {
    let outcome = match (options.workload, options.side) {
        (Workload::Throughput, Side::Serve) => sink(connection, options).await,
        (Workload::Throughput, Side::Run) => source(connection, options).await,
        (Workload::PingPong, Side::Serve) => echo(connection, options).await,
        (Workload::PingPong, Side::Run) => ping(connection, options).await,
        (Workload::Schedule, Side::Serve) => collect(connection, options).await,
        (Workload::Schedule, Side::Run) => emit(connection, options).await,
    }?;
    let wire_bytes = connection.wire_bytes().filter(|_| options.side == Side::Run);
    let is_ended_by_the_other =
        options.workload == Workload::PingPong || options.workload == Workload::Throughput && options.time()?.is_none();
    if options.side == Side::Serve && is_ended_by_the_other {
        // Whoever runs ends the connection when it has heard that all is there.
        let _ = timeout(Duration::from_secs(1), connection.accept_one_way()).await;
    }
    connection.close();
    // The last words of the connection leave by themselves.
    tokio::time::sleep(Duration::from_millis(20)).await;
    Ok(Outcome { wire_bytes, ..outcome })
}

async fn sink<C: Connection>(connection: &mut C, options: &Options) -> Result<Outcome> {
    let (mut sender, mut receiver) = timeout(STALL, connection.accept()).await.context("nobody has opened a stream")??;
    let Some(first) = timeout(STALL, receiver.receive()).await.context("nothing has come")?? else { bail!("the stream is empty") };
    let (meter, time, bytes) = (Meter::start()?, options.time()?, Cell::new(first.len() as u64));
    let receiving = async {
        while time.is_some() || bytes.get() < options.bytes {
            let Some(more) = receiver.receive().await? else { break };
            bytes.set(bytes.get() + more.len() as u64);
        }
        anyhow::Ok(())
    };
    match time {
        // The time that ends it is no failure, and what is lost behind it neither.
        Some(time) => drop(timeout(time, receiving).await),
        None => receiving.await?,
    }
    let outcome = meter.outcome(bytes.get(), options)?;
    if time.is_none() {
        sender.send(Bytes::from_static(&[1])).await?;
        sender.finish()?;
    }
    Ok(outcome)
}

async fn source<C: Connection>(connection: &mut C, options: &Options) -> Result<Outcome> {
    let (mut sender, mut receiver) = connection.open().await?;
    let (segment, meter, time) = (Bytes::from(options.segment()), Meter::start()?, options.time()?);
    let (began, bytes) = (Instant::now(), Cell::new(0));
    let sending = async {
        while time.is_some() || bytes.get() < options.bytes {
            let length = if time.is_some() { options.segment_bytes } else { options.segment_bytes.min(options.bytes - bytes.get()) };
            if options.rate > 0 {
                sleep_until((began + Duration::from_secs_f64(bytes.get() as f64 * 8.0 / options.rate as f64)).into()).await;
            }
            sender.send(segment.slice(..length as usize)).await?;
            bytes.set(bytes.get() + length);
        }
        anyhow::Ok(())
    };
    match time {
        // Ended by the time here, or by the other side's.
        Some(time) => drop(timeout(time + GRACE, sending).await),
        None => {
            sending.await?;
            let said = timeout(STALL, receiver.receive()).await.context("the other side has not said that it has everything")??;
            said.context("the other side has not said that it has everything")?;
        }
    }
    meter.outcome(bytes.get(), options)
}

async fn echo<C: Connection>(connection: &mut C, options: &Options) -> Result<Outcome> {
    let (mut sender, mut receiver) = timeout(STALL, connection.accept()).await.context("nobody has opened a stream")??;
    let (mut meter, mut bytes, mut last) = (None, 0, false);
    while !last || bytes % PING_BYTES != 0 {
        let ping = receiver.receive().await?.context("the stream ended before the last round trip")?;
        meter.get_or_insert(Meter::start()?);
        last = last || bytes % PING_BYTES == 0 && ping[0] == LAST;
        bytes += ping.len();
        sender.send(ping).await?;
    }
    let outcome = meter.map_or_else(Meter::start, Ok)?.outcome(bytes as u64, options)?;
    Ok(Outcome { complete: (bytes / PING_BYTES) as u64, ..outcome })
}

async fn ping<C: Connection>(connection: &mut C, options: &Options) -> Result<Outcome> {
    let (mut sender, mut receiver) = connection.open().await?;
    let (meter, mut round_trips_us, mut rounds, mut goes_on) = (Meter::start()?, Vec::new(), 0, true);
    while goes_on {
        goes_on = options.goes_on(rounds + 1, meter.elapsed())?;
        let ping = Bytes::from_static(if goes_on { &[1; PING_BYTES] } else { &[LAST; PING_BYTES] });
        let began = Instant::now();
        sender.send(ping).await?;
        let mut answered = 0;
        while answered < PING_BYTES {
            answered += receiver.receive().await?.with_context(|| format!("round trip {rounds} has no answer"))?.len();
        }
        if rounds >= options.warm_up {
            round_trips_us.push(began.elapsed().as_secs_f64() * 1e6);
        }
        rounds += 1;
    }
    let outcome = meter.outcome(rounds * PING_BYTES as u64, options)?;
    Ok(Outcome { complete: rounds, round_trips_us: Some(round_trips_us), ..outcome })
}

async fn collect<C: Connection>(connection: &mut C, options: &Options) -> Result<Outcome> {
    let arrivals = Rc::new(RefCell::new(Arrivals::new(options)?));
    let (said, mut heard) = tokio::sync::mpsc::unbounded_channel();
    loop {
        let end = arrivals.borrow().end();
        let accepted = tokio::select! {
            accepted = timeout_at(end.into(), connection.accept_one_way()) => accepted,
            _ = heard.recv() => {
                if arrivals.borrow().are_all() { break } else { continue }
            }
        };
        // The end of patience, or of the connection.
        let Ok(Ok(receiver)) = accepted else { break };
        arrivals.borrow_mut().begin()?;
        let (arrivals, options, said) = (Rc::clone(&arrivals), options.clone(), said.clone());
        spawn_local(async move {
            let known = take(receiver, &arrivals, &options).await;
            // Nobody listens when it is over.
            let _ = said.send(());
            known
        });
    }
    Ok(arrivals.replace(Arrivals::new(options)?).outcome())
}

/// Takes one segment.
async fn take(mut receiver: impl Receiver, arrivals: &RefCell<Arrivals>, options: &Options) -> Result<()> {
    let (mut head, mut length) = ([0; HEAD_BYTES], 0);
    while let Some(bytes) = receiver.receive().await? {
        if length < HEAD_BYTES {
            let fits = bytes.len().min(HEAD_BYTES - length);
            head[length..length + fits].copy_from_slice(&bytes[..fits]);
        }
        length += bytes.len();
    }
    arrivals.borrow_mut().complete(head, length, options)
}

async fn emit<C: Connection>(connection: &mut C, options: &Options) -> Result<Outcome> {
    let (schedule, meter) = (Schedule::start(options)?, Meter::start()?);
    let count = options.segments()?;
    let end = schedule.due(count) + TIMEOUT + GRACE;
    let mut sent = 0;
    while sent < count {
        sleep_until(schedule.due(sent).into()).await;
        // The other side has given up, or should have.
        let Ok(Ok(mut sender)) = timeout_at(end.into(), connection.open_one_way()).await else { break };
        sender.give_number(sent)?;
        let mut segment = options.segment();
        schedule.stamp(sent, &mut segment);
        spawn_local(async move {
            sender.send(segment.into()).await?;
            sender.finish()
        });
        sent += 1;
    }
    // The other side ends the connection when it has everything, or gives up.
    let _ = timeout_at(end.into(), connection.accept_one_way()).await;
    Ok(Outcome { complete: sent, ..meter.outcome(sent * options.segment_bytes, options)? })
}
