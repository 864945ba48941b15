//! A sending end with its socket, clock and loop, on the caller's thread.
//!
//! Called by the laboratory.
//!
//! Invariant: segments are handed to the scheme no earlier than it takes them, and no more of them than the
//! buffer holds; reading them never stops the protocol.

use super::failure::Failure;
use super::peer::Timing;
use super::report::{Gauges, SendReport, VerdictCounts, goodput};
use super::sending::{NotTaken, SendingEndpoint, SendingEvent};
use super::source::{Offer, Source};
use super::{AdapterError, Progress, Watch};
use crate::bind::{SocketConfig, SocketWarning};
use crate::clock::Clock;
use crate::driver::DriverConfig;
use crate::driver::blocking::BlockingDriver;
use crate::socket::Socket;
use crate::wake::Waker;
use segstream_base::halves::{Sender, SubmitError, Verdict};
use segstream_base::{Duration, Instant};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// The longest sleep, after which [`Watch::stop`] is looked at.
pub(super) const SLEEP_MAX: Duration = Duration::from_millis(100);

/// How to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendOptions {
    /// The address to send from; by default any, of the receiver's family.
    pub local: Option<SocketAddr>,
    /// The connection's number; by default one that nobody can guess.
    pub connection: Option<u32>,
    /// Bytes of segments without a verdict that are kept at most, but for one segment; 64 MiB by default.
    pub buffer_bytes: u64,
    /// When OPEN and CLOSE are repeated, and when to give up.
    pub timing: Timing,
    /// What to ask of the system.
    pub socket: SocketConfig,
    /// What the driver may do at once.
    pub driver: DriverConfig,
}

impl Default for SendOptions {
    fn default() -> Self {
        Self {
            local: None,
            connection: None,
            buffer_bytes: 64 << 20,
            timing: Timing::default(),
            socket: SocketConfig::default(),
            driver: DriverConfig::default(),
        }
    }
}

/// A socket from which a half can send.
#[derive(Debug)]
pub struct BlockingSender {
    driver: BlockingDriver,
    remote: SocketAddr,
    options: SendOptions,
}

/// Sends `segments` to `remote` through `half`, and returns when all are judged or the transfer has failed.
///
/// `half` is as new at [`Instant::ZERO`]; `parameters` is what the receiver's builder makes its half from.
/// `segments` are read on a thread of their own ([`super::read_segments`] makes them of a reader).
///
/// # Errors
///
/// Only what is no result of a transfer: a socket that cannot be opened, parameters that are too long, a
/// system that fails. Everything a network or a receiver can do is in [`SendReport::failure`].
pub fn send_blocking<S: Sender>(
    half: S,
    segments: impl Iterator<Item = io::Result<Vec<u8>>> + Send + 'static,
    remote: SocketAddr,
    parameters: &str,
    options: SendOptions,
    watch: Watch<'_>,
) -> Result<SendReport, AdapterError> {
    BlockingSender::bind(remote, options)?.run(half, parameters, segments, watch)
}

impl BlockingSender {
    /// Opens a socket for a transfer to `remote`.
    ///
    /// # Errors
    ///
    /// When the system refuses it.
    pub fn bind(remote: SocketAddr, options: SendOptions) -> Result<Self, AdapterError> {
        let any = if remote.is_ipv4() { (Ipv4Addr::UNSPECIFIED, 0).into() } else { (Ipv6Addr::UNSPECIFIED, 0).into() };
        let socket = Socket::bind(options.local.unwrap_or(any), &options.socket)?;
        Ok(Self { driver: BlockingDriver::new(socket, Clock::start(), options.driver)?, remote, options })
    }

    /// The address it sends from.
    pub fn local_addr(&self) -> SocketAddr {
        self.driver.socket().local_addr()
    }

    /// What the system granted less of than was asked for.
    pub fn warnings(&self) -> Vec<SocketWarning> {
        self.driver.socket().warnings().to_vec()
    }

    /// Makes the loop look at [`Watch::stop`] at once.
    pub fn waker(&self) -> Waker {
        self.driver.waker()
    }

    /// As [`send_blocking`].
    ///
    /// # Errors
    ///
    /// As [`send_blocking`].
    pub fn run<S: Sender>(
        mut self,
        half: S,
        parameters: &str,
        segments: impl Iterator<Item = io::Result<Vec<u8>>> + Send + 'static,
        watch: Watch<'_>,
    ) -> Result<SendReport, AdapterError> {
        let now = self.driver.clock().now();
        let connection = self.options.connection.unwrap_or_else(|| RandomState::new().build_hasher().finish() as u32);
        let endpoint = SendingEndpoint::new(now, half, self.remote, connection, parameters, self.options.timing)?;
        let source = Source::start(segments, self.driver.waker())?;
        let transfer = Transfer { endpoint, source, tally: Tally::new(now), buffer_bytes: self.options.buffer_bytes, fed: false };
        transfer.run(&mut self.driver, watch)
    }
}

/// What was judged so far.
#[derive(Debug)]
struct Tally {
    began: Instant,
    last_verdict: Instant,
    segments: u64,
    judged: u64,
    bytes: u64,
    verdicts: VerdictCounts,
}

impl Tally {
    fn new(now: Instant) -> Self {
        Self { began: now, last_verdict: now, segments: 0, judged: 0, bytes: 0, verdicts: VerdictCounts::default() }
    }
}

#[derive(Debug)]
struct Transfer<S: Sender> {
    endpoint: SendingEndpoint<S>,
    source: Source,
    tally: Tally,
    buffer_bytes: u64,
    /// Everything was handed over, or nothing more will be.
    fed: bool,
}

impl<S: Sender> Transfer<S> {
    fn run(mut self, driver: &mut BlockingDriver, mut watch: Watch<'_>) -> Result<SendReport, AdapterError> {
        let clock = driver.clock();
        loop {
            let now = clock.now();
            if watch.wants_stop() {
                self.endpoint.abort(now, Failure::Interrupted);
            }
            if self.endpoint.is_open() {
                self.feed(now);
            }
            if self.hear(clock.now()) {
                watch.tell(Progress { bytes: self.tally.bytes, segments: self.tally.judged });
            }
            if self.endpoint.has_ended() {
                return Ok(self.report());
            }
            driver.turn(&mut self.endpoint, Some(clock.now() + SLEEP_MAX))?;
        }
    }

    /// Hands over segments as long as the scheme takes them and the buffer has room.
    fn feed(&mut self, now: Instant) {
        while !self.fed && self.endpoint.unjudged_bytes() < self.buffer_bytes {
            match self.source.next() {
                Offer::Nothing => return,
                Offer::End => {
                    self.fed = true;
                    self.endpoint.finish(now);
                }
                Offer::Failed(error) => self.give_up(now, Failure::Source { cause: error.to_string() }),
                Offer::Segment(bytes) => match self.endpoint.submit(now, bytes, None) {
                    Ok(_) => self.tally.segments += 1,
                    Err(NotTaken { bytes, cause: SubmitError::Blocked }) => {
                        self.source.put_back(bytes);
                        return;
                    }
                    Err(NotTaken { cause, .. }) => self.give_up(now, Failure::Submit { segment: self.tally.segments, cause }),
                },
            }
        }
    }

    fn give_up(&mut self, now: Instant, failure: Failure) {
        self.fed = true;
        self.endpoint.abort(now, failure);
    }

    /// Takes the events; whether a segment was judged.
    fn hear(&mut self, now: Instant) -> bool {
        let before = self.tally.judged;
        while let Some(event) = self.endpoint.poll_event() {
            // Why nothing is done about an open window: feeding is tried after every turn.
            let SendingEvent::Judged { verdict, bytes, .. } = event else { continue };
            self.tally.judged += 1;
            self.tally.verdicts.count(verdict);
            if verdict.is_met() {
                self.tally.bytes += bytes;
            }
            if verdict != Verdict::Unknown {
                self.tally.last_verdict = now;
            }
        }
        self.tally.judged > before
    }

    fn report(self) -> SendReport {
        let Self { endpoint, tally, .. } = self;
        let (span, counters) = (tally.last_verdict.since(tally.began), endpoint.half().counters());
        let mut gauges = Gauges::default();
        endpoint.half().probe(&mut gauges);
        SendReport {
            peer: endpoint.remote(),
            bytes: tally.bytes,
            seconds: span.as_secs_f64(),
            goodput_bps: goodput(tally.bytes, span),
            segments: tally.segments,
            packets_sent: counters.packets_sent,
            packets_retransmitted: counters.packets_retransmitted,
            rtt_ms_min: endpoint.rtt_min().map(Duration::as_millis_f64),
            verdicts: tally.verdicts,
            confirmed: endpoint.is_confirmed(),
            counters: endpoint.counters(),
            gauges: gauges.0,
            failure: endpoint.failure().cloned(),
        }
    }
}
