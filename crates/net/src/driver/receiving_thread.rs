//! The I/O thread that receives: it reads datagrams from the socket while the driver processes earlier ones.
//!
//! Started by [`super::io_threads`].
//!
//! Invariant: batches are passed on in the order they arrived. Their number is fixed, whatever arrives: when none is empty,
//! datagrams wait in the socket's receive buffer, as they do without this thread.

use super::notifier::Notifier;
use crate::clock::Clock;
use crate::parker::Parker;
use crate::receive::ReceiveBatch;
use crate::socket::{Interest, Socket};
use crate::wake::{self, WakeListener, Waker};
use rtrb::{Consumer, Producer, RingBuffer};
use std::io;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::thread::{self, JoinHandle};

/// Batches besides the one that the driver processes: one being filled, and one in each ring.
const BATCHES: usize = 3;

#[derive(Debug, Default)]
struct Shared {
    parker: Parker,
    stop: AtomicBool,
}

type Filled = io::Result<Box<ReceiveBatch>>;

/// The driver's end.
#[derive(Debug)]
pub(super) struct ReceivingThread {
    full: Consumer<Filled>,
    empty: Producer<Box<ReceiveBatch>>,
    shared: Arc<Shared>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
    /// The error that has ended the thread.
    failed: io::ErrorKind,
}

impl ReceivingThread {
    pub(super) fn start(socket: Arc<Socket>, clock: Clock, notifier: Arc<Notifier>) -> io::Result<Self> {
        let (mut empty, given) = RingBuffer::new(BATCHES + 1);
        for _ in 0..BATCHES {
            // Why the result is ignored: the ring has room for all of them.
            let _ = empty.push(Box::new(ReceiveBatch::new(clock)));
        }
        // One more place for an error after the last batch.
        let (filled, full) = RingBuffer::new(BATCHES + 2);
        let (shared, (waker, listener)) = (Arc::new(Shared::default()), wake::pair()?);
        let worker = Worker { socket, given, filled, shared: Arc::clone(&shared), notifier, listener };
        let thread = thread::Builder::new().name("segstream-recv".to_owned()).spawn(move || worker.run())?;
        Ok(Self { full, empty, shared, waker, thread: Some(thread), failed: io::ErrorKind::Other })
    }

    /// Whether a batch is ready, or the thread has ended.
    pub(super) fn has_arrivals(&self) -> bool {
        !self.full.is_empty() || self.full.is_abandoned()
    }

    /// Exchanges the processed batch for the next one. Returns the number of datagrams in it.
    ///
    /// # Errors
    ///
    /// The error that has ended the thread; from then on every call returns it.
    pub(super) fn receive(&mut self, batch: &mut Box<ReceiveBatch>) -> io::Result<usize> {
        // Why checked before the ring is read: then all that the thread has pushed is in the ring.
        let ended = self.full.is_abandoned();
        let filled = match self.full.pop() {
            Ok(filled) => filled.inspect_err(|error| self.failed = error.kind())?,
            Err(_) if ended => return Err(io::Error::new(self.failed, "the thread that receives has ended")),
            Err(_) => {
                batch.set_drained();
                return Ok(0);
            }
        };
        let used = std::mem::replace(batch, filled);
        // Why the result is ignored: the ring has room for all batches.
        let _ = self.empty.push(used);
        fence(Ordering::SeqCst);
        self.shared.parker.wake();
        Ok(batch.datagram_count())
    }
}

impl Drop for ReceivingThread {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        self.shared.parker.wake();
        self.waker.wake();
        if let Some(thread) = self.thread.take() {
            // Why the result is ignored: a driver that is being dropped cannot report it.
            let _ = thread.join();
        }
    }
}

/// The thread's end.
struct Worker {
    socket: Arc<Socket>,
    given: Consumer<Box<ReceiveBatch>>,
    filled: Producer<Filled>,
    shared: Arc<Shared>,
    notifier: Arc<Notifier>,
    listener: WakeListener,
}

impl Worker {
    fn run(mut self) {
        self.shared.parker.register();
        while !self.is_stopped() {
            let Ok(batch) = self.given.pop() else {
                let given = &self.given;
                self.shared.parker.sleep(false, None, || !given.is_empty() || self.is_stopped());
                continue;
            };
            let filled = self.fill(batch).transpose();
            let Some(filled) = filled else { return };
            let failed = filled.is_err();
            // Why the result is ignored: the ring has room for all batches and an error.
            let _ = self.filled.push(filled);
            self.notifier.notify_arrivals();
            if failed {
                return;
            }
        }
    }

    fn is_stopped(&self) -> bool {
        self.shared.stop.load(Ordering::Relaxed)
    }

    /// Waits for datagrams and fills `batch` with them; `None` when the driver was dropped.
    fn fill(&self, mut batch: Box<ReceiveBatch>) -> io::Result<Option<Box<ReceiveBatch>>> {
        while self.socket.receive(&mut batch)? == 0 {
            self.socket.wait(None, Interest::Readable, &[self.listener.as_fd()])?;
            if self.is_stopped() {
                return Ok(None);
            }
        }
        Ok(Some(batch))
    }
}
