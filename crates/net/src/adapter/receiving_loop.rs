//! A receiving end with its socket, clock and loop, on the caller's thread.
//!
//! Called by the laboratory.
//!
//! Invariant: it receives one transfer and returns; every judged segment is passed to the sink once.

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
    /// The order of delivery, the limits of the buffer, and timeouts.
    pub receiving: ReceivingConfig,
    /// The options of the socket.
    pub socket: SocketConfig,
    /// The options of the driver.
    pub driver: DriverConfig,
}

/// A socket on which a half can receive.
#[derive(Debug)]
pub struct BlockingReceiver {
    driver: BlockingDriver,
    config: ReceivingConfig,
}

/// Listens on `listen` for one transfer, passes every judged segment to `sink`, and returns when the sender has closed or the
/// transfer has failed. It waits for a sender without a timeout; [`Watch::stop`] ends that too.
///
/// `build` makes the half from the sender's parameters; the half's time begins at [`Instant::ZERO`]. Its error is a reason that is
/// sent to the sender; then the receiver goes on listening. An error of `sink` ends the transfer.
///
/// # Errors
///
/// Only for a socket that cannot be opened, or a failure of the system. Failures of the network, the sender or the sink are in
/// [`ReceiveReport::failure`].
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
    /// Opens a socket on `listen`; port 0 takes any free port.
    ///
    /// # Errors
    ///
    /// If the system refuses it.
    pub fn bind(listen: SocketAddr, options: ReceiveOptions) -> Result<Self, AdapterError> {
        let socket = Socket::bind(listen, &options.socket)?;
        Ok(Self { driver: BlockingDriver::new(socket, Clock::start(), options.driver)?, config: options.receiving })
    }

    /// The address it listens on.
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
        let mut totals = Totals::default();
        loop {
            if watch.wants_stop() {
                endpoint.abort(clock.now(), Failure::Interrupted);
            }
            let before = totals.report.segments;
            while let Some(delivery) = endpoint.poll_delivery() {
                totals.count(&delivery, clock.now());
                if totals.sink_failed {
                    continue;
                }
                if let Err(error) = sink(delivery) {
                    totals.sink_failed = true;
                    // Why recorded here too: a transfer that is over cannot be aborted any more, but it has failed all the same.
                    let failure = Failure::Sink { cause: error.to_string() };
                    endpoint.abort(clock.now(), failure.clone());
                    totals.report.failure.get_or_insert(failure);
                }
            }
            if totals.report.segments > before {
                watch.tell(Progress { bytes: totals.report.bytes, segments: totals.report.segments });
            }
            if endpoint.has_ended() {
                return Ok(totals.finish(&endpoint));
            }
            self.driver.turn(&mut endpoint, Some(clock.now() + SLEEP_MAX))?;
        }
    }
}

/// The running totals of the report.
#[derive(Debug, Default)]
struct Totals {
    report: ReceiveReport,
    last_delivery: Instant,
    sink_failed: bool,
}

impl Totals {
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

    fn finish<R: Receiver, B: FnMut(&str) -> Result<R, String>>(self, endpoint: &ReceivingEndpoint<R, B>) -> ReceiveReport {
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
