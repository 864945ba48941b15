//! The I/O thread that sends: it hands datagrams to the kernel while the endpoint writes the next ones.
//!
//! Started by [`super::io_threads`].
//!
//! Invariant: GSO batches leave in the order they were given. Before the thread ends, each has left or was counted as dropped by
//! the socket. If the kernel takes nothing for [`FLUSH_TIMEOUT`] at the end, the rest is counted as dropped too.

use super::notifier::Notifier;
use crate::parker::Parker;
use crate::socket::{Interest, SEND_BYTES_MAX, SendOutcome, Socket};
use rtrb::{Consumer, Producer, RingBuffer};
use segstream_base::endpoint::Transmit;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// GSO batches queued for the thread: enough that it is never idle, few enough that they stay in a cache.
const BATCHES_MAX: usize = 8;

/// For how long a thread that is stopping tries to send what it was given.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(100);

/// How often an idle thread polls its ring before it blocks. Writing a GSO batch takes about as long.
const SPINS: u32 = 200;

/// Datagrams of one destination.
#[derive(Debug)]
struct GsoBatch {
    transmit: Transmit,
    datagrams: Vec<u8>,
}

#[derive(Debug, Default)]
struct Shared {
    parker: Parker,
    stop: AtomicBool,
}

/// The driver's end.
#[derive(Debug)]
pub(super) struct SendingThread {
    full: Producer<GsoBatch>,
    empty: Consumer<Vec<u8>>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl SendingThread {
    pub(super) fn start(socket: Arc<Socket>, notifier: Arc<Notifier>) -> io::Result<Self> {
        let (full, given) = RingBuffer::new(BATCHES_MAX);
        let (used, empty) = RingBuffer::new(BATCHES_MAX + 1);
        let shared = Arc::new(Shared::default());
        let worker = Worker { socket, given, used, shared: Arc::clone(&shared), notifier, stuck_since: None };
        let thread = thread::Builder::new().name("segstream-send".to_owned()).spawn(move || worker.run())?;
        Ok(Self { full, empty, shared, thread: Some(thread) })
    }

    /// Whether one more GSO batch would be taken.
    pub(super) fn has_room(&self) -> bool {
        !self.full.is_full()
    }

    /// Passes all of `datagrams` to the thread and puts an empty buffer in their place; or nothing, if its queue is full.
    pub(super) fn send(&mut self, transmit: &Transmit, datagrams: &mut Vec<u8>) -> SendOutcome {
        if self.full.is_full() {
            return SendOutcome::WouldBlock { taken_bytes: 0 };
        }
        let empty = self.empty.pop().unwrap_or_else(|_| Vec::with_capacity(SEND_BYTES_MAX));
        let batch = GsoBatch { transmit: *transmit, datagrams: std::mem::replace(datagrams, empty) };
        // Why this cannot fail: this is the only producer of the ring.
        let _ = self.full.push(batch);
        fence(Ordering::SeqCst);
        self.shared.parker.wake();
        SendOutcome::Sent
    }
}

impl Drop for SendingThread {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        fence(Ordering::SeqCst);
        self.shared.parker.wake();
        if let Some(thread) = self.thread.take() {
            // Why the result is ignored: a driver that is being dropped cannot report it.
            let _ = thread.join();
        }
    }
}

/// The thread's end.
struct Worker {
    socket: Arc<Socket>,
    given: Consumer<GsoBatch>,
    used: Producer<Vec<u8>>,
    shared: Arc<Shared>,
    notifier: Arc<Notifier>,
    /// Since when a thread that is stopping has found no room in the send buffer.
    stuck_since: Option<Instant>,
}

impl Worker {
    fn run(mut self) {
        self.shared.parker.register();
        let mut spins = 0;
        loop {
            // Invariant: `stop` is read before the ring. A driver pushes its last GSO batch and then sets `stop`. So a ring that is
            // empty after `stop` was seen stays empty; one that was empty before may have got a GSO batch since.
            let stopping = self.shared.stop.load(Ordering::Acquire);
            if let Ok(batch) = self.given.pop() {
                self.notifier.notify_room();
                self.send(batch);
                spins = 0;
            } else if stopping {
                return;
            } else if spins < SPINS {
                spins += 1;
                std::hint::spin_loop();
            } else {
                let (given, shared) = (&self.given, &self.shared);
                shared.parker.sleep(false, None, || !given.is_empty() || shared.stop.load(Ordering::Relaxed));
                spins = 0;
            }
        }
    }

    fn send(&mut self, batch: GsoBatch) {
        let GsoBatch { transmit, mut datagrams } = batch;
        let mut from = 0;
        while let SendOutcome::WouldBlock { taken_bytes } = self.socket.send(&transmit, &datagrams[from..]) {
            from += taken_bytes;
            if taken_bytes > 0 {
                self.stuck_since = None;
            }
            if self.shared.stop.load(Ordering::Relaxed) && self.stuck_since.get_or_insert_with(Instant::now).elapsed() > FLUSH_TIMEOUT {
                self.socket.count_unsent((datagrams.len() - from).div_ceil(transmit.datagram_bytes.max(1)));
                break;
            }
            // Why a timeout: the end of the driver does not end this wait. Why the result is ignored: the next call fails the same way.
            let _ = self.socket.wait(Some(FLUSH_TIMEOUT), Interest::Writable, &[]);
        }
        datagrams.clear();
        // Why the result is ignored: a buffer that finds no room is freed.
        let _ = self.used.push(datagrams);
    }
}
