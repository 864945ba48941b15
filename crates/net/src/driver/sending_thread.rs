//! Sending on a thread of its own: what an endpoint has written is handed to the system while the next is written.
//!
//! Started by [`super::functions`].
//!
//! Invariant: GSO batches leave in the order they were given. One that is given has left, or was dropped by the socket and counted
//! there, before the thread ends; when the system takes nothing for [`FLUSH_TIMEOUT`] then, the rest is counted as dropped too.

use super::bell::Bell;
use crate::sleeper::Sleeper;
use crate::socket::{Interest, SEND_BYTES_MAX, SendOutcome, Socket};
use rtrb::{Consumer, Producer, RingBuffer};
use segstream_base::endpoint::Transmit;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// GSO batches on their way to the thread: enough that it is never idle, few enough that what they hold stays in a cache.
const BATCHES_MAX: usize = 8;

/// How long a thread that is to end tries to send what it was given.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(100);

/// How often an idle thread polls its ring before it blocks: a GSO batch takes about as long to write.
const SPINS: u32 = 200;

/// Datagrams of one destination.
#[derive(Debug)]
struct GsoBatch {
    transmit: Transmit,
    datagrams: Vec<u8>,
}

#[derive(Debug, Default)]
struct Shared {
    sleeper: Sleeper,
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
    pub(super) fn start(socket: Arc<Socket>, bell: Arc<Bell>) -> io::Result<Self> {
        let (full, given) = RingBuffer::new(BATCHES_MAX);
        let (used, empty) = RingBuffer::new(BATCHES_MAX + 1);
        let shared = Arc::new(Shared::default());
        let worker = Worker { socket, given, used, shared: Arc::clone(&shared), bell, stuck_since: None };
        let thread = thread::Builder::new().name("segstream-send".to_owned()).spawn(move || worker.run())?;
        Ok(Self { full, empty, shared, thread: Some(thread) })
    }

    /// Whether one more GSO batch would be taken.
    pub(super) fn has_room(&self) -> bool {
        !self.full.is_full()
    }

    /// Gives all of `datagrams` to the thread, and an empty buffer for them; or nothing, when it has enough to do.
    pub(super) fn send(&mut self, transmit: &Transmit, datagrams: &mut Vec<u8>) -> SendOutcome {
        if self.full.is_full() {
            return SendOutcome::WouldBlock { taken_bytes: 0 };
        }
        let empty = self.empty.pop().unwrap_or_else(|_| Vec::with_capacity(SEND_BYTES_MAX));
        let batch = GsoBatch { transmit: *transmit, datagrams: std::mem::replace(datagrams, empty) };
        // Why nothing can be left over: nobody else fills the ring.
        let _ = self.full.push(batch);
        fence(Ordering::SeqCst);
        self.shared.sleeper.wake();
        SendOutcome::Sent
    }
}

impl Drop for SendingThread {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        fence(Ordering::SeqCst);
        self.shared.sleeper.wake();
        if let Some(thread) = self.thread.take() {
            // Why ignored: a driver that is dropped has nobody to tell.
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
    bell: Arc<Bell>,
    /// Since when a thread that is to end has found no room.
    stuck_since: Option<Instant>,
}

impl Worker {
    fn run(mut self) {
        self.shared.sleeper.enter();
        let mut spins = 0;
        loop {
            // Invariant: read before the ring is. A driver gives its last GSO batch and then says stop: a ring found empty after
            // that word stays so, while one found empty before it may have got a GSO batch since.
            let stopping = self.shared.stop.load(Ordering::Acquire);
            if let Ok(batch) = self.given.pop() {
                self.bell.ring_for_room();
                self.send(batch);
                spins = 0;
            } else if stopping {
                return;
            } else if spins < SPINS {
                spins += 1;
                std::hint::spin_loop();
            } else {
                let (given, shared) = (&self.given, &self.shared);
                shared.sleeper.sleep(false, None, || !given.is_empty() || shared.stop.load(Ordering::Relaxed));
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
            // Why not for ever: the end of the driver does not end this wait. Why ignored: the next call tells the same.
            let _ = self.socket.wait(Some(FLUSH_TIMEOUT), Interest::Writable, &[]);
        }
        datagrams.clear();
        // Why ignored: a buffer too many is freed.
        let _ = self.used.push(datagrams);
    }
}
