//! A sending end with its socket, clock and loop, on the caller's thread.
//!
//! Called by the laboratory.
//!
//! Invariant: segments are passed to the scheme only when it accepts them, and no more than the buffer holds; reading them never
//! blocks the protocol.

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

/// The longest sleep, after which [`Watch::stop`] is checked.
pub(super) const SLEEP_MAX: Duration = Duration::from_millis(100);

/// How to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendOptions {
    /// The address to send from; by default unspecified, of the receiver's family.
    pub local: Option<SocketAddr>,
    /// The connection number; random by default, so that it cannot be guessed.
    pub connection: Option<u32>,
    /// The send buffer: bytes of segments without a verdict; 64 MiB by default. One segment is accepted whatever its size.
    pub buffer_bytes: u64,
    /// Retransmission intervals and timeouts.
    pub timing: Timing,
    /// The options of the socket.
    pub socket: SocketConfig,
    /// The options of the driver.
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
/// The time of `half` begins at [`Instant::ZERO`]; the receiver's builder makes its half from `parameters`. `segments` are read on
/// a separate thread ([`super::read_segments`] makes them from a reader).
///
/// # Errors
///
/// Only for a socket that cannot be opened, parameters that are too long, or a failure of the system. Failures of the network or the
/// receiver are in [`SendReport::failure`].
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
    /// If the system refuses it.
    pub fn bind(remote: SocketAddr, options: SendOptions) -> Result<Self, AdapterError> {
        let any = if remote.is_ipv4() { (Ipv4Addr::UNSPECIFIED, 0).into() } else { (Ipv6Addr::UNSPECIFIED, 0).into() };
        let socket = Socket::bind(options.local.unwrap_or(any), &options.socket)?;
        Ok(Self { driver: BlockingDriver::new(socket, Clock::start(), options.driver)?, remote, options })
    }

    /// The address it sends from.
    pub fn local_addr(&self) -> SocketAddr {
        self.driver.socket().local_addr()
    }

    /// Where the system granted less than was requested.
    pub fn warnings(&self) -> Vec<SocketWarning> {
        self.driver.socket().warnings().to_vec()
    }

    /// Makes the loop check [`Watch::stop`] at once.
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
        let transfer = Transfer { endpoint, source, totals: Totals::new(now), buffer_bytes: self.options.buffer_bytes, fed: false };
        transfer.run(&mut self.driver, watch)
    }
}

/// The running totals of the report.
#[derive(Debug)]
struct Totals {
    began: Instant,
    last_verdict: Instant,
    segments: u64,
    judged: u64,
    bytes: u64,
    verdicts: VerdictCounts,
}

impl Totals {
    fn new(now: Instant) -> Self {
        Self { began: now, last_verdict: now, segments: 0, judged: 0, bytes: 0, verdicts: VerdictCounts::default() }
    }
}

#[derive(Debug)]
struct Transfer<S: Sender> {
    endpoint: SendingEndpoint<S>,
    source: Source,
    totals: Totals,
    buffer_bytes: u64,
    /// Every segment was submitted, or no more will be.
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
            if self.process_events(clock.now()) {
                watch.tell(Progress { bytes: self.totals.bytes, segments: self.totals.judged });
            }
            if self.endpoint.has_ended() {
                return Ok(self.report());
            }
            driver.turn(&mut self.endpoint, Some(clock.now() + SLEEP_MAX))?;
        }
    }

    /// Submits segments while the scheme accepts them and the buffer has room.
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
                    Ok(_) => self.totals.segments += 1,
                    Err(NotTaken { bytes, cause: SubmitError::Blocked }) => {
                        self.source.put_back(bytes);
                        return;
                    }
                    Err(NotTaken { cause, .. }) => self.give_up(now, Failure::Submit { segment: self.totals.segments, cause }),
                },
            }
        }
    }

    fn give_up(&mut self, now: Instant, failure: Failure) {
        self.fed = true;
        self.endpoint.abort(now, failure);
    }

    /// Processes the events. Returns whether a segment was judged.
    fn process_events(&mut self, now: Instant) -> bool {
        let before = self.totals.judged;
        while let Some(event) = self.endpoint.poll_event() {
            // Why nothing is done when the window opens: submitting is tried after every turn.
            let SendingEvent::Judged { verdict, bytes, .. } = event else { continue };
            self.totals.judged += 1;
            self.totals.verdicts.count(verdict);
            if verdict.is_met() {
                self.totals.bytes += bytes;
            }
            if verdict != Verdict::Unknown {
                self.totals.last_verdict = now;
            }
        }
        self.totals.judged > before
    }

    fn report(self) -> SendReport {
        let Self { endpoint, totals, .. } = self;
        let (span, counters) = (totals.last_verdict.since(totals.began), endpoint.half().counters());
        let mut gauges = Gauges::default();
        endpoint.half().probe(&mut gauges);
        SendReport {
            peer: endpoint.remote(),
            bytes: totals.bytes,
            seconds: span.as_secs_f64(),
            goodput_bps: goodput(totals.bytes, span),
            segments: totals.segments,
            packets_sent: counters.packets_sent,
            packets_retransmitted: counters.packets_retransmitted,
            rtt_ms_min: endpoint.rtt_min().map(Duration::as_millis_f64),
            verdicts: totals.verdicts,
            confirmed: endpoint.is_confirmed(),
            counters: endpoint.counters(),
            gauges: gauges.0,
            failure: endpoint.failure().cloned(),
        }
    }
}
