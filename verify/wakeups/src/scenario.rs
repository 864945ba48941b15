//! The models: threads that wait for something, and threads that provide it.
//!
//! Each runs in every order within its bound, and panics when a thread sleeps forever.

use crate::notifier::{Notifier, Wanted};
use crate::parker::Parker;
use crate::sync::{AtomicBool, Ordering, fence, last_pipe};
use crate::wake;
use loom::sync::atomic::AtomicUsize;
use loom::thread;
use std::sync::Arc;

fn explore(preemptions: Option<usize>, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.check(model);
}

/// Stands for a ring with one writer and one reader.
#[derive(Debug)]
struct Ring {
    pushed: AtomicUsize,
    popped: AtomicUsize,
    room: usize,
}

impl Ring {
    fn new(room: usize) -> Self {
        Self { pushed: AtomicUsize::new(0), popped: AtomicUsize::new(0), room }
    }

    /// By the writer alone.
    fn push(&self) -> bool {
        let fits = self.has_room();
        if fits {
            self.pushed.fetch_add(1, Ordering::Release);
        }
        fits
    }

    /// By the reader alone.
    fn pop(&self) -> bool {
        let some = self.has_some();
        if some {
            self.popped.fetch_add(1, Ordering::Release);
        }
        some
    }

    fn has_some(&self) -> bool {
        self.pushed.load(Ordering::Acquire) > self.popped.load(Ordering::Relaxed)
    }

    fn has_room(&self) -> bool {
        self.pushed.load(Ordering::Relaxed) - self.popped.load(Ordering::Acquire) < self.room
    }
}

/// A worker sleeps while its ring is empty, and gets this many messages, then the word to stop: as the thread that sends does, and
/// a worker of a staged run.
pub fn worker_gets_messages_and_the_word_to_stop(messages: usize) {
    explore(None, move || {
        let shared = Arc::new((Parker::default(), Ring::new(2), AtomicBool::new(false)));
        let worker = Arc::clone(&shared);
        let worker = thread::spawn(move || {
            let (parker, ring, stop) = &*worker;
            parker.register();
            let mut got = 0;
            loop {
                let stopping = stop.load(Ordering::Acquire);
                if ring.pop() {
                    got += 1;
                } else if stopping {
                    return got;
                } else {
                    parker.sleep(false, None, || ring.has_some() || stop.load(Ordering::Relaxed));
                }
            }
        });
        let (parker, ring, stop) = &*shared;
        for _ in 0..messages {
            assert!(ring.push());
            fence(Ordering::SeqCst);
            parker.wake();
        }
        stop.store(true, Ordering::Release);
        fence(Ordering::SeqCst);
        parker.wake();
        assert_eq!(worker.join().unwrap(), messages, "every message is taken before the worker stops");
    });
}

/// Two workers that pass messages on: the first sleeps while the ring to the second is full, the second while it is empty.
pub fn worker_waits_for_room(messages: usize) {
    explore(None, move || {
        let shared = Arc::new((Parker::default(), Parker::default(), Ring::new(1)));
        let second = Arc::clone(&shared);
        let second = thread::spawn(move || {
            let (first_parker, parker, ring) = &*second;
            parker.register();
            let mut got = 0;
            while got < messages {
                if ring.pop() {
                    got += 1;
                    fence(Ordering::SeqCst);
                    first_parker.wake_for_room();
                } else {
                    parker.sleep(false, None, || ring.has_some());
                }
            }
        });
        let (parker, second_parker, ring) = &*shared;
        parker.register();
        let mut passed = 0;
        while passed < messages {
            if ring.push() {
                passed += 1;
                fence(Ordering::SeqCst);
                second_parker.wake();
            } else {
                parker.sleep(true, None, || ring.has_room());
            }
        }
        second.join().unwrap();
    });
}

/// Threads wake a driver, each as often as `wakes` says; it looks only after it has forgotten the wakes so far.
pub fn wakers_meet_a_clear(wakes: &'static [usize]) {
    explore(Some(3), move || {
        let (waker, listener) = wake::pair().unwrap();
        let pipe = last_pipe();
        let done = Arc::new(wakes.iter().map(|_| AtomicUsize::new(0)).collect::<Vec<_>>());
        let wake_often = |(number, times): (usize, &'static usize)| {
            let (done, waker) = (Arc::clone(&done), waker.clone());
            thread::spawn(move || {
                for time in 1..=*times {
                    done[number].store(time, Ordering::Relaxed);
                    waker.wake();
                }
            })
        };
        let threads: Vec<_> = wakes.iter().enumerate().map(wake_often).collect();
        loop {
            listener.clear();
            if done.iter().zip(wakes).all(|(done, times)| done.load(Ordering::Relaxed) == *times) {
                break;
            }
            pipe.wait();
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

/// The notifier, and the rings of arrivals and of room.
type Shared = (Notifier, Ring, Ring);
/// The ring that a thread fills, and how it tells.
type Brings<'a> = (&'a Ring, fn(&Notifier));

/// A driver sleeps until its threads have something for it: arrivals from one, room from the other.
pub fn threads_notify_a_driver(arrivals: usize, rooms: usize) {
    explore(Some(3), move || {
        let (waker, listener) = wake::pair().unwrap();
        let pipe = last_pipe();
        let shared = Arc::new((Notifier::new(waker), Ring::new(2), Ring::new(2)));
        let bring = |count: usize, ring: fn(&Shared) -> Brings<'_>| {
            let shared = Arc::clone(&shared);
            (count > 0).then(|| {
                thread::spawn(move || {
                    let (ring, tell) = ring(&shared);
                    for _ in 0..count {
                        assert!(ring.push());
                        tell(&shared.0);
                    }
                })
            })
        };
        let threads =
            [bring(arrivals, |shared| (&shared.1, Notifier::notify_arrivals)), bring(rooms, |shared| (&shared.2, Notifier::notify_room))];
        let (notifier, full, empty) = &*shared;
        let (mut got, mut sent) = (0, 0);
        while got < arrivals || sent < rooms {
            got += usize::from(full.pop());
            sent += usize::from(empty.pop());
            let wanted = Wanted { arrivals: got < arrivals, room: sent < rooms };
            if wanted == Wanted::default() {
                break;
            }
            let is_ready = || wanted.arrivals && full.has_some() || wanted.room && empty.has_some();
            let notified = notifier.sleep(wanted, is_ready, |news| {
                if !news {
                    pipe.wait();
                }
                pipe.is_readable()
            });
            if notified {
                listener.clear();
            }
        }
        threads.into_iter().flatten().for_each(|thread| thread.join().unwrap());
    });
}
