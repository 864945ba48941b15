//! An honest client: connects, sends segments, waits for every verdict, closes.
//!
//! Called by the attacks, which stand in its way, and by the sender beside them. It is the protocol's endpoint on the
//! library's socket and driver, with labels on what it seals ([`crate::labels`]).
//!
//! Invariant: a transfer ends, well or not: by the limits of the protocol.

use crate::attacker::Tally;
use crate::labels::{LabelledTls, Labels};
use crate::pattern::pattern;
use anyhow::Context as _;
use segstream::{Admission, Bytes, Clock, CloseReason, ConnectionId, Contract, Identity, StreamId, SubmitError, Verdict, Waker};
use segstream_base::{Bandwidth, Duration};
use segstream_net::bind::SocketConfig;
use segstream_net::driver::DriverConfig;
use segstream_net::driver::blocking::BlockingDriver;
use segstream_net::socket::Socket;
use segstream_proto::config::Config;
use segstream_proto::connection::ConnectionEvent;
use segstream_proto::endpoint::Endpoint;
use segstream_secure::{Tls, Trust};
use std::net::SocketAddr;

/// A client.
#[derive(Debug)]
pub struct Client {
    endpoint: Endpoint,
    driver: BlockingDriver,
    key: String,
    /// What it has seen of the kinds.
    pub labels: Labels,
}

/// How far a transfer has come.
#[derive(Clone, Debug, Default)]
pub struct Transfer {
    /// Whether the connection is established, or was.
    pub connected: bool,
    /// Segments sent.
    pub sent: u64,
    /// Segments judged complete.
    pub complete: u64,
    /// Segments judged otherwise.
    pub other: u64,
    /// Why it has ended.
    pub ended: Option<CloseReason>,
}

impl Transfer {
    /// Whether everything went as promised.
    pub fn is_well(&self) -> bool {
        self.complete == self.sent && self.other == 0 && self.ended == Some(CloseReason::ClosedHere)
    }
}

impl std::fmt::Display for Transfer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {} segments complete", self.complete, self.sent)?;
        match &self.ended {
            Some(CloseReason::ClosedHere) | None => Ok(()),
            Some(reason) => write!(f, "; {reason}"),
        }
    }
}

impl Client {
    /// A client at `address` that sends at a fixed rate.
    ///
    /// # Errors
    /// When the system gives no socket or no randomness.
    pub fn bind(address: SocketAddr, rate: Bandwidth) -> anyhow::Result<Self> {
        let identity = Identity::generate()?;
        let (key, labels) = (identity.fingerprint().to_string(), Labels::default());
        let tls = Tls::new(identity, Admission::nobody(), None)?;
        let config = Config { connections: 1 << 16, ..Config::default() }.with_rate(rate);
        let endpoint = Endpoint::with_protection(config, Box::new(LabelledTls { tls, labels: labels.clone() }))?;
        let socket = Socket::bind(address, &SocketConfig::default())?;
        let driver = BlockingDriver::new(socket, Clock::start(), DriverConfig::default())?;
        Ok(Self { endpoint, driver, key, labels })
    }

    /// The fingerprint of its key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Where it is.
    pub fn address(&self) -> SocketAddr {
        self.driver.socket().local_addr()
    }

    /// What it has sent and received.
    pub fn tallies(&self) -> (Tally, Tally) {
        let counters = self.driver.socket().counters();
        (
            Tally { datagrams: counters.datagrams_sent, bytes: counters.bytes_sent },
            Tally { datagrams: counters.datagrams_received, bytes: counters.bytes_received },
        )
    }

    /// Ends a wait of [`Client::transfer`], which asks `more` again.
    pub fn waker(&self) -> Waker {
        self.driver.waker()
    }

    /// Asks for a connection with one stream.
    ///
    /// # Errors
    /// When it is not tried.
    pub fn connect(&mut self, to: SocketAddr) -> anyhow::Result<ConnectionId> {
        self.connect_under(to, Contract::default())
    }

    /// Asks for a connection with one stream under `contract`.
    ///
    /// # Errors
    /// When it is not tried.
    pub fn connect_under(&mut self, to: SocketAddr, contract: Contract) -> anyhow::Result<ConnectionId> {
        let now = self.driver.clock().now();
        self.endpoint.connect(now, to, &Trust::Anyone, vec![contract]).context("the connection was not tried")
    }

    /// Sends a segment of so many bytes.
    ///
    /// # Errors
    /// When there is no room for it.
    pub fn send(&mut self, id: ConnectionId, bytes: usize) -> anyhow::Result<()> {
        let now = self.driver.clock().now();
        let connection = self.endpoint.connection_mut(id).context("the connection is gone")?;
        connection.send(now, StreamId(0), Bytes::from(pattern(0, bytes)), now, None)?;
        Ok(())
    }

    /// Serves the network, for `time` at most, and gives what has happened.
    ///
    /// # Errors
    /// When the system fails.
    pub fn serve(&mut self, time: Duration) -> anyhow::Result<Vec<(ConnectionId, ConnectionEvent)>> {
        let until = self.driver.clock().now() + time;
        self.driver.turn(&mut self.endpoint, Some(until))?;
        Ok(core::iter::from_fn(|| self.endpoint.poll_event()).collect())
    }

    /// Forgets a connection that has ended; whether it is gone.
    pub fn release(&mut self, id: ConnectionId) -> bool {
        self.endpoint.release(id);
        self.endpoint.connection(id).is_none()
    }

    /// Sends segments of `bytes` bytes while `more` says so, then closes.
    ///
    /// # Errors
    /// When the system fails; errors of the network or the victim are in the transfer.
    pub fn transfer(
        &mut self,
        to: SocketAddr,
        bytes: usize,
        mut more: impl FnMut(&Transfer, &Labels) -> anyhow::Result<bool>,
    ) -> anyhow::Result<Transfer> {
        let id = self.connect(to)?;
        let (mut transfer, mut closing) = (Transfer::default(), false);
        loop {
            for (_, event) in self.serve(Duration::from_millis(50))? {
                match event {
                    ConnectionEvent::Connected => transfer.connected = true,
                    ConnectionEvent::Judged { verdict: Verdict::Complete, segments, .. } => {
                        transfer.complete += segments.end - segments.start;
                    }
                    ConnectionEvent::Judged { segments, .. } => transfer.other += segments.end - segments.start,
                    ConnectionEvent::Closed(reason) => transfer.ended = Some(reason),
                    _ => {}
                }
            }
            if transfer.ended.is_some() {
                if self.release(id) {
                    return Ok(transfer);
                }
            } else if transfer.connected && !closing {
                closing = !self.fill(id, bytes, &mut transfer, &mut more)?;
            }
        }
    }

    /// Sends as much as fits. Returns whether there is more to come.
    fn fill(
        &mut self,
        id: ConnectionId,
        bytes: usize,
        transfer: &mut Transfer,
        more: &mut impl FnMut(&Transfer, &Labels) -> anyhow::Result<bool>,
    ) -> anyhow::Result<bool> {
        let now = self.driver.clock().now();
        loop {
            let goes_on = more(transfer, &self.labels)?;
            let Some(connection) = self.endpoint.connection_mut(id) else { return Ok(false) };
            if !goes_on {
                connection.close(now, 0, "done");
                return Ok(false);
            }
            match connection.send(now, StreamId(0), Bytes::from(pattern(transfer.sent, bytes)), now, None) {
                Ok(_) => transfer.sent += 1,
                Err(SubmitError::Blocked) => return Ok(true),
                Err(error) => return Err(error.into()),
            }
        }
    }
}
