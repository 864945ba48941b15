//! What wake-ups are made of, as objects of the model checker: the names of `sync` in `crates/net/src`.

pub(crate) use loom::sync::atomic::{AtomicBool, Ordering, fence};
pub(crate) use loom::thread::{Thread, current, park};

use loom::sync::{Condvar, Mutex};
use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

/// A model has no time: whoever would sleep for a while sleeps until it is woken, so that a lost wake-up is seen.
pub(crate) fn park_timeout(_at_most: Duration) {
    park();
}

/// The state of a parker.
///
/// Why its stores are swaps: loom does not know that nothing comes between the value that a read-modify-write reads and the one it
/// writes (C++ 33.5.4), and lets a waker read the value of its own last swap although the parker has overwritten what that swap
/// has read. As a swap the store is in order with it. Nothing is left out: that the waker's swap comes after the store is tried as
/// an order of its own.
#[derive(Debug, Default)]
pub(crate) struct AtomicU8(loom::sync::atomic::AtomicU8);

impl AtomicU8 {
    pub(crate) fn load(&self, ordering: Ordering) -> u8 {
        self.0.load(ordering)
    }

    pub(crate) fn store(&self, value: u8, ordering: Ordering) {
        self.0.swap(value, ordering);
    }

    pub(crate) fn swap(&self, value: u8, ordering: Ordering) -> u8 {
        self.0.swap(value, ordering)
    }
}

/// Bytes on their way to one end of a pair of sockets.
#[derive(Debug)]
pub(crate) struct Pipe {
    bytes: Mutex<usize>,
    filled: Condvar,
}

impl Pipe {
    fn new() -> Arc<Self> {
        Arc::new(Self { bytes: Mutex::new(0), filled: Condvar::new() })
    }

    /// What `poll` does: sleeps until there is something to read.
    pub(crate) fn wait(&self) {
        let mut bytes = self.bytes.lock().unwrap();
        while *bytes == 0 {
            bytes = self.filled.wait(bytes).unwrap();
        }
    }

    pub(crate) fn is_readable(&self) -> bool {
        *self.bytes.lock().unwrap() > 0
    }
}

thread_local! {
    // Why of the standard library: all threads of a model are one of the system.
    static FIRST_END: RefCell<Option<Arc<Pipe>>> = const { RefCell::new(None) };
}

/// The pipe to the first end of the pair that was made last, for whoever waits there.
pub(crate) fn last_pipe() -> Arc<Pipe> {
    FIRST_END.with_borrow_mut(Option::take).expect("a pair was made")
}

/// One end of a pair of sockets that never block.
#[derive(Debug)]
pub(crate) struct UnixStream {
    incoming: Arc<Pipe>,
    outgoing: Arc<Pipe>,
}

impl UnixStream {
    pub(crate) fn pair() -> io::Result<(Self, Self)> {
        let (ours, theirs) = (Pipe::new(), Pipe::new());
        FIRST_END.set(Some(Arc::clone(&ours)));
        Ok((Self { incoming: Arc::clone(&ours), outgoing: Arc::clone(&theirs) }, Self { incoming: theirs, outgoing: ours }))
    }

    #[expect(clippy::unnecessary_wraps, reason = "as of the standard library")]
    pub(crate) const fn set_nonblocking(&self, _nonblocking: bool) -> io::Result<()> {
        Ok(())
    }
}

impl Read for &UnixStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut bytes = self.incoming.bytes.lock().unwrap();
        let taken = buffer.len().min(*bytes);
        *bytes -= taken;
        if taken == 0 { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(taken) }
    }
}

impl Write for &UnixStream {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        *self.outgoing.bytes.lock().unwrap() += buffer.len();
        self.outgoing.filled.notify_all();
        Ok(buffer.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for UnixStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        unreachable!("a model has no file descriptors: it waits at its pipe")
    }
}
