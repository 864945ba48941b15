//! One iteration of the event loop without sleeping: receive, handle timeouts, send.
//!
//! Called by both drivers, which differ in how they reach the socket ([`DatagramIo`]), how they reach the
//! endpoint ([`Access`]), and how they sleep.
//!
//! Invariant: what an endpoint has written is handed to the kernel in order, or counted as dropped by the socket. A full send
//! buffer loses nothing. A turn is bounded, whatever peers send.

use super::{DriverConfig, Turn};
use crate::clock::Clock;
use crate::receive::ReceiveBatch;
use crate::socket::{SEND_BYTES_MAX, SendOutcome};
use segstream_base::endpoint::{Deadline, Endpoint, Transmit};
use segstream_base::{Duration, Instant};
use std::io;
use std::sync::{Mutex, PoisonError};

/// The datagram size assumed before the first one is known: the UDP payload of an Ethernet frame.
const FIRST_DATAGRAM_BYTES: usize = 1_472;

/// The socket is not polled again within this time. Why: a system call that finds nothing costs as much as one that finds
/// datagrams, and few arrive in so short a time.
const POLL_AGAIN_AFTER: Duration = Duration::from_micros(20);

/// How long a driver that cannot send ignores an expired timer.
const BLOCKED_PAUSE: Duration = Duration::from_millis(1);

/// Until when to sleep after `turn`; `None` if only a datagram, room in the send buffer or the application ends the sleep.
pub(super) fn sleep_end(turn: &Turn, deadline: Option<Deadline>, now: Instant) -> Option<Instant> {
    let at = deadline?.at;
    // Why: a deadline for sending stays expired while nothing can be sent. Room in the send buffer ends the sleep as well.
    Some(if turn.blocked { at.max(now + BLOCKED_PAUSE) } else { at })
}

/// How a driver reaches its socket.
pub(super) trait DatagramIo {
    /// Whether readiness is level-triggered: a wait ends at once if datagrams are left in the socket. With edge-triggered
    /// readiness the socket must be read until it is empty.
    const LEVEL_TRIGGERED: bool;

    /// See [`Socket::receive`](crate::socket::Socket::receive). May exchange the batch for another.
    fn receive(&mut self, batch: &mut Box<ReceiveBatch>) -> io::Result<usize>;

    /// As [`DatagramIo::receive`], but it may return only the first datagrams. The cheapest call when nothing has arrived.
    fn poll(&mut self, batch: &mut Box<ReceiveBatch>) -> io::Result<usize> {
        self.receive(batch)
    }

    /// Sends the bytes of `datagrams` from offset `from`; see [`Socket::send`](crate::socket::Socket::send). May exchange the buffer
    /// for another one when all of it was taken.
    fn send(&mut self, transmit: &Transmit, datagrams: &mut Vec<u8>, from: usize) -> SendOutcome;

    /// See [`Socket::datagrams_per_send`](crate::socket::Socket::datagrams_per_send).
    fn datagrams_per_send(&self) -> usize;
}

/// How a driver reaches its endpoint.
pub(super) trait Access<E> {
    /// Whether other threads call the endpoint between our calls, with later times than ours.
    const SHARED: bool;

    /// Runs `call` with the endpoint.
    fn with<R>(&mut self, call: impl FnOnce(&mut E) -> R) -> R;
}

impl<E> Access<E> for &mut E {
    const SHARED: bool = false;

    fn with<R>(&mut self, call: impl FnOnce(&mut E) -> R) -> R {
        call(self)
    }
}

impl<E> Access<E> for &Mutex<E> {
    const SHARED: bool = true;

    fn with<R>(&mut self, call: impl FnOnce(&mut E) -> R) -> R {
        // Why poisoning is ignored: a panic of the application leaves the endpoint in a valid state.
        call(&mut self.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The buffers of a driver, and what it could not send yet.
#[derive(Debug)]
pub(super) struct EventLoop {
    clock: Clock,
    config: DriverConfig,
    batch: Box<ReceiveBatch>,
    outgoing: Vec<u8>,
    pending: Option<Pending>,
    /// The sizes of the last datagrams, newest last.
    datagram_bytes: [usize; 2],
    polled: Option<Poll>,
    /// The cached time: the last reading of the clock, if nothing has taken time since.
    present: Option<Instant>,
}

/// When the socket was last polled, and whether it was empty.
#[derive(Clone, Copy, Debug)]
struct Poll {
    at: Instant,
    empty: bool,
}

/// Datagrams in `outgoing` that the kernel has not taken, from `from` on.
#[derive(Clone, Copy, Debug)]
struct Pending {
    transmit: Transmit,
    from: usize,
}

impl EventLoop {
    pub(super) fn new(clock: Clock, config: DriverConfig) -> Self {
        Self {
            clock,
            config,
            batch: Box::new(ReceiveBatch::new(clock)),
            outgoing: Vec::with_capacity(SEND_BYTES_MAX),
            pending: None,
            datagram_bytes: [FIRST_DATAGRAM_BYTES; 2],
            polled: None,
            present: None,
        }
    }

    pub(super) fn clock(&self) -> Clock {
        self.clock
    }

    /// The current time. The clock is read again only after a system call or between turns.
    pub(super) fn now(&mut self) -> Instant {
        let clock = self.clock;
        *self.present.get_or_insert_with(|| clock.now())
    }

    /// Drops the cached time: the caller has slept or done something else.
    pub(super) fn invalidate_now(&mut self) {
        self.present = None;
    }

    /// Runs `call` with the endpoint and the current time.
    fn tell<E, A: Access<E>, R>(&mut self, access: &mut A, call: impl FnOnce(&mut Self, &mut E, Instant) -> R) -> R {
        access.with(|endpoint| {
            // Why: another thread may have called the endpoint with a later time.
            if A::SHARED {
                self.invalidate_now();
            }
            let now = self.now();
            call(self, endpoint, now)
        })
    }

    /// Whether the socket was polled less than [`POLL_AGAIN_AFTER`] ago; with `empty`, also that it was empty.
    pub(super) fn polled_recently(&self, now: Instant, empty: bool) -> bool {
        self.polled.is_some_and(|poll| now.since(poll.at) < POLL_AGAIN_AFTER && (poll.empty || !empty))
    }

    /// Runs one turn; receives datagrams only if `receive` is set.
    pub(super) fn work<E: Endpoint>(&mut self, io: &mut impl DatagramIo, access: &mut impl Access<E>, receive: bool) -> io::Result<Turn> {
        let mut turn = Turn::default();
        if receive {
            self.receive(io, access, &mut turn)?;
        }
        turn.timer = self.tell(access, |_, endpoint: &mut E, now| {
            let due = endpoint.poll_deadline().filter(|deadline| deadline.at <= now)?;
            endpoint.handle_timeout(now);
            Some(due.timer)
        });
        self.transmit(io, access, &mut turn);
        turn.at = self.now();
        Ok(turn)
    }

    fn receive<E: Endpoint, I: DatagramIo>(&mut self, io: &mut I, access: &mut impl Access<E>, turn: &mut Turn) -> io::Result<()> {
        for _ in 0..self.config.receives_per_turn.max(1) {
            let count = io.receive(&mut self.batch)?;
            self.invalidate_now();
            self.deliver(count, access);
            turn.received += count;
            if self.batch.is_drained() || (I::LEVEL_TRIGGERED && !self.batch.is_full()) {
                if count == 0 {
                    self.polled = Some(Poll { at: self.now(), empty: true });
                }
                return Ok(());
            }
        }
        turn.more = true;
        Ok(())
    }

    /// Polls once and delivers what it finds, without the rest of a turn. Returns the number of datagrams.
    pub(super) fn poll_once<E: Endpoint>(&mut self, io: &mut impl DatagramIo, access: &mut impl Access<E>) -> io::Result<usize> {
        let count = io.poll(&mut self.batch)?;
        self.invalidate_now();
        self.deliver(count, access);
        Ok(count)
    }

    /// Delivers the `count` datagrams of the batch to the endpoint.
    fn deliver<E: Endpoint>(&mut self, count: usize, access: &mut impl Access<E>) {
        if count > 0 {
            self.tell(access, |this, endpoint: &mut E, now| {
                for (arrival, gro) in this.batch.gro_batches() {
                    endpoint.handle_batch(now, arrival, gro.bytes, gro.datagram_bytes);
                }
                this.polled = Some(Poll { at: now, empty: false });
            });
        }
    }

    fn transmit<E: Endpoint>(&mut self, io: &mut impl DatagramIo, access: &mut impl Access<E>, turn: &mut Turn) {
        for _ in 0..self.config.sends_per_turn.max(1) {
            let Some(pending) = self.pending.take().or_else(|| self.poll_transmit(io, access)) else {
                return;
            };
            let left_bytes = self.outgoing.len().saturating_sub(pending.from);
            let size = pending.transmit.datagram_bytes.max(1);
            let outcome = io.send(&pending.transmit, &mut self.outgoing, pending.from);
            self.invalidate_now();
            match outcome {
                SendOutcome::Sent | SendOutcome::Dropped { .. } => turn.sent += left_bytes.div_ceil(size),
                SendOutcome::WouldBlock { taken_bytes } => {
                    turn.sent += taken_bytes.div_ceil(size);
                    turn.blocked = true;
                    self.pending = Some(Pending { from: pending.from + taken_bytes, ..pending });
                    return;
                }
            }
        }
        turn.more = true;
    }

    fn poll_transmit<E: Endpoint>(&mut self, io: &mut impl DatagramIo, access: &mut impl Access<E>) -> Option<Pending> {
        // Why: a GSO batch longer than one IP packet needs a second system call for its small rest. Why the larger of two sizes: now
        // and then a small datagram leaves alone between GSO batches of large ones.
        let [before, last] = self.datagram_bytes;
        let fitting = SEND_BYTES_MAX / before.max(last);
        let count_max = io.datagrams_per_send().min(self.config.datagrams_per_send).min(fitting).max(1);
        self.outgoing.clear();
        let transmit = self.tell(access, |this, endpoint: &mut E, now| endpoint.poll_transmit(now, count_max, &mut this.outgoing))?;
        self.datagram_bytes = [last, transmit.datagram_bytes.clamp(1, SEND_BYTES_MAX)];
        Some(Pending { transmit, from: 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use segstream_base::endpoint::{Arrival, Local};
    use std::cell::{Cell, RefCell};

    /// A socket that takes `room` datagrams, then blocks.
    struct Narrow {
        room: Cell<usize>,
        taken: RefCell<Vec<u8>>,
    }

    impl DatagramIo for Narrow {
        const LEVEL_TRIGGERED: bool = false;

        fn receive(&mut self, batch: &mut Box<ReceiveBatch>) -> io::Result<usize> {
            batch.set_drained();
            Ok(0)
        }

        fn send(&mut self, transmit: &Transmit, datagrams: &mut Vec<u8>, from: usize) -> SendOutcome {
            let datagrams = &datagrams[from..];
            let fitting = datagrams.len().min(self.room.get() * transmit.datagram_bytes);
            self.taken.borrow_mut().extend_from_slice(&datagrams[..fitting]);
            self.room.set(self.room.get() - fitting.div_ceil(transmit.datagram_bytes));
            if fitting < datagrams.len() { SendOutcome::WouldBlock { taken_bytes: fitting } } else { SendOutcome::Sent }
        }

        fn datagrams_per_send(&self) -> usize {
            4
        }
    }

    /// Sends the numbers below `end`, a byte each.
    struct Counter {
        next: u8,
        end: u8,
        most_asked: usize,
    }

    impl Endpoint for Counter {
        fn handle_datagram(&mut self, _: Instant, _: Arrival, _: &mut [u8]) {}

        fn poll_transmit(&mut self, _: Instant, max_datagrams: usize, out: &mut Vec<u8>) -> Option<Transmit> {
            self.most_asked = self.most_asked.max(max_datagrams);
            let before = out.len();
            while self.next < self.end && out.len() - before < max_datagrams {
                out.push(self.next);
                self.next += 1;
            }
            let to = std::net::SocketAddr::from(([127, 0, 0, 1], 1));
            (out.len() > before).then_some(Transmit { to, from: Local::ANY, datagram_bytes: 1, ecn: None })
        }

        fn poll_deadline(&self) -> Option<Deadline> {
            None
        }

        fn handle_timeout(&mut self, _: Instant) {}
    }

    #[test]
    fn a_full_send_buffer_loses_and_reorders_nothing() {
        let mut event_loop = EventLoop::new(Clock::start(), DriverConfig::default());
        let mut counter = Counter { next: 0, end: 101, most_asked: 0 };
        let mut io = Narrow { room: Cell::new(0), taken: RefCell::default() };
        let (mut blocked, mut sent) = (0, 0);
        while sent < 101 {
            io.room.set(3);
            let turn = event_loop.work(&mut io, &mut &mut counter, true).expect("this socket has no errors");
            blocked += usize::from(turn.blocked);
            sent += turn.sent;
            assert!(turn.is_busy());
        }
        assert_eq!(*io.taken.borrow(), (0..101).collect::<Vec<u8>>());
        assert!(blocked > 20);
        assert_eq!(counter.most_asked, 4, "the endpoint was asked for more than one call can send");
    }

    #[test]
    fn an_expired_deadline_does_not_keep_a_driver_awake_that_cannot_send() {
        let now = Instant::from_nanos(5_000_000);
        let deadline = Some(Deadline { at: Instant::ZERO, timer: "pacing" });
        let stuck = Turn { blocked: true, timer: Some("pacing"), ..Turn::default() };
        assert!(!stuck.is_busy());
        assert_eq!(sleep_end(&stuck, deadline, now), Some(now + BLOCKED_PAUSE));

        let free = Turn { timer: Some("pacing"), ..Turn::default() };
        assert!(free.is_busy());
        assert_eq!(sleep_end(&free, deadline, now), Some(Instant::ZERO));
    }

    /// Sends `left` datagrams and records every time it is given; each datagram takes so long that the clock advances.
    struct Diary {
        clock: Clock,
        left: usize,
        told: Vec<Instant>,
    }

    impl Endpoint for Diary {
        fn handle_datagram(&mut self, now: Instant, _: Arrival, _: &mut [u8]) {
            self.told.push(now);
        }

        fn poll_transmit(&mut self, now: Instant, _: usize, out: &mut Vec<u8>) -> Option<Transmit> {
            self.told.push(now);
            while self.clock.now() <= now {}
            self.left = self.left.checked_sub(1)?;
            out.push(7);
            Some(Transmit { to: ([127, 0, 0, 1], 1).into(), from: Local::ANY, datagram_bytes: 1, ecn: None })
        }

        fn poll_deadline(&self) -> Option<Deadline> {
            Some(Deadline { at: Instant::ZERO, timer: "always" })
        }

        fn handle_timeout(&mut self, now: Instant) {
            self.told.push(now);
        }
    }

    #[test]
    fn an_endpoint_is_told_times_in_order_and_one_anew_for_each_system_call() {
        let clock = Clock::start();
        let mut event_loop = EventLoop::new(clock, DriverConfig::default());
        let mut diary = Diary { clock, left: 3, told: Vec::new() };
        let mut io = Narrow { room: Cell::new(10), taken: RefCell::default() };
        for left in [3, 2] {
            diary.left = left;
            let began = clock.now();
            event_loop.invalidate_now();
            let turn = event_loop.work(&mut io, &mut &mut diary, false).expect("this socket has no errors");
            assert!(diary.told.is_sorted() && diary.told.iter().all(|told| *told <= turn.at) && turn.at <= clock.now());
            // The timer and the first datagram share one reading of the clock; nothing has taken time between them.
            let told = core::mem::take(&mut diary.told);
            assert_eq!((told.len(), told[0]), (left + 2, told[1]));
            assert!(told[0] >= began && told.windows(2).skip(1).all(|two| two[0] < two[1]), "{told:?}");
        }
    }

    #[test]
    fn a_turn_is_bounded_however_much_there_is_to_send() {
        let config = DriverConfig { sends_per_turn: 5, ..DriverConfig::default() };
        let mut event_loop = EventLoop::new(Clock::start(), config);
        let mut counter = Counter { next: 0, end: 200, most_asked: 0 };
        let mut io = Narrow { room: Cell::new(1_000), taken: RefCell::default() };
        let turn = event_loop.work(&mut io, &mut &mut counter, true).expect("this socket has no errors");
        assert_eq!((turn.sent, turn.more), (20, true));
    }
}
