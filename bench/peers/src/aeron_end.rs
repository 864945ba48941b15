//! Aeron, by the crates `rusteron-client` and `rusteron-media-driver`, which build its C client and C media driver.
//!
//! Called by [`crate::end`]. Each side has a [`Driver`] of its own, on a thread of its own, and two channels go between them:
//!
//! ```text
//! running side --- publication ---------- UDP ----------> subscription --- serving side    at --bind
//!              <-- subscription --------- UDP ---------- publication ---
//! ```
//!
//! The serving side learns where to answer from the first message, which is the address of the running side's subscription:
//! the one from which the system reaches the other side, and a port that the system chose.
//!
//! Invariant: fragments are taken in order and one after the other, so the messages are a stream of bytes; a message is
//! never longer than the library allows.

use crate::aeron_driver::{Driver, HEADER_BYTES, datagram_bytes};
use crate::byte_stream::{self, CALL, Connection, STALL};
use crate::options::{Options, Side, Workload};
use crate::outcome::{self, Outcome};
use anyhow::{Context as _, Result, anyhow, bail};
use rusteron_client::{
    AeronExclusivePublication, AeronOfferError, AeronSubscription, BackoffIdleStrategy, Handlers, IdleStrategy, IntoCString as _,
    YieldingIdleStrategy,
};
use rusteron_media_driver::bindings::aeron_system_counter_enum_t as SystemCounter;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

/// Both channels carry this one stream.
const STREAM: i32 = 1001;
/// The log of the channel that carries answers of 64 bytes at most.
const ANSWERS: &str = "|term-length=1m";
/// Fragments that are taken at once at most: the sender learns of them when all are taken.
const FRAGMENTS: usize = 256;
/// How long a side waits for the other to leave, and how long its own leaving takes to be told.
const PARTING: Duration = Duration::from_secs(1);
const FAREWELL: Duration = Duration::from_millis(150);

struct Ends {
    // Dropped before the driver that carries them.
    publication: AeronExclusivePublication,
    subscription: AeronSubscription,
    driver: Driver,
    idle: Box<dyn IdleStrategy>,
    message_bytes: usize,
    payload_bytes: usize,
    /// Whether it stays until the other side has gone; what time ends is ended by the serving side, for both.
    leaves_last: bool,
    /// What is left of a fragment that was more than was asked for.
    rest: Vec<u8>,
}

/// One side of a workload.
pub(crate) fn run(options: &Options) -> Result<Outcome> {
    options.without_bbr("aeron")?;
    let driver = Driver::start(options)?;
    let idle: Box<dyn IdleStrategy> = if options.spin { Box::new(YieldingIdleStrategy) } else { Box::new(BackoffIdleStrategy::new()) };
    let mut ends = match options.side {
        Side::Serve => serve(driver, idle, options)?,
        Side::Run => connect(driver, idle, options)?,
    };
    let outcome = byte_stream::run(&mut ends, options);
    let wire_bytes = ends.wire_bytes().filter(|_| options.side == Side::Run);
    ends.leave();
    Ok(Outcome { wire_bytes, ..outcome? })
}

/// Waits for the running side and answers it.
fn serve(driver: Driver, idle: Box<dyn IdleStrategy>, options: &Options) -> Result<Ends> {
    let subscription = subscribe(&driver, options.bind)?;
    outcome::listening(endpoint(&driver, &subscription)?, "")?;
    let mut heard = Vec::new();
    wait(&driver, "nobody has connected", || {
        subscription.poll_fn(|fragment, _| heard.extend_from_slice(fragment), 1)?;
        Ok((!heard.is_empty()).then_some(()))
    })?;
    let answers_to = String::from_utf8_lossy(&heard);
    let answers_to: SocketAddr = answers_to.parse().with_context(|| format!("{answers_to} is no address to answer to"))?;
    let publication = publish(&driver, answers_to, ANSWERS)?;
    wait(&driver, "the other side does not take answers", || Ok(publication.is_connected().then_some(())))?;
    Ends::new(driver, idle, publication, subscription, options)
}

/// Connects to the serving side and tells it where to answer.
fn connect(driver: Driver, idle: Box<dyn IdleStrategy>, options: &Options) -> Result<Ends> {
    let peer = options.peer()?;
    let subscription = subscribe(&driver, SocketAddr::new(own_address(peer)?, 0))?;
    let here = endpoint(&driver, &subscription)?.to_string();
    let publication = publish(&driver, peer, "")?;
    wait(&driver, "the other side does not answer", || match publication.offer(here.as_bytes()) {
        Ok(_) => Ok(Some(())),
        Err(error) if error.is_retryable() => Ok(None),
        Err(error) => bail!("{error}"),
    })?;
    wait(&driver, "the other side does not answer", || Ok(subscription.is_connected().then_some(())))?;
    Ends::new(driver, idle, publication, subscription, options)
}

/// The address that this machine has on the way to the other.
fn own_address(peer: SocketAddr) -> Result<IpAddr> {
    let any = if peer.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any)?;
    socket.connect(peer).with_context(|| format!("there is no way to {peer}"))?;
    Ok(socket.local_addr()?.ip())
}

fn subscribe(driver: &Driver, address: SocketAddr) -> Result<AeronSubscription> {
    let channel = format!("aeron:udp?endpoint={address}").into_c_string();
    let adding = driver.client.async_add_subscription(&channel, STREAM, Handlers::NONE, Handlers::NONE)?;
    wait(driver, "the driver does not listen", || adding.poll().map_err(|error| anyhow!("{address} cannot be listened on: {error}")))
}

fn publish(driver: &Driver, address: SocketAddr, more: &str) -> Result<AeronExclusivePublication> {
    let channel = format!("aeron:udp?endpoint={address}{more}").into_c_string();
    let adding = driver.client.async_add_exclusive_publication(&channel, STREAM)?;
    wait(driver, "the driver does not send", || adding.poll().map_err(|error| anyhow!("{address} cannot be sent to: {error}")))
}

/// Where a subscription listens.
fn endpoint(driver: &Driver, subscription: &AeronSubscription) -> Result<SocketAddr> {
    wait(driver, "the driver does not say where it listens", || {
        let address = subscription.resolved_endpoint_as_string(64)?;
        if address.is_empty() {
            return Ok(None);
        }
        address.parse().map(Some).with_context(|| format!("{address} is no address"))
    })
}

/// Asks until there is something, the driver fails, or nothing came for [`STALL`].
fn wait<T>(driver: &Driver, complaint: &str, mut ask: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let end = Instant::now() + STALL;
    loop {
        if let Some(there) = ask()? {
            return Ok(there);
        }
        driver.alive()?;
        anyhow::ensure!(Instant::now() < end, "{complaint} for {} s", STALL.as_secs());
        thread::sleep(Duration::from_millis(1));
    }
}

impl Ends {
    fn new(
        driver: Driver,
        idle: Box<dyn IdleStrategy>,
        publication: AeronExclusivePublication,
        subscription: AeronSubscription,
        options: &Options,
    ) -> Result<Self> {
        let message_bytes = publication.get_constants()?.max_message_length();
        let payload_bytes = datagram_bytes(options) - HEADER_BYTES;
        let is_ended_by_time = options.workload == Workload::Throughput && options.time()?.is_some();
        let leaves_last = options.side == Side::Serve && !is_ended_by_time;
        Ok(Self { publication, subscription, driver, idle, message_bytes, payload_bytes, leaves_last, rest: Vec::new() })
    }

    /// Takes fragments that are there, as many as the buffer has room for, or one.
    fn poll(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = self.rest.len().min(buffer.len());
        buffer[..filled].copy_from_slice(&self.rest[..filled]);
        self.rest.drain(..filled);
        if filled == buffer.len() {
            return Ok(filled);
        }
        let (rest, limit) = (&mut self.rest, ((buffer.len() - filled) / self.payload_bytes).clamp(1, FRAGMENTS));
        let take = |fragment: &[u8], _| {
            let fits = fragment.len().min(buffer.len() - filled);
            buffer[filled..filled + fits].copy_from_slice(&fragment[..fits]);
            rest.extend_from_slice(&fragment[fits..]);
            filled += fits;
        };
        self.subscription.poll_fn(take, limit).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(filled)
    }

    /// Closes both channels and has the driver tell so, else the other side waits for seconds.
    fn leave(self) {
        let Self { publication, subscription, driver, .. } = self;
        drop((publication, subscription));
        thread::sleep(FAREWELL);
        drop(driver);
    }

    /// What the driver has sent, repetitions included, without its control messages.
    fn wire_bytes(&self) -> Option<u64> {
        let counters = self.driver.client.counters_reader();
        let value = |counter: SystemCounter| u64::try_from(counters.get_counter_value(counter as i32).ok()?).ok();
        Some(value(SystemCounter::AERON_SYSTEM_COUNTER_BYTES_SENT)? + value(SystemCounter::AERON_SYSTEM_COUNTER_RETRANSMITTED_BYTES)?)
    }
}

impl Connection for Ends {
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let end = Instant::now() + CALL;
        loop {
            // Asked before: what the other side sent before it went is there by then.
            let is_connected = self.subscription.is_connected();
            let filled = self.poll(buffer)?;
            self.idle.idle(filled as i32);
            if filled > 0 || !is_connected {
                return Ok(Some(filled));
            }
            if Instant::now() >= end {
                return Ok(None);
            }
            self.driver.alive()?;
        }
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<Option<usize>> {
        let length = bytes.len().min(self.message_bytes);
        let end = Instant::now() + CALL;
        loop {
            match self.publication.offer(&bytes[..length]) {
                Ok(_) => {
                    self.idle.idle(1);
                    return Ok(Some(length));
                }
                // It was connected, or this would not be called; who has gone does not come back.
                Err(AeronOfferError::NotConnected) => return Err(ErrorKind::ConnectionReset.into()),
                Err(error) if error.is_retryable() => {}
                Err(error) => return Err(io::Error::other(error.to_string())),
            }
            if Instant::now() >= end {
                return Ok(None);
            }
            self.driver.alive()?;
            self.idle.idle(0);
        }
    }

    fn idle(&mut self, until: Instant) -> io::Result<()> {
        // The driver has a thread of its own and goes on.
        thread::sleep(until.saturating_duration_since(Instant::now()));
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        let (end, mut unread) = (Instant::now() + PARTING, [0; 1 << 16]);
        // Whoever leaves last must not take with it what the other still needs repeated.
        while self.leaves_last && self.subscription.is_connected() && self.publication.is_connected() && Instant::now() < end {
            if self.poll(&mut unread)? == 0 {
                thread::sleep(Duration::from_millis(1));
            }
        }
        Ok(())
    }
}
