//! KCP, by the crate `kcp`, over a UDP socket of its own.
//!
//! Called by [`crate::end`]. Settings: stream mode, `nodelay` (1, 10, 2, 1), which is its turbo mode without congestion
//! control, and windows of 1024 packets.
//!
//! Invariant: whoever waits, waits in [`Kcp::pump`], so that timers run and arrivals are taken.

use crate::byte_stream::{self, CALL, Connection, STALL};
use crate::options::{Options, Side};
use crate::outcome::{self, Outcome};
use anyhow::{Context as _, Result};
use kcp::Error;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io::{self, ErrorKind, Write};
use std::net::UdpSocket;
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

const CONVERSATION: u32 = 7;
const WINDOW_PACKETS: u16 = 1024;
const DATAGRAM_BYTES: u16 = 1200;
/// A call of `send` may become 255 packets at most.
const WRITE_BYTES: usize = 64 << 10;

struct Kcp {
    machine: kcp::Kcp<Output>,
    socket: UdpSocket,
    began: Instant,
    buffer: Vec<u8>,
    /// What is left of a packet that was more than was asked for.
    rest: Vec<u8>,
}

/// Where the state machine puts datagrams.
struct Output(UdpSocket);

impl Write for Output {
    fn write(&mut self, datagram: &[u8]) -> io::Result<usize> {
        match self.0.send(datagram) {
            // The machine repeats what is lost.
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionRefused) => Ok(datagram.len()),
            sent => sent,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// One side of a workload.
pub(crate) fn run(options: &Options) -> Result<Outcome> {
    options.without_bbr("kcp")?;
    let (socket, first) = match options.side {
        Side::Serve => {
            let socket = UdpSocket::bind(options.bind).with_context(|| format!("{} cannot be listened on", options.bind))?;
            outcome::listening(socket.local_addr()?, "")?;
            socket.set_read_timeout(Some(STALL))?;
            let mut first = vec![0; 1 << 16];
            let (length, from) = socket.recv_from(&mut first).context("nobody has connected")?;
            first.truncate(length);
            socket.connect(from)?;
            (socket, first)
        }
        Side::Run => {
            let peer = options.peer()?;
            let any = if peer.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
            let socket = UdpSocket::bind(any)?;
            socket.connect(peer)?;
            (socket, Vec::new())
        }
    };
    let sized = socket2::SockRef::from(&socket);
    sized.set_recv_buffer_size(4 << 20)?;
    sized.set_send_buffer_size(4 << 20)?;
    socket.set_nonblocking(true)?;
    let mut machine = kcp::Kcp::new_stream(CONVERSATION, Output(socket.try_clone()?));
    machine.set_nodelay(true, 10, 2, true);
    machine.set_wndsize(WINDOW_PACKETS, WINDOW_PACKETS);
    machine.set_mtu(usize::from(options.datagram_bytes.unwrap_or(DATAGRAM_BYTES)))?;
    let mut connection = Kcp { machine, socket, began: Instant::now(), buffer: vec![0; 1 << 16], rest: Vec::new() };
    connection.machine.update(0)?;
    if !first.is_empty() {
        connection.machine.input(&first)?;
    }
    byte_stream::run(&mut connection, options)
}

impl Kcp {
    fn milliseconds(&self) -> u32 {
        self.began.elapsed().as_millis() as u32
    }

    /// Takes what has arrived, or waits until something does, a timer ends or `end` comes.
    fn pump(&mut self, end: Instant) -> io::Result<()> {
        let mut came = false;
        loop {
            match self.socket.recv(&mut self.buffer) {
                Ok(length) => {
                    self.machine.input(&self.buffer[..length])?;
                    came = true;
                }
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => return Err(ErrorKind::ConnectionReset.into()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        let now = self.milliseconds();
        let rest = self.machine.check(now);
        if rest == 0 {
            self.machine.update(now)?;
        }
        if came {
            return Ok(self.machine.flush()?);
        }
        let wait = end.saturating_duration_since(Instant::now()).min(Duration::from_millis(u64::from(rest)));
        // Up to a whole millisecond, else it would ask all the time during the last.
        let wait = PollTimeout::try_from(wait.as_micros().div_ceil(1000) as u32).unwrap_or(PollTimeout::ZERO);
        poll(&mut [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)], wait)?;
        Ok(())
    }
}

impl Connection for Kcp {
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let end = Instant::now() + CALL;
        loop {
            let mut filled = self.rest.len().min(buffer.len());
            buffer[..filled].copy_from_slice(&self.rest[..filled]);
            self.rest.drain(..filled);
            // The state machine gives whole packets only.
            while self.machine.peeksize().is_ok_and(|length| length <= buffer.len() - filled) {
                filled += self.machine.recv(&mut buffer[filled..])?;
            }
            if filled > 0 {
                return Ok(Some(filled));
            }
            if let Ok(length) = self.machine.peeksize() {
                self.rest.resize(length, 0);
                self.machine.recv(&mut self.rest)?;
                continue;
            }
            if Instant::now() >= end {
                return Ok(None);
            }
            self.pump(end)?;
        }
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<Option<usize>> {
        let end = Instant::now() + CALL;
        while self.machine.wait_snd() >= 2 * usize::from(WINDOW_PACKETS) {
            if Instant::now() >= end {
                return Ok(None);
            }
            self.pump(end)?;
        }
        let length = bytes.len().min(WRITE_BYTES);
        match self.machine.send(&bytes[..length]) {
            Ok(_) => {}
            Err(Error::UserBufTooBig) => return Err(io::Error::other("a write is more than KCP takes at once")),
            Err(error) => return Err(error.into()),
        }
        self.machine.flush()?;
        Ok(Some(length))
    }

    fn idle(&mut self, until: Instant) -> io::Result<()> {
        while Instant::now() < until {
            self.pump(until)?;
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        let end = Instant::now() + Duration::from_secs(1);
        while self.machine.wait_snd() > 0 && Instant::now() < end {
            // The other side may be gone.
            if self.pump(end).is_err() {
                break;
            }
        }
        Ok(())
    }
}
