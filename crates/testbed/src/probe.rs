//! The queueing delay of the link over time: small datagrams from side A to side B, stamped by the kernel on arrival.
//!
//! Called by measurements, as a method of [`Ends`]. Both sides are one process with one clock, so the one-way delay is known
//! exactly, and the time until an arrival was read does not count.
//!
//! Invariant: a lost or dropped probe is missing.

use crate::ends::{Ends, Side};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt};
use std::io::IoSliceMut;
use std::net::UdpSocket;
use std::os::fd::AsRawFd as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How far apart probes leave: 92 bytes each, 37 kbit/s.
const SPACING: Duration = Duration::from_millis(20);

/// The one-way delay of one probe.
#[derive(Clone, Copy, Debug)]
pub struct Crossing {
    /// When it left.
    pub left: Instant,
    /// How long it took.
    pub took: Duration,
}

impl Ends {
    /// Sends probes until `stop` is set; those that arrived, in the order of arrival.
    ///
    /// # Panics
    /// When the system refuses a socket.
    pub fn probe(&self, stop: &AtomicBool) -> Vec<Crossing> {
        let [sender, receiver] = [Side::A, Side::B].map(|side| self.udp(side));
        setsockopt(&receiver, sockopt::ReceiveTimestampns, &true).unwrap();
        receiver.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        let to = receiver.local_addr().unwrap();
        thread::scope(|scope| {
            let arrived = scope.spawn(|| {
                let mut arrived = Vec::new();
                while let Some(arrival) = receive(&receiver, stop) {
                    arrived.push(arrival);
                }
                arrived
            });
            let mut left: Vec<(Instant, Duration)> = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                let number = u32::try_from(left.len()).unwrap_or(u32::MAX).to_le_bytes();
                let mut datagram = [0; 64];
                datagram[..4].copy_from_slice(&number);
                left.push((Instant::now(), time_of_day()));
                let _ = sender.send_to(&datagram, to);
                thread::sleep(SPACING);
            }
            let crossing = |(number, at): (usize, Duration)| {
                let (instant, departure) = *left.get(number)?;
                Some(Crossing { left: instant, took: at.checked_sub(departure)? })
            };
            arrived.join().unwrap().into_iter().filter_map(crossing).collect()
        })
    }
}

fn time_of_day() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// The number of the next probe and when it arrived; `None` when none comes any more.
fn receive(receiver: &UdpSocket, stop: &AtomicBool) -> Option<(usize, Duration)> {
    loop {
        let mut datagram = [0; 64];
        let mut control = nix::cmsg_space!(nix::sys::time::TimeSpec);
        let mut buffers = [IoSliceMut::new(&mut datagram)];
        let received = recvmsg::<SockaddrStorage>(receiver.as_raw_fd(), &mut buffers, Some(&mut control), MsgFlags::empty());
        let stamp = match &received {
            Ok(message) => message.cmsgs().ok().and_then(|mut messages| {
                messages.find_map(|message| match message {
                    ControlMessageOwned::ScmTimestampns(at) => Some(Duration::from(at)),
                    _ => None,
                })
            }),
            Err(_) if stop.load(Ordering::Relaxed) => return None,
            Err(_) => continue,
        };
        let Some(stamp) = stamp else { continue };
        let number = u32::from_le_bytes([datagram[0], datagram[1], datagram[2], datagram[3]]);
        return Some((number as usize, stamp));
    }
}
