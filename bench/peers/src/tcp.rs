//! The kernel's TCP.
//!
//! Called by [`crate::end`]. Settings: TCP_NODELAY; buffers are left to the kernel, which sizes them by itself.
//!
//! Invariant: the congestion control is the one that was asked for, or it is an error.

use crate::byte_stream::{self, CALL, Connection, STALL};
use crate::options::{Congestion, Options, Side};
use crate::outcome::{self, Outcome};
use anyhow::{Context as _, Result, ensure};
use rustix::net::sockopt::set_tcp_congestion;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::thread;
use std::time::Instant;

struct Tcp {
    stream: TcpStream,
    spin: bool,
}

/// One side of a workload.
pub(crate) fn run(options: &Options) -> Result<Outcome> {
    let stream = match options.side {
        Side::Serve => {
            let listener = TcpListener::bind(options.bind).with_context(|| format!("{} cannot be listened on", options.bind))?;
            choose(&listener, options.congestion)?;
            outcome::listening(listener.local_addr()?, "")?;
            listener.accept()?.0
        }
        Side::Run => {
            let peer = options.peer()?;
            let socket = socket2::Socket::new(socket2::Domain::for_address(peer), socket2::Type::STREAM, None)?;
            choose(&socket, options.congestion)?;
            socket.connect_timeout(&peer.into(), STALL).with_context(|| format!("{peer} cannot be connected to"))?;
            socket.into()
        }
    };
    stream.set_nodelay(true)?;
    stream.set_nonblocking(options.spin)?;
    stream.set_read_timeout(Some(CALL))?;
    stream.set_write_timeout(Some(CALL))?;
    byte_stream::run(&mut Tcp { stream, spin: options.spin }, options)
}

fn choose(socket: &impl AsFd, congestion: Congestion) -> Result<()> {
    let name = match congestion {
        Congestion::Cubic => "cubic",
        Congestion::Bbr => "bbr",
    };
    let available = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    ensure!(available.split_whitespace().any(|known| known == name), "this kernel has no {name}; load it with: modprobe tcp_{name}");
    set_tcp_congestion(socket, name).with_context(|| format!("the kernel does not let this user have {name}"))
}

impl Connection for Tcp {
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let began = Instant::now();
        loop {
            match waited(self.stream.read(buffer)) {
                Ok(None) if self.spin && began.elapsed() < CALL => std::hint::spin_loop(),
                // Whoever has what it wanted may go without reading all.
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(Some(0)),
                received => return received,
            }
        }
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<Option<usize>> {
        waited(self.stream.write(bytes))
    }

    fn idle(&mut self, until: Instant) -> io::Result<()> {
        thread::sleep(until.saturating_duration_since(Instant::now()));
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn waited(done: io::Result<usize>) -> io::Result<Option<usize>> {
    match done {
        Ok(length) => Ok(Some(length)),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) => Ok(None),
        Err(error) => Err(error),
    }
}
