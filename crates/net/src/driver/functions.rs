//! Sending and receiving of a driver, each on the driver's own thread or on one of its own (HT 3: processing in parallel by
//! function).
//!
//! Called by the blocking driver. The protocol stays on the caller's thread; datagrams are passed to and from the other
//! threads in their buffers, by rings that have one writer and one reader and no locks.
//!
//! Invariant: what is sent leaves in the order it was written, and what has arrived is handed over in the order it came, on
//! however many threads. A driver that sleeps is woken by what its threads bring, and by nothing they do otherwise.

use super::bell::{Bell, Wanted};
use super::exchange::DatagramIo;
use super::receiving_thread::ReceivingThread;
use super::sending_thread::SendingThread;
use crate::clock::Clock;
use crate::receive::ReceiveBatch;
use crate::socket::{Interest, SendOutcome, Socket};
use crate::wake::{self, WakeListener};
use segstream_base::endpoint::Transmit;
use std::io;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::time::Duration;

/// Which functions of a driver have a thread of their own (HT 3). What each costs without is in `docs/PROFILE.md`: system calls
/// are about half of a datagram's time at either end. A further thread gains when there is a processor for it, and costs a
/// hand-over for each batch when there is not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Threads {
    /// None: all is done on the caller's thread. The default.
    #[default]
    One,
    /// Sending.
    Sending,
    /// Receiving.
    Receiving,
    /// Sending has one, and receiving another.
    Both,
}

/// What a wait has ended with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Awoken {
    /// There may be datagrams.
    pub(super) arrivals: bool,
    /// The listener of the driver was woken.
    pub(super) woken: bool,
    /// Something has ended it before time was up.
    pub(super) early: bool,
}

/// Sending and receiving of one driver.
#[derive(Debug)]
pub(super) struct Functions {
    socket: Arc<Socket>,
    sending: Option<SendingThread>,
    receiving: Option<ReceivingThread>,
    bell: Arc<Bell>,
    listener: WakeListener,
}

impl Functions {
    /// # Errors
    ///
    /// When the system gives no thread or no file descriptor.
    pub(super) fn new(socket: Arc<Socket>, clock: Clock, threads: Threads) -> io::Result<Self> {
        let (waker, listener) = wake::pair()?;
        let bell = Arc::new(Bell::new(waker));
        let (own_sending, own_receiving) =
            (matches!(threads, Threads::Sending | Threads::Both), matches!(threads, Threads::Receiving | Threads::Both));
        let start_sending = || SendingThread::start(Arc::clone(&socket), Arc::clone(&bell));
        let start_receiving = || ReceivingThread::start(Arc::clone(&socket), clock, Arc::clone(&bell));
        let sending = own_sending.then(start_sending).transpose()?;
        let receiving = own_receiving.then(start_receiving).transpose()?;
        Ok(Self { socket, sending, receiving, bell, listener })
    }

    pub(super) const fn socket(&self) -> &Arc<Socket> {
        &self.socket
    }

    /// Sleeps until datagrams have arrived, until there is room to send if the driver is `blocked`, until `driver` is woken,
    /// or for `timeout` (`None`: for ever).
    pub(super) fn wait(&self, timeout: Option<Duration>, blocked: bool, driver: &WakeListener) -> io::Result<Awoken> {
        let interest = match (self.receiving.is_none(), blocked && self.sending.is_none()) {
            (true, true) => Interest::ReadableOrWritable,
            (true, false) => Interest::Readable,
            (false, true) => Interest::Writable,
            (false, false) => Interest::Neither,
        };
        let wanted = Wanted { arrivals: self.receiving.is_some(), room: blocked && self.sending.is_some() };
        let wait = |news| {
            let timeout = if news { Some(Duration::ZERO) } else { timeout };
            self.socket.wait(timeout, interest, &[driver.as_fd(), self.listener.as_fd()])
        };
        let ready = self.bell.sleep(wanted, || self.has_news(blocked), wait)?;
        let [woken, rung] = ready.others;
        if rung {
            self.listener.clear();
        }
        let news = self.has_news(blocked);
        let arrivals = ready.readable || self.receiving.as_ref().is_some_and(ReceivingThread::has_arrivals);
        Ok(Awoken { arrivals, woken, early: ready.readable || ready.writable || woken || rung || news })
    }

    /// Whether a thread has something that the driver is about to wait for.
    fn has_news(&self, blocked: bool) -> bool {
        let arrivals = self.receiving.as_ref().is_some_and(ReceivingThread::has_arrivals);
        arrivals || blocked && self.sending.as_ref().is_some_and(SendingThread::has_room)
    }
}

impl DatagramIo for Functions {
    const TELLS_AGAIN: bool = true;

    fn receive(&mut self, batch: &mut Box<ReceiveBatch>) -> io::Result<usize> {
        match &mut self.receiving {
            Some(thread) => thread.receive(batch),
            None => self.socket.receive(batch),
        }
    }

    fn poll(&mut self, batch: &mut Box<ReceiveBatch>) -> io::Result<usize> {
        match &mut self.receiving {
            Some(thread) => thread.receive(batch),
            None => self.socket.poll(batch),
        }
    }

    fn send(&mut self, transmit: &Transmit, datagrams: &mut Vec<u8>, from: usize) -> SendOutcome {
        match &mut self.sending {
            Some(thread) => thread.send(transmit, datagrams),
            None => self.socket.send(transmit, datagrams.get(from..).unwrap_or_default()),
        }
    }

    fn datagrams_per_send(&self) -> usize {
        self.socket.datagrams_per_send()
    }
}
