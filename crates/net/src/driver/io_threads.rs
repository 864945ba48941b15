//! Sending and receiving of a driver: each on the driver's thread or on an I/O thread (HT 3: processing in parallel by
//! function).
//!
//! Called by the blocking driver. The protocol stays on the caller's thread. Lock-free rings with one producer and one consumer
//! pass whole buffers of datagrams to and from the I/O threads.
//!
//! Invariant: datagrams leave in the order they were written and are delivered in the order they arrived, with any number of
//! threads. The I/O threads wake a sleeping driver only for what it waits for.

use super::event_loop::DatagramIo;
use super::notifier::{Notifier, Wanted};
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

/// Which functions of a driver have an I/O thread (HT 3). `docs/PROFILE.md` says what each costs without one: system calls take
/// about half of the time of a datagram at either end. An I/O thread helps if a processor is free for it; otherwise it costs
/// a hand-over for each batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Threads {
    /// None: the caller's thread does everything. The default.
    #[default]
    One,
    /// Sending.
    Sending,
    /// Receiving.
    Receiving,
    /// Sending and receiving, one thread each.
    Both,
}

/// How a wait has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct WaitOutcome {
    /// There may be datagrams.
    pub(super) arrivals: bool,
    /// The driver's listener was woken.
    pub(super) woken: bool,
    /// It ended before the timeout.
    pub(super) early: bool,
}

/// The socket of one driver and the I/O threads that it has.
#[derive(Debug)]
pub(super) struct IoThreads {
    socket: Arc<Socket>,
    sending: Option<SendingThread>,
    receiving: Option<ReceivingThread>,
    notifier: Arc<Notifier>,
    listener: WakeListener,
}

impl IoThreads {
    /// # Errors
    ///
    /// When the system cannot start a thread or has no file descriptor left.
    pub(super) fn new(socket: Arc<Socket>, clock: Clock, threads: Threads) -> io::Result<Self> {
        let (waker, listener) = wake::pair()?;
        let notifier = Arc::new(Notifier::new(waker));
        let (own_sending, own_receiving) =
            (matches!(threads, Threads::Sending | Threads::Both), matches!(threads, Threads::Receiving | Threads::Both));
        let start_sending = || SendingThread::start(Arc::clone(&socket), Arc::clone(&notifier));
        let start_receiving = || ReceivingThread::start(Arc::clone(&socket), clock, Arc::clone(&notifier));
        let sending = own_sending.then(start_sending).transpose()?;
        let receiving = own_receiving.then(start_receiving).transpose()?;
        Ok(Self { socket, sending, receiving, notifier, listener })
    }

    pub(super) const fn socket(&self) -> &Arc<Socket> {
        &self.socket
    }

    /// Sleeps until datagrams have arrived, until there is room in the send buffer if the driver is `blocked`, until `driver` is
    /// woken, or for `timeout` (`None`: without limit).
    pub(super) fn wait(&self, timeout: Option<Duration>, blocked: bool, driver: &WakeListener) -> io::Result<WaitOutcome> {
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
        let ready = self.notifier.sleep(wanted, || self.is_ready(blocked), wait)?;
        let [woken, notified] = ready.others;
        if notified {
            self.listener.clear();
        }
        let news = self.is_ready(blocked);
        let arrivals = ready.readable || self.receiving.as_ref().is_some_and(ReceivingThread::has_arrivals);
        Ok(WaitOutcome { arrivals, woken, early: ready.readable || ready.writable || woken || notified || news })
    }

    /// Whether an I/O thread has something that the driver is about to wait for.
    fn is_ready(&self, blocked: bool) -> bool {
        let arrivals = self.receiving.as_ref().is_some_and(ReceivingThread::has_arrivals);
        arrivals || blocked && self.sending.as_ref().is_some_and(SendingThread::has_room)
    }
}

impl DatagramIo for IoThreads {
    const LEVEL_TRIGGERED: bool = true;

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
