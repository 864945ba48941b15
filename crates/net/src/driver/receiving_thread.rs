//! Receiving on a thread of its own: what arrives is fetched from the system while what came before is looked at.
//!
//! Started by [`super::functions`].
//!
//! Invariant: batches are handed over in the order they came. There are as many as there are, whatever arrives: when none is
//! empty the rest waits in the system's buffer, as it does without a thread.

use super::bell::Bell;
use crate::clock::Clock;
use crate::receive::ReceiveBatch;
use crate::sleeper::Sleeper;
use crate::socket::{Interest, Socket};
use crate::wake::{self, WakeListener, Waker};
use rtrb::{Consumer, Producer, RingBuffer};
use std::io;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::thread::{self, JoinHandle};

/// Batches besides the one the driver looks at: one that is filled, and one on its way in each direction.
const BATCHES: usize = 3;

#[derive(Debug, Default)]
struct Shared {
    sleeper: Sleeper,
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
    /// What the thread has ended with.
    failed: io::ErrorKind,
}

impl ReceivingThread {
    pub(super) fn start(socket: Arc<Socket>, clock: Clock, bell: Arc<Bell>) -> io::Result<Self> {
        let (mut empty, given) = RingBuffer::new(BATCHES + 1);
        for _ in 0..BATCHES {
            // Why ignored: there is room for all of them.
            let _ = empty.push(Box::new(ReceiveBatch::new(clock)));
        }
        // Room for an error behind the last.
        let (filled, full) = RingBuffer::new(BATCHES + 2);
        let (shared, (waker, listener)) = (Arc::new(Shared::default()), wake::pair()?);
        let worker = Worker { socket, given, filled, shared: Arc::clone(&shared), bell, listener };
        let thread = thread::Builder::new().name("segstream-recv".to_owned()).spawn(move || worker.run())?;
        Ok(Self { full, empty, shared, waker, thread: Some(thread), failed: io::ErrorKind::Other })
    }

    /// Whether there is something to look at, or never will be again.
    pub(super) fn has_arrivals(&self) -> bool {
        !self.full.is_empty() || self.full.is_abandoned()
    }

    /// Exchanges the batch that has been looked at for the next; how many datagrams it has.
    ///
    /// # Errors
    ///
    /// What has ended the thread, from then on by every call.
    pub(super) fn receive(&mut self, batch: &mut Box<ReceiveBatch>) -> io::Result<usize> {
        // Why asked before: what the thread has left behind is in the ring by then.
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
        // Why ignored: there is room for as many as there are.
        let _ = self.empty.push(used);
        fence(Ordering::SeqCst);
        self.shared.sleeper.wake();
        Ok(batch.datagram_count())
    }
}

impl Drop for ReceivingThread {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        self.shared.sleeper.wake();
        self.waker.wake();
        if let Some(thread) = self.thread.take() {
            // Why ignored: a driver that is dropped has nobody to tell.
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
    bell: Arc<Bell>,
    listener: WakeListener,
}

impl Worker {
    fn run(mut self) {
        self.shared.sleeper.enter();
        while !self.is_stopped() {
            let Ok(batch) = self.given.pop() else {
                let given = &self.given;
                self.shared.sleeper.sleep(false, None, || !given.is_empty() || self.is_stopped());
                continue;
            };
            let filled = self.fill(batch).transpose();
            let Some(filled) = filled else { return };
            let failed = filled.is_err();
            // Why ignored: there is room for as many as there are, and for an error.
            let _ = self.filled.push(filled);
            self.bell.ring_for_arrivals();
            if failed {
                return;
            }
        }
    }

    fn is_stopped(&self) -> bool {
        self.shared.stop.load(Ordering::Relaxed)
    }

    /// Waits until there is something to fill `batch` with; `None` when the driver is gone.
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
