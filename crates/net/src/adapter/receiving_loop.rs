//! A receiving end with its socket, clock and loop, on the caller's thread.
//!
//! Called by the laboratory.
//!
//! Invariant: it receives one transfer and returns; every judged segment is handed to the sink once.

use super::failure::Failure;
use super::receiving::{Delivery, ReceivingConfig, ReceivingEndpoint};
use super::report::{Gauges, ReceiveReport, goodput};
use super::sending_loop::SLEEP_MAX;
use super::{AdapterError, Progress, Watch};
use crate::bind::{SocketConfig, SocketWarning};
use crate::clock::Clock;
use crate::driver::DriverConfig;
use crate::driver::blocking::BlockingDriver;
use crate::socket::Socket;
use crate::wake::Waker;
use segstream_base::Instant;
use segstream_base::halves::Receiver;
use std::io;
use std::net::SocketAddr;

/// How to receive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiveOptions {
    /// What is kept, in which order it is handed over, and when to give up.
    pub receiving: ReceivingConfig,
    /// What to ask of the system.
    pub socket: SocketConfig,
    /// What the driver may do at once.
    pub driver: DriverConfig,
}

/// A socket on which a half can receive.
#[derive(Debug)]
pub struct BlockingReceiver {
    driver: BlockingDriver,
    config: ReceivingConfig,
}

/// Listens on `listen` for one transfer, hands every judged segment to `sink`, and returns when the sender has
/// closed, or the transfer has failed. Waits for a sender for ever; [`Watch::stop`] ends that too.
///
/// `build` makes the half from the sender's parameters, as new at [`Instant::ZERO`]; its error is a reason that
/// the sender is told, after which the receiver listens on. An error of `sink` ends the transfer.
///
/// # Errors
///
/// Only what is no result of a transfer: a socket that cannot be opened, a system that fails. Everything a
/// network, a sender or the sink can do is in [`ReceiveReport::failure`].
pub fn receive_blocking<R: Receiver>(
    listen: SocketAddr,
    build: impl FnMut(&str) -> Result<R, String>,
    sink: impl FnMut(Delivery) -> io::Result<()>,
    options: ReceiveOptions,
    watch: Watch<'_>,
) -> Result<ReceiveReport, AdapterError> {
    BlockingReceiver::bind(listen, options)?.run(build, sink, watch)
}

impl BlockingReceiver {
    /// Opens a socket on `listen`; port 0 takes any free one.
    ///
    /// # Errors
    ///
    /// When the system refuses it.
    pub fn bind(listen: SocketAddr, options: ReceiveOptions) -> Result<Self, AdapterError> {
        let socket = Socket::bind(listen, &options.socket)?;
        Ok(Self { driver: BlockingDriver::new(socket, Clock::start(), options.driver)?, config: options.receiving })
    }

    /// The address it listens on.
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

    /// As [`receive_blocking`].
    ///
    /// # Errors
    ///
    /// As [`receive_blocking`].
    pub fn run<R: Receiver>(
        mut self,
        build: impl FnMut(&str) -> Result<R, String>,
        mut sink: impl FnMut(Delivery) -> io::Result<()>,
        mut watch: Watch<'_>,
    ) -> Result<ReceiveReport, AdapterError> {
        let clock = self.driver.clock();
        let mut endpoint = ReceivingEndpoint::new(build, self.config);
        let mut tally = Tally::default();
        loop {
            if watch.wants_stop() {
                endpoint.abort(clock.now(), Failure::Interrupted);
            }
            let before = tally.report.segments;
            while let Some(delivery) = endpoint.poll_delivery() {
                tally.count(&delivery, clock.now());
                if tally.sink_failed {
                    continue;
                }
                if let Err(error) = sink(delivery) {
                    tally.sink_failed = true;
                    // Why twice: a transfer that is over cannot be ended for it any more, but has failed all the same.
                    let failure = Failure::Sink { cause: error.to_string() };
                    endpoint.abort(clock.now(), failure.clone());
                    tally.report.failure.get_or_insert(failure);
                }
            }
            if tally.report.segments > before {
                watch.tell(Progress { bytes: tally.report.bytes, segments: tally.report.segments });
            }
            if endpoint.has_ended() {
                return Ok(tally.conclude(&endpoint));
            }
            self.driver.turn(&mut endpoint, Some(clock.now() + SLEEP_MAX))?;
        }
    }
}

/// The report while it grows.
#[derive(Debug, Default)]
struct Tally {
    report: ReceiveReport,
    last_delivery: Instant,
    sink_failed: bool,
}

impl Tally {
    fn count(&mut self, delivery: &Delivery, now: Instant) {
        self.last_delivery = now;
        let missing = delivery.missing_bytes();
        self.report.segments += 1;
        self.report.verdicts.count(delivery.verdict);
        self.report.holes += u64::from(delivery.holes);
        self.report.missing_bytes += missing;
        if delivery.verdict.is_met() {
            self.report.bytes += delivery.length.saturating_sub(missing);
        }
    }

    fn conclude<R: Receiver, B: FnMut(&str) -> Result<R, String>>(self, endpoint: &ReceivingEndpoint<R, B>) -> ReceiveReport {
        let mut report = self.report;
        let span = endpoint.first_data().map(|first| self.last_delivery.since(first)).unwrap_or_default();
        let mut gauges = Gauges::default();
        if let Some(half) = endpoint.half() {
            half.probe(&mut gauges);
        }
        report.peer = endpoint.peer();
        report.parameters = endpoint.parameters().map(str::to_owned);
        report.seconds = span.as_secs_f64();
        report.goodput_bps = goodput(report.bytes, span);
        report.segments_unfinished = endpoint.unfinished_segments();
        report.counters = endpoint.counters();
        report.gauges = gauges.0;
        if let Some(failure) = endpoint.failure() {
            report.failure.get_or_insert_with(|| failure.clone());
        }
        report
    }
}
