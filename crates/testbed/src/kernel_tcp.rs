//! A transfer over the kernel's TCP from side A to side B, and its arrivals over time.
//!
//! Called by tests and measurements, as a method of [`Ends`].
//!
//! Invariant: the bytes of a series never decrease, and neither does its time.

use crate::ends::{Ends, Side};
use rustix::net::sockopt::{set_tcp_congestion, tcp_congestion};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// The bytes that had arrived, over time.
#[derive(Clone, Debug)]
pub struct Series {
    /// Since the moment before the connection was asked for, and all bytes read by then. The first is nothing at zero.
    pub arrived: Vec<(Duration, u64)>,
}

impl Series {
    /// The bytes that had been read `after` the start.
    pub fn bytes_at(&self, after: Duration) -> u64 {
        self.arrived.iter().take_while(|(at, _)| *at <= after).last().map_or(0, |(_, bytes)| *bytes)
    }

    /// The mean rate of delivered bytes between two moments, in bit/s.
    pub fn bps(&self, from: Duration, to: Duration) -> f64 {
        (self.bytes_at(to) - self.bytes_at(from)) as f64 * 8.0 / (to - from).as_secs_f64()
    }

    /// The mean rate in each `step`, up to the last that is whole.
    pub fn steps_bps(&self, step: Duration) -> Vec<f64> {
        let end = self.arrived.last().map_or(Duration::ZERO, |(at, _)| *at);
        (0..).map(|number| step * number).take_while(|from| *from + step <= end).map(|from| self.bps(from, from + step)).collect()
    }
}

impl Ends {
    /// Sends as much as a TCP connection under `congestion_control` (such as `cubic`) carries in `time`.
    ///
    /// # Panics
    /// When the connection is not made, or breaks.
    pub fn kernel_tcp(&self, congestion_control: &str, time: Duration) -> Series {
        let address = self.address(Side::B);
        let listener = self.inside(Side::B, || TcpListener::bind((address, 0)).unwrap());
        let to = listener.local_addr().unwrap();
        let started = Instant::now();
        let sender = self.inside(Side::A, || TcpStream::connect_timeout(&to, Duration::from_secs(20)).unwrap());
        set_tcp_congestion(&sender, congestion_control).unwrap();
        assert_eq!(tcp_congestion(&sender).unwrap(), congestion_control);
        let (receiver, _) = listener.accept().unwrap();
        thread::scope(|scope| {
            scope.spawn(|| send_until_refused(sender));
            receive(receiver, started, time)
        })
    }
}

/// Whether this kernel has a congestion control of this name.
pub fn is_available(congestion_control: &str) -> bool {
    let available = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    available.split_whitespace().any(|name| name == congestion_control)
}

/// Sends until the receiver has gone.
fn send_until_refused(mut sender: TcpStream) {
    sender.set_write_timeout(Some(Duration::from_secs(60))).unwrap();
    while sender.write(&[7; 64 << 10]).is_ok() {}
}

/// Receives until the time is over, then closes the connection.
fn receive(mut receiver: TcpStream, started: Instant, time: Duration) -> Series {
    receiver.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let (mut buffer, mut bytes, mut arrived) = (vec![0; 256 << 10], 0, vec![(Duration::ZERO, 0)]);
    while started.elapsed() < time {
        match receiver.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => {
                bytes += length as u64;
                arrived.push((started.elapsed(), bytes));
            }
            Err(error) => assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}"),
        }
    }
    Series { arrived }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_tells_the_rate_of_every_step() {
        let at = Duration::from_millis;
        let series = Series { arrived: vec![(at(0), 0), (at(50), 1000), (at(150), 3000), (at(250), 3000)] };
        assert_eq!(series.steps_bps(at(100)), [80_000.0, 160_000.0]);
        assert_eq!((series.bytes_at(at(149)), series.bytes_at(at(9999))), (1000, 3000));
    }
}
