//! Two tiny endpoints: one counts up and wants every number back, the other sends back what it gets.

use segstream_base::endpoint::{Arrival, Deadline, Ecn, Endpoint, Local, Transmit};
use segstream_base::{Duration, Instant};
use segstream_net::{Socket, SocketConfig};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// How long after silence numbers that are missing are sent again.
const SILENCE: Duration = Duration::from_millis(200);

/// The numbers that may be on their way at once, so that no buffer overflows.
const WINDOW: u64 = 64;

pub(crate) fn bind(address: &str) -> Socket {
    let config = SocketConfig { receive_buffer_bytes: 1 << 20, send_buffer_bytes: 1 << 20, ..SocketConfig::default() };
    Socket::bind(address.parse().expect("a literal address"), &config).expect("a free port on loopback")
}

/// Sends the numbers below `end`, each in a datagram of `datagram_bytes`, and counts those that come back.
pub(crate) struct Caller {
    pub(crate) to: SocketAddr,
    pub(crate) end: u64,
    pub(crate) datagram_bytes: usize,
    pub(crate) next: u64,
    pub(crate) returned: Vec<bool>,
    pub(crate) returned_count: u64,
    pub(crate) marks: u64,
    pub(crate) last_heard: Instant,
    pub(crate) times_went_backward: bool,
    now: Instant,
}

impl Caller {
    pub(crate) fn new(to: SocketAddr, end: u64, datagram_bytes: usize) -> Self {
        Self {
            to,
            end,
            datagram_bytes,
            next: 0,
            returned: vec![false; end as usize],
            returned_count: 0,
            marks: 0,
            last_heard: Instant::ZERO,
            times_went_backward: false,
            now: Instant::ZERO,
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.returned_count == self.end
    }

    fn tell(&mut self, now: Instant) {
        self.times_went_backward |= now < self.now;
        self.now = now;
    }

    fn first_missing(&self) -> u64 {
        self.returned.iter().position(|returned| !returned).map_or(self.end, |missing| missing as u64)
    }
}

impl Endpoint for Caller {
    fn handle_datagram(&mut self, now: Instant, arrival: Arrival, datagram: &mut [u8]) {
        self.tell(now);
        assert!(arrival.received <= now);
        assert_eq!(arrival.from, self.to);
        assert_eq!(datagram.len(), self.datagram_bytes);
        self.marks += u64::from(arrival.ecn == Some(Ecn::Ect0));
        self.last_heard = now;
        let number = u64::from_be_bytes(datagram[..8].try_into().expect("eight bytes"));
        if !std::mem::replace(&mut self.returned[number as usize], true) {
            self.returned_count += 1;
        }
    }

    fn poll_transmit(&mut self, now: Instant, max_datagrams: usize, out: &mut Vec<u8>) -> Option<Transmit> {
        self.tell(now);
        let end = self.end.min(self.first_missing() + WINDOW);
        let before = out.len();
        for _ in 0..max_datagrams {
            if self.next >= end {
                break;
            }
            let start = out.len();
            out.extend_from_slice(&self.next.to_be_bytes());
            out.resize(start + self.datagram_bytes, 7);
            self.next += 1;
        }
        let ecn = Some(Ecn::Ect0);
        (out.len() > before).then_some(Transmit { to: self.to, from: Local::ANY, datagram_bytes: self.datagram_bytes, ecn })
    }

    fn poll_deadline(&self) -> Option<Deadline> {
        (!self.is_done()).then_some(Deadline { at: self.last_heard + SILENCE, timer: "silence" })
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.tell(now);
        self.last_heard = now;
        self.next = self.first_missing();
    }
}

/// Sends back what comes.
#[derive(Default)]
pub(crate) struct Echo {
    waiting: VecDeque<(SocketAddr, Option<Ecn>, Vec<u8>)>,
    pub(crate) echoed: u64,
}

impl Endpoint for Echo {
    fn handle_datagram(&mut self, _: Instant, arrival: Arrival, datagram: &mut [u8]) {
        self.waiting.push_back((arrival.from, arrival.ecn, datagram.to_vec()));
    }

    fn poll_transmit(&mut self, _: Instant, max_datagrams: usize, out: &mut Vec<u8>) -> Option<Transmit> {
        let (to, ecn, datagram) = self.waiting.pop_front()?;
        let datagram_bytes = datagram.len();
        out.extend_from_slice(&datagram);
        self.echoed += 1;
        for _ in 1..max_datagrams {
            let same = |next: &(SocketAddr, Option<Ecn>, Vec<u8>)| (next.0, next.1, next.2.len()) == (to, ecn, datagram_bytes);
            let Some((_, _, datagram)) = self.waiting.front().is_some_and(same).then(|| self.waiting.pop_front()).flatten() else {
                break;
            };
            out.extend_from_slice(&datagram);
            self.echoed += 1;
        }
        Some(Transmit { to, from: Local::ANY, datagram_bytes, ecn })
    }

    fn poll_deadline(&self) -> Option<Deadline> {
        None
    }

    fn handle_timeout(&mut self, _: Instant) {}
}

/// Only has a deadline; knows when it was told.
pub(crate) struct Alarm {
    pub(crate) at: Instant,
    pub(crate) rang: Option<Instant>,
}

impl Endpoint for Alarm {
    fn handle_datagram(&mut self, _: Instant, _: Arrival, _: &mut [u8]) {}

    fn poll_transmit(&mut self, _: Instant, _: usize, _: &mut Vec<u8>) -> Option<Transmit> {
        None
    }

    fn poll_deadline(&self) -> Option<Deadline> {
        self.rang.is_none().then_some(Deadline { at: self.at, timer: "alarm" })
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.rang = self.rang.or((now >= self.at).then_some(now));
    }
}
