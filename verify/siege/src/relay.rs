//! An on-path attacker between a client and the victim: it sees every datagram, and can send as either of the two.
//!
//! Called by the attacks, on a thread of its own. Invariant: what the attacker lets pass arrives unchanged and in order.

use crate::attacker::{Tally, enlarge};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Which way a datagram goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// To the victim.
    Up,
    /// To the client.
    Down,
}

/// What an on-path attacker can use.
#[derive(Debug)]
pub struct Hands {
    to_client: UdpSocket,
    to_victim: UdpSocket,
    victim: SocketAddr,
    client: Option<SocketAddr>,
    in_burst: u32,
    /// Injected datagrams, in both directions.
    pub forged: Tally,
    /// Datagrams from the victim.
    pub from_victim: Tally,
}

impl Hands {
    fn forward(&self, way: Way, datagram: &[u8]) {
        // Why ignored: what cannot be sent is lost, as on any path.
        let _ = match (way, self.client) {
            (Way::Up, _) => self.to_victim.send_to(datagram, self.victim),
            (Way::Down, Some(client)) => self.to_client.send_to(datagram, client),
            (Way::Down, None) => Ok(0),
        };
    }

    /// Sends a datagram as the client (up) or the victim (down) would.
    pub fn forge(&mut self, way: Way, datagram: &[u8]) {
        self.forward(way, datagram);
        self.forged.add(datagram.len());
        self.in_burst += 1;
        // Why: as the attacker's own pace, so that no buffer of the kernel protects the one who is meant.
        if self.in_burst.is_multiple_of(32) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Hears what the victim answers to who stands for the client, for so long. It goes no further.
    pub fn hear_for(&mut self, time: Duration) {
        let (end, mut buffer) = (Instant::now() + time, [0; 2048]);
        while Instant::now() < end {
            match self.to_victim.recv_from(&mut buffer) {
                Ok((length, _)) => self.from_victim.add(length),
                Err(_) => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    /// The client seems to have another port, as after NAT rebinding.
    ///
    /// # Errors
    /// When the system gives no socket.
    pub fn rebind(&mut self) -> io::Result<()> {
        self.to_victim = socket()?;
        Ok(())
    }
}

/// A relay.
#[derive(Debug)]
pub struct Relay {
    hands: Hands,
    address: SocketAddr,
}

fn socket() -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.set_nonblocking(true)?;
    enlarge(&socket);
    Ok(socket)
}

impl Relay {
    /// A relay to the victim.
    ///
    /// # Errors
    /// When the system gives no sockets.
    pub fn new(victim: SocketAddr) -> io::Result<Self> {
        let (to_client, to_victim) = (socket()?, socket()?);
        let address = to_client.local_addr()?;
        let none = Tally::default();
        let hands = Hands { to_client, to_victim, victim, client: None, in_burst: 0, forged: none, from_victim: none };
        Ok(Self { hands, address })
    }

    /// Where clients find it.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Relays datagrams until it is stopped. `tamper` sees each before it is forwarded, and says whether it is.
    ///
    /// # Errors
    /// When the system fails.
    pub fn run(mut self, stop: &AtomicBool, mut tamper: impl FnMut(&mut Hands, Way, &[u8]) -> bool) -> io::Result<Hands> {
        let mut buffer = vec![0; 1 << 16];
        while !stop.load(Ordering::Relaxed) {
            let wait = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
            let mut fds = [PollFd::new(&self.hands.to_client, PollFlags::IN), PollFd::new(&self.hands.to_victim, PollFlags::IN)];
            poll(&mut fds, Some(&wait))?;
            while let Ok((length, from)) = self.hands.to_client.recv_from(&mut buffer) {
                self.hands.client = Some(from);
                if tamper(&mut self.hands, Way::Up, &buffer[..length]) {
                    self.hands.forward(Way::Up, &buffer[..length]);
                }
            }
            while let Ok((length, from)) = self.hands.to_victim.recv_from(&mut buffer) {
                if from != self.hands.victim {
                    continue;
                }
                self.hands.from_victim.add(length);
                if tamper(&mut self.hands, Way::Down, &buffer[..length]) {
                    self.hands.forward(Way::Down, &buffer[..length]);
                }
            }
        }
        Ok(self.hands)
    }
}
