//! Bare UDP: a socket, the numbers datagrams begin with, and the messages that are no data.
//!
//! Called by [`super::raw_batch`] and [`super::raw_echo`].
//!
//! Invariant: one peer; what others send is not looked at.

use super::job::{Job, JobPolling};
use super::line::Listening;
use super::settings;
use crate::json;
use anyhow::{Result, bail, ensure};
use segstream::Clock;
use segstream_base::endpoint::{Local, Transmit};
use segstream_net::{Interest, ReceiveBatch, SendOutcome, Socket, SocketConfig};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// What every datagram of data begins with: its number.
pub(super) const NUMBER_BYTES: usize = 8;
/// The number that marks a message that is no data.
const CONTROL: u64 = u64::MAX;
/// A message that is no data: the mark, its kind, two counts.
const CONTROL_BYTES: usize = 25;
/// How long an end waits for the other one, which is started right after it.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
/// How long the sender waits for an answer before it asks again.
pub(super) const ASK_AGAIN: Duration = Duration::from_millis(200);
/// How often it asks before it gives up.
const ASKS_MAX: u32 = 25;
/// How long the receiver answers after the end, in case its last answer was lost.
const LINGER: Duration = Duration::from_millis(300);

/// What a datagram is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// Data, with its number.
    Data(u64),
    /// So many datagrams have left; the receiver is to answer.
    Asked { sent: u64 },
    /// The same, and there will be no more.
    Finished { sent: u64 },
    /// The receiver has seen numbers below `below`, and counted `received`.
    Acknowledged { below: u64, received: u64 },
    /// The receiver has heard of the end, and counted `received`.
    Farewell { received: u64 },
}

impl Message {
    /// Reads one; `None` for what cannot be one.
    pub(super) fn read(datagram: &[u8]) -> Option<Self> {
        let (number, rest) = datagram.split_first_chunk::<NUMBER_BYTES>()?;
        let number = u64::from_le_bytes(*number);
        if number != CONTROL {
            return Some(Self::Data(number));
        }
        let (&kind, rest) = rest.split_first()?;
        let (first, rest) = rest.split_first_chunk()?;
        let (second, _) = rest.split_first_chunk()?;
        let (first, second) = (u64::from_le_bytes(*first), u64::from_le_bytes(*second));
        match kind {
            0 => Some(Self::Asked { sent: first }),
            1 => Some(Self::Finished { sent: first }),
            2 => Some(Self::Acknowledged { below: first, received: second }),
            3 => Some(Self::Farewell { received: first }),
            _ => None,
        }
    }

    /// As a datagram; of data its number alone.
    fn written(self) -> Vec<u8> {
        let (kind, first, second) = match self {
            Self::Data(number) => return number.to_le_bytes().to_vec(),
            Self::Asked { sent } => (0, sent, 0),
            Self::Finished { sent } => (1, sent, 0),
            Self::Acknowledged { below, received } => (2, below, received),
            Self::Farewell { received } => (3, received, 0),
        };
        let mut bytes = Vec::with_capacity(CONTROL_BYTES);
        bytes.extend(CONTROL.to_le_bytes());
        bytes.push(kind);
        bytes.extend(first.to_le_bytes());
        bytes.extend(second.to_le_bytes());
        bytes
    }
}

/// A socket with its peer.
#[derive(Debug)]
pub(super) struct Raw {
    socket: Socket,
    batch: ReceiveBatch,
    peer: Option<SocketAddr>,
    /// Our address that the peer has sent to.
    local: Local,
    spins: bool,
}

impl Raw {
    /// The end that is connected to; says where it listens. Its peer is whoever comes first.
    pub(super) fn serve(bind: SocketAddr, job: &Job) -> Result<Self> {
        let raw = Self::open(bind, None, job)?;
        json::print(&Listening { listening: raw.socket.local_addr(), trust: String::new() })?;
        Ok(raw)
    }

    /// The end that goes to `connect`.
    pub(super) fn run(connect: SocketAddr, job: &Job) -> Result<Self> {
        Self::open(settings::any_port(connect), Some(connect), job)
    }

    fn open(bind: SocketAddr, peer: Option<SocketAddr>, job: &Job) -> Result<Self> {
        ensure!(
            (CONTROL_BYTES..=segstream_net::socket::SEND_BYTES_MAX).contains(&job.datagram_bytes),
            "a datagram of {} bytes is not possible; give --datagram-bytes {CONTROL_BYTES} to {}",
            job.datagram_bytes,
            segstream_net::socket::SEND_BYTES_MAX
        );
        let socket = Socket::bind(bind, &SocketConfig { offload: !job.no_offload, ..SocketConfig::default() })?;
        Ok(Self { socket, batch: ReceiveBatch::new(Clock::start()), peer, local: Local::ANY, spins: job.polling == JobPolling::Adaptive })
    }

    /// How many datagrams of this size the system takes in one call, with or without GSO.
    pub(super) fn batch_datagrams(&self, datagram_bytes: usize) -> usize {
        (segstream_net::socket::SEND_BYTES_MAX / datagram_bytes).clamp(1, self.socket.datagrams_per_send().max(1))
    }

    /// Hands what has arrived from the peer to `each`, message and length; whether anything had.
    pub(super) fn receive(&mut self, mut each: impl FnMut(Message, usize)) -> Result<bool> {
        let some = self.socket.receive(&mut self.batch)? > 0;
        for (datagram, arrival) in self.batch.datagrams() {
            if self.peer.is_none() {
                (self.peer, self.local) = (Some(arrival.from), arrival.to);
            }
            if self.peer == Some(arrival.from)
                && let Some(message) = Message::read(datagram)
            {
                each(message, datagram.len());
            }
        }
        Ok(some)
    }

    /// Sends equal datagrams, the last of which may be shorter, and waits for room as long as it takes. What the system
    /// refuses is an error: nothing would repair it.
    pub(super) fn send(&self, mut datagrams: &[u8], datagram_bytes: usize) -> Result<()> {
        let Some(to) = self.peer else { return Ok(()) };
        loop {
            match self.socket.send(&Transmit { to, from: self.local, datagram_bytes, ecn: None }, datagrams) {
                SendOutcome::Sent => return Ok(()),
                SendOutcome::WouldBlock { taken_bytes } => {
                    datagrams = datagrams.get(taken_bytes..).unwrap_or_default();
                    // Why bounded: the wait ends for a datagram that has arrived too, and nobody takes it here.
                    self.socket.wait(Some(Duration::from_millis(1)), Interest::ReadableOrWritable, &[])?;
                }
                SendOutcome::Dropped { reason, .. } => bail!("{to} cannot be sent to: {reason:?}"),
            }
        }
    }

    /// Sends one message.
    pub(super) fn tell(&self, message: Message) -> Result<()> {
        let bytes = message.written();
        self.send(&bytes, bytes.len())
    }

    /// Waits until something has arrived or `timeout` has passed; with `--polling adaptive` it returns at once.
    pub(super) fn wait(&self, timeout: Duration) -> Result<()> {
        if !self.spins {
            self.socket.wait(Some(timeout), Interest::Readable, &[])?;
        }
        Ok(())
    }

    /// Says that `sent` datagrams were all, until the receiver has heard it; what it has counted.
    ///
    /// # Errors
    /// When it does not answer.
    pub(super) fn finish(&mut self, sent: u64) -> Result<u64> {
        let mut asking = Asking::heard();
        self.tell(Message::Finished { sent })?;
        loop {
            let mut counted = None;
            self.receive(|message, _| {
                if let Message::Farewell { received } = message {
                    counted = Some(received);
                }
            })?;
            if let Some(counted) = counted {
                return Ok(counted);
            }
            self.wait(ASK_AGAIN)?;
            if asking.is_due()? {
                self.tell(Message::Finished { sent })?;
            }
        }
    }

    /// Bids farewell to a sender that has finished, and again for a while in case it was lost.
    pub(super) fn bid_farewell(&mut self, received: u64) -> Result<()> {
        let until = Instant::now() + LINGER;
        self.tell(Message::Farewell { received })?;
        while let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
            let mut asked = false;
            self.receive(|message, _| asked |= matches!(message, Message::Finished { .. }))?;
            if asked {
                self.tell(Message::Farewell { received })?;
            }
            self.wait(left)?;
        }
        Ok(())
    }

    /// Bytes of whole IP packets sent so far.
    pub(super) fn wire_bytes(&self) -> u64 {
        let counters = self.socket.counters();
        let overhead = if self.socket.local_addr().is_ipv4() { 28 } else { 48 };
        counters.bytes_sent + overhead * counters.datagrams_sent
    }
}

/// Asks the receiver again where an answer is late, and gives up at last.
#[derive(Debug)]
pub(super) struct Asking {
    since: Instant,
    asks: u32,
}

impl Asking {
    /// An answer has just come, or none is expected yet.
    pub(super) fn heard() -> Self {
        Self { since: Instant::now(), asks: 0 }
    }

    /// Whether it is time to ask.
    ///
    /// # Errors
    /// When it was asked often enough.
    pub(super) fn is_due(&mut self) -> Result<bool> {
        if self.since.elapsed() < ASK_AGAIN {
            return Ok(false);
        }
        ensure!(self.asks < ASKS_MAX, "the other end has not answered for {:?}", ASK_AGAIN * ASKS_MAX);
        (self.since, self.asks) = (Instant::now(), self.asks + 1);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_is_read_as_it_was_written_and_what_is_cut_is_none() {
        for message in [
            Message::Data(7),
            Message::Asked { sent: 1 },
            Message::Finished { sent: 2 },
            Message::Acknowledged { below: 3, received: 4 },
            Message::Farewell { received: 5 },
        ] {
            let bytes = message.written();
            assert_eq!(Message::read(&bytes), Some(message));
            assert_eq!(Message::read(&bytes[..bytes.len() - 1]), None);
        }
    }
}
