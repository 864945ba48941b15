//! A relay between a sender and a receiver that loses datagrams in bursts and moves: from some datagram on the receiver sees the sender at
//! another port, as when a NAT forgets it.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// Of so many datagrams of the sender two that follow each other are lost.
const LOSS_PERIOD: u64 = 60;

/// A relay that runs until it is dropped.
#[derive(Debug)]
pub(crate) struct MovingRelay {
    /// Where the sender goes.
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    front: UdpSocket,
    /// Towards the receiver, before and after the move.
    upstream: [UdpSocket; 2],
    receiver: SocketAddr,
    sender: Mutex<Option<SocketAddr>>,
    at: AtomicUsize,
    forwarded: AtomicU64,
    lost: AtomicU64,
    stop: AtomicBool,
}

impl MovingRelay {
    /// A relay to `receiver` that moves after so many datagrams.
    pub(crate) fn start(receiver: SocketAddr, moves_after: u64) -> Self {
        let socket = || {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
            socket
        };
        let shared = Arc::new(Shared {
            front: socket(),
            upstream: [socket(), socket()],
            receiver,
            sender: Mutex::new(None),
            at: AtomicUsize::new(0),
            forwarded: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            stop: AtomicBool::new(false),
        });
        let forward = Arc::clone(&shared);
        let mut threads = vec![std::thread::spawn(move || forward.forward(moves_after))];
        threads.extend([0, 1].map(|place| {
            let back = Arc::clone(&shared);
            std::thread::spawn(move || back.back(place))
        }));
        Self { address: shared.front.local_addr().unwrap(), shared, threads }
    }

    /// How many datagrams were lost so far.
    pub(crate) fn lost(&self) -> u64 {
        self.shared.lost.load(Ordering::Relaxed)
    }
}

impl Shared {
    fn forward(&self, moves_after: u64) {
        let mut buffer = [0; 65_536];
        while !self.stop.load(Ordering::Relaxed) {
            let Ok((length, from)) = self.front.recv_from(&mut buffer) else { continue };
            *self.sender.lock().unwrap() = Some(from);
            let number = self.forwarded.fetch_add(1, Ordering::Relaxed);
            if number == moves_after {
                self.at.store(1, Ordering::Relaxed);
            }
            // Set-up is left alone, so that every run has the same losses.
            if number > LOSS_PERIOD && number % LOSS_PERIOD < 2 {
                self.lost.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            _ = self.upstream[self.at.load(Ordering::Relaxed)].send_to(&buffer[..length], self.receiver);
        }
    }

    fn back(&self, place: usize) {
        let mut buffer = [0; 65_536];
        while !self.stop.load(Ordering::Relaxed) {
            let Ok((length, _)) = self.upstream[place].recv_from(&mut buffer) else { continue };
            if let Some(sender) = *self.sender.lock().unwrap() {
                _ = self.front.send_to(&buffer[..length], sender);
            }
        }
    }
}

impl Drop for MovingRelay {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().unwrap();
        }
    }
}
