//! An attacker with many source addresses: it sends from any host of 127.0.0.0/8, and receives and counts every answer to any of
//! them.
//!
//! Called by the attacks. Source: ip(7), `IP_PKTINFO`, by which one socket sends from every address of the machine.
//!
//! Invariant: what is sent is paced, so that the kernel's buffers are not what protects the victim.

use quinn_udp::{RecvMeta, Transmit, UdpSocketState};
use serde::Serialize;
use socket2::SockRef;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// The buffer that a socket of ours asks of the system.
const BUFFER_BYTES: usize = 4 << 20;
/// How much is sent in a row.
const BURST: u32 = 16;
/// The pace unless another is given, in datagrams a second: the 212,992 bytes a socket gets where nothing was configured hold 90
/// datagrams, which is 4 ms of it.
const PACE: u32 = 20_000;

/// Datagrams and their bytes, without IP and UDP headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Datagrams.
    pub datagrams: u64,
    /// Bytes of them.
    pub bytes: u64,
}

impl Tally {
    /// Counts one more.
    pub const fn add(&mut self, bytes: usize) {
        self.datagrams += 1;
        self.bytes += bytes as u64;
    }

    /// Both together.
    pub const fn plus(self, other: Self) -> Self {
        Self { datagrams: self.datagrams + other.datagrams, bytes: self.bytes + other.bytes }
    }
}

/// An attacker.
#[derive(Debug)]
pub struct Attacker {
    socket: UdpSocket,
    state: UdpSocketState,
    victim: SocketAddr,
    buffer: Vec<u8>,
    pause: Duration,
    due: Instant,
    in_burst: u32,
    /// What was sent.
    pub sent: Tally,
    /// What was answered, to any of its addresses.
    pub answered: Tally,
}

/// A large buffer for a socket.
pub(crate) fn enlarge(socket: &UdpSocket) {
    let socket = SockRef::from(socket);
    // Why ignored: what is lost on the way here is only not counted where little is sent anyway.
    let _ = socket.set_recv_buffer_size(BUFFER_BYTES);
    let _ = socket.set_send_buffer_size(BUFFER_BYTES);
}

impl Attacker {
    /// An attacker of this victim.
    ///
    /// # Errors
    /// When the system gives no socket.
    pub fn new(victim: SocketAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        enlarge(&socket);
        let state = UdpSocketState::new((&socket).into())?;
        let (pause, due) = (Duration::from_secs(1) / PACE, Instant::now());
        let (sent, answered) = (Tally::default(), Tally::default());
        Ok(Self { socket, state, victim, buffer: vec![0; 1 << 16], pause, due, in_burst: 0, sent, answered })
    }

    /// Another pace, in datagrams a second.
    #[must_use]
    pub fn with_pace(mut self, datagrams_per_second: u32) -> Self {
        self.pause = Duration::from_secs(1) / datagrams_per_second.max(1);
        self
    }

    /// The `at`-th of its hosts; each of the first 254 is of another provider (/16).
    pub fn host(at: u32) -> Ipv4Addr {
        let at = at % 0xfe_0000;
        // Why from 127.1.0.0 on: 127.0.0.1 is where honest peers are.
        Ipv4Addr::from(0x7f01_0000 + ((at % 0xfe) << 16) + at / 0xfe)
    }

    /// Sends a datagram to the victim from a host.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn send(&mut self, host: Ipv4Addr, contents: &[u8]) -> io::Result<()> {
        let transmit = Transmit { destination: self.victim, ecn: None, contents, segment_size: None, src_ip: Some(IpAddr::V4(host)) };
        loop {
            match self.state.try_send((&self.socket).into(), &transmit) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(Duration::from_millis(1)),
                other => break other?,
            }
        }
        self.sent.add(contents.len());
        self.due += self.pause;
        self.in_burst += 1;
        if self.in_burst >= BURST {
            self.in_burst = 0;
            let now = Instant::now();
            if self.due > now {
                std::thread::sleep(self.due - now);
            } else if now - self.due > Duration::from_millis(50) {
                // A machine that is busy elsewhere: what was missed is not made up for in one burst.
                self.due = now;
            }
        }
        Ok(())
    }

    /// Takes what was answered, and tells which host each answer came to.
    ///
    /// # Errors
    /// When the system fails.
    pub fn hear(&mut self, mut each: impl FnMut(Ipv4Addr, &[u8])) -> io::Result<()> {
        loop {
            let mut meta = [RecvMeta::default()];
            match self.state.recv((&self.socket).into(), &mut [IoSliceMut::new(&mut self.buffer)], &mut meta) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
            let host = match meta[0].dst_ip {
                Some(IpAddr::V4(host)) => host,
                _ => Ipv4Addr::UNSPECIFIED,
            };
            for datagram in self.buffer[..meta[0].len].chunks(meta[0].stride.max(1)) {
                self.answered.add(datagram.len());
                each(host, datagram);
            }
        }
    }

    /// Hears answers for so long.
    ///
    /// # Errors
    /// When the system fails.
    pub fn hear_for(&mut self, time: Duration, mut each: impl FnMut(Ipv4Addr, &[u8])) -> io::Result<()> {
        let end = Instant::now() + time;
        while Instant::now() < end {
            self.hear(&mut each)?;
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}
